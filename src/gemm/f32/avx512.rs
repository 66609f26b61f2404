//! The f32 product on vectors of sixteen, in the order of [`f32`](super).
//!
//! A tile of 8 x 48 sums stays in 24 registers along a whole block of K, each sum a chain of its
//! own; then it is stored or added. The right operand is packed, a block of K of up to [`NEAR`]
//! columns at a time, which stays in the second-level cache while all rows pass. Rows of the left one
//! are read where they lie, or packed eight at a time where they are columns in memory.
//!
//! [`PackedColumns`] are the same tiles for products whose operands lie elsewhere: attention's.

// Loops over rows and vectors of fixed number, indexed alike in several arrays.
#![allow(clippy::needless_range_loop)]
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m512, __mmask16, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
};
use core::ops::Range;
use std::cell::{Cell, RefCell};

use super::{K_BLOCK, Output};
use crate::gemm::transpose::transpose;
use crate::parallel;
use crate::slice::View;
use crate::slice::memory::fetch;

/// Rows of a tile.
const ROWS: usize = 8;
/// Numbers of a vector.
const WIDTH: usize = 16;
/// Vectors across a tile.
const ACROSS: usize = 3;
/// Columns whose block of K is packed at once: 1 MiB, half of a second-level cache.
const NEAR: usize = 1008;

/// Numbers of a tile's columns in a whole block of K.
const CHUNK: usize = K_BLOCK * WIDTH * ACROSS;
/// Numbers of a panel of the left operand: eight rows in a whole block of K.
const PANEL: usize = K_BLOCK * ROWS;
/// Panels that hold as many numbers as a tile's columns.
const PANELS: usize = CHUNK / PANEL;
/// Numbers that are packed before they are multiplied, but for a single block of K that has more: 8 MiB,
/// which the threads' caches hold together.
const MOST_PACKED: usize = 1 << 21;
/// Rows in memory that packing asks for before it copies them: a row's piece is too short, and too far from
/// the one before, for the processor's own prefetching.
const AHEAD: usize = 16;

/// Where a part of the output lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) first: *mut f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

// SAFETY: a place is a way to write numbers that its maker owns exclusively and divides between
// threads, no number twice; it holds nothing that belongs to a thread.
unsafe impl Send for Place {}
// SAFETY: as above; a copy of it is of no use to a thread that was not given a part.
unsafe impl Sync for Place {}

thread_local! {
    /// Packed blocks, whose memory serves call after call: what is there is overwritten.
    static PACKED: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    /// The same for a product that all threads make, owned by the one that asks for it.
    static SHARED: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// The left operand.
#[derive(Clone, Copy)]
enum Left<'a> {
    /// Its rows are adjacent numbers, or it is packed where it is needed.
    View(View<'a, f32>),
    /// Packed by panels of rows, [`PANEL`] numbers each.
    Packed(&'a [f32]),
}

impl Left<'_> {
    /// `rows` rows from row `i`, all of one panel, in the block `k`; and the steps from row to row and from
    /// position to position.
    fn rows<'b>(
        &'b self,
        (i, rows): (usize, usize),
        k: &Range<usize>,
        own: &'b mut [f32],
    ) -> (&'b [f32], [usize; 2]) {
        match self {
            Self::View(a) if a.col_stride() == 1 => {
                let first = (i * a.row_stride() + k.start).min(a.data().len());
                (&a.data()[first..], [a.row_stride(), 1])
            }
            Self::View(a) => {
                pack_left(*a, i..i + rows, k.clone(), own);
                (own, [1, ROWS])
            }
            Self::Packed(panels) => (&panels[i / ROWS * PANEL + i % ROWS..], [1, ROWS]),
        }
    }
}

