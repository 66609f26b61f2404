//! The rounding core: scale to units of the last place, decide up or down, then bound the range.
//!
//! Integers only. Let `Q` be the exponent of the last place at the number's binade. Then the number
//! is `S + v` units of `2^Q`, an integer `S` and a fraction `v`, which has 64 bits and a sticky
//! bit. A magnitude code counts values from below, so `(Q, S)` maps to a code by arithmetic, past
//! the largest one too. A carry out of the significand needs no special case.

use super::stochastic::is_up;
use super::{AbsentZero, Exact, Flags, Flush, Overflow, Rounded, Rounding, Rules, Tininess};
use crate::format::{Format, Sign, Specials, Value, low_bits};

/// A fraction of a unit: `bits / 2^64`, plus something below `2^-64` if `sticky`.
#[derive(Clone, Copy)]
struct Fraction {
    bits: u64,
    sticky: bool,
}

const HALF: u64 = 1 << 63;

impl Fraction {
    const fn is_zero(self) -> bool {
        (self.bits == 0) & !self.sticky
    }
}

/// `value / 2^shift` as integer part and fraction.
const fn shift_right(value: u128, shift: u64, sticky: bool) -> (u64, Fraction) {
    const fn low(value: u128, bits: u64) -> u128 {
        if bits == 0 { 0 } else { value & (u128::MAX >> (128 - bits)) }
    }
    match shift {
        0..=64 => {
            let bits = if shift == 0 { 0 } else { (low(value, shift) << (64 - shift)) as u64 };
            ((value >> shift) as u64, Fraction { bits, sticky })
        }
        65..=191 => {
            let whole = if shift < 128 { (value >> shift) as u64 } else { 0 };
            let lost = low(value, shift - 64) != 0;
            let bits = (value >> (shift - 64)) as u64;
            (whole, Fraction { bits, sticky: sticky || lost })
        }
        _ => (0, Fraction { bits: 0, sticky: sticky || value != 0 }),
    }
}

/// Whether the magnitude goes to the upper neighbour.
const fn goes_up(
    mode: Rounding,
    negative: bool,
    odd: bool,
    fraction: Fraction,
    random: u32,
) -> bool {
    let Fraction { bits, sticky } = fraction;
    // Without short circuits: which way a number goes is as good as random to the processor.
    let inexact = !fraction.is_zero();
    match mode {
        Rounding::TiesToEven => (bits > HALF) | ((bits == HALF) & (sticky | odd)),
        Rounding::TiesToAway => bits >= HALF,
        Rounding::TiesToZero => (bits > HALF) | ((bits == HALF) & sticky),
        Rounding::TowardZero => false,
        Rounding::TowardPositive => inexact & !negative,
        Rounding::TowardNegative => inexact & negative,
        Rounding::AwayFromZero => inexact,
        Rounding::ToOdd => inexact & !odd,
        Rounding::Stochastic { variant, bits: n } => is_up(variant, n, bits, sticky, random),
    }
}

impl Format {
    /// The code of an exact number, rounded once, by a mode and an overflow policy alone; the other
    /// rules are [`Rules::DEFAULT`]'s. See [`round_by`](Self::round_by).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Exact, Overflow, Rounding};
    ///
    /// // 2.5 exactly, a tie, and a little more than that.
    /// let round = |sticky| {
    ///     let exact = Exact { negative: false, significand: 20, exponent: -3, sticky };
    ///     Format::E2M1.round(exact, Rounding::TiesToEven, 0, Overflow::None)
    /// };
    /// assert_eq!([round(false), round(true)].map(|rounded| rounded.code), [0x4, 0x5]);
    /// ```
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    pub const fn round(
        self,
        exact: Exact,
        mode: Rounding,
        random: u32,
        overflow: Overflow,
    ) -> Rounded {
        self.round_by(exact, &Rules { rounding: mode, overflow, ..Rules::DEFAULT }, random)
    }

