//! Operands that are rounded and packed in one go, from binary32 numbers: no image and no codes of
//! the whole matrix are ever in memory.
//!
//! A stored matrix may be made of several, below or beside each other, each rounded by itself: the
//! weights of a group, or the gradients of its outputs. What is packed is, bit for bit, what
//! [`Packed::left`] and [`Packed::right`] pack from the codes and scales of
//! [`Quantizer::quantize`], put together.

// Loops over rows and lanes, indexed alike in several slices.
#![allow(clippy::needless_range_loop)]

use alloc::vec;
use alloc::vec::Vec;

use super::super::avx512::transpose;
use super::super::bf16::PairOrder;
use super::super::panel::{
    BLOCK, Facts, LANES, Line, PAIR_LINES, SLAB, WIDE_LINES, halves, halves_mut, singles_mut,
};
use super::{Packed, Side, Slab, for_each, resized, threads};
use crate::pool::{emptied, per_thread};
use crate::quantizer::{Axis, Quantizer, RoundedMatrix};
use crate::random::Philox;
use crate::simd::{kernel, level_of_products};
use crate::slice::View;

/// A matrix in memory and what rounds it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The numbers, rows adjacent in memory.
    pub matrix: View<'a, f32>,
    /// What rounds them, along the axis that the product sums over.
    pub quantizer: Quantizer,
    /// For stochastic rounding: element (i, j) uses word `i * cols + j`.
    pub random: Philox,
}

/// How matrices are put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    Below,
    Beside,
}

/// Several rounded matrices as one.
struct Whole<'a, 'b> {
    parts: &'b [Option<RoundedMatrix<'a>>],
    together: Together,
    rows: usize,
    cols: usize,
    /// Rows that are made together.
    step: usize,
}

impl Whole<'_, '_> {
    /// Writes rows, `stride` numbers apart.
    fn write(&self, rows: core::ops::Range<usize>, stride: usize, out: &mut [f32]) {
        let mut start = 0;
        for part in self.parts.iter().flatten() {
            let (height, width) = part.shape();
            if self.together == Together::Beside {
                part.write(rows.clone(), stride, &mut out[start..]);
                start += width;
                continue;
            }
            let from = rows.start.max(start);
            let to = rows.end.min(start + height);
            if from < to {
                part.write(
                    from - start..to - start,
                    stride,
                    &mut out[(from - rows.start) * stride..],
                );
            }
            start += height;
        }
    }
}

impl Packed {
    /// An operand of no size, for [`round`](Self::round) or [`repack`](Self::repack).
    ///
    /// ```
    /// use exmy::gemm::fast::{Packed, Side};
    ///
    /// assert_eq!(Packed::nothing(Side::Right).shape(), (0, 0));
    /// ```
    pub fn nothing(side: Side) -> Self {
        Self::empty(side)
    }

