//! Gated linear attention: calls of `kernels/layers/gla.cu`, a block for each sequence and head, and of
//! `kernels/layers/elementwise.cu` for its gates.

#![allow(unsafe_code)]

use exmy_train::nn::device::{LinearAttention, Matrix, MatrixMut, Slice, SliceMut};
use exmy_train::nn::gla::{CHUNK, Shape};

use super::Cuda;
use super::memory::Parts;
use super::norms::expect;
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::GLA;

/// Working memory is at most this many elements, if one sequence needs no more.
const MOST: usize = 1 << 28;

/// `Gla` of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Sizes([u32; 6]);

// SAFETY: six fields of 32 bits.
unsafe impl Plain for Sizes {}

fn sizes(shape: &Shape, stride: usize) -> Sizes {
    let row = row(shape);
    Sizes([shape.sequence, shape.heads, shape.key, shape.value, row, stride].map(|x| x as u32))
}

/// Values of a row, filled up to whole lanes.
const fn row(shape: &Shape) -> usize {
    shape.value.next_multiple_of(16)
}

/// Elements of a block's working memory: a state or its gradient, the chunk, and what backward adds.
const fn unit(shape: &Shape, backward: bool) -> usize {
    let (key, row) = (shape.key, row(shape));
    let chunk = 5 * 17 * key + 16 * (row + 1) + 256 + key;
    let more = if backward { 16 * (row + 1) + 256 + key + 2 * 17 * key } else { 0 };
    key * row + chunk + more
}

/// Elements of the states at the chunks' beginnings, of one sequence and head.
const fn states(shape: &Shape) -> usize {
    shape.sequence.div_ceil(CHUNK) * shape.key * row(shape)
}

#[track_caller]
fn check(shape: &Shape, stride: usize, sizes: [(&str, usize, usize); 3]) {
    assert!(stride >= shape.qkv_width(), "rows of {stride} cannot hold q, k, v of {shape:?}");
    sizes.into_iter().for_each(|(what, found, expected)| expect("gla", what, found, expected));
}

impl Cuda {
    /// Bytes of shared memory for the working memory of a block; 0 if it does not fit.
    fn shared_for(&self, elements: usize) -> u32 {
        let bytes = 4 * elements;
        if bytes <= self.device().properties().shared as usize { bytes as u32 } else { 0 }
    }

    /// Elements that one sequence asks for, forward or backward.
    fn gla_sequence(&self, shape: &Shape, backward: bool) -> usize {
        let own = unit(shape, backward);
        let work = if self.shared_for(own) > 0 { 0 } else { own };
        shape.heads * (work + if backward { states(shape) } else { 0 })
    }
}

impl LinearAttention for Cuda {
    fn gla_scratch(&self, shape: &Shape) -> usize {
        let one = self.gla_sequence(shape, true).max(self.gla_sequence(shape, false));
        one * (MOST / one.max(1)).clamp(1, shape.batch.max(1))
    }

    fn gla(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        stride: usize,
        alpha: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
        held: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let tokens = shape.batch * shape.sequence;
        let lengths = [
            ("qkv", qkv.len(), tokens * stride),
            ("alpha", alpha.len(), tokens * shape.keys()),
            ("y", y.len(), tokens * shape.values()),
        ];
        check(shape, stride, lengths);
        if !held.is_empty() {
            expect("gla", "states", held.len(), shape.states());
        }
        if tokens == 0 || shape.values() == 0 || shape.keys() == 0 {
            return self.set_all(y, 0.0);
        }
        let (own, one) = (unit(shape, false), self.gla_sequence(shape, false));
        let shared = self.shared_for(own);
        let at_once = at_once(shape, scratch.len(), one);
        let (y, held, scratch) = (y.read(), held.read(), scratch.read());
        self.attempt(|| {
            for first in (0..shape.batch).step_by(at_once) {
                let count = at_once.min(shape.batch - first);
                let launch =
                    Launch::new(self.device(), &GLA, "gla").slice(from(shape, first, qkv, stride));
                let launch = launch.slice(from(shape, first, alpha, shape.keys())).slice(from(
                    shape,
                    first,
                    y,
                    shape.values(),
                ));
                let held = match held.is_empty() {
                    true => held,
                    false => held.part(first * shape.states() / shape.batch..held.len()),
                };
                let launch = launch.slice(held).slice(scratch);
                let launch = launch.value(own as u32).value(u32::from(shared > 0));
                let launch = launch.value(sizes(shape, stride));
                let grid = Grid::new((count * shape.heads) as u32, 256).with_shared(shared);
                // SAFETY: the lengths were compared; a block has its working memory, or shares some.
                unsafe { launch.run(grid)? };
            }
            Ok(())
        });
    }

