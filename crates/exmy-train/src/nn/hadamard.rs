//! Hadamard matrices of many orders, and random rotations of whole vectors by them.
//!
//! A Hadamard matrix has elements 1 and -1 and orthogonal rows. Known here are orders `2^k m` with m 1 or one
//! of R. E. A. C. Paley's ("On orthogonal matrices", 1933), from the quadratic residues of a prime q:
//! `m = q + 1` for q = 3 (mod 4), `m = 2 (q + 1)` for q = 1 (mod 4). These are 12, 20, 28, 36, 44, 60, ...;
//! with powers of two there are 576 = 16 · 36, 896 = 32 · 28 and 4864 = 64 · 76. The matrix of the product is
//! Sylvester's of order `2^k` times that of order m (Kronecker).

use exmy::random::{Philox, Stream};

/// The orders that are known here, in words.
pub const ORDERS: &str = "2^k m with m = 1 or 12, 20, 28, 36, 44, 60, ..., to be rotated";

/// Whether a Hadamard matrix of this order is known here.
pub fn is_known(n: usize) -> bool {
    n > 0 && order(n).is_some()
}

/// Whether there is one, and its m: the smallest that goes.
fn order(n: usize) -> Option<usize> {
    let twos = n.trailing_zeros();
    (0..=twos).rev().map(|k| n >> k).find(|&m| m == 1 || m.is_multiple_of(4) && paley(m).is_some())
}

fn is_prime(q: usize) -> bool {
    q > 1 && (2..).take_while(|d| d * d <= q).all(|d| !q.is_multiple_of(d))
}

/// Paley's matrix of order m, row-major, if there is a prime for it.
fn paley(m: usize) -> Option<Vec<f64>> {
    let (first, second) = (m - 1, m / 2 - 1);
    let (q, symmetric) = if is_prime(first) && first % 4 == 3 {
        (first, false)
    } else if is_prime(second) && second % 4 == 1 {
        (second, true)
    } else {
        return None;
    };
    let mut residues = vec![-1.0; q];
    residues[0] = 0.0;
    (1..q).for_each(|x| residues[x * x % q] = 1.0);
    // Zeros on the diagonal; symmetric for q = 1 (mod 4), skew for 3.
    let conference = |i: usize, j: usize| match (i, j) {
        (0, 0) => 0.0,
        (0, _) => 1.0,
        (_, 0) => {
            if symmetric {
                1.0
            } else {
                -1.0
            }
        }
        _ => residues[(i + q - j) % q],
    };
    let element = |i: usize, j: usize| {
        if !symmetric {
            return conference(i, j) + f64::from(u8::from(i == j));
        }
        // Each element of the conference matrix becomes two rows of two.
        let last = (i % 2, j % 2) == (1, 1);
        let sign = if last { -1.0 } else { 1.0 };
        match conference(i / 2, j / 2) {
            0.0 => {
                if (i % 2, j % 2) == (0, 0) {
                    1.0
                } else {
                    -1.0
                }
            }
            one => one * sign,
        }
    };
    Some((0..m * m).map(|at| element(at / m, at % m)).collect())
}

/// A rotation `x Q` of vectors of one length: `Q = D H / √n`, D a diagonal of random signs.
#[derive(Clone, Debug)]
pub struct Rotation {
    signs: Vec<f64>,
    /// Of order m.
    small: Vec<f64>,
    m: usize,
}

impl Rotation {
    /// Of vectors of n numbers; `None` if no Hadamard matrix of that order is known here.
    ///
    /// ```
    /// use exmy::random::Stream;
    /// use exmy_train::nn::hadamard::Rotation;
    ///
    /// let mut x = [3.0, 0.0, 0.0, 0.0];
    /// Rotation::new(4, 1, Stream::new("example")).unwrap().apply(&mut x);
    /// assert_eq!(x.map(f64::abs), [1.5; 4]);
    /// assert!(Rotation::new(6, 1, Stream::new("example")).is_none());
    /// ```
    pub fn new(n: usize, seed: u64, stream: Stream) -> Option<Self> {
        if n == 0 {
            return None;
        }
        let m = order(n)?;
        let small = if m == 1 { vec![1.0] } else { paley(m)? };
        let random = Philox::new(seed, stream);
        let sign = |i: usize| if random.word(i as u64) >> 31 == 0 { 1.0 } else { -1.0 };
        Some(Self { signs: (0..n).map(sign).collect(), small, m })
    }

    /// That of what the MLPs' last products read, of a model with so many hidden units.
    pub fn of_down(hidden: usize, seed: u64) -> Option<Self> {
        Self::new(hidden, seed, Stream::new("rotation of what down reads"))
    }

    /// The matrix Q, row-major.
    pub fn matrix(&self) -> Vec<f64> {
        let n = self.width();
        let mut matrix = vec![0.0; n * n];
        for (i, row) in matrix.chunks_exact_mut(n).enumerate() {
            row[i] = 1.0;
            self.apply(row);
        }
        matrix
    }

    /// Numbers of a vector.
    pub fn width(&self) -> usize {
        self.signs.len()
    }

    /// Rotates a vector.
    ///
    /// # Panics
    /// If it has another length.
    pub fn apply(&self, x: &mut [f64]) {
        let (n, m) = (self.signs.len(), self.m);
        assert_eq!(x.len(), n, "a vector has the rotation's length");
        x.iter_mut().zip(&self.signs).for_each(|(x, sign)| *x *= sign);
        let mut half = m;
        while half < n {
            for pair in x.chunks_exact_mut(2 * half) {
                let (a, b) = pair.split_at_mut(half);
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
        let root = libm::sqrt(n as f64);
        let mut sums = vec![0.0; m];
        for part in x.chunks_exact_mut(m) {
            sums.fill(0.0);
            for (x, row) in part.iter().zip(self.small.chunks_exact(m)) {
                sums.iter_mut().zip(row).for_each(|(sum, h)| *sum += x * h);
            }
            part.iter_mut().zip(&sums).for_each(|(x, sum)| *x = sum / root);
        }
    }
}
