//! An independent model of formats and rounding, to test the crate against.
//!
//! Written from the definitions - OFP8, MX, P3109 4.0 - and sharing nothing with the crate but the
//! vocabulary (`Rounding`, `Overflow`, `Specials`): a format is the sorted list of its values,
//! rounding picks between two neighbours of that list, and every comparison is between integers
//! scaled by a common power of two.

#![allow(dead_code, unreachable_pub)]

use std::cmp::Ordering;

use exmy::format::{Format, Sign, Specials};
use exmy::round::{Overflow, Rounding, StochasticVariant};

/// `2^exponent` where binary64 has it, from its bits: `powi` may round as the platform likes.
pub fn power(exponent: i32) -> f64 {
    let bits = match exponent {
        -1022..=1023 => ((exponent + 1023) as u64) << 52,
        -1074..=-1023 => 1 << (exponent + 1074),
        _ => panic!("binary64 has no 2^{exponent}"),
    };
    f64::from_bits(bits)
}

/// `integer * 2^exponent`, not negative.
#[derive(Clone, Copy, Debug)]
pub struct Num {
    pub integer: u128,
    pub exponent: i32,
}

impl Num {
    pub const ZERO: Self = Self { integer: 0, exponent: 0 };

    pub fn new(integer: u128, exponent: i32) -> Self {
        Self { integer, exponent }
    }

    /// `self * factor`.
    pub fn times(self, factor: u128) -> Self {
        Self::new(self.integer.checked_mul(factor).unwrap(), self.exponent)
    }

    fn align(self, other: Self) -> (u128, u128, i32) {
        let exponent = match (self.integer, other.integer) {
            (0, _) => other.exponent,
            (_, 0) => self.exponent,
            _ => self.exponent.min(other.exponent),
        };
        let shift = |n: Self| {
            let places = if n.integer == 0 { 0 } else { (n.exponent - exponent) as u32 };
            assert!(
                n.integer == 0 || places < n.integer.leading_zeros(),
                "the model's integers end"
            );
            n.integer << places
        };
        (shift(self), shift(other), exponent)
    }

    /// `self + other`, for numbers of similar size.
    pub fn plus(self, other: Self) -> Self {
        let (a, b, exponent) = self.align(other);
        Self::new(a.checked_add(b).unwrap(), exponent)
    }

    /// `self - other`, for numbers of similar size, the second not larger.
    pub fn minus(self, other: Self) -> Self {
        let (a, b, exponent) = self.align(other);
        Self::new(a.checked_sub(b).unwrap(), exponent)
    }

    pub fn to_f64(self) -> f64 {
        // Exact where the tests use it: at most 53 significant bits; two steps reach subnormals.
        let half = self.exponent / 2;
        self.integer as f64 * power(half) * power(self.exponent - half)
    }
}

impl Ord for Num {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.integer, other.integer) {
            (0, b) => 0.cmp(&b),
            (_, 0) => Ordering::Greater,
            (a, b) => {
                let top = |n: u128, e: i32| i64::from(e) + 127 - i64::from(n.leading_zeros());
                let order = top(a, self.exponent).cmp(&top(b, other.exponent));
                order.then((a << a.leading_zeros()).cmp(&(b << b.leading_zeros())))
            }
        }
    }
}

impl PartialOrd for Num {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Num {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Num {}

/// What a code or an input is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    Nan(bool),
    Infinite(bool),
    Finite(bool, Num),
}

impl Meaning {
    /// Reads the fields of a binary64 number.
    pub fn of_f64(x: f64) -> Self {
        let bits = x.to_bits();
        let (negative, field, fraction) = (bits >> 63 == 1, bits >> 52 & 0x7FF, bits << 12 >> 12);
        match (field, fraction) {
            (0x7FF, 0) => Self::Infinite(negative),
            (0x7FF, _) => Self::Nan(negative),
            (0, _) => Self::Finite(negative, Num::new(fraction.into(), -1074)),
            _ => {
                let integer = u128::from(fraction) + (1 << 52);
                Self::Finite(negative, Num::new(integer, field as i32 - 1075))
            }
        }
    }
}

/// A format's parameters, and its list of values.
#[derive(Clone, Debug)]
pub struct Model {
    pub signed: bool,
    pub twos_complement: bool,
    pub exp_bits: u32,
    pub man_bits: u32,
    pub bias: i32,
    pub specials: Specials,
    pub zero: bool,
    pub subnormals: bool,
    /// Finite magnitudes by code, and one more: the value after the largest, were there one. Empty
    /// in a model without a list.
    magnitudes: Vec<Num>,
    /// Number of finite magnitudes.
    finite: u64,
    /// Whether negative zero was declined: its code, if it has one, is zero's second.
    pub declines_negative_zero: bool,
}

impl Model {
    pub fn new(
        signed: bool,
        exp_bits: u32,
        man_bits: u32,
        bias: i32,
        specials: Specials,
        zero: bool,
        subnormals: bool,
    ) -> Self {
        let mut model =
            Self::unlisted(signed, exp_bits, man_bits, bias, specials, zero, subnormals);
        model.magnitudes = (0..=model.finite).map(|code| model.magnitude(code)).collect();
        model
    }

