//! Exact numbers to decimal digits: the shortest that are read back, or all of them.
//!
//! A number is held as a fraction `numerator / denominator * 10^k` of two natural numbers with a
//! quotient of one digit. So each digit is a quotient, and the remainder times ten is the next
//! numerator.
//!
//! The shortest digits are those of Steele and White (PLDI 1990). They are the fewest that lie
//! nearer to the number than to its neighbours in the format, and of these the nearest to the
//! number. Coarse formats need care that binary64 does not. In a format where the neighbours of 8
//! are 4 and 16, the usual digit generation writes 10, though 8 is as short and nearer.

use super::big::Big;

/// Limbs for numbers between `2^-SMALL_LIMIT` and `2^SMALL_LIMIT`, binary64 included.
pub(super) const SMALL: usize = 40;
pub(super) const SMALL_LIMIT: i32 = 1100;
/// Limbs for those of 16 exponent bits.
pub(super) const WIDE: usize = 1040;
pub(super) const WIDE_LIMIT: i32 = 33_000;

/// `d.ddd * 10^exponent`, the digits before the point not all zero.
#[derive(Clone, Copy)]
pub(super) struct Decimal {
    digits: [u8; 20],
    len: usize,
    pub(super) exponent: i32,
}

impl Decimal {
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[..self.len]
    }

    /// One more in the last place.
    fn increment(&mut self) {
        while let Some(last) = self.len.checked_sub(1) {
            if self.digits[last] < 9 {
                self.digits[last] += 1;
                return;
            }
            self.len = last;
        }
        (self.digits[0], self.len) = (1, 1);
        self.exponent += 1;
    }
}

/// A number without its neighbours: `significand * 2^exponent`, not zero.
#[derive(Clone, Copy)]
pub(super) struct Binary {
    pub(super) significand: u64,
    pub(super) exponent: i32,
}

impl Binary {
    /// Whether exact decimal text of it is within the capacity.
    pub(super) fn in_range(self, limit: i32) -> bool {
        let top = self.exponent + 64 - self.significand.leading_zeros() as i32;
        self.exponent >= -limit && top <= limit
    }

    /// The unit `2^exponent / 10^k` as a fraction, for `k` near the number's decimal exponent.
    fn unit<const N: usize>(self) -> (Big<N>, Big<N>, i32) {
        let log2 = i64::from(self.exponent) + i64::from(self.significand.ilog2());
        let k = ((log2 * 315_653) >> 20) as i32; // log10(2) * 2^20
        let (mut unit, mut denominator) = (Big::new(1), Big::new(1));
        if k >= 0 {
            denominator.multiply_by_power_of_five(k as u32);
        } else {
            unit.multiply_by_power_of_five(k.unsigned_abs());
        }
        let twos = self.exponent - k;
        if twos >= 0 {
            unit.shift_left(twos as u32);
        } else {
            denominator.shift_left(twos.unsigned_abs());
        }
        (unit, denominator, k)
    }
}

/// The digits of a number, one after the other, without end.
pub(super) struct Digits<const N: usize> {
    numerator: Big<N>,
    denominator: Big<N>,
    pub(super) exponent: i32,
}

impl<const N: usize> Digits<N> {
    pub(super) fn new(number: Binary) -> Self {
        let (mut numerator, mut denominator, mut exponent) = number.unit();
        numerator.multiply_add(number.significand, 0);
        while numerator.compare(&denominator).is_lt() {
            numerator.multiply_add(10, 0);
            exponent -= 1;
        }
        // The estimate of the exponent may be one too small, never more.
        let mut tenfold = denominator.clone();
        tenfold.multiply_add(10, 0);
        if numerator.compare(&tenfold).is_ge() {
            denominator = tenfold;
            exponent += 1;
        }
        Self { numerator, denominator, exponent }
    }

    /// Whether only zeros follow.
    pub(super) fn is_done(&self) -> bool {
        self.numerator.is_zero()
    }

