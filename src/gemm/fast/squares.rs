//! Sums of 32 x 32 numbers in binary32, in the order of [`fast`](super), on the vectors that there are.

#![allow(unsafe_code)]

use super::panel::{BLOCK, LANES, Line, Square, WIDE_LINES, singles};
use crate::gemm::f32::fused;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use crate::simd::{Level, level};

/// Adds the products of the blocks of a left and a right panel to the sums.
///
/// # Panics
/// If the panels have different lengths or are no whole blocks.
pub(super) fn sums(left: &[Line], right: &[Line], out: &mut Square) {
    assert!(left.len() == right.len() && left.len().is_multiple_of(WIDE_LINES));
    // So many blocks stay in the first-level cache while their rows are taken in turns.
    const NEAR: usize = 2 * WIDE_LINES;
    for (left, right) in left.chunks(NEAR).zip(right.chunks(NEAR)) {
        let (left, right) = (singles(left).as_chunks().0, singles(right).as_chunks().0);
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        match level() {
            Level::Scalar => {}
            // SAFETY: `level` returns a level only if this CPU has its instructions.
            Level::Avx2 => unsafe {
                super::avx2::sums(left, right, out);
                continue;
            },
            // SAFETY: as above.
            Level::Avx512 | Level::Avx512Bf16 | Level::Amx => unsafe {
                super::avx512::sums(left, right, out);
                continue;
            },
        }
        plain(left, right, out);
    }
}

/// Without vectors, or with those that the compiler finds.
fn plain(left: &[Square], right: &[Square], out: &mut Square) {
    const WIDTH: usize = 8;
    for (at, sums) in out.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let (i, j) = (at * WIDTH / LANES, at * WIDTH % LANES);
        for (left, right) in left.iter().zip(right) {
            let row = left[i * BLOCK..][..BLOCK].as_chunks::<2>().0;
            let (mut even, mut odd) = ([0.0_f32; WIDTH], [0.0_f32; WIDTH]);
            for (a, b) in row.iter().zip(right.as_chunks::<{ 2 * LANES }>().0) {
                let (b0, b1) = (&b[j..][..WIDTH], &b[LANES + j..][..WIDTH]);
                for c in 0..WIDTH {
                    even[c] = fused(a[0], b0[c], even[c]);
                    odd[c] = fused(a[1], b1[c], odd[c]);
                }
            }
            for c in 0..WIDTH {
                sums[c] += even[c] + odd[c];
            }
        }
    }
}