/// What one block of K adds to a part of the output: rows `from` and on of the left operand with the packed
/// columns of the right one.
///
/// # Safety
/// This CPU has AVX-512 F; `c` is a place inside of memory that nothing else reads or writes meanwhile.
/// `left` has `c.rows` rows from `from`, a multiple of eight if they are packed, with all positions of `k`;
/// `right` holds `c.cols` columns of as many.
unsafe fn block(
    (left, from): (Left<'_>, usize),
    right: &[f32],
    k: &Range<usize>,
    c: Place,
    end: End,
    own: &mut [f32],
) {
    let wide = WIDTH * ACROSS;
    let mut i = 0;
    while i < c.rows {
        let rows = match c.rows - i {
            ROWS.. => ROWS,
            4.. => 4,
            _ => 1,
        };
        let (numbers, steps) = left.rows((from + i, rows), k, own);
        for (at, packed) in (0..c.cols).step_by(wide).zip(right.chunks(K_BLOCK * wide)) {
            let width = (c.cols - at).min(wide);
            // SAFETY: row `i` and column `at` are in the place.
            let out = unsafe { c.first.add(i * c.stride + at) };
            let step = width.next_multiple_of(WIDTH);
            let tile = Tile { packed, step, len: k.len(), out, stride: c.stride, width, end };
            // SAFETY: `numbers` holds `rows` rows of the block's positions: a view's elements lie in its
            // data, and packed rows were written. `packed` holds as many rows of the tile's vectors. The
            // CPU is the caller's promise.
            unsafe { rows_of_sums(rows, numbers, steps, tile) };
        }
        i += rows;
    }
}

/// `c = a b` or `c += a b` on the calling thread.
///
/// # Safety
/// This CPU has AVX-512 F; `c` is a place of as many rows as `a` and columns as `b`, inside of
/// memory that nothing else reads or writes meanwhile; `a` has as many columns as `b` rows.
pub(super) unsafe fn matmul(a: View<'_, f32>, b: View<'_, f32>, c: Place, output: Output) {
    PACKED.with_borrow_mut(|(right, own)| {
        right.resize(K_BLOCK * NEAR, 0.0);
        own.resize(PANEL, 0.0);
        for j in (0..c.cols).step_by(NEAR) {
            let cols = NEAR.min(c.cols - j);
            for k in blocks(a.cols()) {
                pack_right(b, k.clone(), j..j + cols, right);
                let part = Place { first: c.first.wrapping_add(j), cols, ..c };
                let left = (Left::View(a), 0);
                // SAFETY: columns `j..j + cols` of the place; the shapes are the caller's promise, and the
                // block was packed.
                unsafe { block(left, right, &k, part, end(&k, output), own) };
            }
        }
    });
}

/// The blocks of K; one even for K = 0, whose product is +0.
fn blocks(depth: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    (0..depth.div_ceil(K_BLOCK).max(1)).map(move |block| {
        let first = block * K_BLOCK;
        first..depth.min(first + K_BLOCK)
    })
}

/// The first block's sums are stored, unless they are added to what is there.
fn end(k: &Range<usize>, output: Output) -> End {
    if k.start > 0 || output == Output::Accumulate { End::Add } else { End::Store }
}

/// [`matmul`] by all threads. Operands are packed once for all of them, some blocks of K at a time, in
/// chunks that threads divide. Then they divide the output, into many pieces a thread: a thread that is
/// held up delays the others by no more than one piece.
///
/// # Safety
/// As [`matmul`].
pub(super) unsafe fn matmul_by_all(a: View<'_, f32>, b: View<'_, f32>, c: Place, output: Output) {
    let depth = a.cols();
    let tiles = c.cols.div_ceil(WIDTH * ACROSS);
    // Rows of numbers that are not adjacent are packed too.
    let transposed = a.col_stride() != 1;
    let left_chunks = if transposed { c.rows.div_ceil(ROWS * PANELS) } else { 0 };
    let chunks = tiles + left_chunks;
    let all = blocks(depth).len();
    let parts = all.div_ceil((MOST_PACKED / (chunks * CHUNK)).max(1));
    let at_once = all.div_ceil(parts);
    // A nested call on this thread finds none, and makes its own.
    let mut packed = SHARED.take();
    packed.resize(packed.len().max(at_once * chunks * CHUNK), 0.0);
    for first in (0..all).step_by(at_once) {
        let last = all.min(first + at_once);
        let k = |block: usize| block * K_BLOCK..depth.min((block + 1) * K_BLOCK);
        let packed = &mut packed[..(last - first) * chunks * CHUNK];
        parallel::for_each_chunk(packed, CHUNK, |i, out| {
            let (k, chunk) = (k(first + i / chunks), i % chunks);
            if let Some(left_chunk) = chunk.checked_sub(tiles) {
                let top = left_chunk * PANELS * ROWS;
                pack_left_panels(a, top..c.rows.min(top + PANELS * ROWS), k, out);
            } else {
                let left = chunk * WIDTH * ACROSS;
                pack_right(b, k, left..c.cols.min(left + WIDTH * ACROSS), out);
            }
        });
        let packed = &*packed;
        // Packed columns stay near while all rows pass: of one block, or of all these blocks where rows are
        // packed too and may be read again.
        let near = NEAR / if transposed { last - first } else { 1 };
        let (high, wide) = piece((c.rows, tiles), (last - first) * K_BLOCK.min(depth.max(1)), near);
        let down = c.rows.div_ceil(high);
        parallel::for_each_index(down * tiles.div_ceil(wide), |i| {
            // All of `c`, not the pointer in it alone, is what may be sent.
            let whole = c;
            let (top, tile) = (i % down * high, i / down * wide);
            let left = tile * WIDTH * ACROSS;
            let rows = high.min(whole.rows - top);
            let cols = (wide * WIDTH * ACROSS).min(whole.cols - left);
            let place = whole.first.wrapping_add(top * whole.stride + left);
            let part = Place { first: place, rows, cols, ..whole };
            for (packed, block_of_k) in packed.chunks(chunks * CHUNK).zip(first..last) {
                let k = k(block_of_k);
                let (right, panels) = packed.split_at(tiles * CHUNK);
                let rows = if transposed { Left::Packed(panels) } else { Left::View(a) };
                let end = end(&k, output);
                // SAFETY: a part of the place that no other piece has, whose top is a multiple of eight;
                // the shapes are the caller's promise, and the block was packed.
                unsafe { block((rows, top), &right[tile * CHUNK..], &k, part, end, &mut []) };
            }
        });
    }
    SHARED.set(packed);
}

/// Rows and tiles across of the pieces of an output of `rows` rows and `tiles` tiles across, each a sum of
/// `depth` products. Whole rows, or at most `near` columns: packed, those stay in the second-level cache.
fn piece((rows, tiles): (usize, usize), depth: usize, near: usize) -> (usize, usize) {
    /// Pieces a thread makes.
    const EACH: usize = 16;
    /// Multiply-adds that are worth a piece of their own: some twenty microseconds.
    const LEAST: usize = 1 << 20;
    let panels = rows.div_ceil(ROWS);
    let least = LEAST.div_ceil(ROWS * WIDTH * ACROSS * depth);
    let area = (panels * tiles).div_ceil(EACH * parallel::threads()).max(least);
    let most = (near / (WIDTH * ACROSS)).max(1);
    let even = tiles.div_ceil(tiles.div_ceil(most));
    let wide = even.min(area);
    (area.div_ceil(wide).min(panels) * ROWS, wide)
}

/// A block of K of the right operand: tile by tile, row by row, its columns in whole vectors.
fn pack_right(b: View<'_, f32>, k: Range<usize>, cols: Range<usize>, out: &mut [f32]) {
    let wide = WIDTH * ACROSS;
    let tiles = cols.clone().step_by(wide).zip(out.chunks_mut(K_BLOCK * wide));
    for (j, out) in tiles {
        let width = wide.min(cols.end - j);
        let whole = width.next_multiple_of(WIDTH);
        if b.col_stride() == 1 {
            for (k, out) in k.clone().zip(out.chunks_mut(whole)) {
                let row = &b.data()[k * b.row_stride() + j..][..width];
                fetch(row, AHEAD * b.row_stride());
                match (row.as_chunks::<48>().0, out.as_chunks_mut::<48>().0) {
                    ([row], [out]) => *out = *row,
                    _ => {
                        out[..width].copy_from_slice(row);
                        out[width..].fill(0.0);
                    }
                }
            }
            continue;
        }
        if b.row_stride() == 1 && !k.is_empty() {
            if whole > width {
                out[..k.len() * whole].fill(0.0);
            }
            let from = &b.data()[j * b.col_stride() + k.start..];
            transpose(from, b.col_stride(), (k.len(), width), out, whole);
            continue;
        }
        for c in 0..whole {
            let column = out[c..].iter_mut().step_by(whole).take(k.len());
            if c < width {
                column.zip(k.clone()).for_each(|(out, k)| *out = b.at(k, j + c));
            } else {
                column.for_each(|out| *out = 0.0);
            }
        }
    }
}

/// Rows of the left operand, interleaved: up to eight.
fn pack_left(a: View<'_, f32>, rows: Range<usize>, k: Range<usize>, out: &mut [f32]) {
    let count = rows.len();
    if a.row_stride() == 1 && count == ROWS {
        let out = out.as_chunks_mut::<ROWS>().0;
        for (k, out) in k.zip(out) {
            let from = a.data()[k * a.col_stride() + rows.start..].as_chunks::<ROWS>().0;
            *out = from[0];
        }
        return;
    }
    for (k, out) in k.zip(out.chunks_mut(ROWS)) {
        for (i, out) in rows.clone().zip(out) {
            *out = a.at(i, k);
        }
    }
}

/// [`PANELS`] panels of the left operand, each as [`pack_left`] leaves it. Columns in memory are read once,
/// for all of them: where their distance is a power of two they share few places of the first-level cache.
fn pack_left_panels(a: View<'_, f32>, rows: Range<usize>, k: Range<usize>, out: &mut [f32]) {
    if a.row_stride() == 1 && rows.len() == PANELS * ROWS {
        for (at, k) in k.enumerate() {
            let from = &a.data()[k * a.col_stride() + rows.start..][..PANELS * ROWS];
            fetch(from, AHEAD * a.col_stride());
            for (panel, out) in from.as_chunks::<ROWS>().0.iter().zip(out.chunks_exact_mut(PANEL)) {
                out[at * ROWS..][..ROWS].copy_from_slice(panel);
            }
        }
        return;
    }
    for (top, out) in rows.clone().step_by(ROWS).zip(out.chunks_mut(PANEL)) {
        pack_left(a, top..rows.end.min(top + ROWS), k.clone(), out);
    }
}

/// What becomes of the sums of a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum End {
    /// They start at +0 and are stored.
    Store,
    /// They start at +0 and are added to what is there.
    Add,
    /// They go on from what is there, each a single chain with it, and are stored.
    Chain,
}

