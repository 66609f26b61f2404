//! Comparisons: by value ([`compare`](Operand::compare)), with IEEE 754's flags
//! ([`compare_quiet`](Operand::compare_quiet), [`compare_signaling`](Operand::compare_signaling))
//! and in total order ([`total_cmp`](Operand::total_cmp)).
//!
//! IEEE 754-2019, 5.6.1, 5.10 and 5.11; P3109 Interim Report 4.0, Compare and TotalOrder.

use core::cmp::Ordering;

use super::Operand;
use crate::format::Value;
use crate::round::{Flags, Standard};

impl Operand {
    /// The order of the values, exactly and across formats; `None` if either is NaN. `-0` equals
    /// `+0`.
    ///
    /// This is P3109's Compare; the `==` of operands asks for the same code of the same format.
    ///
    /// ```
    /// use core::cmp::Ordering;
    /// use exmy::format::Format;
    /// use exmy::math::Operand;
    /// use exmy::round::Flags;
    ///
    /// let (tenth, nan) = (Operand::f32(0.1), Operand::f32(f32::NAN));
    /// assert_eq!(tenth.compare(Operand::f64(0.1)), Some(Ordering::Greater)); // as exact as they are
    /// assert_eq!(tenth.compare_quiet(nan), (None, Flags::NONE));
    /// assert_eq!(tenth.compare_signaling(nan), (None, Flags::INVALID));
    /// assert_eq!(tenth.compare_quiet(Operand::new(Format::E5M2, 0x7D)), (None, Flags::INVALID));
    /// ```
    #[inline]
    pub const fn compare(self, other: Self) -> Option<Ordering> {
        self.value().compare(other.value())
    }

    /// The order of the values with the flags of a *quiet* comparison: a signaling NaN is invalid.
    /// IEEE 754's `compareQuiet...`, and its `==`.
    pub const fn compare_quiet(self, other: Self) -> (Option<Ordering>, Flags) {
        let signaling = self.is_signaling() || other.is_signaling();
        (self.compare(other), if signaling { Flags::INVALID } else { Flags::NONE })
    }

    /// The order of the values with the flags of a *signaling* comparison: any NaN is invalid.
    /// IEEE 754's `compareSignaling...`, and its `<` and `<=`.
    pub const fn compare_signaling(self, other: Self) -> (Option<Ordering>, Flags) {
        let order = self.compare(other);
        (order, if order.is_none() { Flags::INVALID } else { Flags::NONE })
    }

    /// The total order of a standard.
    ///
    /// IEEE 754: `-NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN`, and of NaNs of one sign the
    /// signaling ones lie nearer to zero, then the smaller payloads. P3109: NaN, which has no sign,
    /// below everything, then the numbers. Codes of different formats with the same value, or the
    /// same top bits of their payloads, are equal.
    ///
    /// ```
    /// use core::cmp::Ordering;
    /// use exmy::math::Operand;
    /// use exmy::round::Standard;
    ///
    /// let [nan, one] = [f32::NAN, 1.0].map(Operand::f32);
    /// assert_eq!(nan.total_cmp(one, Standard::Ieee754), Ordering::Greater);
    /// assert_eq!(nan.total_cmp(one, Standard::P3109), Ordering::Less);
    /// ```
    pub const fn total_cmp(self, other: Self, standard: Standard) -> Ordering {
        let (a, b) = (self.value(), other.value());
        if let Some(order) = a.compare(b) {
            let zeros = a.is_zero() && b.is_zero() && matches!(standard, Standard::Ieee754);
            return if zeros { by_sign(a, b) } else { order };
        }
        match (standard, a.is_nan(), b.is_nan()) {
            (Standard::P3109, true, true) => Ordering::Equal,
            (Standard::P3109, true, false) => Ordering::Less,
            (Standard::P3109, false, _) => Ordering::Greater,
            (Standard::Ieee754, true, false) => outermost(a),
            (Standard::Ieee754, false, _) => outermost(b).reverse(),
            (Standard::Ieee754, true, true) => {
                let order = by_sign(a, b);
                if !matches!(order, Ordering::Equal) {
                    return order;
                }
                let (x, y) = (self.nan_rank(), other.nan_rank());
                match (x < y, x == y) {
                    (_, true) => Ordering::Equal,
                    (less, _) => {
                        if less != a.is_sign_negative() {
                            Ordering::Less
                        } else {
                            Ordering::Greater
                        }
                    }
                }
            }
        }
    }

    /// A NaN's payload; formats with one NaN rank it with the canonical quiet one.
    const fn nan_rank(self) -> u64 {
        match self.format.nan_payload(self.code) {
            0 => 1 << 63,
            payload => payload,
        }
    }
}

/// The order of a NaN and a number.
const fn outermost(nan: Value) -> Ordering {
    if nan.is_sign_negative() { Ordering::Less } else { Ordering::Greater }
}

const fn by_sign(a: Value, b: Value) -> Ordering {
    match (a.is_sign_negative(), b.is_sign_negative()) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}
