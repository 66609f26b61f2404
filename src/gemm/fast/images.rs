//! The images of an operand, a piece of a stored row at a time: as bfloat16 numbers where they are
//! such, else as binary32. A piece is short enough to stay in the first-level cache, so that codes
//! are read once and nothing but packed panels is written to memory.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::Side;
use super::avx512::Table;
use super::codes::{self, BlockCodes};
use super::panel::{BLOCK, LANES};
use crate::block::BlockTensor;
use crate::format::Format;
use crate::gemm::{Operand, Store};
use crate::minifloat::Bits;
use crate::pack;
use crate::simd::kernel;
use crate::slice::{View, decode_into};

/// Elements of a piece at most.
pub(super) const PIECE: usize = 512;

/// How codes become bfloat16 numbers.
enum Conversion {
    /// By a table, of formats of up to 8 bits whose values are such.
    Table(Box<Table>),
    /// They are such.
    Same,
    /// By way of binary32.
    Single,
}

/// An operand of which rows can be read, with what reading needs prepared.
pub(super) struct Images<'a> {
    /// Rows are those of the memory.
    stored: Stored<'a>,
    way: Conversion,
    scales: Option<Scales<'a>>,
    /// Where lanes can be packed many codes at a time.
    codes: Option<BlockCodes<'a>>,
    pub(super) lanes: usize,
    pub(super) depth: usize,
    /// Whether a stored row is a lane; else it is a position along the sum.
    pub(super) by_lane: bool,
}

