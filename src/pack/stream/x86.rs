//! Codes of 4 and 6 bits with intrinsics of x86-64, where the compiler does not find the
//! instructions.
//!
//! A multiply-and-add joins neighbours: bytes by 1 and 16 (4 bits) or by 1 and 64 (6 bits). Of 6
//! bits, pairs are joined again by 1 and 4096, which leaves 24 bits in a lane of 32. Shuffles close
//! the gaps between the lanes. Unpacking 6 bits spreads three bytes over a lane and shifts. AVX-512
//! F and BW and AVX2 are all they need, so the levels are those of every kernel.
//!
//! Measured on one core of a Sapphire Rapids class Xeon, 2^16 elements in Gelem/s, against bodies in
//! Rust compiled for AVX-512 (`cargo bench --bench pack`, other work on the machine). Packing 4
//! bits: 48 against 25 (40 with the check of the codes in a loop of its own). Packing 6 bits: 37
//! against 10, unpacking 6 bits: 36 against 12.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::PackedCount;
use crate::simd::{Level, level};

/// Packs groups of 64 codes of 4 bits; none at the scalar level.
pub(super) fn pack_fours(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    match level() {
        // SAFETY: `level` returns a level only if this CPU has its instructions.
        Level::Avx512 | Level::Avx512Bf16 | Level::Amx => unsafe {
            pack_fours_avx512(codes, bytes)
        },
        // SAFETY: as above.
        Level::Avx2 => unsafe { pack_fours_avx2(codes, bytes) },
        Level::Scalar => PackedCount { codes: 0, any: 0 },
    }
}

/// Packs groups of 32 or 64 codes of 6 bits; none at the scalar level.
pub(super) fn pack_sixes(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    match level() {
        // SAFETY: `level` returns a level only if this CPU has its instructions.
        Level::Avx512 | Level::Avx512Bf16 | Level::Amx => unsafe {
            pack_sixes_avx512(codes, bytes)
        },
        // SAFETY: as above.
        Level::Avx2 => unsafe { pack_sixes_avx2(codes, bytes) },
        Level::Scalar => PackedCount { codes: 0, any: 0 },
    }
}

/// Unpacks groups of 32 or 64 codes of 6 bits; how many codes. None at the scalar level.
pub(super) fn unpack_sixes(bytes: &[u8], codes: &mut [u8]) -> usize {
    match level() {
        // SAFETY: `level` returns a level only if this CPU has its instructions.
        Level::Avx512 | Level::Avx512Bf16 | Level::Amx => unsafe {
            unpack_sixes_avx512(bytes, codes)
        },
        // SAFETY: as above.
        Level::Avx2 => unsafe { unpack_sixes_avx2(bytes, codes) },
        Level::Scalar => 0,
    }
}

/// 64 codes and 32 bytes at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
fn pack_fours_avx512(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    let pairs = _mm512_set1_epi16(16 << 8 | 1);
    let (codes, bytes) = (codes.as_chunks::<64>().0, bytes.as_chunks_mut::<32>().0);
    let mut any = _mm512_setzero_si512();
    for (bytes, codes) in bytes.iter_mut().zip(codes) {
        // SAFETY: 64 bytes are read from an array of as many.
        let x = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
        any = _mm512_or_si512(any, x);
        let x = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(x, pairs));
        // SAFETY: 32 bytes are written to an array of as many.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), x) };
    }
    let mut bits = [0; 8];
    // SAFETY: 64 bytes are written to an array of as many.
    unsafe { _mm512_storeu_si512(bits.as_mut_ptr().cast(), any) };
    PackedCount { codes: codes.len().min(bytes.len()) * 64, any: fold(&bits) }
}

