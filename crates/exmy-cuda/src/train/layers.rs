//! Operations on elements: calls of `kernels/layers/elementwise.cu`.

#![allow(unsafe_code)]

use exmy::random::Philox;
use exmy::round::Rounding;
use exmy_train::nn::device::{Matrix, MatrixMut, Roundings, Slice, SliceMut};
use exmy_train::nn::optimizer::{Optimizer, Update};
use exmy_train::nn::relu::Function;

use super::Cuda;
use super::memory::{Parts, Tokens};
use super::norms::{Step, expect};
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::{ELEMENTWISE, Module};
use crate::rounder::Words;

/// A list of numbers of 32 bits that a kernel takes as one structure.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Scalars<const N: usize>([f32; N]);

// SAFETY: an array of numbers has no gaps.
unsafe impl<const N: usize> Plain for Scalars<N> {}

/// Elements by threads, four to each.
fn by_elements(count: usize) -> Grid {
    Grid::cover(count.div_ceil(4), 256)
}

/// Rows by warps.
fn by_warps(rows: usize) -> Grid {
    Grid::cover(rows * 32, 256)
}

const fn code(function: Function) -> u32 {
    match function {
        Function::Gelu => 0,
        Function::Relu => 1,
        Function::SquaredRelu => 2,
        Function::Linear => 3,
        Function::Tanh => 4,
        Function::GeluTanh => 5,
    }
}

impl Cuda {
    /// A kernel of elements or rows: `fill` adds its parameters, which are slices whose lengths the caller
    /// has compared and the counts of these.
    pub(super) fn start<'a>(
        &'a self,
        module: &'static Module,
        name: &'static str,
        grid: Grid,
        fill: impl FnOnce(Launch<'a>) -> Launch<'a>,
    ) {
        let launch = || fill(Launch::new(self.device(), module, name));
        // SAFETY: the callers are the functions below, each of which gives its kernel what it takes.
        self.attempt(|| unsafe { launch().run(grid) });
    }

    pub(super) fn each<'a>(
        &'a self,
        name: &'static str,
        count: usize,
        fill: impl FnOnce(Launch<'a>) -> Launch<'a>,
    ) {
        if count > 0 {
            self.start(&ELEMENTWISE, name, by_elements(count), |launch| {
                fill(launch).value(count as u64)
            });
        }
    }

    fn rows<'a>(
        &'a self,
        name: &'static str,
        rows: usize,
        fill: impl FnOnce(Launch<'a>) -> Launch<'a>,
    ) {
        if rows > 0 {
            self.start(&ELEMENTWISE, name, by_warps(rows), fill);
        }
    }

    pub(super) fn set_all(&self, x: SliceMut<'_, Self>, value: f32) {
        if !x.is_empty() {
            self.start(&ELEMENTWISE, "fill", by_elements(x.len()), |launch| {
                launch.slice(x.read()).value(x.len() as u64).value(value)
            });
        }
    }

    pub(super) fn set_matrix(&self, x: MatrixMut<'_, Self>, value: f32) {
        let (rows, cols, stride) = (x.rows(), x.cols(), x.stride());
        let mut data = x.into_data();
        if cols == stride || rows == 1 {
            return self.set_all(data.part(0..rows * cols), value);
        }
        self.rows("fill_rows", rows, |launch| {
            let launch = launch.slice(data.read()).value(rows as u64).value(cols as u32);
            launch.value(stride as u64).value(value)
        });
    }

    pub(super) fn copy_matrix(&self, from: Matrix<'_, Self>, to: MatrixMut<'_, Self>) {
        let (rows, cols) = (from.rows(), from.cols());
        assert_eq!((rows, cols), (to.rows(), to.cols()), "copies have the shape of the original");
        if rows == 1 || cols == from.stride() && cols == to.stride() {
            let to = to.into_data();
            return self
                .each("copy", rows * cols, |launch| launch.slice(from.data()).slice(to.read()));
        }
        let stride = to.stride() as u64;
        let to = to.into_data();
        self.rows("copy_rows", rows, |launch| {
            let launch = launch.matrix(from).slice(to.read()).value(rows as u64);
            launch.value(cols as u32).value(stride)
        });
    }

    pub(super) fn sum_into(&self, y: SliceMut<'_, Self>, x: Slice<'_, Self>) {
        expect("add_assign", "x", x.len(), y.len());
        self.each("add_assign", x.len(), |launch| launch.slice(y.read()).slice(x));
    }

    pub(super) fn bias(
        &self,
        how: Option<Rounding>,
        rows: SliceMut<'_, Self>,
        bias: Slice<'_, Self>,
    ) {
        let (width, count) = of_width("add_bias", rows.len(), bias.len());
        self.rows("add_bias", count, |launch| {
            let launch = launch.slice(rows.read()).value(count as u64).slice(bias);
            launch.value(width as u32).value(Step::new(how))
        });
    }

