//! The fast product of quantized operands: one order of summation on every machine.
//!
//! It is defined on the binary32 *images* of the operands, code times block scale rounded once
//! (infinity from 2^128 on; those are [counted](Packed::overflows)). A sum starts at +0. Every block
//! of 32 positions has one chain of fused multiply-adds over the even positions and one over the odd
//! ones, each from +0 and ascending. Their sum, rounded, is added to the sum so far, and rounded. All
//! roundings are to nearest even with subnormal numbers as IEEE 754 has them. With tensor scales `s`,
//! `t` and a [`Scaling`], in binary32 and in this order,
//!
//! ```text
//! factor = (alpha * s) * t                             absent scales are left out
//! c      = factor * sum                    if beta = 0; what c held is not read
//! c      = (factor * sum) + (beta * c)     else
//! ```
//!
//! There is one NaN, 0x7FC00000. [`multiply_plain`] is that as code.
//!
//! The order is that of `tdpbf16ps`, the instruction of Intel's matrix tiles (AMX), and any machine
//! with fused multiply-adds can follow it. `vdpbf16ps`, the dot product of pairs of AVX-512 BF16, does two
//! steps of a chain if its pairs are neighbours in the chain (AMD since Zen 4; Intel's Cooper Lake, Sapphire
//! Rapids and later). Both instructions multiply bfloat16 numbers alone, and differ from that order in one
//! thing: they take subnormal numbers as zero and write zero for them. So [`Packed`] records what numbers are
//! in each panel of 32 rows or columns over each slab of 256 positions. The instructions compute a tile of
//! 32 x 32 sums over a slab where the numbers of both panels
//!
//! * are bfloat16 numbers, finite, none subnormal, and
//! * are multiples of 2^u and 2^v with u + v >= -126: every partial sum is a multiple of 2^(u + v),
//!   and so zero or normal,
//!
//! and where the sums of the slabs before, if vectors computed them, are multiples of 2^-126 too, since tiles
//! add to them.
//!
//! Linux gives tiles to processes that ask, whose stacks for signals then need 8 KiB more. This module asks
//! when it first packs or multiplies at the level `amx`, and goes on without tiles if that is refused.
//!
//! All else is computed by vectors of binary32 in the same order, from what they have left. What computed
//! how much, and why, is in the [`KernelReport`]; no bit depends on it, nor on the number of threads.

#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux", feature = "std")),
    path = "fast/no_amx.rs"
)]
mod amx;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod avx2;
mod avx512;
mod bf16;
mod codes;
mod counts;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod dots;
mod images;
mod pack;
mod panel;
mod plain;
mod quantize;
mod report;
mod squares;
mod tiles;
mod vector;

pub use super::error::Side;
pub use counts::Counts;
pub use pack::{Packed, Source};
pub use plain::{images_plain, multiply_plain, sum_plain};
pub use report::KernelReport;

use super::error::{GemmError, Why};
use crate::slice::{Converter, ViewMut};

/// The factors of a product and of what the output holds: alpha and beta of the BLAS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Multiplies the product.
    pub alpha: f32,
    /// Multiplies what the output holds, unless it is 0.
    pub beta: f32,
}

impl Scaling {
    /// The product alone.
    pub const OVERWRITE: Self = Self { alpha: 1.0, beta: 0.0 };
    /// The product added to what is there.
    pub const ACCUMULATE: Self = Self { alpha: 1.0, beta: 1.0 };

    /// What sums are multiplied by.
    fn factor(self, left: Option<f32>, right: Option<f32>) -> f32 {
        let factor = left.map_or(self.alpha, |scale| self.alpha * scale);
        right.map_or(factor, |scale| factor * scale)
    }

    /// An element of the output.
    #[inline(always)]
    fn finish(self, sum: f32, factor: f32, old: f32) -> f32 {
        let product = factor * sum;
        let x = if self.beta == 0.0 { product } else { product + self.beta * old };
        if x.is_nan() { f32::from_bits(0x7FC0_0000) } else { x }
    }
}

/// `c = alpha a b + beta c`, in the order of the [module](self), by all threads of the pool.
///
/// ```
/// use exmy::gemm::Operand;
/// use exmy::gemm::fast::{Packed, Scaling, multiply};
/// use exmy::slice::{View, ViewMut};
///
/// // 2^24 + 1 is no binary32 number: in one chain the two 1 would be lost one by one.
/// let a = Packed::left(&Operand::from(View::new(&[16_777_216.0_f32, 1.0, 0.0, 1.0], 1, 4)));
/// let b = Packed::right(&Operand::from(View::new(&[1.0_f32; 4], 4, 1)));
/// let mut c = [f32::NAN];
/// multiply(&a, &b, ViewMut::new(&mut c, 1, 1), Scaling::OVERWRITE)?;
/// assert_eq!(c, [16_777_218.0]); // 2^24 of the even chain, 2 of the odd one
/// # Ok::<(), exmy::gemm::GemmError>(())
/// ```
///
/// # Errors
/// If the shapes do not fit each other, an operand is packed for the other side, its blocks run across
/// the sum or its format has values beyond binary32. Nothing is written then.
pub fn multiply(
    a: &Packed,
    b: &Packed,
    c: ViewMut<'_, f32>,
    with: Scaling,
) -> Result<KernelReport, GemmError> {
    multiply_and_round(a, b, c, with, None)
}

/// As [`multiply`], each element rounded at last while it is in the cache, if there is what rounds it: by
/// a mode that is not stochastic.
#[doc(hidden)]
pub fn multiply_and_round(
    a: &Packed,
    b: &Packed,
    c: ViewMut<'_, f32>,
    with: Scaling,
    round: Option<Converter<'static>>,
) -> Result<KernelReport, GemmError> {
    let (left, right, out) = (a.shape(), b.shape(), (c.rows(), c.cols()));
    let wrong = |why| Err(GemmError::of(left, right, why));
    for (packed, side) in [(a, Side::Left), (b, Side::Right)] {
        if packed.side() != side {
            return wrong(Why::Packed(side));
        }
    }
    if left.1 != right.0 {
        return wrong(Why::Inner);
    }
    if let Some(why) = a.wrong().or(b.wrong()) {
        return wrong(why.clone());
    }
    if (left.0, right.1) != out {
        return wrong(Why::Output(out));
    }
    Ok(tiles::multiply(a, b, c, with, round))
}
