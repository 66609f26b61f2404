//! What AVX-512 does by hand: sums on vectors of 16 numbers, and of packing, bytes looked up in a
//! table of 256 halves of words (with VBMI). Elsewhere plain
//! loops do the same.

#![allow(unsafe_code)]

use super::panel::Line;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use crate::gemm::transpose::x86::square;

#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(super) use x86::sums;

/// 256 bfloat16 numbers.
#[derive(Clone)]
pub(super) struct Table {
    /// Low and high bytes, as `vpermi2b` takes them.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "std")), expect(dead_code))]
    bytes: [[u8; 256]; 2],
    halves: [u16; 256],
}

impl Table {
    pub(super) fn new(halves: [u16; 256]) -> Self {
        let bytes = [halves.map(|half| half as u8), halves.map(|half| (half >> 8) as u8)];
        Self { bytes, halves }
    }

    /// The numbers of codes.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(super) fn look_up(&self, codes: &[u8], out: &mut [u16]) {
        assert_eq!(codes.len(), out.len(), "a number a code");
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        if crate::simd::level() >= crate::simd::Level::Avx512
            && is_x86_feature_detected!("avx512vbmi")
        {
            // SAFETY: AVX-512 F, BW, VL by the level, VBMI by detection.
            return unsafe { x86::look_up(&self.bytes, codes, out) };
        }
        for (code, out) in codes.iter().zip(out) {
            *out = self.halves[usize::from(*code)];
        }
    }
}

/// Transposes squares of 16 x 16 words in place: 16 lines, `step` apart, from `first` on.
///
/// # Panics
/// If there are fewer lines.
pub(super) fn transpose(lines: &mut [Line], first: usize, step: usize) {
    let lines = &mut lines[first..];
    assert!(lines.len() > 15 * step);
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if crate::simd::level() >= crate::simd::Level::Avx512 {
        let lines = lines.as_mut_ptr();
        // SAFETY: AVX-512 F by the level; 15 steps and one line are there.
        return unsafe { square(lines.cast(), 16 * step, lines.cast(), 16 * step) };
    }
    for i in 0..16 {
        for j in 0..i {
            let (here, there) = (lines[i * step].words()[j], lines[j * step].words()[i]);
            lines[i * step].words()[j] = there;
            lines[j * step].words()[i] = here;
        }
    }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(super) mod x86 {
    use core::arch::x86_64::*;

    use super::super::panel::{BLOCK, LANES, Square};
    use super::super::vector::{look_ahead, vector_sums};

    // Four rows: 8 sums, 16 chains, 2 vectors of the right operand and 1 of the left one.
    vector_sums! {
        "avx512f", 4 x 2 of 16,
        _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps
    }

    /// A table of 256 bytes in four registers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(table: &[u8; 256]) -> [__m512i; 4] {
        // SAFETY: four times 64 bytes are the table; no alignment is needed.
        [0, 64, 128, 192].map(|i| unsafe { _mm512_loadu_si512(table.as_ptr().add(i).cast()) })
    }

    /// Entries for 64 codes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn entries(table: &[__m512i; 4], codes: __m512i) -> __m512i {
        let lower = _mm512_permutex2var_epi8(table[0], codes, table[1]);
        let upper = _mm512_permutex2var_epi8(table[2], codes, table[3]);
        _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), lower, upper)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    pub(super) fn look_up(table: &[[u8; 256]; 2], codes: &[u8], out: &mut [u16]) {
        let (low, high) = (load(&table[0]), load(&table[1]));
        // Interleaving works inside lanes of eight results: groups 0 1 | 2 3 | 4 5 | 6 7.
        let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
        let results = |codes: __m512i| {
            let codes = _mm512_permutexvar_epi64(order, codes);
            let (low, high) = (entries(&low, codes), entries(&high, codes));
            (_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high))
        };
        let (codes, codes_rest) = codes.as_chunks::<64>();
        let (out, out_rest) = out.as_chunks_mut::<64>();
        for (codes, out) in codes.iter().zip(out) {
            // SAFETY: 64 bytes are read and 128 written; no alignment is needed.
            unsafe {
                let (first, second) = results(_mm512_loadu_si512(codes.as_ptr().cast()));
                _mm512_storeu_si512(out.as_mut_ptr().cast(), first);
                _mm512_storeu_si512(out.as_mut_ptr().add(32).cast(), second);
            }
        }
        if !codes_rest.is_empty() {
            let (mut some, mut numbers) = ([0_u8; 64], [0_u16; 64]);
            some[..codes_rest.len()].copy_from_slice(codes_rest);
            // SAFETY: as above.
            unsafe {
                let (first, second) = results(_mm512_loadu_si512(some.as_ptr().cast()));
                _mm512_storeu_si512(numbers.as_mut_ptr().cast(), first);
                _mm512_storeu_si512(numbers.as_mut_ptr().add(32).cast(), second);
            }
            out_rest.copy_from_slice(&numbers[..out_rest.len()]);
        }
    }
}
