//! The scales of a tile of blocks, and the factors their elements are multiplied by.

use super::OwnScale;
use crate::block::scale::{
    Choices, Exponent, FourOverSix, Order, RoundUp, ScaleRule, Smallest, TensorFactors, power_code,
};
use crate::block::{BlockFormat, kernel};
use crate::pool::Pooled;
use crate::slice::Converter;

/// The bits of infinity.
pub(super) const INFINITY: u32 = 0x7F80_0000;

/// What the blocks of a tile have: one number each.
#[derive(Default)]
pub(crate) struct PerBlock {
    /// The largest magnitudes, as bits.
    pub(crate) amax: Pooled<u32>,
    /// Values of the scale format.
    pub(crate) scales: Pooled<f32>,
    /// What elements are multiplied by before they are rounded; NaN where the definition has to be
    /// asked, and zero where the block is read as zeros.
    pub(crate) factors: Pooled<f32>,
    /// What element values are multiplied by first, if not the scales.
    products: Pooled<f32>,
    /// The elements of one block.
    pub(super) block: Pooled<f32>,
    /// What is tried before it is chosen.
    pub(super) candidates: Candidates,
}

/// Numbers of a tile that are tried; their memory serves the next one.
#[derive(Default)]
pub(super) struct Candidates {
    /// Magnitudes as a floating logarithm sees them.
    pub(super) amax: Pooled<u32>,
    /// Scales and factors of 4; those of 6 lie where the chosen ones are expected.
    pub(super) scales: Pooled<f32>,
    pub(super) factors: Pooled<f32>,
    /// The sums of errors, for 6 and for 4: of each row of each block.
    pub(super) sums: [Pooled<f32>; 2],
    pub(super) values: Pooled<f32>,
    pub(super) words: Pooled<u32>,
    pub(super) ones: Pooled<f32>,
    /// Factors and scales, for 6 and for 4, laid out per element.
    pub(super) spread: [Pooled<f32>; 4],
}

impl PerBlock {
    /// With capacity for the numbers of `most` blocks.
    pub(crate) fn with_capacity(most: usize) -> Self {
        Self {
            amax: Pooled::with_capacity(most),
            scales: Pooled::with_capacity(most),
            factors: Pooled::with_capacity(most),
            ..Self::default()
        }
    }

    /// The numbers of `count` blocks, with maxima of nothing.
    pub(crate) fn reset(&mut self, count: usize) {
        self.amax.clear();
        self.amax.resize(count, 0);
        self.scales.resize(count, 0.0);
        self.factors.resize(count, 0.0);
        self.products.clear();
    }

    /// What element values are multiplied by first.
    pub(crate) fn images(&self) -> &[f32] {
        if self.products.is_empty() { &self.scales } else { &self.products }
    }

    /// What they are multiplied by last.
    pub(crate) fn last(&self, of: &TensorFactors) -> f32 {
        if self.products.is_empty() { of.decode } else { 1.0 }
    }
}

/// How a format's scales are found.
pub(crate) enum Finder<'a> {
    /// Powers of two: what [`power_code`] says, where the bits suffice, of `amax` or of
    /// what its binary32 logarithm makes of it.
    Powers { of: kernel::Powers, smallest: f32, logarithm: bool },
    /// Powers of two, each by [`power_code`].
    EachPower { smallest: f32 },
    /// The nearest scale, by its conversion.
    Nearest,
    /// The scale nearest the largest finite magnitude.
    Largest,
    /// The better of two.
    Four { by: FourOverSix },
    /// The scale nearest to what the caller says.
    Own(OwnScale<'a>),
}

impl<'a> Finder<'a> {
    pub(crate) fn new(format: BlockFormat, own: Option<OwnScale<'a>>) -> Self {
        let BlockFormat { element, scale, rule, profile, .. } = format;
        if let Some(own) = own {
            return Self::Own(own);
        }
        match rule {
            ScaleRule::Nearest => return Self::Nearest,
            ScaleRule::MaxAbs => return Self::Largest,
            ScaleRule::FourOverSix(by) => return Self::Four { by },
            ScaleRule::Floor | ScaleRule::Ceil | ScaleRule::Even | ScaleRule::RCeil => {}
        }
        let choices = profile.choices(rule);
        // A floating logarithm is the rule of exact exponents, for magnitudes next to a power of two
        // replaced by it.
        let logarithm = choices.exponent == Exponent::Log2;
        let exact = if logarithm { Exponent::Exact } else { choices.exponent };
        let of_bits = Choices { exponent: exact, ..choices };
        let value = |amax| scale.to_f32(power_code(amax, element, scale, rule, &of_bits));
        // The smallest power, whose elements some libraries do not divide by it.
        let zero = scale_value(format, 0.0);
        let smallest = if choices.smallest == Smallest::Scale { f32::NAN } else { zero };
        // Where every binade is like the others, the rule is one threshold of the fraction, found by
        // asking the definition about the binade whose scales are 1 and 2.
        let alike = choices.round_up != RoundUp::Log2;
        let binade = (element.emax() + 127) as u32;
        let scale_of = |fraction| value(f32::from_bits(binade << 23 | fraction));
        let (first, last) = (scale_of(0), scale_of(0x007F_FFFF));
        if !alike || !(1..=253).contains(&binade) || first != 1.0 || !(last == 1.0 || last == 2.0) {
            return Self::EachPower { smallest };
        }
        let (mut below, mut above) = (0, 0x0080_0000);
        while last == 2.0 && above - below > 1 {
            let middle = (below + above) / 2;
            *(if scale_of(middle) == 2.0 { &mut above } else { &mut below }) = middle;
        }
        let bottom = (zero.to_bits() >> 23) as i32 - 127 + i32::from(!smallest.is_nan());
        let of = kernel::Powers {
            carry: 0x0080_0000 - above,
            offset: element.emax(),
            range: (bottom.max(-125), scale.emax().min(126)),
            zero,
        };
        Self::Powers { of, smallest, logarithm }
    }

