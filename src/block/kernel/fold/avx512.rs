//! Maxima of sixteen blocks at a time with AVX-512.
//!
//! Sixteen vectors, one a block, become one vector of maxima in four steps. Each step puts two vectors
//! next to each other and takes the larger of the numbers that meet. That is fifteen pairs of
//! shuffles, where one reduction for each block would take sixty-four. The compiler finds nothing like
//! it. On one core of a Sapphire Rapids class Xeon the scalar body takes about twice as long.

#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_loadu_si512, _mm512_max_epu32, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_shuffle_i32x4, _mm512_storeu_si512, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::MAGNITUDE;
use crate::simd::{Level, level};

/// Folds as many groups of sixteen blocks as there are, and returns what is left. Nothing is done at
/// lower levels, and for blocks that are no whole vectors.
pub(super) fn sixteens<'a>(
    width: usize,
    row: &'a [f32],
    amax: &'a mut [u32],
) -> (&'a [f32], &'a mut [u32]) {
    if level() < Level::Avx512 || !width.is_multiple_of(16) {
        return (row, amax);
    }
    let groups = row.len() / (16 * width);
    let (row, row_left) = row.split_at(groups * 16 * width);
    let (amax, amax_left) = amax.split_at_mut(groups * 16);
    let blocks = row.chunks_exact(16 * width).zip(amax.as_chunks_mut().0);
    // SAFETY: the level in force is one that this CPU has.
    blocks.for_each(|(blocks, amax)| unsafe { sixteen(width, blocks, amax) });
    (row_left, amax_left)
}

#[target_feature(enable = "avx512f")]
fn sixteen(width: usize, blocks: &[f32], amax: &mut [u32; 16]) {
    let mut v = [_mm512_setzero_si512(); 16];
    for (v, block) in v.iter_mut().zip(blocks.chunks_exact(width)) {
        for group in block.as_chunks::<16>().0 {
            *v = _mm512_max_epu32(*v, magnitudes(group));
        }
    }
    let larger = _mm512_max_epu32;
    // Of blocks a, b: a0 b0 a1 b1 in each quarter; then a b c d, one number each; then the quarters.
    let two: [__m512i; 8] = core::array::from_fn(|i| {
        let (a, b) = (v[2 * i], v[2 * i + 1]);
        larger(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
    });
    let four: [__m512i; 4] = core::array::from_fn(|i| {
        let (a, b) = (two[2 * i], two[2 * i + 1]);
        larger(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    });
    let quarters = |a, b| {
        larger(
            _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
        )
    };
    let all = quarters(quarters(four[0], four[1]), quarters(four[2], four[3]));
    // SAFETY: the array has the sixteen numbers of a vector; no alignment is needed.
    unsafe {
        let place = amax.as_mut_ptr().cast();
        _mm512_storeu_si512(place, larger(all, _mm512_loadu_si512(place)));
    }
}

#[target_feature(enable = "avx512f")]
fn magnitudes(group: &[f32; 16]) -> __m512i {
    // SAFETY: the array has the sixteen numbers of a vector; no alignment is needed.
    let bits = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
    _mm512_and_si512(bits, _mm512_set1_epi32(MAGNITUDE as i32))
}