/// 64 codes and 32 bytes at a time.
#[target_feature(enable = "avx2,fma")]
fn pack_fours_avx2(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    let pairs = _mm256_set1_epi16(16 << 8 | 1);
    let (codes, bytes) = (codes.as_chunks::<64>().0, bytes.as_chunks_mut::<32>().0);
    let mut any = _mm256_setzero_si256();
    for (bytes, codes) in bytes.iter_mut().zip(codes) {
        let (low, high) = codes.split_at(32);
        // SAFETY: 32 bytes are read from a slice of as many.
        let low = unsafe { _mm256_loadu_si256(low.as_ptr().cast()) };
        // SAFETY: as above.
        let high = unsafe { _mm256_loadu_si256(high.as_ptr().cast()) };
        any = _mm256_or_si256(any, _mm256_or_si256(low, high));
        let x = _mm256_packus_epi16(
            _mm256_maddubs_epi16(low, pairs),
            _mm256_maddubs_epi16(high, pairs),
        );
        // The halves of 128 bits were packed each by itself: low, high, low, high.
        let x = _mm256_permute4x64_epi64::<0b11_01_10_00>(x);
        // SAFETY: 32 bytes are written to an array of as many.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), x) };
    }
    let mut bits = [0; 4];
    // SAFETY: 32 bytes are written to an array of as many.
    unsafe { _mm256_storeu_si256(bits.as_mut_ptr().cast(), any) };
    PackedCount { codes: codes.len().min(bytes.len()) * 64, any: fold(&bits) }
}

/// The 12 bytes with data of four lanes, moved together; the others become 0.
const CLOSE: [i8; 16] = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1];
/// 12 bytes spread over four lanes.
const SPREAD: [i8; 16] = [0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1];

/// A table of 16 bytes for the shuffles of each 128 bits.
#[target_feature(enable = "avx2")]
fn table(bytes: [i8; 16]) -> __m128i {
    let word = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte] as u8));
    _mm_setr_epi32(word(0), word(4), word(8), word(12))
}

/// The bits that any byte of the words has.
fn fold(words: &[u64]) -> u16 {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    bytes.fold(0, |any, byte| any | u16::from(byte))
}

/// 64 codes and 48 bytes at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
fn pack_sixes_avx512(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    let close = _mm512_broadcast_i32x4(table(CLOSE));
    let join = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    let (pairs, fours) = (_mm512_set1_epi16(64 << 8 | 1), _mm512_set1_epi32(4096 << 16 | 1));
    let (codes, bytes) = (codes.as_chunks::<64>().0, bytes.as_chunks_mut::<48>().0);
    let mut any = _mm512_setzero_si512();
    for (bytes, codes) in bytes.iter_mut().zip(codes) {
        // SAFETY: 64 bytes are read from an array of as many.
        let x = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
        any = _mm512_or_si512(any, x);
        let x = _mm512_madd_epi16(_mm512_maddubs_epi16(x, pairs), fours);
        let x = _mm512_permutexvar_epi32(join, _mm512_shuffle_epi8(x, close));
        // SAFETY: the mask selects 12 lanes, the 48 bytes of the array.
        unsafe { _mm512_mask_storeu_epi32(bytes.as_mut_ptr().cast(), 0x0FFF, x) };
    }
    let mut bits = [0; 8];
    // SAFETY: 64 bytes are written to an array of as many.
    unsafe { _mm512_storeu_si512(bits.as_mut_ptr().cast(), any) };
    PackedCount { codes: codes.len().min(bytes.len()) * 64, any: fold(&bits) }
}

