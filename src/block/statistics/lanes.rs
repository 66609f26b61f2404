//! The sums and counts of a tile: sixteen lanes, each of every sixteenth column.

use super::Statistics;
use crate::simd::kernel;

/// Lanes of a sum.
const LANES: usize = 16;

/// Numbers that `f64` holds.
pub(super) trait Element: Copy + Default + PartialOrd + Into<f64> {
    const ZERO: Self;
    const INFINITY: Self;
    fn magnitude(self) -> Self;
    /// The largest number that is at most `x`, which is not negative.
    fn below(x: f64) -> Self;
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }

    fn below(x: f64) -> Self {
        let near = x as Self;
        if f64::from(near) > x { Self::from_bits(near.to_bits() - 1) } else { near }
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
}

/// The figures of every sixteenth column of a tile.
#[derive(Default)]
pub(super) struct Lanes<T> {
    count: u64,
    non_finite: [u32; LANES],
    lost: [u32; LANES],
    saturated: [u32; LANES],
    flushed: [u32; LANES],
    amax: [T; LANES],
    max_error: [f64; LANES],
    signal: [f64; LANES],
    noise: [f64; LANES],
}

impl<T: Element> Lanes<T> {
    /// Elements of a row of a tile, from its first column on, their images, and the largest magnitude
    /// there is for each.
    pub(super) fn add_row(&mut self, x: &[T], y: &[T], limits: &[T]) {
        self.count += x.len() as u64;
        compare(self, x, y, limits);
    }

    /// All lanes together.
    pub(super) fn total(&self) -> Statistics {
        let of_all = |counts: &[u32; LANES]| counts.iter().map(|count| u64::from(*count)).sum();
        let most = |most: f64, x: f64| if x > most { x } else { most };
        Statistics {
            count: self.count,
            non_finite: of_all(&self.non_finite),
            lost: of_all(&self.lost),
            saturated: of_all(&self.saturated),
            flushed: of_all(&self.flushed),
            amax: self.amax.iter().fold(0.0, |max, x| most(max, (*x).into())) as f32,
            max_error: self.max_error.iter().fold(0.0, |max, x| most(max, *x)),
            signal: sum(self.signal),
            noise: sum(self.noise),
        }
    }

    /// An element more in each lane. What is left out adds zeros, which changes no sum of squares and
    /// no maximum of magnitudes.
    #[inline(always)]
    fn add(&mut self, x: &[T; LANES], y: &[T; LANES], limits: &[T; LANES]) {
        // Loops of like operations: in one loop over all of them a fourth is lost.
        let (mut before, mut after) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        for l in 0..LANES {
            let was = x[l].magnitude() < T::INFINITY;
            let counts = was & (y[l].magnitude() < T::INFINITY);
            self.non_finite[l] += u32::from(!was);
            self.lost[l] += u32::from(!counts);
            before[l] = if counts { x[l] } else { T::ZERO };
            after[l] = if counts { y[l] } else { T::ZERO };
        }
        for l in 0..LANES {
            let (size, zero) = (before[l].magnitude(), after[l] == T::ZERO);
            self.saturated[l] += u32::from((size > limits[l]) & !zero);
            self.flushed[l] += u32::from((size > T::ZERO) & zero);
            self.amax[l] = if size > self.amax[l] { size } else { self.amax[l] };
        }
        for l in 0..LANES {
            let (x, y): (f64, f64) = (before[l].into(), after[l].into());
            let error = (x - y).abs();
            self.max_error[l] = if error > self.max_error[l] { error } else { self.max_error[l] };
            self.signal[l] += x * x;
            self.noise[l] += error * error;
        }
    }
}

kernel! {
    /// Element `j` is added to lane `j mod 16`.
    fn compare<'a, T: Element>(
        lanes: &'a mut Lanes<T>,
        x: &'a [T],
        y: &'a [T],
        limits: &'a [T],
    ) {
        let mut all = core::mem::take(lanes);
        let (x, y, limits) = (x.as_chunks(), y.as_chunks(), limits.as_chunks());
        for ((x, y), limits) in x.0.iter().zip(y.0).zip(limits.0) {
            all.add(x, y, limits);
        }
        if !x.1.is_empty() {
            // Zeros are no news to any figure.
            let mut rest = [[T::ZERO; LANES]; 3];
            for (rest, last) in rest.iter_mut().zip([x.1, y.1, limits.1]) {
                rest[..last.len()].copy_from_slice(last);
            }
            all.add(&rest[0], &rest[1], &rest[2]);
        }
        *lanes = all;
    }
}

/// Lanes added by halves: lane `i` and lane `i + 8`, then 4, 2, 1.
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
