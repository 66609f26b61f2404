//! One operand of a product: the image of all members of a group, or what is packed without one.

use super::image::{self, Given};
use super::{Engine, Rounded};
use crate::nn::device::{Buffer, Matrix, MatrixMut};
use crate::nn::site::{Operand, Operator, Product, Site};
use crate::recipe::device::{MOST_SOURCES, Quantize, Source};
use crate::recipe::tensor_format::TensorFormat;
use exmy::quantizer::{Axis, Target};
use std::ops::{Deref, Range};

/// One operand of one product, before rounding.
pub(super) struct Side<'a, D: Quantize> {
    pub(super) product: Product,
    pub(super) operand: Operand,
    pub(super) tensor: Matrix<'a, D>,
    pub(super) axis: Axis,
}

impl<D: Quantize> Clone for Side<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Quantize> Copy for Side<'_, D> {}

impl<D: Quantize> Side<'_, D> {
    /// Elements along the sum of a member of a group with `width` output features.
    fn along(&self, width: usize) -> usize {
        match (self.operand, self.axis) {
            (Operand::Weight, Axis::Rows) | (Operand::GradOutput, Axis::Cols) => width,
            (_, Axis::Rows) => self.tensor.rows(),
            (_, Axis::Cols) => self.tensor.cols(),
        }
    }
}

/// The members of an operand with their quantizers.
pub(super) struct Sources<'a, D: Quantize> {
    all: [Source<'a, D>; MOST_SOURCES],
    count: usize,
}

