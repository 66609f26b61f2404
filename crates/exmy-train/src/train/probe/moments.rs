//! Figures of lists of numbers, in f64 and from the first to the last.

use exmy::slice::View;

/// Sums of the first four powers, about 0; enough for tensors whose mean is small beside their
/// spread or is taken away by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Powers {
    pub(super) count: f64,
    sums: [f64; 4],
}

impl Powers {
    pub(super) fn add(&mut self, x: f64) {
        let square = x * x;
        let powers = [x, square, square * x, square * square];
        self.count += 1.0;
        self.sums.iter_mut().zip(powers).for_each(|(sum, power)| *sum += power);
    }

    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut all = Self::default();
        values.into_iter().for_each(|x| all.add(x));
        all
    }

    pub(super) fn and(mut self, other: &Self) -> Self {
        self.count += other.count;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum += more);
        self
    }

    pub(super) fn mean(&self) -> f64 {
        self.sums[0] / self.count
    }

    /// Mean square of the differences from the mean.
    pub(super) fn variance(&self) -> f64 {
        let mean = self.mean();
        (self.sums[1] / self.count - mean * mean).max(0.0)
    }

    /// `mean((x - m)^4) / mean((x - m)^2)^2 - 3`, 0 for a normal distribution; NaN where all are
    /// equal.
    pub(super) fn excess_kurtosis(&self) -> f64 {
        let [s1, s2, s3, s4] = self.sums.map(|sum| sum / self.count);
        let m = s1;
        let fourth = s4 - 4.0 * m * s3 + 6.0 * m * m * s2 - 3.0 * m * m * m * m;
        let second = s2 - m * m;
        // What is left of equal numbers is rounding.
        if second <= 1e-14 * s2 { f64::NAN } else { fourth / (second * second) - 3.0 }
    }
}

/// The number below which a share `q` of sorted numbers lies: the one at `ceil(q n)`, counted from 1.
pub(super) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = libm::ceil(q * sorted.len() as f64).max(1.0) as usize;
    sorted.get(place - 1).copied().unwrap_or(f64::NAN)
}

/// In ascending order; NaN last.
pub(super) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// To four significant digits: what lists that are written every few steps need.
pub(super) fn brief(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

/// The elements of a matrix, row by row.
pub(super) fn elements(x: View<'_, f32>) -> impl Iterator<Item = f64> + '_ {
    (0..x.rows()).flat_map(move |i| (0..x.cols()).map(move |j| f64::from(x.at(i, j))))
}

/// The largest magnitude of each column.
pub(super) fn column_maxima(x: View<'_, f32>) -> Vec<f64> {
    let mut most = vec![0.0_f64; x.cols()];
    for i in 0..x.rows() {
        for (j, most) in most.iter_mut().enumerate() {
            *most = most.max(f64::from(x.at(i, j)).abs());
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 1, 2, 3, 6: mean 3, differences -2, -1, 0, 3, squares 14, fourth powers 98.
        let some = Powers::of([1.0, 2.0, 3.0, 6.0]);
        assert_eq!((some.mean(), some.variance()), (3.0, 3.5));
        assert!((some.excess_kurtosis() - (24.5 / 12.25 - 3.0)).abs() < 1e-12);
        let halves = Powers::of([1.0, 2.0]).and(&Powers::of([3.0, 6.0]));
        assert_eq!(halves, some);
        assert!(Powers::of([0.3; 7]).excess_kurtosis().is_nan());
        // Two values, equally often: -2; one of n: n - 2 + 1 / (n - 1) - 3.
        assert!((Powers::of([-1.0, 1.0]).excess_kurtosis() + 2.0).abs() < 1e-12);
        let spike = Powers::of((0..100).map(|i| f64::from(i / 99)));
        assert!((spike.excess_kurtosis() - (98.0 + 1.0 / 99.0 - 3.0)).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_elements() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            [0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&hundred, q)),
            [1.0, 50.0, 99.0, 100.0, 100.0]
        );
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(sorted(vec![3.0, -1.0, 2.0]), [-1.0, 2.0, 3.0]);
        assert_eq!([123.456, 0.0, -0.000_123_49].map(brief), [123.5, 0.0, -0.000_123_5]);
    }

    #[test]
    fn columns() {
        let x = View::new(&[1.0_f32, -5.0, 0.0, -2.0, 3.0, 0.0], 2, 3);
        assert_eq!(column_maxima(x), [2.0, 5.0, 0.0]);
        assert_eq!(elements(x.t()).collect::<Vec<_>>(), [1.0, -2.0, -5.0, 3.0, 0.0, 0.0]);
    }
}
