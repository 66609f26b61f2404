//! Everything in which matrix units differ: [`Parameters`].

use super::factor::Factor;
use crate::format::Format;
use crate::math::Operand;
use crate::round::{Flags, Flush, NanCode, NanRules, Operands, Payload, Rounded, Rounding, Rules};

/// The most fraction bits. A product below 4 then has 52 bits, or 53 with a sticky one; 256 of those and a
/// later cut that is sticky, too, have 62, which 64-bit integers hold with a sign.
pub(super) const MOST_FRACTION: u32 = 50;

/// What becomes of a term's digits below the last place that alignment keeps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cut {
    /// The magnitude is truncated (NVIDIA). Text: `rz`.
    Truncate,
    /// The number goes toward negative infinity (AMD CDNA3). Text: `rd`.
    Floor,
    /// The magnitude is truncated to one bit more, which is set if anything was lost. Text:
    /// `sticky`.
    Sticky,
    /// Nothing is lost: the sum is exact, whatever its width. Text: `exact`.
    Exact,
}

/// How a step is put together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum StepOrder {
    /// Products and addend are aligned together and added; one rounding (NVIDIA). Text: `fused`.
    Fused,
    /// Operands enter as binary16. A fused step from +0 adds the products whose index is 0 or 1
    /// modulo 4, and another adds the others to the first one's result. One IEEE addition of the
    /// addend follows, to nearest even. CUDA 13.0 assembles the 8-bit `mma.sync` of Hopper, which
    /// has no such instruction, in this way from two of binary16. Text: `quarters`.
    Quarters,
    /// The products are aligned and added by themselves. Their sum is cut to
    /// [`late_fraction`](Parameters::late_fraction) bits below the larger of its exponent and the
    /// addend's, the addend to [`fraction`](Parameters::fraction) bits. Then the two are added and
    /// rounded (AMD CDNA3). Text: `late`.
    Late,
    /// As [`Late`](Self::Late), with the products of even and of odd index aligned and added apart
    /// and their two sums combined with [`fraction`](Parameters::fraction) bits (AMD CDNA3, 8-bit
    /// formats). Text: `halves`.
    Halves,
    /// Groups of [`group`](Parameters::group) products are added exactly and multiplied by the
    /// significands of their scales; the exponents of the scales alone align them, with the addend
    /// (Blackwell, 4-bit formats). Text: `groups`.
    Groups,
    /// Products rounded to the result's format, a balanced tree of additions in it, one more of the
    /// addend (AMD CDNA2). Text: `tree`.
    Tree,
    /// One fused multiply-add after the other. Text: `fma`.
    Fma,
    /// One chain of fused multiply-adds over the products of even index and one over those of odd
    /// index, each from +0; their sum is added to the addend (Intel AMX). Text: `even-odd`.
    EvenOdd,
}

impl StepOrder {
    /// Whether it adds aligned terms, and not by IEEE operations.
    pub const fn is_aligned(self) -> bool {
        !matches!(self, Self::Tree | Self::Fma | Self::EvenOdd)
    }
}

/// What becomes of results below the smallest normal number of the format that they are rounded to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum UnitFlush {
    /// What [`Rules`] have too: `flush-none`, `flush-input`, `flush-candidates`, `flush-output`.
    As(Flush),
    /// Zero if below it when rounded to as many bits with an unbounded exponent, as underflow after
    /// rounding is detected (Intel AMX). Text: `flush-tiny`.
    Tiny,
}

/// The sign of a result of the aligned orders that is zero although the sum is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Underflow {
    /// It is +0 (NVIDIA). Text: `positive`.
    Positive,
    /// It keeps the sum's (AMD by MMA-Sim, whose sums are rounded as IEEE 754 has it). Text:
    /// `signed`.
    Signed,
}

/// What becomes of a sum beyond the ends of a register of fixed point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Beyond {
    /// It is the end. Text: `saturate`.
    Saturate,
    /// Its low bits are kept. Text: `wrap`.
    Wrap,
}

/// Which NaN a unit gives where a product or sum is NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Nan {
    /// The positive one of all ones, whatever NaN it comes from (NVIDIA). Text: `ones`.
    Ones,
    /// The positive quiet one without a payload. Text: `quiet`.
    Quiet,
    /// The first NaN operand, quieted, with its sign and payload: of a product the left one, then the
    /// right one, then the sum so far. A new one is negative (Intel AMX). Text: `x86`.
    X86,
}

