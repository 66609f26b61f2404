//! The three products of a linear layer under a recipe.
//!
//! Each operand is rounded to its quantizer's f32 image, the images are multiplied by the f32 GEMM,
//! and the result is rounded to the recipe's output format. The blocks of an operand run along the
//! reduction axis of the product it enters, so one tensor has different images in different
//! products:
//!
//! | product | operands | reduction over |
//! |---|---|---|
//! | `forward` (fprop) | X (tokens x in), W (out x in) | in |
//! | `grad_input` (dgrad) | dY (tokens x out), W (out x in) | out |
//! | `grad_weight` (wgrad) | dY (tokens x out), X (tokens x in) | tokens |
//!
//! Weights and gradients of a group (q, k, v) are rounded member by member, as the tensors they
//! are; the input they share is one tensor and is rounded once, under the group's first operator.
//! Random bits come from a stream named by (step, layer, operator, product, operand), element =
//! row-major index in the unpadded tensor.

use super::Recipe;
use crate::bulk::Converter;
use crate::gemm::f32::{Output, matmul};
use crate::nn::linear::{Group, Products};
use crate::nn::site::{Operand, Product, Site};
use crate::quantizer::{Axis, Quantizer};
use crate::random::{Philox, Stream};
use crate::round::Rules;
use crate::view::{View, ViewMut};

/// Watches what happens at the sites; it draws no random bits and changes nothing.
pub trait Observer {
    /// One operand of one product, before and after rounding: input (tokens x in), weight
    /// (out x in) or output gradient (tokens x out).
    fn operand(
        &mut self,
        site: Site,
        product: Product,
        operand: Operand,
        before: View<'_, f32>,
        after: View<'_, f32>,
    );
}

/// What the products are for; each has random streams of its own, so that an evaluation changes no
/// later training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A training step (0-based).
    Train(u64),
    /// One forward pass of an evaluation.
    Evaluate {
        /// Steps trained before it.
        step: u64,
        /// Which pass of the evaluation.
        pass: u64,
    },
    /// The drawing of the token at this position.
    Sample(u64),
}

impl Phase {
    /// The stream that layers and sites branch off from.
    pub fn stream(self) -> Stream {
        match self {
            Self::Train(step) => Stream::new("quantize").with(step),
            Self::Evaluate { step, pass } => {
                Stream::new("quantize evaluation").with(step).with(pass)
            }
            Self::Sample(position) => Stream::new("quantize sample").with(position),
        }
    }
}

/// A recipe at work: implements [`Products`] for f32.
pub struct Engine<'a> {
    recipe: &'a Recipe,
    seed: u64,
    phase: Phase,
    observer: Option<&'a mut dyn Observer>,
    images: &'a mut Images,
}

/// Room for two operands' images, kept from call to call.
#[derive(Clone, Debug, Default)]
pub struct Images {
    left: Vec<f32>,
    right: Vec<f32>,
}

/// One operand of one product, before rounding.
struct Side<'a> {
    product: Product,
    operand: Operand,
    tensor: View<'a, f32>,
    axis: Axis,
}

/// How a group's members lie in an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// One tensor for all.
    Shared,
    /// Rows below each other (weights).
    Rows,
    /// Columns beside each other (gradients of outputs).
    Cols,
}

impl<'a> Engine<'a> {
    /// The products of `recipe` in one phase of the run of `seed`.
    pub fn new(recipe: &'a Recipe, seed: u64, phase: Phase, images: &'a mut Images) -> Self {
        Self { recipe, seed, phase, observer: None, images }
    }

    /// The same, watched.
    #[must_use]
    pub fn observed(self, observer: &'a mut dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    fn random(&self, site: Site, product: Product, operand: Operand) -> Philox {
        let layer = site.layer.map_or(0, |layer| u64::from(layer) + 1);
        let stream = self.phase.stream().with(layer).with(site.operator as u64);
        Philox::new(self.seed, stream.with(product as u64).with(operand as u64))
    }

