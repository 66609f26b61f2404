//! How a block finds its scale.
//!
//! A [`ScaleRule`] turns the elements of a block, for most rules their largest magnitude `amax`, into a
//! code of the scale format. A [`BlockProfile`] says how a library fills in what the rule leaves open.
//!
//! **Powers of two** ([`Floor`](ScaleRule::Floor), [`Ceil`](ScaleRule::Ceil),
//! [`Even`](ScaleRule::Even), [`RCeil`](ScaleRule::RCeil)), in any scale format. With
//! `amax = m 2^e`, `1 <= m < 2`, and the element format's largest value `d 2^emax`, the scale is
//! `2^(e - emax)`, and `floor` stops there; `ceil` doubles it if `m > 1`, `even` if
//! `m >= 2 - 2^-(M+1)`, `rceil` if `m > d`. `e` is the binary exponent, of subnormals too; no
//! logarithm is computed. Elements are `x / scale` rounded once.
//!
//! **[`Nearest`](ScaleRule::Nearest)**: `amax / max` to the nearest value of the scale format, so
//! that the block's largest element becomes about `max`, the element format's largest value. With
//! a tensor scale this is NVFP4's two-level rule (arXiv 2509.25149). Every line is one binary32
//! operation, to nearest even:
//!
//! ```text
//! s_enc  = min((max * scale_max) / amax of the tensor, FLT_MAX); 1 if amax or s_enc is 0
//! s_dec  = 1 / s_enc                             without tensor scale, s_enc = s_dec = 1
//! d      = min(amax * (s_enc * (1 / max)), FLT_MAX)         te-2.13: (amax / max) * s_enc
//! scale  = d to the nearest value of the scale format, ties to even, saturating
//! factor = min(1 / (scale * s_dec), FLT_MAX)
//! code   = clamp(x * factor, -max, max) rounded to the element format; -0 counts as 0
//! image  = (value of code * scale) * s_dec
//! ```
//!
//! and in the order of torchao, where a zero tensor is 0 / 0 and so NaN:
//!
//! ```text
//! s      = amax of the tensor / (max * scale_max)           without tensor scale, s = 1
//! d      = clamp((amax / max) / s, smallest normal scale, scale_max)
//! scale  = d to the nearest value of the scale format, ties to even
//! factor = (1 / s) / scale
//! code   = clamp(x * factor, -max, max) rounded to the element format
//! image  = value of code * (scale * s)
//! ```
//!
//! **[`MaxAbs`](ScaleRule::MaxAbs)** (P3109 Interim Report 4.0, ConvertToBlockMaxAbsFinite): the
//! largest *finite* magnitude itself, to the nearest scale, so that it becomes about 1, not `max`.
//! Elements are `x / scale` rounded once: NaN if either is NaN, 0 if the scale is 0, the sign if
//! the scale is infinite.
//!
//! **[`FourOverSix`]**: the better of two scales, for E2M1.
//!
//! What a block holds, and what its scale then is:
//!
//! * Only zeros: the smallest power; under `nearest` and `max-abs` 0, if the format has it.
//! * Infinity: among powers of two NaN, so the whole block is NaN. Under `nearest` the scale saturates and
//!   infinity becomes `max * scale`; tensor factors are 1. Under `max-abs` infinity becomes `max` or stays,
//!   by the overflow policy.
//! * NaN: a NaN scale, so the whole block is NaN; under `nearest` with a tensor scale, that is NaN and so is
//!   the tensor. Under `max-abs` that element alone is NaN.
//! * An amax far below the tensor's, under `nearest`: 0. Codes saturate, images are 0.
//! * An amax too small for the scale format: the smallest power; under `nearest` and `max-abs` 0, or the
//!   smallest scale where there is no 0.
//! * An amax too large for it: NaN in formats of powers alone, such as E8M0, else the largest power; under
//!   `nearest` and `max-abs` the largest scale.
//!
//! That is the profile `ocp`. The repository's `docs/blocks.md` has tables of the others, and says
//! where the codes of NaN elements are not torchao's.

#![forbid(unsafe_code)]

mod choices;
mod four_over_six;
mod log2;
mod nearest;
mod power;
mod profile;

pub use four_over_six::{BlockError, Bound, FourOverSix};
pub use profile::BlockProfile;

// For those who compute scales elsewhere.
#[doc(hidden)]
pub use choices::{Above, Choices, Elements, Exponent, Infinity, Order, RoundUp, Smallest, Zeros};
pub(crate) use log2::{floor_log2, near_power};
pub(crate) use nearest::TensorFactors;
pub(crate) use power::power_code;

use core::fmt;
use core::str::FromStr;

use crate::format::{Format, Sign};
use crate::text::UnknownName;

/// Whether a number can be the largest magnitude of a tensor.
pub(crate) const fn is_largest(amax: f32) -> bool {
    amax >= 0.0 && amax.is_finite()
}

