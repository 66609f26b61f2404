//! The exactly rounded product: `round(alpha * t_a * t_b * sum(a_k * b_k) + beta * c)`, everything
//! inside exact (Kulisch accumulation; OCP MX 1.0 `Dot` and `DotGeneral`, P3109 `BlockDotProduct`).
//!
//! `a_k` and `b_k` are elements times block scales, `t` the tensors' own scales. The fast form turns 32
//! consecutive numbers at a time into integers with one common power of two ([`lanes`]) and sums their
//! products in 64 or 128 bits. It adds those sums to a fixed-point number as wide as the row and column
//! at hand need ([`window`]). Numbers of a group that lie too far apart are multiplied one by one.
//! [`plain_sum`] is the same with a big integer and nothing else; tests compare the two.
//!
//! Special values follow IEEE 754 as if in any order: NaN, infinity times zero and infinities of both
//! signs give NaN; otherwise an infinity wins.

mod lanes;
mod window;

use alloc::vec;
use alloc::vec::Vec;

use super::rows::ExactRows;
use crate::block::big::Big;
use crate::format::Value;
use crate::round::Exact;
use lanes::{IntegerLanes, dot};
use window::{Narrow, Wide};

/// A sum of products, before anything is rounded.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Total {
    Finite(Big),
    Infinite { negative: bool },
    Nan,
}

/// What is exact about a product besides its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    /// Tensor scales and alpha; 1 is no factor.
    pub(super) scales: [f32; 3],
    pub(super) beta: f32,
}

impl Total {
    /// -1, 0 or 1, infinity or NaN: what the total is among special values.
    fn kind(&self) -> f64 {
        match self {
            Self::Nan => f64::NAN,
            Self::Infinite { negative: false } => f64::INFINITY,
            Self::Infinite { negative: true } => f64::NEG_INFINITY,
            Self::Finite(big) if big.is_zero() => 0.0,
            Self::Finite(big) => 1.0 - 2.0 * f64::from(u8::from(big.negative)),
        }
    }

    /// The number to be rounded: [`Exact`] if it is finite, as a value otherwise.
    pub(super) fn finish(self, factors: &Factors, c: f32) -> Result<Exact, Value> {
        let c = if factors.beta == 0.0 { 0.0 } else { c };
        // Only the kinds matter here: three binary32 factors of 1 stay far inside binary64.
        let mut kind = self.kind();
        for scale in factors.scales {
            kind *= f64::from(scale);
        }
        kind += f64::from(factors.beta) * f64::from(c);
        if kind.is_nan() {
            return Err(Value::Nan { negative: false });
        }
        let Self::Finite(mut big) = self else {
            return Err(Value::Infinite { negative: kind < 0.0 });
        };
        if kind.is_infinite() {
            return Err(Value::Infinite { negative: kind < 0.0 });
        }
        for scale in factors.scales.into_iter().filter(|scale| *scale != 1.0) {
            big.multiply(Value::from_f32(scale));
        }
        if factors.beta != 0.0 && c != 0.0 {
            let mut addend = Big::from(Value::from_f32(c));
            addend.multiply(Value::from_f32(factors.beta));
            big = big.plus(&addend);
        }
        Ok(big.exact())
    }
}

/// The sum of the products of two vectors: big integers, one product at a time.
pub(super) fn plain_sum(a: (&ExactRows, &[u64]), b: (&ExactRows, &[u64])) -> Total {
    let (mut total, mut infinities, mut nan) = (Big::ZERO, [false; 2], false);
    for (x, y) in a.1.iter().zip(b.1) {
        let (x, y) = (a.0.value(*x), b.0.value(*y));
        let negative = x.is_sign_negative() != y.is_sign_negative();
        match (x, y) {
            (Value::Finite { .. }, Value::Finite { .. }) => {
                let mut product = Big::from(x);
                product.multiply(y);
                total = total.plus(&product);
            }
            _ if x.is_nan() || y.is_nan() || x.is_zero() || y.is_zero() => nan = true,
            _ => infinities[usize::from(negative)] = true,
        }
    }
    match infinities {
        _ if nan => Total::Nan,
        [true, true] => Total::Nan,
        [false, false] => Total::Finite(total),
        [_, negative] => Total::Infinite { negative },
    }
}

