//! Typed numbers as what the generators of the crate rand draw.
//!
//! The draw is a real number, uniform between 0 and 1 with 53 bits, rounded to the format. So
//! every number of a format comes up as often as its distance to the next one says, also the small
//! ones, which multiples of the precision would leave out.

use rand::distr::{Distribution, OpenClosed01, StandardUniform};
use rand::{Rng, RngExt};

use super::{FloatFormat, Minifloat, Yes};
use crate::round::{Overflow, Rounding};

/// Uniform from 0 on and below 1, rounded toward zero. A format whose largest number is below 1
/// gives that for all draws above.
///
/// ```
/// use exmy::E2M1;
/// use exmy::random::{Philox, PhiloxRng, Stream};
/// use rand::RngExt;
///
/// // Of the numbers of E2M1 only 0 and 0.5 are below 1.
/// let mut rng = PhiloxRng::new(Philox::new(1, Stream::new("doc")));
/// let ones = (0..1000).filter(|_| rng.random::<E2M1>().to_f32() == 0.5).count();
/// assert!((450..550).contains(&ones));
/// ```
impl<F: FloatFormat<Zero = Yes>> Distribution<Minifloat<F>> for StandardUniform {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Minifloat<F> {
        let x: f64 = rng.sample(Self);
        Minifloat::from_f64_with(x, Rounding::TowardZero, Overflow::Finite)
    }
}

/// Uniform above 0 up to and with 1, rounded away from zero: safe to divide by, and to take the
/// logarithm of.
impl<F: FloatFormat<One = Yes>> Distribution<Minifloat<F>> for OpenClosed01 {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Minifloat<F> {
        let x: f64 = rng.sample(Self);
        Minifloat::from_f64_with(x, Rounding::AwayFromZero, Overflow::Finite)
    }
}
