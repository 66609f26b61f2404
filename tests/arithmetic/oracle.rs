//! Exact results as rational numbers (and square roots of them) of any length, and where they lie
//! among a format's values.
//!
//! Nothing is shared with the crate: operands are read by the model's table, results are integers
//! of any length, and a place is found by comparing with the table's values and midpoints. It is one
//! long file because whoever doubts an answer must be able to read all that it rests on in a row.

use std::cmp::Ordering;

use exmy::format::{Format, Sign, Specials};
use exmy::round::{Overflow, Rounding, StochasticVariant, Tininess};
use num_bigint::BigUint;

use crate::common::{Meaning, Model, Num};

/// An exact result.
#[derive(Clone, Debug)]
pub enum Real {
    Nan(bool),
    Infinite(bool),
    Finite(Finite),
}

/// `(-1)^negative * (num / den * 2^exponent)`, or the square root of that magnitude.
#[derive(Clone, Debug)]
pub struct Finite {
    pub negative: bool,
    pub num: BigUint,
    pub den: BigUint,
    pub exponent: i64,
    pub root: bool,
    /// Zero because numbers cancelled: its sign is the mode's.
    pub cancelled: bool,
}

impl Finite {
    pub fn new(negative: bool, num: BigUint, exponent: i64) -> Self {
        let den = BigUint::from(1_u8);
        Self { negative, num, den, exponent, root: false, cancelled: false }
    }

    pub fn zero(negative: bool) -> Self {
        Self::new(negative, BigUint::ZERO, 0)
    }

    pub fn is_zero(&self) -> bool {
        self.num == BigUint::ZERO
    }

    /// How the magnitude compares with a number.
    pub fn compare(&self, t: Num) -> Ordering {
        if t.integer == 0 || self.is_zero() {
            return self.num.cmp(&BigUint::ZERO).then(0.cmp(&t.integer));
        }
        // The number of bits decides almost always.
        let power = 1 + i64::from(self.root);
        let below = self.num.bits() as i64 - 1 - self.den.bits() as i64 + self.exponent;
        let top = i64::from(128 - t.integer.leading_zeros()) + i64::from(t.exponent);
        if below >= power * top {
            return Ordering::Greater;
        }
        if below + 2 <= power * (top - 1) {
            return Ordering::Less;
        }
        let long = BigUint::from(t.integer);
        let right = &self.den * if self.root { &long * &long } else { long };
        let shift = self.exponent - power * i64::from(t.exponent);
        if shift >= 0 {
            (&self.num << shift as u64).cmp(&right)
        } else {
            self.num.cmp(&(right << shift.unsigned_abs()))
        }
    }
}

fn finite(x: Meaning) -> Option<Finite> {
    match x {
        Meaning::Finite(negative, n) => {
            Some(Finite::new(negative, n.integer.into(), n.exponent.into()))
        }
        _ => None,
    }
}

/// The sign of NaN operands: that of the first.
fn first_nan(operands: &[Meaning]) -> Option<Real> {
    operands.iter().find_map(|x| match x {
        Meaning::Nan(negative) => Some(Real::Nan(*negative)),
        _ => None,
    })
}

const INVALID: Real = Real::Nan(false);

const INEXACT: u8 = 1;
const UNDERFLOW: u8 = 2;
const OVERFLOW: u8 = 4;
const DIVIDE_BY_ZERO: u8 = 8;
const INVALID_FLAG: u8 = 16;
const SATURATED: u8 = 32;

/// The flags of an operation besides those of rounding: invalid for a NaN made of numbers and
/// infinities and for signaling operands, divide by zero for an infinity made of numbers.
pub fn raised(exact: &Real, operands: &[Meaning], signaling: bool) -> u8 {
    let any_nan = operands.iter().any(|x| matches!(x, Meaning::Nan(_)));
    let all_finite = operands.iter().all(|x| matches!(x, Meaning::Finite(..)));
    match exact {
        _ if signaling => INVALID_FLAG,
        Real::Nan(_) if !any_nan => INVALID_FLAG,
        Real::Infinite(_) if all_finite => DIVIDE_BY_ZERO,
        _ => 0,
    }
}

