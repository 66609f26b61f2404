//! Slices of typed numbers: the conversions of [`Minifloat`], a slice at a time and at the speed of
//! the kernels.
//!
//! A slice of [`Minifloat<F>`] is a slice of codes ([`cast`]), so nothing is copied. Each function
//! gives what the method of one number gives, element by element: [`Minifloat::from_slice`] is
//! `from_f32` (`from_f64`), with the format's natural overflow, and [`Minifloat::from_slice_saturating`] is
//! `from_f32_saturating`; other rules are those of a [`Converter`]. Only codes of the format are written,
//! also where they do not fill their integer.

use super::convert::decode_by;
use super::decode::reader::CodeReader;
use super::real::sealed::Reals;
use super::{Converter, Real};
use crate::minifloat::{FloatFormat, Minifloat};
use crate::round::Rules;
use crate::slice::cast;

/// Elements for which making a [`Converter`] ready takes longer than converting them one by one.
const FEW: usize = 64;

impl<F: FloatFormat> Minifloat<F> {
    /// Writes to `out` the nearest numbers of this format, ties to even, with natural overflow: of
    /// each element what `from_f32` or `from_f64` gives.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// ```
    /// use exmy::minifloat::{E2M1, E4M3};
    ///
    /// let mut x = [E4M3::default(); 3];
    /// E4M3::from_slice(&[1.0625 + 1e-12, 0.3, 464.0], &mut x); // f64: rounded once
    /// assert_eq!(x.map(E4M3::to_f32), [1.125, 0.3125, 448.0]);
    ///
    /// let mut x = [E2M1::default(); 2];
    /// E2M1::from_slice(&[2.5_f32, 1e6], &mut x); // a tie, and more than the largest
    /// assert_eq!(x.map(E2M1::to_f32), [2.0, 6.0]);
    /// ```
    pub fn from_slice<S: Real>(x: &[S], out: &mut [Self]) {
        Self::from_slice_by(x, out, (Self::from_f32, Self::from_f64), Rules::DEFAULT);
    }

    /// Writes to `out` the nearest numbers of this format, ties to even, the largest for what is too
    /// large: of each element what `from_f32_saturating` or `from_f64_saturating` gives.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// let mut x = [E4M3::default(); 3];
    /// E4M3::from_slice_saturating(&[1e6_f32, -1e6, 0.3], &mut x);
    /// assert_eq!(x.map(E4M3::to_f32), [448.0, -448.0, 0.3125]);
    /// ```
    pub fn from_slice_saturating<S: Real>(x: &[S], out: &mut [Self]) {
        let one = (Self::from_f32_saturating, Self::from_f64_saturating);
        Self::from_slice_by(x, out, one, Rules::SATURATING);
    }

    /// A short slice number by number, as making a [`Converter`] takes longer; a long one by the `rules`.
    fn from_slice_by<S: Real>(
        x: &[S],
        out: &mut [Self],
        (from_f32, from_f64): (impl Fn(f32) -> Self, impl Fn(f64) -> Self),
        rules: Rules,
    ) {
        assert_eq!(x.len(), out.len(), "input and output of a conversion have different lengths");
        let few = x.len() < FEW;
        match S::reals(x) {
            Reals::F32(x) if few => x.iter().zip(out).for_each(|(x, y)| *y = from_f32(*x)),
            Reals::F64(x) if few => x.iter().zip(out).for_each(|(x, y)| *y = from_f64(*x)),
            _ => Converter::new(Self::FORMAT, rules).encode_typed(x, out),
        }
    }

    /// Writes to `out` the values of `numbers`: of each what `to_f32` or `to_f64` gives, and in the
    /// types of the crate `half` the nearest.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// ```
    /// use exmy::minifloat::E5M2;
    ///
    /// let mut x = [0.0_f32; 3];
    /// let largest = E5M2::MAX;
    /// E5M2::to_slice(&[largest, -largest, E5M2::INFINITY.unwrap()], &mut x);
    /// assert_eq!(x, [57344.0, -57344.0, f32::INFINITY]);
    /// ```
    pub fn to_slice<T: Real>(numbers: &[Self], out: &mut [T]) {
        let reader = const { CodeReader::new(F::FORMAT) };
        decode_by(reader, Self::FORMAT, cast::as_bits(numbers), out);
    }

    /// Writes to `out` the nearest numbers of this format to those of another: of each what
    /// `from_minifloat` gives.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// ```
    /// use exmy::minifloat::{E2M1, E4M3};
    ///
    /// let x = [0.0625, 1.25, 448.0].map(E4M3::from_f32);
    /// let mut y = [E2M1::MAX; 3];
    /// E2M1::from_minifloat_slice(&x, &mut y);
    /// assert_eq!(y.map(E2M1::to_f32), [0.0, 1.0, 6.0]); // 1.25 is a tie of 1 and 1.5
    /// ```
    pub fn from_minifloat_slice<G: FloatFormat>(x: &[Minifloat<G>], out: &mut [Self]) {
        Converter::new(Self::FORMAT, Rules::DEFAULT).recode_typed(x, out);
    }
}

impl Converter<'_> {
    /// As [`encode_into`](Self::encode_into), to numbers of a type.
    ///
    /// # Panics
    /// As there, and if the type is not of this converter's format.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::minifloat::E4M3;
    /// use exmy::round::Rules;
    ///
    /// let mut x = [E4M3::default(); 2];
    /// Converter::new(E4M3::FORMAT, Rules::SATURATING).encode_typed(&[1e6_f32, -0.3], &mut x);
    /// assert_eq!(x.map(E4M3::to_f32), [448.0, -0.3125]); // these rules saturate
    /// ```
    pub fn encode_typed<S: Real, F: FloatFormat>(&self, x: &[S], out: &mut [Minifloat<F>]) {
        self.check_type::<F>();
        self.encode_into(x, cast::codes_mut(out));
    }

    /// As [`recode_into`](Self::recode_into), from numbers of a type to numbers of another.
    ///
    /// # Panics
    /// As there, and if the second type is not of this converter's format.
    ///
    /// ```
    /// use exmy::slice::Converter;
    /// use exmy::minifloat::{E4M3, E5M2};
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let down = Converter::new(E5M2::FORMAT, Rules::DEFAULT.with_rounding(Rounding::TowardZero));
    /// let mut y = [E5M2::default(); 2];
    /// down.recode_typed(&[E4M3::from_f32(1.875), E4M3::NAN.unwrap()], &mut y);
    /// assert_eq!(y[0].to_f32(), 1.75);
    /// assert!(y[1].is_nan());
    /// ```
    pub fn recode_typed<G: FloatFormat, F: FloatFormat>(
        &self,
        x: &[Minifloat<G>],
        out: &mut [Minifloat<F>],
    ) {
        self.check_type::<F>();
        self.recode_into(Minifloat::<G>::FORMAT, cast::as_bits(x), cast::codes_mut(out));
    }

    #[track_caller]
    fn check_type<F: FloatFormat>(&self) {
        let (to, of) = (self.to, Minifloat::<F>::FORMAT);
        assert!(to == of, "numbers of {of} cannot hold codes of {to}");
    }
}
