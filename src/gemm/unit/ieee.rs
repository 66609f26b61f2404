//! The orders of IEEE operations: each rounds, as the fused orders do not.

use super::explain::{Event, Log};
use super::parameters::{Parameters, StepOrder};
use super::steps::{Step, WIDEST};
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::Rounded;

/// Operations with one format and one set of rules.
struct Operations<'a> {
    context: Context,
    parameters: &'a Parameters,
    log: &'a mut Log,
}

impl<'a> Operations<'a> {
    fn new(parameters: &'a Parameters, result: Format, log: &'a mut Log) -> Self {
        let context = Context::new(result, parameters.rules(parameters.rounding));
        Self { context, parameters, log }
    }

    fn done(&mut self, operation: &'static str, operands: &[Operand], rounded: Rounded) -> Operand {
        let result = self.context.to;
        let code = self.parameters.flushed(result, rounded);
        self.log.add(|| Event::Operate { operation, operands: operands.to_vec(), result, code });
        Operand::new(result, code)
    }

    fn add(&mut self, a: Operand, b: Operand) -> Operand {
        let rounded = self.context.add(a, b);
        self.done("add", &[a, b], rounded)
    }

    fn mul(&mut self, a: Operand, b: Operand) -> Operand {
        let rounded = self.context.mul(a, b);
        self.done("mul", &[a, b], rounded)
    }

    fn fma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let rounded = self.context.fma(a, b, c);
        self.done("fma", &[a, b, c], rounded)
    }

    /// The balanced tree of sums over a power of two of terms.
    fn tree(&mut self, terms: &[Operand]) -> Operand {
        match terms.len() {
            1 => terms[0],
            n => {
                let (left, right) = terms.split_at(n / 2);
                let (left, right) = (self.tree(left), self.tree(right));
                self.add(left, right)
            }
        }
    }
}

impl Parameters {
    /// A step of one of the orders of IEEE operations. Products that are missing at the end count as
    /// +0, except of [`StepOrder::Fma`], a chain of single elements.
    pub(super) fn operate(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        let Step { a, b, ref range, result, addend, .. } = *step;
        log.add_some(|| self.zeroed(step));
        let mut operations = Operations::new(self, result, log);
        let zero = Operand::new(result, 0);
        let pair = |k: usize| {
            let k = range.start + k;
            if k < range.end { (a.operands[k], b.operands[k]) } else { (zero, zero) }
        };
        let products = self.products as usize;
        let addend = Operand::new(result, addend);
        match self.order {
            StepOrder::Fma => {
                let sum = (0..range.len()).fold(addend, |sum, k| {
                    let (x, y) = pair(k);
                    operations.fma(x, y, sum)
                });
                sum.code
            }
            StepOrder::EvenOdd => {
                let mut chains = [zero; 2];
                for k in 0..products.next_multiple_of(2) {
                    let (x, y) = pair(k);
                    chains[k % 2] = operations.fma(x, y, chains[k % 2]);
                }
                let sum = operations.add(chains[0], chains[1]);
                operations.add(addend, sum).code
            }
            _ => {
                let mut terms = [zero; WIDEST];
                for (k, term) in terms[..products].iter_mut().enumerate() {
                    let (x, y) = pair(k);
                    *term = operations.mul(x, y);
                }
                let sum = operations.tree(&terms[..products]);
                operations.add(addend, sum).code
            }
        }
    }
}
