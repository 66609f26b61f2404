//! A matrix to packed codes and scales.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::statistics::ChunkStatistics;
use super::walk::{CHUNK, common_multiple, copy_rows};
use super::{Blocks, Chunk, Part, WalkedRows, for_each, whole_bytes};
use crate::block::Statistics;
use crate::block::kernel;
use crate::block::scale::TensorFactors;
use crate::block::statistics::{Lanes, PIECE, Sums, ordered};
use crate::format::Sign;
use crate::minifloat::Bits;
use crate::pack;
use crate::random::Philox;
use crate::slice::View;

/// A matrix as it is stored.
#[derive(Default)]
pub(crate) struct Encoded {
    /// Packed codes.
    pub(crate) codes: Vec<u8>,
    /// Stored scales.
    pub(crate) scales: Vec<u8>,
    /// What decoded values are multiplied by last.
    pub(crate) decode: f32,
    /// What became of the numbers, if that was asked and is seen while they are rounded.
    pub(crate) statistics: Option<Statistics>,
}

/// Rounds a matrix, and if `with_statistics` looks at what becomes of it.
pub(crate) fn encode(
    blocks: Blocks<'_>,
    x: View<'_, f32>,
    random: Philox,
    with_statistics: bool,
) -> Encoded {
    let (rows, cols) = (x.rows(), x.cols());
    let format = blocks.format;
    let (whole, (of, blocks)) = (blocks.side, blocks.after(x));
    let blocks = &blocks;
    if rows == 0 || cols == 0 {
        let statistics = with_statistics.then(Statistics::default);
        return Encoded { decode: of.decode, statistics, ..Encoded::default() };
    }
    let (width, (band, across)) = (format.element.bits() as usize, blocks.side);
    let size = format.scale.storage_bits() as usize / 8;
    let bytes = pack::packed_len(rows * cols, width as u32).unwrap_or(usize::MAX);
    let mut codes = vec![0; bytes];
    let mut scales = vec![0; rows.div_ceil(band) * cols.div_ceil(across) * size];

    // Chunks end with a byte, whatever the width of a code.
    let dense = x.col_stride() == 1 && (x.row_stride() == cols || rows == 1);
    let plan = if with_statistics { blocks.plan(&of, cols) } else { None };
    let joined = band == 1
        && dense
        && (rows == 1 || cols.is_multiple_of(across))
        && plan.as_ref().is_none_or(|plan| plan.takes_joined_rows((rows, cols)));
    // Sums of pieces of rows.
    let mut sums =
        vec![Sums::default(); if plan.is_some() { rows * cols.div_ceil(PIECE) } else { 0 }];
    let mut sums_left = &mut sums[..];
    let chunks: Vec<(Chunk, View<'_, f32>)> = if joined {
        let len = CHUNK.next_multiple_of(common_multiple(across, 8));
        let chunk = |(i, data)| {
            let data: &[f32] = data;
            let chunk = Chunk { first: (i * len) as u64, rows: 1, cols: data.len() };
            (chunk, View::new(data, 1, data.len()))
        };
        x.data()[..rows * cols].chunks(len).enumerate().map(chunk).collect()
    } else {
        let bytes = whole_bytes(cols, width as u32);
        let step = CHUNK.div_ceil(cols).next_multiple_of(common_multiple(band.min(rows), bytes));
        let chunk = |i| {
            let len = step.min(rows - i);
            let chunk = Chunk { first: (i * cols) as u64, rows: len, cols };
            (chunk, x.rows_range(i..i + len))
        };
        (0..rows).step_by(step).map(chunk).collect()
    };
    let mut items = Vec::with_capacity(chunks.len());
    let (mut codes_left, mut scales_left) = (&mut codes[..], &mut scales[..]);
    for (chunk, x) in chunks {
        let bytes = (chunk.rows * chunk.cols * width).div_ceil(8);
        let (head, tail) = codes_left.split_at_mut(bytes);
        codes_left = tail;
        let bytes = chunk.rows.div_ceil(band) * chunk.cols.div_ceil(across) * size;
        let (scales_head, tail) = scales_left.split_at_mut(bytes);
        scales_left = tail;
        let pieces = if plan.is_some() { chunk.rows * chunk.cols.div_ceil(PIECE) } else { 0 };
        let (sums_head, tail) = sums_left.split_at_mut(pieces);
        sums_left = tail;
        items.push((chunk, x, head, scales_head, sums_head));
    }
    let mut of_chunks = vec![Statistics::default(); items.len()];
    let items = items.into_iter().zip(&mut of_chunks);
    for_each(items, |((chunk, mut x, codes, scales, sums), found)| {
        let mut copy = Vec::new();
        if x.col_stride() != 1 && cols != 1 {
            copy.resize(chunk.rows * cols, 0.0);
            copy_rows(x, cols, &mut copy);
            x = View::new(&copy, chunk.rows, cols);
        }
        let statistics = plan.as_ref().map(|plan| ChunkStatistics::new(plan, sums));
        let job = ChunkJob { blocks, chunk, of: &of, random, x, scales, statistics };
        match width {
            8 => *found = job.run(codes),
            0..8 => {
                let mut wide = vec![0_u8; chunk.rows * chunk.cols];
                *found = job.run(&mut wide);
                pack(&wide, width, codes);
            }
            _ => {
                let mut wide = vec![0_u16; chunk.rows * chunk.cols];
                *found = job.run(&mut wide);
                pack(&wide, width, codes);
            }
        }
    });
    // Parts of one band have the same ones.
    scales.truncate(rows.div_ceil(whole.0) * cols.div_ceil(whole.1) * size);
    let all = of_chunks.iter().fold(Statistics::default(), |all, part| all.and(part));
    let sum = ordered(&sums, cols.div_ceil(PIECE));
    let statistics = plan.map(|_| all.and(&Lanes::default().total(rows * cols, sum)));
    Encoded { codes, scales, decode: of.decode, statistics }
}

