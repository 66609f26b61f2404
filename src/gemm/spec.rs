//! What a product is besides its operands.

use core::str::FromStr;

use super::accumulation::{Accumulation, ParseAccumulationError};
use crate::format::Format;
use crate::quantizer::Cast;
use crate::random::Philox;
use crate::round::Rounding;

/// What becomes of results that are infinite or NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum NonFinite {
    /// They are results like others, as the output's format has them, and are counted.
    #[default]
    Keep,
    /// The product is an error that names the first one; nothing is written.
    Error,
}

/// A product `C = round(alpha * A B + beta * C)`: how it is summed and what it becomes.
///
/// `exact` rounds that formula once. All other accumulations end in a number of their own; then, in
/// binary32 and in this order, each operation rounded to nearest even:
///
/// ```text
/// scale = (alpha * tensor scale of A) * tensor scale of B       once
/// y     = sum, rounded to binary32 if it is not
/// y     = scale * y                                             not if scale is 1
/// y     = y + beta * c                                          the product is rounded; not if beta is 0
/// out   = y, rounded to the output's format
/// ```
///
/// Where neither scale nor C change anything, the sum is rounded to the output's format at once.
///
/// ```
/// use exmy::format::Format;
/// use exmy::gemm::{Spec, gemm};
/// use exmy::slice::View;
///
/// let (a, b) = ([1.0, 2.0, 3.0, 4.0], [0.5, -1.0]);
/// let (a, b) = (View::new(&a, 2, 2), View::new(&b, 2, 1));
/// let spec = Spec::parse("fma")?.with_alpha(10.0).with_output(Format::E4M3FN);
/// assert_eq!(gemm(a, b, &spec)?, [-15.0, -24.0]); // -25 is a tie of -24 and -26
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spec {
    /// How products become a sum.
    pub accumulation: Accumulation,
    /// What the sum is multiplied by.
    pub alpha: f32,
    /// What C is multiplied by before it is added; C is not read if this is 0.
    pub beta: f32,
    /// The format of results, how they round and what they become beyond its range.
    pub output: Cast,
    /// Random words for stochastic rounding. Output `e = i * N + j` (in a batch, counted on from
    /// the outputs before it) uses R + 1 words from word `e * (R + 1)` on. The first R are for the
    /// roundings of its sum (R = 0 if the accumulator is not stochastic; of a matrix unit R is
    /// [`Unit::words`](super::unit::Unit::words) of K), the last one is for the output.
    pub random: Option<Philox>,
    /// What becomes of infinities and NaN.
    pub non_finite: NonFinite,
    /// The largest magnitudes of the two tensors, for `te-nvfp4`, which forms alpha from them.
    /// Without them the tensor scales are used, which are these divided by 2688 and rounded.
    pub amaxes: Option<[f32; 2]>,
}

impl From<Accumulation> for Spec {
    fn from(accumulation: Accumulation) -> Self {
        Self {
            accumulation,
            alpha: 1.0,
            beta: 0.0,
            output: Cast::new(Format::F32),
            random: None,
            non_finite: NonFinite::Keep,
            amaxes: None,
        }
    }
}

impl FromStr for Spec {
    type Err = ParseAccumulationError;

    /// The product without alpha, beta and C, in binary32, of an accumulation by name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|accumulation: Accumulation| accumulation.into())
    }
}

impl Spec {
    /// The product without alpha, beta and C, in binary32, summed by a named accumulation.
    ///
    /// # Errors
    /// If no accumulation is called so.
    ///
    /// ```
    /// use exmy::gemm::Spec;
    ///
    /// let error = Spec::parse("exakt").unwrap_err();
    /// assert!(error.to_string().contains("did you mean exact?"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseAccumulationError> {
        text.parse()
    }

    /// The same with the sum multiplied by `alpha`.
    #[must_use]
    pub const fn with_alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// The same with `beta` times what C holds added; for [`gemm_into`](super::gemm_into).
    #[must_use]
    pub const fn with_beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// The same with results in a format, or in a format by a rounding mode and overflow policy.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Cast>) -> Self {
        self.output = output.into();
        self
    }

    /// The same with results rounded by another mode.
    #[must_use]
    pub const fn with_rounding(mut self, rounding: Rounding) -> Self {
        self.output.rounding = rounding;
        self
    }

    /// The same with random words for stochastic rounding.
    #[must_use]
    pub const fn with_random(mut self, random: Philox) -> Self {
        self.random = Some(random);
        self
    }

    /// The same with another policy for infinities and NaN.
    #[must_use]
    pub const fn with_non_finite(mut self, non_finite: NonFinite) -> Self {
        self.non_finite = non_finite;
        self
    }

    /// The same with the largest magnitudes of A and B, for `te-nvfp4`.
    #[must_use]
    pub const fn with_amaxes(mut self, a: f32, b: f32) -> Self {
        self.amaxes = Some([a, b]);
        self
    }
}
