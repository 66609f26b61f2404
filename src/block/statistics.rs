//! What quantization did to a tensor: noise, saturation, loss, range. [`Statistics`] says how each
//! figure is defined.

mod lanes;
mod limits;

pub(super) use lanes::Element;
pub(crate) use lanes::{Lanes, Passing, Sums};
pub(crate) use limits::{Limits, of_scales};

/// Rows whose sums are added first.
pub(crate) const BAND: usize = 32;
/// Elements of a row whose squares are added first.
pub(crate) const PIECE: usize = 256;

/// Figures of a quantized tensor or a part of it.
///
/// Numbers `x` are compared with the values `y` they became. The order of sums is fixed. A row is taken in
/// pieces of 256 columns, the last perhaps shorter. The squares of column `j` of a piece are added to lane
/// `j mod 16`, in binary32. The lanes are added by halves, in binary64 as all that follows. The pieces of a
/// row are added from left to right, the rows of a band of 32 from top to bottom, and then the bands. In two
/// cases a piece is summed in binary64 from the start, and differences are not rounded to binary32. One is
/// numbers of type `f64`. The other is a lane whose largest magnitude or largest difference is not finite,
/// or neither zero nor from 2^-60 to 2^60. So the figures depend neither on threads nor on the SIMD level,
/// and those of [packing](crate::gemm::fast::Packed::quantize_with_statistics) are the same. Either sum
/// differs from the exact one by less than 2^-19 of it.
///
/// An element is *saturated* if its magnitude exceeds the largest one of its sign that its block can
/// express, `largest element * scale * tensor scale`, and its image is not zero. In two's complement
/// the negative side has one value more, -2 of INT8, unless the overflow policy clamps symmetrically.
/// A stored tensor does not hold its policy: it counts an element whose image is that value by the
/// wider limit, and any other by the symmetric one. An element is *flushed* if it is not zero and its
/// image is. The decoded value decides that, since a block whose scale rounds to zero holds large
/// codes that all mean zero. Infinities and NaNs, before or after, are counted and left out of
/// everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Number of elements.
    pub count: u64,
    /// Elements that were infinite or NaN.
    pub non_finite: u64,
    /// Elements that became infinite or NaN, or were it.
    pub lost: u64,
    /// Elements beyond the largest magnitude of their block.
    pub saturated: u64,
    /// Elements that became zero and were not.
    pub flushed: u64,
    /// The largest finite magnitude; of numbers of `f64` rounded to `f32`.
    pub amax: f32,
    /// The largest difference between an element and its image.
    pub max_error: f64,
    /// Sum of the squares of the elements.
    pub signal: f64,
    /// Sum of the squares of the differences.
    pub noise: f64,
}

impl Statistics {
    /// The figures of two parts together; the sums of `self` stand before those of `other`.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::slice::{Converter, View};
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::new(Format::E2M1, Rules::SATURATING);
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// let both = of(&[7.0, 0.2]).and(&of(&[-9.0]));
    /// assert_eq!((both.count, both.saturated, both.flushed), (3, 2, 1));
    /// assert_eq!((both.amax, both.max_error), (9.0, 3.0));
    /// ```
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            non_finite: self.non_finite + other.non_finite,
            lost: self.lost + other.lost,
            saturated: self.saturated + other.saturated,
            flushed: self.flushed + other.flushed,
            amax: self.amax.max(other.amax),
            max_error: self.max_error.max(other.max_error),
            signal: self.signal + other.signal,
            noise: self.noise + other.noise,
        }
    }

    /// The ratio of signal to quantization noise in decibels: infinite without noise, NaN without
    /// either.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::slice::{Converter, View};
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::new(Format::E2M1, Rules::SATURATING);
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// assert_eq!(of(&[8.0]).sqnr_db(), 10.0 * 16.0_f64.log10()); // 64 to 4
    /// assert_eq!(of(&[6.0]).sqnr_db(), f64::INFINITY);
    /// assert!(of(&[0.0]).sqnr_db().is_nan());
    /// ```
    #[expect(clippy::disallowed_methods, reason = "a figure to print; no bit of a result uses it")]
    #[cfg(feature = "std")]
    pub fn sqnr_db(&self) -> f64 {
        10.0 * (self.signal / self.noise).log10()
    }

    /// The share of saturated elements; 0 of none.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::slice::{Converter, View};
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::new(Format::E2M1, Rules::SATURATING);
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// assert_eq!(of(&[6.0, 6.5, 7.0, f32::INFINITY]).share_saturated(), 0.5); // infinity is not counted
    /// assert_eq!(Statistics::default().share_saturated(), 0.0);
    /// ```
    pub fn share_saturated(&self) -> f64 {
        share(self.saturated, self.count)
    }

    /// The share of flushed elements; 0 of none.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::slice::{Converter, View};
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::new(Format::E2M1, Rules::SATURATING);
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// assert_eq!(of(&[0.25, 0.3, 0.0, -0.1]).share_flushed(), 0.5); // zeros lose nothing; 0.25 is a tie
    /// ```
    pub fn share_flushed(&self) -> f64 {
        share(self.flushed, self.count)
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// The rows of a band.
#[derive(Default)]
pub(crate) struct Band {
    rows: [Sums; BAND],
}

impl Band {
    /// Adds a piece of row `i` of the matrix; those of a row come from left to right.
    pub(super) fn add(&mut self, i: usize, piece: Sums) {
        self.rows[i % BAND].add(piece);
    }

    pub(super) fn total(&self) -> Sums {
        self.rows.iter().fold(Sums::default(), added)
    }
}

/// The sum of the pieces of a matrix, row-major, so many a row.
pub(crate) fn ordered(pieces: &[Sums], of_row: usize) -> Sums {
    let bands = pieces.chunks((of_row * BAND).max(1)).map(|rows| {
        let mut band = Band::default();
        for (i, row) in rows.chunks(of_row).enumerate() {
            row.iter().for_each(|piece| band.add(i, *piece));
        }
        band.total()
    });
    bands.fold(Sums::default(), |all, band| added(all, &band))
}

fn added(mut all: Sums, more: &Sums) -> Sums {
    all.add(*more);
    all
}