    pub(super) fn function(
        &self,
        function: Function,
        [forward, _]: Roundings,
        x: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        expect("activate", "y", y.len(), x.len());
        let step = Step::new(forward);
        if function == Function::Gelu && forward.is_some() {
            return self.each("stepped_gelu", x.len(), |launch| {
                launch.value(step).slice(x).slice(y.read())
            });
        }
        self.each("activate", x.len(), |launch| {
            launch.value(code(function)).value(step).slice(x).slice(y.read())
        });
    }

    pub(super) fn function_back(
        &self,
        function: Function,
        [forward, back]: Roundings,
        x: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    ) {
        expect("activate_backward", "d", d.len(), x.len());
        let [forward_step, step] = [forward, back].map(Step::new);
        if function == Function::Gelu && forward.is_some() {
            return self.each("stepped_gelu_backward", x.len(), |launch| {
                launch.value(forward_step).value(step).slice(x).slice(d.read())
            });
        }
        self.each("activate_backward", x.len(), |launch| {
            launch.value(code(function)).value(step).slice(x).slice(d.read())
        });
    }

    pub(super) fn gated(
        &self,
        [forward, back]: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        y: SliceMut<'_, Self>,
    ) {
        let (_, rows) = of_width("swiglu", gate_up.len(), 2 * hidden);
        expect("swiglu", "y", y.len(), rows * hidden);
        let name = if forward.is_some() { "stepped_swiglu" } else { "swiglu" };
        self.rows(name, rows, |launch| {
            let launch = match forward {
                Some(_) => launch.value(Step::new(forward)).value(Step::new(back)),
                None => launch,
            };
            let launch = launch.slice(gate_up).value(rows as u64).value(hidden as u32);
            launch.slice(y.read())
        });
    }

    pub(super) fn gated_back(
        &self,
        [forward, back]: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        dy: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    ) {
        let (_, rows) = of_width("swiglu_backward", gate_up.len(), 2 * hidden);
        expect("swiglu_backward", "dy", dy.len(), rows * hidden);
        expect("swiglu_backward", "d_gate_up", d.len(), gate_up.len());
        let [forward_step, step] = [forward, back].map(Step::new);
        let stepped = forward.is_some();
        let name = if stepped { "stepped_swiglu_backward" } else { "swiglu_backward" };
        self.rows(name, rows, |launch| {
            let launch = if stepped { launch.value(forward_step).value(step) } else { launch };
            let launch = launch.slice(gate_up).value(rows as u64).value(hidden as u32);
            let launch = launch.slice(dy).slice(d.read());
            if stepped { launch } else { launch.value(step) }
        });
    }

