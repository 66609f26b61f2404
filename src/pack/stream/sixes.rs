//! Codes of 6 bits: four in three bytes.
//!
//! Four codes in a 32-bit lane become 24 bits by two multiply-and-add instructions (pairs of bytes
//! by 1 and 64, pairs of those by 1 and 4096), and shuffles close the gaps between the lanes;
//! unpacking spreads three bytes over a lane and shifts. The compiler finds neither, so these are
//! written with intrinsics for AVX2 and AVX-512 (F and BW only); the scalar level takes the body
//! for all widths. Measured on one core of a Sapphire Rapids class Xeon, 2^16 elements, against the
//! body for all widths compiled for AVX-512: MEASURED.

#![cfg_attr(target_arch = "x86_64", allow(unsafe_code))]

use super::groups;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// Packs; how many codes were.
pub(super) fn pack(codes: &[u8], bytes: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: `level` returns a level only if this CPU has its instructions.
        Level::Avx512 => return unsafe { x86::pack_avx512(codes, bytes) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::pack_avx2(codes, bytes) },
        Level::Scalar => {}
    }
    groups::pack_bytes(codes, 6, bytes)
}

/// Unpacks; how many codes were.
pub(super) fn unpack(bytes: &[u8], codes: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: `level` returns a level only if this CPU has its instructions.
        Level::Avx512 => return unsafe { x86::unpack_avx512(bytes, codes) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::unpack_avx2(bytes, codes) },
        Level::Scalar => {}
    }
    groups::unpack_bytes(bytes, 6, codes)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

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

    /// 64 codes and 48 bytes at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
    pub(super) fn pack_avx512(codes: &[u8], bytes: &mut [u8]) -> usize {
        let close = _mm512_broadcast_i32x4(table(CLOSE));
        let join = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
        let (pairs, fours) = (_mm512_set1_epi16(64 << 8 | 1), _mm512_set1_epi32(4096 << 16 | 1));
        let (codes, bytes) = (codes.as_chunks::<64>().0, bytes.as_chunks_mut::<48>().0);
        for (bytes, codes) in bytes.iter_mut().zip(codes) {
            // SAFETY: 64 bytes are read from an array of as many.
            let x = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
            let x = _mm512_madd_epi16(_mm512_maddubs_epi16(x, pairs), fours);
            let x = _mm512_permutexvar_epi32(join, _mm512_shuffle_epi8(x, close));
            // SAFETY: the mask selects 12 lanes, the 48 bytes of the array.
            unsafe { _mm512_mask_storeu_epi32(bytes.as_mut_ptr().cast(), 0x0FFF, x) };
        }
        codes.len().min(bytes.len()) * 64
    }

    /// 48 bytes and 64 codes at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
    pub(super) fn unpack_avx512(bytes: &[u8], codes: &mut [u8]) -> usize {
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
    pub(super) fn pack_avx2(codes: &[u8], bytes: &mut [u8]) -> usize {
        let close = _mm256_broadcastsi128_si256(table(CLOSE));
        let join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
        let (pairs, fours) = (_mm256_set1_epi16(64 << 8 | 1), _mm256_set1_epi32(4096 << 16 | 1));
        let six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
        let (codes, bytes) = (codes.as_chunks::<32>().0, bytes.as_chunks_mut::<24>().0);
        for (bytes, codes) in bytes.iter_mut().zip(codes) {
            // SAFETY: 32 bytes are read from an array of as many.
            let x = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
            let x = _mm256_madd_epi16(_mm256_maddubs_epi16(x, pairs), fours);
            let x = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(x, close), join);
            // SAFETY: the mask selects 6 lanes, the 24 bytes of the array.
            unsafe { _mm256_maskstore_epi32(bytes.as_mut_ptr().cast(), six, x) };
        }
        codes.len().min(bytes.len()) * 32
    }

    /// 24 bytes and 32 codes at a time.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn unpack_avx2(bytes: &[u8], codes: &mut [u8]) -> usize {
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
}