fn negated(x: Meaning) -> Meaning {
    match x {
        Meaning::Nan(negative) => Meaning::Nan(negative),
        Meaning::Infinite(negative) => Meaning::Infinite(!negative),
        Meaning::Finite(negative, n) => Meaning::Finite(!negative, n),
    }
}

/// The exact sum of finite numbers. A zero sum has the sign of its terms if they agree.
fn total(terms: &[Finite]) -> Finite {
    let lowest = terms.iter().filter(|t| !t.is_zero()).map(|t| t.exponent).min().unwrap_or(0);
    let (mut plus, mut minus) = (BigUint::ZERO, BigUint::ZERO);
    for term in terms.iter().filter(|t| !t.is_zero()) {
        let n = &term.num << (term.exponent - lowest) as u64;
        if term.negative { minus += n } else { plus += n }
    }
    if plus == minus {
        let agree = terms.iter().all(|t| t.is_zero() && t.negative == terms[0].negative);
        let mut zero = Finite::zero(agree && terms[0].negative);
        zero.cancelled = !agree;
        return zero;
    }
    if plus > minus {
        Finite::new(false, plus - minus, lowest)
    } else {
        Finite::new(true, minus - plus, lowest)
    }
}

pub fn sum(terms: &[Meaning]) -> Real {
    if let Some(nan) = first_nan(terms) {
        return nan;
    }
    let infinite = |sign| terms.contains(&Meaning::Infinite(sign));
    match (infinite(false), infinite(true)) {
        (true, true) => INVALID,
        (plus, minus) if plus || minus => Real::Infinite(minus),
        _ => Real::Finite(total(&terms.iter().map(|t| finite(*t).unwrap()).collect::<Vec<_>>())),
    }
}

pub fn add(a: Meaning, b: Meaning) -> Real {
    sum(&[a, b])
}

pub fn sub(a: Meaning, b: Meaning) -> Real {
    sum(&[a, negated(b)])
}

fn sign(x: Meaning) -> bool {
    match x {
        Meaning::Nan(negative) | Meaning::Infinite(negative) | Meaning::Finite(negative, _) => {
            negative
        }
    }
}

fn is_zero(x: Meaning) -> bool {
    matches!(x, Meaning::Finite(_, n) if n.integer == 0)
}

pub fn mul(a: Meaning, b: Meaning) -> Real {
    if let Some(nan) = first_nan(&[a, b]) {
        return nan;
    }
    let negative = sign(a) != sign(b);
    match (finite(a), finite(b)) {
        (Some(x), Some(y)) => {
            Real::Finite(Finite::new(negative, x.num * y.num, x.exponent + y.exponent))
        }
        _ if is_zero(a) || is_zero(b) => INVALID,
        _ => Real::Infinite(negative),
    }
}

pub fn fma(a: Meaning, b: Meaning, c: Meaning) -> Real {
    if let Some(nan) = first_nan(&[a, b, c]) {
        return nan;
    }
    match (mul(a, b), c) {
        (Real::Finite(product), Meaning::Finite(..)) => {
            Real::Finite(total(&[product, finite(c).unwrap()]))
        }
        (Real::Finite(_), Meaning::Infinite(sign)) => Real::Infinite(sign),
        (Real::Infinite(sign), Meaning::Infinite(other)) if sign != other => INVALID,
        (product, _) => product,
    }
}

