//! Packed codes and scales to values.

use alloc::vec::Vec;

use super::walk::CHUNK;
use super::{for_each, whole_bytes};
use crate::block::scale::Order;
use crate::block::{BlockTensor, kernel};
use crate::pack;
use crate::slice::{Real, SPAN, ViewMut, convert_into, decode_into};

/// Writes the values of a tensor.
pub(crate) fn dequantize<T: Real>(tensor: &BlockTensor, out: ViewMut<'_, T>) {
    let (rows, cols) = (tensor.rows(), tensor.cols());
    if rows == 0 || cols == 0 {
        return;
    }
    let decoder = &Decoder::new(tensor);
    let stride = if rows == 1 { cols } else { out.row_stride() };
    if stride == cols {
        // CHUNK codes are whole bytes, whatever their width.
        let items = out.into_data()[..rows * cols].chunks_mut(CHUNK).enumerate();
        for_each(items, |(i, out): (usize, &mut [T])| {
            let len = out.len();
            decoder.chunk(i * CHUNK, len, |at, values| {
                convert_into(values, &mut out[at..at + values.len()]);
            });
        });
        return;
    }
    let step =
        CHUNK.div_ceil(cols).next_multiple_of(whole_bytes(cols, tensor.format().element.bits()));
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
        let (len, out) = (out.rows() * cols, out.data_mut());
        decoder.chunk(first * cols, len, |mut at, mut values| {
            while !values.is_empty() {
                let (i, j) = (at / cols, at % cols);
                let (row, rest) = values.split_at((cols - j).min(values.len()));
                convert_into(row, &mut out[i * stride + j..][..row.len()]);
                (at, values) = (at + row.len(), rest);
            }
        });
    });
}

/// A tensor prepared to be decoded anywhere.
pub(crate) struct Decoder<'a> {
    tensor: &'a BlockTensor,
    scales: Vec<f32>,
    /// What values are multiplied by last.
    decode: f32,
}

impl<'a> Decoder<'a> {
    /// Of this tensor.
    pub(crate) fn new(tensor: &'a BlockTensor) -> Self {
        let format = tensor.format();
        let (mut scales, mut decode) =
            (tensor.scale_values(), tensor.tensor_scale().unwrap_or(1.0));
        if format.profile.choices(format.rule).order == Order::Torchao {
            scales.iter_mut().for_each(|scale| *scale *= decode);
            decode = 1.0;
        }
        Self { tensor, scales, decode }
    }

    /// The values of consecutive elements, the first of which has the row-major index `at`.
    pub(crate) fn values(&self, at: usize, out: &mut [f32]) {
        for (i, out) in out.chunks_mut(SPAN).enumerate() {
            self.span(at + i * SPAN, out);
        }
    }

    fn span(&self, at: usize, out: &mut [f32]) {
        let tensor = self.tensor;
        // Eight codes are whole bytes.
        let lead = at % 8;
        if lead == 0 {
            codes_of(tensor, at, out);
        } else {
            let scratch = &mut [0.0; SPAN + 8][..lead + out.len()];
            codes_of(tensor, at - lead, scratch);
            out.copy_from_slice(&scratch[lead..]);
        }
        let (cols, (down, width), right) = (tensor.cols(), tensor.block(), tensor.blocks().1);
        let mut done = 0;
        while done < out.len() {
            let (i, j) = ((at + done) / cols, (at + done) % cols);
            let count = (cols - j).min(out.len() - done);
            let scales = &self.scales[i / down * right..][..right];
            scale_row(width, scales, self.decode, j, &mut out[done..done + count]);
            done += count;
        }
    }

    /// The values of `len` elements from element `first` on; `write` gets them a span at a time, with
    /// the place after `first`.
    fn chunk(&self, first: usize, len: usize, mut write: impl FnMut(usize, &[f32])) {
        let mut scratch = [0.0; SPAN];
        for at in (0..len).step_by(SPAN) {
            let span = &mut scratch[..SPAN.min(len - at)];
            self.span(first + at, span);
            write(at, span);
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

/// Values of codes from code `at` on, a multiple of eight, before their scales; at most eight more
/// than [`SPAN`].
fn codes_of(tensor: &BlockTensor, at: usize, out: &mut [f32]) {
    let format = tensor.format().element;
    let width = format.bits() as usize;
    // Eight codes are as many bytes as a code has bits.
    let bytes = &tensor.packed_codes()[at / 8 * width..];
    let bytes = &bytes[..(out.len() * width).div_ceil(8)];
    match width {
        8 => decode_into(format, bytes, out),
        0..8 => {
            let codes = &mut [0; SPAN + 8][..out.len()];
            decode_into(format, unpack::<u8>(bytes, width, codes), out);
        }
        _ => {
            let codes = &mut [0; SPAN + 8][..out.len()];
            decode_into(format, unpack::<u16>(bytes, width, codes), out);
        }
    }
}

fn unpack<'a, C: pack::Code>(bytes: &[u8], width: usize, codes: &'a mut [C]) -> &'a [C] {
    if let Err(error) = pack::unpack_into(bytes, width as u32, codes) {
        unreachable!("as many bytes as codes take: {error}");
    }
    codes
}