    pub(super) fn next_digit(&mut self) -> u8 {
        let digit = self.numerator.digit(&self.denominator);
        self.numerator.multiply_add(10, 0);
        digit
    }
}

/// How far digits may miss a number: quarters of its last place down to the middle of the lower
/// neighbour and up to that of the upper one. The middles are included if `inclusive`.
#[derive(Clone, Copy)]
pub(super) struct Margins {
    pub(super) down: u64,
    pub(super) up: u64,
    pub(super) inclusive: bool,
}

/// The shortest digits within the margins, and of these the nearest.
pub(super) fn shortest<const N: usize>(number: Binary, margins: Margins) -> Decimal {
    let quarters = Binary { exponent: number.exponent - 2, significand: number.significand * 4 };
    let (unit, mut denominator, mut exponent) = quarters.unit::<N>();
    let times = |factor| {
        let mut product = unit.clone();
        product.multiply_add(factor, 0);
        product
    };
    let (mut rest, mut down, mut up) =
        (times(quarters.significand), times(margins.down), times(margins.up));
    while rest.compare(&denominator).is_lt() {
        for part in [&mut rest, &mut down, &mut up] {
            part.multiply_add(10, 0);
        }
        exponent -= 1;
    }
    let mut tenfold = denominator.clone();
    tenfold.multiply_add(10, 0);
    if rest.compare(&tenfold).is_ge() {
        denominator = tenfold;
        exponent += 1;
    }
    let mut decimal = Decimal { digits: [0; 20], len: 0, exponent };
    loop {
        decimal.digits[decimal.len] = rest.digit(&denominator);
        decimal.len += 1;
        let mut above = denominator.clone();
        above.subtract(&rest);
        let within = |distance: &Big<N>, margin: &Big<N>| {
            let order = distance.compare(margin);
            order.is_lt() || (order.is_eq() && margins.inclusive)
        };
        let (lower, upper) = (within(&rest, &down), within(&above, &up));
        if lower || upper {
            if upper && (!lower || above.compare(&rest).is_le()) {
                decimal.increment();
            }
            return decimal;
        }
        for part in [&mut rest, &mut down, &mut up] {
            part.multiply_add(10, 0);
        }
    }
}

/// How many digits of a number to write, and whether rounding to nearest even carries into them.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Of the first digit written.
    pub(super) exponent: i32,
    /// Digits of the number to write.
    pub(super) count: usize,
    /// The digit that is one more; those after it are zero.
    carry: Option<usize>,
    /// All digits carried away: a one and zeros.
    pub(super) power_of_ten: bool,
}

impl Plan {
    /// For `count` digits, which may be none (then the number may still round up to one).
    pub(super) fn new<const N: usize>(number: Binary, places: impl Fn(i32) -> i64) -> Self {
        let mut digits = Digits::<N>::new(number);
        let exponent = digits.exponent;
        let count = places(exponent);
        let (mut below_nine, mut odd) = (None, false);
        for i in 0..count.max(0) as usize {
            let digit = digits.next_digit();
            if digit != 9 {
                below_nine = Some(i);
            }
            odd = digit % 2 == 1;
        }
        let next = if count < 0 { 0 } else { digits.next_digit() };
        let up = next > 5 || (next == 5 && (odd || !digits.is_done()));
        let count = count.max(0) as usize;
        match (up, below_nine) {
            (true, None) => Self { exponent: exponent + 1, count, carry: None, power_of_ten: true },
            (true, carry) => Self { exponent, count, carry, power_of_ten: false },
            (false, _) => Self { exponent, count, carry: None, power_of_ten: false },
        }
    }

    /// The digit at place `i`, given the number's own.
    pub(super) fn digit(&self, i: usize, own: u8) -> u8 {
        match self.carry {
            Some(carry) if i == carry => own + 1,
            Some(carry) if i > carry => 0,
            _ => own,
        }
    }
}
