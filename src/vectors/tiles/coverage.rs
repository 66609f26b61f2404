//! What a set of tiles exercises in a unit: operands, addends and results by class, and what happened on the
//! way, step by step.

use super::Tiles;
use crate::error::Error;
use crate::format::{Sign, Value};
use crate::gemm::unit::{Event, Parameters, Unit, UnitFlush};
use crate::round::{Flush, Operands};
use crate::vectors::cases::Coverage;

impl Tiles {
    /// How often each thing happens when a unit computes these tiles: classes of numbers, terms cut, sums
    /// that cancel, bounds reached, results that are rounded.
    ///
    /// ```
    /// use exmy::gemm::unit::Unit;
    /// use exmy::vectors::tiles::{Tiles, TilesRequest};
    ///
    /// let unit: Unit = "hopper:e5m2".parse()?;
    /// let tiles = Tiles::drawn(&unit, &TilesRequest::default())?;
    /// let coverage = tiles.coverage(&unit)?.to_string();
    /// assert!(coverage.contains("step with a term of which bits are cut"));
    /// // Products of e5m2 do not reach below what binary32 has.
    /// assert!(coverage.contains("-  step aligned to the least exponent"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the unit is for other formats, or needs other random words.
    pub fn coverage(&self, unit: &Unit) -> Result<Coverage, Error> {
        if self.inputs() != [unit.a(), unit.b()] || self.formats()[2..] != [unit.result(); 2] {
            return Err(Error::new(format!("{unit} is for other formats than {self}")));
        }
        self.check_words(unit)?;
        let ([_, n, _], each) = (self.shape(), self.words());
        let mut found = Coverage::default();
        let (inputs, parameters) = (self.inputs(), unit.parameters());
        for tile in 0..self.count() {
            let [a, b, c, _] = self.tile(tile);
            for (codes, input, name) in [(a, inputs[0], "a is"), (b, inputs[1], "b is")] {
                codes.iter().for_each(|code| found.class(name, input.format, *code));
            }
            for ((codes, input), name) in
                self.scales(tile).into_iter().zip(inputs).zip(["scale of a is", "scale of b is"])
            {
                let Some(scale) = input.scale else { continue };
                codes.iter().for_each(|code| found.class(name, scale.format, *code));
            }
            let computed = self.computed(unit, tile).map_err(super::verdict::impossible)?;
            for (at, (addend, result)) in c.iter().zip(&computed.results).enumerate() {
                found.add("all", "dot products", true);
                found.class("c is", unit.result(), *addend);
                found.class("result is", unit.result(), *result);
                let (row, column) = (computed.rows.row(at / n), computed.columns.row(at % n));
                let words = &computed.words[at * each..][..each];
                let events = unit.explain_with(&row, &column, *addend, words).events;
                events.iter().for_each(|event| count(&mut found, event, parameters));
                if parameters.operands != Operands::Exact {
                    let some = events.iter().any(|event| matches!(event, Event::Zeroed { .. }));
                    found.add("all", "dot products with a subnormal operand read as zero", some);
                }
            }
        }
        if !reaches_the_floor(unit) {
            found.rule_out("step", LIFTED);
        }
        Ok(found)
    }
}

const LIFTED: &str = "aligned to the least exponent";

/// Whether all terms of a step may lie below the exponent that they are aligned to at least: no product lies
/// below that of the least exponents, no addend below its own. Integers are left undecided.
fn reaches_the_floor(unit: &Unit) -> bool {
    let Some(floor) = unit.parameters().floor else { return false };
    let inputs = [unit.a(), unit.b()];
    let scales = inputs.iter().filter_map(|input| input.scale).map(|scale| scale.format);
    let formats = || inputs.iter().map(|input| input.format);
    let integers =
        formats().chain([unit.result()]).any(|format| format.sign() == Sign::TwosComplement);
    let product: i32 = formats().chain(scales).map(|format| format.emin()).sum();
    integers || product < floor || unit.result().emin() < floor
}

fn count(found: &mut Coverage, event: &Event, parameters: &Parameters) {
    match event {
        Event::Align { exponent, terms, sum, .. } => {
            let some = terms.iter().any(|term| !term.value.is_zero());
            let cut = |all: bool| terms.iter().any(|term| term.lost && (term.kept == 0) == all);
            found.add("step", "with a term of which bits are cut", cut(false));
            found.add("step", "with a term that is cut whole", cut(true));
            found.add("step", "with a sum that cancels to zero", some && sum.sum == 0);
            if let Some(floor) = parameters.floor {
                let own = terms.iter().filter(|term| !term.value.is_zero());
                let own = own.map(|term| term.value.exponent).max();
                let lifted = own.is_some_and(|own| own < floor) && *exponent == floor;
                found.add("step", LIFTED, lifted);
            }
        }
        Event::Register { terms, sum, kept, .. } => {
            found.add("step", "with a term of which bits are cut", terms.iter().any(|x| x.lost));
            found.add("step", "with a sum beyond the register", sum != kept);
        }
        Event::Special { .. } => found.add("step", "decided by an infinity or a NaN", true),
        Event::Round { exact, format, flushed, code, .. } => {
            let value = format.decode(*code);
            let lost = match value {
                // Digits of the sum below the last place of the result.
                Value::Finite { exponent, .. } => {
                    let last = exact.exponent + exact.significand.trailing_zeros() as i32;
                    exact.sticky || exact.significand != 0 && last < exponent
                }
                _ => false,
            };
            found.add("sum", "rounded", lost);
            found.add("sum", "too large for the result", value.is_infinite());
            if let Some(least) = format.min_normal_code()
                && format.sign() != Sign::TwosComplement
            {
                let magnitude = code & format.magnitude_mask();
                let below = !value.is_zero() && magnitude < least;
                found.add("sum", "rounded to a subnormal number", below);
                found.add("sum", "rounded to the smallest normal number", magnitude == least);
            }
            if parameters.flush != UnitFlush::As(Flush::None) {
                found.add("sum", "that is flushed", *flushed);
            }
        }
        Event::Zeroed { .. } | Event::Exact { .. } | Event::Operate { .. } => {}
    }
}
