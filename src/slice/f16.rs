//! `f32` to and from the 16-bit types by their own kernels, to nearest even.
//!
//! bfloat16 is the upper half of binary32, so that rounding is one addition. For binary16 the
//! machine has an instruction (F16C, and its wider form in AVX-512), which rounds as IEEE 754 says.
//! It differs from the definition in one point: it keeps the upper bits of a NaN's payload, where
//! the NaN here is the canonical one of its sign. Elsewhere the general encoder serves.

#![allow(unsafe_code)]

use crate::format::Format;
use crate::simd::kernel;

/// Writes the codes of as many numbers.
pub(super) type Narrow = fn(&[f32], &mut [u16]);

/// The kernel of a format, if it has one here: nearest even, natural overflow, canonical NaN.
pub(super) fn kernel(to: Format) -> Option<Narrow> {
    match to {
        Format::BF16 => Some(bf16),
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        Format::F16 => f16c::kernel(),
        _ => None,
    }
}

/// Writes the values of as many binary16 codes; false if there is no instruction for it.
pub(super) fn widen_f16(codes: &[u16], out: &mut [f32]) -> bool {
    assert_eq!(codes.len(), out.len(), "a code has one value");
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    return f16c::widen(codes, out);
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    false
}

kernel! {
    fn bf16<'a>(x: &'a [f32], codes: &'a mut [u16]) {
        for (x, code) in x.iter().zip(codes) {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1));
            let nan = (bits & 0x8000_0000) | 0x7FC0_0000;
            *code = (if x.is_nan() { nan } else { rounded } >> 16) as u16;
        }
    }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod f16c {
    use core::arch::x86_64::*;

    use super::Narrow;
    use crate::simd::{Level, level};

    /// To nearest even, whatever the mode in force.
    const RNE: i32 = _MM_FROUND_TO_NEAREST_INT;
    const SIGN: i16 = i16::MIN;
    const NAN: i16 = 0x7E00;

    pub(super) fn kernel() -> Option<Narrow> {
        match level() {
            Level::Avx512 | Level::Avx512Bf16 | Level::Amx => {
                // SAFETY: the level says that the CPU has AVX-512 F, BW and VL.
                Some(|x, codes| unsafe { narrow_512(x, codes) })
            }
            Level::Avx2 if is_x86_feature_detected!("f16c") => {
                // SAFETY: AVX2 by the level, F16C by detection.
                Some(|x, codes| unsafe { narrow_256(x, codes) })
            }
            _ => None,
        }
    }

    pub(super) fn widen(codes: &[u16], out: &mut [f32]) -> bool {
        match level() {
            // SAFETY: as in `kernel`.
            Level::Avx512 | Level::Avx512Bf16 | Level::Amx => unsafe { widen_512(codes, out) },
            Level::Avx2 if is_x86_feature_detected!("f16c") => {
                // SAFETY: as in `kernel`.
                unsafe { widen_256(codes, out) }
            }
            _ => return false,
        }
        true
    }

    /// A function that walks two slices, `$lanes` elements at a time and with copies for the rest.
    macro_rules! walk {
        ($name:ident, $features:literal, $lanes:literal, $from:ty => $to:ty, $step:ident) => {
            #[target_feature(enable = $features)]
            fn $name(x: &[$from], out: &mut [$to]) {
                assert_eq!(x.len(), out.len(), "input and output have different lengths");
                let (x, x_rest) = x.as_chunks::<$lanes>();
                let (out, out_rest) = out.as_chunks_mut::<$lanes>();
                for (x, out) in x.iter().zip(out) {
                    $step(x, out);
                }
                if !x_rest.is_empty() {
                    let mut padded = ([<$from>::default(); $lanes], [<$to>::default(); $lanes]);
                    padded.0[..x_rest.len()].copy_from_slice(x_rest);
                    $step(&padded.0, &mut padded.1);
                    out_rest.copy_from_slice(&padded.1[..out_rest.len()]);
                }
            }
        };
    }

    walk!(narrow_512, "avx512f,avx512bw,avx512vl", 16, f32 => u16, narrow_16);
    walk!(narrow_256, "avx2,f16c", 8, f32 => u16, narrow_8);
    walk!(widen_512, "avx512f,avx512bw,avx512vl", 16, u16 => f32, widen_16);
    walk!(widen_256, "avx2,f16c", 8, u16 => f32, widen_8);

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn narrow_16(x: &[f32; 16], out: &mut [u16; 16]) {
        // SAFETY: 16 numbers of 4 bytes are 512 bits; the load takes any address.
        let x = unsafe { _mm512_loadu_ps(x.as_ptr()) };
        let codes = _mm512_cvtps_ph::<RNE>(x);
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let sign = _mm256_and_si256(codes, _mm256_set1_epi16(SIGN));
        let nan = _mm256_or_si256(sign, _mm256_set1_epi16(NAN));
        let codes = _mm256_mask_mov_epi16(codes, is_nan, nan);
        // SAFETY: 16 codes of 2 bytes are 256 bits; the store takes any address.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), codes) };
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn narrow_8(x: &[f32; 8], out: &mut [u16; 8]) {
        // SAFETY: 8 numbers of 4 bytes are 256 bits; the load takes any address.
        let x = unsafe { _mm256_loadu_ps(x.as_ptr()) };
        let codes = _mm256_cvtps_ph::<RNE>(x);
        let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        let (low, high) = (_mm256_castsi256_si128(is_nan), _mm256_extracti128_si256::<1>(is_nan));
        let is_nan = _mm_packs_epi32(low, high);
        let sign = _mm_and_si128(codes, _mm_set1_epi16(SIGN));
        let nan = _mm_or_si128(sign, _mm_set1_epi16(NAN));
        let codes = _mm_blendv_epi8(codes, nan, is_nan);
        // SAFETY: 8 codes of 2 bytes are 128 bits; the store takes any address.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), codes) };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn widen_16(codes: &[u16; 16], out: &mut [f32; 16]) {
        // SAFETY: 16 codes of 2 bytes are 256 bits; the load takes any address.
        let codes = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
        let x = _mm512_cvtph_ps(codes);
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let bits = _mm512_castps_si512(x);
        let sign = _mm512_and_si512(bits, _mm512_set1_epi32(i32::MIN));
        let nan = _mm512_or_si512(sign, _mm512_set1_epi32(0x7FC0_0000));
        let bits = _mm512_mask_mov_epi32(bits, is_nan, nan);
        // SAFETY: 16 numbers of 4 bytes are 512 bits; the store takes any address.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bits) };
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn widen_8(codes: &[u16; 8], out: &mut [f32; 8]) {
        // SAFETY: 8 codes of 2 bytes are 128 bits; the load takes any address.
        let codes = unsafe { _mm_loadu_si128(codes.as_ptr().cast()) };
        let x = _mm256_cvtph_ps(codes);
        let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
        let sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0));
        let nan = _mm256_or_ps(sign, _mm256_set1_ps(f32::from_bits(0x7FC0_0000)));
        let x = _mm256_blendv_ps(x, nan, is_nan);
        // SAFETY: 8 numbers of 4 bytes are 256 bits; the store takes any address.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), x) };
    }
}
