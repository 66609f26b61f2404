//! Operands to [panels](super::panel), straight from codes and scales.

mod rounded;

pub use rounded::Source;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::Side;
use super::avx512::transpose;
use super::bf16::PairOrder;
use super::images::{Images, PIECE, Scratch};
use super::panel::{
    BLOCK, Facts, LANES, Line, PAIR_LINES, SLAB, WIDE_LINES, halves, halves_mut, singles_mut,
};
use crate::gemm::Operand;
use crate::gemm::error::Why;
use crate::simd::level_of_products;

/// An operand in the order in which the kernels read it; kept, it serves many products.
///
/// Numbers take 2 bytes where all of a slab are bfloat16 numbers and the level in force when it was
/// packed has instructions for them, else 4. These read what was packed at their own level alone; at others
/// numbers are widened first, with the same results.
#[derive(Clone, Debug)]
pub struct Packed {
    side: Side,
    lanes: usize,
    depth: usize,
    tensor_scale: Option<f32>,
    overflows: u64,
    /// What is wrong about the operand, of which nothing is packed then.
    wrong: Option<Why>,
    /// The order of bfloat16 numbers, if it was packed at a level that has instructions for them.
    order: Option<PairOrder>,
    /// Lines of a block in `lines`.
    block_lines: usize,
    /// Panel by panel, block by block; what follows is of larger operands before.
    lines: Vec<Line>,
    /// Panel by panel, slab by slab.
    slabs: Vec<Slab>,
}

/// What is known of a slab of a panel.
#[derive(Clone, Debug)]
struct Slab {
    facts: Facts,
    /// The slab as binary32, where its panel was made for bfloat16 and it is not.
    wide: Option<Box<[Line]>>,
}

