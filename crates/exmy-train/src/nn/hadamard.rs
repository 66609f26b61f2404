//! Hadamard matrices of many orders, and random rotations of whole vectors by them.
//!
//! A Hadamard matrix has elements 1 and -1 and orthogonal rows. Known here are orders `2^k m` with m 1 or one
//! of these:
//!
//! * R. E. A. C. Paley's ("On orthogonal matrices", 1933), from the squares of a field of q elements, q a
//!   power of a prime: `m = q + 1` for q = 3 (mod 4), `m = 2 (q + 1)` for q = 1 (mod 4). These are 12, 20,
//!   28, 36, 44, 52, 60, ...
//! * J. Williamson's ("Hadamard's determinant theorem and the sum of four squares", 1944), of four symmetric
//!   circulant matrices, for the orders up to 184 that are not Paley's: 92, 116, 156 and 172.
//!
//! With powers of two there are 576 = 16 · 36, 4864 = 64 · 76 and 11008 = 64 · 172; of the multiples of 4 up
//! to 256 only 188 and 236 are not there. The matrix of the product is Sylvester's of order `2^k` times that
//! of order m (Kronecker). m is at most 4096, so that no width asks for a matrix that does not fit.

use crate::nn::real::Real;
use exmy::parallel;
use exmy::random::{Philox, Stream};
use exmy::simd::kernel;

/// The orders that are known here, in words.
pub const ORDERS: &str =
    "2^k m with m = 1 or 12, 20, 28, 36, 44, 52, 60, ... up to 4096, to be rotated";

/// The largest m.
const LARGEST: usize = 4096;

/// Numbers that a device multiplies by a matrix together, at least, of vectors that have as many: products of
/// fewer would leave its lanes idle.
const PART: usize = 64;

/// Whether a Hadamard matrix of this order is known here.
pub fn is_known(n: usize) -> bool {
    smallest(n).is_some()
}

/// The Hadamard matrix of this order, row-major, if one is known here.
///
/// ```
/// use exmy_train::nn::hadamard::matrix;
///
/// assert_eq!(matrix(2).unwrap(), [1, 1, 1, -1]);
/// assert!(matrix(172).is_some() && matrix(6).is_none());
/// ```
pub fn matrix(n: usize) -> Option<Vec<i8>> {
    let (m, small) = smallest(n)?;
    let small = small.matrix(m);
    let element = |i: usize, j: usize| {
        let sylvester = if ((i / m) & (j / m)).count_ones().is_multiple_of(2) { 1 } else { -1 };
        sylvester * small[i % m * m + j % m]
    };
    Some((0..n * n).map(|at| element(at / n, at % n)).collect())
}

/// The smallest m of which n is a multiple by a power of two, and how its matrix is made.
fn smallest(n: usize) -> Option<(usize, Construction)> {
    if n == 0 {
        return None;
    }
    let mut parts = (0..=n.trailing_zeros()).rev().map(|k| n >> k);
    parts.find_map(|m| Some((m, Construction::of(m)?)))
}

/// How a matrix is made that is no multiple.
#[derive(Clone, Copy)]
enum Construction {
    One,
    /// By the squares of a field; symmetric of `q = 1 (mod 4)`.
    Paley(Field, bool),
    Williamson(&'static [&'static str; 4]),
}

/// The orders and the first halves of the first rows of the four matrices, which were found by Baumert,
/// Golomb and Hall (92, in 1962), Baumert (116, in 1966), Holzmann, Kharaghani and Tayfeh-Rezaie (156, in
/// 2008) and Williamson (172).
const WILLIAMSON: [(usize, [&str; 4]); 4] = [
    (92, ["++---+---+-+", "+-++-++--+++", "+++---++-+-+", "+++-+++-+---"]),
    (116, ["+++---++--+-+--", "+-+---++--+-+++", "++++-++-+---+++", "++--+--+-+++-++"]),
    (
        156,
        [
            "+++--+-+-----+--++--",
            "+++--++-+---+-+--+--",
            "++++---+--++----+-+-",
            "+---++-+-+-----+++-+",
        ],
    ),
    (
        172,
        [
            "++---++++-+--+--++----",
            "+++-+-++--+-+-++++-+--",
            "++-++++++----+-+--++-+",
            "+---++--++++-+-+++-++-",
        ],
    ),
];

