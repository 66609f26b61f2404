//! What becomes of a finished product: it is rounded to the recipe's output numbers, while it is multiplied
//! where that can be, and shown to who watches.

use super::image::Given;
use super::{Engine, OUTPUT};
use crate::nn::device::{Matrix, MatrixMut};
use crate::nn::linear::Group;
use crate::nn::site::{Operator, Product, Site};
use crate::nn::stopwatch::{Part, Stage, lap};
use crate::recipe::device::Quantize;
use crate::recipe::tensor_format::TensorFormat;
use exmy::format::Format;
use exmy::quantizer::Target;
use exmy::round::Rules;

/// The format and the rules of numbers that are a cast and nothing more, without random bits.
fn cast(numbers: &TensorFormat) -> Option<(Format, Rules)> {
    let plain = numbers.plain()?;
    let Target::Format(format) = plain.target else { return None };
    let rules = Rules::DEFAULT.with_rounding(plain.rounding).with_overflow(plain.overflow);
    (plain.before.is_none() && !plain.is_stochastic()).then_some((format, rules))
}

impl<D: Quantize> Engine<'_, D> {
    /// What rounds the output of some members in a product while it is multiplied: the numbers that
    /// all have, where these take no random bits and no patch is added to the output first.
    pub(super) fn at_once(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        product: Product,
    ) -> Option<(Format, Rules)> {
        let step = self.phase.step();
        let site = |operator| Site { layer, operator };
        let numbers = self.plan.output(step, site(members[0].0), product);
        let to = cast(&numbers).filter(|_| numbers.quantizer.rotation.is_none())?;
        let same = |&(operator, _): &(Operator, usize)| {
            product == Product::GradInput
                || self.plan.output(step, site(operator), product) == numbers
        };
        let patched = |&(operator, _): &(Operator, usize)| self.patch(site(operator)).is_some();
        (members.iter().all(same) && !members.iter().any(patched)).then_some(to)
    }

    /// Rounds a finished product to the recipe's output numbers.
    pub(super) fn store(
        &mut self,
        device: &D,
        group: &Group<'_>,
        product: Product,
        mut out: MatrixMut<'_, D>,
    ) {
        let mut start = 0;
        let whole = [(group.members[0].0, out.cols())];
        // `grad_input` is one tensor for the whole group.
        let members: &[_] = if product == Product::GradInput { &whole } else { group.members };
        for &(operator, width) in members {
            let site = Site { layer: group.layer, operator };
            let own = start..start + width;
            start = own.end;
            let numbers = self.plan.output(self.phase.step(), site, product);
            if numbers.is_none() {
                continue;
            }
            let _storing = lap(Part::Linear(operator, product, Stage::Store));
            let part = if product == Product::GradWeight {
                out.rows_range(own)
            } else {
                out.cols_range(own)
            };
            if let Some(to) = cast(&numbers) {
                device.cast(to, part);
            } else {
                let given = Given::bits(self.random(site, product, OUTPUT));
                self.image_in_place(device, &numbers, given, part);
            }
        }
    }

    /// Shows a finished product to the observer, operator by operator.
    pub(super) fn show_output(
        &mut self,
        device: &D,
        group: &Group<'_>,
        product: Product,
        out: Matrix<'_, D>,
    ) {
        let Some(observer) = &mut self.observer else { return };
        for (site, range) in group.sites() {
            let part = match product {
                Product::Forward => out.cols_range(range),
                Product::GradWeight => out.rows_range(range),
                Product::GradInput => {
                    return observer.output(site, product, device.read_matrix(out).view());
                }
            };
            observer.output(site, product, device.read_matrix(part).view());
        }
    }
}
