//! Bytes through a table of 256 entries: 64 at a time with AVX-512 VBMI.
//!
//! Every function of a code of up to 8 bits is a table. Here these are all conversions between such
//! formats, and their values where these lie in the upper half of a binary32 word. The values of
//! all usual formats of up to 8 significant bits do. `vpermi2b` looks 64 bytes up in 128 entries
//! that wait in two registers; two of them and a choice by the top bit serve 256. Entries of 16
//! bits are looked up half by half and interleaved.
//!
//! Interleaving works inside of lanes of 128 bits; so that its results come out in order, the codes
//! are exchanged beforehand, in groups of four, by one `vpermd`.
//!
//! Without VBMI a table is read entry by entry, with the same results.

#![allow(unsafe_code)]

use super::memory::Traffic;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::memory::{Fence, LINE};

/// Results for all bytes.
pub(super) type Table<T> = [T; 256];

/// All bytes.
pub(super) const BYTES: Table<u8> = {
    let mut bytes = [0; 256];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

/// Entries of 16 bits as they are looked up, half by half.
pub(super) struct Halves {
    low: Table<u8>,
    high: Table<u8>,
}

impl Halves {
    pub(super) fn new(table: &Table<u16>) -> Self {
        Self { low: table.map(|entry| entry as u8), high: table.map(|entry| (entry >> 8) as u8) }
    }

    fn entry(&self, code: u8) -> u16 {
        u16::from_le_bytes([self.low[usize::from(code)], self.high[usize::from(code)]])
    }
}

/// Whether a lookup is faster than a few vector operations an element.
#[inline]
pub(super) fn is_fast() -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    return crate::simd::level() >= crate::simd::Level::Avx512
        && is_x86_feature_detected!("avx512vbmi");
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    false
}

/// Entries for `codes`.
///
/// # Panics
/// If the lengths differ.
pub(super) fn bytes(table: &Table<u8>, codes: &[u8], out: &mut [u8]) {
    assert_eq!(codes.len(), out.len(), "a table gives as many entries as it is asked for");
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if is_fast() {
        // SAFETY: `is_fast` has found AVX-512 F, BW, VL (the level) and VBMI.
        return unsafe { vbmi::bytes(table, codes, out) };
    }
    for (code, out) in codes.iter().zip(out) {
        *out = table[usize::from(*code)];
    }
}

/// As [`bytes`], of 16 bits.
///
/// # Panics
/// If the lengths differ.
pub(super) fn halves(table: &Halves, codes: &[u8], out: &mut [u16]) {
    assert_eq!(codes.len(), out.len(), "a table gives as many entries as it is asked for");
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if is_fast() {
        // SAFETY: as in `bytes`.
        return unsafe { vbmi::halves(table, codes, out) };
    }
    for (code, out) in codes.iter().zip(out) {
        *out = table.entry(*code);
    }
}

