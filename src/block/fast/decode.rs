//! Packed codes and scales to values.

use alloc::vec::Vec;

use super::sheet::CHUNK;
use super::{for_each, whole_bytes};
use crate::block::{BlockTensor, kernel};
use crate::bulk::{Real, SPAN, convert_into, decode_into};
use crate::pack;
use crate::scale::Order;
use crate::view::ViewMut;

/// Writes the values of a tensor.
pub(crate) fn dequantize<T: Real>(tensor: &BlockTensor, out: ViewMut<'_, T>) {
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
    let stride = if rows == 1 { cols } else { out.row_stride() };
    if stride == cols {
        // CHUNK codes are whole bytes, whatever their width.
        let items = out.into_data()[..rows * cols].chunks_mut(CHUNK).enumerate();
        for_each(items.collect(), |(i, out): (usize, &mut [T])| {
            let len = out.len();
            stretch(tensor, &scales, decode, i * CHUNK, len, |at, values| {
                convert_into(values, &mut out[at..at + values.len()]);
            });
        });
        return;
    }
    let step = CHUNK.div_ceil(cols).next_multiple_of(whole_bytes(cols, format.element.bits()));
    let mut items = Vec::with_capacity(rows.div_ceil(step));
    let mut rest = Some(out);
    for first in (0..rows).step_by(step) {
        if let Some(out) = rest.take() {
            let (head, tail) = out.split_rows(step.min(rows - first));
            items.push((first, head));
            rest = Some(tail);
        }
    }
    for_each(items, |(first, mut out)| {
        let (len, out) = (out.rows() * cols, out.data());
        stretch(tensor, &scales, decode, first * cols, len, |mut at, mut values| {
            while !values.is_empty() {
                let (i, j) = (at / cols, at % cols);
                let (row, rest) = values.split_at((cols - j).min(values.len()));
                convert_into(row, &mut out[i * stride + j..][..row.len()]);
                (at, values) = (at + row.len(), rest);
            }
        });
    });
}

/// The values of `len` elements from element `first` on, which starts with a byte; `write` gets them
/// a span at a time, with the place after `first`.
fn stretch(
    tensor: &BlockTensor,
    scales: &[f32],
    decode: f32,
    first: usize,
    len: usize,
    mut write: impl FnMut(usize, &[f32]),
) {
    let cols = tensor.cols();
    let (block, right) = (tensor.block(), tensor.blocks().1);
    let width = tensor.format().element.bits() as usize;
    let element = Element { width, tensor, first };
    let mut scratch = [0.0; SPAN];
    for at in (0..len).step_by(SPAN) {
        let span = &mut scratch[..SPAN.min(len - at)];
        element.values(at, span);
        // A span covers parts of some rows.
        let mut done = 0;
        while done < span.len() {
            let (i, j) = ((first + at + done) / cols, (first + at + done) % cols);
            let count = (cols - j).min(span.len() - done);
            let scales = &scales[i / block.0 * right..][..right];
            scale_row(block.1, scales, decode, j, &mut span[done..done + count]);
            done += count;
        }
        write(at, span);
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
        // The first code starts a byte, and eight codes are as many bytes as a code has bits.
        let start =
            self.first / 8 * self.width + self.first % 8 * self.width / 8 + at / 8 * self.width;
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