    /// Rounds and packs a stored matrix, or its transposed one, as this operand.
    ///
    /// Several sources are one matrix, `beside` each other or below, each rounded by itself; then
    /// none may have a tensor scale. Every quantizer works along the axis that the product sums over.
    ///
    /// ```
    /// use exmy::gemm::fast::{Packed, Scaling, Side, Source, multiply};
    /// use exmy::random::{Philox, Stream};
    /// use exmy::slice::{View, ViewMut};
    ///
    /// let random = Philox::new(0, Stream::new("example")); // read by stochastic modes alone
    /// let quantizer = "mxfp4".parse()?;
    /// let source = |matrix| Source { matrix, quantizer, random };
    /// let (x, w) = ([0.3_f32, 8.0], [1.0_f32, 1.0]);
    /// let (mut a, mut b) = (Packed::nothing(Side::Left), Packed::nothing(Side::Right));
    /// a.round(&[source(View::new(&x, 1, 2))], false, false);
    /// b.round(&[source(View::new(&w, 1, 2))], true, false); // Y = X Wᵀ
    /// let mut y = [0.0];
    /// multiply(&a, &b, ViewMut::new(&mut y, 1, 1), Scaling::OVERWRITE)?;
    /// assert_eq!(y, [8.0]); // 0.3 shares its block with 8 and is rounded to 0
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the matrices do not fit each other, one of several has a tensor scale, or as
    /// [`Quantizer::image_into`].
    #[track_caller]
    pub fn round(&mut self, sources: &[Source<'_>], transposed: bool, beside: bool) {
        let by_lane = (self.side == Side::Left) != transposed;
        let axis = if by_lane { Axis::Cols } else { Axis::Rows };
        let mut copies = memory(|memory| core::mem::take(&mut memory.copies));
        copies.resize(copies.len().max(sources.len()), Vec::new());
        self.round_with(&mut copies, sources, (by_lane, axis), beside);
        memory(|memory| memory.copies = copies);
    }

    #[track_caller]
    fn round_with(
        &mut self,
        copies: &mut [Vec<f32>],
        sources: &[Source<'_>],
        (by_lane, axis): (bool, Axis),
        beside: bool,
    ) {
        /// More matrices than a group of linear layers has.
        const FEW: usize = 8;
        let (mut few, mut many) = ([const { None }; FEW], Vec::new());
        let parts: &mut [Option<RoundedMatrix<'_>>] = match sources.len() {
            count @ ..=FEW => &mut few[..count],
            count => {
                many.resize_with(count, || None);
                &mut many
            }
        };
        for ((part, source), copy) in parts.iter_mut().zip(sources).zip(copies) {
            let Source { matrix, quantizer, random } = source;
            *part = Some(RoundedMatrix::new(quantizer, *matrix, axis, *random, copy));
        }
        let parts = &*parts;
        let each = || parts.iter().flatten();
        let scaled = each().filter(|part| part.tensor_scale().is_some()).count();
        assert!(parts.len() == 1 || scaled == 0, "tensor scales of several matrices");
        let tensor_scale = each().next().and_then(RoundedMatrix::tensor_scale);
        let together = if beside { Together::Beside } else { Together::Below };
        let (mut rows, mut cols, mut step) = (0, 0, 1);
        for (at, part) in each().enumerate() {
            let (height, width) = part.shape();
            let fits = at == 0 || if beside { height == rows } else { width == cols };
            assert!(fits, "matrices of different sizes put together");
            (rows, cols) = match together {
                Together::Below => (rows + height, width),
                Together::Beside => (height, cols + width),
            };
            step = crate::block::fast::common_multiple(step, part.step());
        }
        // Where matrices begin inside of what is made together, all is made at once.
        let mut first = 0;
        for part in each() {
            if together == Together::Below && first % step != 0 {
                step = rows.max(1);
            }
            first += part.shape().0;
        }
        self.wrong = None;
        self.order = PairOrder::of(level_of_products());
        let halves = self.order.filter(|_| each().all(RoundedMatrix::seem_halves));
        let whole = Whole { parts, together, rows, cols, step };
        (self.lanes, self.depth) = if by_lane { (rows, cols) } else { (cols, rows) };
        (self.tensor_scale, self.overflows) = (tensor_scale, 0);
        self.block_lines = if halves.is_some() { PAIR_LINES } else { WIDE_LINES };
        let (panels, slabs) = (self.panels(), self.slabs_of_panel());
        let panel_lines = self.blocks() * self.block_lines;
        resized(&mut self.lines, panels * panel_lines);
        self.slabs.clear();
        self.slabs.resize(panels * slabs, Slab { facts: Facts::WIDE, wide: None });
        if panels * panel_lines == 0 {
            return;
        }
        let maker = Maker { whole: &whole, side: self.side, by_lane, halves };
        if by_lane { self.by_lanes(&maker) } else { self.by_positions(&maker) }
    }

    /// Rows are lanes: a few panels at a time, whole.
    fn by_lanes(&mut self, maker: &Maker<'_>) {
        let Whole { rows, cols, step, .. } = *maker.whole;
        let group = crate::block::fast::common_multiple(step, LANES) / LANES;
        // Few panels keep what is made in the second-level cache, several share the way there.
        let group = if group * LANES >= rows { rows.div_ceil(LANES) } else { group };
        let blocks = self.blocks();
        let of_panel = self.slabs_of_panel();
        let panel_lines = blocks * self.block_lines;
        let stride = blocks * BLOCK;
        let lines = resized(&mut self.lines, rows.div_ceil(LANES) * panel_lines);
        let items =
            lines.chunks_mut(group * panel_lines).zip(self.slabs.chunks_mut(group * of_panel));
        for_each(items, |i, (lines, slabs)| {
            let first = i * group * LANES;
            let count = (rows - first).min(group * LANES);
            let panels = count.div_ceil(LANES);
            with_scratch(panels * LANES * stride, |scratch| {
                if stride > cols {
                    scratch.chunks_mut(stride).for_each(|row| row[cols..].fill(0.0));
                }
                scratch[count * stride..].fill(0.0);
                maker.whole.write(first..first + count, stride, scratch);
                for panel in 0..panels {
                    let lines = &mut lines[panel * panel_lines..][..panel_lines];
                    let slabs = &mut slabs[panel * of_panel..][..of_panel];
                    let from = &scratch[panel * LANES * stride..][..LANES * stride];
                    let of_slab = SLAB / BLOCK * (panel_lines / blocks);
                    for (slab, lines) in lines.chunks_mut(of_slab).enumerate() {
                        maker.slab(&from[slab * SLAB..], [stride, BLOCK], lines, &mut slabs[slab]);
                    }
                }
            });
        });
    }

    /// Rows are positions: a slab at a time, of all panels.
    fn by_positions(&mut self, maker: &Maker<'_>) {
        let step = maker.whole.step;
        let of_panel = self.slabs_of_panel();
        let block_lines = self.block_lines;
        let panel_lines = self.blocks() * block_lines;
        let stride = self.panels() * LANES;
        // Slabs that are made together.
        let group = crate::block::fast::common_multiple(step, SLAB) / SLAB;
        let group = if group >= of_panel { of_panel } else { group };
        let of_slab = SLAB / BLOCK * block_lines;
        // What of the lines of a panel a slab has.
        let range = |slab: usize| slab * of_slab..panel_lines.min((slab + 1) * of_slab);
        let panels = stride / LANES;
        if threads() == 1 {
            // Nothing is divided, so no list of what whom belongs to is made.
            let (lines, slabs) = (&mut self.lines, &mut self.slabs);
            for first in (0..of_panel).step_by(group) {
                maker.positions(first, group, stride, |slab, panel, work| {
                    let lines = &mut lines[panel * panel_lines..][range(first + slab)];
                    work(lines, &mut slabs[panel * of_panel + first + slab]);
                });
            }
            return;
        }
        let mut items = emptied(memory(|memory| core::mem::take(&mut memory.items)));
        items.resize_with(panels * of_panel, || None);
        let lines = resized(&mut self.lines, panels * panel_lines);
        for (panel, (lines, slabs)) in
            lines.chunks_mut(panel_lines).zip(self.slabs.chunks_mut(of_panel)).enumerate()
        {
            for (slab, pair) in lines.chunks_mut(of_slab).zip(slabs).enumerate() {
                items[slab * panels + panel] = Some(pair);
            }
        }
        for_each(items.chunks_mut(group * panels), |i, items| {
            maker.positions(i * group, group, stride, |slab, panel, work| {
                let Some((lines, facts)) = &mut items[slab * panels + panel] else {
                    unreachable!("all slabs of all panels are listed");
                };
                work(lines, facts);
            });
        });
        memory(|memory| memory.items = emptied(items));
    }
}

/// What is packed, and how.
struct Maker<'a> {
    whole: &'a Whole<'a, 'a>,
    side: Side,
    by_lane: bool,
    /// As bfloat16 numbers, in which order.
    halves: Option<PairOrder>,
}

impl Maker<'_> {
    /// Packs `group` slabs of positions from slab `first` on; `at` hands over what is the place of a
    /// slab, counted from there, in a panel.
    fn positions(
        &self,
        first: usize,
        group: usize,
        stride: usize,
        mut at: impl FnMut(usize, usize, &mut dyn FnMut(&mut [Line], &mut Slab)),
    ) {
        let Whole { rows, cols, .. } = *self.whole;
        let first = first * SLAB;
        let count = (rows - first).min(group * SLAB);
        with_scratch(count.next_multiple_of(BLOCK) * stride, |scratch| {
            if stride > cols {
                scratch.chunks_mut(stride).for_each(|row| row[cols..].fill(0.0));
            }
            scratch[count * stride..].fill(0.0);
            self.whole.write(first..first + count, stride, scratch);
            for slab in 0..count.div_ceil(SLAB) {
                for panel in 0..stride / LANES {
                    let from = &scratch[slab * SLAB * stride + panel * LANES..];
                    at(slab, panel, &mut |lines, facts| {
                        self.slab(from, [stride, BLOCK * stride], lines, facts);
                    });
                }
            }
        });
    }

