//! The fast path of [`Quantizer::image_into`]: chunks of whole blocks, rounded in place.
//!
//! A chunk is a number of whole rows, copied to its place in the output, rounded by the first cast
//! if there is one, and then rounded block by block while it is in cache. Per band of blocks the
//! magnitudes are folded into one maximum a block (along rows over 16 fixed lanes; along columns
//! element by element, rows on top of each other), the scales are computed for all blocks of the
//! band at once, and each row is rounded with scales laid out per element, so that every kernel is
//! one pass over slices whatever the shape of the block.

use alloc::vec;
use alloc::vec::Vec;

use super::{Axis, Quantizer, Target};
use crate::block::{BlockFormat, PlainBlocks, decode_element, encode_element};
use crate::bulk::grid::{self, Common, Grid};
use crate::bulk::{Cast, Converter, SPAN, words_into};
use crate::format::Value;
use crate::random::Philox;
use crate::round::{Overflow, Rounding};
use crate::scale::{FloorExponents, ScaleRule, TensorFactors, floor_scales};
use crate::simd::kernel;
use crate::view::{View, ViewMut};

/// Elements of a chunk, at least, unless the matrix ends: 128 KiB of f32.
const CHUNK: usize = 1 << 15;

pub(super) fn write(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Philox,
    mut out: ViewMut<'_, f32>,
) {
    let (rows, cols) = (x.rows(), x.cols());
    let blocks = match quantizer.target {
        Target::Block(format) => Some(Blocks::new(format.checked(), quantizer, axis, rows, cols)),
        _ => None,
    };
    if rows == 0 || cols == 0 {
        return;
    }
    if let Some(rotation) = quantizer.rotation {
        let first = Quantizer { rotation: None, target: Target::None, ..*quantizer };
        write(&first, x, axis, random, out.reborrow());
        let rotated = rotation.apply_matrix(out.reborrow(), axis == Axis::Rows);
        debug_assert!(rotated.is_ok(), "the size was checked");
        let stride = out.row_stride();
        let x: Vec<f32> =
            out.data().chunks(stride).take(rows).flat_map(|row| row[..cols].to_vec()).collect();
        let rest = Quantizer { before: None, rotation: None, ..*quantizer };
        return write(&rest, View::new(&x, rows, cols), axis, random, out);
    }
    let before = quantizer.before.map(|cast| Converter::from(cast).with_random(random));
    let cast = match quantizer.target {
        Target::Format(format) => {
            let cast = Cast { format, rounding: quantizer.rounding, overflow: quantizer.overflow };
            Some(Converter::from(cast).with_random(random))
        }
        _ => None,
    };
    let prepare = |chunk: &mut Chunk<'_>| {
        chunk.copy_from(x);
        for cast in before.iter().chain(&cast) {
            for (first, run) in chunk.runs(1) {
                cast.starting_at(first).round(run);
            }
        }
    };
    let Some(blocks) = blocks.filter(|blocks| blocks.format.has_kernels()) else {
        let chunk_rows = CHUNK.div_ceil(cols);
        for_each(chunks(out.reborrow(), chunk_rows), |mut chunk| prepare(&mut chunk));
        if let Target::Block(format) = quantizer.target {
            plain_blocks(format, quantizer, axis, random, out);
        }
        return;
    };
    let chunk_rows = CHUNK.div_ceil(cols).next_multiple_of(blocks.side.0);
    if !blocks.format.tensor_scale {
        let factors = TensorFactors::new(None, blocks.format.element, blocks.format.scale);
        for_each(chunks(out, chunk_rows), |mut chunk| {
            prepare(&mut chunk);
            blocks.round(&mut chunk, random, &factors);
        });
        return;
    }
    // The tensor's maximum must be known before the first block can be rounded.
    if before.is_none() {
        let factors = blocks.factors(largest_in(x));
        for_each(chunks(out, chunk_rows), |mut chunk| {
            prepare(&mut chunk);
            blocks.round(&mut chunk, random, &factors);
        });
        return;
    }
    let stride = out.row_stride();
    let Ok(first_pass) = ViewMut::with_row_stride(out.data(), rows, cols, stride) else {
        unreachable!("a view of the same shape")
    };
    for_each(chunks(first_pass, chunk_rows), |mut chunk| prepare(&mut chunk));
    let Ok(rounded) = View::with_strides(&*out.data(), rows, cols, stride, 1) else {
        unreachable!("a view of the same shape")
    };
    let factors = blocks.factors(largest_in(rounded));
    for_each(chunks(out, chunk_rows), |mut chunk| blocks.round(&mut chunk, random, &factors));
}

