//! Bytes through a table of 256 entries: 64 at a time with AVX-512 VBMI.
//!
//! Every function of a code of up to 8 bits is a table: all conversions between such formats, and
//! their values, as long as these lie in the upper half of a binary32 word, which the values of all
//! usual formats of up to 8 significant bits do. `vpermi2b` looks 64 bytes up in 128 entries that
//! wait in two registers; two of them and a choice by the top bit serve 256. Entries of 16 bits are
//! looked up half by half and interleaved.
//!
//! Interleaving works inside of lanes of 128 bits; so that its results come out in order, the codes
//! are exchanged beforehand, in groups of four, by one `vpermd`.
//!
//! Without VBMI a table is read entry by entry, with the same results.

#![allow(unsafe_code)]

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
    plain(table, codes, out);
}

/// As [`bytes`], of 16 bits.
///
/// # Panics
/// If the lengths differ.
pub(super) fn halves(table: &Table<u16>, codes: &[u8], out: &mut [u16]) {
    assert_eq!(codes.len(), out.len(), "a table gives as many entries as it is asked for");
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if is_fast() {
        // SAFETY: as in `bytes`.
        return unsafe { vbmi::halves(table, codes, out) };
    }
    plain(table, codes, out);
}

/// The numbers whose upper halves the entries are; their lower halves are zero. With `past_cache`
/// they are written to memory without being read into the caches first, if the machine can.
///
/// # Panics
/// If the lengths differ.
pub(super) fn upper_halves(table: &Table<u16>, codes: &[u8], out: &mut [f32], past_cache: bool) {
    assert_eq!(codes.len(), out.len(), "a table gives as many entries as it is asked for");
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if is_fast() {
        if past_cache {
            let head = out.as_ptr().align_offset(64).min(out.len());
            let ((first, codes), (head, out)) = (codes.split_at(head), out.split_at_mut(head));
            // SAFETY: as in `bytes`; what is left of the output begins at a multiple of 64 bytes.
            return unsafe {
                vbmi::upper_halves::<false>(table, first, head);
                vbmi::upper_halves::<true>(table, codes, out);
            };
        }
        // SAFETY: as in `bytes`.
        return unsafe { vbmi::upper_halves::<false>(table, codes, out) };
    }
    let _ = past_cache;
    for (code, out) in codes.iter().zip(out) {
        *out = f32::from_bits(u32::from(table[usize::from(*code)]) << 16);
    }
}

/// The definition.
fn plain<T: Copy>(table: &Table<T>, codes: &[u8], out: &mut [T]) {
    for (code, out) in codes.iter().zip(out) {
        *out = table[usize::from(*code)];
    }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod vbmi {
    use core::arch::x86_64::*;

    use super::Table;

    const LANES: usize = 64;

    /// A table of 256 bytes in four registers.
    #[derive(Clone, Copy)]
    struct Registers([__m512i; 4]);

    impl Registers {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn load(table: &Table<u8>) -> Self {
            // SAFETY: the four ranges of 64 bytes lie in the table of 256; no alignment is asked.
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
    /// There is room for 64 bytes at `out`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store<T>(out: *mut T, value: __m512i) {
        // SAFETY: by the function's condition; the store takes any address.
        unsafe { _mm512_storeu_si512(out.cast(), value) }
    }

    /// The lower and upper bytes of a table.
    fn split(table: &Table<u16>) -> [Table<u8>; 2] {
        [table.map(|entry| entry as u8), table.map(|entry| (entry >> 8) as u8)]
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

    /// Groups of four codes as a transposed matrix of 4 by 4: two rounds of interleaving make lane
    /// `l` of result `k` of group `k` of lane `l`, where group `4 k + l` is to be.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transposed(codes: __m512i) -> __m512i {
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, codes)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn halves(table: &Table<u16>, codes: &[u8], out: &mut [u16]) {
        let [low, high] = split(table).map(|table| Registers::load(&table));
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
    /// If `PAST_CACHE`, the output begins at a multiple of 64 bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) unsafe fn upper_halves<const PAST_CACHE: bool>(
        table: &Table<u16>,
        codes: &[u8],
        out: &mut [f32],
    ) {
        let [low, high] = split(table).map(|table| Registers::load(&table));
        let zero = _mm512_setzero_si512();
        let results = |codes: __m512i| {
            let codes = transposed(codes);
            let (low, high) = (low.look_up(codes), high.look_up(codes));
            let first = _mm512_unpacklo_epi8(low, high);
            let second = _mm512_unpackhi_epi8(low, high);
            [
                _mm512_unpacklo_epi16(zero, first),
                _mm512_unpackhi_epi16(zero, first),
                _mm512_unpacklo_epi16(zero, second),
                _mm512_unpackhi_epi16(zero, second),
            ]
        };
        let whole = if PAST_CACHE { codes.len() / LANES * LANES } else { 0 };
        let ((codes, codes_rest), (out, out_rest)) =
            (codes.split_at(whole), out.split_at_mut(whole));
        if PAST_CACHE {
            for (codes, out) in codes.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut().0) {
                let out: &mut [f32; LANES] = out;
                // SAFETY: 64 codes; 64 numbers of 32 bits are four registers; the first 64 of them
                // begin at a multiple of 64 bytes, and so do all others.
                unsafe {
                    for (i, result) in results(load(codes)).into_iter().enumerate() {
                        _mm512_stream_si512(out.as_mut_ptr().add(16 * i).cast(), result);
                    }
                }
            }
            // Such stores are not ordered with others until a fence.
            _mm_sfence();
        }
        blocks(codes_rest, out_rest, |codes, out| {
            // SAFETY: as above; these stores take any address.
            unsafe {
                for (i, result) in results(load(codes)).into_iter().enumerate() {
                    store(out.as_mut_ptr().add(16 * i), result);
                }
            }
        });
    }
}
