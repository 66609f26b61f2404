//! The fast path of [`Quantizer::image_into`]: pieces of a matrix, rounded while they are in cache.
//!
//! A piece is a number of whole rows, or a chunk of the matrix read as one row where neither casts
//! nor blocks notice. Casts write it from the input to its place in the output. Blocks do the same
//! where they are the only rounding and rows are adjacent in memory, and else round in place.

#[cfg(feature = "gemm")]
mod rounded;

#[cfg(feature = "gemm")]
pub(crate) use rounded::RoundedMatrix;

use core::ops::Range;

use super::Cast;
use super::{Axis, Quantizer, Target};
use crate::block::fast::{
    Blocks, CHUNK, Chunk, OwnScale, Part, TILE_COLS, WalkedRows, common_multiple, copy_rows,
    for_each,
};
use crate::block::hadamard::Hadamard;
use crate::pool::Pooled;
use crate::random::Philox;
use crate::slice::memory::{self, Traffic};
use crate::slice::{Converter, View, ViewMut};

pub(super) fn write(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Philox,
    own: Option<OwnScale<'_>>,
    mut out: ViewMut<'_, f32>,
) {
    let (rows, cols) = (x.rows(), x.cols());
    let Quantizer { before, rotation, target, rounding, overflow } = *quantizer;
    if let Target::Block(format) = target {
        format.checked();
    }
    if rows == 0 || cols == 0 {
        return;
    }
    let cast = match target {
        Target::Format(format) => Some(Cast { format, rounding, overflow }),
        _ => None,
    };
    let first = Preparation {
        before: before.map(|cast| Converter::from(cast).with_random(random)),
        rotation,
        down: axis == Axis::Rows,
        cast: cast.map(|cast| Converter::from(cast).with_random(random)),
    };
    let Target::Block(format) = target else {
        for_each(pieces(x, out.reborrow(), first.sides((1, 1))), |mut piece| {
            first.write(&mut piece);
        });
        return;
    };
    let blocks = Blocks::new(format, rounding, overflow, axis, (rows, cols), own);
    if first.is_none() && (x.col_stride() == 1 || cols == 1) {
        let (of, blocks) = blocks.after(x);
        let adjacent = blocks.side.0 == 1;
        for_each(pieces(x, out, blocks.side), |Piece { chunk, x, out }| {
            let _fence = memory::Fence::after(blocks.traffic);
            let scratch =
                Pooled::zeros(if blocks.traffic == Traffic::Past { TILE_COLS } else { 0 });
            blocks.walk(chunk, &of, random, &mut InputToOutput { x, out, adjacent, scratch });
        });
        return;
    }
    let needs_whole = blocks.needs_whole((rows, cols));
    if needs_whole {
        for_each(pieces(x, out.reborrow(), first.sides((1, 1))), |mut piece| {
            first.write(&mut piece);
        });
    }
    let stride = out.row_stride();
    // Where nothing is looked for, the output is not yet written and not read.
    let (of, blocks) = blocks.after(prepared(out.data(), rows, cols, stride));
    for_each(pieces(x, out, first.sides(blocks.side)), |mut piece| {
        if !needs_whole {
            first.write(&mut piece);
        }
        let Piece { chunk, out, .. } = piece.joined(blocks.side);
        blocks.walk(chunk, &of, random, &mut InPlace { out, scratch: [0.0; TILE_COLS] });
    });
}

/// The output read as an input.
fn prepared(out: &[f32], rows: usize, cols: usize, stride: usize) -> View<'_, f32> {
    match View::with_strides(out, (rows, cols), (stride, 1)) {
        Ok(view) => view,
        Err(_) => unreachable!("a view of the same shape"),
    }
}

/// What comes before blocks: a cast, a rotation along the reduction axis, another cast.
struct Preparation {
    before: Option<Converter<'static>>,
    rotation: Option<Hadamard>,
    /// Whether the reduction axis runs down the columns.
    down: bool,
    cast: Option<Converter<'static>>,
}