/// `a / b`, by IEEE 754's table or P3109's.
pub fn div(a: Meaning, b: Meaning, p3109: bool) -> Real {
    if let Some(nan) = first_nan(&[a, b]) {
        return nan;
    }
    let negative = sign(a) != sign(b);
    if is_zero(b) {
        return if p3109 || is_zero(a) { INVALID } else { Real::Infinite(negative) };
    }
    match (finite(a), finite(b)) {
        (Some(x), Some(y)) => {
            let quotient = Finite::new(negative, x.num, x.exponent - y.exponent);
            Real::Finite(Finite { den: y.num, ..quotient })
        }
        (Some(_), None) => Real::Finite(Finite::zero(negative)),
        (None, Some(_)) => Real::Infinite(negative),
        (None, None) => INVALID,
    }
}

pub fn recip(x: Meaning, p3109: bool) -> Real {
    div(Meaning::Finite(false, Num::new(1, 0)), x, p3109)
}

pub fn sqrt(x: Meaning) -> Real {
    match x {
        Meaning::Nan(sign) => Real::Nan(sign),
        _ if is_zero(x) => Real::Finite(finite(x).unwrap()),
        _ if sign(x) => INVALID,
        Meaning::Infinite(_) => Real::Infinite(false),
        Meaning::Finite(..) => Real::Finite(Finite { root: true, ..finite(x).unwrap() }),
    }
}

pub fn rsqrt(x: Meaning, p3109: bool) -> Real {
    match x {
        Meaning::Nan(sign) => Real::Nan(sign),
        _ if is_zero(x) && p3109 => INVALID,
        _ if is_zero(x) => Real::Infinite(sign(x)),
        _ if sign(x) => INVALID,
        _ => match recip(x, p3109) {
            Real::Finite(y) => Real::Finite(Finite { root: !y.is_zero(), ..y }),
            special => special,
        },
    }
}

pub fn hypot(a: Meaning, b: Meaning, p3109: bool) -> Real {
    let infinite = matches!(a, Meaning::Infinite(_)) || matches!(b, Meaning::Infinite(_));
    match first_nan(&[a, b]) {
        Some(nan) if p3109 || !infinite => nan,
        _ if infinite => Real::Infinite(false),
        _ => {
            let squares = [a, b].map(|x| match mul(x, x) {
                Real::Finite(square) => square,
                _ => unreachable!(),
            });
            let sum = total(&squares);
            Real::Finite(Finite { root: !sum.is_zero(), negative: false, ..sum })
        }
    }
}

/// `x - n y` by division of integers.
pub fn rem(a: Meaning, b: Meaning, nearest: bool) -> Real {
    if let Some(nan) = first_nan(&[a, b]) {
        return nan;
    }
    match (finite(a), finite(b)) {
        (None, _) => INVALID,
        (Some(_), Some(y)) if y.is_zero() => INVALID,
        (Some(x), None) => Real::Finite(x),
        (Some(x), Some(y)) => {
            let exponent = x.exponent.min(y.exponent);
            let x_int = &x.num << (x.exponent - exponent) as u64;
            let y_int = &y.num << (y.exponent - exponent) as u64;
            let mut n = &x_int / &y_int;
            let rest = &x_int - &n * &y_int;
            let twice = &rest << 1_u32;
            if nearest && (twice > y_int || (twice == y_int && n.bit(0))) {
                n += 1_u32;
            }
            let below = &n * &y_int;
            Real::Finite(if below > x_int {
                Finite::new(!x.negative, below - x_int, exponent)
            } else {
                Finite::new(x.negative, x_int - below, exponent)
            })
        }
    }
}

/// A format whose values are asked for one by one.
pub struct Grid {
    pub format: Format,
    pub model: Model,
    /// The smallest number of full precision, and its code.
    normal: Option<(u64, Num)>,
}

/// Where a number lies: between two neighbours, or at the lower one exactly.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Magnitude code of the lower neighbour.
    pub lower: u64,
    pub exact: bool,
    /// The neighbours; beyond the last value and below the first of a format without zero there are
    /// none.
    gap: Option<Gap>,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    low: Num,
    high: Num,
    odd: bool,
    midpoint: Ordering,
}