impl Construction {
    fn of(m: usize) -> Option<Self> {
        if m == 1 {
            return Some(Self::One);
        }
        if !m.is_multiple_of(4) || m > LARGEST {
            return None;
        }
        let paley = |q: usize, rest: usize| Field::of(q).filter(|_| q % 4 == rest);
        let skew = || paley(m - 1, 3).map(|field| Self::Paley(field, false));
        let symmetric = || paley(m / 2 - 1, 1).map(|field| Self::Paley(field, true));
        let rows = WILLIAMSON.iter().find(|(order, _)| *order == m).map(|(_, rows)| rows);
        skew().or_else(symmetric).or(rows.map(Self::Williamson))
    }

    /// The matrix of order m, row-major.
    fn matrix(self, m: usize) -> Vec<i8> {
        match self {
            Self::One => vec![1],
            Self::Paley(field, is_symmetric) => paley(field, is_symmetric, m),
            Self::Williamson(rows) => williamson(rows, m),
        }
    }
}

/// Paley's matrix: 1 plus a skew conference matrix, or a symmetric one with each element in four.
fn paley(field: Field, is_symmetric: bool, m: usize) -> Vec<i8> {
    let characters = field.characters();
    // Zeros on the diagonal, signs elsewhere.
    let conference = |i: usize, j: usize| match (i, j) {
        (0, 0) => 0,
        (_, 0) if !is_symmetric => -1,
        (0, _) | (_, 0) => 1,
        _ => characters[field.minus(i - 1, j - 1)],
    };
    let element = |i: usize, j: usize| {
        if !is_symmetric {
            return conference(i, j) + i8::from(i == j);
        }
        match (conference(i / 2, j / 2), i % 2, j % 2) {
            (0, 0, 0) => 1,
            (0, ..) => -1,
            (sign, 1, 1) => -sign,
            (sign, ..) => sign,
        }
    };
    (0..m * m).map(|at| element(at / m, at % m)).collect()
}

/// The matrix of four symmetric circulant ones.
fn williamson(rows: &[&str; 4], m: usize) -> Vec<i8> {
    let n = m / 4;
    // Which of the four stands where, and its sign.
    const PLACES: [[(usize, i8); 4]; 4] = [
        [(0, 1), (1, 1), (2, 1), (3, 1)],
        [(1, -1), (0, 1), (3, -1), (2, 1)],
        [(2, -1), (3, 1), (0, 1), (1, -1)],
        [(3, -1), (2, -1), (1, 1), (0, 1)],
    ];
    let element = |i: usize, j: usize| {
        let (which, sign) = PLACES[i / n][j / n];
        let apart = (i % n).abs_diff(j % n);
        let is_plus = rows[which].as_bytes()[apart.min(n - apart)] == b'+';
        if is_plus { sign } else { -sign }
    };
    (0..m * m).map(|at| element(at / m, at % m)).collect()
}

/// The field of `q = p^k` elements: polynomials over the integers modulo p, whose coefficients are the digits
/// of a number below q in base p.
#[derive(Clone, Copy)]
struct Field {
    p: usize,
    q: usize,
}

impl Field {
    /// That of q elements, q odd, if there is one.
    fn of(q: usize) -> Option<Self> {
        let p = (2..).take_while(|d| d * d <= q).find(|&d| q.is_multiple_of(d)).unwrap_or(q);
        let mut rest = q;
        while p > 2 && rest.is_multiple_of(p) {
            rest /= p;
        }
        (rest == 1 && p > 2).then_some(Self { p, q })
    }

