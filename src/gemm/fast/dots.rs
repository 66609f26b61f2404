//! Dot products of pairs of bfloat16 numbers on vectors (AVX-512 BF16: AMD since Zen 4; Intel's
//! Cooper Lake, Sapphire Rapids and later), for CPUs without matrix tiles.
//!
//! `vdpbf16ps` adds two products to each of 16 sums, by two fused multiply-adds, each rounded to nearest
//! even. The numbers in the high halves of words come first, then those in the low ones. Like the tiles
//! it takes subnormal numbers as zero and writes zero for them. So one instruction does two steps of a
//! chain of [`fast`](super), if its pairs are neighbours in the *chain*, which are two apart along the
//! sum. Panels are [packed so](super::bf16::PairOrder).

// Indices that are known at compile time, so that chains stay in registers (measured: 54 GFLOP/s without).
#![allow(clippy::needless_range_loop)]
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::panel::{LANES, Line, PAIR_LINES};
use super::vector::look_ahead;
use crate::simd::{Level, level_of_products};

/// Blocks of which both operands stay in the first-level cache while their rows are taken in turns.
const NEAR: usize = 4;
/// Rows of sums in registers, 8 vectors, with twice as many chains.
const ROWS: usize = 4;
/// Vectors of a row.
const COLS: usize = LANES / 16;

/// The level in force has the instruction.
pub(super) struct Dots(());

impl Dots {
    pub(super) fn new() -> Option<Self> {
        (level_of_products() == Level::Avx512Bf16).then_some(Self(()))
    }

    /// Sums over the blocks of a left and a right panel in the order of [chains](super::bf16::PairOrder).
    /// They go to 32 rows of 32 numbers that are `stride` apart, onto what these hold or from +0.
    ///
    /// # Panics
    /// If the panels have different lengths, are no whole blocks, or the output is too short.
    pub(super) fn sums(
        &self,
        left: &[Line],
        right: &[Line],
        out: &mut [f32],
        stride: usize,
        mut onto: bool,
    ) {
        let ((left, rest), (right, _)) = (left.as_chunks(), right.as_chunks());
        assert!(!left.is_empty() && rest.is_empty() && left.len() == right.len());
        assert!(stride >= LANES && out.len() >= LANES && (out.len() - LANES) / 31 >= stride);
        for (left, right) in left.chunks(NEAR).zip(right.chunks(NEAR)) {
            // SAFETY: `self` exists, so a level with AVX-512 F, BW and BF16 was in force, which only CPUs
            // with these have. The assertion says that 31 strides and 32 numbers are there.
            unsafe { sums(left, right, out, stride, onto) };
            onto = true;
        }
    }
}

/// Adds the products of blocks to the sums, or to +0.
///
/// # Safety
/// 31 strides and 32 numbers must be in the output.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn sums(
    left: &[[Line; PAIR_LINES]],
    right: &[[Line; PAIR_LINES]],
    out: &mut [f32],
    stride: usize,
    onto: bool,
) {
    for i in (0..LANES).step_by(ROWS) {
        look_ahead(left, i, ROWS);
        look_ahead(right, i, ROWS);
        let mut sums = [[_mm512_setzero_ps(); COLS]; ROWS];
        if onto {
            for r in 0..ROWS {
                for c in 0..COLS {
                    let at = (i + r) * stride + 16 * c;
                    // SAFETY: row i + r of 32, and 16 of its 32 numbers, which the caller has found to be
                    // there.
                    sums[r][c] = unsafe { _mm512_loadu_ps(out.as_ptr().add(at)) };
                }
            }
        }
        for (left, right) in left.iter().zip(right) {
            let rows: &[Line; ROWS] = left[i..].first_chunk().unwrap_or_else(|| unreachable!());
            let mut chains = [[[_mm512_setzero_ps(); COLS]; ROWS]; 2];
            for pair in (0..16).step_by(2) {
                for odd in 0..2 {
                    let b = [bf16s(&right[pair + odd]), bf16s(&right[16 + pair + odd])];
                    for r in 0..ROWS {
                        let a = spread(rows[r].pair(pair + odd));
                        for c in 0..COLS {
                            let chain = &mut chains[odd][r][c];
                            *chain = _mm512_dpbf16_ps(*chain, a, b[c]);
                        }
                    }
                }
            }
            for r in 0..ROWS {
                for c in 0..COLS {
                    let both = _mm512_add_ps(chains[0][r][c], chains[1][r][c]);
                    sums[r][c] = _mm512_add_ps(sums[r][c], both);
                }
            }
        }
        for r in 0..ROWS {
            for c in 0..COLS {
                let at = (i + r) * stride + 16 * c;
                // SAFETY: as above; the output is exclusively borrowed.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr().add(at), sums[r][c]) };
            }
        }
    }
}

/// A line as bfloat16 numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn bf16s(line: &Line) -> __m512bh {
    // SAFETY: a line is 64 bytes at a multiple of 64, and any bytes are such numbers.
    unsafe { core::mem::transmute(_mm512_load_si512((&raw const *line).cast())) }
}

/// A pair of bfloat16 numbers, 16 times.
#[inline]
#[target_feature(enable = "avx512f")]
fn spread(pair: u32) -> __m512bh {
    // SAFETY: any bytes are bfloat16 numbers.
    unsafe { core::mem::transmute(_mm512_set1_epi32(pair.cast_signed())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the loads and stores need is checked before them, also where the CPU lacks the instruction.
    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |left: usize, right: usize, out: usize, stride: usize| {
            let lines = [Line::ZERO; 3 * PAIR_LINES];
            let mut sums = [0.0; 2048];
            let work =
                || Dots(()).sums(&lines[..left], &lines[..right], &mut sums[..out], stride, false);
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(work)).is_err()
        };
        assert!(refused(32, 64, 1024, 32));
        assert!(refused(0, 0, 1024, 32));
        assert!(refused(33, 33, 1024, 32));
        assert!(refused(32, 32, 1023, 32));
        assert!(refused(32, 32, 1024, 31));
        assert!(refused(32, 32, 1054, 33));
        if Level::Avx512Bf16.is_available() {
            assert!(!refused(32, 32, 1024, 32) && !refused(96, 96, 1055, 33));
        }
    }
}