impl Gap {
    fn new(x: &Finite, low: Num, high: Num, odd: bool) -> Self {
        let twice = low.plus(high);
        let midpoint = x.compare(Num::new(twice.integer, twice.exponent - 1));
        Self { low, high, odd, midpoint }
    }

    /// Whether a mode chooses the higher neighbour.
    fn goes_up(&self, x: &Finite, mode: Rounding, random: u32) -> bool {
        let Self { low, high, odd, midpoint } = *self;
        match mode {
            Rounding::TiesToEven => midpoint.is_gt() || (midpoint.is_eq() && odd),
            Rounding::TiesToAway => midpoint.is_ge(),
            Rounding::TiesToZero => midpoint.is_gt(),
            Rounding::TowardZero => false,
            Rounding::TowardPositive => !x.negative,
            Rounding::TowardNegative => x.negative,
            Rounding::AwayFromZero => true,
            Rounding::ToOdd => !odd,
            Rounding::Stochastic { variant, bits } => {
                let (r, one) = (u128::from(random >> (32 - bits)), 1_u128 << bits);
                // v against part / 2^(bits + 1), in steps of half a unit of R.
                let reaches = |part: u128| {
                    let point = low.times(2 * one).plus(high.minus(low).times(part));
                    x.compare(Num::new(point.integer, point.exponent - i32::from(bits) - 1))
                };
                match variant {
                    StochasticVariant::A => reaches(2 * (one - r)).is_ge(),
                    StochasticVariant::B => reaches(2 * (one - r) - 1).is_ge(),
                    StochasticVariant::C => {
                        let order = reaches(2 * (one - r) - 1);
                        order.is_gt() || (order.is_eq() && (one - r).is_multiple_of(2))
                    }
                }
            }
            _ => unreachable!("not of this test"),
        }
    }
}

impl Grid {
    pub fn new(format: Format) -> Self {
        let model = Model::of_any_width(format);
        // Of full precision: the leading bit is there.
        let full = |code: &u64| {
            *code <= model.max_code() && model.magnitude(*code).integer >> model.man_bits != 0
        };
        let normal = [0, 1, 1 << model.man_bits].into_iter().find(full);
        let normal = normal.filter(|_| !model.twos_complement);
        Self { format, normal: normal.map(|code| (code, model.magnitude(code))), model }
    }

    pub fn place(&self, x: &Finite) -> Place {
        // One past the largest value is on the grid, too.
        let extra = if self.model.twos_complement { 2 } else { 1 };
        let (mut below, mut upper) = (0, self.model.max_code() + extra + 1);
        while below < upper {
            let middle = below + (upper - below) / 2;
            if x.compare(self.model.magnitude(middle)).is_gt() {
                below = middle + 1;
            } else {
                upper = middle;
            }
        }
        let gap = None;
        if upper > self.model.max_code() + extra {
            return Place { lower: upper, exact: false, gap };
        }
        let high = self.model.magnitude(upper);
        if x.compare(high).is_eq() {
            return Place { lower: upper, exact: true, gap };
        }
        if upper == 0 {
            return Place { lower: 0, exact: false, gap };
        }
        let lower = upper - 1;
        let gap = Some(Gap::new(x, self.model.magnitude(lower), high, lower % 2 == 1));
        Place { lower, exact: false, gap }
    }

    /// The index of the neighbour that a mode chooses.
    pub fn round(&self, x: &Finite, place: Place, mode: Rounding, random: u32) -> u64 {
        place.lower + u64::from(place.gap.is_some_and(|gap| gap.goes_up(x, mode, random)))
    }

