//! Minimum, maximum and clamp (IEEE 754-2019, 9.6; P3109 Interim Report 4.0).
//!
//! The families differ in two choices: what is compared (values or magnitudes), and whether NaN
//! wins or numbers do. In P3109's finite ones, finite numbers also win over infinities. Everywhere
//! -0 is below +0. The operand chosen is converted to the result's format.

use core::cmp::Ordering;

use super::convert::magnitude as magnitude_of;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Flags, Rounded};

/// Which operands go before others, whatever their order.
#[derive(Clone, Copy)]
enum First {
    Nan,
    Numbers,
    Finite,
}

/// `minimum` and the like: name, what it is, whether by magnitude, whether the larger, who is
/// first.
macro_rules! families {
    ($($name:ident: $doc:literal, $magnitude:literal, $larger:literal, $first:ident;)*) => {
        impl Context {
            $(
                #[doc = $doc]
                /// # Panics
                /// As [`add`](Self::add).
                pub const fn $name(&self, a: Operand, b: Operand) -> Rounded {
                    self.choose(a, b, $magnitude, $larger, First::$first)
                }
            )*
        }
    };
}

families! {
    minimum: "The smaller of two; NaN if either is NaN.", false, false, Nan;
    maximum: "The larger of two; NaN if either is NaN.", false, true, Nan;
    minimum_number: "The smaller of two; the number if the other is NaN, and a signaling NaN sets \
        [`Flags::INVALID`] even then.", false, false, Numbers;
    maximum_number: "The larger of two; the number if the other is NaN, and a signaling NaN sets \
        [`Flags::INVALID`] even then.", false, true, Numbers;
    minimum_magnitude: "The one of smaller magnitude, of equal ones the smaller; NaN if either is \
        NaN.", true, false, Nan;
    maximum_magnitude: "The one of larger magnitude, of equal ones the larger; NaN if either is \
        NaN.", true, true, Nan;
    minimum_magnitude_number: "The one of smaller magnitude, of equal ones the smaller; the number \
        if the other is NaN.", true, false, Numbers;
    maximum_magnitude_number: "The one of larger magnitude, of equal ones the larger; the number \
        if the other is NaN.", true, true, Numbers;
    minimum_finite: "The smaller of two finite numbers; a finite number goes before an infinity \
        and that before NaN (P3109).", false, false, Finite;
    maximum_finite: "The larger of two finite numbers; a finite number goes before an infinity \
        and that before NaN (P3109).", false, true, Finite;
}

impl Context {
    /// `x`, or the end of `low..=high` that it lies beyond. NaN if any of the three is, and if
    /// `low > high`, which is invalid.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::F32, Rules::DEFAULT);
    /// let clamp = |x, low, high| context.clamp(Operand::f32(x), Operand::f32(low), Operand::f32(high));
    /// assert_eq!(clamp(7.0, -1.0, 2.5).code, 0x4020_0000); // 2.5
    /// assert_eq!(clamp(0.0, 1.0, -1.0).flags, Flags::INVALID); // no such range
    /// assert_eq!(clamp(f32::NAN, 0.0, 1.0).code, 0x7FC0_0000);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn clamp(&self, x: Operand, low: Operand, high: Operand) -> Rounded {
        let (value, from, to) = (self.read(x), self.read(low), self.read(high));
        if value.is_nan() || from.is_nan() || to.is_nan() {
            return self.pass_first_nan(&[x, low, high]);
        }
        if matches!(from.compare(to), Some(Ordering::Greater)) {
            return self.to.made_nan(&self.rules);
        }
        let value = if is_below(value, from) { from } else { value };
        let value = if is_below(to, value) { to } else { value };
        self.to.encode_by(value, &self.rules, self.word())
    }

    const fn choose(
        &self,
        a: Operand,
        b: Operand,
        magnitude: bool,
        larger: bool,
        first: First,
    ) -> Rounded {
        let (x, y) = (self.read(a), self.read(b));
        let value = match (x.is_nan(), y.is_nan(), first) {
            (true, true, _) | (true, _, First::Nan) | (_, true, First::Nan) => {
                return self.pass_first_nan(&[a, b]);
            }
            (true, false, _) => y,
            (false, true, _) => x,
            _ => match (first, x.is_finite(), y.is_finite()) {
                (First::Finite, true, false) => x,
                (First::Finite, false, true) => y,
                _ => {
                    let order =
                        if magnitude { magnitude_of(x).compare(magnitude_of(y)) } else { None };
                    let below = match order {
                        Some(Ordering::Less) => true,
                        Some(Ordering::Greater) => false,
                        _ => is_below(x, y),
                    };
                    if below != larger { x } else { y }
                }
            },
        };
        let Rounded { code, flags } = self.to.encode_by(value, &self.rules, self.word());
        let signaling = a.is_signaling() || b.is_signaling();
        Rounded { code, flags: if signaling { flags.union(Flags::INVALID) } else { flags } }
    }
}

/// `a < b` of values that are not NaN, with -0 below +0.
const fn is_below(a: Value, b: Value) -> bool {
    match a.compare(b) {
        Some(Ordering::Equal) => a.is_sign_negative() && !b.is_sign_negative(),
        order => matches!(order, Some(Ordering::Less)),
    }
}