/// Numbers of a slab of a panel.
pub(super) enum SlabNumbers<'a> {
    Halves(PairOrder, &'a [Line]),
    Singles(&'a [Line]),
}

impl Packed {
    /// The left operand of a product: M x K.
    ///
    /// Blocks must run along the columns, or be tiles that serve both axes, and the values of the
    /// elements' format must be binary32 numbers. If not, nothing is packed and
    /// [`multiply`](super::multiply) says why.
    pub fn left(operand: &Operand<'_>) -> Self {
        let mut packed = Self::empty(Side::Left);
        packed.repack(operand);
        packed
    }

    /// The right operand of a product: K x N, with blocks along the rows.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::gemm::Operand;
    /// use exmy::gemm::fast::{Packed, Scaling, multiply};
    /// use exmy::slice::ViewMut;
    ///
    /// // 32 outputs of 32 inputs, as weights are stored: a block is the inputs of an output.
    /// let (format, codes) = (BlockFormat::MXFP4, vec![0x22; 512]);
    /// let w = BlockTensor::from_parts(format, Axis::Cols, (32, 32), codes, vec![127; 32], None)?;
    /// let (w, mut c) = (Operand::from(&w), [0.0; 1024]);
    /// let left = Packed::left(&w);
    /// multiply(&left, &Packed::right(&w.t()), ViewMut::new(&mut c, 32, 32), Scaling::OVERWRITE)?;
    /// assert_eq!(c, [32.0; 1024]);
    ///
    /// // As they are stored their blocks run across the sum; nothing is transposed silently.
    /// let (wrong, c) = (Packed::right(&w), ViewMut::new(&mut c, 32, 32));
    /// let error = multiply(&left, &wrong, c, Scaling::OVERWRITE).unwrap_err().to_string();
    /// assert!(error.contains("the right operand is mxfp4 in blocks of 1 x 32"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn right(operand: &Operand<'_>) -> Self {
        let mut packed = Self::empty(Side::Right);
        packed.repack(operand);
        packed
    }

    pub(super) fn empty(side: Side) -> Self {
        Self {
            side,
            lanes: 0,
            depth: 0,
            tensor_scale: None,
            overflows: 0,
            wrong: None,
            order: None,
            block_lines: PAIR_LINES,
            lines: Vec::new(),
            slabs: Vec::new(),
        }
    }

    /// Packs another operand of the same side into the same memory.
    pub fn repack(&mut self, operand: &Operand<'_>) {
        self.wrong = operand.not_fast(self.side);
        if self.wrong.is_some() {
            let (rows, cols) = operand.shape();
            (self.lanes, self.depth) =
                if self.side == Side::Left { (rows, cols) } else { (cols, rows) };
            (self.tensor_scale, self.overflows) = (operand.tensor_scale(), 0);
            self.order = None;
            self.lines.clear();
            self.slabs.clear();
            return;
        }
        let images = Images::new(operand, self.side);
        self.order = PairOrder::of(level_of_products());
        let order = self.order.filter(|_| images.seem_halves(&mut Scratch::new()));
        (self.lanes, self.depth) = (images.lanes, images.depth);
        self.tensor_scale = operand.tensor_scale();
        self.overflows = images.overflows();
        self.block_lines = if order.is_some() { PAIR_LINES } else { WIDE_LINES };
        let (panels, slabs) = (self.panels(), self.slabs_of_panel());
        // Without lanes there is nothing, however long the sums.
        let panel_lines = if panels == 0 { 0 } else { self.blocks() * self.block_lines };
        let lines = resized(&mut self.lines, panels * panel_lines);
        self.slabs.clear();
        self.slabs.resize(panels * slabs, Slab { facts: Facts::WIDE, wide: None });
        if panel_lines == 0 {
            return;
        }
        // Rows along the lanes are read across many panels at a time.
        let group = if images.by_lane { 1 } else { PIECE / LANES };
        let items = lines.chunks_mut(group * panel_lines).zip(self.slabs.chunks_mut(group * slabs));
        let side = self.side;
        for_each(items, |i, (lines, slabs)| {
            let mut packer = Packer {
                images: &images,
                side,
                first: i * group,
                panel_lines,
                scratch: Scratch::new(),
                rows: [[0; PIECE]; 2],
            };
            match order {
                Some(order) => packer.halves(order, lines, slabs),
                None => packer.singles(0, lines),
            }
        });
    }

    /// Which operand it was packed as.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Rows of a left operand, columns of a right one.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Length of the sums.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The tensor scale, which multiplies the output.
    pub fn tensor_scale(&self) -> Option<f32> {
        self.tensor_scale
    }

    /// Finite values whose products with finite scales are infinite.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self.side {
            Side::Left => (self.lanes, self.depth),
            Side::Right => (self.depth, self.lanes),
        }
    }

    /// What is wrong about the operand, if anything.
    pub(super) fn wrong(&self) -> Option<&Why> {
        self.wrong.as_ref()
    }

    /// The order of bfloat16 numbers, if there are some.
    pub(super) fn order(&self) -> Option<PairOrder> {
        self.order
    }

    pub(super) fn panels(&self) -> usize {
        self.lanes.div_ceil(LANES)
    }

    pub(super) fn slabs_of_panel(&self) -> usize {
        self.depth.div_ceil(SLAB)
    }

    /// Bytes of a panel.
    pub(super) fn panel_bytes(&self) -> usize {
        self.blocks() * self.block_lines * size_of::<Line>()
    }

    fn blocks(&self) -> usize {
        self.depth.div_ceil(BLOCK)
    }

    pub(super) fn facts(&self, panel: usize, slab: usize) -> Facts {
        self.slabs[panel * self.slabs_of_panel() + slab].facts
    }

    /// The numbers of consecutive slabs of a panel, if all are bfloat16 numbers in place.
    pub(super) fn pairs(&self, panel: usize, slabs: core::ops::Range<usize>) -> &[Line] {
        debug_assert_eq!(self.block_lines, PAIR_LINES);
        &self.lines[self.range(panel, slabs)]
    }

    /// The numbers of a slab.
    pub(super) fn numbers(&self, panel: usize, slab: usize) -> SlabNumbers<'_> {
        if let Some(wide) = &self.slabs[panel * self.slabs_of_panel() + slab].wide {
            return SlabNumbers::Singles(wide);
        }
        let lines = &self.lines[self.range(panel, slab..slab + 1)];
        match self.order {
            Some(order) if self.block_lines == PAIR_LINES => SlabNumbers::Halves(order, lines),
            _ => SlabNumbers::Singles(lines),
        }
    }

    fn range(&self, panel: usize, slabs: core::ops::Range<usize>) -> core::ops::Range<usize> {
        let blocks = self.blocks();
        let at =
            |slab: usize| (panel * blocks + (slab * (SLAB / BLOCK)).min(blocks)) * self.block_lines;
        at(slabs.start)..at(slabs.end)
    }
}