    /// The code of an exact number, rounded once.
    ///
    /// `random` matters to stochastic modes only. It is a 32-bit word of which srN uses the *top* N
    /// bits as its random integer, so one word of [`Philox`](crate::random::Philox) serves any N.
    ///
    /// A negative number that rounds to zero keeps its sign where negative zero exists. Without a
    /// zero, a positive number below the smallest value becomes that value; what an exact zero
    /// becomes, [`Rules::absent_zero`] says.
    ///
    /// Of `rules`, those that concern operands ([`Rules::operands`], [`Rules::sign`]) have been
    /// applied by the caller.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Exact, Flags, Flush, Rules};
    ///
    /// let tiny = Exact { negative: true, significand: 1, exponent: -8, sticky: false };
    /// let code = |rules: Rules| Format::E4M3FN.round_by(tiny, &rules, 0).code;
    /// assert_eq!(code(Rules::DEFAULT), 0x82); // -2 x 2^-9, subnormal
    /// assert_eq!(code(Rules::DEFAULT.with_flush(Flush::Input)), 0x80); // -0
    /// // E8M0 has no zero: what is too small becomes its smallest number.
    /// let below = Exact { negative: false, significand: 1, exponent: -130, sticky: false };
    /// let rounded = Format::E8M0.round_by(below, &Rules::DEFAULT, 0);
    /// assert!(rounded.code == 0 && rounded.flags.contains(Flags::SATURATED));
    /// ```
    ///
    /// # Panics
    /// If the mode is stochastic with a bit count outside 1..=32.
    pub const fn round_by(self, exact: Exact, rules: &Rules, random: u32) -> Rounded {
        let Exact { negative, significand, exponent, sticky } = exact;
        if significand == 0 && !sticky {
            return self.zero(negative, rules, Flags::NONE);
        }
        let man_bits = self.man_bits();
        let (lsb, unit) = (self.lsb() as i64, 1_u64 << man_bits);
        // The last place of the number's binade, but no finer than that of the lowest one.
        let top = match significand {
            0 => i64::MIN,
            _ => exponent as i64 + significand.ilog2() as i64 - man_bits as i64,
        };
        let last = if top > lsb { top } else { lsb };
        let (whole, fraction) = if significand == 0 {
            (0, Fraction { bits: 0, sticky: true })
        } else if significand <= u64::MAX as u128 {
            // One word, as mostly: with its leading bit at the top it always goes right.
            let zeros = significand.leading_zeros() - 64;
            let word = (significand as u64) << zeros;
            let shift = (last - exponent as i64 + zeros as i64) as u64;
            if shift < 64 {
                (word >> shift, Fraction { bits: word << (64 - shift), sticky })
            } else {
                shift_right(word as u128, shift, sticky)
            }
        } else {
            // More than 64 bits are more than the precision: right, too.
            shift_right(significand, (last - exponent as i64) as u64, sticky)
        };

        let mode = rules.rounding;
        let below_normal = self.min_normal_code().is_some()
            && last == lsb
            && whole < unit + (self.has_zero() && !self.field_zero_is_low()) as u64;
        let mut flags = Flags::NONE;
        let mut magnitude: u128;
        let inexact: bool;
        let first = unit + self.has_zero() as u64;
        let one_gap = if self.field_zero_is_low() {
            below_normal && matches!(rules.flush, Flush::Candidates)
        } else {
            last == lsb && whole < first
        };
        if !one_gap {
            let below = if self.field_zero_is_low() { 0 } else { unit };
            let steps = (last - lsb) as u128;
            let lower = (steps << man_bits) + (whole - below) as u128;
            inexact = !fraction.is_zero();
            magnitude = lower + goes_up(mode, negative, lower & 1 == 1, fraction, random) as u128;
        } else if self.has_zero() {
            // Between zero and the next value, `unit` or `unit + 1`, there is nothing: that whole
            // interval is one gap, and the number's place in it a quotient.
            let gap = if self.field_zero_is_low() { unit } else { first } as u128;
            let dividend = (whole as u128) << 64 | fraction.bits as u128;
            let sticky = fraction.sticky || !dividend.is_multiple_of(gap);
            let fraction = Fraction { bits: (dividend / gap) as u64, sticky };
            inexact = true;
            let up = goes_up(mode, negative, false, fraction, random);
            let next = if self.field_zero_is_low() { unit } else { 1 };
            magnitude = if up { next as u128 } else { 0 };
        } else {
            inexact = true;
            magnitude = 0;
            // A negative number without a place may become NaN: that is not the range's end.
            let outside = negative && !self.is_signed();
            flags = if outside { Flags::NONE } else { Flags::SATURATED };
        }
        let flushed = below_normal
            && self.has_zero()
            && match rules.flush {
                Flush::Input => true,
                Flush::Output => match self.min_normal_code() {
                    Some(normal) => magnitude != 0 && magnitude < normal as u128,
                    None => false,
                },
                Flush::None | Flush::Candidates => false,
            };
        if flushed {
            magnitude = 0;
            flags = flags.union(Flags::INEXACT).union(Flags::UNDERFLOW);
        }
        if below_normal && inexact {
            let tiny = match rules.tininess {
                Tininess::Before => true,
                Tininess::After => !self.reaches_normal(negative, whole, fraction, mode, random),
            };
            if tiny {
                flags = flags.union(Flags::UNDERFLOW);
            }
        }
        flags = flags.union(if inexact { Flags::INEXACT } else { Flags::NONE });
        self.bound(negative, magnitude, rules, flags)
    }