/// 48 bytes and 64 codes at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
fn unpack_sixes_avx512(bytes: &[u8], codes: &mut [u8]) -> usize {
    let spread = _mm512_broadcast_i32x4(table(SPREAD));
    let part = _mm512_setr_epi32(0, 1, 2, 15, 3, 4, 5, 15, 6, 7, 8, 15, 9, 10, 11, 15);
    let field = |byte: u32| _mm512_set1_epi32(0x3F << (8 * byte));
    let (bytes, codes) = (bytes.as_chunks::<48>().0, codes.as_chunks_mut::<64>().0);
    for (codes, bytes) in codes.iter_mut().zip(bytes) {
        // SAFETY: the mask selects 12 lanes, the 48 bytes of the array.
        let x = unsafe { _mm512_maskz_loadu_epi32(0x0FFF, bytes.as_ptr().cast()) };
        let x = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(part, x), spread);
        let low = _mm512_or_si512(
            _mm512_and_si512(x, field(0)),
            _mm512_and_si512(_mm512_slli_epi32::<2>(x), field(1)),
        );
        let high = _mm512_or_si512(
            _mm512_and_si512(_mm512_slli_epi32::<4>(x), field(2)),
            _mm512_and_si512(_mm512_slli_epi32::<6>(x), field(3)),
        );
        let x = _mm512_or_si512(low, high);
        // SAFETY: 64 bytes are written to an array of as many.
        unsafe { _mm512_storeu_si512(codes.as_mut_ptr().cast(), x) };
    }
    codes.len().min(bytes.len()) * 64
}

/// 32 codes and 24 bytes at a time.
#[target_feature(enable = "avx2,fma")]
fn pack_sixes_avx2(codes: &[u8], bytes: &mut [u8]) -> PackedCount {
    let close = _mm256_broadcastsi128_si256(table(CLOSE));
    let join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    let (pairs, fours) = (_mm256_set1_epi16(64 << 8 | 1), _mm256_set1_epi32(4096 << 16 | 1));
    let six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
    let (codes, bytes) = (codes.as_chunks::<32>().0, bytes.as_chunks_mut::<24>().0);
    let mut any = _mm256_setzero_si256();
    for (bytes, codes) in bytes.iter_mut().zip(codes) {
        // SAFETY: 32 bytes are read from an array of as many.
        let x = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
        any = _mm256_or_si256(any, x);
        let x = _mm256_madd_epi16(_mm256_maddubs_epi16(x, pairs), fours);
        let x = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(x, close), join);
        // SAFETY: the mask selects 6 lanes, the 24 bytes of the array.
        unsafe { _mm256_maskstore_epi32(bytes.as_mut_ptr().cast(), six, x) };
    }
    let mut bits = [0; 4];
    // SAFETY: 32 bytes are written to an array of as many.
    unsafe { _mm256_storeu_si256(bits.as_mut_ptr().cast(), any) };
    PackedCount { codes: codes.len().min(bytes.len()) * 32, any: fold(&bits) }
}

/// 24 bytes and 32 codes at a time.
#[target_feature(enable = "avx2,fma")]
fn unpack_sixes_avx2(bytes: &[u8], codes: &mut [u8]) -> usize {
    let spread = _mm256_broadcastsi128_si256(table(SPREAD));
    let part = _mm256_setr_epi32(0, 1, 2, 7, 3, 4, 5, 7);
    let six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
    let field = |byte: u32| _mm256_set1_epi32(0x3F << (8 * byte));
    let (bytes, codes) = (bytes.as_chunks::<24>().0, codes.as_chunks_mut::<32>().0);
    for (codes, bytes) in codes.iter_mut().zip(bytes) {
        // SAFETY: the mask selects 6 lanes, the 24 bytes of the array.
        let x = unsafe { _mm256_maskload_epi32(bytes.as_ptr().cast(), six) };
        let x = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(x, part), spread);
        let low = _mm256_or_si256(
            _mm256_and_si256(x, field(0)),
            _mm256_and_si256(_mm256_slli_epi32::<2>(x), field(1)),
        );
        let high = _mm256_or_si256(
            _mm256_and_si256(_mm256_slli_epi32::<4>(x), field(2)),
            _mm256_and_si256(_mm256_slli_epi32::<6>(x), field(3)),
        );
        // SAFETY: 32 bytes are written to an array of as many.
        unsafe { _mm256_storeu_si256(codes.as_mut_ptr().cast(), _mm256_or_si256(low, high)) };
    }
    codes.len().min(bytes.len()) * 32
}
