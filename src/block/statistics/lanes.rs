//! The figures of pieces of rows: sixteen lanes, each of every sixteenth element of a piece.
//!
//! A piece is [summed](Statistics) in binary32. The bits of its largest magnitudes then show
//! whether anything could overflow or be lost to underflow; if so, it is summed again in binary64.
//! The former has no branch, and serves both numbers that stand next to their images and
//! [elements](crate::block::kernel::codes_and_statistics) that are just being rounded.

use super::{PIECE, Statistics};
use crate::simd::kernel;

/// Lanes of a sum.
pub(crate) const LANES: usize = 16;

const MAGNITUDE: u32 = 0x7FFF_FFFF;
/// The bits of 2^-60 and 2^60. Sixteen squares of a lane are at most 2^124, and what underflow takes
/// from them is at most 2^-146, or 2^-26 of their sum.
const LEAST: u32 = (127 - 60) << 23;
const MOST: u32 = (127 + 60) << 23;

/// Numbers that `f64` holds.
pub(crate) trait Element: Copy + Default + PartialOrd + Into<f64> {
    const ZERO: Self;
    const INFINITY: Self;
    fn magnitude(self) -> Self;
    /// The largest number that is at most `x`, which is not negative.
    fn below(x: f64) -> Self;
    /// The sums of a piece in binary32, not a number where these do not do, and its other figures.
    fn quick(lanes: &mut Lanes, x: &[Self], y: &[Self], limits: &[Self]) -> Sums;
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn below(x: f64) -> Self {
        let near = x as Self;
        if f64::from(near) > x { Self::from_bits(near.to_bits() - 1) } else { near }
    }

    fn quick(lanes: &mut Lanes, x: &[Self], y: &[Self], limits: &[Self]) -> Sums {
        quick(lanes, x, y, limits)
    }
}

impl Element for f64 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }

    fn below(x: f64) -> Self {
        x
    }

    fn quick(_: &mut Lanes, _: &[Self], _: &[Self], _: &[Self]) -> Sums {
        Sums::CARE
    }
}

/// The sums of squares of a piece, or of more than one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    signal: f64,
    noise: f64,
}

impl Sums {
    /// In place of those of a piece that binary32 does not do for.
    const CARE: Self = Self { signal: f64::NAN, noise: f64::NAN };

    pub(crate) fn need_care(&self) -> bool {
        self.signal.is_nan()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.signal += other.signal;
        self.noise += other.noise;
    }
}

/// Counts and maxima of any number of pieces.
#[derive(Default)]
pub(crate) struct Lanes {
    saturated: [u32; LANES],
    flushed: [u32; LANES],
    /// As bits, which are ordered as magnitudes are.
    amax: [u32; LANES],
    max_error: [u32; LANES],
    /// Those of pieces summed in binary64.
    others: Statistics,
}

impl Lanes {
    /// Adds a piece: at most [`PIECE`] elements of a row, their images, and the largest magnitude
    /// there is for each.
    pub(in crate::block) fn add<T: Element>(&mut self, x: &[T], y: &[T], limits: &[T]) -> Sums {
        debug_assert!(x.len() <= PIECE);
        let sums = T::quick(self, x, y, limits);
        if sums.need_care() { self.add_with_care(x, y, limits) } else { sums }
    }

    /// The same of one whose quick sums need care.
    #[cold]
    pub(crate) fn add_with_care<T: Element>(&mut self, x: &[T], y: &[T], limits: &[T]) -> Sums {
        let found = careful(x, y, limits);
        self.others = self.others.and(&Statistics { signal: 0.0, noise: 0.0, ..found });
        Sums { signal: found.signal, noise: found.noise }
    }

    /// The figures of `count` elements whose squares have these sums.
    pub(crate) fn total(&self, count: usize, Sums { signal, noise }: Sums) -> Statistics {
        let of_all = |counts: &[u32; LANES]| counts.iter().map(|count| u64::from(*count)).sum();
        let most = |of: &[u32; LANES]| f32::from_bits(of.iter().copied().fold(0, u32::max));
        let quick = Statistics {
            saturated: of_all(&self.saturated),
            flushed: of_all(&self.flushed),
            amax: most(&self.amax),
            max_error: most(&self.max_error).into(),
            ..Statistics::default()
        };
        Statistics { count: count as u64, signal, noise, ..quick.and(&self.others) }
    }
}

/// A piece while it passes by.
#[derive(Clone, Copy)]
pub(crate) struct Passing {
    signal: [f32; LANES],
    noise: [f32; LANES],
    amax: [u32; LANES],
    max_error: [u32; LANES],
    saturated: [u32; LANES],
    flushed: [u32; LANES],
}