    /// Packs a slab of a panel; `strides` lead from row to row and from block to block.
    fn slab(&self, from: &[f32], strides: [usize; 2], lines: &mut [Line], slab: &mut Slab) {
        let straight = self.by_lane == (self.side == Side::Left);
        let Some(order) = self.halves else {
            return self.singles(from, strides, lines);
        };
        let mut lost = 0;
        for (block, lines) in lines.chunks_mut(PAIR_LINES).enumerate() {
            let from = &from[block * strides[1]..];
            lost |= if self.by_lane {
                lanes_of_halves(from, strides[0], lines)
            } else {
                pairs_of_halves(from, strides[0], lines)
            };
            if !straight {
                (0..lines.len()).step_by(16).for_each(|first| transpose(lines, first, 1));
            }
        }
        if lost & 0xFFFF == 0 {
            slab.facts = Facts::of(halves(lines));
            order.arrange(self.side, lines);
        } else {
            let wide = lines.len() / PAIR_LINES * WIDE_LINES;
            let mut wide = vec![Line::ZERO; wide].into_boxed_slice();
            self.singles(from, strides, &mut wide);
            slab.wide = Some(wide);
        }
    }

    fn singles(&self, from: &[f32], strides: [usize; 2], lines: &mut [Line]) {
        let straight = self.by_lane == (self.side == Side::Left);
        for (block, lines) in lines.chunks_mut(WIDE_LINES).enumerate() {
            let (from, out) = (&from[block * strides[1]..], singles_mut(lines));
            for (r, row) in from.chunks(strides[0]).take(LANES).enumerate() {
                let row = &row[..BLOCK];
                if straight {
                    out[r * BLOCK..][..BLOCK].copy_from_slice(row);
                } else {
                    for (out, x) in out[r..].iter_mut().step_by(LANES).zip(row) {
                        *out = *x;
                    }
                }
            }
        }
    }
}