    /// Code, and the flags inexact (1), underflow (2) and overflow (4) where they are defined by
    /// the number alone: not for results outside of an unsigned format or next to a missing zero.
    pub fn expected(
        &self,
        x: &Real,
        place: Option<Place>,
        mode: Rounding,
        overflow: Overflow,
        random: u32,
        tininess: Tininess,
    ) -> (u64, Option<u8>) {
        let x = match x {
            Real::Nan(sign) => return (self.code_of(Meaning::Nan(*sign), overflow), None),
            Real::Infinite(sign) => {
                return (self.code_of(Meaning::Infinite(*sign), overflow), None);
            }
            Real::Finite(x) => x,
        };
        let place = place.unwrap_or_else(|| self.place(x));
        let rounded = self.round(x, place, mode, random);
        let negative = x.negative || (x.cancelled && mode == Rounding::TowardNegative);
        let code = self.model.bound(negative, rounded, x.is_zero(), mode, overflow);
        if (negative && !self.model.signed) || (!self.model.zero && place.lower == 0) {
            return (code, None);
        }
        let full = matches!(overflow, Overflow::None | Overflow::Nan | Overflow::Infinity);
        let extra = u64::from(self.model.twos_complement && negative && full);
        let beyond = rounded > self.model.max_code() + extra;
        let inexact = beyond || !place.exact;
        let tiny = !x.is_zero() && self.is_tiny(x, mode, random, tininess);
        let flags = u8::from(inexact) | u8::from(inexact && tiny) << 1 | u8::from(beyond) << 2;
        (code, Some(flags))
    }

    /// Whether a number at a place may count as tiny.
    pub fn may_be_tiny(&self, place: Place) -> bool {
        self.normal.is_some_and(|(code, _)| place.lower <= code)
    }

    /// Code and all six flags, by the definitions of [`Flags`](exmy::round::Flags) from what was
    /// exact and what came out. `raised` is what the operation itself says: see [`raised`].
    pub fn outcome(
        &self,
        exact: &Real,
        place: Option<Place>,
        (mode, overflow, tininess): (Rounding, Overflow, Tininess),
        random: u32,
        raised: u8,
    ) -> (u64, u8) {
        let code = self.expected(exact, place, mode, overflow, random, tininess).0;
        let result = self.decode(code);
        // A number stands for something outside of the range, or NaN does.
        let displaced = match result {
            Meaning::Nan(_) => INVALID_FLAG,
            Meaning::Finite(..) => SATURATED,
            Meaning::Infinite(_) => 0,
        };
        let outside = match result {
            Meaning::Nan(_) => INVALID_FLAG,
            _ => SATURATED | INEXACT,
        };
        let flags = match exact {
            Real::Nan(_) => 0,
            Real::Infinite(true) if !self.model.signed => outside,
            Real::Infinite(_) => displaced,
            Real::Finite(x) if x.is_zero() => {
                if self.model.zero {
                    0
                } else {
                    outside
                }
            }
            Real::Finite(x) => {
                let place = place.unwrap_or_else(|| self.place(x));
                let rounded = self.round(x, place, mode, random);
                let tiny = !place.exact && self.is_tiny(x, mode, random, tininess);
                let rounding =
                    if place.exact { 0 } else { INEXACT } | if tiny { UNDERFLOW } else { 0 };
                let full = matches!(overflow, Overflow::None | Overflow::Nan | Overflow::Infinity);
                let extra = u64::from(self.model.twos_complement && x.negative && full);
                if self.model.zero && rounded == 0 {
                    rounding
                } else if x.negative && !self.model.signed {
                    let beyond = place.lower > self.model.max_code();
                    let rounding = if beyond { self.inexact_beyond(x) } else { rounding };
                    rounding | outside
                } else if rounded > self.model.max_code() + extra {
                    rounding | INEXACT | OVERFLOW | displaced
                } else if !place.exact && place.gap.is_none() {
                    rounding | SATURATED // below the smallest value of a format without zero
                } else {
                    rounding
                }
            }
        };
        (code, flags | raised)
    }

