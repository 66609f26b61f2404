//! The numbers that a recipe gives a tensor: a quantizer, and what a quantizer alone cannot say.
//!
//! # Text
//!
//! `[prior>>]quantizer[@across][@joined][@shared][@windowN][@by-position][@fresh]`:
//!
//! * a [quantizer](exmy::quantizer): `bf16`, `mxfp4@sr8`, `bf16>rht16>nvfp4`;
//! * `f16/tensor:e8m0@rceil>>e4m3/tensor:e8m0@rceil`: one quantizer, then another;
//! * `clip-e7m7`, `clip-e7m7>>e8m3@rtz`: a [clipped range](super::clip), then a quantizer;
//! * `mask0`: bfloat16 with so many mantissa bits (0 to 7), the others cleared, NaN kept;
//! * `zero`: nothing but zeros, for gradients that are dropped;
//! * `times1.0877`, `times1.0877>>bf16`: every number times a factor, rounded to f32, then a quantizer: a
//!   product whose operands lose a known share of their magnitude gets it back;
//! * `@across`: blocks run across the axis that the product sums along, not along it. For a weight in
//!   `grad_input` that is the axis of the forward product, so that both see the same numbers;
//! * `@joined`: members of a group that a product sums over, as `grad_input` does, are one tensor, up before
//!   gate: blocks run on from one to the next, if all have these numbers;
//! * `@shared`: the random bits of an operand are the same in every product that reads it;
//! * `@windowN`: the one scale of the tensor is that of the largest magnitude of the last N steps, as in
//!   [`state`](super::state);
//! * `@by-position`: exponents are bumped by the place of an element in its block, as in
//!   `bump`;
//! * `@fresh`: the signs of the rotation are drawn anew each step.

use std::fmt;
use std::str::FromStr;

use crate::recipe::clip::Clip;
use exmy::block::BlockFormat;
use exmy::format::Format;
use exmy::quantizer::{Quantizer, Target};

/// What happens to a tensor before its quantizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prior {
    /// Its range is clipped.
    Clip(Clip),
    /// It is quantized by another quantizer.
    Quantizer(Quantizer),
    /// It is rounded to bfloat16 and keeps so many mantissa bits.
    Mask(u8),
    /// It becomes zero: a gradient that is dropped.
    Zero,
    /// It is multiplied by a number, in f32.
    Times(Factor),
}

/// A positive, finite f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Factor(u32);

impl Factor {
    /// `value`, if it is positive and finite.
    pub fn new(value: f32) -> Option<Self> {
        (value > 0.0 && value.is_finite()).then_some(Self(value.to_bits()))
    }

    /// The number.
    pub const fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl FromStr for Factor {
    type Err = ParseTensorFormatError;

    /// `times1.0877`.
    fn from_str(text: &str) -> Result<Self, ParseTensorFormatError> {
        let digits = text.strip_prefix("times").unwrap_or_default();
        digits.parse().ok().and_then(Self::new).ok_or_else(|| {
            ParseTensorFormatError(format!(
                "{text:?}: after times stands a positive number, as in times1.0877"
            ))
        })
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "times{}", self.value())
    }
}

/// The numbers of a tensor; see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorFormat {
    /// What comes first.
    pub prior: Option<Prior>,
    /// What the tensor is rounded to.
    pub quantizer: Quantizer,
    /// Whether blocks run across the axis that the product sums along.
    pub across: bool,
    /// Whether members of a group that a product sums over are one tensor.
    pub joined: bool,
    /// Whether products share random bits.
    pub shared: bool,
    /// Steps whose largest magnitude gives the tensor's scale; 0 for the tensor's own.
    pub window: u8,
    /// Whether exponents are bumped by position.
    pub by_position: bool,
    /// Whether the rotation has other signs each step.
    pub fresh: bool,
}

impl TensorFormat {
    /// The tensor as it is.
    pub const NONE: Self = Self::of(Quantizer::NONE);

    /// Those of a quantizer.
    pub const fn of(quantizer: Quantizer) -> Self {
        Self {
            prior: None,
            quantizer,
            across: false,
            joined: false,
            shared: false,
            window: 0,
            by_position: false,
            fresh: false,
        }
    }

    /// These numbers behind something else that happens to the tensor first.
    #[must_use]
    pub const fn behind(self, prior: Prior) -> Self {
        Self { prior: Some(prior), ..self }
    }

    /// Whether the tensor stays as it is.
    pub const fn is_none(&self) -> bool {
        self.prior.is_none() && self.quantizer.is_none()
    }

    /// Whether it takes random words: some rounding is stochastic, or the rotation's signs are drawn.
    pub const fn is_random(&self) -> bool {
        let first = matches!(self.prior, Some(Prior::Quantizer(first)) if first.is_stochastic());
        first || self.quantizer.is_stochastic() || self.fresh
    }