/// Rounds a matrix in place by the plain definition.
fn plain_blocks(
    format: BlockFormat,
    quantizer: &Quantizer,
    axis: Axis,
    random: Philox,
    mut out: ViewMut<'_, f32>,
) {
    let (rows, cols, stride) = (out.rows(), out.cols(), out.row_stride());
    let Ok(x) = View::with_strides(&*out.data(), rows, cols, stride, 1) else {
        unreachable!("a view of the same shape")
    };
    let Quantizer { rounding, overflow, .. } = *quantizer;
    let image = PlainBlocks::quantize(x, axis, format, rounding, overflow, random).dequantize();
    for (to, from) in out.data().chunks_mut(stride).zip(image.chunks(cols)) {
        to[..cols].copy_from_slice(from);
    }
}

/// The largest magnitude of a matrix, as bits. A maximum is the same in any order.
fn largest_in(x: View<'_, f32>) -> u32 {
    let x = if x.col_stride() > x.row_stride() { x.t() } else { x };
    let chunk_rows = CHUNK.div_ceil(x.cols());
    let mut maxima = vec![0; x.rows().div_ceil(chunk_rows)];
    for_each(maxima.iter_mut().enumerate().collect(), |(i, amax): (usize, &mut u32)| {
        for i in i * chunk_rows..((i + 1) * chunk_rows).min(x.rows()) {
            let row = match x.row(i) {
                Some(row) => largest(row),
                None => (0..x.cols()).fold(0, |max, j| max.max(x.at(i, j).to_bits() & MAGNITUDE)),
            };
            *amax = (*amax).max(row);
        }
    });
    maxima.into_iter().fold(0, u32::max)
}

/// Work on items that do not depend on one another.
fn for_each<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync + Send) {
    #[cfg(feature = "std")]
    crate::parallel::for_each(items, |_, item| work(item));
    #[cfg(not(feature = "std"))]
    items.into_iter().for_each(work);
}

/// Some rows of the output, from row `first` of the matrix on.
struct Chunk<'a> {
    first: usize,
    out: ViewMut<'a, f32>,
}

fn chunks(out: ViewMut<'_, f32>, chunk_rows: usize) -> Vec<Chunk<'_>> {
    let rows = out.rows();
    let mut rest = Some(out);
    let mut chunks = Vec::with_capacity(rows.div_ceil(chunk_rows));
    for first in (0..rows).step_by(chunk_rows) {
        if let Some(out) = rest.take() {
            let (head, tail) = out.split_rows(chunk_rows.min(rows - first));
            chunks.push(Chunk { first, out: head });
            rest = Some(tail);
        }
    }
    chunks
}

impl Chunk<'_> {
    /// The rows, each with the logical index of its first element.
    fn rows(&mut self) -> impl Iterator<Item = (u64, &mut [f32])> {
        let (first, rows, cols) = (self.first, self.out.rows(), self.out.cols());
        let stride = self.out.row_stride().max(1);
        let slices = self.out.data().chunks_mut(stride).take(rows);
        slices.enumerate().map(move |(i, row)| (((first + i) * cols) as u64, &mut row[..cols]))
    }

    /// The rows, joined to one where they are adjacent and blocks of one row and `width` columns
    /// do not notice: fewer and longer passes.
    fn runs(&mut self, width: usize) -> Vec<(u64, &mut [f32])> {
        let (cols, len) = (self.out.cols(), self.out.rows() * self.out.cols());
        if self.out.row_stride() == cols && cols.is_multiple_of(width) {
            return vec![((self.first * cols) as u64, &mut self.out.data()[..len])];
        }
        self.rows().collect()
    }

    /// Copies its rows of `x`.
    fn copy_from(&mut self, x: View<'_, f32>) {
        let (rows, cols, first) = (self.out.rows(), self.out.cols(), self.first);
        if x.col_stride() == 1 || cols == 1 {
            for (i, (_, row)) in self.rows().enumerate() {
                match x.row(first + i) {
                    Some(source) => row.copy_from_slice(source),
                    None => unreachable!("adjacent columns"),
                }
            }
            return;
        }
        // In tiles, so that both sides stay in cache when `x` is a transposed matrix.
        const TILE: usize = 16;
        let stride = self.out.row_stride();
        let out = self.out.data();
        for i0 in (0..rows).step_by(TILE) {
            for j0 in (0..cols).step_by(TILE) {
                for i in i0..(i0 + TILE).min(rows) {
                    for j in j0..(j0 + TILE).min(cols) {
                        out[i * stride + j] = x.at(first + i, j);
                    }
                }
            }
        }
    }
}

