//! The rules by which a block finds its scale, by name.

use core::fmt;
use core::str::FromStr;

use super::{BlockError, Bound, FourOverSix};
use crate::format::{Format, Sign};
use crate::text::UnknownName;

/// From a block to its scale. See the [module](super) for the formulas.
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