    /// A model without a list of values, for formats of any width.
    pub fn unlisted(
        signed: bool,
        exp_bits: u32,
        man_bits: u32,
        bias: i32,
        specials: Specials,
        zero: bool,
        subnormals: bool,
    ) -> Self {
        let reserved: u64 = match specials {
            Specials::Ieee => 1 << man_bits,
            Specials::Fn => 1,
            Specials::Fnuz | Specials::Finite => 0,
            Specials::P3109 { infinite } => u64::from(infinite) + u64::from(!signed),
            _ => unreachable!("not of this test"),
        };
        Self {
            signed,
            twos_complement: false,
            exp_bits,
            man_bits,
            bias,
            specials,
            zero,
            subnormals,
            magnitudes: Vec::new(),
            finite: (1_u64 << (exp_bits + man_bits)) - reserved,
            declines_negative_zero: false,
        }
    }

    /// The model of a format's parameters, with its list of values.
    pub fn of(format: Format) -> Self {
        let mut model = Self::of_any_width(format);
        let beyond = if model.twos_complement { 2 } else { 1 };
        model.magnitudes =
            (0..=model.max_code() + beyond).map(|code| model.magnitude(code)).collect();
        model
    }

    /// The same without a list.
    pub fn of_any_width(format: Format) -> Self {
        let (e, m, bias) = (format.exp_bits(), format.man_bits(), format.bias());
        if format.sign() == Sign::TwosComplement {
            return Self::unlisted_integer(m, bias);
        }
        let signed = format.sign() == Sign::Magnitude;
        let subnormals = format.has_subnormals() || m == 0;
        let (specials, zero) = (format.specials(), format.has_zero());
        let mut model = Self::unlisted(signed, e, m, bias, specials, zero, subnormals);
        model.declines_negative_zero = zero && !format.has_negative_zero();
        model
    }

    /// A two's complement integer of `man_bits + 1` bits in units of `2^(1 - bias - man_bits)`.
    pub fn integer(man_bits: u32, bias: i32) -> Self {
        let mut model = Self::unlisted_integer(man_bits, bias);
        model.magnitudes = (0..=(1 << man_bits) + 1).map(|code| model.magnitude(code)).collect();
        model
    }

    fn unlisted_integer(man_bits: u32, bias: i32) -> Self {
        let mut model = Self::unlisted(true, 0, man_bits, bias, Specials::Finite, true, true);
        model.twos_complement = true;
        model
    }

    /// OCP MX INT8: an integer of 8 bits in units of 2^-6.
    pub fn int8() -> Self {
        Self::integer(7, 0)
    }

    /// The value of a magnitude code, past the largest one too.
    pub fn magnitude(&self, code: u64) -> Num {
        if self.twos_complement {
            return Num::new(code.into(), 1 - self.bias - self.man_bits as i32);
        }
        let m = self.man_bits;
        let (field, trailing) = ((code >> m) as i32, u128::from(code % (1 << m)));
        if code == 0 && self.zero {
            Num::ZERO
        } else if field == 0 && self.zero && (self.subnormals || m == 0) {
            Num::new(trailing, 1 - self.bias - m as i32)
        } else {
            Num::new(trailing + (1 << m), field - self.bias - m as i32)
        }
    }

    pub fn bits(&self) -> u32 {
        u32::from(self.signed) + self.exp_bits + self.man_bits
    }

    /// Code of the largest finite value.
    pub fn max_code(&self) -> u64 {
        self.finite - 1
    }

    /// Finite magnitudes, ascending, and the first one beyond.
    pub fn magnitudes(&self) -> &[Num] {
        &self.magnitudes
    }

    fn sign_bit(&self) -> u64 {
        1 << (self.exp_bits + self.man_bits)
    }