/// From a block to its scale. See the [module](self) for the formulas.
///
/// ```
/// use exmy::block::scale::ScaleRule;
///
/// assert_eq!("rceil".parse(), Ok(ScaleRule::RCeil));
/// assert_eq!("bump".parse(), Ok(ScaleRule::RCeil)); // another name for the same
/// assert!("cail".parse::<ScaleRule>().unwrap_err().to_string().contains("did you mean ceil"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScaleRule {
    /// `2^(floor(log2 amax) - emax)`: OCP MX. What lies above the element's largest value then
    /// saturates. Text: `floor`.
    Floor,
    /// `2^(ceil(log2 amax) - emax)`: torchao. Text: `ceil`.
    Ceil,
    /// As `floor`, of `amax` with half an element place added: torchao, Quark. Text: `even`.
    Even,
    /// `2^ceil(log2(amax / max))`, the smallest power under which nothing saturates: arXiv
    /// 2506.08027, cuBLAS, Transformer Engine; what arXiv 2506.20752 means to do when it bumps
    /// exponents. Text: `rceil`; `bump` reads too.
    RCeil,
    /// `amax / max` to the nearest scale: NVFP4. Text: `nearest`.
    Nearest,
    /// The largest finite magnitude to the nearest scale: P3109. Text: `max-abs`.
    MaxAbs,
    /// The better of `amax / 6` and `amax / 4`, to the nearest scale. Text: `4over6[-mse][-448]`.
    FourOverSix(FourOverSix),
}

/// Absolute or squared errors under either bound.
const fn four(error: BlockError, bound: Bound) -> ScaleRule {
    ScaleRule::FourOverSix(FourOverSix { error, bound })
}

impl ScaleRule {
    /// All rules and their names.
    pub const NAMED: [(&str, Self); 10] = [
        ("floor", Self::Floor),
        ("ceil", Self::Ceil),
        ("even", Self::Even),
        ("rceil", Self::RCeil),
        ("nearest", Self::Nearest),
        ("max-abs", Self::MaxAbs),
        ("4over6", four(BlockError::Absolute, Bound::B256)),
        ("4over6-mse", four(BlockError::Squared, Bound::B256)),
        ("4over6-448", four(BlockError::Absolute, Bound::B448)),
        ("4over6-mse-448", four(BlockError::Squared, Bound::B448)),
    ];

    /// Other names that read as these.
    pub const ALIASES: [(&str, Self); 6] = [
        ("bump", Self::RCeil),
        ("4over6-mae", four(BlockError::Absolute, Bound::B256)),
        ("4over6-256", four(BlockError::Absolute, Bound::B256)),
        ("4over6-mae-256", four(BlockError::Absolute, Bound::B256)),
        ("4over6-mae-448", four(BlockError::Absolute, Bound::B448)),
        ("4over6-mse-256", four(BlockError::Squared, Bound::B256)),
    ];

    /// The rules, in words for error messages.
    pub(crate) const FORMS: &str = "floor, ceil, even, rceil, nearest, max-abs, 4over6[-mse][-448]";

    /// The rule meant where none is written: [`Floor`](Self::Floor) for formats of powers of two
    /// without sign, [`Nearest`](Self::Nearest) for any other scale format.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::block::scale::ScaleRule;
    ///
    /// assert_eq!(ScaleRule::default_for(Format::E8M0), ScaleRule::Floor);
    /// assert_eq!(ScaleRule::default_for(Format::E3M0), ScaleRule::Nearest); // powers of two, but signed
    /// ```
    pub const fn default_for(scale: Format) -> Self {
        match scale.sign() {
            Sign::Unsigned if scale.man_bits() == 0 => Self::Floor,
            _ => Self::Nearest,
        }
    }

    /// Whether every scale is a power of two.
    ///
    /// ```
    /// use exmy::block::scale::ScaleRule;
    ///
    /// assert!(ScaleRule::RCeil.is_power());
    /// // To the nearest scale, even where all scales are powers of two.
    /// assert!(!ScaleRule::Nearest.is_power() && !ScaleRule::MaxAbs.is_power());
    /// ```
    pub const fn is_power(self) -> bool {
        matches!(self, Self::Floor | Self::Ceil | Self::Even | Self::RCeil)
    }

    /// The same number for variants of one rule.
    pub(crate) const fn kind(self) -> u8 {
        match self {
            Self::Floor => 0,
            Self::Ceil => 1,
            Self::Even => 2,
            Self::RCeil => 3,
            Self::Nearest => 4,
            Self::MaxAbs => 5,
            Self::FourOverSix(_) => 6,
        }
    }
}

impl fmt::Display for ScaleRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMED.iter().find(|(_, rule)| rule == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for ScaleRule {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = || Self::NAMED.into_iter().chain(Self::ALIASES);
        let found = all().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, rule)| rule).ok_or_else(|| {
            UnknownName::new("scale rule", text, all().map(|(name, _)| name), Self::FORMS)
        })
    }
}
