//! How a tensor is made low-precision: a format or block format, a rounding mode and an overflow
//! policy, in one small value with one textual form.
//!
//! # Text
//!
//! `[first>][rotation>]target[@rounding][@rule][@profile][@overflow]`, suffixes in any order:
//!
//! * `none`; `e4m3`, `e8m3@rtz`, `e5m2@sat-finite`; `mxfp4@sr8`, `nvfp4@sr8`, `e2m1/row:f32`;
//! * `bf16>e8m3@rtz`: first to bf16, to nearest even, then toward zero to E8M3. That is keeping the
//!   upper 3 bits of a bf16 significand (arXiv 2405.18710);
//! * `bf16@rna>mxfp8-e4m3@rna`: the first format may have suffixes of its own;
//! * `mxfp8-e4m3@rceil@te`: scales rounded up, and what the rule leaves open as Transformer Engine does
//!   it ([`scale`](crate::block::scale) has the rules and profiles);
//! * `bf16>rht16>nvfp4@sr8`: to bf16, then rotated in groups of 16 along the reduction axis
//!   ([`hadamard`](crate::block::hadamard)), then to NVFP4.
//!
//! # Defaults
//!
//! Rounding is to nearest, ties to even; away from zero in the profiles of microxcaling, whose default
//! that is. Overflow is [`Overflow::None`] for casts to a format *with infinities*, such as E5M2, E8M3 or
//! bf16. That is what IEEE 754 prescribes: to nearest, what is too large becomes infinity, and toward zero
//! it becomes the largest value. So it is for integers, as `int8b-6`, which keep their lowest number. It is
//! [`Overflow::Finite`] for other formats without infinities, where the alternative would be NaN. It is
//! that for the elements of blocks too, as OCP MX 1.0 (6.3) clamps them; a block has a scale so that
//! nothing overflows far. Rules that a program writes have no such default by format. What is too large
//! for E4M3 is NaN with [`Rules::DEFAULT`](crate::round::Rules::DEFAULT), as with
//! `E4M3::from_f32`. It is 448 with [`Rules::SATURATING`](crate::round::Rules::SATURATING), as with
//! `from_f32_saturating`. Scales are rounded as their rule says, not by these.

#![forbid(unsafe_code)]

mod cast;
mod codes;
mod image;
mod name;

pub use cast::Cast;
pub use codes::QuantizeError;
#[cfg(feature = "gemm")]
pub(crate) use image::RoundedMatrix;
pub use name::ParseQuantizerError;

pub use crate::block::Axis;
use crate::block::fast::OwnScale;
use crate::block::hadamard::{Hadamard, HadamardError};
use crate::block::scale::ScaleRule;
use crate::block::{BlockFormat, BlockProfile, UNUSED};
use crate::format::Format;
use crate::random::Philox;
use crate::round::{Overflow, Rounding};
use crate::slice::{View, ViewMut};

/// What a [`Quantizer`] rounds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// Nothing: values pass.
    None,
    /// Each element to a format, without scale.
    Format(Format),
    /// Blocks with scales.
    Block(BlockFormat),
}

impl Target {
    /// The overflow policy meant where none is written; see the [module](self) for the reasons.
    ///
    /// ```
    /// use exmy::block::BlockFormat;
    /// use exmy::format::Format;
    /// use exmy::quantizer::Target;
    /// use exmy::round::Overflow;
    ///
    /// // E5M2 has infinities and overflows to them; the same elements in a block saturate.
    /// assert_eq!(Target::Format(Format::E5M2).default_overflow(), Overflow::None);
    /// assert_eq!(Target::Block(BlockFormat::MXFP8_E5M2).default_overflow(), Overflow::Finite);
    /// ```
    pub const fn default_overflow(self) -> Overflow {
        match self {
            Self::Format(format) => Cast::new(format).overflow,
            _ => Overflow::Finite,
        }
    }

    /// The rounding mode meant where none is written: that of the block format's
    /// [`BlockProfile`], else to nearest even.
    ///
    /// ```
    /// use exmy::quantizer::{Quantizer, Target};
    ///
    /// let quantizer = |text: &str| text.parse::<Quantizer>();
    /// use exmy::round::Rounding;
    ///
    /// assert_eq!(quantizer("mxfp4")?.target.default_rounding(), Rounding::TiesToEven);
    /// assert_eq!(quantizer("mxfp4@microxcaling")?.target.default_rounding(), Rounding::TiesToAway);
    /// assert_eq!(Target::None.default_rounding(), Rounding::TiesToEven);
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    pub const fn default_rounding(self) -> Rounding {
        match self {
            Self::Block(format) => format.profile.default_rounding(),
            _ => Rounding::TiesToEven,
        }
    }
}