    /// The quantizer, where it is all there is, blocks along the sum and the bits of the tensor alone: what a
    /// fast product can take over.
    pub fn plain(&self) -> Option<Quantizer> {
        let Self { joined, shared, .. } = *self;
        (*self == Self { joined, shared, ..Self::of(self.quantizer) }).then_some(self.quantizer)
    }

    /// Whether a product takes the tensor as it is and rounds it, with signs of the rotation that are the
    /// step's.
    pub fn packs(&self) -> bool {
        Self { fresh: false, ..*self }.plain().is_some()
    }

    /// The quantizer that comes before the other, if one does.
    pub(crate) const fn first_quantizer(&self) -> Option<Quantizer> {
        match self.prior {
            Some(Prior::Quantizer(first)) => Some(first),
            _ => None,
        }
    }

    /// Whether there is a scale of the whole tensor besides those of blocks.
    pub const fn is_scaled(&self) -> bool {
        matches!(self.quantizer.target, Target::Block(format) if format.tensor_scale)
    }

    /// The range that is clipped first, if one is.
    pub(crate) const fn clip(&self) -> Option<Clip> {
        match self.prior {
            Some(Prior::Clip(clip)) => Some(clip),
            _ => None,
        }
    }

    /// The name of the numbers alone, without how they are reached: `nvfp4`, `bf16`, `f32`.
    pub fn format(&self) -> String {
        match (self.quantizer.target, self.prior) {
            (_, Some(Prior::Zero)) => "zero".into(),
            (Target::None, None | Some(Prior::Times(_))) => match self.quantizer.before {
                Some(cast) => cast.format.to_string(),
                None => "f32".into(),
            },
            (Target::None, Some(Prior::Clip(clip))) => {
                format!("e{}m{}", clip.exponent_bits, clip.mantissa_bits)
            }
            (Target::None, Some(Prior::Mask(bits))) => format!("e8m{bits}"),
            (Target::None, Some(Prior::Quantizer(first))) => Self::of(first).format(),
            (Target::Format(format), _) => format.to_string(),
            (Target::Block(format), _) => {
                let text = format.to_string();
                text.split('@').next().unwrap_or_default().to_owned()
            }
            _ => self.quantizer.to_string(),
        }
    }

    /// Bits of an element's code, 32 where nothing is rounded.
    pub fn bits(&self) -> u32 {
        match (self.quantizer.target, self.prior) {
            (_, Some(Prior::Zero)) => 0,
            (Target::Format(format), _) => format.bits(),
            (Target::Block(format), _) => format.element.bits(),
            (Target::None, Some(Prior::Clip(clip))) => {
                1 + u32::from(clip.exponent_bits) + u32::from(clip.mantissa_bits)
            }
            (Target::None, Some(Prior::Mask(bits))) => 9 + u32::from(bits),
            (Target::None, Some(Prior::Quantizer(first))) => Self::of(first).bits(),
            (Target::None, None | Some(Prior::Times(_))) => {
                self.quantizer.before.map_or(32, |cast| cast.format.bits())
            }
            _ => 32,
        }
    }
}

impl From<Quantizer> for TensorFormat {
    fn from(quantizer: Quantizer) -> Self {
        Self::of(quantizer)
    }
}

impl From<Target> for TensorFormat {
    fn from(target: Target) -> Self {
        Self::of(Quantizer::new(target))
    }
}

impl From<Format> for TensorFormat {
    fn from(format: Format) -> Self {
        Target::from(format).into()
    }
}

impl From<BlockFormat> for TensorFormat {
    fn from(format: BlockFormat) -> Self {
        Target::from(format).into()
    }
}

impl fmt::Display for TensorFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.prior, self.quantizer.is_none()) {
            (Some(Prior::Clip(clip)), true) => write!(f, "{clip}")?,
            (Some(Prior::Clip(clip)), false) => write!(f, "{clip}>>{}", self.quantizer)?,
            (Some(Prior::Mask(bits)), _) => write!(f, "mask{bits}")?,
            (Some(Prior::Zero), _) => f.write_str("zero")?,
            (Some(Prior::Quantizer(first)), _) => write!(f, "{first}>>{}", self.quantizer)?,
            (Some(Prior::Times(factor)), true) => write!(f, "{factor}")?,
            (Some(Prior::Times(factor)), false) => write!(f, "{factor}>>{}", self.quantizer)?,
            (None, true) => f.write_str("f32")?,
            (None, false) => write!(f, "{}", self.quantizer)?,
        }
        for (is, word) in [
            (self.across, "@across"),
            (self.joined, "@joined"),
            (self.shared, "@shared"),
            (self.by_position, "@by-position"),
            (self.fresh, "@fresh"),
        ] {
            f.write_str(if is { word } else { "" })?;
        }
        match self.window {
            0 => Ok(()),
            steps => write!(f, "@window{steps}"),
        }
    }
}

