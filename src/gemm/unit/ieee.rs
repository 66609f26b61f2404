//! The orders of IEEE operations: each rounds, as the fused orders do not.

use super::explain::{Event, Log};
use super::parameters::{Parameters, StepOrder, Subnormals};
use super::steps::{Step, WIDEST};
use crate::format::{Format, Value};
use crate::math::{Context, Operand};
use crate::round::Rules;

/// Operations with one format and one set of rules.
struct Operations<'a> {
    /// Rounds: to the result's format, or to one of its precision and a wider range, where what
    /// is too small is flushed by what it is there.
    context: Context,
    result: Format,
    log: &'a mut Log,
}

impl<'a> Operations<'a> {
    fn new(parameters: &Parameters, result: Format, log: &'a mut Log) -> Self {
        let to = match parameters.subnormals {
            Subnormals::Amx => wider(result),
            _ => result,
        };
        Self { context: Context::new(to, parameters.rules(parameters.rounding)), result, log }
    }

    /// A rounded number in the result's range.
    fn store(&self, code: u64) -> u64 {
        let wide = Operand::new(self.context.to, code);
        if wide.format == self.result {
            return code;
        }
        let value = wide.value();
        let Value::Finite { negative, significand, exponent } = value else {
            return Context::new(self.result, self.context.rules).convert(wide).code;
        };
        let top = exponent + significand.max(1).ilog2() as i32;
        if significand != 0 && top < self.result.emin() {
            return u64::from(negative) << (self.result.bits() - 1);
        }
        Context::new(self.result, Rules::DEFAULT).convert(wide).code
    }

    fn done(&mut self, operation: &'static str, operands: &[Operand], code: u64) -> Operand {
        let (result, code) = (self.result, self.store(code));
        self.log.add(|| Event::Operate { operation, operands: operands.to_vec(), result, code });
        Operand::new(result, code)
    }

    fn add(&mut self, a: Operand, b: Operand) -> Operand {
        let code = self.context.add(a, b).code;
        self.done("add", &[a, b], code)
    }

    fn mul(&mut self, a: Operand, b: Operand) -> Operand {
        let code = self.context.mul(a, b).code;
        self.done("mul", &[a, b], code)
    }

    fn fma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let code = self.context.fma(a, b, c).code;
        self.done("fma", &[a, b, c], code)
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

/// As many significant bits and a range for what the format cannot hold.
fn wider(format: Format) -> Format {
    Format::ieee((format.exp_bits() + 2).min(16), format.man_bits()).unwrap_or(format)
}

impl Parameters {
    /// A step of one of the orders of IEEE operations. Products that are missing at the end count as
    /// +0, except of [`StepOrder::Fma`], a chain of single elements.
    pub(super) fn operate(&self, step: &Step<'_>, log: &mut Log) -> u64 {
        let Step { a, b, ref range, result, addend, .. } = *step;
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