/// A tile of the output and the columns that make it.
#[derive(Clone, Copy)]
struct Tile<'a> {
    packed: &'a [f32],
    /// From row to row of the packed columns.
    step: usize,
    len: usize,
    out: *mut f32,
    stride: usize,
    width: usize,
    end: End,
}

/// The columns of a right operand in tiles of 48, packed: tile by tile, row by row, the last tile
/// in whole vectors.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct PackedColumns<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
}

impl<'a> PackedColumns<'a> {
    /// Numbers that packing takes.
    #[doc(hidden)]
    pub const fn packed_len(rows: usize, cols: usize) -> usize {
        rows * cols.next_multiple_of(WIDTH)
    }

    /// Packs `rows` rows of `cols` numbers, row `k` of which begins at `k * stride`.
    #[doc(hidden)]
    pub fn pack(
        from: &[f32],
        stride: usize,
        (rows, cols): (usize, usize),
        data: &'a mut [f32],
    ) -> Self {
        let wide = WIDTH * ACROSS;
        let data = &mut data[..Self::packed_len(rows, cols)];
        for (at, out) in (0..cols).step_by(wide).zip(data.chunks_mut((rows * wide).max(1))) {
            let width = wide.min(cols - at);
            let whole = width.next_multiple_of(WIDTH);
            for (k, out) in out.chunks_mut(whole).enumerate() {
                out[..width].copy_from_slice(&from[k * stride + at..][..width]);
                out[width..].fill(0.0);
            }
        }
        Self { data, rows, cols }
    }

