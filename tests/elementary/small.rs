//! Exhaustive: every code of every format of up to 8 bits, every function of one operand, every
//! deterministic mode, against the arbitrary-precision oracle.

use std::collections::HashMap;

use exmy::format::{Format, NAMED};
use exmy::math::elementary::Function;
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Overflow, Rounding, Rules};

use crate::common::{Meaning, Model, Num};
use crate::{number, oracle};

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

/// Formats of up to 8 bits: the catalog's, and all of P3109 with 8 bits.
fn formats() -> Vec<Format> {
    let mut formats: Vec<_> =
        NAMED.iter().map(|(_, format)| *format).filter(|format| format.bits() <= 8).collect();
    for signed in [true, false] {
        for infinite in [true, false] {
            for p in 1..=8 - u32::from(signed) {
                formats.push(Format::p3109(8, p, signed, infinite).unwrap());
            }
        }
    }
    formats
}

fn check(share: usize) {
    let mut known = Known::default();
    let mut compared = 0_u64;
    for (i, function) in Function::ALL.into_iter().enumerate() {
        if i % 2 != share || function.operands() != 1 {
            continue;
        }
        for format in formats() {
            let model = Model::of(format);
            for code in format.codes() {
                let x = Operand::new(format, code);
                let Some((negative, num)) = number(&model, code) else { continue };
                if crate::special::is_rational(function, negative, num) {
                    continue;
                }
                let (sign, result) = known.unary(function, negative, num);
                for mode in Rounding::DETERMINISTIC {
                    for overflow in [Overflow::None, Overflow::Finite] {
                        let rules = Rules::DEFAULT.with_rounding(mode).with_overflow(overflow);
                        let ours = Context::new(format, rules)
                            .apply(function, x)
                            .unwrap_or_else(|e| panic!("{e} {x:?}"));
                        let expected =
                            model.encode(Meaning::Finite(sign, result), mode, overflow, 0);
                        assert_eq!(
                            ours.code, expected,
                            "{function} of {format} {code:#x} by {mode} {overflow}"
                        );
                        // Irrational results are never exact.
                        assert!(
                            ours.flags.contains(Flags::INEXACT)
                                || ours.flags.contains(Flags::INVALID)
                        );
                        compared += 1;
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