impl Nan {
    const fn rules(self) -> NanRules {
        let code = match self {
            Self::Ones => NanCode::AllOnes,
            Self::Quiet | Self::X86 => NanCode::Quiet,
        };
        match self {
            Self::X86 => NanRules {
                code,
                keep_sign: true,
                payload: Payload::Keep,
                made_negative: true,
                ..NanRules::CANONICAL
            },
            _ => NanRules { code, keep_sign: false, ..NanRules::CANONICAL },
        }
    }

    /// The code of a NaN result of the aligned orders.
    pub(super) fn code(self, format: Format) -> u64 {
        let all_ones = (1 << (format.bits() - 1)) - 1;
        match self {
            Self::Ones => all_ones,
            Self::Quiet | Self::X86 => format.nan_code().unwrap_or(all_ones),
        }
    }
}

/// The parameters of a matrix unit for certain operand formats: one value for everything that a
/// source states, measures or leaves open.
///
/// A longer sum than [`products`](Self::products) is a chain of steps, ascending; the rounded result
/// of one is the addend of the next. A step of an aligned order:
///
/// 1. A NaN among the operands, infinity times zero, or infinities of both signs give NaN;
///    otherwise an infinity wins. Subnormal operands may count as zero ([`operands`](Self::operands)).
/// 2. Products are exact, their exponents the sums of their factors'.
/// 3. The alignment exponent is the largest of the terms that are not zero, and at least
///    [`floor`](Self::floor).
/// 4. Every term is cut to [`fraction`](Self::fraction) bits below that exponent.
/// 5. The terms are added exactly, so their order does not matter.
/// 6. The sum is rounded once to [`output`](Self::output). What is too large becomes infinity, a
///    zero sum is +0, and so is or is not what rounds to zero ([`underflow`](Self::underflow)) or is
///    flushed ([`flush`](Self::flush)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Parameters {
    /// How a step is put together. Text: `order=`.
    pub order: StepOrder,
    /// Products of a step, 1 to 256. Text: `l=`.
    pub products: u32,
    /// Fraction bits kept below the alignment exponent, 0 to 50. Text: `f=`.
    pub fraction: u32,
    /// Whether a product of two units or more takes the next exponent before alignment. Text:
    /// `product=raw` or `product=normal`.
    pub normalize: bool,
    /// How terms are cut. Text: `align=`.
    pub cut: Cut,
    /// The lowest alignment exponent, where there is one. Text: `floor=`, a number or `none`.
    pub floor: Option<i32>,
    /// The exponent that a term of zero has in alignment; `None` if zeros take no part. Text:
    /// `zeros=`, a number or `none`.
    pub zeros: Option<i32>,
    /// [`StepOrder::Late`], [`StepOrder::Halves`]: fraction bits that the sum of the products keeps. Text:
    /// `f2=`.
    pub late_fraction: u32,
    /// [`StepOrder::Late`], [`StepOrder::Halves`]: how sums and addend are cut. Text: `align2=`.
    pub late_cut: Cut,
    /// [`StepOrder::Halves`]: an addend more than so many binades below the alignment exponent counts
    /// as zero. Text: `reach=`, a number or `none`.
    pub reach: Option<u32>,
    /// [`StepOrder::Late`], [`StepOrder::Halves`]: a product of magnitude `2^limit` or more counts as
    /// infinite. Text: `limit=`, a number or `none`.
    pub limit: Option<i32>,
    /// [`StepOrder::Groups`]: products of a group. Text: `group=`.
    pub group: u32,
    /// The format that a step's result has, which may have fewer bits than the one that holds it.
    /// A two's complement format is a register of fixed point that holds the sum from step to step: every
    /// term is cut at its last place, and the register is rounded to the result after the last step. Text:
    /// `out=FORMAT@ROUNDING`.
    pub output: Format,
    /// How the sum is rounded to it. Under a stochastic mode, which the aligned orders and registers have,
    /// each rounding takes a random word of the caller's ([`Unit::words`](super::Unit::words)).
    pub rounding: Rounding,
    /// What becomes of a sum beyond the ends of such a register, after each step. Text:
    /// `overflow=saturate` or `overflow=wrap`.
    pub beyond: Beyond,
    /// The sign of a sum that is rounded to zero, in the aligned orders. Text: `underflow=positive` or
    /// `underflow=signed`.
    pub underflow: Underflow,
    /// What becomes of results below the smallest normal number of what they are rounded to: of
    /// [`output`](Self::output), of the result where that is a register. Text: `flush=`.
    pub flush: UnitFlush,
    /// How subnormal elements, block scales, addends and sums of steps before are read. A sum that is read
    /// again is a code of the result's format. Text: `subnormals=exact`, `subnormals=zero` or
    /// `subnormals=positive-zero`.
    pub operands: Operands,
    /// What becomes of NaN. Text: `nan=ones`, `nan=quiet` or `nan=x86`.
    pub nan: Nan,
    /// The number of products after which the sum is added to an accumulator by an IEEE addition, to
    /// nearest even, and begins anew at +0. DeepSeek-V3 (arXiv 2412.19437) and cuBLAS do so
    /// every 128. Text: `promote=`, a number or `none`.
    pub promote: Option<u32>,
}

