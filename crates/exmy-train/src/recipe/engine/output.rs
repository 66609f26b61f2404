//! What becomes of a finished product: it is rounded to the recipe's output numbers, while it is multiplied
//! where that can be, and shown to who watches.

use super::image::{self, Given};
use super::{Engine, OUTPUT};
use crate::nn::linear::Group;
use crate::nn::site::{Operator, Product, Site};
use crate::nn::stopwatch::{Part, Work, lap};
use exmy::quantizer::{Axis, Target};
use exmy::round::Rules;
use exmy::slice::{Converter, View, ViewMut};

impl Engine<'_> {
    /// What rounds the output of some members in a product while it is multiplied: the numbers that
    /// all have, where these take no random bits and no patch is added to the output first.
    pub(super) fn at_once(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        product: Product,
    ) -> Option<Converter<'static>> {
        let step = self.phase.step();
        let site = |operator| Site { layer, operator };
        let numbers = self.plan.output(step, site(members[0].0), product);
        let (Some(plain), Target::Format(format)) = (numbers.plain(), numbers.quantizer.target)
        else {
            return None;
        };
        let same = |&(operator, _): &(Operator, usize)| {
            product == Product::GradInput
                || self.plan.output(step, site(operator), product) == numbers
        };
        let patched = |&(operator, _): &(Operator, usize)| self.patch(site(operator)).is_some();
        let fits = plain.before.is_none()
            && plain.rotation.is_none()
            && !plain.is_stochastic()
            && members.iter().all(same)
            && !members.iter().any(patched);
        let rules = Rules::DEFAULT.with_rounding(plain.rounding).with_overflow(plain.overflow);
        fits.then(|| Converter::new(format, rules))
    }

    /// Rounds a finished product to the recipe's output numbers.
    pub(super) fn store(
        &mut self,
        group: &Group<'_>,
        product: Product,
        out: &mut ViewMut<'_, f32>,
    ) {
        let (rows, cols, stride) = (out.rows(), out.cols(), out.row_stride());
        let (mut row, mut col) = (0, 0);
        let whole = [(group.members[0].0, out.cols())];
        // `grad_input` is one tensor for the whole group.
        let members: &[_] = if product == Product::GradInput { &whole } else { group.members };
        for &(operator, width) in members {
            let site = Site { layer: group.layer, operator };
            let numbers = self.plan.output(self.phase.step(), site, product);
            let weight = product == Product::GradWeight;
            let (height, width) = if weight { (width, cols) } else { (rows, width) };
            let _storing =
                (!numbers.is_none()).then(|| lap(Part::Linear(operator, product, Work::Store)));
            let data = &mut out.data_mut()[row * stride + col..];
            match (numbers.plain(), numbers.quantizer.target) {
                _ if numbers.is_none() => {}
                (Some(plain), Target::Format(format))
                    if plain.before.is_none() && !plain.is_stochastic() =>
                {
                    let rules = Rules::DEFAULT.with_rounding(plain.rounding);
                    let converter = Converter::new(format, rules.with_overflow(plain.overflow));
                    if width == stride {
                        converter.fake_quantize(&mut data[..height * stride]);
                    } else {
                        for row in 0..height {
                            converter.fake_quantize(&mut data[row * stride..row * stride + width]);
                        }
                    }
                }
                _ => {
                    let given = Given {
                        axis: Axis::Cols,
                        random: self.random(site, product, OUTPUT),
                        scale: None,
                        signs: 0,
                        sequence: 0,
                    };
                    let part = View::with_strides(data, height, width, stride, 1);
                    let part = part.expect("a member lies within its group");
                    let before = image::padded(part, height, width);
                    let view = View::new(&before, height, width);
                    let part = ViewMut::with_row_stride(data, height, width, stride);
                    let part = part.expect("a member lies within its group");
                    image::image(&numbers, view, given, &mut self.images.scratch, part);
                }
            }
            if weight { row += height } else { col += width }
        }
    }

    /// Shows a finished product to the observer, operator by operator.
    pub(super) fn show_output(
        &mut self,
        group: &Group<'_>,
        product: Product,
        out: &mut ViewMut<'_, f32>,
    ) {
        let Some(observer) = &mut self.observer else { return };
        let (rows, cols, stride) = (out.rows(), out.cols(), out.row_stride());
        let whole = View::with_strides(out.data(), rows, cols, stride, 1);
        let whole = whole.expect("an output lies within its memory");
        for (site, range) in group.sites() {
            let part = match product {
                Product::Forward => whole.cols_range(range),
                Product::GradWeight => whole.rows_range(range),
                Product::GradInput => return observer.output(site, product, whole),
            };
            observer.output(site, product, part);
        }
    }
}
