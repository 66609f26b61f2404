//! What AVX-512 does by hand: sums on vectors of 16 numbers, and of packing, bytes looked up in a
//! table of 256 halves of words (with VBMI) and squares of 16 x 16 words transposed. Elsewhere plain
//! loops do the same.

#![allow(unsafe_code)]

use super::panel::Line;

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
        return unsafe { x86::transpose_to(lines, step, lines, step) };
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

    use super::super::panel::{BLOCK, LANES, Line};
    use super::super::vector::{Square, look_ahead, vector_sums};

    // Four rows: 8 sums, 16 chains, 2 vectors of the right operand and 1 of the left one.
    vector_sums! {
        "avx512f", 4 x 2 of 16,
        _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps
    }

    /// A table of 256 bytes in four registers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(table: &[u8; 256]) -> [__m512i; 4] {
        // SAFETY: four times 64 bytes are the table; no alignment is asked.
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
            // SAFETY: 64 bytes are read and 128 written; no alignment is asked.
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

    /// Transposes 16 x 16 words; all are read before any is written.
    ///
    /// # Safety
    /// There are lines at `from` and at 1 to 15 times `from_step` behind it, and so at `to`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::gemm::fast) unsafe fn transpose_to(
        from: *const Line,
        from_step: usize,
        to: *mut Line,
        to_step: usize,
    ) {
        let mut rows = [_mm512_setzero_si512(); 16];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: by the function's condition; lines are aligned.
            *row = unsafe { _mm512_load_si512(from.add(i * from_step).cast()) };
        }
        // Squares of 2 x 2 words, of 4 x 4, and the 4 x 4 squares of those.
        let mut twos = rows;
        for i in 0..8 {
            twos[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
            twos[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
        }
        // Lane l of fours[4 g + w] holds column 4 l + w of rows 4 g to 4 g + 3.
        let mut fours = rows;
        for g in 0..4 {
            fours[4 * g] = _mm512_unpacklo_epi64(twos[4 * g], twos[4 * g + 2]);
            fours[4 * g + 1] = _mm512_unpackhi_epi64(twos[4 * g], twos[4 * g + 2]);
            fours[4 * g + 2] = _mm512_unpacklo_epi64(twos[4 * g + 1], twos[4 * g + 3]);
            fours[4 * g + 3] = _mm512_unpackhi_epi64(twos[4 * g + 1], twos[4 * g + 3]);
        }
        for w in 0..4 {
            let [a, b, c, d] = [fours[w], fours[4 + w], fours[8 + w], fours[12 + w]];
            let (low_ab, high_ab) =
                (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xEE>(a, b));
            let (low_cd, high_cd) =
                (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xEE>(c, d));
            let columns = [
                _mm512_shuffle_i32x4::<0x88>(low_ab, low_cd),
                _mm512_shuffle_i32x4::<0xDD>(low_ab, low_cd),
                _mm512_shuffle_i32x4::<0x88>(high_ab, high_cd),
                _mm512_shuffle_i32x4::<0xDD>(high_ab, high_cd),
            ];
            for (l, column) in columns.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_store_si512(to.add((4 * l + w) * to_step).cast(), column) };
            }
        }
    }
}