impl Parameters {
    /// A fused step of NVIDIA's: truncation, zeros apart, NaN of all ones.
    pub(super) const fn fused(products: u32, fraction: u32, output: Format) -> Self {
        Self {
            order: StepOrder::Fused,
            products,
            fraction,
            normalize: false,
            cut: Cut::Truncate,
            floor: None,
            zeros: None,
            late_fraction: 31,
            late_cut: Cut::Floor,
            reach: None,
            limit: None,
            group: 16,
            output,
            rounding: Rounding::TowardZero,
            beyond: Beyond::Saturate,
            underflow: Underflow::Positive,
            flush: UnitFlush::As(Flush::None),
            operands: Operands::Exact,
            nan: Nan::Ones,
            promote: None,
        }
    }

    /// IEEE operations to nearest even in some order.
    pub(super) const fn ieee(order: StepOrder, products: u32, output: Format) -> Self {
        Self {
            order,
            rounding: Rounding::TiesToEven,
            underflow: Underflow::Signed,
            nan: Nan::Quiet,
            ..Self::fused(products, 24, output)
        }
    }

    /// Roundings of a step of an aligned order.
    pub(super) const fn roundings(&self) -> usize {
        if matches!(self.order, StepOrder::Quarters) { 2 } else { 1 }
    }

    /// The rules of IEEE operations to a mode; [`flushed`](Self::flushed) has the rest.
    pub(super) const fn rules(&self, rounding: Rounding) -> Rules {
        let mut rules = Rules::DEFAULT.with_rounding(rounding);
        rules.operands = self.operands;
        rules.flush = match self.flush {
            UnitFlush::As(flush) => flush,
            UnitFlush::Tiny => Flush::Output,
        };
        rules.nan = self.nan.rules();
        rules
    }

    /// The code of a number that was rounded by [`rules`](Self::rules): what is still tiny is the smallest
    /// normal number that a smaller one became.
    pub(super) const fn flushed(&self, format: Format, rounded: Rounded) -> u64 {
        let tiny = rounded.flags.contains(Flags::UNDERFLOW) && format.has_zero();
        match self.flush {
            UnitFlush::Tiny if tiny && format.has_negative_zero() => {
                rounded.code & !format.magnitude_mask()
            }
            UnitFlush::Tiny if tiny => 0,
            _ => rounded.code,
        }
    }

    /// Whether subnormal numbers are what they are, on both sides.
    pub(super) const fn keeps_subnormals(&self) -> bool {
        matches!(self.operands, Operands::Exact) && matches!(self.flush, UnitFlush::As(Flush::None))
    }

    /// Whether a code stands for a subnormal number that counts as zero.
    pub(super) const fn zeroes(&self, format: Format, code: u64) -> bool {
        !matches!(self.operands, Operands::Exact) && Operand::new(format, code).is_subnormal()
    }

    /// The number that a code is read as.
    pub(super) const fn read(&self, format: Format, code: u64) -> Factor {
        let factor = Factor::new(format, code);
        if !self.zeroes(format, code) {
            return factor;
        }
        let negative = factor.negative && matches!(self.operands, Operands::Zero);
        Factor { negative, significand: 0, ..factor }
    }
}