impl Passing {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let (zeros, none) = ([0.0; LANES], [0; LANES]);
        Self {
            signal: zeros,
            noise: zeros,
            amax: none,
            max_error: none,
            saturated: none,
            flushed: none,
        }
    }

    /// An element more in each lane; of images the signs are those of the elements and may be left
    /// out of both.
    #[inline(always)]
    pub(crate) fn add(&mut self, x: &[f32; LANES], y: &[f32; LANES], limits: &[f32; LANES]) {
        // Loops of like operations, which the compiler takes for vectors.
        for l in 0..LANES {
            let (size, error) = (x[l].to_bits() & MAGNITUDE, x[l] - y[l]);
            let wrong = error.to_bits() & MAGNITUDE;
            self.amax[l] = if size > self.amax[l] { size } else { self.amax[l] };
            self.max_error[l] = if wrong > self.max_error[l] { wrong } else { self.max_error[l] };
            self.signal[l] += x[l] * x[l];
            self.noise[l] += error * error;
        }
        for l in 0..LANES {
            let (zero, size) = (y[l] == 0.0, x[l].abs());
            self.saturated[l] += u32::from((size > limits[l]) & !zero);
            self.flushed[l] += u32::from((size > 0.0) & zero);
        }
    }

    /// The sums, and the rest to `lanes`; neither where binary32 does not do.
    #[inline(always)]
    pub(crate) fn finish(&self, lanes: &mut Lanes) -> Sums {
        let mut beyond = 0;
        for l in 0..LANES {
            // Infinities and NaN are beyond, too.
            let outside = |bits: u32| (bits != 0) & (bits.wrapping_sub(LEAST) > MOST - LEAST);
            beyond |= u32::from(outside(self.amax[l]) | outside(self.max_error[l]));
        }
        if beyond != 0 {
            return Sums::CARE;
        }
        for l in 0..LANES {
            lanes.amax[l] = lanes.amax[l].max(self.amax[l]);
            lanes.max_error[l] = lanes.max_error[l].max(self.max_error[l]);
            lanes.saturated[l] += self.saturated[l];
            lanes.flushed[l] += self.flushed[l];
        }
        Sums { signal: sum(self.signal.map(f64::from)), noise: sum(self.noise.map(f64::from)) }
    }
}

kernel! {
    fn quick<'a>(
        lanes: &'a mut Lanes,
        x: &'a [f32],
        y: &'a [f32],
        limits: &'a [f32],
    ) -> Sums {
        let mut piece = Passing::new();
        let (x, y, limits) = (x.as_chunks(), y.as_chunks(), limits.as_chunks());
        for ((x, y), limits) in x.0.iter().zip(y.0).zip(limits.0) {
            piece.add(x, y, limits);
        }
        if !x.1.is_empty() {
            // Zeros are no news to any figure.
            let mut rest = [[0.0; LANES]; 3];
            for (rest, last) in rest.iter_mut().zip([x.1, y.1, limits.1]) {
                rest[..last.len()].copy_from_slice(last);
            }
            piece.add(&rest[0], &rest[1], &rest[2]);
        }
        piece.finish(lanes)
    }
}

/// The figures of a piece, in binary64.
fn careful<T: Element>(x: &[T], y: &[T], limits: &[T]) -> Statistics {
    let mut found = Statistics::default();
    let (mut signal, mut noise) = ([0.0; LANES], [0.0; LANES]);
    let mut amax = T::ZERO;
    for (i, ((x, y), limit)) in x.iter().zip(y).zip(limits).enumerate() {
        let (size, zero) = (x.magnitude(), *y == T::ZERO);
        let (was, is) = (size < T::INFINITY, y.magnitude() < T::INFINITY);
        found.non_finite += u64::from(!was);
        found.lost += u64::from(!(was & is));
        if !(was & is) {
            continue;
        }
        found.saturated += u64::from((size > *limit) & !zero);
        found.flushed += u64::from((size > T::ZERO) & zero);
        amax = if size > amax { size } else { amax };
        let (x, y): (f64, f64) = ((*x).into(), (*y).into());
        let error = (x - y).abs();
        found.max_error = found.max_error.max(error);
        signal[i % LANES] += x * x;
        noise[i % LANES] += error * error;
    }
    let amax: f64 = amax.into();
    Statistics { amax: amax as f32, signal: sum(signal), noise: sum(noise), ..found }
}

/// Lanes added by halves: lane `i` and lane `i + 8`, then 4, 2, 1.
#[inline(always)]
fn sum(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}
