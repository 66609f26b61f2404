//! Operands aimed at results: exact sums, products and quotients that lie a last bit beside the middle
//! between two numbers, or beside a number, and results around the thresholds of overflow and underflow.
//!
//! Special significands seldom give them. A multiplier that forgets what lies far below its rounding bit
//! passes millions of other cases: of 2p bits of a product all but the last must be a one and zeros. Such
//! products are found by inverting one factor modulo a power of two.

use crate::format::{Format, Sign, Value, low_bits};
use crate::random::{Philox, Stream};
use crate::round::{Exact, Overflow, Rounding};
use crate::vectors::function::{Kind, TestFunction};
use crate::vectors::operation::Operation;

/// What operands are solved for.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    operation: Operation,
    operands: [Format; 3],
    to: Format,
    philox: Philox,
}

/// `(-1)^negative * significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Number {
    fn bits(self) -> u32 {
        128 - self.significand.leading_zeros()
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }

    fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }

    /// The sum where its digits are few enough; else the larger one.
    fn plus(self, other: Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let place = |x: Self| {
            let shift = (x.exponent - exponent) as u32;
            let number = (x.bits() + shift < 126).then(|| (x.significand << shift) as i128)?;
            Some(if x.negative { -number } else { number })
        };
        let Some((a, b)) = place(self).zip(place(other)) else {
            let top = |x: Self| x.exponent + x.bits() as i32;
            return if top(self) >= top(other) { self } else { other };
        };
        Self { negative: a + b < 0, significand: (a + b).unsigned_abs(), exponent }
    }

    /// The code of a format that is nearest toward zero.
    fn code(self, format: Format) -> u64 {
        let negative = self.negative && format.is_signed();
        let Self { significand, exponent, .. } = self;
        let exact = Exact { negative, significand, exponent, sticky: false };
        format.round(exact, Rounding::TowardZero, 0, Overflow::Finite).code
    }
}

/// The inverse of an odd number modulo 2^64.
fn inverse(odd: u64) -> u64 {
    // Each step doubles the right bits, of which an odd number is its own inverse in three.
    (0..5).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// Words of one case.
struct Draw<'a> {
    philox: &'a Philox,
    at: u64,
}

impl Draw<'_> {
    fn word(&mut self) -> u64 {
        self.at += 1;
        self.philox.word64(self.at - 1)
    }

    fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(count)) >> 64) as u64
    }

    fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((i64::from(high) - i64::from(low) + 1).max(1) as u64) as i32
    }

    /// A significand of so many bits, the first one set.
    fn significand(&mut self, bits: u32) -> u64 {
        1 << (bits - 1) | self.word() & low_bits(bits - 1)
    }

    /// -1, 0 or 1, or a little more.
    fn little(&mut self) -> i64 {
        [-3, -2, -1, -1, 0, 1, 1, 2, 3][self.below(9) as usize]
    }

    /// An exponent of a format's normal numbers, the ends more likely.
    fn exponent(&mut self, format: Format) -> i32 {
        let (low, high) = (format.emin(), format.emax());
        match self.below(4) {
            0 => self.between(low, (low + 2).min(high)),
            1 => self.between((high - 2).max(low), high),
            _ => self.between(low, high),
        }
    }
}

impl Aim {
    /// `None` for an operation that is not solved for an operand, or formats that are integers.
    pub(super) fn new(function: &TestFunction, seed: u64) -> Option<Self> {
        use Operation as O;
        let operation = function.operation();
        if !matches!(operation, O::Add | O::Sub | O::Mul | O::Div | O::MulAdd) {
            return None;
        }
        let format = |kind: &Kind| match kind {
            Kind::Format(format) => {
                let fits = !matches!(format.sign(), Sign::TwosComplement) && format.precision() > 1;
                fits.then_some(*format)
            }
            _ => None,
        };
        let to = format(&function.result())?;
        let mut operands = [to; 3];
        for (operand, kind) in operands.iter_mut().zip(function.operands()) {
            *operand = format(kind)?;
        }
        Some(Self { operation, operands, to, philox: Philox::new(seed, Stream::new("aimed")) })
    }

