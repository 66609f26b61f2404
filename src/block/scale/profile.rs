//! Whose block scales: each profile a name for a set of [`Choices`].
//!
//! Text: `ocp microxcaling microxcaling-flush microxcaling-torch microxcaling-torch-flush torchao
//! torchao-0.18 te te-2.13`, as the suffix `@torchao` of a block format. [`Choices`] are what they differ
//! in. The repository's `docs/blocks.md` has tables of what each computes for zeros, infinities, NaN and
//! extremes.

use core::fmt;
use core::str::FromStr;

use super::choices::{
    Above, Choices, Elements, Exponent, Infinity, Order, RoundUp, Smallest, Zeros,
};
use super::{FourOverSix, ScaleRule};
use crate::format::Format;
use crate::round::Rounding;
use crate::text::UnknownName;

/// Whose decisions are followed where a rule of scales leaves something open.
///
/// ```
/// use exmy::block::{BlockFormat, BlockProfile};
///
/// let format: BlockFormat = "mxfp8-e4m3@rceil@torchao".parse()?;
/// assert_eq!(format.profile, BlockProfile::Torchao);
/// assert_eq!(format.to_string(), "mxfp8-e4m3@rceil@torchao");
/// // Transformer Engine rounds scales up unless a rule is given.
/// assert_eq!("mxfp8-e4m3@te".parse(), "mxfp8-e4m3@rceil@te".parse::<BlockFormat>());
/// # Ok::<(), exmy::block::ParseBlockFormatError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockProfile {
    /// OCP MX 1.0 by exact formulas, with NaN wherever a scale cannot say what it should; NVFP4 as
    /// Transformer Engine since 2.14. Has all rules.
    #[default]
    Ocp,
    /// microxcaling (7bc4195) as its C++ and CUDA code: elements to nearest, ties away; zeros are
    /// positive. Rules `floor` and `rceil`, which is what arXiv 2506.20752 means by "bump".
    Microxcaling,
    /// The same with `mx_flush_fp32_subnorms`: blocks whose `amax` is subnormal are zero.
    MicroxcalingFlush,
    /// microxcaling's PyTorch code: a floating logarithm, rounding by adding 1/2 in binary32.
    MicroxcalingTorch,
    /// The same with `mx_flush_fp32_subnorms`.
    MicroxcalingTorchFlush,
    /// torchao's main branch of 2026 (36027d82), on the CPU.
    Torchao,
    /// torchao 0.18.0, on the CPU.
    Torchao018,
    /// Transformer Engine since 2.14. Rules `rceil` (MXFP8), `nearest` and `4over6` (NVFP4).
    Te,
    /// Transformer Engine until 2.13, and arXiv 2509.25149: another order of operations in NVFP4.
    Te213,
}

impl BlockProfile {
    /// All profiles and their names.
    pub const NAMED: [(&str, Self); 9] = [
        ("ocp", Self::Ocp),
        ("microxcaling", Self::Microxcaling),
        ("microxcaling-flush", Self::MicroxcalingFlush),
        ("microxcaling-torch", Self::MicroxcalingTorch),
        ("microxcaling-torch-flush", Self::MicroxcalingTorchFlush),
        ("torchao", Self::Torchao),
        ("torchao-0.18", Self::Torchao018),
        ("te", Self::Te),
        ("te-2.13", Self::Te213),
    ];

    /// The choices made under a rule.
    #[doc(hidden)]
    pub const fn choices(self, rule: ScaleRule) -> Choices {
        let powers = Choices {
            exponent: Exponent::Exact,
            round_up: RoundUp::Exact,
            infinity: Infinity::Nan,
            above: Above::NanInPowers,
            smallest: Smallest::Scale,
            flush: false,
            zeros: Zeros::Signed,
            elements: Elements::Once,
            order: Order::Folded,
        };
        let exact = if rule.is_power() || matches!(rule, ScaleRule::MaxAbs) {
            powers
        } else {
            Choices { zeros: Zeros::PositiveInput, ..powers }
        };
        match self {
            Self::Ocp => exact,
            Self::Microxcaling | Self::MicroxcalingFlush => Choices {
                flush: matches!(self, Self::MicroxcalingFlush),
                zeros: Zeros::Positive,
                ..exact
            },
            Self::MicroxcalingTorch | Self::MicroxcalingTorchFlush => Choices {
                exponent: Exponent::Log2,
                flush: matches!(self, Self::MicroxcalingTorchFlush),
                zeros: Zeros::PositiveInput,
                elements: Elements::Binary32,
                ..exact
            },
            Self::Torchao => Choices {
                exponent: Exponent::Field,
                round_up: RoundUp::Reciprocal,
                zeros: Zeros::Signed,
                order: Order::Torchao,
                ..exact
            },
            Self::Torchao018 => {
                let (infinity, above, smallest) = match rule {
                    ScaleRule::RCeil => (Infinity::Largest, Above::Largest, Smallest::One),
                    _ => (Infinity::AsPower, Above::NanInPowers, Smallest::MinNormal),
                };
                Choices {
                    exponent: Exponent::Field,
                    round_up: RoundUp::Log2,
                    infinity,
                    above,
                    smallest,
                    zeros: Zeros::Signed,
                    order: Order::Torchao,
                    ..exact
                }
            }
            Self::Te | Self::Te213 => {
                let old = matches!(self, Self::Te213);
                Choices {
                    round_up: RoundUp::Reciprocal,
                    infinity: Infinity::Largest,
                    above: Above::Largest,
                    smallest: if old { Smallest::One } else { Smallest::Scale },
                    order: if old { Order::Divided } else { Order::Folded },
                    ..exact
                }
            }
        }
    }