    /// Whether a number past the largest one is between the values that would follow, as a flag.
    fn inexact_beyond(&self, x: &Finite) -> u8 {
        let mut high = self.model.max_code() + 1;
        while x.compare(self.model.magnitude(high)).is_gt() {
            high *= 2;
        }
        let mut low = 0;
        while low < high {
            let middle = (low + high) / 2;
            if x.compare(self.model.magnitude(middle)).is_gt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if x.compare(self.model.magnitude(low)).is_eq() { 0 } else { INEXACT }
    }

    /// What IEEE 754, 7.5 says: below the smallest normal number, or so even after rounding to the
    /// precision with an exponent without bounds.
    fn is_tiny(&self, x: &Finite, mode: Rounding, random: u32, tininess: Tininess) -> bool {
        let Some((_, normal)) = self.normal else { return false };
        if x.compare(normal).is_ge() {
            return false;
        }
        if tininess == Tininess::Before {
            return true;
        }
        // The value before it, were the exponent without bounds: in the binade below, of half the
        // spacing, or, where the normal number is the second of its binade, that binade's first.
        let first = normal.integer.is_power_of_two();
        let scaled = Num::new(normal.integer * 2, normal.exponent - 1);
        let lower = Num::new(scaled.integer - if first { 1 } else { 2 }, scaled.exponent);
        // The last value of a binade is odd, if it has more than one.
        let odd = first && self.model.man_bits > 0;
        x.compare(lower).is_le() || !Gap::new(x, lower, scaled, odd).goes_up(x, mode, random)
    }

    /// The code of what something is, to nearest even.
    pub fn code_of(&self, x: Meaning, overflow: Overflow) -> u64 {
        match finite(x) {
            Some(x) => {
                let (mode, tininess) = (Rounding::TiesToEven, Tininess::After);
                self.expected(&Real::Finite(x), None, mode, overflow, 0, tininess).0
            }
            None => self.model.encode(x, Rounding::TiesToEven, overflow, 0),
        }
    }

    pub fn decode(&self, code: u64) -> Meaning {
        self.model.decode(code)
    }
}

/// The formats of at most `bits` bits that have names, and the P3109 family of the widths given.
pub fn formats(bits: u32, p3109: impl Iterator<Item = u32>) -> Vec<Format> {
    let named = exmy::format::NAMED.iter().map(|(_, format)| *format);
    let mut all: Vec<Format> = named.filter(|format| format.bits() <= bits).collect();
    for k in p3109 {
        for (signed, infinite) in [(true, true), (true, false), (false, true), (false, false)] {
            for p in 1..k + u32::from(!signed) {
                // The narrowest shapes hold nothing but zero and the special values.
                if let Ok(format) = Format::p3109(k, p, signed, infinite) {
                    all.push(format);
                }
            }
        }
    }
    let mut seen = Vec::new();
    all.retain(|format| {
        !seen.contains(format) && {
            seen.push(*format);
            true
        }
    });
    all
}

/// All shapes of up to `bits` bits with the usual bias: signs, field widths, classes, with and
/// without subnormals, zero and negative zero, as far as the builder accepts them (which
/// `tests/formats` checks against the reasons), and the named formats with another bias.
pub fn shapes(bits: u32) -> Vec<Format> {
    let classes = Specials::ALL;
    let mut all = formats(bits, 3..=bits);
    for sign in [Sign::Magnitude, Sign::Unsigned, Sign::TwosComplement] {
        for (e, m) in (0..=bits).flat_map(|e| (0..=bits - e).map(move |m| (e, m))) {
            for class in classes {
                for (zero, subnormals) in [(true, true), (true, false), (false, false)] {
                    let builder = Format::builder(sign, e, m).specials(class);
                    let builder = builder.zero(zero).subnormals(subnormals);
                    all.extend(builder.build());
                    all.extend(builder.negative_zero(false).build());
                }
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|format| (2..=bits).contains(&format.bits()) && seen.insert(*format));
    all
}

/// Whether a format is of the P3109 family, whose table of special cases is another.
pub fn is_p3109(format: Format) -> bool {
    matches!(format.specials(), Specials::P3109 { .. })
}

/// A small generator for test inputs: Weyl sequence and multiply-xorshift (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}
