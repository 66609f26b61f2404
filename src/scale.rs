//! How a block finds its scale.
//!
//! A [`ScaleRule`] turns the largest magnitude of a block, `amax`, into a code of the scale format.
//!
//! **[`Floor`](ScaleRule::Floor)** (OCP MX 1.0, 6.3): the power of two `2^(floor(log2 amax) - emax)`
//! with `emax` the exponent of the element format's largest value. `floor(log2)` is the binary
//! exponent, of subnormals too; no logarithm is computed. Elements are `x / scale` rounded once.
//!
//! **[`Nearest`](ScaleRule::Nearest)**: `amax / max` to the nearest value of the scale format, so
//! that the block's largest element becomes about `max`, the element format's largest value. With
//! a tensor scale this is NVFP4's two-level rule (arXiv 2509.25149) in the order of operations of
//! Transformer Engine since 2.14; every line is one binary32 operation, to nearest even:
//!
//! ```text
//! s_enc  = min((max * scale_max) / amax of the tensor, FLT_MAX); 1 if amax or s_enc is 0
//! s_dec  = 1 / s_enc                             without tensor scale, s_enc = s_dec = 1
//! d      = min(amax * (s_enc * (1 / max)), FLT_MAX)
//! scale  = d to the nearest value of the scale format, ties to even, saturating
//! factor = min(1 / (scale * s_dec), FLT_MAX)
//! code   = clamp(x * factor, -max, max) rounded to the element format; -0 counts as 0
//! image  = (value of code * scale) * s_dec
//! ```
//!
//! | block holds | `Floor` | `Nearest` |
//! |---|---|---|
//! | only zeros | smallest scale (E8M0: code 0); zeros keep their sign | scale 0 (if the format has it); zeros |
//! | infinity | scale NaN, so the whole block is NaN | scale saturates, infinity becomes `max * scale`; tensor factors are 1 |
//! | NaN | scale NaN, so the whole block is NaN | scale NaN, so the block is NaN; with a tensor scale, that is NaN and so is the tensor |
//! | amax far below the tensor's | - | scale 0: codes saturate, images are 0 |
//! | amax too small for the scale format | smallest scale | scale 0, or the smallest where there is no 0 |
//! | amax too large for the scale format | scale NaN | largest scale |
//!
//! The column for `Floor` is what microxcaling and torchao (main, 2026) do. A NaN is never lost:
//! dropping it from `amax`, as `fmaxf` does, would hide a diverged tensor.

#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;

use crate::format::{Format, Sign, Value};
use crate::round::{Exact, Overflow, Rounding};
use crate::simd::kernel;
use crate::text::UnknownName;

/// From a block's largest magnitude to its scale. See the [module](self) for the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScaleRule {
    /// `2^(floor(log2 amax) - emax)`: OCP MX. What lies above the element's largest value then
    /// saturates. Text: `floor`.
    Floor,
    /// `amax / max` to the nearest scale: NVFP4. Text: `nearest`.
    Nearest,
}

impl ScaleRule {
    /// All rules and their names.
    pub const NAMED: [(&str, Self); 2] = [("floor", Self::Floor), ("nearest", Self::Nearest)];

    /// The rule meant where none is written: [`Floor`](Self::Floor) for E8M0,
    /// [`Nearest`](Self::Nearest) for any other scale format.
    pub const fn default_for(scale: Format) -> Self {
        match scale.sign() {
            Sign::Unsigned if scale.man_bits() == 0 => Self::Floor,
            _ => Self::Nearest,
        }
    }
}

impl fmt::Display for ScaleRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Floor => "floor",
            Self::Nearest => "nearest",
        })
    }
}

impl FromStr for ScaleRule {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::NAMED.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, rule)| rule).ok_or_else(|| {
            let names = Self::NAMED.into_iter().map(|(name, _)| name);
            UnknownName::new("scale rule", text, names, "floor, nearest")
        })
    }
}

