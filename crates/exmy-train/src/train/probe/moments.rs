//! Figures of lists of numbers, in f64 and from the first to the last.

use exmy::slice::View;

/// Sums of the first four powers, about 0; enough for tensors whose mean is small compared with their
/// spread or is taken away by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Powers {
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

    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut all = Self::default();
        values.into_iter().for_each(|x| all.add(x));
        all
    }

    pub fn and(mut self, other: &Self) -> Self {
        self.count += other.count;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum += more);
        self
    }

    pub fn mean(&self) -> f64 {
        self.sums[0] / self.count
    }

    /// Mean square of the differences from the mean.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        (self.sums[1] / self.count - mean * mean).max(0.0)
    }

    /// `mean((x - m)^4) / mean((x - m)^2)^2 - 3`, 0 for a normal distribution; NaN where all are
    /// equal.
    pub fn excess_kurtosis(&self) -> f64 {
        let [s1, s2, s3, s4] = self.sums.map(|sum| sum / self.count);
        let m = s1;
        let fourth = s4 - 4.0 * m * s3 + 6.0 * m * m * s2 - 3.0 * m * m * m * m;
        let second = s2 - m * m;
        // What is left of equal numbers is rounding.
        if second <= 1e-14 * s2 { f64::NAN } else { fourth / (second * second) - 3.0 }
    }
}

/// The number below which a share `q` of sorted numbers lies: the one at `ceil(q n)`, counted from 1.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = libm::ceil(q * sorted.len() as f64).max(1.0) as usize;
    sorted.get(place - 1).copied().unwrap_or(f64::NAN)
}

/// In ascending order; NaN last.
pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// To four significant digits: what lists that are written every few steps need.
pub fn brief(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

/// The elements of a matrix, row by row.
pub fn elements(x: View<'_, f32>) -> impl Iterator<Item = f64> + '_ {
    (0..x.rows()).flat_map(move |i| (0..x.cols()).map(move |j| f64::from(x.at(i, j))))
}

/// The largest magnitude of each column.
pub fn column_maxima(x: View<'_, f32>) -> Vec<f64> {
    let mut most = vec![0.0_f64; x.cols()];
    for i in 0..x.rows() {
        for (j, most) in most.iter_mut().enumerate() {
            *most = most.max(f64::from(x.at(i, j)).abs());
        }
    }
    most
}