    /// Canonical NaN.
    pub fn nan(&self, negative: bool) -> Option<u64> {
        let all = self.sign_bit() - 1;
        let signed = if negative && self.signed { self.sign_bit() } else { 0 };
        match self.specials {
            Specials::Ieee => {
                Some(all - ((1 << self.man_bits) - 1) + (1 << self.man_bits >> 1) + signed)
            }
            Specials::Fn => Some(all + signed),
            Specials::Fnuz => Some(self.sign_bit()),
            Specials::P3109 { .. } => Some(if self.signed { self.sign_bit() } else { all }),
            Specials::Finite => None,
            _ => unreachable!("not of this test"),
        }
    }

    pub fn infinity(&self, negative: bool) -> Option<u64> {
        if negative && !self.signed {
            return None;
        }
        let all = self.sign_bit() - 1;
        let signed = if negative { self.sign_bit() } else { 0 };
        match self.specials {
            Specials::Ieee => Some(all - ((1 << self.man_bits) - 1) + signed),
            Specials::P3109 { infinite: true } if self.signed => Some(all + signed),
            Specials::P3109 { infinite: true } => Some(all - 1),
            _ => None,
        }
    }

    fn has_negative_zero(&self) -> bool {
        let class = matches!(self.specials, Specials::Ieee | Specials::Fn | Specials::Finite);
        let declined = self.declines_negative_zero;
        self.signed && class && !self.twos_complement && self.zero && !declined
    }

    pub fn decode(&self, code: u64) -> Meaning {
        if self.twos_complement {
            // The sign bit counts `-2^M` units.
            let below = if code >= self.sign_bit() { 2 * i128::from(self.sign_bit()) } else { 0 };
            let value = i128::from(code) - below;
            let magnitude = self.magnitude(value.unsigned_abs() as u64);
            return Meaning::Finite(value < 0, magnitude);
        }
        let negative = self.signed && code >= self.sign_bit();
        let magnitude = code % self.sign_bit();
        let single_nan = matches!(self.specials, Specials::Fnuz | Specials::P3109 { .. });
        if single_nan && self.nan(false) == Some(code) {
            return Meaning::Nan(false);
        }
        if self.infinity(negative) == Some(code) {
            return Meaning::Infinite(negative);
        }
        match self.specials {
            Specials::Ieee if magnitude >> self.man_bits == (1 << self.exp_bits) - 1 => {
                Meaning::Nan(negative)
            }
            Specials::Fn if magnitude == self.sign_bit() - 1 => Meaning::Nan(negative),
            _ if magnitude == 0 && self.declines_negative_zero => Meaning::Finite(false, Num::ZERO),
            _ => Meaning::Finite(negative, self.magnitude(magnitude)),
        }
    }

    fn code(&self, negative: bool, magnitude: u64) -> u64 {
        match (negative, self.twos_complement) {
            (false, _) => magnitude,
            (true, true) => (2 * self.sign_bit() - magnitude) % (2 * self.sign_bit()),
            (true, false) => magnitude + self.sign_bit(),
        }
    }

    fn saturated(&self, negative: bool, overflow: Overflow) -> u64 {
        let full = matches!(overflow, Overflow::None | Overflow::Nan | Overflow::Infinity);
        let extra = u64::from(self.twos_complement && negative && full);
        self.code(negative, self.max_code() + extra)
    }

    /// The code of an input, by the tables of P3109 4.7 and the policies' definitions.
    pub fn encode(&self, x: Meaning, mode: Rounding, overflow: Overflow, random: u32) -> u64 {
        let nan_or_max =
            |negative| self.nan(negative).unwrap_or_else(|| self.saturated(negative, overflow));
        let nan_or_smallest = || self.nan_or_smallest(overflow);
        match x {
            Meaning::Nan(negative) => self.nan(negative).unwrap_or(self.max_code()),
            Meaning::Infinite(true) if !self.signed => nan_or_smallest(),
            Meaning::Infinite(negative) => match (overflow, self.infinity(negative)) {
                (Overflow::None | Overflow::Propagate | Overflow::Infinity, Some(code)) => code,
                (Overflow::None | Overflow::Infinity, None) => match self.specials {
                    Specials::Fn | Specials::Fnuz => nan_or_max(negative),
                    _ => self.saturated(negative, overflow),
                },
                (Overflow::Nan, _) => nan_or_max(negative),
                (Overflow::Onnx, _) if self.specials == Specials::Fnuz => nan_or_max(negative),
                _ => self.saturated(negative, overflow),
            },
            Meaning::Finite(negative, x) => {
                let rounded = self.round(negative, x, mode, random);
                self.bound(negative, rounded, x.integer == 0, mode, overflow)
            }
        }
    }

