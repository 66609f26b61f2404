//! The aligned orders, step by step, as the sources describe them. This is the definition; the fast
//! kernel next to it gives the same bits.

use alloc::vec::Vec;
use core::ops::Range;

use super::align::{AlignedSum, alignment, round, round_special, special, store};
use super::exact::Accumulator;
use super::explain::{Event, Log, Name, Placed};
use super::factor::{Factor, FactorClass};
use super::parameters::{Cut, Parameters, StepOrder, UnitFlush};
use super::row::Row;
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::{Exact, Flush, Rounding};

/// Most products that one step adds.
pub(super) const WIDEST: usize = 256;

/// What one step adds: the products of the elements `range` of a row and a column, and an addend,
/// whose format the result has too. The products may be fewer than a step has. Each rounding takes one of the
/// random words, of which there are none where the mode is not stochastic.
pub(super) struct Step<'a> {
    pub(super) a: &'a Row<'a>,
    pub(super) b: &'a Row<'a>,
    pub(super) range: Range<usize>,
    pub(super) result: Format,
    pub(super) addend: u64,
    pub(super) words: &'a [u32],
}

impl Step<'_> {
    /// The random word of the step's only rounding.
    fn word(&self) -> Option<u32> {
        self.words.first().copied()
    }
}

/// Products of a step, gathered in place.
struct Terms {
    terms: [Factor; WIDEST + 1],
    len: usize,
}

impl Terms {
    const fn new() -> Self {
        Self { terms: [Factor::ZERO; WIDEST + 1], len: 0 }
    }

    fn push(&mut self, term: Factor) {
        self.terms[self.len] = term;
        self.len += 1;
    }

    fn as_slice(&self) -> &[Factor] {
        &self.terms[..self.len]
    }
}

/// The places that a sum is aligned to.
#[derive(Clone, Copy)]
struct Places {
    exponent: i32,
    fraction: u32,
    cut: Cut,
}

impl Places {
    const fn unit(self) -> i32 {
        self.exponent - self.fraction as i32 - self.cut.extra() as i32
    }
}

impl Parameters {
    /// A step of one of the aligned orders.
    pub(super) fn step(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        log.add_some(|| self.zeroed(step));
        match self.order {
            StepOrder::Quarters => self.quarters(step, log),
            StepOrder::Late | StepOrder::Halves => self.late(step, log),
            StepOrder::Groups => self.groups(step, log),
            _ => self.together(step, log),
        }
    }

    /// Which operands of a step are subnormal and count as zero, if any.
    pub(super) fn zeroed(&self, step: &Step<'_>) -> Option<Event> {
        let Step { a, b, ref range, result, addend, .. } = *step;
        let products = range.clone().filter(|k| a.zeroes(*k, self) || b.zeroes(*k, self));
        let addend = self.zeroes(result, addend).then_some(Name::Addend);
        let terms: Vec<Name> = products.map(Name::Product).chain(addend).collect();
        (!terms.is_empty()).then_some(Event::Zeroed { terms })
    }

    /// The product of two elements, with power-of-two scales, as it enters alignment.
    pub(super) fn product(&self, a: &Row<'_>, b: &Row<'_>, k: usize) -> Factor {
        let mut product = a.factors[k].times(b.factors[k]);
        for scale in [a.scale(k, self), b.scale(k, self)].into_iter().flatten() {
            product = product.shifted_by(scale);
        }
        if self.normalize { product.normalized() } else { product }
    }

    fn together(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        let Step { a, b, ref range, result, addend, .. } = *step;
        let mut terms = Terms::new();
        let first = range.start;
        range.clone().for_each(|k| terms.push(self.product(a, b, k)));
        terms.push(self.read(result, addend));
        let last = terms.len - 1;
        let name = |i| if i == last { Name::Addend } else { Name::Product(first + i) };
        self.fuse(terms.as_slice(), name, result, step.word(), log)
    }

    /// Terms aligned, added and rounded.
    fn fuse(
        &self,
        terms: &[Factor],
        name: impl Fn(usize) -> Name,
        result: Format,
        word: Option<u32>,
        log: &mut Log,
    ) -> u64 {
        if let Some(code) = self.decided(terms, &name, result, log) {
            return code;
        }
        if self.cut == Cut::Exact {
            let mut sum = Accumulator::ZERO;
            terms.iter().filter(|term| !term.is_zero()).for_each(|term| sum.add(term));
            log.add(|| Event::Exact { terms: named(terms, &name) });
            return self.finish(sum.exact(), result, word, log);
        }
        let exponent = alignment(terms.iter(), self.floor, self.zeros).unwrap_or(0);
        let places = Places { exponent, fraction: self.fraction, cut: self.cut };
        let sum = add(terms, places, name, log);
        self.finish(sum.exact(), result, word, log)
    }