    /// The image of one operand in `buffer`, or the operand itself where nothing rounds it.
    fn image<'b>(
        &mut self,
        group: &Group<'_>,
        side: &Side<'b>,
        buffer: &'b mut Vec<f32>,
    ) -> View<'b, f32> {
        let Side { product, operand, tensor, axis } = *side;
        let members = match operand {
            Operand::Input => Members::Shared,
            Operand::Weight => Members::Rows,
            Operand::GradOutput => Members::Cols,
        };
        let site = |operator| Site { layer: group.layer, operator };
        let quantizer = |engine: &Self, operator| -> Quantizer {
            engine.recipe.quantizer(site(operator), product, operand)
        };
        let untouched = group.members.iter().all(|&(op, _)| quantizer(self, op).is_none());
        let (rows, cols) = (tensor.rows(), tensor.cols());
        let image = if untouched {
            tensor
        } else {
            buffer.resize(rows * cols, 0.0);
            let mut start = 0;
            for &(operator, width) in group.members {
                let random = self.random(site(operator), product, operand);
                let range = start..start + width;
                let (part, offset, shape) = match members {
                    Members::Shared => (tensor, 0, (rows, cols)),
                    Members::Rows => (tensor.rows_range(range), start * cols, (width, cols)),
                    Members::Cols => (tensor.cols_range(range), start, (rows, width)),
                };
                let out = ViewMut::with_row_stride(&mut buffer[offset..], shape.0, shape.1, cols)
                    .expect("the buffer has room for the whole tensor");
                quantizer(self, operator).image_into(part, axis, random, out);
                start += width;
                if members == Members::Shared {
                    break;
                }
            }
            View::new(buffer, rows, cols)
        };
        if let Some(observer) = self.observer.as_deref_mut() {
            let mut start = 0;
            for &(operator, width) in group.members {
                let range = start..start + width;
                let part = |whole: View<'b, f32>| match members {
                    Members::Shared => whole,
                    Members::Rows => whole.rows_range(range.clone()),
                    Members::Cols => whole.cols_range(range.clone()),
                };
                let (before, after) = (part(tensor), part(image));
                observer.operand(site(operator), product, operand, before, after);
                start += width;
            }
        }
        image
    }

    /// Rounds a finished product to the recipe's output format.
    fn store(&self, group: &Group<'_>, product: Product, out: &mut ViewMut<'_, f32>) {
        let (rows, stride) = (out.rows(), out.row_stride());
        let mut start = 0;
        let whole = [(group.members[0].0, out.cols())];
        // `grad_input` is one tensor for the whole group.
        let members: &[_] = if product == Product::Forward { group.members } else { &whole };
        for &(operator, width) in members {
            let site = Site { layer: group.layer, operator };
            if let Some(format) = self.recipe.output(site, product) {
                let converter = Converter::new(format, Rules::DEFAULT);
                let data = out.data();
                if width == stride {
                    let all = &mut data[..rows * stride];
                    converter.fake_quantize(all);
                } else {
                    for row in 0..rows {
                        let from = row * stride + start;
                        let part = &mut data[from..from + width];
                        converter.fake_quantize(part);
                    }
                }
            }
            start += width;
        }
    }

    /// Both images and their buffers, handed to `multiply`.
    fn multiply(
        &mut self,
        group: &Group<'_>,
        left: &Side<'_>,
        right: &Side<'_>,
        multiply: impl FnOnce(View<'_, f32>, View<'_, f32>),
    ) {
        let Images { left: mut left_buffer, right: mut right_buffer } = std::mem::take(self.images);
        let left = self.image(group, left, &mut left_buffer);
        let right = self.image(group, right, &mut right_buffer);
        multiply(left, right);
        *self.images = Images { left: left_buffer, right: right_buffer };
    }
}

impl Products<f32> for Engine<'_> {
    fn forward(
        &mut self,
        group: &Group<'_>,
        x: View<'_, f32>,
        w: View<'_, f32>,
        mut y: ViewMut<'_, f32>,
    ) {
        let product = Product::Forward;
        let x = Side { product, operand: Operand::Input, tensor: x, axis: Axis::Cols };
        let w = Side { product, operand: Operand::Weight, tensor: w, axis: Axis::Cols };
        self.multiply(group, &x, &w, |x, w| matmul(x, w.t(), y.reborrow(), Output::Overwrite));
        self.store(group, product, &mut y);
    }

    fn grad_input(
        &mut self,
        group: &Group<'_>,
        g: View<'_, f32>,
        w: View<'_, f32>,
        mut dx: ViewMut<'_, f32>,
    ) {
        let product = Product::GradInput;
        let g = Side { product, operand: Operand::GradOutput, tensor: g, axis: Axis::Cols };
        let w = Side { product, operand: Operand::Weight, tensor: w, axis: Axis::Rows };
        self.multiply(group, &g, &w, |g, w| matmul(g, w, dx.reborrow(), Output::Overwrite));
        self.store(group, product, &mut dx);
    }

    fn grad_weight(
        &mut self,
        group: &Group<'_>,
        g: View<'_, f32>,
        x: View<'_, f32>,
        mut dw: ViewMut<'_, f32>,
    ) {
        let product = Product::GradWeight;
        let g = Side { product, operand: Operand::GradOutput, tensor: g, axis: Axis::Rows };
        let x = Side { product, operand: Operand::Input, tensor: x, axis: Axis::Rows };
        self.multiply(group, &g, &x, |g, x| matmul(g.t(), x, dw.reborrow(), Output::Accumulate));
    }
}