    /// Whether a number below the smallest normal value, in units of the lowest place, rounds up to
    /// it where the precision is full and the exponent unbounded.
    const fn reaches_normal(
        self,
        negative: bool,
        whole: u64,
        fraction: Fraction,
        mode: Rounding,
        random: u32,
    ) -> bool {
        let unit = 1_u64 << self.man_bits();
        if whole >= unit {
            // Only without subnormals: the place just below the smallest normal value.
            return goes_up(mode, negative, false, fraction, random);
        }
        // Between zero and the first value of a format without subnormals nothing counts as near.
        let far = self.has_zero() && !self.field_zero_is_low();
        if whole + 1 < unit || fraction.bits < HALF || far {
            return false;
        }
        // Below that value the full precision is finer by one bit, and all its bits are set.
        let rest = Fraction { bits: fraction.bits << 1, sticky: fraction.sticky };
        goes_up(mode, negative, self.man_bits() > 0, rest, random)
    }

    /// The last step: a rounded magnitude on the unbounded grid to a code that exists.
    const fn bound(self, negative: bool, magnitude: u128, rules: &Rules, flags: Flags) -> Rounded {
        if magnitude == 0 && self.has_zero() {
            return self.zero(negative, rules, flags);
        }
        if negative && !self.is_signed() {
            let to_zero = matches!(rules.overflow, Overflow::None)
                && matches!(rules.rounding, Rounding::TowardZero | Rounding::TowardPositive);
            return self.negative_in_unsigned(to_zero, rules, flags);
        }
        if magnitude <= self.largest(negative, rules.overflow) as u128 {
            return Rounded { code: self.signed_code(negative, magnitude as u64), flags };
        }
        let flags = flags.union(Flags::OVERFLOW).union(Flags::INEXACT);
        let inward = match rules.rounding {
            Rounding::TowardZero => true,
            Rounding::TowardPositive => negative,
            Rounding::TowardNegative => !negative,
            // P3109 keeps its infinities, of even code; elsewhere the largest value, as Berkeley
            // SoftFloat has it, so that a second rounding still sees a number.
            Rounding::ToOdd => {
                !matches!(self.specials(), Specials::P3109 { .. }) || self.max_code() & 1 == 1
            }
            _ => false,
        };
        match rules.overflow {
            Overflow::Finite | Overflow::Propagate | Overflow::Onnx => {
                self.saturated(negative, rules, flags)
            }
            Overflow::None if inward => self.saturated(negative, rules, flags),
            Overflow::None | Overflow::Infinity => self.beyond(negative, rules, flags),
            Overflow::Nan => self.not_a_number(negative, rules, flags),
        }
    }

    /// The code of an infinity, which may be an exact result or stand for an operand's.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Flags, Overflow, Rules};
    ///
    /// let of = |format: Format, overflow| {
    ///     format.round_infinity(true, &Rules::DEFAULT.with_overflow(overflow))
    /// };
    /// assert_eq!(of(Format::E5M2, Overflow::Propagate).code, 0xFC); // it stays
    /// assert_eq!(of(Format::E5M2, Overflow::Finite).code, 0xFB); // the largest number
    /// let nan = of(Format::E4M3FN, Overflow::None); // where there is none
    /// assert_eq!((nan.code, nan.flags), (0xFF, Flags::INVALID));
    /// ```
    #[inline]
    pub const fn round_infinity(self, negative: bool, rules: &Rules) -> Rounded {
        if negative && !self.is_signed() {
            return self.negative_in_unsigned(false, rules, Flags::NONE);
        }
        match rules.overflow {
            Overflow::None | Overflow::Infinity => self.beyond(negative, rules, Flags::NONE),
            Overflow::Propagate => match self.infinity_code(negative) {
                Some(code) => Rounded { code, flags: Flags::NONE },
                None => self.saturated(negative, rules, Flags::NONE),
            },
            Overflow::Onnx if matches!(self.specials(), Specials::Fnuz) => {
                self.not_a_number(negative, rules, Flags::NONE)
            }
            Overflow::Finite | Overflow::Onnx => self.saturated(negative, rules, Flags::NONE),
            Overflow::Nan => self.not_a_number(negative, rules, Flags::NONE),
        }
    }

    const fn zero(self, negative: bool, rules: &Rules, flags: Flags) -> Rounded {
        if !self.has_zero() {
            // Only an exact zero, or a negative number without a place, comes here.
            let smallest = matches!(rules.absent_zero, AbsentZero::Smallest);
            return if smallest || rules.overflow.saturates() || !self.has_nan() {
                let code = self.signed_code(negative && self.is_signed(), 0);
                Rounded { code, flags: flags.union(Flags::SATURATED).union(Flags::INEXACT) }
            } else {
                self.not_a_number(false, rules, flags)
            };
        }
        Rounded { code: self.signed_code(negative && self.has_negative_zero(), 0), flags }
    }