    /// Scales and factors from the maxima; `scale` converts to the nearest scale.
    pub(crate) fn find(
        &self,
        format: BlockFormat,
        scale: &Converter,
        of: &TensorFactors,
        per_block: &mut PerBlock,
    ) {
        let PerBlock { amax, scales, factors, products, candidates, .. } = per_block;
        let (scales, factors): (&mut [f32], &mut [f32]) = (scales, factors);
        let amax: &[u32] = amax;
        match self {
            Self::Powers { of: powers, smallest, logarithm } => {
                if *logarithm {
                    let bits = &mut candidates.amax;
                    bits.reset(amax.len());
                    bits.extend_from_slice(amax);
                    kernel::over_powers(bits);
                    kernel::powers(*powers, bits, scales, factors);
                } else {
                    kernel::powers(*powers, amax, scales, factors);
                }
                if kernel::any_nan(factors) {
                    each_power(format, *smallest, amax, scales, factors);
                }
            }
            Self::EachPower { smallest } => {
                factors.fill(f32::NAN);
                each_power(format, *smallest, amax, scales, factors);
            }
            Self::Nearest => {
                kernel::unrounded(of, amax, scales);
                scale.fake_quantize(scales);
                kernel::factors(of, scales, factors);
                if format.profile.choices(format.rule).order == Order::Torchao {
                    products.reset(scales.len());
                    products.extend(scales.iter().map(|scale| scale * of.decode));
                }
                // What overflows is NaN or not by the definition.
                for (factor, product) in factors.iter_mut().zip(products.iter()) {
                    *factor = if product.is_finite() { *factor } else { f32::NAN };
                }
            }
            Self::Largest => {
                // The others were found with the elements at hand.
                for (amax, largest) in amax.iter().zip(&mut *scales) {
                    *largest = if *amax < INFINITY { f32::from_bits(*amax) } else { *largest };
                }
                scale.fake_quantize(scales);
                one_or_nan(scales, factors);
            }
            Self::Own(_) => {
                scale.fake_quantize(scales);
                one_or_nan(scales, factors);
            }
            Self::Four { .. } => {}
        }
        // Infinity and NaN among the elements are no numbers to multiply, whatever the scale is.
        if amax.iter().any(|amax| *amax >= INFINITY) {
            for (factor, amax) in factors.iter_mut().zip(amax) {
                *factor = if *amax >= INFINITY { f32::NAN } else { *factor };
            }
        }
    }
}

/// Asks the definition about every block whose factor is NaN.
#[cold]
fn each_power(
    format: BlockFormat,
    smallest: f32,
    amax: &[u32],
    scales: &mut [f32],
    factors: &mut [f32],
) {
    let choices = format.profile.choices(format.rule);
    for ((amax, scale), factor) in amax.iter().zip(scales).zip(factors) {
        if factor.is_nan() {
            *scale = scale_value(format, f32::from_bits(*amax));
            let reciprocal = 1.0 / *scale;
            let known = reciprocal.is_finite() && *scale != smallest;
            *factor = match () {
                () if choices.flushes(f32::from_bits(*amax)) => 0.0,
                () if known => reciprocal,
                () => f32::NAN,
            };
        }
    }
}

/// The factors of blocks that are divided by their scales.
fn one_or_nan(scales: &[f32], factors: &mut [f32]) {
    for (scale, factor) in scales.iter().zip(factors) {
        *factor = if *scale > 0.0 && *scale <= f32::MAX { 1.0 } else { f32::NAN };
    }
}

/// A block's scale by a power rule.
fn scale_value(format: BlockFormat, amax: f32) -> f32 {
    let BlockFormat { element, scale, rule, profile, .. } = format;
    scale.to_f32(power_code(amax, element, scale, rule, &profile.choices(rule)))
}