    pub(super) fn turn(
        &self,
        x: SliceMut<'_, Self>,
        [width, heads, half]: [usize; 3],
        sequence: usize,
        [cos, sin]: [Slice<'_, Self>; 2],
        sign: f32,
    ) {
        assert!(2 * half * heads <= width, "{heads} heads do not fit rows of {width}");
        let context = cos.len() / half.max(1);
        assert!(
            sequence > 0 && sequence <= context,
            "rotary positions are tabulated for sequences of 1 to {context} tokens, not {sequence}"
        );
        let (_, rows) = of_width("rotate", x.len(), width);
        self.rows("rotate", rows, |launch| {
            let launch = launch.slice(x.read()).value(rows as u64).value(width as u32);
            let launch = launch.value(heads as u32).value(half as u32).value(sequence as u32);
            launch.slice(cos).slice(sin).value(sign)
        });
    }

    pub(super) fn butterfly(&self, x: SliceMut<'_, Self>, signs: Slice<'_, Self>, part: usize) {
        let n = signs.len();
        let (_, rows) = of_width("butterflies", x.len(), n);
        assert!(
            n.is_multiple_of(part) && (n / part).is_power_of_two(),
            "rows of {n} have no 2^k parts of {part}"
        );
        self.each("butterflies", rows * part, |launch| {
            launch.slice(x.read()).slice(signs).value(n as u32).value(part as u32)
        });
    }

    pub(super) fn decays(
        &self,
        z: Slice<'_, Self>,
        [tau, least]: [f64; 2],
        alpha: SliceMut<'_, Self>,
    ) {
        assert_eq!(z.len(), alpha.len(), "decay: one decay for each gate");
        self.each("decay", z.len(), |launch| {
            launch.slice(z).value((1.0 / tau) as f32).value(least as f32).slice(alpha.read())
        });
    }

    pub(super) fn decays_back(
        &self,
        z: Slice<'_, Self>,
        [tau, least]: [f64; 2],
        d: SliceMut<'_, Self>,
    ) {
        assert_eq!(z.len(), d.len(), "decay_backward: one gradient for each gate");
        self.each("decay_backward", z.len(), |launch| {
            launch.slice(z).value((1.0 / tau) as f32).value(least as f32).slice(d.read())
        });
    }

    pub(super) fn swish(&self, x: Slice<'_, Self>, gates: Matrix<'_, Self>, y: SliceMut<'_, Self>) {
        let (rows, width) = (gates.rows(), gates.cols());
        assert!(rows * width == x.len() && y.len() == x.len(), "swish_gate: shapes do not fit");
        self.rows("swish_gate", rows, |launch| {
            let launch = launch.slice(x).matrix(gates).value(rows as u64).value(width as u32);
            launch.slice(y.read())
        });
    }

    pub(super) fn swish_back(
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

    pub(super) fn embedded(
        &self,
        tokens: &Tokens,
        table: Slice<'_, Self>,
        positions: Option<Slice<'_, Self>>,
        sequence: usize,
        y: SliceMut<'_, Self>,
    ) {
        if tokens.is_empty() {
            return;
        }
        let width = y.len() / tokens.len();
        assert!(
            width > 0 && width * tokens.len() == y.len() && table.len().is_multiple_of(width),
            "embed: {} tokens, {} outputs and a table of {} elements share no width",
            tokens.len(),
            y.len(),
            table.len()
        );
        assert!(sequence > 0 && tokens.len().is_multiple_of(sequence), "embed: whole sequences");
        if let Some(positions) = positions {
            assert!(
                positions.len() / width >= sequence,
                "embed: a sequence of {sequence} is longer than the {} learned positions",
                positions.len() / width
            );
        }
        tokens.check("embed: token", table.len() / width);
        self.rows("embed", tokens.len(), |launch| {
            let launch = launch.tokens(tokens).value(tokens.len() as u64).slice(table);
            let launch = launch.maybe(positions).value(sequence as u32).value(width as u32);
            launch.slice(y.read())
        });
    }

    pub(super) fn drawn(
        &self,
        x: SliceMut<'_, Self>,
        start: u64,
        philox: &Philox,
        size: Option<f32>,
    ) {
        if x.is_empty() {
            return;
        }
        let words = Words::new(Some(*philox), start);
        let blocks = (start % 4) as usize + x.len();
        self.start(&ELEMENTWISE, "normals", Grid::cover(blocks.div_ceil(4), 256), |launch| {
            let launch = launch.slice(x.read()).value(x.len() as u64).value(words);
            launch.value(u32::from(size.is_some())).value(size.unwrap_or_default())
        });
    }

    pub(super) fn step(
        &self,
        optimizer: &Optimizer,
        at: &Update,
        params: SliceMut<'_, Self>,
        grads: Slice<'_, Self>,
        [m, v]: [SliceMut<'_, Self>; 2],
    ) {
        let len = params.len();
        let moments = optimizer.moments().len();
        assert!(
            grads.len() == len
                && m.len() == if moments > 0 { len } else { 0 }
                && v.len() == if moments > 1 { len } else { 0 },
            "{optimizer:?}: {len} parameters, {} gradients, moments of {} and {} elements",
            grads.len(),
            m.len(),
            v.len()
        );
        match optimizer {
            Optimizer::AdamW(adamw) => {
                let c = adamw.coefficients::<f32>(at);
                let numbers =
                    [c.keep, c.rise1, c.beta2, c.rise2, c.step, c.correction2, c.eps, c.grad_scale];
                self.each("adamw", len, |launch| {
                    let launch = launch.value(Scalars(numbers)).slice(params.read());
                    launch.slice(grads).slice(m.read()).slice(v.read())
                });
            }
            Optimizer::Sgd(sgd) => {
                let keep = if at.decay { (1.0 - at.lr * sgd.weight_decay) as f32 } else { 1.0 };
                let name = if moments == 0 { "sgd" } else { "sgd_momentum" };
                self.each(name, len, |launch| {
                    let launch = launch.value(keep).value(-at.lr as f32);
                    if moments == 0 {
                        return launch.value(at.grad_scale).slice(params.read()).slice(grads);
                    }
                    let launch = launch.value(sgd.momentum as f32).value(at.grad_scale);
                    launch.slice(params.read()).slice(grads).slice(m.read())
                });
            }
        }
    }
}

/// The width of rows, and how many they are.
#[track_caller]
pub(super) fn of_width(name: &str, len: usize, width: usize) -> (usize, usize) {
    assert!(
        width > 0 && len.is_multiple_of(width),
        "{name}: {len} elements are no whole number of rows of width {width}"
    );
    (width, len / width)
}