impl Preparation {
    fn is_none(&self) -> bool {
        self.before.is_none() && self.rotation.is_none() && self.cast.is_none()
    }

    /// Sides of the smallest piece that groups of the rotation and blocks of the given sides fill.
    fn sides(&self, (band, across): (usize, usize)) -> (usize, usize) {
        match self.rotation.map(Hadamard::size) {
            Some(size) if self.down => (common_multiple(band, size), across),
            Some(size) => (band, common_multiple(across, size)),
            None => (band, across),
        }
    }

    /// Writes a piece of the output.
    fn write(&self, piece: &mut Piece<'_>) {
        let Chunk { first, rows, cols } = piece.chunk;
        let (x, stride) = (piece.x, piece.out.row_stride());
        let joined = stride == cols || rows == 1;
        let mut casts = [self.before, self.cast];
        // The first cast writes what it reads, where nothing comes between.
        let early = if self.rotation.is_none() && self.before.is_none() { 1 } else { 0 };
        match casts[early].filter(|_| x.col_stride() == 1) {
            Some(cast) if joined && (x.row_stride() == cols || rows == 1) => {
                casts[early] = None;
                let (x, out) = (&x.data()[..rows * cols], &mut piece.out.data_mut()[..rows * cols]);
                cast.starting_at(first).fake_quantize_into(x, out);
            }
            Some(cast) => {
                casts[early] = None;
                for (i, out) in piece.out.data_mut().chunks_mut(stride).take(rows).enumerate() {
                    let x = x.row(i).unwrap_or_default();
                    let cast = cast.starting_at(first + (i * cols) as u64);
                    cast.fake_quantize_into(x, &mut out[..cols]);
                }
            }
            None => copy_rows(x, stride, piece.out.data_mut()),
        }
        let round = |cast: Option<Converter<'static>>, out: &mut [f32]| {
            let Some(cast) = cast else { return };
            if joined {
                return cast.starting_at(first).fake_quantize(&mut out[..rows * cols]);
            }
            for (i, out) in out.chunks_mut(stride).take(rows).enumerate() {
                cast.starting_at(first + (i * cols) as u64).fake_quantize(&mut out[..cols]);
            }
        };
        round(casts[0], piece.out.data_mut());
        if let Some(rotation) = self.rotation {
            let rotated = rotation.apply_matrix(piece.out.reborrow(), self.down);
            debug_assert!(rotated.is_ok(), "the size of the matrix was checked");
        }
        round(casts[1], piece.out.data_mut());
    }
}

/// Some rows of input and output, or a chunk of them as one row.
struct Piece<'a> {
    chunk: Chunk,
    x: View<'a, f32>,
    out: ViewMut<'a, f32>,
}

/// What is left to cut into pieces.
enum Pieces<'a> {
    /// A matrix read as one row, in chunks of `len`.
    Joined { x: &'a [f32], out: &'a mut [f32], first: usize, len: usize },
    /// `step` rows at a time.
    Rows { x: View<'a, f32>, out: Option<ViewMut<'a, f32>>, first: usize, step: usize },
}

