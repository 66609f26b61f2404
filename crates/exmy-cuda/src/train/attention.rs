//! Softmax attention: calls of `kernels/layers/attention.cu`, as many sequences at a time as the working
//! memory has room for, or one sequence that goes on behind a cache.

#![allow(unsafe_code)]

use exmy_train::nn::attention::Shape;
use exmy_train::nn::device::{Slice, SliceMut, SoftmaxAttention};

use super::Cuda;
use super::memory::Parts;
use super::norms::expect;
use crate::Result;
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::ATTENTION;

/// Working memory is at most this many elements, if one sequence needs no more.
const MOST: usize = 1 << 28;

/// `Heads` of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Heads {
    batch: u32,
    sequence: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    row: u32,
}

// SAFETY: six fields of 32 bits.
unsafe impl Plain for Heads {}

impl Heads {
    fn new(shape: &Shape, batch: usize) -> Self {
        let [batch, sequence, heads, kv_heads, head_dim, row] =
            [batch, shape.sequence, shape.heads, shape.kv_heads, shape.head_dim, shape.row()]
                .map(|x| x as u32);
        Self { batch, sequence, heads, kv_heads, head_dim, row }
    }
}

/// One of q, k, v or y of the first head: rows of a matrix from a column on.
struct Rows<'a> {
    data: Slice<'a, Cuda>,
    width: usize,
    column: usize,
}

impl<'a> Rows<'a> {
    /// The same from a sequence on.
    fn launch<'b>(&self, launch: Launch<'b>, shape: &Shape, first: usize) -> Launch<'b> {
        let start = first * shape.sequence * self.width + self.column;
        let data = self.data.part(start..self.data.len());
        launch.slice(data).value((shape.sequence * self.width) as u64).value(self.width as u32)
    }
}

fn scale(shape: &Shape) -> f32 {
    1.0 / (shape.head_dim as f32).sqrt()
}

/// Elements of the probabilities of one sequence.
fn square(shape: &Shape) -> usize {
    shape.heads * shape.sequence * shape.row()
}

#[track_caller]
fn check(shape: &Shape, sizes: [(&str, usize, usize); 3]) -> bool {
    assert!(
        shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads),
        "{} heads cannot share {} key heads evenly",
        shape.heads,
        shape.kv_heads
    );
    sizes
        .into_iter()
        .for_each(|(what, found, expected)| expect("attention", what, found, expected));
    shape.batch * shape.sequence > 0 && shape.width() > 0
}

/// The kernels of softmax and its backward that hold a row in registers, if one does.
const fn kernels(shape: &Shape) -> (&'static str, &'static str) {
    match shape.sequence {
        0..=256 => ("softmax_256", "softmax_backward_256"),
        257..=1024 => ("softmax_1024", "softmax_backward_1024"),
        _ => ("softmax_any", "softmax_backward_any"),
    }
}

/// Columns of the first query, key and value.
fn columns(shape: &Shape) -> [usize; 3] {
    let hd = shape.head_dim;
    [0, shape.heads * hd, (shape.heads + shape.kv_heads) * hd]
}

impl Cuda {
    /// Rows of tiles, and whether they are of 128 rows or of 64.
    fn tiles(&self, shape: &Shape, units: usize) -> (usize, bool) {
        let wide = shape.sequence.div_ceil(128);
        // Large tiles are faster where they are enough for all processors.
        let enough = units * wide >= 2 * self.device().properties().processors as usize;
        if enough && shape.sequence > 64 {
            (wide, true)
        } else {
            (shape.sequence.div_ceil(64), false)
        }
    }

