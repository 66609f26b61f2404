//! Packed codes and scales to values.

use alloc::vec::Vec;

use super::for_each;
use super::sheet::CHUNK;
use crate::block::{BlockTensor, kernel};
use crate::bulk::{SPAN, decode_into};
use crate::pack;
use crate::scale::Order;
use crate::view::ViewMut;

/// Writes the values of a tensor.
pub(crate) fn dequantize(tensor: &BlockTensor, out: ViewMut<'_, f32>) {
    let (rows, cols) = (tensor.rows(), tensor.cols());
    if rows == 0 || cols == 0 {
        return;
    }
    let format = tensor.format();
    let (mut scales, mut decode) = (tensor.scale_values(), tensor.tensor_scale().unwrap_or(1.0));
    if format.profile.choices(format.rule).order == Order::Torchao {
        scales.iter_mut().for_each(|scale| *scale *= decode);
        decode = 1.0;
    }
    // Eight rows start with a byte, whatever the width of a code.
    let step = CHUNK.div_ceil(cols).next_multiple_of(8);
    let mut items = Vec::with_capacity(rows.div_ceil(step));
    let mut rest = Some(out);
    for first in (0..rows).step_by(step) {
        if let Some(out) = rest.take() {
            let (head, tail) = out.split_rows(step.min(rows - first));
            items.push((first, head));
            rest = Some(tail);
        }
    }
    for_each(items, |(first, out)| rows_of(tensor, &scales, decode, first, out));
}

/// Rows from row `first` on, which starts with a byte.
fn rows_of(
    tensor: &BlockTensor,
    scales: &[f32],
    decode: f32,
    first: usize,
    mut out: ViewMut<'_, f32>,
) {
    let (rows, cols, stride) = (out.rows(), out.cols(), out.row_stride());
    let format = tensor.format();
    let (block, right) = (tensor.block(), tensor.blocks().1);
    let element = Element { width: format.element.bits() as usize, tensor, first: first * cols };
    let mut scratch = [0.0; SPAN];
    let data = out.data();
    // Spans of the stream of codes; each covers parts of some rows.
    for at in (0..rows * cols).step_by(SPAN) {
        let len = SPAN.min(rows * cols - at);
        let values = &mut scratch[..len];
        element.values(at, values);
        let mut done = 0;
        while done < len {
            let (i, j) = ((at + done) / cols, (at + done) % cols);
            let count = (cols - j).min(len - done);
            let values = &mut values[done..done + count];
            let scales = &scales[(first + i) / block.0 * right..][..right];
            scale_row(block.1, scales, decode, j, values);
            data[i * stride + j..i * stride + j + count].copy_from_slice(values);
            done += count;
        }
    }
}

/// Multiplies a piece of a row, which starts at column `j`, by the scales of the row's blocks.
fn scale_row(width: usize, scales: &[f32], decode: f32, j: usize, mut values: &mut [f32]) {
    // The block that the piece starts within.
    let mut block = j / width;
    if !j.is_multiple_of(width) {
        let (head, tail) = values.split_at_mut((width - j % width).min(values.len()));
        kernel::scale(head.len(), &scales[block..=block], decode, head);
        (values, block) = (tail, block + 1);
    }
    if !values.is_empty() {
        kernel::scale(width, &scales[block..], decode, values);
    }
}

/// The elements of a tensor, before their scales.
struct Element<'a> {
    width: usize,
    tensor: &'a BlockTensor,
    /// Index of the first code, which starts a byte.
    first: usize,
}

impl Element<'_> {
    /// Values of codes from code `at` on, a multiple of eight.
    fn values(&self, at: usize, out: &mut [f32]) {
        let format = self.tensor.format().element;
        // Both are multiples of eight, and eight codes are as many bytes as a code has bits.
        let start = (self.first + at) / 8 * self.width;
        let bytes = &self.tensor.packed_codes()[start..];
        let bytes = &bytes[..(out.len() * self.width).div_ceil(8)];
        match self.width {
            8 => decode_into(format, bytes, out),
            0..8 => decode_into(
                format,
                unpack::<u8>(bytes, self.width, &mut [0; SPAN][..out.len()]),
                out,
            ),
            _ => decode_into(
                format,
                unpack::<u16>(bytes, self.width, &mut [0; SPAN][..out.len()]),
                out,
            ),
        }
    }
}

fn unpack<'a, C: pack::Code>(bytes: &[u8], width: usize, codes: &'a mut [C]) -> &'a [C] {
    if let Err(error) = pack::unpack_into(bytes, width as u32, codes) {
        unreachable!("as many bytes as codes take: {error}");
    }
    codes
}