impl From<Format> for Target {
    fn from(format: Format) -> Self {
        Self::Format(format)
    }
}

impl From<BlockFormat> for Target {
    fn from(format: BlockFormat) -> Self {
        Self::Block(format)
    }
}

/// How a tensor is made low-precision.
///
/// ```
/// use exmy::quantizer::{Axis, Quantizer};
/// use exmy::slice::{View, ViewMut};
///
/// let quantizer: Quantizer = "mxfp4".parse()?;
/// let x = [0.1_f32, 0.5, -3.0, 1.2];
/// let mut image = [0.0; 4];
/// quantizer.image_into(View::new(&x, 1, 4), Axis::Cols, None, ViewMut::new(&mut image, 1, 4));
/// assert_eq!(image, [0.0, 0.5, -3.0, 1.0]);
/// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quantizer {
    /// What each element is rounded to first, if anything. A stochastic mode here and in
    /// [`rounding`](Self::rounding) would use the same random words.
    pub before: Option<Cast>,
    /// What the matrix is rotated by then, along the reduction axis, if anything. The image stays
    /// in the rotated coordinates, so both operands of a product need the same.
    pub rotation: Option<Hadamard>,
    /// What each element is rounded to last.
    pub target: Target,
    /// Which neighbour an element goes to.
    pub rounding: Rounding,
    /// What becomes of elements beyond the largest value.
    pub overflow: Overflow,
}

impl Quantizer {
    /// Leaves everything as it is.
    pub const NONE: Self = Self::new(Target::None);

    /// To `target` with its default [rounding](Target::default_rounding) and
    /// [overflow](Target::default_overflow).
    ///
    /// ```
    /// use exmy::quantizer::{Quantizer, Target};
    ///
    /// let quantizer = |text: &str| text.parse::<Quantizer>();
    /// use exmy::block::BlockFormat;
    ///
    /// assert_eq!(Ok(Quantizer::new(BlockFormat::MXFP4.into())), quantizer("mxfp4"));
    /// assert_eq!(Ok(Quantizer::new(Target::None)), quantizer("none"));
    /// ```
    pub const fn new(target: Target) -> Self {
        let (rounding, overflow) = (target.default_rounding(), target.default_overflow());
        Self { before: None, rotation: None, target, rounding, overflow }
    }

    /// This quantizer after a cast.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::quantizer::{Cast, Quantizer};
    ///
    /// // Each has its own mode: to bf16 to nearest, then cut.
    /// let quantizer: Quantizer = "e8m3@rtz".parse()?;
    /// assert_eq!(quantizer.after(Cast::new(Format::BF16)).to_string(), "bf16>e8m3@rtz");
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    #[must_use]
    pub const fn after(self, before: Cast) -> Self {
        Self { before: Some(before), ..self }
    }

    /// This quantizer after a rotation along the reduction axis, which comes after the cast if
    /// there is one.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::block::hadamard::Hadamard;
    /// use exmy::quantizer::{Cast, Quantizer};
    ///
    /// // In whatever order they are named, the cast comes first.
    /// let rotated = Quantizer::new(Format::E2M1.into()).rotated(Hadamard::TRANSFORMER_ENGINE);
    /// assert_eq!(rotated.after(Cast::new(Format::BF16)).to_string(), "bf16>rht16>e2m1");
    /// ```
    #[must_use]
    pub const fn rotated(self, rotation: Hadamard) -> Self {
        Self { rotation: Some(rotation), ..self }
    }