    /// Unscaled products of rows: scores, or gradients of probabilities. `out` is from the first sequence on.
    fn triangle(
        &self,
        shape: &Shape,
        (first, count): (usize, usize),
        [a, b]: [&Rows<'_>; 2],
        out: Slice<'_, Self>,
    ) -> Result<()> {
        let units = count * shape.heads;
        let (tiles, wide) = self.tiles(shape, units);
        let name = if wide { "scores_wide" } else { "scores_small" };
        let launch = a.launch(Launch::new(self.device(), &ATTENTION, name), shape, first);
        let launch = b.launch(launch, shape, first).slice(out).value(Heads::new(shape, count));
        let grid = Grid::planar(units as u32, (tiles * (tiles + 1) / 2) as u32, 256);
        // SAFETY: the operands' lengths were compared with the shape, `out` has the squares of `count`.
        unsafe { launch.run(grid) }
    }

    /// Sums of rows `x`, weighted by the lower triangle `p`, or by its transpose.
    fn weighted(
        &self,
        shape: &Shape,
        (first, count): (usize, usize),
        (transposed, scale, add): (bool, f32, bool),
        p: Slice<'_, Self>,
        x: &Rows<'_>,
        (out, width, column): (&mut SliceMut<'_, Self>, usize, usize),
    ) -> Result<()> {
        let units = count * if transposed { shape.kv_heads } else { shape.heads };
        let (tiles, wide) = self.tiles(shape, units);
        let name = match (transposed, wide) {
            (false, false) => "lower_small",
            (false, true) => "lower_wide",
            (true, false) => "transposed_small",
            (true, true) => "transposed_wide",
        };
        let launch = Launch::new(self.device(), &ATTENTION, name).slice(p);
        let launch = x.launch(launch, shape, first);
        let start = first * shape.sequence * width + column;
        let mut out = out.part(start..out.len());
        let launch = launch.slice_mut(&mut out).value((shape.sequence * width) as u64);
        let launch = launch.value(width as u32).value(Heads::new(shape, count));
        let launch = launch.value(scale).value(u32::from(add));
        let mut grid = Grid::planar(units as u32, tiles as u32, if wide { 128 } else { 256 });
        grid.blocks[2] = shape.head_dim.div_ceil(64) as u32;
        // SAFETY: the operands' lengths were compared with the shape.
        unsafe { launch.run(grid) }
    }

    /// A kernel that has a row of probabilities in half a warp: its sequences, the gradients, a scale.
    fn by_rows(
        &self,
        name: &'static str,
        (shape, count): (&Shape, usize),
        p: Slice<'_, Self>,
        d: Option<Slice<'_, Self>>,
        scale: Option<f32>,
    ) -> Result<()> {
        let rows = count * shape.heads * shape.sequence;
        let launch = Launch::new(self.device(), &ATTENTION, name).slice(p);
        let launch = match d {
            Some(d) => launch.slice(d),
            None => launch,
        };
        let launch =
            launch.value(rows as u64).value(shape.sequence as u32).value(shape.row() as u32);
        let launch = match scale {
            Some(scale) => launch.value(scale),
            None => launch,
        };
        // SAFETY: the squares were compared with the shape: there are as many rows.
        unsafe { launch.run(Grid::cover(rows * 16, 128)) }
    }

    #[track_caller]
    fn is_split(&self, shape: &Shape, qkv: Slice<'_, Self>, square: usize) -> bool {
        let tokens = shape.batch * shape.sequence;
        check(
            shape,
            [
                ("qkv", qkv.len(), tokens * shape.qkv_width()),
                ("the square", square, shape.probabilities()),
                ("", 0, 0),
            ],
        )
    }

    fn dots(
        &self,
        shape: &Shape,
        [a, b]: [&Rows<'_>; 2],
        scale: f32,
        out: Slice<'_, Self>,
    ) -> Result<()> {
        let launch = Launch::new(self.device(), &ATTENTION, "split_scores");
        let launch = b.launch(a.launch(launch, shape, 0), shape, 0);
        let launch = launch.value(scale).slice(out).value(Heads::new(shape, shape.batch));
        let tiles = shape.sequence.div_ceil(16) as u32;
        let mut grid = Grid::planar((shape.batch * shape.heads) as u32, tiles, 256);
        grid.blocks[2] = tiles;
        // SAFETY: the operands' lengths were compared with the shape; rows of 16 cover those of the square.
        unsafe { launch.run(grid) }
    }
}

impl SoftmaxAttention for Cuda {
    fn attention_scratch(&self, shape: &Shape) -> usize {
        // Backward needs probabilities that were not kept, and gradients of scores.
        let one = 2 * square(shape);
        one * (MOST / one.max(1)).clamp(1, shape.batch.max(1))
    }

    fn attention(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        mut y: SliceMut<'_, Self>,
        probabilities: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let (tokens, keeps) = (shape.batch * shape.sequence, !probabilities.is_empty());
        let kept = if keeps { shape.probabilities() } else { 0 };
        let sizes = [
            ("qkv", qkv.len(), tokens * shape.qkv_width()),
            ("y", y.len(), tokens * shape.width()),
            ("the probabilities", probabilities.len(), kept),
        ];
        if !check(shape, sizes) {
            return;
        }
        let [q, k, v] =
            columns(shape).map(|column| Rows { data: qkv, width: shape.qkv_width(), column });
        let (square, width) = (square(shape), shape.width());
        let (softmax, _) = kernels(shape);
        let at_once = if keeps { shape.batch } else { at_once(shape, scratch.len(), square) };
        let (probabilities, scratch) = (probabilities.read(), scratch.read());
        self.attempt(|| {
            for first in (0..shape.batch).step_by(at_once) {
                let count = at_once.min(shape.batch - first);
                let p = if keeps {
                    probabilities.part(first * square..(first + count) * square)
                } else {
                    scratch.part(0..count * square)
                };
                self.triangle(shape, (first, count), [&q, &k], p)?;
                self.by_rows(softmax, (shape, count), p, None, Some(scale(shape)))?;
                let how = (false, 1.0, false);
                self.weighted(shape, (first, count), how, p, &v, (&mut y, width, 0))?;
            }
            Ok(())
        });
    }

    fn attention_cached(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        cache: Slice<'_, Self>,
        mut y: SliceMut<'_, Self>,
    ) {
        let (n, hd, keys) = (shape.sequence, shape.head_dim, shape.kv_heads * shape.head_dim);
        let stride = 2 * keys;
        let sizes = [
            ("batch", shape.batch, 1),
            ("qkv", qkv.len(), n * shape.qkv_width()),
            ("y", y.len(), n * shape.width()),
        ];
        if !check(shape, sizes) {
            return;
        }
        let tokens = cache.len() / stride;
        assert!(
            cache.len().is_multiple_of(stride) && tokens >= n,
            "a cache of {} elements has no rows of {stride} for {n} tokens",
            cache.len()
        );
        let past = (tokens - n) as u32;
        let (rows, row) = (shape.heads * n, tokens.next_multiple_of(16));
        let heads = Heads { row: row as u32, ..Heads::new(shape, 1) };
        self.with_scratch(rows * row, |p| {
            let launch = |name| Launch::new(self.device(), &ATTENTION, name);
            let scores = launch("cached_scores").slice(qkv).value(shape.qkv_width() as u32);
            let scores = scores.slice(cache).value(stride as u32).write(p).value(heads);
            let grid = Grid::planar(rows as u32, tokens.div_ceil(256) as u32, 256);
            // SAFETY: the operands' lengths were compared with the shape, and `p` has a row of the cache's
            // tokens for each head of each new token.
            unsafe { scores.value(past).run(grid)? };
            let softmax = launch("cached_softmax").write(p).value(heads).value(past);
            // SAFETY: as above; rows are filled up to sixteen.
            unsafe { softmax.value(scale(shape)).run(Grid::cover(rows * 16, 128))? };
            let values = launch("cached_values").read(p);
            let values = values.slice(cache.part(keys..cache.len())).value(stride as u32);
            let values = values.slice_mut(&mut y).value(heads).value(past);
            // SAFETY: as above.
            unsafe { values.run(Grid::planar(rows as u32, hd.div_ceil(64) as u32, 64)) }
        });
    }

    fn attention_backward(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        probabilities: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        mut dqkv: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let (tokens, keeps) = (shape.batch * shape.sequence, !probabilities.is_empty());
        let kept = if keeps { shape.probabilities() } else { 0 };
        let sizes = [
            ("qkv", qkv.len(), tokens * shape.qkv_width()),
            ("dy", dy.len(), tokens * shape.width()),
            ("the probabilities", probabilities.len(), kept),
        ];
        expect("attention", "dqkv", dqkv.len(), qkv.len());
        if !check(shape, sizes) {
            return;
        }
        let (square, width) = (square(shape), shape.qkv_width());
        let columns = columns(shape);
        let [q, k, v] = columns.map(|column| Rows { data: qkv, width, column });
        let dy = Rows { data: dy, width: shape.width(), column: 0 };
        let own = if keeps { 0 } else { square };
        let (softmax, softmax_backward) = kernels(shape);
        let at_once = at_once(shape, scratch.len(), square + own);
        let scratch = scratch.read();
        self.attempt(|| {
            for first in (0..shape.batch).step_by(at_once) {
                let part @ (_, count) = (first, at_once.min(shape.batch - first));
                let (ds, scale) = (scratch.part(0..count * square), Some(scale(shape)));
                let p = if keeps {
                    probabilities.part(first * square..(first + count) * square)
                } else {
                    let p = scratch.part(count * square..2 * count * square);
                    self.triangle(shape, part, [&q, &k], p)?;
                    self.by_rows(softmax, (shape, count), p, None, scale)?;
                    p
                };
                self.triangle(shape, part, [&dy, &v], ds)?;
                self.by_rows(softmax_backward, (shape, count), p, Some(ds), scale)?;
                let mut sums = |transposed, p, x, column| {
                    self.weighted(
                        shape,
                        part,
                        (transposed, 1.0, false),
                        p,
                        x,
                        (&mut dqkv, width, column),
                    )
                };
                sums(false, ds, &k, columns[0])?;
                sums(true, ds, &q, columns[1])?;
                sums(true, p, &dy, columns[2])?;
            }
            Ok(())
        });
    }

    fn scores(&self, shape: &Shape, qkv: Slice<'_, Self>, s: SliceMut<'_, Self>) {
        if !self.is_split(shape, qkv, s.len()) {
            return;
        }
        let width = shape.qkv_width();
        let [q, k, _] = columns(shape).map(|column| Rows { data: qkv, width, column });
        self.attempt(|| self.dots(shape, [&q, &k], scale(shape), s.read()));
    }

    fn softmax(&self, shape: &Shape, s: SliceMut<'_, Self>) {
        expect("softmax", "s", s.len(), shape.probabilities());
        if !s.is_empty() {
            self.attempt(|| {
                self.by_rows("split_softmax", (shape, shape.batch), s.read(), None, None)
            });
        }
    }

    fn weigh(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        mut y: SliceMut<'_, Self>,
    ) {
        expect("weigh", "y", y.len(), shape.batch * shape.sequence * shape.width());
        if !self.is_split(shape, qkv, p.len()) {
            return;
        }
        let v = Rows { data: qkv, width: shape.qkv_width(), column: columns(shape)[2] };
        let how = (false, 1.0, false);
        let all = (0, shape.batch);
        self.attempt(|| self.weighted(shape, all, how, p, &v, (&mut y, shape.width(), 0)));
    }

    fn weigh_backward(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        mut dqkv: SliceMut<'_, Self>,
        dp: SliceMut<'_, Self>,
    ) {
        expect("weigh_backward", "dqkv", dqkv.len(), qkv.len());
        expect("weigh_backward", "dp", dp.len(), p.len());
        expect("weigh_backward", "dy", dy.len(), shape.batch * shape.sequence * shape.width());
        if !self.is_split(shape, qkv, p.len()) {
            return;
        }
        let (width, column) = (shape.qkv_width(), columns(shape)[2]);
        let v = Rows { data: qkv, width, column };
        let dy = Rows { data: dy, width: shape.width(), column: 0 };
        self.set_all(dqkv.again(), 0.0);
        let (all, how) = ((0, shape.batch), (true, 1.0, false));
        self.attempt(|| {
            self.weighted(shape, all, how, p, &dy, (&mut dqkv, width, column))?;
            self.dots(shape, [&dy, &v], 1.0, dp.read())
        });
    }

    fn softmax_backward(&self, shape: &Shape, p: Slice<'_, Self>, d: SliceMut<'_, Self>) {
        expect("softmax_backward", "p", p.len(), shape.probabilities());
        expect("softmax_backward", "d", d.len(), p.len());
        if !p.is_empty() {
            let name = "split_softmax_backward";
            self.attempt(|| self.by_rows(name, (shape, shape.batch), p, Some(d.read()), None));
        }
    }

    fn scores_backward(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        ds: Slice<'_, Self>,
        mut dqkv: SliceMut<'_, Self>,
    ) {
        expect("scores_backward", "dqkv", dqkv.len(), qkv.len());
        if !self.is_split(shape, qkv, ds.len()) {
            return;
        }
        let (width, all) = (shape.qkv_width(), (0, shape.batch));
        let [q, k, _] = columns(shape).map(|column| Rows { data: qkv, width, column });
        // On top of what is there, as the CPU adds.
        let [to_q, to_k, _] = columns(shape);
        self.attempt(|| {
            let mut sums = |transposed, x, column| {
                let how = (transposed, scale(shape), true);
                self.weighted(shape, all, how, ds, x, (&mut dqkv, width, column))
            };
            sums(false, &k, to_q)?;
            sums(true, &q, to_k)
        });
    }
}

/// How many sequences the working memory has room for.
#[track_caller]
fn at_once(shape: &Shape, scratch: usize, one: usize) -> usize {
    assert!(scratch >= one, "scratch has {scratch} elements, {shape:?} needs {one}");
    (scratch / one).min(shape.batch)
}