/// The first `count` lines, whatever they hold. The list never gets shorter: what it would have to clear
/// when it grows again took one thread longer than all of them took to fill it.
fn resized(lines: &mut Vec<Line>, count: usize) -> &mut [Line] {
    if lines.len() < count {
        lines.resize(count, Line::ZERO);
    }
    &mut lines[..count]
}

#[cfg(feature = "std")]
use crate::parallel::{for_each, threads};

/// In order.
#[cfg(not(feature = "std"))]
fn for_each<I: IntoIterator>(items: I, work: impl Fn(usize, I::Item)) {
    items.into_iter().enumerate().for_each(|(i, item)| work(i, item));
}

/// One.
#[cfg(not(feature = "std"))]
fn threads() -> usize {
    1
}

/// Packs a few panels.
struct Packer<'a> {
    images: &'a Images<'a>,
    side: Side,
    /// The first panel.
    first: usize,
    /// Lines of a panel.
    panel_lines: usize,
    scratch: Scratch,
    /// Two rows of bfloat16 numbers.
    rows: [[u16; PIECE]; 2],
}

impl Packer<'_> {
    /// As bfloat16, and as binary32 besides where that loses something.
    fn halves(&mut self, order: PairOrder, lines: &mut [Line], slabs: &mut [Slab]) {
        if let Some((codes, scales)) = self.images.codes(self.first) {
            for (i, slot) in slabs.iter_mut().enumerate() {
                let from = i * (SLAB / BLOCK);
                let end = (self.panel_lines / PAIR_LINES).min(from + SLAB / BLOCK);
                let here = &mut lines[from * PAIR_LINES..end * PAIR_LINES];
                let at = (self.first, from);
                let facts = scales.from(from, |scales| codes.halves(at, scales, self.side, here));
                match facts {
                    Some(facts) => {
                        slot.facts = facts;
                        order.arrange(self.side, here);
                    }
                    None => {
                        let mut wide = vec![Line::ZERO; (end - from) * WIDE_LINES];
                        scales.from(from, |of| codes.singles(at, of, self.side, &mut wide));
                        slot.wide = Some(wide.into_boxed_slice());
                    }
                }
            }
            return;
        }
        let (panels, of_panel) = (lines.len() / self.panel_lines, self.images.depth.div_ceil(SLAB));
        let blocks = self.panel_lines / PAIR_LINES;
        for slab in 0..of_panel {
            let from = slab * (SLAB / BLOCK);
            let here = from..blocks.min(from + SLAB / BLOCK);
            // Which panels lose something: at most as many as bits.
            let lossy = if self.images.by_lane {
                self.halves_by_lane(&here, lines)
            } else {
                self.halves_by_position(&here, lines)
            };
            for panel in 0..panels {
                let at = panel * self.panel_lines;
                let range = at + here.start * PAIR_LINES..at + here.end * PAIR_LINES;
                let lines = &mut lines[range];
                if self.images.by_lane != (self.side == Side::Left) {
                    (0..lines.len()).step_by(16).for_each(|first| transpose(lines, first, 1));
                }
                let slot = &mut slabs[panel * of_panel + slab];
                if lossy >> panel & 1 == 0 {
                    slot.facts = Facts::of(halves(lines));
                    order.arrange(self.side, lines);
                } else {
                    let mut wide = vec![Line::ZERO; here.len() * WIDE_LINES].into_boxed_slice();
                    let mut packer = Packer {
                        images: self.images,
                        side: self.side,
                        first: self.first + panel,
                        panel_lines: wide.len(),
                        scratch: Scratch::new(),
                        rows: [[0; PIECE]; 2],
                    };
                    packer.singles(from, &mut wide);
                    slot.wide = Some(wide);
                }
            }
        }
    }

    /// Rows are lanes: each line gets 32 positions of a lane.
    fn halves_by_lane(&mut self, blocks: &core::ops::Range<usize>, lines: &mut [Line]) -> u64 {
        let (k, images) = (blocks.start * BLOCK, self.images);
        let len = (images.depth - k).min(SLAB);
        let mut lossy = false;
        let padded = blocks.len() * BLOCK;
        self.rows[0][len..padded].fill(0);
        for lane in 0..LANES {
            let i = self.first * LANES + lane;
            if i < images.lanes {
                lossy |= !images.halves(i, k, &mut self.scratch, &mut self.rows[0][..len]);
            } else {
                self.rows[0][..padded].fill(0);
            }
            let row = &self.rows[0][..padded];
            for (block, numbers) in blocks.clone().zip(row.as_chunks::<BLOCK>().0) {
                let line = block * PAIR_LINES + lane;
                halves_mut(&mut lines[line..=line]).copy_from_slice(numbers);
            }
        }
        lossy.into()
    }

    /// Rows are positions: each line gets 16 lanes of two positions, interleaved.
    fn halves_by_position(&mut self, blocks: &core::ops::Range<usize>, lines: &mut [Line]) -> u64 {
        let images = self.images;
        let panels = lines.len() / self.panel_lines;
        let j = self.first * LANES;
        let len = (images.lanes - j).min(panels * LANES);
        let mut lossy = 0;
        let mut pairs = [0; PIECE];
        for pair in blocks.start * BLOCK / 2..blocks.end * BLOCK / 2 {
            for odd in 0..2 {
                let (k, row) = (2 * pair + odd, &mut self.rows[odd]);
                if k >= images.depth {
                    row.fill(0);
                    continue;
                }
                if !images.halves(k, j, &mut self.scratch, &mut row[..len]) {
                    lossy |= self.lossy_panels(k, j, len);
                }
            }
            let [even, odd] = &self.rows;
            interleave(even, odd, &mut pairs);
            let (block, at) = (pair / 16, pair % 16);
            for (tile, words) in pairs.as_chunks::<16>().0.iter().enumerate().take(2 * panels) {
                let line = tile / 2 * self.panel_lines + block * PAIR_LINES + tile % 2 * 16 + at;
                *lines[line].words() = *words;
            }
        }
        lossy
    }

    /// Which panels of a row have numbers that are no bfloat16 numbers, a bit each.
    #[cold]
    fn lossy_panels(&mut self, k: usize, j: usize, len: usize) -> u64 {
        let mut singles = [0.0_f32; PIECE];
        self.images.singles(k, j, &mut self.scratch, &mut singles[..len]);
        let lossy = |of: &[f32]| of.iter().any(|x| x.to_bits() & 0xFFFF != 0);
        let panels = singles[..len].chunks(LANES).enumerate();
        panels.fold(0, |all, (panel, of)| all | u64::from(lossy(of)) << panel)
    }

    /// As binary32, from block `from` on.
    fn singles(&mut self, from: usize, lines: &mut [Line]) {
        let images = self.images;
        if let Some((codes, scales)) = images.codes(self.first) {
            scales.from(from, |of| codes.singles((self.first, from), of, self.side, lines));
            return;
        }
        let panels = lines.len() / self.panel_lines;
        let mut row = [0.0; PIECE];
        let blocks = self.panel_lines / WIDE_LINES;
        if images.by_lane {
            for lane in 0..LANES {
                let i = self.first * LANES + lane;
                for first in (0..blocks).step_by(PIECE / BLOCK) {
                    let k = (from + first) * BLOCK;
                    let row = &mut row[..(blocks - first).min(PIECE / BLOCK) * BLOCK];
                    let len = if i < images.lanes { (images.depth - k).min(row.len()) } else { 0 };
                    row[len..].fill(0.0);
                    if len > 0 {
                        images.singles(i, k, &mut self.scratch, &mut row[..len]);
                    }
                    for (block, numbers) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
                        let line = (first + block) * WIDE_LINES + 2 * lane;
                        singles_mut(&mut lines[line..line + 2]).copy_from_slice(numbers);
                    }
                }
            }
        } else {
            let j = self.first * LANES;
            let len = (images.lanes - j).min(panels * LANES);
            for at in 0..blocks * BLOCK {
                let k = from * BLOCK + at;
                if k < images.depth {
                    images.singles(k, j, &mut self.scratch, &mut row[..len]);
                } else {
                    row.fill(0.0);
                }
                for (panel, numbers) in row.as_chunks::<LANES>().0.iter().enumerate().take(panels) {
                    let line = panel * self.panel_lines + at / BLOCK * WIDE_LINES + at % BLOCK * 2;
                    singles_mut(&mut lines[line..line + 2]).copy_from_slice(numbers);
                }
            }
        }
        if images.by_lane != (self.side == Side::Left) {
            lines.as_chunks_mut::<WIDE_LINES>().0.iter_mut().for_each(transpose_block);
        }
    }
}

