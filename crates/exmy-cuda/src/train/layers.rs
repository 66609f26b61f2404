//! Operations on elements, and sums over rows: calls of `kernels/layers/elementwise.cu` and `sums.cu`.

#![allow(unsafe_code)]

use exmy::gemm::f32::Output;
use exmy::round::Rounding;
use exmy_train::nn::device::{Layers, Matrix, MatrixMut, Roundings, Slice, SliceMut};
use exmy_train::nn::relu::Function;
use exmy_train::nn::site::Product;
use exmy_train::nn::stopwatch::Direction;

use super::Cuda;
use super::memory::{Parts, Tokens};
use super::norms::{Step, expect};
use crate::backend::Grid;
use crate::launch::Launch;
use crate::module::{ELEMENTWISE, Module, SUMS};

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

    pub(super) fn rows<'a>(
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
}

impl Layers for Cuda {
    fn add_assign(&self, y: SliceMut<'_, Self>, x: Slice<'_, Self>) {
        expect("add_assign", "x", x.len(), y.len());
        self.each("add_assign", x.len(), |launch| launch.slice(y.read()).slice(x));
    }

    fn matmul(
        &self,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
    ) {
        self.product(product, left, right, out, mode, None, false);
    }

    fn add_bias(&self, how: Option<Rounding>, rows: SliceMut<'_, Self>, bias: Slice<'_, Self>) {
        let (width, count) = of_width("add_bias", rows.len(), bias.len());
        self.rows("add_bias", count, |launch| {
            let launch = launch.slice(rows.read()).value(count as u64).slice(bias);
            launch.value(width as u32).value(Step::new(how))
        });
    }

    fn bias_backward(
        &self,
        how: Option<Rounding>,
        dy: Slice<'_, Self>,
        d_bias: SliceMut<'_, Self>,
    ) {
        let (width, rows) = of_width("bias_backward", dy.len(), d_bias.len());
        self.start(&SUMS, "bias_backward", Grid::new(width.div_ceil(32) as u32, 256), |launch| {
            let launch = launch.slice(dy).value(rows as u64).value(width as u32);
            launch.slice(d_bias.read()).value(Step::new(how))
        });
    }

    fn activate(
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

    fn activate_backward(
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

    fn swiglu(
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

    fn swiglu_backward(
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

    fn rotate(
        &self,
        x: SliceMut<'_, Self>,
        [width, heads, half]: [usize; 3],
        sequence: usize,
        [cos, sin]: [Slice<'_, Self>; 2],
        direction: Direction,
    ) {
        let sign: f32 = if direction == Direction::Forward { 1.0 } else { -1.0 };
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

    fn butterflies(&self, x: SliceMut<'_, Self>, signs: Slice<'_, Self>, part: usize) {
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

    fn embed(
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

    fn embed_backward(&self, tokens: &Tokens, dy: Slice<'_, Self>, d_table: SliceMut<'_, Self>) {
        if tokens.is_empty() {
            return;
        }
        let width = dy.len() / tokens.len();
        assert!(width > 0 && width * tokens.len() == dy.len(), "embed_backward: whole rows");
        tokens.check("embed_backward: token", d_table.len() / width);
        let grid = Grid::planar(tokens.distinct() as u32, width.div_ceil(128) as u32, 128);
        self.start(&SUMS, "embed_backward", grid, |launch| {
            let launch = launch.tokens(tokens).order(tokens).slice(dy);
            launch.value(width as u32).slice(d_table.read())
        });
    }

    fn positions_backward(
        &self,
        dy: Slice<'_, Self>,
        width: usize,
        sequence: usize,
        d_positions: SliceMut<'_, Self>,
    ) {
        if dy.is_empty() {
            return;
        }
        let len = sequence * width;
        let (_, sequences) = of_width("positions_backward", dy.len(), len);
        assert!(d_positions.len() >= len, "positions_backward: {len} elements of positions");
        self.start(&SUMS, "positions_backward", Grid::cover(len, 256), |launch| {
            launch.slice(dy).value(sequences as u64).value(len as u64).slice(d_positions.read())
        });
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
