//! Sums in a register of fixed point: int32, or any two's complement number with a place for its point.
//!
//! Nothing is aligned to anything. Every term is cut at the register's last place, the terms of a step are
//! added exactly to what it holds, and what is beyond its ends then saturates or wraps. After the last step
//! the register is rounded to the result, once.

use alloc::vec::Vec;

use super::Unit;
use super::align::{round, round_special, special};
use super::explain::{Event, Log, Name, Placed};
use super::factor::{Factor, FactorClass};
use super::parameters::{Beyond, Cut, Parameters, UnitFlush};
use super::row::Row;
use super::steps::{Step, rounded};
use crate::format::Sign;
use crate::round::{Flush, Overflow, Rules};

/// A term of as many last places is too large for any register of 53 bits; 257 of them still have a sum.
const LARGEST: i64 = 1 << 54;

impl Parameters {
    /// Whether sums are kept in fixed point.
    pub(super) const fn in_register(&self) -> bool {
        matches!(self.output.sign(), Sign::TwosComplement)
    }

    /// A term in last places of the register, and whether digits were lost.
    fn placed(&self, term: &Factor) -> (i64, bool) {
        let shift =
            i64::from(term.exponent) - i64::from(term.digits) - i64::from(self.output.lsb());
        if term.significand == 0 {
            return (0, false);
        }
        let sign = if term.negative { -1 } else { 1 };
        let (kept, lost) = if shift < 0 {
            self.cut.apply(term, self.output.lsb())
        } else {
            let shifted = if shift < 70 { i128::from(term.significand) << shift } else { 0 };
            let kept = match self.beyond {
                // The lowest 64 bits are all that a narrower register can keep of it.
                Beyond::Wrap => self.wrapped(shifted as i64),
                Beyond::Saturate if shift >= 70 => LARGEST,
                Beyond::Saturate => shifted.min(LARGEST.into()) as i64,
            };
            (sign * kept, false)
        };
        (kept.clamp(-LARGEST, LARGEST), lost)
    }

    /// The low bits of a number, as the register holds them.
    const fn wrapped(&self, number: i64) -> i64 {
        let unused = 64 - self.output.bits();
        number << unused >> unused
    }

    /// What the register holds of a sum.
    fn held(&self, sum: i64) -> i64 {
        let most = self.output.max_code() as i64;
        match self.beyond {
            Beyond::Saturate => sum.clamp(-most - 1, most),
            Beyond::Wrap => self.wrapped(sum),
        }
    }
}

impl Unit {
    /// What is impossible about a register of fixed point, if anything.
    pub(super) fn register_conflict(&self) -> Option<&'static str> {
        let Self { a, b, result, parameters: p, .. } = self;
        let specials = [a, b].iter().any(|input| {
            let scale = input.scale.is_some_and(|scale| scale.format.has_nan());
            input.format.has_nan() || input.format.has_infinity() || scale
        });
        let powers = [a.scale, b.scale].iter().flatten().all(|scale| scale.is_power_of_two());
        let plain = matches!(p.cut, Cut::Truncate | Cut::Floor) && p.promote.is_none();
        if p.order != super::StepOrder::Fused || !plain {
            Some("sums in fixed point (out=intW) have order=fused, align=rz or rd, and no promote=")
        } else if !powers {
            Some("sums in fixed point take scales that are powers of two")
        } else if p.flush != UnitFlush::As(Flush::None) && result.sign() == Sign::TwosComplement {
            Some("a fixed-point result has no subnormal numbers that flush= could be about")
        } else if specials && !result.has_nan() {
            Some("operands with NaN or infinity need a result that has NaN, such as f32")
        } else {
            None
        }
    }

    /// A dot product in a register, and the random word of its one rounding.
    pub(super) fn register(
        &self,
        a: &Row<'_>,
        b: &Row<'_>,
        addend: u64,
        word: Option<u32>,
        log: &mut Log,
    ) -> u64 {
        let p = &self.parameters;
        let k = a.codes.len();
        let unit = p.output.lsb();
        let whole = Step { a, b, range: 0..k, result: self.result, addend, words: &[] };
        log.add_some(|| p.zeroed(&whole));
        let addend = p.read(self.result, addend);
        let products: Vec<Factor> = (0..k).map(|k| p.product(a, b, k)).collect();
        let all = || products.iter().chain([&addend]);
        if let Some(found) = special(all()) {
            let code = round_special(found, self.result, p.nan);
            log.add(|| {
                let names = (0..k).map(Name::Product).chain([Name::Addend]);
                let terms = names.zip(all().copied());
                let terms = terms.filter(|(_, term)| term.class != FactorClass::Finite).collect();
                Event::Special { terms, format: self.result, code }
            });
            return code;
        }
        let mut register = p.held(p.placed(&addend).0);
        for (step, terms) in products.chunks(p.products as usize).enumerate() {
            let placed: Vec<(i64, bool)> = terms.iter().map(|term| p.placed(term)).collect();
            let sum = register + placed.iter().map(|(kept, _)| kept).sum::<i64>();
            let kept = p.held(sum);
            log.add(|| {
                let first = step * p.products as usize;
                let terms =
                    terms.iter().zip(&placed).enumerate().map(|(i, (value, (kept, lost)))| {
                        Placed {
                            name: Name::Product(first + i),
                            value: *value,
                            kept: *kept,
                            lost: *lost,
                        }
                    });
                Event::Register { before: register, terms: terms.collect(), sum, kept, unit }
            });
            register = kept;
        }
        let exact = super::AlignedSum { sum: register, unit }.exact();
        let code = match self.result.sign() {
            Sign::TwosComplement => {
                let rules = Rules::DEFAULT.with_rounding(p.rounding).with_overflow(Overflow::None);
                self.result.round_by(exact, &rules, word.unwrap_or(0)).code
            }
            _ => round(exact, self.result, p, word),
        };
        log.add(|| rounded(exact, self.result, p, word, code));
        code
    }
}
