//! The body of the sums of 32 x 32 numbers on vectors of binary32, in the order of [`fast`](super).
//!
//! Even and odd chains are apart, so that there are twice as many independent chains as sums in
//! registers. There are 4 x 32 sums with AVX-512 and 2 x 16 with AVX2. The body for all other
//! machines, NEON among them, has 1 x 8. Vectors are written by hand, since the compiler does not
//! keep chains in registers (measured: 6 GFLOP/s against 140 with AVX-512).

#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::panel::LANES;

/// Asks for the part of what follows the blocks in memory that belongs to rows `i` to `i + rows`, so
/// that it is in the first-level cache when its turn comes.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[inline(always)]
pub(super) fn look_ahead<T>(blocks: &[T], i: usize, rows: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let lines = size_of_val(blocks) / 64;
    let next = blocks.as_ptr().wrapping_add(blocks.len()).cast::<i8>();
    for line in lines * i / LANES..lines * (i + rows) / LANES {
        // SAFETY: a prefetch of any address is harmless; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(64 * line)) };
    }
}

/// Defines `sums`: as the plain body of `squares`, `$rows` rows of `$cols` vectors of `$width` sums at a
/// time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
macro_rules! vector_sums {
    (
        $features:literal, $rows:literal x $cols:literal of $width:literal,
        $zero:ident, $load:ident, $store:ident, $splat:ident, $fused:ident, $add:ident
    ) => {
        /// Adds the products of blocks of a left and a right panel to the sums.
        #[target_feature(enable = $features)]
        pub(in crate::gemm::fast) fn sums(left: &[Square], right: &[Square], out: &mut Square) {
            const ROWS: usize = $rows;
            const COLS: usize = $cols;
            const WIDTH: usize = $width;
            for i in (0..LANES).step_by(ROWS) {
                look_ahead(left, i, ROWS);
                look_ahead(right, i, ROWS);
                for j in (0..LANES).step_by(COLS * WIDTH) {
                    let mut sums = [[$zero(); COLS]; ROWS];
                    for r in 0..ROWS {
                        for c in 0..COLS {
                            let at = (i + r) * LANES + j + c * WIDTH;
                            // SAFETY: rows up to i + ROWS and columns up to j + COLS * WIDTH are at
                            // most 32, as both steps divide 32: inside of the square.
                            sums[r][c] = unsafe { $load(out.as_ptr().add(at)) };
                        }
                    }
                    for (left, right) in left.iter().zip(right) {
                        let mut chains = [[[$zero(); COLS]; ROWS]; 2];
                        for k in (0..BLOCK).step_by(2) {
                            for odd in 0..2 {
                                let mut b = [$zero(); COLS];
                                for c in 0..COLS {
                                    let at = (k + odd) * LANES + j + c * WIDTH;
                                    // SAFETY: as above, of the square of the right operand.
                                    b[c] = unsafe { $load(right.as_ptr().add(at)) };
                                }
                                for r in 0..ROWS {
                                    let a = $splat(left[(i + r) * BLOCK + k + odd]);
                                    for c in 0..COLS {
                                        let chain = &mut chains[odd][r][c];
                                        *chain = $fused(a, b[c], *chain);
                                    }
                                }
                            }
                        }
                        for r in 0..ROWS {
                            for c in 0..COLS {
                                let both = $add(chains[0][r][c], chains[1][r][c]);
                                sums[r][c] = $add(sums[r][c], both);
                            }
                        }
                    }
                    for r in 0..ROWS {
                        for c in 0..COLS {
                            let at = (i + r) * LANES + j + c * WIDTH;
                            // SAFETY: as above, of the square that is exclusively borrowed.
                            unsafe { $store(out.as_mut_ptr().add(at), sums[r][c]) };
                        }
                    }
                }
            }
        }
    };
}
#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(super) use vector_sums;
