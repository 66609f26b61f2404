//! Every finite code but zero of the named formats of up to 8 bits and of all of P3109 with 3 to 8,
//! every function of one operand, every deterministic mode, each family by its standard's table:
//! code and all six flags, against the arbitrary-precision oracle or, where a result is rational,
//! infinite or NaN, the standards' tables. All policies where a result may be out of range, both
//! notions of tininess where it may be tiny. (Other operands: `special`.)

use std::collections::HashMap;

use exmy::math::elementary::Function;
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rounding, Rules, Standard, Tininess};

use crate::common::{Meaning, Num};
use crate::oracle;
use crate::places::{self, Finite, Grid, Real, is_p3109};

/// Results of the oracle by function and number in lowest terms.
#[derive(Default)]
pub(crate) struct Known(HashMap<(Function, bool, u128, i32), (bool, Num)>);

impl Known {
    pub(crate) fn unary(&mut self, function: Function, negative: bool, x: Num) -> (bool, Num) {
        let zeros = x.integer.trailing_zeros();
        let (integer, exponent) = (x.integer >> zeros, x.exponent + zeros as i32);
        let entry = self.0.entry((function, negative, integer, exponent));
        *entry.or_insert_with(|| oracle::unary(function, negative, Num::new(integer, exponent)))
    }
}

/// What the standards' tables say where a result is rational or there is none; `None` elsewhere.
/// Operands are finite and not zero.
fn exact(function: Function, negative: bool, x: Num, p3109: bool) -> Option<Real> {
    use Function as F;
    let zeros = x.integer.trailing_zeros();
    let (odd, power) = (x.integer >> zeros, x.exponent + zeros as i32);
    let order = x.cmp(&Num::new(1, 0));
    let number = |negative: bool, n: u128, exponent: i32| {
        Some(Real::Finite(Finite::new(negative, n.into(), exponent.into())))
    };
    let (nan, zero) = (Some(Real::Nan(false)), |negative| number(negative, 0, 0));
    // Whether an integer is odd, and which half or quarter of a turn a number is.
    let part = |quarter: i32| {
        let places = power - quarter;
        if places >= 64 { 0 } else { (odd << places) % 8 }
    };
    match function {
        // Beyond 2^20 the oracle knows that it is out of every range here.
        F::Exp2 if power >= 0 && power + 128 - (odd.leading_zeros() as i32) <= 20 => {
            let n = (odd << power) as i32;
            number(false, 1, if negative { -n } else { n })
        }
        F::Log | F::Log2 if negative => nan,
        F::Log if order.is_eq() => zero(false),
        F::Log2 if odd == 1 => number(power < 0, power.unsigned_abs().into(), 0),
        F::Log1p if negative && order.is_eq() => Some(Real::Infinite(true)),
        F::Log1p if negative && order.is_gt() => nan,
        F::Asin | F::AsinPi | F::Acos | F::AcosPi | F::Atanh if order.is_gt() => nan,
        F::Atanh if order.is_eq() => Some(Real::Infinite(negative)),
        F::AsinPi if order.is_eq() => number(negative, 1, -1),
        F::Acos | F::AcosPi if order.is_eq() && !negative => zero(false),
        F::AcosPi if order.is_eq() => number(false, 1, 0),
        F::AtanPi if order.is_eq() => number(negative, 1, -2),
        F::Acosh if negative || order.is_lt() => nan,
        F::Acosh if order.is_eq() => zero(false),
        // In half turns: 0, 1/2, 1, 3/2.
        F::SinPi if power >= -1 => match part(-1) % 4 {
            1 => number(negative, 1, 0),
            3 => number(!negative, 1, 0),
            _ => zero(negative),
        },
        F::CosPi if power >= -1 => match part(-1) % 4 {
            0 => number(false, 1, 0),
            2 => number(true, 1, 0),
            _ => zero(false),
        },
        // In quarters: the period is four of them, the sign of zeros and poles that of eight.
        F::TanPi if power >= -2 => match part(-2) {
            0 => zero(negative),
            4 => zero(!negative),
            1 | 5 => number(negative, 1, 0),
            3 | 7 => number(!negative, 1, 0),
            _ if p3109 => nan,
            2 => Some(Real::Infinite(negative)),
            _ => Some(Real::Infinite(!negative)),
        },
        _ => None,
    }
}

fn check(share: usize) {
    let mut known = Known::default();
    let mut compared = 0_u64;
    let grids: Vec<Grid> = places::formats(8, 3..=8).into_iter().map(Grid::new).collect();
    for (i, function) in Function::ALL.into_iter().enumerate() {
        if i % 2 != share || function.operands() != 1 {
            continue;
        }
        for grid in &grids {
            let (format, p3109) = (grid.format, is_p3109(grid.format));
            let standard = if p3109 { Standard::P3109 } else { Standard::Ieee754 };
            for code in format.codes() {
                let operand = grid.decode(code);
                let Meaning::Finite(negative, num) = operand else { continue };
                if num.integer == 0 {
                    continue;
                }
                let result = exact(function, negative, num, p3109).unwrap_or_else(|| {
                    let (sign, first) = known.unary(function, negative, num);
                    Real::Finite(Finite::new(sign, first.integer.into(), first.exponent.into()))
                });
                let raised = places::raised(&result, &[operand], false);
                let place = match &result {
                    Real::Finite(x) => Some(grid.place(x)),
                    _ => None,
                };
                let inside = match &result {
                    Real::Finite(x) => {
                        place.is_some_and(|place| place.lower < grid.model.max_code())
                            && (!x.negative || grid.model.signed)
                            && grid.model.zero
                    }
                    _ => false,
                };
                let policies = if inside { &Overflow::ALL[..1] } else { &Overflow::ALL[..] };
                let may_be_tiny = place.is_some_and(|place| grid.may_be_tiny(place));
                for &overflow in policies {
                    for mode in Rounding::DETERMINISTIC {
                        let kinds = [Tininess::After, Tininess::Before];
                        for &tininess in &kinds[..if may_be_tiny { 2 } else { 1 }] {
                            let rules = Rules::DEFAULT
                                .with_standard(standard)
                                .with_tininess(tininess)
                                .with_overflow(overflow);
                            let ctx = Context::new(format, rules.with_rounding(mode));
                            let ours = ctx
                                .apply(function, Operand::new(format, code))
                                .unwrap_or_else(|e| panic!("{e} {format} {code:#x}"));
                            let expected =
                                grid.outcome(&result, place, (mode, overflow, tininess), 0, raised);
                            assert_eq!(
                                (ours.code, ours.flags.bits()),
                                expected,
                                "{function} of {format} {code:#x} by {mode} {overflow} {tininess:?}"
                            );
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 500_000, "only {compared} cases");
}

#[test]
fn all_codes_of_up_to_8_bits_agree_with_the_oracle_1() {
    check(0);
}

#[test]
fn all_codes_of_up_to_8_bits_agree_with_the_oracle_2() {
    check(1);
}