    /// This quantizer with another rounding mode.
    ///
    /// ```
    /// use exmy::quantizer::{Quantizer, Target};
    ///
    /// let quantizer = |text: &str| text.parse::<Quantizer>();
    /// use exmy::round::Rounding;
    ///
    /// // Of the last rounding; the cast before keeps its own.
    /// let cut = quantizer("bf16>mxfp4")?.with_rounding(Rounding::TowardZero);
    /// assert_eq!(cut, quantizer("bf16>mxfp4@rtz")?);
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    #[must_use]
    pub const fn with_rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// This quantizer with another overflow policy.
    ///
    /// ```
    /// use exmy::quantizer::{Quantizer, Target};
    ///
    /// let quantizer = |text: &str| text.parse::<Quantizer>();
    /// use exmy::round::Overflow;
    ///
    /// let finite = quantizer("e5m2")?.with_overflow(Overflow::Finite);
    /// assert_eq!(finite.to_string(), "e5m2@sat-finite");
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    #[must_use]
    pub const fn with_overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// This quantizer with another rule for the scales of its blocks; one without blocks stays as it is.
    /// [`BlockFormat::check`] says whether the format has the rule.
    ///
    /// ```
    /// use exmy::quantizer::Quantizer;
    /// use exmy::block::scale::ScaleRule;
    ///
    /// let quantizer: Quantizer = "bf16>mxfp4".parse()?;
    /// assert_eq!(quantizer.with_scale_rule(ScaleRule::RCeil).to_string(), "bf16>mxfp4@rceil");
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    #[must_use]
    pub const fn with_scale_rule(self, rule: ScaleRule) -> Self {
        match self.target {
            Target::Block(format) => {
                Self { target: Target::Block(BlockFormat { rule, ..format }), ..self }
            }
            _ => self,
        }
    }

    /// This quantizer with blocks as in another library; one without blocks stays as it is. Where the rule
    /// or the rounding is the default, it becomes that of the new profile.
    ///
    /// ```
    /// use exmy::block::BlockProfile;
    /// use exmy::quantizer::Quantizer;
    ///
    /// let with = |text: &str, profile| text.parse().map(|one: Quantizer| one.with_profile(profile));
    /// assert_eq!(with("mxfp4", BlockProfile::Microxcaling), "mxfp4@microxcaling".parse()); // ties away
    /// assert_eq!(with("mxfp4@rtz", BlockProfile::Te), "mxfp4@te@rtz".parse());
    /// ```
    #[must_use]
    pub fn with_profile(self, profile: BlockProfile) -> Self {
        let Target::Block(format) = self.target else { return self };
        let is_default = format.rule == format.profile.default_rule(format.scale);
        let rule = if is_default { profile.default_rule(format.scale) } else { format.rule };
        let target = Target::Block(BlockFormat { rule, profile, ..format });
        match self.rounding == self.target.default_rounding() {
            true => Self { target, rounding: target.default_rounding(), ..self },
            false => Self { target, ..self },
        }
    }

    /// Whether every value passes as it is.
    ///
    /// ```
    /// use exmy::quantizer::{Quantizer, Target};
    ///
    /// let quantizer = |text: &str| text.parse::<Quantizer>();
    /// assert!(quantizer("none")?.is_none());
    /// assert!(!quantizer("bf16>none")?.is_none()); // rounds to bf16
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    pub const fn is_none(&self) -> bool {
        self.before.is_none() && self.rotation.is_none() && matches!(self.target, Target::None)
    }

    /// Whether the image depends on random bits.
    ///
    /// ```
    /// use exmy::quantizer::{Quantizer, Target};
    ///
    /// let quantizer = |text: &str| text.parse::<Quantizer>();
    /// use exmy::round::Rounding;
    ///
    /// assert!(quantizer("bf16@sr8>mxfp4")?.is_stochastic());
    /// let mode = quantizer("mxfp4@sr8")?.rounding;
    /// assert!(!Quantizer::NONE.with_rounding(mode).is_stochastic()); // nothing is rounded
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    pub const fn is_stochastic(&self) -> bool {
        let before = match self.before {
            Some(cast) => cast.rounding.is_stochastic(),
            None => false,
        };
        before || (!matches!(self.target, Target::None) && self.rounding.is_stochastic())
    }

    /// Whether matrices of this size can be rotated along the axis; all can if nothing rotates them.
    ///
    /// # Errors
    /// If groups of the rotation do not fill the axis; the error says how many zeros would.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    ///
    /// let quantizer: Quantizer = "rht16>nvfp4".parse()?;
    /// assert!(quantizer.check_size(32, 40, Axis::Rows).is_ok());
    /// assert!(quantizer.check_size(32, 40, Axis::Cols).unwrap_err().to_string().contains("8 zeros"));
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    pub const fn check_size(
        &self,
        rows: usize,
        cols: usize,
        axis: Axis,
    ) -> Result<(), HadamardError> {
        match (self.rotation, axis) {
            (None, _) => Ok(()),
            (Some(rotation), Axis::Cols) => rotation.check(cols),
            (Some(rotation), Axis::Rows) => rotation.check(rows),
        }
    }

