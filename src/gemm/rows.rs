//! An operand's numbers, exactly, in the order in which sums read them.

use alloc::vec;
use alloc::vec::Vec;

use super::operand::{Operand, Store};
use crate::format::{Format, Value};
use crate::math;
use crate::slice::{View, decode_into};

/// Vectors of `k` consecutive numbers that sums run along: the rows of A, or the columns of B.
///
/// A number is a code of `format`, element times block scale and without the tensor's scale. That is
/// binary64 wherever it is exact: the product of two binary32 numbers, an element and a scale, is.
/// Formats beyond binary64, of 12 exponent bits and more, keep their codes.
#[derive(Clone, Debug)]
pub(super) struct ExactRows {
    pub(super) format: Format,
    pub(super) count: usize,
    pub(super) k: usize,
    codes: Vec<u64>,
}

impl ExactRows {
    /// The rows of an operand.
    pub(super) fn rows(operand: &Operand<'_>) -> Self {
        let (count, k) = operand.shape();
        let (format, codes) = match operand.store() {
            Store::F32(view) => (Format::F64, in_rows(view, |x| f64::from(x).to_bits())),
            Store::Blocks(tensor) => {
                let images = images(tensor);
                let view = View::new(&images, tensor.rows(), tensor.cols());
                let view = if operand.is_transposed() { view.t() } else { view };
                (Format::F64, in_rows(view, f64::to_bits))
            }
            _ => as_binary64(operand.format(), codes(operand)),
        };
        Self { format, count, k, codes }
    }

    /// The columns of an operand.
    pub(super) fn columns(operand: &Operand<'_>) -> Self {
        Self::rows(&operand.t())
    }

    /// The codes of one vector.
    pub(super) fn row(&self, i: usize) -> &[u64] {
        &self.codes[i * self.k..(i + 1) * self.k]
    }

    /// One number as arithmetic takes it.
    pub(super) fn operand(&self, code: u64) -> math::Operand {
        math::Operand::new(self.format, code)
    }

    /// One number's value.
    pub(super) fn value(&self, code: u64) -> Value {
        match self.format {
            Format::F64 => Value::from_f64(f64::from_bits(code)),
            format => format.decode(code),
        }
    }

    /// The numbers as binary32, vector by vector, if they all are.
    pub(super) fn as_f32(&self) -> Option<Vec<f32>> {
        if self.format != Format::F64 {
            return None;
        }
        let mut exact = true;
        let narrow = |code: &u64| {
            let wide = f64::from_bits(*code);
            let narrow = wide as f32;
            exact &= f64::from(narrow) == wide || wide.is_nan();
            narrow
        };
        let numbers = self.codes.iter().map(narrow).collect();
        exact.then_some(numbers)
    }
}

/// The elements of a view, row by row.
fn in_rows<T: Copy>(view: View<'_, T>, code: impl Fn(T) -> u64) -> Vec<u64> {
    let (rows, cols) = (view.rows(), view.cols());
    let mut codes = Vec::with_capacity(rows * cols);
    for i in 0..rows {
        match view.row(i) {
            Some(row) => codes.extend(row.iter().map(|x| code(*x))),
            None => codes.extend((0..cols).map(|j| code(view.at(i, j)))),
        }
    }
    codes
}

/// The codes of an operand's elements, row by row, without the bits above their format's width.
pub(super) fn codes(operand: &Operand<'_>) -> Vec<u64> {
    let mask = u64::MAX >> (64 - operand.format().bits());
    match operand.store() {
        Store::F32(view) => in_rows(view, |x| x.to_bits().into()),
        Store::F64(view) => in_rows(view, f64::to_bits),
        Store::U8(_, view) => in_rows(view, |x| u64::from(x) & mask),
        Store::U16(_, view) => in_rows(view, |x| u64::from(x) & mask),
        Store::U32(_, view) => in_rows(view, |x| u64::from(x) & mask),
        Store::U64(_, view) => in_rows(view, |x| x & mask),
        Store::Blocks(tensor) => {
            let codes = tensor.codes();
            let view = View::new(&codes, tensor.rows(), tensor.cols());
            in_rows(if operand.is_transposed() { view.t() } else { view }, u64::from)
        }
    }
}

/// Numbers that have no scale, as binary64 where that holds them all.
fn as_binary64(format: Format, mut codes: Vec<u64>) -> (Format, Vec<u64>) {
    if format == Format::F64 || !format.is_exact_in_f64() {
        return (format, codes);
    }
    if format.bits() <= 8 {
        let table: [u64; 256] = core::array::from_fn(|code| format.to_f64(code as u64).to_bits());
        codes.iter_mut().for_each(|code| *code = table[*code as usize & 0xFF]);
    } else {
        codes.iter_mut().for_each(|code| *code = format.to_f64(*code).to_bits());
    }
    (Format::F64, codes)
}

/// Element times block scale of a block tensor, row-major. Both factors are binary32 numbers, so no
/// product is rounded.
fn images(tensor: &crate::block::BlockTensor) -> Vec<f64> {
    let (rows, cols, format) = (tensor.rows(), tensor.cols(), tensor.format());
    let ((down, across), (_, right)) = (tensor.block(), tensor.blocks());
    let codes = tensor.codes();
    let mut images = vec![0.0; rows * cols];
    decode_into(format.element, &codes, &mut images);
    let codes = tensor.scales();
    let mut scales = vec![0.0_f64; codes.len()];
    decode_into(format.scale, &codes, &mut scales);
    if cols == 0 {
        return images;
    }
    for (i, row) in images.chunks_mut(cols).enumerate() {
        let scales = &scales[i / down * right..];
        for (block, scale) in row.chunks_mut(across).zip(scales) {
            block.iter_mut().for_each(|x| *x *= scale);
        }
    }
    images
}
