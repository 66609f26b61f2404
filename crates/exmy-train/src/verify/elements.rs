//! Elementwise operations, biases, tables and optimizers.

use crate::nn::device::{Device, Matrix, MatrixMut};
use crate::nn::optimizer::{AdamW, Optimizer, Sgd, Update};
use crate::nn::relu::Function;
use crate::nn::rope;
use crate::nn::site::Product;
use crate::nn::stopwatch::Direction;
use exmy::gemm::f32::Output as Mode;
use exmy::random::{Philox, Stream};
use exmy::round::{Rounding, StochasticVariant};

use super::Trial;

const FUNCTIONS: [Function; 6] = [
    Function::Gelu,
    Function::Relu,
    Function::SquaredRelu,
    Function::Linear,
    Function::Tanh,
    Function::GeluTanh,
];

/// No rounding, all modes, and a stochastic one, which has no random bits here.
pub(super) fn roundings() -> Vec<Option<Rounding>> {
    let stochastic = Rounding::Stochastic { variant: StochasticVariant::B, bits: 4 };
    let all = Rounding::DETERMINISTIC.into_iter().chain([Rounding::stochastic(8), stochastic]);
    [None].into_iter().chain(all.map(Some)).collect()
}

impl<D: Device<Real = f32>> Trial<'_, D> {
    pub(super) fn elements(&mut self, scale: usize) {
        let (device, n) = (self.device, 1200 * scale + 37);
        let x = self.draw(n);
        for (i, rounding) in roundings().into_iter().enumerate() {
            let back = if i % 2 == 0 { None } else { rounding };
            for function in FUNCTIONS {
                let (mut y, mut d) = (self.draw(n), self.draw(n));
                device.activate(function, [rounding, back], x.all(), y.all_mut());
                device.activate_backward(function, [rounding, back], x.all(), d.all_mut());
                self.keep(format!("{function:?} {rounding:?}"), &y);
                self.keep(format!("{function:?} {rounding:?} backward"), &d);
            }
            let (hidden, rows) = (65, 7 * scale);
            let (gate_up, dy) = (self.draw(2 * hidden * rows), self.draw(hidden * rows));
            let (mut y, mut d) = (self.draw(hidden * rows), self.draw(2 * hidden * rows));
            device.swiglu([rounding, back], gate_up.all(), hidden, y.all_mut());
            device.swiglu_backward([rounding, back], gate_up.all(), hidden, dy.all(), d.all_mut());
            self.keep(format!("swiglu {rows} x {hidden} {rounding:?}"), &y);
            self.keep(format!("swiglu {rows} x {hidden} {rounding:?} backward"), &d);
            let (mut rows, mut bias) = (self.draw(33 * 70), self.draw(33));
            device.add_bias(rounding, rows.all_mut(), bias.all());
            device.bias_backward(rounding, rows.all(), bias.all_mut());
            self.keep(format!("bias 70 x 33 {rounding:?}"), &rows);
            self.keep(format!("bias 70 x 33 {rounding:?} backward"), &bias);
        }
        self.copies();
        self.gates(scale);
        self.butterflies();
        self.tables(scale);
        self.optimizers(scale);
        self.products(scale);
    }

    fn copies(&mut self) {
        let (device, (rows, cols)) = (self.device, (9, 35));
        for stride in [35, 41] {
            let (mut a, mut b) = (self.draw(rows * stride), self.draw(rows * 44));
            let from = Matrix::with_stride(&b, rows, cols, 44);
            device.copy(from, MatrixMut::with_stride(&mut a, rows, cols, stride));
            self.keep(format!("copy 9 x 35 to rows of {stride}"), &a);
            device.fill(MatrixMut::with_stride(&mut b, rows, cols, 44), 1.5);
            device.add_assign(b.part_mut(7..100), a.part(3..96));
            self.keep("fill, add 9 x 35 in rows of 44", &b);
            let seen = device.read_matrix(Matrix::with_stride(&b, rows, cols, 44));
            let numbers = (0..rows * cols).map(|i| seen.view().at(i / cols, i % cols)).collect();
            self.push("a matrix as the host sees it, 9 x 35", numbers);
        }
    }

    fn gates(&mut self, scale: usize) {
        let (device, (rows, width, stride)) = (self.device, (11 * scale, 37, 80));
        let (z, x) = (self.draw(rows * width), self.draw(rows * width));
        let (mut alpha, mut d) = (self.draw(rows * width), self.draw(rows * width));
        device.decay(z.all(), 16.0, -2.0, alpha.all_mut());
        device.decay_backward(z.all(), 16.0, -2.0, d.all_mut());
        let shape = format!("{rows} x {width}");
        self.keep(format!("decay {shape}"), &alpha);
        self.keep(format!("decay {shape} backward"), &d);
        let (gates, mut d_gates) = (self.draw(rows * stride), self.draw(rows * stride));
        let gates = Matrix::with_stride(&gates, rows, width, stride);
        device.swish_gate(x.all(), gates, alpha.all_mut());
        let to = MatrixMut::with_stride(&mut d_gates, rows, width, stride);
        device.swish_gate_backward(x.all(), gates, d.all_mut(), to);
        self.keep(format!("swish gate {shape}"), &alpha);
        self.keep(format!("swish gate {shape} backward"), &d);
        self.keep(format!("swish gate {shape} backward, gates in rows of {stride}"), &d_gates);
        let (heads, half, sequence) = (3, 5, 12);
        let [cos, sin] =
            rope::tables(sequence, &rope::frequencies(2 * half, 1e4, rope::Scaling::None))
                .map(|table| device.buffer(table));
        let mut x = self.draw(3 * sequence * 40);
        for way in [Direction::Forward, Direction::Backward] {
            let sizes = [40, heads, half];
            device.rotate(x.all_mut(), sizes, sequence, [cos.all(), sin.all()], way);
            self.keep(format!("rotary positions {way:?}, 3 x {sequence} x 40"), &x);
        }
    }

    fn butterflies(&mut self) {
        for (rows, part, width) in [(1, 1, 1), (5, 3, 3), (70, 1, 64), (9, 12, 384)] {
            let (mut x, signs) = (self.draw(rows * width), self.draw(width));
            self.device.butterflies(x.all_mut(), signs.all(), part);
            self.keep(format!("butterflies of {part}, {rows} x {width}"), &x);
        }
    }

    fn tables(&mut self, scale: usize) {
        let (device, width, sequence) = (self.device, 133, 30);
        let rows = 4 * sequence * scale;
        for vocabulary in [3, 200] {
            let (_, tokens) = self.tokens(rows, vocabulary);
            let (mut table, mut positions) =
                (self.draw(vocabulary as usize * width), self.draw(sequence * width));
            let (mut y, mut z) = (self.draw(rows * width), self.draw(rows * width));
            device.embed(&tokens, table.all(), None, sequence, y.all_mut());
            device.embed(&tokens, table.all(), Some(positions.all()), sequence, z.all_mut());
            let shape = format!("{rows} of {vocabulary} x {width}");
            self.keep(format!("embedding {shape}"), &y);
            self.keep(format!("embedding {shape} with positions"), &z);
            device.embed_backward(&tokens, z.all(), table.all_mut());
            device.positions_backward(z.all(), width, sequence, positions.all_mut());
            self.keep(format!("embedding {shape} backward, table"), &table);
            self.keep(format!("embedding {shape} backward, positions"), &positions);
        }
        let philox = Philox::new(7, Stream::new("normals"));
        let mut x = self.draw(1003 * scale);
        for (start, size) in [(0, None), (4_294_967_294, Some(0.5)), (3, None), (6, Some(2.0))] {
            device.normals(x.part_mut(0..1001 * scale), start, &philox, size);
            self.keep(format!("normal numbers from {start} on"), &x);
        }
    }

    fn optimizers(&mut self, scale: usize) {
        let (device, n) = (self.device, 300 * scale + 5);
        let sgd = |momentum| Optimizer::Sgd(Sgd { momentum, weight_decay: 0.1 });
        for optimizer in [Optimizer::AdamW(AdamW::default()), sgd(0.0), sgd(0.9)] {
            let mut params = self.draw(n);
            let moments = optimizer.moments().len();
            let [mut m, mut v] =
                [moments > 0, moments > 1].map(|has| if has { n } else { 0 }).map(|n| self.draw(n));
            // A second moment is no negative number.
            device.fill(MatrixMut::new(v.all_mut(), 1, if moments > 1 { n } else { 0 }), 0.25);
            for t in 1..4 {
                let grads = self.draw(n);
                let at = Update { t, lr: 3e-3, decay: t % 2 == 0, grad_scale: 0.7 };
                device.update(
                    &optimizer,
                    &at,
                    params.all_mut(),
                    grads.all(),
                    [m.all_mut(), v.all_mut()],
                );
            }
            self.keep(format!("{optimizer:?}"), &params);
            self.keep(format!("{optimizer:?}, first moment"), &m);
            self.keep(format!("{optimizer:?}, second moment"), &v);
        }
    }

    fn products(&mut self, scale: usize) {
        let device = self.device;
        for [m, n, k] in
            [[1, 1, 1], [70, 33, 300], [65 * scale, 130, 257], [5, 3, 0], [17, 64, 512]]
        {
            for mode in [Mode::Overwrite, Mode::Accumulate] {
                for product in [Product::Forward, Product::GradInput, Product::GradWeight] {
                    let [[a, b], [c, d]] = super::stored(product, [m, n, k]);
                    let (left, right) = (self.draw(a * (b + 3)), self.draw(c * (d + 5)));
                    let mut out = self.draw(m * (n + 1));
                    let left = Matrix::with_stride(&left, a, b, b + 3);
                    let right = Matrix::with_stride(&right, c, d, d + 5);
                    let to = MatrixMut::with_stride(&mut out, m, n, n + 1);
                    device.matmul(product, left, right, to, mode);
                    self.keep(format!("{product:?} {m} x {n} x {k} {mode:?}"), &out);
                }
            }
        }
    }
}