    /// Packs the transposed matrix: column `j` of the operand is the row of `rows` numbers that
    /// begins at `j * stride`.
    #[doc(hidden)]
    pub fn pack_transposed(
        from: &[f32],
        stride: usize,
        (rows, cols): (usize, usize),
        data: &'a mut [f32],
    ) -> Self {
        let wide = WIDTH * ACROSS;
        let data = &mut data[..Self::packed_len(rows, cols)];
        for (at, out) in (0..cols).step_by(wide).zip(data.chunks_mut((rows * wide).max(1))) {
            let width = wide.min(cols - at);
            let whole = width.next_multiple_of(WIDTH);
            if whole > width {
                out.fill(0.0);
            }
            transpose(&from[at * stride..], stride, (rows, width), out, whole);
        }
        Self { data, rows, cols }
    }

    /// Sums of `rows` rows with columns `0..width` over positions `range`, each one chain of fused
    /// multiply-adds, ascending: element (r, k) of the left operand is
    /// `left[r * steps[0] + (k - range.start) * steps[1]]`, of the output `out[r * stride + j]`.
    ///
    /// # Panics
    /// If anything lies outside of its slice, or the level in force has no vectors of sixteen.
    #[inline]
    #[doc(hidden)]
    pub fn chains(
        &self,
        rows: usize,
        left: &[f32],
        steps: [usize; 2],
        range: Range<usize>,
        out: &mut [f32],
        (stride, width): (usize, usize),
        end: End,
    ) {
        let len = range.len();
        if rows == 0 || width == 0 {
            return;
        }
        assert!(super::has_vectors() && range.end <= self.rows && width <= self.cols);
        assert!(len == 0 || left.len() > (rows - 1) * steps[0] + (len - 1) * steps[1]);
        assert!(out.len() >= (rows - 1) * stride + width && (rows == 1 || stride >= width));
        let wide = WIDTH * ACROSS;
        let mut i = 0;
        while i < rows {
            let some = match rows - i {
                ROWS.. => ROWS,
                4.. => 4,
                _ => 1,
            };
            let from = if len == 0 { left } else { &left[i * steps[0]..] };
            for at in (0..width).step_by(wide) {
                let step = wide.min(self.cols - at).next_multiple_of(WIDTH);
                let packed = &self.data[self.rows * at + range.start * step..][..len * step];
                let place = &mut out[i * stride + at..];
                let tile = Tile {
                    packed,
                    step,
                    len,
                    out: place.as_mut_ptr(),
                    stride,
                    width: wide.min(width - at),
                    end,
                };
                // SAFETY: the level has AVX-512. By the assertions the rows of the left operand and
                // of the output lie in their slices. `packed` holds `len` rows of at least as many
                // vectors as the tile is wide.
                unsafe { rows_of_sums(some, from, steps, tile) };
            }
            i += some;
        }
    }
}