/// A block format made ready for a matrix of one size.
struct Blocks {
    format: BlockFormat,
    rounding: Rounding,
    overflow: Overflow,
    /// Rows and columns of a block.
    side: (usize, usize),
    scale: Converter,
    grid: Option<Grid>,
}

impl Blocks {
    fn new(
        format: BlockFormat,
        quantizer: &Quantizer,
        axis: Axis,
        rows: usize,
        cols: usize,
    ) -> Self {
        let Quantizer { rounding, overflow, .. } = *quantizer;
        Self {
            format,
            rounding,
            overflow,
            side: axis.block(format.shape, rows, cols),
            scale: Converter::from(Cast::new(format.scale).with_overflow(Overflow::Finite)),
            grid: Grid::new(format.element, rounding, overflow),
        }
    }

    /// The factors of a tensor with the given largest magnitude.
    fn factors(&self, amax: u32) -> TensorFactors {
        TensorFactors::new(Some(f32::from_bits(amax)), self.format.element, self.format.scale)
    }

    fn round(&self, chunk: &mut Chunk<'_>, random: Philox, of: &TensorFactors) {
        let (band, width) = self.side;
        let mut rows = if band == 1 { chunk.runs(width) } else { chunk.rows().collect() };
        let len = rows.first().map_or(0, |(_, row)| row.len());
        let count = len.div_ceil(width);
        let mut amax = vec![0_u32; count];
        let mut scales = vec![0.0_f32; count];
        let mut encode = vec![0.0_f32; count];
        let mut scratch = Scratch::new(self.rounding, len.min(SPAN));
        for rows in rows.chunks_mut(band) {
            amax.fill(0);
            for (_, row) in rows.iter() {
                fold(width, row, &mut amax);
            }
            match self.format.rule {
                ScaleRule::Floor => {
                    let of = FloorExponents::new(self.format.element, self.format.scale);
                    floor_scales(of, &amax, &mut scales);
                }
                _ => {
                    for (amax, scale) in amax.iter().zip(&mut scales) {
                        *scale = of.unrounded(f32::from_bits(*amax));
                    }
                    self.scale.round(&mut scales);
                    for (scale, encode) in scales.iter().zip(&mut encode) {
                        *encode = of.factor(*scale);
                    }
                }
            }
            for (first, row) in rows.iter_mut() {
                for (i, span) in row.chunks_mut(SPAN).enumerate() {
                    let at = i * SPAN;
                    let Scratch { words, scales: a, encode: b } = &mut scratch;
                    let words = draw(words, random, *first + at as u64, span.len());
                    let scales = spread(width, at, &scales, &mut a[..span.len()]);
                    let encode = match self.format.rule {
                        ScaleRule::Floor => &[],
                        _ => spread(width, at, &encode, &mut b[..span.len()]),
                    };
                    self.round_span(of, words, scales, encode, span);
                }
            }
        }
    }

    /// Rounds part of a row, with a scale and, as the rule needs it, an encode factor an element,
    /// and a random word each if the mode is stochastic.
    fn round_span(
        &self,
        of: &TensorFactors,
        words: Option<&[u32]>,
        scales: &[f32],
        encode: &[f32],
        span: &mut [f32],
    ) {
        let common = Common { largest: of.largest, decode: of.decode };
        match (self.format.rule, &self.grid, words) {
            (ScaleRule::Floor, Some(grid), None) => grid::shifted(grid, scales, span),
            (ScaleRule::Floor, Some(grid), Some(words)) => {
                grid::shifted_stochastic(grid, words, scales, span);
            }
            (_, Some(grid), None) => {
                grid::divided(grid, common, encode, scales, span);
            }
            (_, Some(grid), Some(words)) => {
                grid::divided_stochastic(grid, common, words, encode, scales, span);
            }
            (_, None, words) => {
                for (i, (x, scale)) in span.iter_mut().zip(scales).enumerate() {
                    let Self { format, rounding, overflow, .. } = *self;
                    let scale = Value::from_f32(*scale);
                    let word = words.map_or(0, |words| words[i]);
                    let code = encode_element(format, rounding, overflow, *x, scale, of, word);
                    *x = decode_element(format, code, scale, of.decode);
                }
            }
        }
    }
}