/// The code of a block's scale under [`ScaleRule::Floor`], from the exact exponent.
///
/// `scale` must hold powers of two and a NaN, as E8M0 does; `amax` is a magnitude, infinity or NaN.
pub(crate) fn floor_code(amax: f32, element: Format, scale: Format) -> u64 {
    let nan = scale.nan_code().unwrap_or(scale.max_code());
    let exponent = match Value::from_f32(amax) {
        Value::Finite { significand: 0, .. } => return scale.min_positive_code(),
        Value::Finite { significand, exponent, .. } => {
            exponent + significand.ilog2() as i32 - element.emax()
        }
        _ => return nan,
    };
    if exponent > scale.emax() {
        return nan;
    }
    let exponent = exponent.max(scale.emin());
    let power = Exact { negative: false, significand: 1, exponent, sticky: false };
    scale.round(power, Rounding::Rne, 0, Overflow::Finite).code
}

/// The exponents that enter [`floor_code`].
#[derive(Clone, Copy)]
pub(crate) struct FloorExponents {
    element_max: i32,
    scale_min: i32,
    scale_max: i32,
}

impl FloorExponents {
    pub(crate) fn new(element: Format, scale: Format) -> Self {
        Self { element_max: element.emax(), scale_min: scale.emin(), scale_max: scale.emax() }
    }
}

kernel! {
    /// The values of [`floor_code`] for magnitudes given as bits.
    pub(crate) fn floor_scales<'a>(of: FloorExponents, amax: &'a [u32], scales: &'a mut [f32]) {
        for (amax, scale) in amax.iter().zip(scales) {
            let normalized = (f32::from_bits(*amax) * 16_777_216.0).to_bits();
            let subnormal = *amax < 0x0080_0000;
            let field = if subnormal { normalized } else { *amax } >> 23;
            let exponent = field as i32 - if subnormal { 127 + 24 } else { 127 } - of.element_max;
            let exponent = if *amax == 0 { of.scale_min } else { exponent };
            let low = exponent.max(of.scale_min);
            // 2^-127 is the one power here that is no normal binary32 number.
            let power = if low < -126 { 0x0040_0000 } else { ((low + 127) as u32) << 23 };
            let nan = (*amax >= 0x7F80_0000) | (exponent > of.scale_max);
            *scale = f32::from_bits(if nan { 0x7FC0_0000 } else { power });
        }
    }
}

/// The factors all blocks of a tensor share under [`ScaleRule::Nearest`].
#[derive(Clone, Copy)]
pub(crate) struct TensorFactors {
    /// The element format's largest value.
    pub(crate) largest: f32,
    /// `s_enc * (1 / max)`.
    block: f32,
    /// `s_dec`.
    pub(crate) decode: f32,
}

/// The smaller one, and NaN if `x` is NaN.
#[inline(always)]
fn at_most_max(x: f32) -> f32 {
    if x > f32::MAX { f32::MAX } else { x }
}

impl TensorFactors {
    /// `amax` of the whole tensor, or `None` without tensor scale.
    pub(crate) fn new(amax: Option<f32>, element: Format, scale: Format) -> Self {
        let largest = element.max().to_f32();
        let encode = match amax {
            None | Some(0.0) => 1.0,
            Some(amax) => match at_most_max(largest * scale.max().to_f32() / amax) {
                0.0 => 1.0,
                encode => encode,
            },
        };
        Self { largest, block: encode * (1.0 / largest), decode: 1.0 / encode }
    }

    /// `d`: a block's scale before it is rounded to its format.
    #[inline(always)]
    pub(crate) fn unrounded(&self, amax: f32) -> f32 {
        at_most_max(amax * self.block)
    }

    /// What the elements of a block are multiplied by.
    #[inline(always)]
    pub(crate) fn factor(&self, scale: f32) -> f32 {
        at_most_max(1.0 / (scale * self.decode))
    }
}