    /// The result where a term is no finite number.
    fn decided(
        &self,
        terms: &[Factor],
        name: &impl Fn(usize) -> Name,
        result: Format,
        log: &mut Log,
    ) -> Option<u64> {
        if terms.iter().all(|term| term.class == FactorClass::Finite) {
            return None;
        }
        let code = round_special(special(terms.iter())?, result, self.nan);
        log.add(|| {
            let terms = named(terms, name);
            let terms = terms.into_iter().filter(|(_, term)| term.class != FactorClass::Finite);
            Event::Special { terms: terms.collect(), format: result, code }
        });
        Some(code)
    }

    /// The one rounding of a step.
    fn finish(&self, exact: Exact, result: Format, word: Option<u32>, log: &mut Log) -> u64 {
        let code = round(exact, self.output, self, word);
        log.add(|| rounded(exact, self.output, self, word, code));
        store(self.output, code, result)
    }

    /// One IEEE addition to nearest even. What is tiny is exact here, so that the rules flush it whole.
    pub(super) fn add_nearest(&self, result: Format, a: u64, b: u64, log: &mut Log) -> u64 {
        let operands = [Operand::new(result, a), Operand::new(result, b)];
        let context = Context::new(result, self.rules(Rounding::TiesToEven));
        let code = context.add(operands[0], operands[1]).code;
        log.add(|| Event::Operate { operation: "add", operands: operands.to_vec(), result, code });
        code
    }

    fn quarters(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        let Step { a, b, ref range, result, addend, .. } = *step;
        let mut code = 0;
        for (part, low) in [true, false].into_iter().enumerate() {
            let mut terms = Terms::new();
            let chosen = range.clone().filter(|k| ((k - range.start) % 4 < 2) == low);
            for k in chosen.clone() {
                let product = a.factors[k].in_binary16().times(b.factors[k].in_binary16());
                terms.push(if self.normalize { product.normalized() } else { product });
            }
            terms.push(self.read(result, code));
            let last = terms.len - 1;
            let name = |i| match chosen.clone().nth(i) {
                Some(k) if i < last => Name::Product(k),
                _ => Name::Partial,
            };
            let word = step.words.get(part).copied();
            code = self.fuse(terms.as_slice(), name, result, word, log);
        }
        self.add_nearest(result, code, addend, log)
    }

    fn late(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        let Step { a, b, ref range, result, addend, .. } = *step;
        let first = range.start;
        let addend = self.read(result, addend);
        let mut all = Terms::new();
        for k in range.clone() {
            let product = self.product(a, b, k);
            let infinite = self.limit.is_some_and(|limit| product.reaches(limit));
            let class = if infinite { FactorClass::Infinite } else { product.class };
            all.push(Factor { class, ..product });
        }
        all.push(addend);
        let last = all.len - 1;
        let name = |i| if i == last { Name::Addend } else { Name::Product(first + i) };
        if let Some(code) = self.decided(all.as_slice(), &name, result, log) {
            return code;
        }
        let products = &all.as_slice()[..last];
        let aligned = |terms: &[Factor], name: &dyn Fn(usize) -> Name, log: &mut Log| {
            let exponent = alignment(terms.iter(), self.floor, None)?;
            let places = Places { exponent, fraction: self.fraction, cut: self.cut };
            Some((add(terms, places, name, log).term(exponent), exponent))
        };
        let sum = if self.order == StepOrder::Late {
            aligned(products, &name, log)
        } else {
            let mut halves = [Factor::ZERO; 2];
            let mut exponents = [None; 2];
            for odd in [0, 1] {
                let mut terms = Terms::new();
                products.iter().skip(odd).step_by(2).for_each(|term| terms.push(*term));
                let name = |i| Name::Product(first + 2 * i + odd);
                if let Some((sum, exponent)) = aligned(terms.as_slice(), &name, log) {
                    (halves[odd], exponents[odd]) = (sum, Some(exponent));
                }
            }
            // A sum of zero keeps the exponent that its terms were aligned to.
            exponents.into_iter().flatten().max().map(|exponent| {
                let places = Places { exponent, fraction: self.fraction, cut: self.late_cut };
                let name = |i| if i == 0 { Name::Even } else { Name::Odd };
                (add(&halves, places, name, log).term(exponent), exponent)
            })
        };
        let of_addend = if addend.is_zero() { self.zeros } else { Some(addend.exponent) };
        let exponents = [of_addend, sum.map(|(_, exponent)| exponent), self.floor];
        let exponent = exponents.into_iter().flatten().max().unwrap_or(0);
        let far = self.reach.is_some_and(|reach| addend.exponent < exponent - reach as i32);
        let addend = if far { Factor::ZERO } else { addend };
        let terms = [sum.map_or(Factor::ZERO, |(sum, _)| sum), addend];
        // The sum keeps more digits than the addend; in units of its last place both are integers.
        let fine = Places { exponent, fraction: self.late_fraction, cut: self.late_cut };
        let coarse = Places { fraction: self.fraction, ..fine };
        let unit = fine.unit().min(coarse.unit());
        let place = |term: &Factor, places: Places| {
            let (kept, lost) = self.late_cut.apply(term, places.unit());
            (kept << (places.unit() - unit), lost)
        };
        let kept = [place(&terms[0], fine), place(&terms[1], coarse)];
        let sum = AlignedSum { sum: kept[0].0 + kept[1].0, unit };
        log.add(|| Event::Align {
            exponent,
            fraction: self.late_fraction,
            cut: self.late_cut,
            terms: [Name::Products, Name::Addend]
                .into_iter()
                .zip(terms)
                .zip(kept)
                .map(|((name, value), (kept, lost))| Placed { name, value, kept, lost })
                .collect(),
            sum,
        });
        self.finish(sum.exact(), result, step.word(), log)
    }

