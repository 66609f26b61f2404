//! The walk over the tiles of an output.
//!
//! Columns are taken in chunks of which the packed right operand stays in the second-level cache
//! while all rows pass by; within one, panel after panel of rows. Sums go to the output itself where
//! a tile is whole and nothing is added, and are finished (scaled, every NaN the same one) chunk by
//! chunk. Threads take bands of rows of a chunk, or, where there are few rows, chunks of columns.

#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::ops::Range;

use super::bf16::Pairs;
use super::pack::{Packed, SlabNumbers, widen};
use super::panel::{LANES, Line, SLAB, Square, WIDE_LINES};
use super::squares;
use super::{KernelReport, Scaling, Side};
#[cfg(feature = "std")]
use crate::pool::per_thread;
use crate::pool::{Pooled, poolable};
use crate::simd::{kernel, level_of_products};
use crate::slice::{Converter, ViewMut};

poolable!(Line);

/// Bytes of the right operand that are to stay in the second-level cache: half of 2 MiB.
const NEAR: usize = 1 << 20;

/// Lines of a slab as binary32.
const SLAB_LINES: usize = SLAB / super::panel::BLOCK * WIDE_LINES;

/// The product, each element rounded at last if there is what rounds it; shapes and sides are known to
/// fit.
pub(super) fn multiply(
    a: &Packed,
    b: &Packed,
    c: ViewMut<'_, f32>,
    with: Scaling,
    round: Option<Converter<'static>>,
) -> KernelReport {
    let level = level_of_products();
    let (panels, columns) = (a.panels(), b.panels());
    let mut report = KernelReport::new(level);
    if panels == 0 || columns == 0 {
        return report;
    }
    let near = (NEAR / (b.panel_bytes().max(1))).clamp(1, columns);
    let product = Product {
        a,
        b,
        with,
        factor: with.factor(a.tensor_scale(), b.tensor_scale()),
        near,
        plain: with.factor(a.tensor_scale(), b.tensor_scale()).to_bits() == 1.0_f32.to_bits(),
        round,
    };
    #[cfg(feature = "std")]
    if crate::parallel::threads() > 1 && panels * columns > 1 {
        return product.divided(c, crate::parallel::threads());
    }
    product.rows(0, c, &mut report);
    report
}

/// Rows of the output and what became of them; a thread at a time writes there.
#[cfg(feature = "std")]
type Band<'a> = std::sync::Mutex<(ViewMut<'a, f32>, KernelReport)>;

/// An empty list of a thread, whose memory serves product after product.
#[cfg(feature = "std")]
#[derive(Default)]
struct Lists {
    bands: Vec<Band<'static>>,
}

#[cfg(feature = "std")]
per_thread!(fn lists(Lists));

struct Product<'a> {
    a: &'a Packed,
    b: &'a Packed,
    with: Scaling,
    factor: f32,
    /// Panels of columns of a chunk.
    near: usize,
    /// Whether sums are the output, but for NaN.
    plain: bool,
    /// What rounds the output, while it is in the cache.
    round: Option<Converter<'static>>,
}

/// What a thread needs to make tiles.
struct Workshop {
    pairs: Option<Pairs>,
    square: Square,
    /// Memory for slabs of the left and the right operand as binary32.
    wide: [Pooled<Line>; 2],
}

impl Workshop {
    fn new() -> Self {
        let square = [0.0; LANES * LANES];
        Self { pairs: Pairs::new(), square, wide: [Pooled::default(), Pooled::default()] }
    }
}