fn pack<C: pack::Code>(codes: &[C], width: usize, bytes: &mut [u8]) {
    if let Err(error) = pack::pack_into(codes, width as u32, bytes) {
        unreachable!("codes of a format have its width: {error}");
    }
}

/// One chunk.
struct ChunkJob<'a> {
    blocks: &'a Blocks<'a>,
    chunk: Chunk,
    of: &'a TensorFactors,
    random: Philox,
    x: View<'a, f32>,
    scales: &'a mut [u8],
    statistics: Option<ChunkStatistics<'a>>,
}

impl ChunkJob<'_> {
    /// Counts and maxima, if there are statistics.
    fn run<C: Bits>(self, codes: &mut [C]) -> Statistics {
        let Self { blocks, chunk, of, random, x, scales, statistics } = self;
        let mut walked = CodeRows { x, chunk, blocks, codes, scales, statistics };
        blocks.walk(chunk, of, random, &mut walked);
        walked.statistics.map(ChunkStatistics::total).unwrap_or_default()
    }
}

/// Codes, one each, and stored scales of a chunk.
struct CodeRows<'a, C> {
    x: View<'a, f32>,
    chunk: Chunk,
    blocks: &'a Blocks<'a>,
    codes: &'a mut [C],
    scales: &'a mut [u8],
    statistics: Option<ChunkStatistics<'a>>,
}

impl<C: Bits> WalkedRows for CodeRows<'_, C> {
    fn input(&self, i: usize, range: Range<usize>) -> &[f32] {
        match self.x.row(i) {
            Some(row) => &row[range],
            None => unreachable!("adjacent columns"),
        }
    }

    fn write(&mut self, blocks: &Blocks<'_>, part: &Part<'_>, i: usize, range: Range<usize>) {
        let x = self.x.row(i).unwrap_or_default();
        let start = i * self.chunk.cols;
        let codes = &mut self.codes[start + range.start..start + range.end];
        match &mut self.statistics {
            None => blocks.codes(part, &x[range], codes),
            Some(statistics) => {
                let piece = i * self.chunk.cols.div_ceil(PIECE) + range.start / PIECE;
                statistics.codes(blocks, part, &x[range], codes, piece);
            }
        }
    }

    fn scales(&mut self, band: usize, first: usize, scales: &[f32]) {
        let at = band * self.chunk.cols.div_ceil(self.blocks.side.1) + first;
        self.blocks.store_scales(scales, at, self.scales);
        if let Some(statistics) = &mut self.statistics {
            statistics.scales(scales);
        }
    }
}

impl Blocks<'_> {
    /// Writes the codes of scales to their places from block `at` on.
    fn store_scales(&self, scales: &[f32], at: usize, out: &mut [u8]) {
        fn put<C: Bits>(blocks: &Blocks<'_>, scales: &[f32], at: usize, out: &mut [u8]) {
            let size = C::WIDTH as usize / 8;
            let codes = blocks.scale.encode::<f32, C>(scales);
            let out = &mut out[at * size..(at + scales.len()) * size];
            for (out, code) in out.chunks_exact_mut(size).zip(codes) {
                out.copy_from_slice(code.to_le_bytes().as_ref());
            }
        }
        let format = self.format.scale;
        // Formats of powers of two alone are no regular grid, which the fast conversion needs.
        let powers = matches!(format.sign(), Sign::Unsigned)
            && format.man_bits() == 0
            && !format.has_zero()
            && format.emin() >= -127;
        match format.storage_bits() {
            8 if powers => {
                let nan = format.nan_code().unwrap_or(0) as u8;
                let first = format.min_positive_code() as i32 - format.emin() - 127;
                kernel::power_codes(first, nan, scales, &mut out[at..at + scales.len()]);
            }
            8 => self.scale.encode_into(scales, &mut out[at..at + scales.len()]),
            16 => put::<u16>(self, scales, at, out),
            _ => put::<u32>(self, scales, at, out),
        }
    }
}