/// A text that is no [`TensorFormat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTensorFormatError(pub(super) String);

impl fmt::Display for ParseTensorFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseTensorFormatError {}

impl FromStr for TensorFormat {
    type Err = ParseTensorFormatError;

    fn from_str(text: &str) -> Result<Self, ParseTensorFormatError> {
        let fail = |message: String| Err(ParseTensorFormatError(message));
        let quantizer = |text: &str| -> Result<Quantizer, ParseTensorFormatError> {
            match text.parse() {
                // By whatever name: a tensor is f32 already.
                Ok(quantizer) if quantizer == Quantizer::new(Format::F32.into()) => {
                    Ok(Quantizer::NONE)
                }
                read => read.map_err(|error: exmy::quantizer::ParseQuantizerError| {
                    ParseTensorFormatError(error.to_string())
                }),
            }
        };
        let mut numbers = Self::NONE;
        // The own suffixes leave the text, wherever they stand.
        let mut rest = String::new();
        for (i, part) in text.split('@').enumerate() {
            match part {
                "across" if i > 0 => numbers.across = true,
                "joined" if i > 0 => numbers.joined = true,
                "shared" if i > 0 => numbers.shared = true,
                "by-position" if i > 0 => numbers.by_position = true,
                "fresh" if i > 0 => numbers.fresh = true,
                _ => match part.strip_prefix("window").filter(|_| i > 0) {
                    Some(steps) => match steps.parse() {
                        Ok(steps @ 1..) => numbers.window = steps,
                        _ => return fail(format!("{text:?}: a window has 1 to 255 steps")),
                    },
                    None => {
                        rest += if i > 0 { "@" } else { "" };
                        rest += part;
                    }
                },
            }
        }
        match rest.split_once(">>") {
            Some((first, last)) if first.starts_with("clip") => {
                let clip = first
                    .parse()
                    .map_err(|e: exmy::text::UnknownName| ParseTensorFormatError(e.to_string()))?;
                (numbers.prior, numbers.quantizer) = (Some(Prior::Clip(clip)), quantizer(last)?);
            }
            Some((first, last)) if first.starts_with("times") => {
                let factor = Prior::Times(first.parse()?);
                (numbers.prior, numbers.quantizer) = (Some(factor), quantizer(last)?);
            }
            Some((first, last)) => {
                let first = Prior::Quantizer(quantizer(first)?);
                (numbers.prior, numbers.quantizer) = (Some(first), quantizer(last)?);
            }
            None if rest.starts_with("clip") => {
                let clip = rest
                    .parse()
                    .map_err(|e: exmy::text::UnknownName| ParseTensorFormatError(e.to_string()))?;
                numbers.prior = Some(Prior::Clip(clip));
            }
            None if matches!(rest.as_bytes(), [b'm', b'a', b's', b'k', b'0'..=b'7']) => {
                numbers.prior = Some(Prior::Mask(rest.as_bytes()[4] - b'0'));
            }
            None if rest.starts_with("times") => {
                numbers.prior = Some(Prior::Times(rest.parse()?));
            }
            None if rest == "zero" => numbers.prior = Some(Prior::Zero),
            None => numbers.quantizer = quantizer(&rest)?,
        }
        numbers.check(text)
    }
}

impl TensorFormat {
    fn check(self, text: &str) -> Result<Self, ParseTensorFormatError> {
        use exmy::block::Shape;
        use exmy::format::Sign;
        let fail = |message: String| Err(ParseTensorFormatError(message));
        let block = match self.quantizer.target {
            Target::Block(format) => Some(format),
            Target::Format(format) if format.sign() == Sign::Unsigned => {
                return fail(format!("{format} has no negative numbers: it is made for scales"));
            }
            _ => None,
        };
        if matches!(self.prior, Some(Prior::Quantizer(first)) if first.is_none() || first.rotation.is_some())
        {
            return fail(format!("{text:?}: before >> stands what rounds and does not rotate"));
        }
        let whole = block.is_some_and(|f| f.shape == Shape::Tensor && !f.tensor_scale);
        if self.window > 0 && !whole {
            return fail(format!(
                "{text:?}: a window is for one scale a tensor, as e4m3/tensor:e8m0@rceil has"
            ));
        }
        let mx = block.is_some_and(|f| matches!(f.shape, Shape::Along(_)) && f.rule.is_power());
        if self.by_position && !(mx && self.quantizer.rotation.is_none()) {
            return fail(format!("{text:?}: only MX blocks bump exponents by position"));
        }
        if self.by_position && self.quantizer.is_stochastic() {
            return fail(format!(
                "{text:?}: exponents bumped by position go with no random bits, as sequences are \
                 rounded one by one"
            ));
        }
        if self.fresh && self.quantizer.rotation.is_none() {
            return fail(format!("{text:?}: without rotation there are no signs to draw"));
        }
        Ok(self)
    }
}