/// What a span's elements have of their own.
struct Scratch {
    words: Option<Vec<u32>>,
    scales: Vec<f32>,
    encode: Vec<f32>,
}

impl Scratch {
    fn new(rounding: Rounding, len: usize) -> Self {
        let words = rounding.is_stochastic().then(|| vec![0; len]);
        Self { words, scales: vec![0.0; len], encode: vec![0.0; len] }
    }
}

/// The random words from `first` on, if the mode uses any.
fn draw(words: &mut Option<Vec<u32>>, random: Philox, first: u64, len: usize) -> Option<&[u32]> {
    let words = &mut words.as_mut()?[..len];
    words_into(random, first, words);
    Some(words)
}

/// Values of blocks of `width` elements, laid out per element from element `at` on.
fn spread<'a>(width: usize, at: usize, values: &'a [f32], out: &'a mut [f32]) -> &'a [f32] {
    if width == 1 {
        return &values[at..at + out.len()];
    }
    if width.is_multiple_of(16) {
        spread_wide(width, at, values, out);
        return out;
    }
    let (mut block, mut rest) = (at / width, &mut *out);
    let mut len = width - at % width;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at_mut(len.min(rest.len()));
        head.fill(values[block]);
        (rest, block, len) = (tail, block + 1, width);
    }
    out
}

kernel! {
    /// [`spread`] where blocks, and so `at`, are multiples of 16.
    fn spread_wide<'a>(width: usize, at: usize, values: &'a [f32], out: &'a mut [f32]) {
        let groups = width / 16;
        let mut left = groups - at / 16 % groups;
        let mut values = values[at / width..].iter();
        let mut value = values.next().copied().unwrap_or(0.0);
        for group in out.chunks_mut(16) {
            if left == 0 {
                value = values.next().copied().unwrap_or(0.0);
                left = groups;
            }
            left -= 1;
            match <&mut [f32; 16]>::try_from(&mut *group) {
                Ok(group) => *group = [value; 16],
                Err(_) => group.fill(value),
            }
        }
    }
}

/// Folds the magnitudes of a row into the maxima of blocks of `width` columns, as bits.
fn fold(width: usize, row: &[f32], amax: &mut [u32]) {
    match width {
        1 => fold_columns(row, amax),
        _ => fold_blocks(width, row, amax),
    }
}

kernel! {
    fn fold_columns<'a>(row: &'a [f32], amax: &'a mut [u32]) {
        for (x, amax) in row.iter().zip(amax) {
            *amax = (*amax).max(x.to_bits() & MAGNITUDE);
        }
    }
}

kernel! {
    fn fold_blocks<'a>(width: usize, row: &'a [f32], amax: &'a mut [u32]) {
        for (block, amax) in row.chunks(width).zip(amax) {
            *amax = (*amax).max(largest_of(block));
        }
    }
}

kernel! {
    /// The largest magnitude, as bits.
    fn largest<'a>(row: &'a [f32]) -> u32 {
        largest_of(row)
    }
}

const MAGNITUDE: u32 = 0x7FFF_FFFF;

/// As integers, magnitudes order with their bits, infinity above and NaN above that; a maximum
/// does not depend on its order.
#[inline(always)]
fn largest_of(row: &[f32]) -> u32 {
    let mut lanes = [0_u32; 16];
    let (groups, rest) = row.as_chunks::<16>();
    for group in groups {
        for (lane, x) in lanes.iter_mut().zip(group) {
            *lane = (*lane).max(x.to_bits() & MAGNITUDE);
        }
    }
    let rest = rest.iter().fold(0, |max, x| max.max(x.to_bits() & MAGNITUDE));
    // By halves, which is what vector instructions do best.
    let mut half = 8;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i].max(lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0].max(rest)
}