/// [`sums`] of 8, 4 or 1 rows.
///
/// # Safety
/// As there.
#[inline]
unsafe fn rows_of_sums(rows: usize, from: &[f32], steps: [usize; 2], tile: Tile<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match (rows, tile.width.div_ceil(WIDTH)) {
            (ROWS, 3) => sums::<ROWS, 3>(from, steps, tile),
            (ROWS, 2) => sums::<ROWS, 2>(from, steps, tile),
            (ROWS, _) => sums::<ROWS, 1>(from, steps, tile),
            (4, 3) => sums::<4, 3>(from, steps, tile),
            (4, 2) => sums::<4, 2>(from, steps, tile),
            (4, _) => sums::<4, 1>(from, steps, tile),
            (_, 3) => sums::<1, 3>(from, steps, tile),
            (_, 2) => sums::<1, 2>(from, steps, tile),
            _ => sums::<1, 1>(from, steps, tile),
        }
    }
}

/// The sums of `R` rows and `V` vectors over `len` positions.
///
/// # Safety
/// The CPU has AVX-512 F. Element (r, k) of the left operand is `left[r * steps[0] + k * steps[1]]`
/// for all rows and `len` positions. `packed` holds `len` rows of `V` vectors, `step` apart. `out` is
/// a tile of `R` rows of `width` numbers, more than `V - 1` vectors and at most `V`.
#[target_feature(enable = "avx512f")]
unsafe fn sums<const R: usize, const V: usize>(left: &[f32], steps: [usize; 2], tile: Tile<'_>) {
    let Tile { packed, step, len, out, stride, width, end } = tile;
    let rest = width - (V - 1) * WIDTH;
    let last: __mmask16 = if rest == WIDTH { u16::MAX } else { (1 << rest) - 1 };
    let mask = |v: usize| if v + 1 == V { last } else { u16::MAX };
    let mut sums: [[__m512; V]; R] = [[_mm512_setzero_ps(); V]; R];
    if end == End::Chain {
        for r in 0..R {
            for v in 0..V {
                let place = out.wrapping_add(r * stride + v * WIDTH);
                // SAFETY: under the mask, numbers of the tile.
                sums[r][v] = unsafe { _mm512_maskz_loadu_ps(mask(v), place) };
            }
        }
    }
    let mut rows = [left.as_ptr(); R];
    for (r, row) in rows.iter_mut().enumerate() {
        *row = row.wrapping_add(r * steps[0]);
    }
    let (mut right, mut at) = (packed.as_ptr(), 0);
    for _ in 0..len {
        let mut b = [_mm512_setzero_ps(); V];
        for v in 0..V {
            // SAFETY: a row of the packed columns, `V` vectors of which are there.
            b[v] = unsafe { _mm512_loadu_ps(right.wrapping_add(v * WIDTH)) };
        }
        for r in 0..R {
            // SAFETY: an element of the left operand.
            let a = _mm512_set1_ps(unsafe { *rows[r].wrapping_add(at) });
            for v in 0..V {
                sums[r][v] = _mm512_fmadd_ps(a, b[v], sums[r][v]);
            }
        }
        right = right.wrapping_add(step);
        at += steps[1];
    }
    for r in 0..R {
        for v in 0..V {
            let place = out.wrapping_add(r * stride + v * WIDTH);
            // SAFETY: under the mask, numbers of the tile; others are not touched.
            unsafe {
                let sum = match end {
                    End::Add => _mm512_add_ps(_mm512_maskz_loadu_ps(mask(v), place), sums[r][v]),
                    _ => sums[r][v],
                };
                _mm512_mask_storeu_ps(place, mask(v), sum);
            }
        }
    }
}