    /// The rule meant where none is written: Transformer Engine rounds powers of two up.
    ///
    /// ```
    /// use exmy::block::BlockProfile;
    /// use exmy::format::Format;
    /// use exmy::block::scale::ScaleRule;
    ///
    /// assert_eq!(BlockProfile::Te.default_rule(Format::E8M0), ScaleRule::RCeil);
    /// assert_eq!(BlockProfile::Te.default_rule(Format::UE4M3), ScaleRule::Nearest);
    /// assert_eq!(BlockProfile::Torchao.default_rule(Format::E8M0), ScaleRule::Floor);
    /// ```
    pub const fn default_rule(self, scale: Format) -> ScaleRule {
        match (self, ScaleRule::default_for(scale)) {
            (Self::Te | Self::Te213, ScaleRule::Floor) => ScaleRule::RCeil,
            (_, rule) => rule,
        }
    }

    /// The rounding of elements meant where none is written: to nearest, ties away from zero in
    /// microxcaling (`round="nearest"`), to even elsewhere.
    ///
    /// ```
    /// use exmy::block::BlockProfile;
    /// use exmy::round::Rounding;
    ///
    /// assert_eq!(BlockProfile::Torchao.default_rounding(), Rounding::TiesToEven);
    /// assert_eq!(BlockProfile::Microxcaling.default_rounding(), Rounding::TiesToAway);
    /// ```
    pub const fn default_rounding(self) -> Rounding {
        match self {
            Self::Microxcaling
            | Self::MicroxcalingFlush
            | Self::MicroxcalingTorch
            | Self::MicroxcalingTorchFlush => Rounding::TiesToAway,
            _ => Rounding::TiesToEven,
        }
    }

    /// The rules that the source of the profile has.
    ///
    /// ```
    /// use exmy::block::BlockProfile;
    /// use exmy::block::scale::ScaleRule;
    ///
    /// assert_eq!(BlockProfile::Te213.rules(), [ScaleRule::RCeil, ScaleRule::Nearest]);
    /// // A rule with variants is listed once.
    /// assert_eq!(BlockProfile::Te.rules().len(), 3);
    /// ```
    pub const fn rules(self) -> &'static [ScaleRule] {
        use ScaleRule::{Ceil, Even, Floor, FourOverSix as Four, MaxAbs, Nearest, RCeil};
        const FOUR: FourOverSix = FourOverSix::DEFAULT;
        match self {
            Self::Ocp => &[Floor, Ceil, Even, RCeil, Nearest, MaxAbs, Four(FOUR)],
            Self::Microxcaling
            | Self::MicroxcalingFlush
            | Self::MicroxcalingTorch
            | Self::MicroxcalingTorchFlush => &[Floor, RCeil],
            Self::Torchao | Self::Torchao018 => &[Floor, Ceil, Even, RCeil, Nearest],
            Self::Te => &[RCeil, Nearest, Four(FOUR)],
            Self::Te213 => &[RCeil, Nearest],
        }
    }

    /// Whether the source of the profile has the rule, in any of its variants.
    ///
    /// ```
    /// use exmy::block::BlockProfile;
    ///
    /// assert!(BlockProfile::Te.has("4over6-mse-448".parse()?)); // all variants
    /// assert!(!BlockProfile::Te213.has("4over6".parse()?));
    /// assert!(!BlockProfile::Te.has("floor".parse()?));
    /// # Ok::<(), exmy::text::UnknownName>(())
    /// ```
    pub const fn has(self, rule: ScaleRule) -> bool {
        let rules = self.rules();
        let mut i = 0;
        while i < rules.len() {
            if rules[i].kind() == rule.kind() {
                return true;
            }
            i += 1;
        }
        false
    }
}

impl fmt::Display for BlockProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMED.iter().find(|(_, profile)| profile == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for BlockProfile {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::NAMED.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, profile)| profile).ok_or_else(|| {
            let names = Self::NAMED.into_iter().map(|(name, _)| name);
            UnknownName::new("block profile", text, names, Self::FORMS)
        })
    }
}

impl BlockProfile {
    pub(crate) const FORMS: &str = "ocp, microxcaling, microxcaling-torch (each with -flush), torchao, \
                                    torchao-0.18, te, te-2.13";
}