    fn gla_backward(
        &self,
        shape: &Shape,
        qkv: Slice<'_, Self>,
        stride: usize,
        alpha: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
        dga: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let tokens = shape.batch * shape.sequence;
        let lengths = [
            ("qkv", qkv.len(), tokens * stride),
            ("alpha", alpha.len(), tokens * shape.keys()),
            ("dy", dy.len(), tokens * shape.values()),
        ];
        check(shape, stride, lengths);
        expect("gla", "dqkv", dqkv.len(), qkv.len());
        expect("gla", "dga", dga.len(), alpha.len());
        if tokens == 0 || shape.values() == 0 || shape.keys() == 0 {
            return;
        }
        let (own, one) = (unit(shape, true), self.gla_sequence(shape, true));
        let shared = self.shared_for(own);
        let at_once = at_once(shape, scratch.len(), one);
        let (dqkv, dga, scratch) = (dqkv.read(), dga.read(), scratch.read());
        self.attempt(|| {
            for first in (0..shape.batch).step_by(at_once) {
                let count = at_once.min(shape.batch - first);
                let states = count * shape.heads * states(shape);
                let launch = Launch::new(self.device(), &GLA, "gla_backward");
                let launch = launch.slice(from(shape, first, qkv, stride)).slice(from(
                    shape,
                    first,
                    alpha,
                    shape.keys(),
                ));
                let launch = launch
                    .slice(from(shape, first, dy, shape.values()))
                    .slice(from(shape, first, dqkv, stride));
                let launch = launch
                    .slice(from(shape, first, dga, shape.keys()))
                    .slice(scratch.part(0..states));
                let launch = launch.slice(scratch.part(states..scratch.len()));
                let launch = launch.value(own as u32).value(u32::from(shared > 0));
                let launch = launch.value(sizes(shape, stride));
                let grid = Grid::new((count * shape.heads) as u32, 256).with_shared(shared);
                // SAFETY: the lengths were compared; a block has its states and its working memory, or
                // shares some.
                unsafe { launch.run(grid)? };
            }
            Ok(())
        });
    }

    fn decay(&self, z: Slice<'_, Self>, tau: f64, least: f64, alpha: SliceMut<'_, Self>) {
        assert_eq!(z.len(), alpha.len(), "decay: one decay for each gate");
        self.each("decay", z.len(), |launch| {
            launch.slice(z).value((1.0 / tau) as f32).value(least as f32).slice(alpha.read())
        });
    }

    fn decay_backward(&self, z: Slice<'_, Self>, tau: f64, least: f64, d: SliceMut<'_, Self>) {
        assert_eq!(z.len(), d.len(), "decay_backward: one gradient for each gate");
        self.each("decay_backward", z.len(), |launch| {
            launch.slice(z).value((1.0 / tau) as f32).value(least as f32).slice(d.read())
        });
    }

    fn swish_gate(&self, x: Slice<'_, Self>, gates: Matrix<'_, Self>, y: SliceMut<'_, Self>) {
        let (rows, width) = (gates.rows(), gates.cols());
        assert!(rows * width == x.len() && y.len() == x.len(), "swish_gate: shapes do not fit");
        self.rows("swish_gate", rows, |launch| {
            let launch = launch.slice(x).matrix(gates).value(rows as u64).value(width as u32);
            launch.slice(y.read())
        });
    }

    fn swish_gate_backward(
        &self,
        x: Slice<'_, Self>,
        gates: Matrix<'_, Self>,
        d: SliceMut<'_, Self>,
        d_gates: MatrixMut<'_, Self>,
    ) {
        let (rows, width) = (gates.rows(), gates.cols());
        let like = (d_gates.rows(), d_gates.cols());
        let stride = d_gates.stride() == gates.stride() || rows < 2;
        assert!(
            rows * width == x.len() && d.len() == x.len() && like == (rows, width) && stride,
            "gradients are shaped as values"
        );
        let d_gates = d_gates.into_data();
        self.rows("swish_gate_backward", rows, |launch| {
            let launch = launch.slice(x).matrix(gates).value(rows as u64).value(width as u32);
            launch.slice(d.read()).slice(d_gates.read())
        });
    }
}

/// Rows of `width` elements from a sequence on.
fn from<'a>(shape: &Shape, first: usize, of: Slice<'a, Cuda>, width: usize) -> Slice<'a, Cuda> {
    of.part(first * shape.sequence * width..of.len())
}

/// How many sequences the working memory has room for.
#[track_caller]
fn at_once(shape: &Shape, scratch: usize, one: usize) -> usize {
    assert!(scratch >= one, "scratch has {scratch} elements, {shape:?} needs {one}");
    scratch.checked_div(one).map_or(shape.batch, |room| room.min(shape.batch))
}