#[cfg(all(test, feature = "parallel"))]
mod tests {
    use super::*;

    /// By hand: an output of 768 x 768 is 96 panels by 16 tiles. With 16 pieces for each of 16 threads, a
    /// piece has six of those, unless such short sums are not worth it.
    #[test]
    fn pieces_are_many_unless_they_are_small() {
        let near = |near, threads, rows, tiles, depth| {
            parallel::with_threads(threads, || piece((rows, tiles), depth, near)).unwrap()
        };
        let of = |threads, rows, tiles, depth| near(NEAR, threads, rows, tiles, depth);
        assert_eq!(of(16, 768, 16, 1024), (8, 6));
        assert_eq!(of(2, 768, 16, 1024), (3 * ROWS, 16));
        // 2^20 multiply-adds are 342 tiles of 8 x 48 x 8: all columns, 22 panels of rows.
        assert_eq!(of(16, 768, 16, 8), (22 * ROWS, 16));
        // No piece is higher than the output or wider than what stays in the cache.
        assert_eq!(of(2, 3, 1, 1), (ROWS, 1));
        assert_eq!(of(2, 4096, 40, 1 << 20).1, 20);
        // 86 panels by 6 tiles are 17 for each of 32 pieces: the two tiles of 126 columns, and 9 panels.
        assert_eq!(near(NEAR / 8, 2, 683, 6, 2048), (9 * ROWS, 2));
        assert_eq!(near(WIDTH, 2, 683, 6, 2048), (17 * ROWS, 1));
    }
}