    /// The operands of a case.
    pub(super) fn operands(&self, index: u64) -> [u128; 3] {
        let mut draw = Draw { philox: &self.philox, at: index.wrapping_mul(64) };
        let solved = match draw.below(3) {
            0 => None,
            _ => self.beside_a_middle(&mut draw),
        };
        let mut codes = solved.unwrap_or_else(|| self.at_a_threshold(&mut draw));
        // The other side of the point, or the point itself.
        let last = if self.operation == Operation::MulAdd { 2 } else { 1 };
        let (solved, next) = match self.operation {
            Operation::Div => (0, draw.below(2)),
            _ => (last, draw.below(2)),
        };
        let magnitude = codes[solved] & self.operands[solved].magnitude_mask();
        if magnitude < self.operands[solved].max_code() {
            codes[solved] += next;
        }
        codes.map(u128::from)
    }

    /// A number of a format with a significand and an exponent of the first bit.
    fn number(significand: u64, top: i32, negative: bool) -> Number {
        let bits = 64 - significand.leading_zeros() as i32;
        Number { negative, significand: significand.into(), exponent: top - bits + 1 }
    }

    fn beside_a_middle(&self, draw: &mut Draw<'_>) -> Option<[u64; 3]> {
        let [fa, fb, fc] = self.operands;
        let [pa, pb, pt] = [fa, fb, self.to].map(Format::precision);
        let negative = [draw.below(2) == 1, draw.below(2) == 1];
        // Exponents of two factors, or of a divisor, whose result lies among the normal numbers.
        let result = draw.exponent(self.to);
        let split = |draw: &mut Draw<'_>, sign: i32| {
            let (low, high) = if sign > 0 {
                (fa.emin().max(result - fb.emax()), fa.emax().min(result - fb.emin()))
            } else {
                (fa.emin().max(result + fb.emin()), fa.emax().min(result + fb.emax()))
            };
            let first = draw.between(low.min(high), high);
            [first, sign * (result - first)]
        };
        match self.operation {
            Operation::Mul => {
                for _ in 0..8 {
                    let a = draw.significand(pa) | 1;
                    let dropped = (pa + pb).checked_sub(pt + draw.below(2) as u32)?;
                    if !(1..=pb.min(62)).contains(&dropped) {
                        return None;
                    }
                    let point = draw.below(2) << (dropped - 1);
                    let rest = point.wrapping_add_signed(draw.little());
                    let low = inverse(a).wrapping_mul(rest) & low_bits(dropped);
                    let high = draw.significand(pb) & !low_bits(dropped);
                    let b = high | low;
                    let product = u128::from(a) * u128::from(b);
                    if b >> (pb - 1) != 1 || 128 - product.leading_zeros() != pt + dropped {
                        continue;
                    }
                    let [x, y] = split(draw, 1);
                    let a = Self::number(a, x, negative[0]).code(fa);
                    return Some([a, Self::number(b, y, negative[1]).code(fb), 0]);
                }
                None
            }
            // q b = a 2^s + d, with a quotient q of one bit more than the result has.
            Operation::Div => {
                for _ in 0..8 {
                    let b = draw.significand(pb) | 1;
                    let places = (pt + 1 + pb).checked_sub(pa + draw.below(2) as u32)?;
                    if !(1..=(pt + 1).min(62)).contains(&places) {
                        return None;
                    }
                    let d = 2 * draw.little() + 1;
                    let low = inverse(b).wrapping_mul(d as u64) & low_bits(places);
                    let q = draw.significand(pt + 1) & !low_bits(places) | low;
                    let product = u128::from(q) * u128::from(b);
                    let a = product.wrapping_add_signed(-i128::from(d)) >> places;
                    if q >> pt != 1 || 128 - a.leading_zeros() != pa {
                        continue;
                    }
                    let [x, y] = split(draw, -1);
                    let a = Self::number(a as u64, x, negative[0]).code(fa);
                    return Some([a, Self::number(b, y, negative[1]).code(fb), 0]);
                }
                None
            }
            // The addend takes the product to the middle next to it.
            Operation::MulAdd => {
                let [x, y] = split(draw, 1);
                let a = Self::number(draw.significand(pa), x, negative[0]);
                let b = Self::number(draw.significand(pb), y, negative[1]);
                let product = a.times(b);
                let dropped = product.bits().checked_sub(pt).filter(|dropped| *dropped > 0)?;
                let middle = product.significand >> dropped << dropped | 1 << (dropped - 1);
                let middle = Number { significand: middle, ..product };
                Some([a.code(fa), b.code(fb), middle.plus(product.negated()).code(fc)])
            }
            // Half a last place of the sum, or three halves.
            _ => {
                let a = Self::number(draw.significand(pa), draw.exponent(fa), negative[0]);
                let half = Number {
                    negative: negative[1],
                    significand: 1 + 2 * u128::from(draw.below(2)),
                    exponent: a.exponent + a.bits() as i32 - pt as i32 - 1,
                };
                let b = half.code(fb);
                let less = u64::from(b & fb.magnitude_mask() != 0) * draw.below(2);
                Some([a.code(fa), b - less, 0])
            }
        }
    }

    /// A result of which something changes on one side: the largest number and the middle beyond it, the
    /// smallest normal and the smallest number and the middles below them, or any number and the next middle.
    fn threshold(&self, draw: &mut Draw<'_>) -> Number {
        let finite = |value: Value| match value {
            Value::Finite { significand, exponent, .. } => (significand.max(1), exponent),
            _ => (1, 0),
        };
        let largest = finite(self.to.max());
        let normal = finite(self.to.min_normal().unwrap_or(self.to.min_positive()));
        let least = finite(self.to.min_positive());
        let any = finite(self.to.decode(draw.word() % (self.to.max_code() + 1)));
        let (significand, exponent) = match draw.below(8) {
            0..3 => largest,
            3 | 4 => normal,
            5 => least,
            _ => any,
        };
        // A quarter of a last place is a middle's middle.
        let quarters = 4 * u128::from(significand);
        let moved = [0, 2, 2, 1, 3, -1, -2][draw.below(7) as usize];
        Number {
            negative: draw.below(2) == 1,
            significand: quarters.wrapping_add_signed(moved).max(1),
            exponent: exponent - 2,
        }
    }

    fn at_a_threshold(&self, draw: &mut Draw<'_>) -> [u64; 3] {
        let [fa, fb, fc] = self.operands;
        let point = self.threshold(draw);
        let top = point.exponent + point.bits() as i32 - 1;
        let some = |draw: &mut Draw<'_>, format: Format, low: i32, high: i32| {
            let (low, high) = (low.max(format.emin()), high.min(format.emax()));
            let exponent = draw.between(low.min(high), high);
            Self::number(draw.significand(format.precision()), exponent, draw.below(2) == 1)
        };
        match self.operation {
            Operation::Mul => {
                let a = some(draw, fa, top - fb.emax(), top - fb.emin());
                let b = Number {
                    negative: point.negative != a.negative,
                    significand: (point.significand << 66) / a.significand,
                    exponent: point.exponent - 66 - a.exponent,
                };
                [a.code(fa), b.code(fb), 0]
            }
            Operation::Div => {
                let b = some(draw, fb, fa.emin() - top, fa.emax() - top);
                [point.times(b).code(fa), b.code(fb), 0]
            }
            Operation::MulAdd => {
                let a = some(draw, fa, fa.emin(), fa.emax());
                let near = top - a.exponent - a.bits() as i32 + 1;
                let b = some(draw, fb, near - 30, near + 1);
                [a.code(fa), b.code(fb), point.plus(a.times(b).negated()).code(fc)]
            }
            operation => {
                let a = some(draw, fa, top - 2 * self.to.precision() as i32, top + 1);
                let b = point.plus(a.negated());
                let b = if operation == Operation::Sub { b.negated() } else { b };
                [a.code(fa), b.code(fb), 0]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::cases::{Cases, Request};
    use crate::vectors::evaluate::Settings;

    /// How many cases of level 1 a function gets wrong.
    fn found(name: &str, wrong: impl Fn([u128; 3], u128, u8) -> bool) -> usize {
        let function: TestFunction = name.parse().unwrap();
        let evaluator = function.evaluator(&Settings::default()).unwrap();
        let cases = Cases::new(&function, &Request::default()).unwrap();
        let count = (0..cases.len()).filter(|index| {
            let operands = cases.operands(*index);
            let outcome = evaluator.evaluate(operands, 0).unwrap();
            wrong(operands, outcome.word, outcome.flags.bits())
        });
        count.count()
    }

    /// The significand of a product of two binary32 or binary16 numbers with more than `kept` bits below the
    /// rounding bit forgotten: whether another number comes out.
    fn forgets(format: Format, kept: u32, [a, b, _]: [u128; 3]) -> bool {
        let parts = |code: u128| match format.decode(code as u64) {
            Value::Finite { significand, .. } => u128::from(significand),
            _ => 0,
        };
        let product = parts(a) * parts(b);
        let p = format.precision();
        let bits = 128 - product.leading_zeros();
        if bits < p + kept + 1 {
            return false;
        }
        let forgotten = bits - p - kept;
        let short = product >> forgotten << forgotten;
        let half = 1_u128 << (bits - p - 1);
        let up = |x: u128| {
            let rest = x & (2 * half - 1);
            rest > half || rest == half && x & (2 * half) != 0
        };
        up(product) != up(short)
    }

    #[test]
    fn a_multiplier_without_the_far_sticky_bits_is_found() {
        for (name, format) in
            [("f16_mul", Format::F16), ("f32_mul", Format::F32), ("bf16_mul", Format::BF16)]
        {
            // Of 11 and 8 bits only the last ones lie that far.
            let kept = format.precision() - 3;
            let count = found(name, |operands, _, _| forgets(format, kept, operands));
            assert!(count > 20, "{name}: {count}");
        }
    }

    #[test]
    fn what_rounds_back_to_the_largest_number_is_there() {
        for (name, format) in [
            ("f16_mul", Format::F16),
            ("f32_mul", Format::F32),
            ("f64_mul", Format::F64),
            ("f32_div", Format::F32),
            ("f32_add", Format::F32),
            ("f16_mulAdd", Format::F16),
            ("f64_sub", Format::F64),
        ] {
            let max = u128::from(format.max_code());
            let beyond = found(name, |_, word, flags| {
                word & u128::from(format.magnitude_mask()) == max && flags == 1
            });
            let over = found(name, |_, _, flags| flags & 4 != 0);
            assert!(beyond > 20 && over > 20, "{name}: {beyond} round back, {over} overflow");
        }
    }

    #[test]
    fn quotients_and_sums_lie_beside_middles() {
        // A quotient as binary64 has it, of numbers of binary32: how near the middle of two of these.
        let near = |[a, b, _]: [u128; 3]| {
            let value = |code: u128| f64::from(f32::from_bits(code as u32));
            let quotient = value(a) / value(b);
            let rest = quotient.to_bits() & low_bits(29);
            quotient.is_normal() && rest.abs_diff(1 << 28) < 1 << 8
        };
        let count = found("f32_div", |operands, _, _| near(operands));
        assert!(count > 2500, "{count}");
        let ties = found("f32_mulAdd", |[a, b, c], _, flags| {
            let value = |code: u128| f64::from(f32::from_bits(code as u32));
            let product = value(a) * value(b);
            let sum = product + value(c);
            flags == 1 && sum - product == value(c) && sum.to_bits() & low_bits(29) == 1 << 28
        });
        assert!(ties > 39_000, "{ties}");
    }
}
