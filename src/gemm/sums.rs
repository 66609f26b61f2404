//! Sums of products in a written order, every operation rounded to an accumulator.
//!
//! The plain form calls [`math::Context`](crate::math::Context) for every operation, so it takes any
//! format, rounding mode and overflow policy. Chains of binary32 numbers run many columns at a time
//! instead, in binary32 through a [kernel](binary32), in narrower accumulators by way of binary64
//! ([`columns`]); tests compare them.

mod binary32;
mod columns;

use alloc::vec;
use alloc::vec::Vec;

use super::accumulation::{Order, Sum};
use super::rows::ExactRows;
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::quantizer::Cast;
use crate::random::Philox;

pub(super) use binary32::Chains;
pub(super) use columns::ColumnSums;

/// The random words of one output, one for each rounding, in the order of the roundings.
#[derive(Clone, Copy)]
pub(super) struct Words {
    random: Option<Philox>,
    next: u64,
}

impl Words {
    /// From word `first` on; without a generator all words are 0.
    pub(super) fn new(random: Option<Philox>, first: u64) -> Self {
        Self { random, next: first }
    }

    fn next(&mut self) -> u32 {
        let word = self.random.map_or(0, |random| random.word(self.next));
        self.next += 1;
        word
    }
}

/// Operations that round to one accumulator.
struct Arithmetic<'a> {
    context: Context,
    words: &'a mut Words,
}

impl<'a> Arithmetic<'a> {
    fn new(accumulator: Cast, words: &'a mut Words) -> Self {
        Self { context: Context::new(accumulator.format, accumulator.rules()), words }
    }

    fn context(&mut self) -> Context {
        let random =
            if self.context.rules.rounding.is_stochastic() { self.words.next() } else { 0 };
        self.context.with_random(random)
    }

    fn number(&self, code: u64) -> Operand {
        Operand::new(self.context.to, code)
    }

    fn fma(&mut self, (a, b): (Operand, Operand), c: Operand) -> Operand {
        let code = self.context().fma(a, b, c).code;
        self.number(code)
    }

    fn mul(&mut self, (a, b): (Operand, Operand)) -> Operand {
        let code = self.context().mul(a, b).code;
        self.number(code)
    }

    fn add(&mut self, a: Operand, b: Operand) -> Operand {
        let code = self.context().add(a, b).code;
        self.number(code)
    }
}

/// Vectors of A and B whose products are added: the numbers and their codes.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) a: (&'a ExactRows, &'a [u64]),
    pub(super) b: (&'a ExactRows, &'a [u64]),
}

impl<'a> Pair<'a> {
    /// The factors of every product, ascending.
    fn products(self) -> impl Iterator<Item = (Operand, Operand)> + 'a {
        let Self { a, b } = self;
        let codes = a.1.iter().zip(b.1);
        codes.map(move |(x, y)| (a.0.operand(*x), b.0.operand(*y)))
    }

    /// The same for consecutive products of so many.
    fn parts(self, len: usize) -> impl Iterator<Item = Self> {
        let (a, b) = (self.a, self.b);
        a.1.chunks(len).zip(b.1.chunks(len)).map(move |(x, y)| Self { a: (a.0, x), b: (b.0, y) })
    }
}

impl Sum {
    /// The sum of a pair's products, a number of the accumulator's format.
    pub(super) fn of(&self, pair: Pair<'_>, words: &mut Words) -> Operand {
        let mut by = Arithmetic::new(self.accumulator, words);
        let zero = by.number(0);
        match self.order {
            Order::Fma => pair.products().fold(zero, |sum, factors| by.fma(factors, sum)),
            Order::MulAdd => pair.products().fold(zero, |sum, factors| {
                let product = by.mul(factors);
                by.add(sum, product)
            }),
            Order::Pairwise => {
                let mut terms: Vec<_> = pair.products().map(|factors| by.mul(factors)).collect();
                while terms.len() > 1 {
                    terms = terms
                        .chunks(2)
                        .map(|pair| match *pair {
                            [a, b] => by.add(a, b),
                            _ => pair[0],
                        })
                        .collect();
                }
                terms.first().copied().unwrap_or(zero)
            }
            Order::Blocked(n) => {
                let mut total = None;
                for part in pair.parts(n as usize) {
                    let sum = part.products().fold(zero, |sum, factors| by.fma(factors, sum));
                    total = Some(match total {
                        None => sum,
                        Some(total) => by.add(total, sum),
                    });
                }
                total.unwrap_or(zero)
            }
        }
    }

    /// Sums of `every` products each, added to an accumulator of their own.
    pub(super) fn promoted(
        &self,
        every: u32,
        into: Cast,
        pair: Pair<'_>,
        words: &mut Words,
    ) -> Operand {
        let zero = Operand::new(into.format, 0);
        pair.parts(every as usize).fold(zero, |total, part| {
            let part = self.of(part, words);
            Arithmetic::new(into, words).add(total, part)
        })
    }

    /// Whether the kernel for binary32 does it, for numbers that are.
    pub(super) fn is_binary32(&self) -> bool {
        self.accumulator == Cast::new(Format::F32)
    }
}

/// `k x n` numbers from `n x k`.
fn transposed(x: &[f32], n: usize, k: usize) -> Vec<f32> {
    let mut out = vec![0.0; n * k];
    for (j, row) in x.chunks(k.max(1)).enumerate() {
        for (i, x) in row.iter().enumerate() {
            out[i * n + j] = *x;
        }
    }
    out
}