#[cfg(feature = "std")]
impl Product<'_> {
    /// The whole product, one chunk of columns after the other, in bands of rows. A thread takes
    /// the next band when it has done one, and the chunk is in the caches of all.
    fn divided(&self, c: ViewMut<'_, f32>, threads: usize) -> KernelReport {
        use crate::pool::emptied;
        use std::sync::{Mutex, PoisonError};

        let (panels, columns) = (self.a.panels(), self.b.panels());
        // Several pieces a thread, so that one that comes late holds up little. Few rows are divided
        // by columns too.
        let few = panels < 4 * threads;
        let (band, wide) = if few {
            let area = (panels * columns / (4 * threads)).max(1);
            let band = area.isqrt().min(panels);
            (band, (area / band).min(self.near))
        } else {
            (panels.div_ceil(16 * threads), self.near)
        };
        let mut bands: Vec<Band<'_>> = emptied(lists(|lists| core::mem::take(&mut lists.bands)));
        bands.reserve_exact(panels.div_ceil(band));
        let mut rest = Some(c);
        for _ in (0..panels).step_by(band) {
            if let Some(out) = rest.take() {
                let rows = out.rows().min(band * LANES);
                let (head, tail) = out.split_rows(rows);
                bands.push(Mutex::new((head, KernelReport::new(level_of_products()))));
                rest = Some(tail);
            }
        }
        let hold = |of: usize| bands[of].lock().unwrap_or_else(PoisonError::into_inner);
        crate::parallel::for_each_index(columns.div_ceil(wide) * bands.len(), |i| {
            let (chunk, of) = (i / bands.len(), i % bands.len());
            let columns = chunk * wide..columns.min((chunk + 1) * wide);
            let mut guard = hold(of);
            let (out, report) = &mut *guard;
            let (rows, stride, left) = (out.rows(), out.row_stride(), columns.start * LANES);
            let width = out.cols().min(columns.end * LANES) - left;
            if !few {
                // Nobody else wants this band but for another chunk of columns.
                let part =
                    ViewMut::with_row_stride(&mut out.data_mut()[left..], rows, width, stride);
                let Ok(part) = part else { unreachable!("columns of the band") };
                return self.columns(of * band, columns, part, report);
            }
            // Others are at other columns of this band meanwhile: it is held to copy alone.
            let mut part = Pooled::zeros(rows * width);
            if self.with.beta != 0.0 {
                for (to, from) in part.chunks_mut(width).zip(out.data().chunks(stride)) {
                    to.copy_from_slice(&from[left..][..width]);
                }
            }
            drop(guard);
            let mut own = KernelReport::new(level_of_products());
            self.columns(of * band, columns, ViewMut::new(&mut part, rows, width), &mut own);
            let mut guard = hold(of);
            let (out, report) = &mut *guard;
            for (from, to) in part.chunks(width).zip(out.data_mut().chunks_mut(stride)) {
                to[left..][..width].copy_from_slice(from);
            }
            report.add(&own);
        });
        let mut report = KernelReport::new(level_of_products());
        for band in bands.drain(..) {
            report.add(&band.into_inner().unwrap_or_else(PoisonError::into_inner).1);
        }
        lists(|lists| lists.bands = emptied(bands));
        report
    }
}