    /// `a + factor * b`.
    fn sum(self, a: usize, factor: usize, b: usize) -> usize {
        let (mut sum, mut place) = (0, 1);
        while place < self.q {
            sum += (a / place + factor * (b / place % self.p)) % self.p * place;
            place *= self.p;
        }
        sum
    }

    fn minus(self, a: usize, b: usize) -> usize {
        self.sum(a, self.p - 1, b)
    }

    /// Of each element 1 if it is a square, -1 if it is none, 0 of zero.
    ///
    /// # Panics
    /// Never: every field has an element whose powers are all others but zero.
    fn characters(self) -> Vec<i8> {
        let top = self.q / self.p;
        // x^k is this polynomial of a lower degree: if powers of x are all, what it makes is a field.
        let powers = |lower: usize| {
            let mut characters = vec![0; self.q];
            let (mut power, mut sign) = (1, 1);
            for _ in 1..self.q {
                if power == 0 || characters[power] != 0 {
                    return None;
                }
                characters[power] = sign;
                sign = -sign;
                power = self.sum(power % top * self.p, power / top, lower);
            }
            Some(characters)
        };
        (1..self.q).find_map(powers).expect("a field has a primitive element")
    }
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
        let (m, small) = smallest(n)?;
        let small = small.matrix(m).into_iter().map(f64::from).collect();
        let random = Philox::new(seed, stream);
        let sign = |i: usize| if random.word(i as u64) >> 31 == 0 { 1.0 } else { -1.0 };
        Some(Self { signs: (0..n).map(sign).collect(), small, m })
    }

    /// That of what the MLPs' last products read, of a model with so many hidden units.
    pub fn of_down(hidden: usize, seed: u64) -> Option<Self> {
        Self::new(hidden, seed, Stream::new("rotation of what down reads"))
    }

    /// Numbers of a vector.
    pub fn width(&self) -> usize {
        self.signs.len()
    }

    /// The diagonal of D.
    pub(crate) fn signs(&self) -> &[f64] {
        &self.signs
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

/// Numbers of a row that are multiplied by a matrix together, of rows of n.
pub(crate) fn part(n: usize) -> Option<usize> {
    let (m, _) = smallest(n)?;
    let wide = |part: &usize| *part >= PART.min(n);
    core::iter::successors(Some(m), |part| Some(2 * part)).find(wide)
}

/// Numbers that a [`DeviceRotation`](crate::nn::device_rotation::DeviceRotation) of rows of n holds; none if
/// the order is not known.
pub fn held(n: usize) -> usize {
    part(n).map_or(0, |part| n + part * part)
}

/// Multiplies rows by `signs`, then replaces numbers a and b that are h apart, within each 2 h, by `a + b`
/// and `a - b`: for h = `part`, 2 `part`, ... below the length of a row.
///
/// # Panics
/// If `x` is no whole rows, or a row not a power of two times `part`.
pub fn butterflies<T: Real>(x: &mut [T], signs: &[T], part: usize) {
    let n = signs.len();
    assert!(x.len().is_multiple_of(n), "{} numbers are no rows of {n}", x.len());
    assert!(
        n.is_multiple_of(part) && (n / part).is_power_of_two(),
        "rows of {n} have no 2^k parts of {part}"
    );
    parallel::for_each_chunk(x, 16 * n, |_, rows| butterfly_rows(rows, signs, part));
}

kernel! {
    fn butterfly_rows<'a, T: Real>(rows: &'a mut [T], signs: &'a [T], part: usize) {
        for row in rows.chunks_exact_mut(signs.len()) {
            row.iter_mut().zip(signs).for_each(|(x, &sign)| *x *= sign);
            let mut half = part;
            while half < signs.len() {
                for pair in row.chunks_exact_mut(2 * half) {
                    let (a, b) = pair.split_at_mut(half);
                    for (a, b) in a.iter_mut().zip(b) {
                        (*a, *b) = (*a + *b, *a - *b);
                    }
                }
                half *= 2;
            }
        }
    }
}