impl<'a, D: Quantize> Deref for Sources<'a, D> {
    type Target = [Source<'a, D>];

    fn deref(&self) -> &[Source<'a, D>] {
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

impl Members {
    const fn of(operand: Operand) -> Self {
        match operand {
            Operand::Input => Self::Shared,
            Operand::Weight => Self::Rows,
            Operand::GradOutput => Self::Cols,
        }
    }

    /// The part of a member.
    fn part<D: Quantize>(self, whole: Matrix<'_, D>, range: Range<usize>) -> Matrix<'_, D> {
        match self {
            Self::Shared => whole,
            Self::Rows => whole.rows_range(range),
            Self::Cols => whole.cols_range(range),
        }
    }

    /// Whether the members lie one after the other along the sum, not beside each other.
    const fn are_stacked(self, axis: Axis) -> bool {
        matches!((self, axis), (Self::Rows, Axis::Rows) | (Self::Cols, Axis::Cols))
    }
}

impl<D: Quantize> Engine<'_, D> {
    /// Everything the numbers of one tensor need.
    pub(super) fn given(
        &mut self,
        device: &D,
        numbers: &TensorFormat,
        site: Site,
        (product, operand, axis): (Product, Operand, Axis),
        tensor: Matrix<'_, D>,
    ) -> Given {
        let scale = match (numbers.window, numbers.quantizer.target) {
            (0, _) => None,
            (length, Target::Block(format)) => {
                let max = format.element.max().to_f32();
                let step = self.phase.trains();
                let mut one = self.images.take(device, 1);
                let amax = || {
                    device.amax(tensor, one.first_mut(1));
                    device.read(one.first(1))[0]
                };
                let windows = &mut self.images.memory.windows;
                let scale = match step {
                    Some(_) => {
                        let window = windows.entry((site, operand)).or_default();
                        window.scale(step, amax, max, length.into())
                    }
                    None => {
                        let mut window = windows.get(&(site, operand)).cloned().unwrap_or_default();
                        window.scale(None, amax, max, length.into())
                    }
                };
                self.images.give(one);
                Some(scale)
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
        device: &D,
        layer: Option<u32>,
        group: &[(Operator, usize)],
        side: &Side<'b, D>,
        buffer: &'b mut Buffer<D>,
    ) -> Matrix<'b, D> {
        let Side { product, operand, tensor, axis } = *side;
        let members = Members::of(operand);
        let site = |operator| Site { layer, operator };
        let numbers = |engine: &Self, operator| engine.numbers(site(operator), product, operand);
        let untouched = group.iter().all(|&(op, _)| numbers(self, op).is_none());
        // Elements of the part of a member along the sum as its rotation needs it.
        let length = |engine: &Self, operator, width: usize| {
            let along = side.along(width);
            let rotation = numbers(engine, operator).quantizer.rotation;
            rotation.map_or(along, |rotation| along.next_multiple_of(rotation.size()))
        };
        let stacked = members.are_stacked(axis);
        let lengths = group.iter().map(|&(op, width)| length(self, op, width));
        let along = if stacked { lengths.sum() } else { lengths.max().unwrap_or(0) };
        let (rows, cols) = match axis {
            Axis::Rows => (along, tensor.cols()),
            Axis::Cols => (tensor.rows(), along),
        };
        let image = if untouched {
            tensor
        } else {
            device.grow(buffer, rows * cols);
            let mut image = MatrixMut::new(buffer.first_mut(rows * cols), rows, cols);
            let (mut start, mut to) = (0, 0);
            for &(operator, width) in group {
                let wide = if stacked { length(self, operator, width) } else { width };
                let part = members.part(tensor, start..start + width);
                let out = match members {
                    Members::Shared => image.again(),
                    Members::Rows => image.rows_range(to..to + wide),
                    Members::Cols => image.cols_range(to..to + wide),
                };
                self.write(device, site(operator), side, part, out);
                (start, to) = (start + width, to + wide);
                if members == Members::Shared {
                    break;
                }
            }
            Matrix::new(buffer.first(rows * cols), rows, cols)
        };
        self.observe(device, layer, group, side, image);
        image
    }

    /// One tensor in its numbers, filled up with zeros to the shape of `out`.
    fn write(
        &mut self,
        device: &D,
        site: Site,
        side: &Side<'_, D>,
        part: Matrix<'_, D>,
        out: MatrixMut<'_, D>,
    ) {
        let numbers = self.numbers(site, side.product, side.operand);
        let place = (side.product, side.operand, side.axis);
        let given = self.given(device, &numbers, site, place, part);
        let (rows, cols) = (out.rows(), out.cols());
        if (part.rows(), part.cols()) == (rows, cols) {
            let scratch = &mut self.images.scratch;
            return image::image(device, &numbers, part, given, scratch, out);
        }
        let mut padded = self.images.take(device, rows * cols);
        image::padded(device, part, MatrixMut::new(padded.first_mut(rows * cols), rows, cols));
        let x = Matrix::new(padded.first(rows * cols), rows, cols);
        image::image(device, &numbers, x, given, &mut self.images.scratch, out);
        self.images.give(padded);
    }

    /// Shows an operand's members to the observer.
    fn observe(
        &mut self,
        device: &D,
        layer: Option<u32>,
        group: &[(Operator, usize)],
        side: &Side<'_, D>,
        image: Matrix<'_, D>,
    ) {
        let Some(observer) = self.observer.take() else { return };
        let Side { product, operand, tensor, axis } = *side;
        let (members, mut start, mut to) = (Members::of(operand), 0, 0);
        for &(operator, width) in group {
            let site = Site { layer, operator };
            let part = members.part(tensor, start..start + width);
            let numbers = self.numbers(site, product, operand);
            let rotation = numbers.quantizer.rotation;
            let wide = match rotation {
                Some(rotation) if members.are_stacked(axis) => {
                    width.next_multiple_of(rotation.size())
                }
                _ => width,
            };
            let after = members.part(image, to..to + wide);
            let rotated = rotation.map(|_| {
                let given = self.given(device, &numbers, site, (product, operand, axis), part);
                self.before(device, &numbers, part, given, after)
            });
            let before = match &rotated {
                Some(buffer) => Matrix::new(buffer, after.rows(), after.cols()),
                None => part,
            };
            let [before, after] = [before, after].map(|matrix| device.read_matrix(matrix));
            let (quantizer, clip) = (numbers.quantizer, numbers.clip());
            let (before, after) = (before.view(), after.view());
            let seen = Rounded { site, product, operand, quantizer, clip, axis, before, after };
            observer.operand(&seen);
            (start, to) = (start + width, to + wide);
            if let Some(buffer) = rotated {
                self.images.give(buffer);
            }
        }
        self.observer = Some(observer);
    }

    /// The members of an operand with their quantizers, if these are all there is to their numbers
    /// and rotations have whole groups.
    pub(super) fn sources<'b>(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        side: &Side<'b, D>,
    ) -> Option<Sources<'b, D>> {
        let Side { product, operand, tensor, .. } = *side;
        let (mut start, mut sources) = (0, None::<Sources<'b, D>>);
        if members.len() > MOST_SOURCES {
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
            let matrix = Members::of(operand).part(tensor, start..start + width);
            let random = self.bits(&numbers, site, product, operand);
            let source = Source { matrix, quantizer, random };
            match &mut sources {
                None => sources = Some(Sources { all: [source; MOST_SOURCES], count: 1 }),
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

    /// Whether the numbers of all members are quantizers and nothing more.
    pub(super) fn packs(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        side: &Side<'_, D>,
    ) -> bool {
        let numbers = |operator| self.numbers(Site { layer, operator }, side.product, side.operand);
        members.iter().all(|&(operator, _)| numbers(operator).packs())
    }

    /// An operand with zeros behind the sum of each member, where its rotation has no whole groups, in
    /// `buffer`; and how wide the members are then.
    pub(super) fn filled<'b>(
        &self,
        device: &D,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        side: &Side<'_, D>,
        buffer: &'b mut Buffer<D>,
    ) -> (Matrix<'b, D>, Vec<(Operator, usize)>) {
        let Side { product, operand, tensor, axis } = *side;
        let whole = |along: usize, operator: Operator| {
            let rotation =
                self.numbers(Site { layer, operator }, product, operand).quantizer.rotation;
            rotation.map_or(along, |rotation| along.next_multiple_of(rotation.size()))
        };
        let kind = Members::of(operand);
        let mut widths = members.to_vec();
        let along = if kind.are_stacked(axis) {
            widths.iter_mut().for_each(|(operator, width)| *width = whole(*width, *operator));
            widths.iter().map(|(_, width)| width).sum()
        } else {
            // What members share has the same groups for all.
            whole(side.along(0), members[0].0)
        };
        let (rows, cols) = match axis {
            Axis::Rows => (along, tensor.cols()),
            Axis::Cols => (tensor.rows(), along),
        };
        device.grow(buffer, rows * cols);
        let mut filled = MatrixMut::new(buffer.first_mut(rows * cols), rows, cols);
        if kind.are_stacked(axis) {
            let (mut from, mut to) = (0, 0);
            for (&(_, width), &(_, wide)) in members.iter().zip(&widths) {
                let out = match kind {
                    Members::Rows => filled.rows_range(to..to + wide),
                    _ => filled.cols_range(to..to + wide),
                };
                image::padded(device, kind.part(tensor, from..from + width), out);
                (from, to) = (from + width, to + wide);
            }
        } else {
            image::padded(device, tensor, filled);
        }
        (Matrix::new(buffer.first(rows * cols), rows, cols), widths)
    }

    /// Makes the images that only who watches needs.
    pub(super) fn show(
        &mut self,
        device: &D,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        sides: [&Side<'_, D>; 2],
    ) {
        let mut buffer = std::mem::take(&mut self.images.left);
        for side in sides {
            self.image(device, layer, members, side, &mut buffer);
        }
        self.images.left = buffer;
    }
}