impl Product<'_> {
    /// Rows from panel `first` on, of all columns.
    fn rows(&self, first: usize, out: ViewMut<'_, f32>, report: &mut KernelReport) {
        self.columns(first, 0..self.b.panels(), out, report);
    }

    /// Rows from panel `first` on, of the columns of some panels.
    fn columns(
        &self,
        first: usize,
        columns: Range<usize>,
        mut out: ViewMut<'_, f32>,
        report: &mut KernelReport,
    ) {
        let mut workshop = Workshop::new();
        let (rows, cols, stride) = (out.rows(), out.cols(), out.row_stride());
        // The widest chunk of the rows of a panel.
        let most = if self.with.beta == 0.0 { 0 } else { LANES * cols.min(self.near * LANES) };
        let mut sums = Pooled::with_capacity(most);
        for start in columns.clone().step_by(self.near) {
            let end = columns.end.min(start + self.near);
            let left = (start - columns.start) * LANES;
            let width = cols.min((end - columns.start) * LANES) - left;
            for panel in 0..rows.div_ceil(LANES) {
                let top = panel * LANES;
                let height = LANES.min(rows - top);
                let data = &mut out.data_mut()[top * stride + left..];
                let data = &mut data[..(height - 1) * stride + width];
                if self.with.beta == 0.0 {
                    let clean = self.panel(
                        first + panel,
                        start..end,
                        data,
                        stride,
                        (height, width),
                        &mut workshop,
                        report,
                    );
                    if !(self.plain && clean) {
                        for row in data.chunks_mut(stride) {
                            finish(self.factor, &mut row[..width]);
                        }
                    }
                } else {
                    sums.resize(height * width, 0.0);
                    self.panel(
                        first + panel,
                        start..end,
                        &mut sums,
                        width,
                        (height, width),
                        &mut workshop,
                        report,
                    );
                    for (row, sums) in data.chunks_mut(stride).zip(sums.chunks(width)) {
                        add(self.with, self.factor, sums, &mut row[..width]);
                    }
                }
                if let Some(round) = &self.round {
                    for row in data.chunks_mut(stride) {
                        round.fake_quantize(&mut row[..width]);
                    }
                }
            }
        }
    }

    /// The sums of a panel of rows with some panels of columns; whether there is no NaN for sure.
    fn panel(
        &self,
        panel: usize,
        columns: Range<usize>,
        out: &mut [f32],
        stride: usize,
        (height, width): (usize, usize),
        workshop: &mut Workshop,
        report: &mut KernelReport,
    ) -> bool {
        let mut clean = true;
        for (at, column) in columns.enumerate() {
            let left = at * LANES;
            let cols = LANES.min(width - left);
            let whole = height == LANES && cols == LANES;
            let place = &mut out[left..];
            if whole {
                let place = &mut place[..(LANES - 1) * stride + LANES];
                clean &= self.tile(panel, column, place, stride, workshop, report);
            } else {
                let mut square = [0.0; LANES * LANES];
                clean &= self.tile(panel, column, &mut square, LANES, workshop, report);
                for (row, sums) in square.chunks(LANES).take(height).enumerate() {
                    place[row * stride..][..cols].copy_from_slice(&sums[..cols]);
                }
            }
        }
        clean
    }

    /// A tile of 32 x 32 sums; whether there is no NaN for sure.
    fn tile(
        &self,
        panel: usize,
        column: usize,
        out: &mut [f32],
        stride: usize,
        workshop: &mut Workshop,
        report: &mut KernelReport,
    ) -> bool {
        let Self { a, b, .. } = *self;
        let slabs = a.slabs_of_panel();
        // The exponent of the largest magnitude that a sum can have: 2^9 products a slab and 2^(4 w)
        // slabs, with some to spare for what rounding adds.
        let spare = 10 + (usize::BITS - slabs.leading_zeros()) as i32;
        let mut clean = true;
        let (mut slab, mut onto) = (0, false);
        let fits = |pairs: &&Pairs| [a.order(), b.order()] == [Some(pairs.order()); 2];
        let pairs = workshop.pairs.as_ref().filter(fits);
        // Whether tiles take the sums so far as they are; dot products always would, and share the rule.
        let mut fit = true;
        while slab < slabs {
            // As many slabs as one kernel can take.
            let mut end = slab;
            if let Some(pairs) = pairs {
                while end < slabs {
                    let (mut left, mut right) = (a.facts(panel, end), b.facts(column, end));
                    if !fit {
                        (left, right) = (left.with_any_last(), right.with_any_last());
                    }
                    if !report.count(Some(pairs.order()), &left, &right) {
                        break;
                    }
                    clean &= left.top + right.top + spare < 128;
                    end += 1;
                }
                if end > slab {
                    let (left, right) = (a.pairs(panel, slab..end), b.pairs(column, slab..end));
                    pairs.sums(left, right, out, stride, onto);
                    onto = true;
                }
            } else {
                report.count(None, &a.facts(panel, end), &b.facts(column, end));
            }
            if end < slabs {
                clean = false;
                let square = &mut workshop.square;
                if onto {
                    for (sums, row) in square.chunks_mut(LANES).zip(out.chunks(stride)) {
                        sums.copy_from_slice(&row[..LANES]);
                    }
                } else {
                    square.fill(0.0);
                }
                // Slab `end` is counted already, others as they come.
                loop {
                    let [left, right] = &mut workshop.wide;
                    let left = singles(a, panel, end, left);
                    let right = singles(b, column, end, right);
                    squares::sums(left, right, square);
                    end += 1;
                    if end == slabs || pairs.is_some() {
                        break;
                    }
                    report.count(None, &a.facts(panel, end), &b.facts(column, end));
                }
                fit = end == slabs || all_fit(square);
                for (sums, row) in square.chunks(LANES).zip(out.chunks_mut(stride)) {
                    row[..LANES].copy_from_slice(sums);
                }
                onto = true;
            }
            slab = end;
        }
        if !onto {
            out.chunks_mut(stride).for_each(|row| row[..LANES].fill(0.0));
        }
        clean
    }
}

/// A slab of a panel as binary32.
fn singles<'a>(
    of: &'a Packed,
    panel: usize,
    slab: usize,
    scratch: &'a mut Pooled<Line>,
) -> &'a [Line] {
    match of.numbers(panel, slab) {
        SlabNumbers::Singles(lines) => lines,
        SlabNumbers::Halves(order, lines) => {
            let side: Side = of.side();
            if scratch.is_empty() {
                *scratch = Pooled::zeros(SLAB_LINES);
            }
            let scratch = &mut scratch[..lines.len() / super::panel::PAIR_LINES * WIDE_LINES];
            widen(side, order, lines, scratch);
            scratch
        }
    }
}

kernel! {
    /// Whether all sums are multiples of the smallest normal number, or infinite or NaN. Sums with
    /// further multiples of it are then normal or zero.
    fn all_fit<'a>(sums: &'a Square) -> bool {
        // From 2^24 times that number on, the last bit of any sum is at least that number. Below,
        // the sum in units of it is small, and an integer if it is a multiple.
        const UNITS: f32 = f32::from_bits((126 + 127) << 23);
        let mut odd = 0_u32;
        for sum in sums {
            let units = sum.abs() * UNITS;
            let small = units < 16_777_216.0;
            odd |= u32::from(small) & u32::from((units as i32) as f32 != units);
        }
        odd == 0
    }
}

kernel! {
    fn finish<'a>(factor: f32, sums: &'a mut [f32]) {
        for sum in sums {
            *sum = Scaling::OVERWRITE.finish(*sum, factor, 0.0);
        }
    }
}

kernel! {
    fn add<'a>(with: Scaling, factor: f32, sums: &'a [f32], out: &'a mut [f32]) {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = with.finish(*sum, factor, *out);
        }
    }
}