    fn groups(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        let Step { a, b, ref range, result, addend, .. } = *step;
        let group = self.group as usize;
        let start = range.start;
        let mut terms = Terms::new();
        for first in range.clone().step_by(group) {
            let members = first..range.end.min(first + group);
            let products = || members.clone().map(|k| a.factors[k].times(b.factors[k]));
            let scales =
                [a.scale(first, self), b.scale(first, self)].map(|scale| scale.unwrap_or(ONE));
            let all = || products().chain(scales);
            if all().any(|term| term.class != FactorClass::Finite) {
                terms.push(special(all().collect::<Vec<_>>().iter()).unwrap_or(Factor::NAN));
                continue;
            }
            let places = products().map(|term| term.exponent - term.digits as i32);
            let unit = places.fold(0, i32::min);
            let sum = products().map(|term| Cut::Truncate.apply(&term, unit).0).sum();
            let sum = AlignedSum { sum, unit }.term(0);
            // The sum's own exponent is 0: only the scales' align it.
            terms.push(sum.times(scales[0].times(scales[1])));
        }
        terms.push(self.read(result, addend));
        let last = terms.len - 1;
        let name = |i| if i == last { Name::Addend } else { Name::Group(start + i * group, group) };
        self.fuse(terms.as_slice(), name, result, step.word(), log)
    }
}

/// A scale of one, where an operand has none.
const ONE: Factor = Factor { significand: 1, ..Factor::ZERO };

fn named(terms: &[Factor], name: &impl Fn(usize) -> Name) -> Vec<(Name, Factor)> {
    terms.iter().enumerate().map(|(i, term)| (name(i), *term)).collect()
}

/// The event of a [`round`].
pub(super) fn rounded(
    exact: Exact,
    format: Format,
    parameters: &Parameters,
    word: Option<u32>,
    code: u64,
) -> Event {
    let kept = Parameters { flush: UnitFlush::As(Flush::None), ..*parameters };
    let flushed = round(exact, format, parameters, word) != round(exact, format, &kept, word);
    Event::Round { exact, format, rounding: parameters.rounding, word, flushed, code }
}

/// Terms cut to the same places and added.
fn add(
    terms: &[Factor],
    places: Places,
    name: impl Fn(usize) -> Name,
    log: &mut Log,
) -> AlignedSum {
    let unit = places.unit();
    let sum = terms.iter().map(|term| places.cut.apply(term, unit).0).sum();
    log.add(|| Event::Align {
        exponent: places.exponent,
        fraction: places.fraction,
        cut: places.cut,
        terms: terms
            .iter()
            .enumerate()
            .map(|(i, term)| {
                let (kept, lost) = places.cut.apply(term, unit);
                Placed { name: name(i), value: *term, kept, lost }
            })
            .collect(),
        sum: AlignedSum { sum, unit },
    });
    AlignedSum { sum, unit }
}