/// The numbers whose upper halves the entries are; their lower halves are zero. Where results are
/// written past the caches they go there from registers: by way of
/// [`pieces`](Traffic::pieces) 2^24 codes took a fifth longer.
///
/// # Panics
/// If the lengths differ.
pub(super) fn upper_halves(table: &Halves, codes: &[u8], out: &mut [f32], traffic: Traffic) {
    assert_eq!(codes.len(), out.len(), "a table gives as many entries as it is asked for");
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if is_fast() {
        if traffic == Traffic::Past {
            let _fence = Fence::after(traffic);
            let head = out.as_ptr().align_offset(LINE).min(out.len());
            let whole = head + (out.len() - head) / vbmi::LANES * vbmi::LANES;
            let ends = [0..head, whole..out.len()];
            // SAFETY: as in `bytes`; what is between the ends begins with a line of the output.
            return unsafe {
                vbmi::upper_halves::<true>(table, &codes[head..whole], &mut out[head..whole]);
                for end in ends {
                    vbmi::upper_halves::<false>(table, &codes[end.clone()], &mut out[end]);
                }
            };
        }
        // SAFETY: as in `bytes`.
        return unsafe { vbmi::upper_halves::<false>(table, codes, out) };
    }
    let _ = traffic;
    for (code, out) in codes.iter().zip(out) {
        *out = f32::from_bits(u32::from(table.entry(*code)) << 16);
    }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod vbmi {
    use core::arch::x86_64::*;

    use super::{Halves, Table};

    pub(super) const LANES: usize = 64;

    /// A table of 256 bytes in four registers.
    #[derive(Clone, Copy)]
    struct Registers([__m512i; 4]);

    impl Registers {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn load(table: &Table<u8>) -> Self {
            // SAFETY: the four ranges of 64 bytes lie in the table of 256; no alignment is needed.
            Self([0, 64, 128, 192].map(|i| unsafe { load(&table[i..]) }))
        }

        /// Entries for 64 codes.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
        fn look_up(&self, codes: __m512i) -> __m512i {
            let [a, b, c, d] = self.0;
            let lower = _mm512_permutex2var_epi8(a, codes, b);
            let upper = _mm512_permutex2var_epi8(c, codes, d);
            _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), lower, upper)
        }
    }

    /// The first 64 bytes.
    ///
    /// # Safety
    /// There are as many.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(bytes: &[u8]) -> __m512i {
        debug_assert!(bytes.len() >= LANES);
        // SAFETY: by the function's condition; the load takes any address.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// # Safety
    /// 64 bytes may be written at `out`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store<T>(out: *mut T, value: __m512i) {
        // SAFETY: by the function's condition; the store takes any address.
        unsafe { _mm512_storeu_si512(out.cast(), value) }
    }

    /// The lower and upper bytes of a table.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_halves(table: &Halves) -> [Registers; 2] {
        [Registers::load(&table.low), Registers::load(&table.high)]
    }

    /// Calls `work` for 64 codes at a time and with copies of 64 for the rest.
    #[inline(always)]
    fn blocks<T: Copy + Default>(
        codes: &[u8],
        out: &mut [T],
        work: impl Fn(&[u8; LANES], &mut [T; LANES]),
    ) {
        let (codes, codes_rest) = codes.as_chunks();
        let (out, out_rest) = out.as_chunks_mut();
        for (codes, out) in codes.iter().zip(out) {
            work(codes, out);
        }
        if !codes_rest.is_empty() {
            let mut padded = ([0; LANES], [T::default(); LANES]);
            padded.0[..codes_rest.len()].copy_from_slice(codes_rest);
            work(&padded.0, &mut padded.1);
            out_rest.copy_from_slice(&padded.1[..out_rest.len()]);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn bytes(table: &Table<u8>, codes: &[u8], out: &mut [u8]) {
        let table = Registers::load(table);
        blocks(codes, out, |codes, out| {
            // SAFETY: 64 codes and 64 bytes of output.
            unsafe { store(out.as_mut_ptr(), table.look_up(load(codes))) };
        });
    }

    /// Groups of four codes as a transposed matrix of 4 by 4. Two rounds of interleaving put group
    /// `k` of lane `l` in lane `l` of result `k`, where group `4 k + l` belongs.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transposed(codes: __m512i) -> __m512i {
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, codes)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn halves(table: &Halves, codes: &[u8], out: &mut [u16]) {
        let [low, high] = load_halves(table);
        // Results take eight codes a lane: pairs of groups, 0 1 | 2 3 | 4 5 | 6 7 of the first.
        let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
        blocks(codes, out, |codes, out| {
            // SAFETY: 64 codes; 64 entries of 16 bits are two registers.
            unsafe {
                let codes = _mm512_permutexvar_epi64(order, load(codes));
                let (low, high) = (low.look_up(codes), high.look_up(codes));
                let out = out.as_mut_ptr();
                store(out, _mm512_unpacklo_epi8(low, high));
                store(out.add(32), _mm512_unpackhi_epi8(low, high));
            }
        });
    }

    /// # Safety
    /// If `PAST`, the output is whole lines, of 64 results at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) unsafe fn upper_halves<const PAST: bool>(
        table: &Halves,
        codes: &[u8],
        out: &mut [f32],
    ) {
        let [low, high] = load_halves(table);
        let zero = _mm512_setzero_si512();
        blocks(codes, out, |codes, out| {
            // SAFETY: 64 codes; 64 numbers of 32 bits are four registers, or, if `PAST`, lines.
            unsafe {
                let codes = transposed(load(codes));
                let (low, high) = (low.look_up(codes), high.look_up(codes));
                let first = _mm512_unpacklo_epi8(low, high);
                let second = _mm512_unpackhi_epi8(low, high);
                let results = [
                    _mm512_unpacklo_epi16(zero, first),
                    _mm512_unpackhi_epi16(zero, first),
                    _mm512_unpacklo_epi16(zero, second),
                    _mm512_unpackhi_epi16(zero, second),
                ];
                for (i, result) in results.into_iter().enumerate() {
                    let out = out.as_mut_ptr().add(16 * i);
                    if PAST {
                        _mm512_stream_si512(out.cast(), result);
                    } else {
                        store(out, result);
                    }
                }
            }
        });
    }
}