enum Stored<'a> {
    F32(View<'a, f32>),
    U8(Format, View<'a, u8>),
    U16(Format, View<'a, u16>),
    U32(Format, View<'a, u32>),
    U64(Format, View<'a, u64>),
    Blocks(&'a BlockTensor),
}

struct Scales<'a> {
    tensor: &'a BlockTensor,
    /// All of them; none where [`BlockCodes`] alone are taken, which decode those of a panel.
    values: Vec<f32>,
    /// Rows and columns of a block.
    block: (usize, usize),
    /// Blocks side by side.
    right: usize,
}

/// Memory that is used again for every piece.
pub(super) struct Scratch {
    codes: [u8; PIECE + 8],
    singles: [f32; PIECE],
    scales: [f32; PIECE],
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self { codes: [0; PIECE + 8], singles: [0.0; PIECE], scales: [0.0; PIECE] }
    }
}

impl<'a> Images<'a> {
    pub(super) fn new(operand: &Operand<'a>, side: Side) -> Self {
        // Rows are lanes from here on.
        let operand = if side == Side::Left { *operand } else { operand.t() };
        let (lanes, depth) = operand.shape();
        let (stored, by_lane) = match operand.store() {
            Store::F32(x) => by_rows(x, Stored::F32),
            Store::U8(format, x) => by_rows(x, |x| Stored::U8(format, x)),
            Store::U16(format, x) => by_rows(x, |x| Stored::U16(format, x)),
            Store::U32(format, x) => by_rows(x, |x| Stored::U32(format, x)),
            Store::U64(format, x) => by_rows(x, |x| Stored::U64(format, x)),
            Store::F64(_) => unreachable!("no binary32 numbers: refused before"),
            Store::Blocks(tensor) => (Stored::Blocks(tensor), !operand.is_transposed()),
        };
        let format = operand.format();
        let halves = halves_of(format);
        let codes = match (&stored, &halves) {
            (Stored::Blocks(tensor), Some(halves))
                if by_lane
                    && matches!(tensor.block().1, 16 | 32)
                    && tensor.format().scale.storage_bits() == 8 =>
            {
                BlockCodes::new(tensor.packed_codes(), format.bits(), (lanes, depth), halves)
            }
            _ => None,
        };
        let scales = match stored {
            Stored::Blocks(tensor) => Some(Scales {
                tensor,
                values: match codes {
                    Some(_) => Vec::new(),
                    None => tensor.scale_values(),
                },
                block: tensor.block(),
                right: tensor.blocks().1,
            }),
            _ => None,
        };
        let way = match halves {
            Some(halves) => Conversion::Table(Box::new(Table::new(halves))),
            None if format == Format::BF16 && scales.is_none() => Conversion::Same,
            None => Conversion::Single,
        };
        Self { stored, way, scales, codes, lanes, depth, by_lane }
    }

    /// What packs lanes many codes at a time, and the scales of the lanes of a panel, if that can be.
    pub(super) fn codes(&self, panel: usize) -> Option<(&BlockCodes<'a>, PanelScales)> {
        let (Some(codes), Some(scales)) = (&self.codes, &self.scales) else { return None };
        let height = scales.block.0;
        let lanes = panel * LANES..self.lanes.min((panel + 1) * LANES);
        let rows = lanes.start / height..lanes.end.div_ceil(height);
        let mut values = vec![0.0; rows.len() * scales.right];
        let stored = &scales.tensor.packed_scales()[rows.start * scales.right..][..values.len()];
        decode_into(scales.tensor.format().scale, stored, &mut values);
        let at = lanes.map(|lane| (lane / height - rows.start) * scales.right);
        let starts = at.collect();
        let (right, sixteens) = (scales.right, scales.block.1 == 16);
        Some((codes, PanelScales { values, starts, right, sixteens }))
    }

    /// Whether the images may be expected to be bfloat16 numbers. A guess: of binary32 numbers a few
    /// rows are looked at, most of which must be such.
    pub(super) fn seem_halves(&self, scratch: &mut Scratch) -> bool {
        let precision = |format: Format| match format.man_bits() {
            0 => 0,
            _ => format.precision(),
        };
        match self.stored {
            Stored::F32(x) => {
                const ROWS: usize = 5;
                let (mut halves, len) = ([0; PIECE], x.cols().min(PIECE));
                if len == 0 {
                    return true;
                }
                let step = (x.rows() / ROWS).max(1);
                let rows = (0..x.rows()).step_by(step).take(ROWS);
                let all = rows.len();
                2 * rows.filter(|i| self.halves(*i, 0, scratch, &mut halves[..len])).count() > all
                    || all == 0
            }
            Stored::U8(format, _)
            | Stored::U16(format, _)
            | Stored::U32(format, _)
            | Stored::U64(format, _) => precision(format) <= 8,
            Stored::Blocks(tensor) => {
                let format = tensor.format();
                precision(format.element) + precision(format.scale) <= 8
            }
        }
    }

    /// The upper halves of the images from column `j` of stored row `i` on, `j` a multiple of 32;
    /// whether the lower halves are zero.
    pub(super) fn halves(
        &self,
        i: usize,
        j: usize,
        scratch: &mut Scratch,
        out: &mut [u16],
    ) -> bool {
        match (&self.way, &self.stored) {
            (Conversion::Table(table), Stored::U8(_, x)) => {
                match x.row(i) {
                    Some(row) => table.look_up(&row[j..j + out.len()], out),
                    None => {
                        let codes = &mut scratch.codes[..out.len()];
                        gather(x, i, j, codes);
                        table.look_up(codes, out);
                    }
                }
                true
            }
            (Conversion::Table(table), Stored::Blocks(tensor)) => {
                table.look_up(short_codes(tensor, i, j, out.len(), &mut scratch.codes), out);
                let Some(scales) = &self.scales else { return true };
                let row = scales.row(i);
                let width = scales.block.1;
                let rest = match width {
                    16 => scale_sixteens(&row[j / 16..], out),
                    32 => scale_thirty_twos(&row[j / 32..], out),
                    1 => scale_each(&row[j..], out),
                    _ => scale_each(spread(row, width, j, out.len(), &mut scratch.scales), out),
                };
                rest == 0
            }
            (Conversion::Same, Stored::U16(_, x)) => {
                match x.row(i) {
                    Some(row) => out.copy_from_slice(&row[j..j + out.len()]),
                    None => gather(x, i, j, out),
                }
                true
            }
            (_, Stored::F32(x)) => match x.row(i) {
                Some(row) => narrow(&row[j..j + out.len()], out) == 0,
                None => {
                    let singles = &mut scratch.singles[..out.len()];
                    gather(x, i, j, singles);
                    narrow(singles, out) == 0
                }
            },
            _ => {
                let mut singles = [0.0; PIECE];
                let singles = &mut singles[..out.len()];
                self.singles(i, j, scratch, singles);
                narrow(singles, out) == 0
            }
        }
    }

    /// The images from column `j` of stored row `i` on, `j` a multiple of 32.
    pub(super) fn singles(&self, i: usize, j: usize, scratch: &mut Scratch, out: &mut [f32]) {
        self.values(i, j, scratch, out);
        if let Some(scales) = &self.scales {
            let (row, width) = (scales.row(i), scales.block.1);
            multiply(spread(row, width, j, out.len(), &mut scratch.scales), out);
        }
    }

    /// As [`singles`](Self::singles), without block scales.
    fn values(&self, i: usize, j: usize, scratch: &mut Scratch, out: &mut [f32]) {
        let len = out.len();
        if let Conversion::Table(table) = &self.way {
            let mut halves = [0; PIECE];
            let halves = &mut halves[..len];
            match &self.stored {
                Stored::Blocks(tensor) => {
                    table.look_up(short_codes(tensor, i, j, len, &mut scratch.codes), halves);
                    return widen(halves, out);
                }
                Stored::U8(_, x) => {
                    gather(x, i, j, &mut scratch.codes[..len]);
                    table.look_up(&scratch.codes[..len], halves);
                    return widen(halves, out);
                }
                _ => {}
            }
        }
        match &self.stored {
            Stored::F32(x) => gather(x, i, j, out),
            Stored::U8(format, x) => decode(*format, x, (i, j), out),
            Stored::U16(format, x) => decode(*format, x, (i, j), out),
            Stored::U32(format, x) => decode(*format, x, (i, j), out),
            Stored::U64(format, x) => decode(*format, x, (i, j), out),
            Stored::Blocks(tensor) => {
                let element = tensor.format().element;
                if element.bits() <= 8 {
                    let codes = short_codes(tensor, i, j, len, &mut scratch.codes);
                    decode_into(element, codes, out);
                } else {
                    let mut wide = [0_u16; PIECE + 8];
                    decode_into(element, unpacked(tensor, i, j, len, &mut wide), out);
                }
            }
        }
    }

    /// How many products of a finite value and a finite scale are infinite.
    pub(super) fn overflows(&self) -> u64 {
        let (Some(scales), Stored::Blocks(tensor)) = (&self.scales, &self.stored) else { return 0 };
        let element = tensor.format().element;
        // Two's complement reaches further below zero.
        let ends = [element.max_code(), element.min_code()].map(|code| element.to_f32(code).abs());
        let most = ends[0].max(ends[1]);
        if !scales.may_overflow(most) {
            return 0;
        }
        let decoded;
        let scales = match &self.codes {
            Some(_) => {
                decoded = Scales { values: tensor.scale_values(), ..*scales };
                &decoded
            }
            None => scales,
        };
        let (mut scratch, mut values, mut images) = (Scratch::new(), [0.0; PIECE], [0.0; PIECE]);
        let mut count = 0;
        for i in 0..tensor.rows() {
            for j in (0..tensor.cols()).step_by(PIECE) {
                let len = PIECE.min(tensor.cols() - j);
                let (values, images) = (&mut values[..len], &mut images[..len]);
                self.values(i, j, &mut scratch, values);
                images.copy_from_slice(values);
                multiply(
                    spread(scales.row(i), scales.block.1, j, len, &mut scratch.scales),
                    images,
                );
                let pairs = values.iter().zip(&*images).enumerate();
                count += pairs
                    .filter(|(at, (value, image))| {
                        let scale = scales.row(i)[(j + at) / scales.block.1];
                        image.is_infinite() && value.is_finite() && scale.is_finite()
                    })
                    .count() as u64;
            }
        }
        count
    }
}

/// Block scales of the lanes of a panel.
pub(super) struct PanelScales {
    values: Vec<f32>,
    /// Where those of each lane begin, of the lanes that are there.
    starts: Vec<usize>,
    /// Of a lane.
    right: usize,
    sixteens: bool,
}

impl PanelScales {
    /// Calls `work` with those from block `block` of 32 positions on.
    pub(super) fn from<T>(&self, block: usize, work: impl FnOnce(codes::Scales<'_>) -> T) -> T {
        let first = block << usize::from(self.sixteens);
        let rows = core::array::from_fn(|lane| {
            self.starts.get(lane).map_or(&[][..], |at| &self.values[at + first..at + self.right])
        });
        work(codes::Scales { rows: &rows, sixteens: self.sixteens })
    }
}

impl Scales<'_> {
    /// Whether some finite scale times a finite number can be infinite.
    fn may_overflow(&self, number: f32) -> bool {
        let format = self.tensor.format().scale;
        let infinite = |scale: f32| scale.is_finite() && (number * scale).is_infinite();
        if format.storage_bits() != 8 {
            return self.values.iter().any(|scale| infinite(*scale));
        }
        // The codes of such scales, and what is between them.
        let codes = (0..=u8::MAX).filter(|code| infinite(format.to_f32(u64::from(*code))));
        match (codes.clone().min(), codes.max()) {
            (Some(first), Some(last)) => any_within(self.tensor.packed_scales(), first, last),
            _ => false,
        }
    }

    /// Those of a stored row.
    fn row(&self, i: usize) -> &[f32] {
        &self.values[i / self.block.0 * self.right..][..self.right]
    }
}

/// A view whose rows are adjacent in memory, if there is one, and whether it is the given one.
fn by_rows<'a, T>(
    x: View<'a, T>,
    stored: impl Fn(View<'a, T>) -> Stored<'a>,
) -> (Stored<'a>, bool) {
    let along_columns = x.row_stride() == 1 && x.col_stride() != 1;
    if along_columns { (stored(x.t()), false) } else { (stored(x), true) }
}

/// The values of a format of up to 8 bits, if all are bfloat16 numbers.
fn halves_of(format: Format) -> Option<[u16; 256]> {
    if format.bits() > 8 {
        return None;
    }
    let mut halves = [0; 256];
    for (code, half) in halves.iter_mut().enumerate() {
        let code = code as u64 & ((1 << format.bits()) - 1);
        let value = format.to_f32(code);
        if value.to_bits() & 0xFFFF != 0 || !format.is_exact_in_f32() {
            return None;
        }
        *half = (value.to_bits() >> 16) as u16;
    }
    Some(halves)
}

/// A piece of a row of any view.
fn gather<T: Copy>(x: &View<'_, T>, i: usize, j: usize, out: &mut [T]) {
    match x.row(i) {
        Some(row) => out.copy_from_slice(&row[j..j + out.len()]),
        None => {
            for (at, out) in out.iter_mut().enumerate() {
                *out = x.at(i, j + at);
            }
        }
    }
}

/// The numbers of a piece of a row of codes.
fn decode<C: Bits>(format: Format, x: &View<'_, C>, (i, j): (usize, usize), out: &mut [f32]) {
    let mut codes = [C::from_u64(0); PIECE];
    let codes = &mut codes[..out.len()];
    gather(x, i, j, codes);
    decode_into(format, codes, out);
}

/// Codes of up to 8 bits of a piece of a row.
fn short_codes<'a>(
    tensor: &'a BlockTensor,
    i: usize,
    j: usize,
    len: usize,
    scratch: &'a mut [u8; PIECE + 8],
) -> &'a [u8] {
    match tensor.format().element.bits() {
        8 => &tensor.packed_codes()[i * tensor.cols() + j..][..len],
        _ => unpacked(tensor, i, j, len, scratch),
    }
}

/// Codes of a piece of a row, unpacked.
fn unpacked<'a, C: pack::Code>(
    tensor: &BlockTensor,
    i: usize,
    j: usize,
    len: usize,
    scratch: &'a mut [C; PIECE + 8],
) -> &'a [C] {
    let width = tensor.format().element.bits();
    let first = i * tensor.cols() + j;
    // Eight codes are whole bytes.
    let before = first % 8;
    let codes = &mut scratch[..before + len];
    let bytes = &tensor.packed_codes()[first / 8 * width as usize..];
    let needed = pack::packed_len(codes.len(), width).unwrap_or(0);
    if let Err(error) = pack::unpack_into(&bytes[..needed], width, codes) {
        unreachable!("as many bytes as codes take: {error}");
    }
    &codes[before..]
}