/// The operands of many exact sums, prepared once.
pub(super) struct Ready {
    a: IntegerLanes,
    b: IntegerLanes,
    numbers: [ExactRows; 2],
}

impl Ready {
    pub(super) fn new(a: ExactRows, b: ExactRows) -> Self {
        Self { a: IntegerLanes::new(&a), b: IntegerLanes::new(&b), numbers: [a, b] }
    }

    /// The sum for row `i` and column `j`.
    pub(super) fn sum(&self, i: usize, j: usize) -> Total {
        let (a, b) = (self.a.row(i), self.b.row(j));
        if a.special || b.special {
            let [x, y] = &self.numbers;
            return plain_sum((x, x.row(i)), (y, y.row(j)));
        }
        if a.is_zero() || b.is_zero() {
            return Total::Finite(Big::ZERO);
        }
        // All products, and all their sums, are multiples of 2^low below 2^high.
        let low = a.low + b.low;
        let high = a.high + b.high + usize::BITS as i32 - self.a.k.leading_zeros() as i32;
        if high - low < 127 {
            let mut sum = Narrow(0);
            dot(&a, &b, low, &mut sum);
            return Total::Finite(Big::from_i128(sum.0, low));
        }
        let mut sum = Wide::new((high - low) as usize);
        dot(&a, &b, low, &mut sum);
        Total::Finite(sum.into_big(low))
    }
}

/// As many words as a number of bits needs, all zero.
fn words(bits: usize) -> Vec<u64> {
    vec![0; bits.div_ceil(64)]
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::gemm::Operand;
    use crate::random::{Philox, Stream};
    use crate::slice::View;

    /// Codes of every kind of range: near each other, far apart, with zeros and special values.
    fn codes(format: Format, len: usize, spread: u64, seed: u64) -> Vec<u16> {
        let random = Philox::new(seed, Stream::new("exact sums"));
        let mask = (1 << format.bits()) - 1;
        let code = |i| {
            let word = random.word64(i);
            let near = format.one_code().unwrap_or(1).wrapping_add(word % 64);
            let code = if word >> 60 == 0 {
                0
            } else if word >> 40 & 63 < spread {
                word
            } else {
                near
            };
            (code & mask) as u16
        };
        (0..len as u64).map(code).collect()
    }

    #[test]
    fn groups_and_windows_equal_big_integers() {
        let formats: [Format; 7] = ["e4m3", "e5m2", "int8", "bf16", "f16", "e8m3", "e11m4"]
            .map(|name| name.parse().unwrap());
        for (x, y) in formats.iter().flat_map(|x| formats.map(|y| (*x, y))) {
            for (k, spread) in [(0, 1), (1, 64), (31, 0), (70, 2), (257, 64)] {
                let (a, b) = (codes(x, 3 * k, spread, 1), codes(y, 2 * k, spread, 2));
                let a = Operand::codes16(x, View::new(&a, 3, k)).unwrap();
                let b = Operand::codes16(y, View::new(&b, 2, k)).unwrap();
                let (a, b) = (ExactRows::rows(&a), ExactRows::rows(&b));
                let ready = Ready::new(a.clone(), b.clone());
                for (i, j) in (0..3).flat_map(|i| [(i, 0), (i, 1)]) {
                    let plain = plain_sum((&a, a.row(i)), (&b, b.row(j)));
                    let (fast, factors) =
                        (ready.sum(i, j), Factors { scales: [1.0; 3], beta: 0.0 });
                    // Compared as numbers: one value has many exponents.
                    let difference = match (&fast, &plain) {
                        (Total::Finite(fast), Total::Finite(plain)) => {
                            let mut minus = plain.clone();
                            minus.negative = !minus.negative;
                            fast.plus(&minus).is_zero()
                        }
                        _ => {
                            fast.clone().finish(&factors, 0.0).is_err()
                                && plain.kind().to_bits() == fast.kind().to_bits()
                        }
                    };
                    assert!(difference, "{x} times {y}, {k} products: {fast:?} and {plain:?}");
                }
            }
        }
    }
}