/// Transposes a block of 32 x 32 words.
fn transpose_block(lines: &mut [Line; WIDE_LINES]) {
    // Four squares of 16 x 16; lines of a row are two.
    for first in [0, 1, 32, 33] {
        transpose(lines, first, 2);
    }
    for row in 0..16 {
        lines.swap(2 * row + 1, 2 * row + 32);
    }
}

crate::simd::kernel! {
    /// Words of one number of each row, the first in the low half.
    fn interleave<'a>(
        even: &'a [u16; PIECE],
        odd: &'a [u16; PIECE],
        out: &'a mut [u32; PIECE],
    ) {
        for (out, (even, odd)) in out.iter_mut().zip(even.iter().zip(odd)) {
            *out = u32::from(*even) | u32::from(*odd) << 16;
        }
    }
}

/// Writes bfloat16 numbers of a slab of a panel as binary32 blocks.
pub(super) fn widen(side: Side, order: PairOrder, lines: &[Line], out: &mut [Line]) {
    let (blocks, out) = (lines.as_chunks::<PAIR_LINES>().0, out.as_chunks_mut::<WIDE_LINES>().0);
    for (block, out) in blocks.iter().zip(out) {
        let mut block = *block;
        order.restore(side, &mut block);
        let (block, out) = (halves(&block), singles_mut(out));
        let single = |half: u16| f32::from_bits(u32::from(half) << 16);
        match side {
            Side::Left => out.iter_mut().zip(block).for_each(|(out, half)| *out = single(*half)),
            Side::Right => {
                // Tiles of 16 lanes, lines of pairs of positions.
                for (line, pairs) in block.as_chunks::<32>().0.iter().enumerate() {
                    let (lane, k) = (line / 16 * 16, line % 16 * 2);
                    for (at, pair) in pairs.as_chunks::<2>().0.iter().enumerate() {
                        out[k * LANES + lane + at] = single(pair[0]);
                        out[(k + 1) * LANES + lane + at] = single(pair[1]);
                    }
                }
            }
        }
    }
}
