//! One operand of a product: the image of all members of a group, or what is packed without one.

use super::image::{self, Given};
use super::{Engine, Rounded};
use crate::nn::site::{Operand, Operator, Product, Site};
use crate::recipe::tensor_format::TensorFormat;
use exmy::gemm::fast::Source;
use exmy::quantizer::{Axis, Target};
use exmy::slice::{View, ViewMut};
use std::ops::{Deref, Range};

/// One operand of one product, before rounding.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) product: Product,
    pub(super) operand: Operand,
    pub(super) tensor: View<'a, f32>,
    pub(super) axis: Axis,
}

impl Side<'_> {
    /// Elements along the sum of a member of a group with `width` output features.
    fn along(&self, width: usize) -> usize {
        match (self.operand, self.axis) {
            (Operand::Weight, Axis::Rows) | (Operand::GradOutput, Axis::Cols) => width,
            (_, Axis::Rows) => self.tensor.rows(),
            (_, Axis::Cols) => self.tensor.cols(),
        }
    }
}

/// Members that a group has at most: gated linear attention has five.
const MOST: usize = 8;

/// The members of an operand with their quantizers.
pub(super) struct Sources<'a> {
    all: [Source<'a>; MOST],
    count: usize,
}

impl<'a> Deref for Sources<'a> {
    type Target = [Source<'a>];

    fn deref(&self) -> &[Source<'a>] {
        &self.all[..self.count]
    }
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

impl Engine<'_> {
    /// Everything the numbers of one tensor need.
    pub(super) fn given(
        &mut self,
        numbers: &TensorFormat,
        site: Site,
        (product, operand, axis): (Product, Operand, Axis),
        tensor: View<'_, f32>,
    ) -> Given {
        let scale = match (numbers.window, numbers.quantizer.target) {
            (0, _) => None,
            (length, Target::Block(format)) => {
                let max = format.element.max().to_f32();
                let step = self.phase.trains();
                let windows = &mut self.images.memory.windows;
                let amax = image::amax(tensor);
                Some(match step {
                    Some(_) => {
                        let window = windows.entry((site, operand)).or_default();
                        window.scale(step, amax, max, length.into())
                    }
                    None => {
                        let mut window = windows.get(&(site, operand)).cloned().unwrap_or_default();
                        window.scale(None, amax, max, length.into())
                    }
                })
            }
            _ => None,
        };
        Given {
            axis,
            random: self.bits(numbers, site, product, operand),
            scale,
            signs: self.signs(site, product),
            sequence: if operand == Operand::Weight { 0 } else { self.sequence },
        }
    }

    /// The image of one operand of some members in `buffer`, or the operand itself where nothing rounds
    /// it. It may have zeros behind the reduction axis.
    pub(super) fn image<'b>(
        &mut self,
        layer: Option<u32>,
        group: &[(Operator, usize)],
        side: &Side<'b>,
        buffer: &'b mut Vec<f32>,
    ) -> View<'b, f32> {
        let Side { product, operand, tensor, axis } = *side;
        let members = match operand {
            Operand::Input => Members::Shared,
            Operand::Weight => Members::Rows,
            Operand::GradOutput => Members::Cols,
        };
        let site = |operator| Site { layer, operator };
        let numbers = |engine: &Self, operator| engine.numbers(site(operator), product, operand);
        let untouched = group.iter().all(|&(op, _)| numbers(self, op).is_none());
        // Elements of the part of a member along the sum, as it is and as its rotation needs it.
        let length = |engine: &Self, operator, width: usize| {
            let along = side.along(width);
            let rotation = numbers(engine, operator).quantizer.rotation;
            (along, rotation.map_or(along, |rotation| along.next_multiple_of(rotation.size())))
        };
        // Members one after the other along the sum, or beside each other.
        let stacked =
            matches!((members, axis), (Members::Rows, Axis::Rows) | (Members::Cols, Axis::Cols));
        let lengths = group.iter().map(|&(op, width)| length(self, op, width).1);
        let along = if stacked { lengths.sum() } else { lengths.max().unwrap_or(0) };
        let (rows, cols) = match axis {
            Axis::Rows => (along, tensor.cols()),
            Axis::Cols => (tensor.rows(), along),
        };
        let image = if untouched {
            tensor
        } else {
            buffer.clear();
            buffer.resize(rows * cols, 0.0);
            let (mut start, mut to) = (0, 0);
            for &(operator, width) in group {
                let (_, padded) = length(self, operator, width);
                let wide = if stacked { padded } else { width };
                let (part, place) = match members {
                    Members::Shared => (tensor, (0, 0, rows, cols)),
                    Members::Rows if stacked => {
                        (tensor.rows_range(start..start + width), (to, 0, wide, cols))
                    }
                    Members::Rows => {
                        (tensor.rows_range(start..start + width), (to, 0, width, cols))
                    }
                    Members::Cols => (tensor.cols_range(start..start + width), (0, to, rows, wide)),
                };
                let (row, col, height, across) = place;
                let out = &mut buffer[row * cols + col..];
                let out = ViewMut::with_row_stride(out, height, across, cols);
                let out = out.expect("a member lies within its group");
                self.write(site(operator), side, part, out);
                (start, to) = (start + width, to + wide);
                if members == Members::Shared {
                    break;
                }
            }
            View::new(buffer, rows, cols)
        };
        self.observe(layer, group, side, members, image);
        image
    }

    /// One tensor in its numbers, filled up with zeros to the shape of `out`.
    fn write(&mut self, site: Site, side: &Side<'_>, part: View<'_, f32>, out: ViewMut<'_, f32>) {
        let numbers = self.numbers(site, side.product, side.operand);
        let given = self.given(&numbers, site, (side.product, side.operand, side.axis), part);
        let scratch = &mut self.images.scratch;
        let (rows, cols) = (out.rows(), out.cols());
        if (part.rows(), part.cols()) == (rows, cols) {
            return image::image(&numbers, part, given, scratch, out);
        }
        let padded = image::padded(part, rows, cols);
        image::image(&numbers, View::new(&padded, rows, cols), given, scratch, out);
    }

    /// Shows an operand's members to the observer.
    fn observe(
        &mut self,
        layer: Option<u32>,
        group: &[(Operator, usize)],
        side: &Side<'_>,
        members: Members,
        image: View<'_, f32>,
    ) {
        let Some(observer) = self.observer.take() else { return };
        let Side { product, operand, tensor, axis } = *side;
        let (mut start, mut to) = (0, 0);
        for &(operator, width) in group {
            let site = Site { layer, operator };
            let part = |whole: View<'_, f32>, range: Range<usize>| match members {
                Members::Shared => (0..whole.rows(), 0..whole.cols()),
                Members::Rows => (range, 0..whole.cols()),
                Members::Cols => (0..whole.rows(), range),
            };
            let (rows, cols) = part(tensor, start..start + width);
            let before = tensor.rows_range(rows).cols_range(cols);
            let numbers = self.numbers(site, product, operand);
            let rotation = numbers.quantizer.rotation;
            let stacked = matches!(
                (members, axis),
                (Members::Rows, Axis::Rows) | (Members::Cols, Axis::Cols)
            );
            let wide = match rotation {
                Some(rotation) if stacked => width.next_multiple_of(rotation.size()),
                _ => width,
            };
            let (rows, cols) = part(image, to..to + wide);
            let after = image.rows_range(rows).cols_range(cols);
            let rotated;
            let before = if rotation.is_some() {
                let (rows, cols) = (after.rows(), after.cols());
                let padded = image::padded(before, rows, cols);
                let padded = View::new(&padded, rows, cols);
                let given = self.given(&numbers, site, (product, operand, axis), before);
                rotated = image::before(&numbers, padded, given);
                View::new(&rotated, rows, cols)
            } else {
                before
            };
            let (quantizer, clip) = (numbers.quantizer, numbers.clip());
            let seen = Rounded { site, product, operand, quantizer, clip, axis, before, after };
            observer.operand(&seen);
            (start, to) = (start + width, to + wide);
        }
        self.observer = Some(observer);
    }

    /// The members of an operand with their quantizers, if these are all there is to their numbers
    /// and rotations have whole groups.
    pub(super) fn sources<'b>(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        side: &Side<'b>,
    ) -> Option<Sources<'b>> {
        let Side { product, operand, tensor, .. } = *side;
        let (mut start, mut sources) = (0, None::<Sources<'b>>);
        if members.len() > MOST {
            return None;
        }
        for &(operator, width) in members {
            let site = Site { layer, operator };
            let numbers = self.numbers(site, product, operand);
            if numbers.is_none() {
                return None;
            }
            TensorFormat { fresh: false, ..numbers }.plain()?;
            let quantizer = image::quantizer(&numbers, self.signs(site, product));
            let groups = quantizer.rotation.map_or(1, |rotation| rotation.size());
            if !side.along(width).is_multiple_of(groups) {
                return None;
            }
            let range = start..start + width;
            let matrix = match operand {
                Operand::Input => tensor,
                Operand::Weight => tensor.rows_range(range),
                Operand::GradOutput => tensor.cols_range(range),
            };
            let random = self.bits(&numbers, site, product, operand);
            let source = Source { matrix, quantizer, random };
            match &mut sources {
                None => sources = Some(Sources { all: [source; MOST], count: 1 }),
                Some(Sources { all, count }) => {
                    all[*count] = source;
                    *count += 1;
                }
            }
            if operand == Operand::Input {
                break;
            }
            start += width;
        }
        sources
    }

    /// Makes the images that only who watches needs.
    pub(super) fn show(
        &mut self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        sides: [&Side<'_>; 2],
    ) {
        let mut buffer = std::mem::take(&mut self.images.left);
        for side in sides {
            self.image(layer, members, side, &mut buffer);
        }
        self.images.left = buffer;
    }
}
