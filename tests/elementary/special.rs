//! specials
use exmy::math::elementary::Function;

use crate::common::Num;

/// Whether the result is rational or there is none: the cases of the standards' tables, told apart
/// here by other means than in the crate, from the reduced fraction.
pub fn is_rational(function: Function, negative: bool, x: Num) -> bool {
    use Function as F;
    let zeros = x.integer.trailing_zeros();
    let (odd, power) = (x.integer >> zeros, x.exponent + zeros as i32);
    let one = odd == 1 && power == 0;
    let above_one = !one && power + 127 - odd.leading_zeros() as i32 >= 0;
    match function {
        F::Exp2 => power >= 0,
        F::Log => negative || one,
        F::Log2 => negative || odd == 1,
        F::Log1p => negative && (one || above_one),
        F::Asin | F::AsinPi | F::Acos | F::AcosPi | F::Atanh => one || above_one,
        F::Atan | F::AtanPi => one,
        F::Acosh => negative || !above_one,
        F::SinPi | F::CosPi => power >= -1,
        F::TanPi => power >= -2,
        _ => false,
    }
}