    /// Writes to `out` the values `x` has in low precision.
    ///
    /// `axis` is the one that the matrix product sums along, to which block shapes are relative;
    /// casts do not depend on it. `random` may be `None` unless the quantizer
    /// [is stochastic](Self::is_stochastic). Then element (i, j) uses random word
    /// `i * cols + j`, however the matrix is stored. The bits written do not depend on the number of
    /// threads nor on the [`simd`](crate::simd) level.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::{View, ViewMut};
    ///
    /// let quantizer: Quantizer = "mxfp4".parse()?;
    /// let x = [0.3_f32, 8.0, 0.3, 0.3];
    /// let image = |axis| {
    ///     let mut image = [0.0; 4];
    ///     quantizer.image_into(View::new(&x, 2, 2), axis, None, ViewMut::new(&mut image, 2, 2));
    ///     image
    /// };
    /// // Who shares a block with the outlier depends on the axis that a product sums along.
    /// assert_eq!(image(Axis::Cols), [0.0, 8.0, 0.25, 0.25]);
    /// assert_eq!(image(Axis::Rows), [0.25, 8.0, 0.25, 0.0]);
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    ///
    /// # Panics
    /// If the shapes differ, a mode is stochastic without random words or with a bit count outside 1..=32,
    /// [`BlockFormat::check`] or [`check_size`](Self::check_size) fails.
    #[track_caller]
    pub fn image_into(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: impl Into<Option<Philox>>,
        out: ViewMut<'_, f32>,
    ) {
        self.write(x, axis, random.into(), None, out);
    }

    /// Writes to `out` the values `x` has in low precision with block scales of the caller's own, as
    /// [`BlockTensor::quantize_with`](crate::block::BlockTensor::quantize_with) finds them.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::{View, ViewMut};
    ///
    /// let quantizer: Quantizer = "bf16>e2m1/2:e4m3".parse()?;
    /// let mut image = [0.0; 3];
    /// let x = View::new(&[1.001_f32, 9.0, -0.3], 1, 3);
    /// // What is seen has been rounded to bf16; the last block has one element.
    /// let first = |block: &[f32]| block[0].abs();
    /// quantizer.image_with(x, Axis::Cols, None, first, ViewMut::new(&mut image, 1, 3));
    /// assert_eq!(image, [1.0, 6.0, -0.3125]);
    /// # Ok::<(), exmy::quantizer::ParseQuantizerError>(())
    /// ```
    ///
    /// # Panics
    /// As [`image_into`](Self::image_into), and if the target is no block format or has a tensor
    /// scale.
    #[track_caller]
    pub fn image_with(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: impl Into<Option<Philox>>,
        scale: impl Fn(&[f32]) -> f32 + Sync,
        out: ViewMut<'_, f32>,
    ) {
        let target = self.target;
        assert!(
            matches!(target, Target::Block(format) if !format.tensor_scale),
            "{target} has no block scales, or one for the tensor as well, and takes none of the \
             caller's own"
        );
        self.write(x, axis, random.into(), Some(&scale), out);
    }

    /// The given random words, or any where none are read.
    fn words(&self, random: Option<Philox>) -> Option<Philox> {
        random.or((!self.is_stochastic()).then_some(UNUSED))
    }

    #[track_caller]
    fn write(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: Option<Philox>,
        own: Option<OwnScale<'_>>,
        out: ViewMut<'_, f32>,
    ) {
        let Some(random) = self.words(random) else { panic!("{self} needs random words") };
        let (shape, place) = ((x.rows(), x.cols()), (out.rows(), out.cols()));
        assert_eq!(shape, place, "a matrix and its image have different shapes");
        if let Err(error) = self.check_size(shape.0, shape.1, axis) {
            panic!("{error}");
        }
        image::write(self, x, axis, random, own, out);
    }
}

impl Default for Quantizer {
    fn default() -> Self {
        Self::NONE
    }
}
