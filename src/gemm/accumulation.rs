//! Orders and precisions of sums of products: what is computed where a formula says "sum".
//!
//! The text of an [`Accumulation`] is the same in Rust, on the command line, in configuration files
//! and in legends. The repository's `docs/gemm.md` has a formula for each:
//!
//! ```text
//! exact                              one rounding, of the exact number
//! ORDER[:FORMAT[@MODE][@POLICY]]     fma, mul-add, pairwise, blockedN; f32 unless a format is named
//! promoteN(SUM)[:FORMAT...]          sums of N elements each, added in another accumulator
//! te-nvfp4, te-nvfp4-kernel          Transformer Engine's emulation of NVFP4 products
//! MODEL[+RESULT]                     a matrix unit: hopper, ada+f16, "hopper,promote=128", fast
//! ```

mod name;

pub use name::ParseAccumulationError;

use super::unit::Model;
use crate::format::Format;
use crate::quantizer::Cast;

/// How the products of a row and a column become one number.
///
/// ```
/// use exmy::quantizer::Cast;
/// use exmy::format::Format;
/// use exmy::gemm::{Accumulation, Order, Sum};
/// use exmy::round::Rounding;
///
/// let accumulation: Accumulation = "fma:e8m13@rtz".parse()?;
/// let e8m13: Format = "e8m13".parse()?;
/// let accumulator = Cast::new(e8m13).with_rounding(Rounding::TowardZero);
/// assert_eq!(accumulation, Accumulation::Sum(Sum { order: Order::Fma, accumulator }));
/// assert_eq!(accumulation.to_string(), "fma:e8m13@rtz");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accumulation {
    /// The exact number, scales, alpha, beta and C included, rounded once into the output's format.
    /// A sum of zero is +0.
    Exact,
    /// One sum of all products.
    Sum(Sum),
    /// Sums of `every` consecutive products, each from +0, added one after the other to an
    /// accumulator that starts at +0. With `promote128(fma:e8m13@rtz)` in the manner of DeepSeek-V3
    /// (arXiv 2412.19437, 3.3.2).
    Promote {
        /// Products of a part; at least 1.
        every: u32,
        /// How a part is summed.
        part: Sum,
        /// What the parts are added in.
        into: Cast,
    },
    /// NVFP4 as Transformer Engine's reference multiplies it: exact sums of 16 products, each times
    /// the product of the two block scales, are added in binary32 in ascending order. One
    /// multiplication by alpha follows.
    TeNvfp4(TeAlpha),
    /// What a matrix unit computes, from an addend of +0; scales of whole tensors, alpha, beta and C
    /// come afterwards. Rounding is the unit's own, whatever the output's is then.
    Unit {
        /// Which unit.
        model: Model,
        /// The format of addend and result.
        result: Format,
    },
}

/// An order of summation and the accumulator that every operation rounds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    /// Which operations, in which order.
    pub order: Order,
    /// The format of the accumulator, how it rounds and what it does beyond its range.
    pub accumulator: Cast,
}

/// Which operations a sum consists of. Every operation rounds once, to the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// `s = fma(a_k, b_k, s)`, ascending, from +0.
    Fma,
    /// `s = s + (a_k b_k)`, ascending, from +0; the product is rounded, then the sum.
    MulAdd,
    /// Rounded products; neighbours are added until one number is left, and an odd last one passes to
    /// the next round as it is. No products give +0.
    Pairwise,
    /// [`Fma`](Self::Fma) sums of so many products, at least 1; the first is stored, the others are
    /// added to it in order. `blocked256` is the order of [`gemm::f32`](super::f32).
    Blocked(u32),
}

/// How Transformer Engine forms alpha from the largest magnitudes of the two tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TeAlpha {
    /// `(amax_a * amax_b) / 7225344`, as the Python reference; 7225344 is (6 x 448)^2.
    Divided,
    /// `((alpha * amax_a) * amax_b) * (1 / 7225344)`, as the GPU kernel, `alpha` being the caller's; the
    /// reciprocal is rounded to binary32.
    Multiplied,
}

impl Accumulation {
    /// Fused multiply-adds in binary32, one after the other.
    pub const FMA: Self = Self::Sum(Sum { order: Order::Fma, accumulator: Cast::new(Format::F32) });

    /// Whether rounding needs random words.
    pub fn is_stochastic(&self) -> bool {
        match self {
            Self::Sum(sum) => sum.accumulator.rounding.is_stochastic(),
            Self::Promote { part, into, .. } => {
                part.accumulator.rounding.is_stochastic() || into.rounding.is_stochastic()
            }
            Self::Unit { model, .. } => model.is_stochastic(),
            _ => false,
        }
    }

    /// How many roundings the sum of `k` products has: the random words of one output. Those of a unit depend
    /// on its operands, too ([`Unit::words`](super::unit::Unit::words)).
    pub(super) fn roundings(&self, k: u64) -> u64 {
        match self {
            Self::Sum(sum) => sum.roundings(k),
            Self::Promote { every, part, .. } => {
                let every = u64::from(*every);
                k / every * (part.roundings(every) + 1)
                    + if k.is_multiple_of(every) { 0 } else { part.roundings(k % every) + 1 }
            }
            _ => 0,
        }
    }
}

impl Sum {
    fn roundings(&self, k: u64) -> u64 {
        match self.order {
            Order::Fma => k,
            Order::MulAdd => 2 * k,
            Order::Pairwise => (2 * k).saturating_sub(1),
            Order::Blocked(n) => k + k.div_ceil(u64::from(n)).saturating_sub(1),
        }
    }
}