// The length of the inner loops is that of a slice, so that they become vectors and are not unrolled
// first. They have a counter, since adapters of iterators stored their state to memory in every
// pass.

kernel! {
    /// 32 rows of 32 numbers, `stride` apart, as a line of upper halves each; what the lower halves
    /// have is in the lower half of the result.
    fn lanes_of_halves<'a>(from: &'a [f32], stride: usize, lines: &'a mut [Line]) -> u32 {
        let n = lines.len();
        let mut all = [0_u32; BLOCK];
        let lost = &mut all[..n];
        for r in 0..n {
            let row = &from[r * stride..][..n];
            let out = &mut halves_mut(&mut lines[r..=r])[..n];
            for i in 0..n {
                let bits = row[i].to_bits();
                lost[i] |= bits;
                out[i] = (bits >> 16) as u16;
            }
        }
        all.iter().fold(0, |all, lost| all | lost)
    }
}

kernel! {
    /// 32 rows of 32 numbers, `stride` apart, as pairs of upper halves of neighbours down the
    /// columns: 16 lines of the first 16 columns, then 16 of the others.
    fn pairs_of_halves<'a>(from: &'a [f32], stride: usize, lines: &'a mut [Line]) -> u32 {
        let n = lines.len();
        let (mut all, mut both) = ([0_u32; LANES], [0_u32; LANES]);
        for p in 0..n / 2 {
            let (lost, words) = (&mut all[..n], &mut both[..n]);
            let even = &from[2 * p * stride..][..n];
            let odd = &from[(2 * p + 1) * stride..][..n];
            for i in 0..n {
                let (low, high) = (even[i].to_bits(), odd[i].to_bits());
                lost[i] |= low | high;
                words[i] = low >> 16 | high & 0xFFFF_0000;
            }
            let (left, right) = both.split_at(16);
            lines[p].words().copy_from_slice(left);
            lines[16 + p].words().copy_from_slice(right);
        }
        all.iter().fold(0, |all, lost| all | lost)
    }
}

/// Memory of a thread that serves call after call, as fresh memory is cleared twice, by the system and
/// by its owner.
#[derive(Default)]
struct Memory {
    scratch: Vec<f32>,
    /// Whole matrices, where something comes before a scale that depends on all of one.
    copies: Vec<Vec<f32>>,
    /// An empty list.
    items: Items<'static>,
}

/// The slabs of panels, slab by slab, as several threads make them.
type Items<'a> = Vec<Option<(&'a mut [Line], &'a mut Slab)>>;

per_thread!(fn memory(Memory));

/// Hands `work` that many numbers.
fn with_scratch<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut scratch = memory(|memory| core::mem::take(&mut memory.scratch));
    if scratch.len() < len {
        scratch.resize(len, 0.0);
    }
    let result = work(&mut scratch[..len]);
    memory(|memory| memory.scratch = scratch);
    result
}