    /// The code of a neighbour chosen by [`round`](Self::round), by the overflow policy's
    /// definition. `zero` says that the number is exactly zero.
    pub fn bound(
        &self,
        negative: bool,
        rounded: u64,
        zero: bool,
        mode: Rounding,
        overflow: Overflow,
    ) -> u64 {
        let nan_or_max =
            |negative| self.nan(negative).unwrap_or_else(|| self.saturated(negative, overflow));
        let nan_or_smallest = || self.nan_or_smallest(overflow);
        if rounded == 0 && self.zero {
            return self.code(negative && self.has_negative_zero(), 0);
        }
        if !self.zero && zero {
            let code = nan_or_smallest();
            let smallest = code == 0 && negative && self.signed;
            return if smallest { self.code(true, 0) } else { code };
        }
        if negative && !self.signed {
            let inward = overflow == Overflow::None
                && matches!(mode, Rounding::TowardZero | Rounding::TowardPositive);
            return if inward && self.zero { 0 } else { nan_or_smallest() };
        }
        let full = matches!(overflow, Overflow::None | Overflow::Nan | Overflow::Infinity);
        let extra = u64::from(self.twos_complement && negative && full);
        if rounded <= self.max_code() + extra {
            return self.code(negative, rounded);
        }
        let inward = match mode {
            Rounding::TowardZero => true,
            Rounding::TowardPositive => negative,
            Rounding::TowardNegative => !negative,
            Rounding::ToOdd => {
                !matches!(self.specials, Specials::P3109 { .. }) || self.max_code() % 2 == 1
            }
            _ => false,
        };
        match (overflow, self.infinity(negative)) {
            (Overflow::None, _) if inward => self.saturated(negative, overflow),
            (Overflow::None | Overflow::Infinity, Some(infinity)) => infinity,
            (Overflow::None | Overflow::Infinity, None) => match self.specials {
                Specials::Fn | Specials::Fnuz => nan_or_max(negative),
                _ => self.saturated(negative, overflow),
            },
            (Overflow::Nan, _) => nan_or_max(negative),
            _ => self.saturated(negative, overflow),
        }
    }

    /// What stands for a negative number in an unsigned format, and for zero where there is none.
    fn nan_or_smallest(&self, overflow: Overflow) -> u64 {
        let saturating =
            matches!(overflow, Overflow::Finite | Overflow::Propagate | Overflow::Onnx);
        match self.nan(false) {
            Some(nan) if !saturating => nan,
            _ => 0,
        }
    }

    /// The code of the neighbour chosen; one past the list's end stands for all beyond.
    pub fn round(&self, negative: bool, x: Num, mode: Rounding, random: u32) -> u64 {
        let upper = self.magnitudes.partition_point(|value| *value < x);
        if upper == self.magnitudes.len() {
            return upper as u64;
        }
        let hi = self.magnitudes[upper];
        if hi == x || upper == 0 {
            return upper as u64; // exact, or below the smallest of a format without zero
        }
        let lower = upper - 1;
        let lo = self.magnitudes[lower];
        let odd = lower % 2 == 1;
        let midpoint = x.times(2).cmp(&lo.plus(hi));
        let up = match mode {
            Rounding::TiesToEven => midpoint.is_gt() || (midpoint.is_eq() && odd),
            Rounding::TiesToAway => midpoint.is_ge(),
            Rounding::TiesToZero => midpoint.is_gt(),
            Rounding::TowardZero => false,
            Rounding::TowardPositive => !negative,
            Rounding::TowardNegative => negative,
            Rounding::AwayFromZero => true,
            Rounding::ToOdd => !odd,
            Rounding::Stochastic { variant, bits } => {
                let r = u128::from(random >> (32 - bits));
                let one = 1_u128 << bits;
                // How x compares with lo + (hi - lo) * part / whole.
                let place = |part: u128, whole: u128| {
                    x.times(whole).cmp(&lo.times(whole).plus(hi.minus(lo).times(part)))
                };
                match variant {
                    // floor(y) >= t is y >= t for an integer t.
                    StochasticVariant::A => place(one - r, one).is_ge(),
                    StochasticVariant::B => place(2 * one - 2 * r - 1, 2 * one).is_ge(),
                    // y rounds to t or more from t - 1/2 on if t is even, above it if odd.
                    StochasticVariant::C => {
                        let order = place(2 * (one - r) - 1, 2 * one);
                        order.is_gt() || (order.is_eq() && (one - r).is_multiple_of(2))
                    }
                }
            }
            _ => unreachable!("not of this test"),
        };
        (lower + usize::from(up)) as u64
    }
}