    const fn negative_in_unsigned(self, zero: bool, rules: &Rules, flags: Flags) -> Rounded {
        if !self.has_zero() {
            self.zero(false, rules, flags)
        } else if zero || rules.overflow.saturates() || !self.has_nan() {
            Rounded { code: 0, flags: flags.union(Flags::SATURATED).union(Flags::INEXACT) }
        } else {
            self.not_a_number(false, rules, flags)
        }
    }

    /// Infinity, or what stands for it: NaN in FN and FNUZ formats, else the largest value.
    const fn beyond(self, negative: bool, rules: &Rules, flags: Flags) -> Rounded {
        match (self.infinity_code(negative), self.specials()) {
            (Some(code), _) => Rounded { code, flags },
            (None, Specials::Fn | Specials::Fnuz) => self.not_a_number(negative, rules, flags),
            (None, _) => self.saturated(negative, rules, flags),
        }
    }

    const fn saturated(self, negative: bool, rules: &Rules, flags: Flags) -> Rounded {
        let code = self.signed_code(negative, self.largest(negative, rules.overflow));
        Rounded { code, flags: flags.union(Flags::SATURATED) }
    }

    /// NaN in place of a number, which is invalid, or the largest value where there is none.
    const fn not_a_number(self, negative: bool, rules: &Rules, flags: Flags) -> Rounded {
        match self.nan_of(negative, rules.nan.code) {
            Some(code) => Rounded { code, flags: flags.union(Flags::INVALID) },
            None => self.saturated(negative, rules, flags),
        }
    }

    /// The largest magnitude of a sign, in units of codes.
    #[inline]
    const fn largest(self, negative: bool, overflow: Overflow) -> u64 {
        let one_more = negative
            && matches!(self.sign(), Sign::TwosComplement)
            && matches!(overflow, Overflow::None | Overflow::Nan | Overflow::Infinity);
        self.max_code() + one_more as u64
    }

    #[inline]
    pub(super) const fn signed_code(self, negative: bool, magnitude: u64) -> u64 {
        match self.sign() {
            Sign::TwosComplement if negative => magnitude.wrapping_neg() & low_bits(self.bits()),
            _ => magnitude | (negative as u64) << self.magnitude_bits(),
        }
    }
}

impl Exact {
    /// The integer that a mode chooses, without its sign, and whether it differs from the number;
    /// `None` if it has more than 128 bits. Odd and even are the integer's here.
    ///
    /// ```
    /// use exmy::format::Value;
    /// use exmy::round::Rounding;
    ///
    /// let of = |x: f64, mode| Value::from_f64(x).exact().unwrap().to_integer(mode, 0);
    /// assert_eq!(of(-2.5, Rounding::TiesToEven), Some((2, true))); // without its sign
    /// assert_eq!(of(-2.5, Rounding::TowardNegative), Some((3, true))); // which counts all the same
    /// assert_eq!(of(1e39, Rounding::TiesToEven), None); // more than 128 bits
    /// ```
    ///
    /// # Panics
    /// If the mode is stochastic with a bit count outside 1..=32.
    pub const fn to_integer(self, mode: Rounding, random: u32) -> Option<(u128, bool)> {
        let Self { negative, significand, exponent, sticky } = self;
        if significand == 0 && !sticky {
            return Some((0, false));
        }
        if exponent > 0 {
            // A sticky part would be worth more than a unit here.
            let fits = exponent.unsigned_abs() <= significand.leading_zeros() && !sticky;
            return if fits { Some((significand << exponent, false)) } else { None };
        }
        let shift = exponent.unsigned_abs();
        let whole = if shift < 128 { significand >> shift } else { 0 };
        let (_, fraction) = shift_right(significand, shift as u64, sticky);
        let up = goes_up(mode, negative, whole & 1 == 1, fraction, random);
        match whole.checked_add(up as u128) {
            Some(integer) => Some((integer, !fraction.is_zero())),
            None => None,
        }
    }
}

impl Value {
    /// The number as the rounding core takes it; `None` for NaN and infinity.
    ///
    /// ```
    /// use exmy::format::Value;
    ///
    /// assert_eq!(Value::from_f32(f32::INFINITY).exact(), None);
    /// let zero = Value::from_f32(-0.0).exact().unwrap();
    /// assert!(zero.negative && zero.significand == 0 && !zero.sticky);
    /// ```
    pub const fn exact(self) -> Option<Exact> {
        match self {
            Self::Finite { negative, significand, exponent } => {
                Some(Exact { negative, significand: significand as u128, exponent, sticky: false })
            }
            _ => None,
        }
    }
}