/// A scale an element, of blocks of `width` from column `j` of a row on.
fn spread<'a>(
    row: &'a [f32],
    width: usize,
    j: usize,
    len: usize,
    scratch: &'a mut [f32; PIECE],
) -> &'a [f32] {
    if width == 1 {
        return &row[j..j + len];
    }
    let (mut at, mut block) = (0, j / width);
    while at < len {
        let end = ((block + 1) * width - j).min(len);
        scratch[at..end].fill(row[block]);
        (at, block) = (end, block + 1);
    }
    &scratch[..len]
}

/// The number whose upper half this is.
#[inline(always)]
fn single(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Numbers times their blocks' scales in place; bits that the lower halves of any have.
#[inline(always)]
fn scale_blocks<const W: usize>(scales: &[f32], halves: &mut [u16]) -> u32 {
    let mut lost = [0_u32; W];
    let (blocks, rest) = halves.as_chunks_mut::<W>();
    for (block, scale) in blocks.iter_mut().zip(scales) {
        for (half, lost) in block.iter_mut().zip(&mut lost) {
            let image = (single(*half) * scale).to_bits();
            *lost |= image;
            *half = (image >> 16) as u16;
        }
    }
    if let Some(scale) = scales.get(blocks.len()) {
        for (half, lost) in rest.iter_mut().zip(&mut lost) {
            let image = (single(*half) * scale).to_bits();
            *lost |= image;
            *half = (image >> 16) as u16;
        }
    }
    lost.iter().fold(0, |all, lost| all | lost) & 0xFFFF
}

kernel! {
    fn scale_sixteens<'a>(scales: &'a [f32], halves: &'a mut [u16]) -> u32 {
        // Two blocks at a time fill the vectors.
        let (twos, rest) = halves.as_chunks_mut::<32>();
        let mut lost = [0_u32; 32];
        for (numbers, pair) in twos.iter_mut().zip(scales.as_chunks::<2>().0) {
            let mut both = [pair[0]; 32];
            both[16..].fill(pair[1]);
            for i in 0..32 {
                let image = (single(numbers[i]) * both[i]).to_bits();
                lost[i] |= image;
                numbers[i] = (image >> 16) as u16;
            }
        }
        let lost = lost.iter().fold(0, |all, lost| all | lost) & 0xFFFF;
        let scales = &scales[(2 * twos.len()).min(scales.len())..];
        lost | scale_blocks::<16>(scales, rest)
    }
}