/// Cuts a matrix into pieces of whole blocks of the given sides.
fn pieces<'a>(
    x: View<'a, f32>,
    out: ViewMut<'a, f32>,
    (band, across): (usize, usize),
) -> Pieces<'a> {
    let (rows, cols) = (x.rows(), x.cols());
    let dense = |row_stride| rows == 1 || row_stride == cols;
    let joined = band == 1
        && (rows == 1 || cols.is_multiple_of(across))
        && (x.col_stride() == 1 && dense(x.row_stride()) && dense(out.row_stride()));
    if joined {
        let len = CHUNK.next_multiple_of(across);
        let (x, out) = (&x.data()[..rows * cols], &mut out.into_data()[..rows * cols]);
        return Pieces::Joined { x, out, first: 0, len };
    }
    let step = CHUNK.div_ceil(cols).next_multiple_of(band.min(rows));
    Pieces::Rows { x, out: Some(out), first: 0, step }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        match self {
            Self::Joined { x, out, first, len } => {
                let count = (*len).min(x.len());
                let (here, rest) = core::mem::take(out).split_at_mut(count);
                let (from, left) = x.split_at(count);
                let chunk = Chunk { first: *first as u64, rows: 1, cols: count };
                (*x, *out, *first) = (left, rest, *first + count);
                let (x, out) = (View::new(from, 1, count), ViewMut::new(here, 1, count));
                (count > 0).then_some(Piece { chunk, x, out })
            }
            Self::Rows { x, out, first, step } => {
                let (rows, cols) = (x.rows(), x.cols());
                let count = (*step).min(rows - *first);
                let (here, rest) = out.take().filter(|_| count > 0)?.split_rows(count);
                let chunk = Chunk { first: (*first * cols) as u64, rows: count, cols };
                let x = x.rows_range(*first..*first + count);
                (*out, *first) = (Some(rest), *first + count);
                Some(Piece { chunk, x, out: here })
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = match self {
            Self::Joined { x, len, .. } => x.len().div_ceil(*len),
            Self::Rows { x, first, step, .. } => (x.rows() - first).div_ceil(*step),
        };
        (count, Some(count))
    }
}

impl<'a> Piece<'a> {
    /// The piece as one row, where its rows are adjacent in the output and blocks do not notice.
    fn joined(self, (band, across): (usize, usize)) -> Self {
        let Chunk { first, rows, cols } = self.chunk;
        if band != 1 || !cols.is_multiple_of(across) || self.out.row_stride() != cols {
            return self;
        }
        let len = rows * cols;
        let out = ViewMut::new(self.out.into_data(), 1, len);
        Self { chunk: Chunk { first, rows: 1, cols: len }, out, ..self }
    }
}

/// From the input to the output.
struct InputToOutput<'a> {
    x: View<'a, f32>,
    out: ViewMut<'a, f32>,
    /// Whether what is read next lies after what was read.
    adjacent: bool,
    /// What is written past the caches, if anything is.
    scratch: Pooled<f32>,
}

impl WalkedRows for InputToOutput<'_> {
    fn input(&self, i: usize, range: Range<usize>) -> &[f32] {
        match self.x.row(i) {
            Some(row) => {
                let x = &row[range];
                if self.adjacent && !self.scratch.is_empty() {
                    memory::fetch(x, x.len());
                }
                x
            }
            None => unreachable!("adjacent columns"),
        }
    }

    fn write(&mut self, blocks: &Blocks<'_>, part: &Part<'_>, i: usize, range: Range<usize>) {
        let x = self.x.row(i).unwrap_or_default();
        let start = i * self.out.row_stride();
        let out = &mut self.out.data_mut()[start + range.start..start + range.end];
        if self.scratch.is_empty() {
            return blocks.values(part, &x[range], out);
        }
        let scratch = &mut self.scratch[..out.len()];
        blocks.values(part, &x[range], scratch);
        memory::write_past(scratch, out);
    }
}

/// Within the output.
struct InPlace<'a> {
    out: ViewMut<'a, f32>,
    scratch: [f32; TILE_COLS],
}

impl WalkedRows for InPlace<'_> {
    fn input(&self, i: usize, range: Range<usize>) -> &[f32] {
        let start = i * self.out.row_stride();
        &self.out.data()[start + range.start..start + range.end]
    }

    fn write(&mut self, blocks: &Blocks<'_>, part: &Part<'_>, i: usize, range: Range<usize>) {
        let start = i * self.out.row_stride();
        let out = &mut self.out.data_mut()[start + range.start..start + range.end];
        let x = &mut self.scratch[..out.len()];
        x.copy_from_slice(out);
        blocks.values(part, x, out);
    }
}
