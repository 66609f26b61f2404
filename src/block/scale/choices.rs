//! What libraries decide about block scales besides the rule: [`Choices`], a set of small and
//! independent decisions that the plain quantization reads. A [`BlockProfile`](super::BlockProfile) bundles
//! them, as [`round::Profile`](crate::round::Profile) bundles rules of rounding.
//!
//! The decisions were found in the sources of microxcaling, torchao and Transformer Engine; each is
//! described where it is named.

use super::log2::floor_log2;

/// How the power rules find the exponent of `amax`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exponent {
    /// The exact `floor(log2 amax)`, of subnormal numbers too.
    #[default]
    Exact,
    /// The exponent field of binary32, less 127: a subnormal `amax` counts as `2^-127` times its
    /// fraction (torchao).
    Field,
    /// `floor` of the binary32 number nearest `log2 amax`: one too high just below most powers of
    /// two (microxcaling's PyTorch path).
    Log2,
}

/// How the rule `rceil` finds out whether `amax / max` is a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RoundUp {
    /// Exactly: `m > d` of `amax = m 2^e` and `max = d 2^emax`.
    #[default]
    Exact,
    /// From the binary32 product `amax * (1 / max)`. Where it underflows, the bits lost can hide that
    /// `amax / max` is above a power of two. Where it is a normal number, it is as
    /// [`Exact`](Self::Exact) for the `max` of every floating format of MX. For that of `int8`,
    /// 127/64, the product of the number next above `max 2^k` rounds to `2^k`, which is one too low.
    Reciprocal,
    /// `ceil` of the binary32 number nearest `log2(amax / max)`: one too low just above most powers
    /// of two (torchao 0.18).
    Log2,
}

/// The scale of a block with an infinity, under the power rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Infinity {
    /// NaN, so that the whole block is NaN.
    #[default]
    Nan,
    /// The largest one; infinite elements become the largest.
    Largest,
    /// That of an `amax` of `2^128` (torchao 0.18).
    AsPower,
}

/// What becomes of a power of two above the largest one of the scale format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Above {
    /// NaN where the scale format has nothing but powers of two, as E8M0; else the largest.
    #[default]
    NanInPowers,
    /// The largest one.
    Largest,
}

/// What the elements are divided by in a block that has the smallest scale of E8M0, `2^-127`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Smallest {
    /// By the scale.
    #[default]
    Scale,
    /// By `2^-126`, so that they come out halved (torchao 0.18).
    MinNormal,
    /// By 1, so that they come out zero (torchao 0.18's `rceil`; releases of Transformer Engine
    /// whose `exp2f_rcp` gives 1 for code 0).
    One,
}

/// The sign of zero elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Zeros {
    /// That of the number they were, where the element format has it.
    #[default]
    Signed,
    /// Negative zero becomes positive, but a negative number that rounds to zero stays negative.
    /// What is rounded counts: where elements are binary32 quotients or products, one that underflows
    /// is zero before.
    PositiveInput,
    /// Every zero is positive.
    Positive,
}

/// How elements are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Elements {
    /// Exactly and once.
    #[default]
    Once,
    /// In binary32, by `floor(|y| + 1/2)` of a multiple of the place found by a binary32 logarithm.
    /// It differs where the sum rounds up, for `1/2 - 2^-25` of the smallest number, and under
    /// `rtz` where the logarithm does (microxcaling's PyTorch path). Applies to `rna`, `rne` and
    /// `rtz`; other modes round once.
    Binary32,
}

/// The order of binary32 operations of the rule `nearest`; the [module](super) has the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// `d = amax * (s_enc * (1 / max))`: Transformer Engine since 2.14.
    #[default]
    Folded,
    /// `d = (amax / max) * s_enc`: Transformer Engine until 2.13, arXiv 2509.25149.
    Divided,
    /// `d = (amax / max) / s`, kept at or above the smallest normal scale; elements times
    /// `(1 / s) / scale`; decoded by `scale * s` as one number: torchao.
    Torchao,
}

/// One set of decisions. The default is that of the profile `ocp` for the power rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choices {
    /// How the exponent of `amax` is found.
    pub exponent: Exponent,
    /// How `rceil` compares.
    pub round_up: RoundUp,
    /// The scale of blocks with an infinity.
    pub infinity: Infinity,
    /// What becomes of scales out of range.
    pub above: Above,
    /// What elements are divided by at the smallest scale.
    pub smallest: Smallest,
    /// Whether a block whose `amax` is subnormal in binary32 is read as zeros (microxcaling's
    /// `mx_flush_fp32_subnorms`).
    pub flush: bool,
    /// The sign of zeros.
    pub zeros: Zeros,
    /// How elements are rounded.
    pub elements: Elements,
    /// The order of operations of `nearest`.
    pub order: Order,
}

impl Choices {
    /// Whether a block with this `amax` is read as zeros. With a floating logarithm, the largest
    /// subnormal numbers count as `2^-126` and are not.
    pub(crate) fn flushes(&self, amax: f32) -> bool {
        let subnormal = amax > 0.0 && amax < f32::MIN_POSITIVE;
        self.flush && subnormal && (self.exponent != Exponent::Log2 || floor_log2(amax) < -126)
    }
}