kernel! {
    fn scale_thirty_twos<'a>(scales: &'a [f32], halves: &'a mut [u16]) -> u32 {
        scale_blocks::<32>(scales, halves)
    }
}

kernel! {
    fn scale_each<'a>(scales: &'a [f32], halves: &'a mut [u16]) -> u32 {
        let mut lost = 0;
        for (half, scale) in halves.iter_mut().zip(scales) {
            let image = (single(*half) * scale).to_bits();
            lost |= image;
            *half = (image >> 16) as u16;
        }
        lost & 0xFFFF
    }
}

kernel! {
    fn any_within<'a>(bytes: &'a [u8], first: u8, last: u8) -> bool {
        let mut any = false;
        for byte in bytes {
            any |= (first..=last).contains(byte);
        }
        any
    }
}

kernel! {
    fn multiply<'a>(scales: &'a [f32], values: &'a mut [f32]) {
        for (value, scale) in values.iter_mut().zip(scales) {
            *value *= scale;
        }
    }
}

kernel! {
    fn narrow<'a>(singles: &'a [f32], halves: &'a mut [u16]) -> u32 {
        let mut lost = 0;
        for (half, single) in halves.iter_mut().zip(singles) {
            lost |= single.to_bits();
            *half = (single.to_bits() >> 16) as u16;
        }
        lost & 0xFFFF
    }
}

kernel! {
    fn widen<'a>(halves: &'a [u16], singles: &'a mut [f32]) {
        for (half, out) in halves.iter().zip(singles) {
            *out = single(*half);
        }
    }
}

/// Positions of a block are a multiple of the widths that have bodies of their own.
const _: () = assert!(BLOCK.is_multiple_of(32) && PIECE.is_multiple_of(BLOCK));
