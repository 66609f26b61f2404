//! What recipes ask of a device: images, packed products, casts, masks, clipped ranges, columns, sums.

use crate::nn::device::{Matrix, MatrixMut};
use crate::nn::site::Product;
use crate::recipe::clip::Clip;
use crate::recipe::device::{Quantize, Source};
use exmy::format::Format;
use exmy::gemm::Sum;
use exmy::gemm::f32::Output as Mode;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::round::{Rounding, Rules};

use super::Trial;

/// Quantizers of all kinds of targets.
const QUANTIZERS: [&str; 8] = [
    "f32",
    "bf16",
    "e4m3@rtz",
    "e2m1@sr4",
    "mxfp8-e4m3",
    "nvfp4",
    "e3m2/8x4:e8m0@rceil",
    "e4m3/row:e8m3",
];

impl<D: Quantize> Trial<'_, D> {
    pub(super) fn recipes(&mut self, scale: usize) {
        self.images(scale);
        self.packed(scale);
        self.in_place(scale);
        self.columns(scale);
        self.own_sums(scale);
    }

    fn images(&mut self, scale: usize) {
        let (device, rows, cols) = (self.device, 35 * scale, 70);
        let random = Philox::new(3, Stream::new("images"));
        for text in QUANTIZERS {
            let quantizer: Quantizer = text.parse().expect("a quantizer");
            for axis in [Axis::Cols, Axis::Rows] {
                let (x, mut out) = (self.draw(rows * 75), self.draw(rows * 71));
                let to = MatrixMut::with_stride(&mut out, rows, cols, 71);
                let from = Matrix::with_stride(&x, rows, cols, 75);
                device.quantize(&quantizer, from, axis, random, None, to);
                self.keep(format!("image {text} {axis:?} {rows} x {cols}"), &out);
            }
        }
        let quantizer: Quantizer = "mxfp8-e4m3".parse().expect("a quantizer");
        let (x, mut out) = (self.draw(64 * 64), self.draw(64 * 64));
        let [from, to] = [Matrix::new(&x, 64, 64), Matrix::new(&x, 64, 64)];
        let power = |k: i32| f32::from_bits(((127 + k) as u32) << 23);
        let given = [
            ("mxfp8-e4m3", 0.25),
            ("e5m2/tensor:e8m0@rceil", power(-13)),
            ("e4m3/tensor:e8m0@rceil", power(19)),
            ("e4m3/tensor:e8m0@rna", power(-60)),
            ("e4m3/tensor:e8m0@rtz", 4.0),
            ("e5m2/tensor:e8m0@sr8", 0.5),
            ("e4m3/tensor:e8m0", power(-100)),
        ];
        for (text, scale) in given {
            let quantizer: Quantizer = text.parse().expect("a quantizer");
            let place = MatrixMut::new(&mut out, 64, 64);
            device.quantize(&quantizer, from, Axis::Rows, random, Some(scale), place);
            self.keep(format!("image {text} of a given scale"), &out);
        }
        for (axis, sequence) in [(Axis::Cols, 0), (Axis::Rows, 0), (Axis::Rows, 24)] {
            let place = MatrixMut::new(&mut out, 64, 64);
            device.quantize_by_position(&quantizer, to, axis, random, sequence, place);
            self.keep(format!("image bumped by position, {axis:?}, {sequence}"), &out);
        }
    }

    fn packed(&mut self, scale: usize) {
        let device = self.device;
        let [m, n, k] = [33 * scale, 40, 96];
        let quantizers = ["mxfp8-e4m3", "nvfp4", "e4m3@sr8", "f32"];
        for (i, text) in quantizers.into_iter().enumerate() {
            let quantizer: Quantizer = text.parse().expect("a quantizer");
            for product in [Product::Forward, Product::GradInput, Product::GradWeight] {
                let [[a, b], [c, d]] = super::stored(product, [m, n, k]);
                let (left, right) = (self.draw(a * b), self.draw(c * d));
                let source = |matrix, seed| Source {
                    matrix,
                    quantizer,
                    random: Philox::new(seed, Stream::new("packed")),
                };
                let (left, right) = (Matrix::new(&left, a, b), Matrix::new(&right, c, d));
                // Two matrices in an operand, unless its whole has a scale.
                let cut = if text == "nvfp4" { b } else { b / 32 * 16 };
                let parts =
                    [source(left.cols_range(0..cut), 1), source(left.cols_range(cut..b), 2)];
                let parts = if cut == b { &parts[..1] } else { &parts[..] };
                let mut packed = D::Packed::default();
                device.pack(&mut packed, None, product, &parts[..1], &[source(right, 3)]);
                // The right operand stays.
                device.exchange_left(&mut packed, &mut D::Packed::default());
                device.pack(&mut packed, None, product, parts, &[]);
                let to = [None, Some((Format::BF16, Rules::DEFAULT))][i % 2];
                for mode in [Mode::Overwrite, Mode::Accumulate] {
                    let mut out = self.draw(m * (n + 3));
                    let place = MatrixMut::with_stride(&mut out, m, n, n + 3);
                    device.multiply(&packed, place, mode, to);
                    self.keep(format!("packed {text} {product:?} {mode:?}"), &out);
                }
            }
        }
    }

    fn in_place(&mut self, scale: usize) {
        let (device, n) = (self.device, 900 * scale + 5);
        for bits in [0, 3, 7] {
            let mut x = self.draw(n);
            device.mask(bits, x.all_mut());
            self.keep(format!("mask of {bits} bits"), &x);
        }
        let mut x = self.draw(n);
        device.times(1.0877, x.all_mut());
        self.keep("times 1.0877", &x);
        for text in ["clip-e7m7", "clip-e4m3-subnormal", "clip-e5m7-clamp-inf", "clip-e4m3-pow2"] {
            let clip: Clip = text.parse().expect("a clipped range");
            let mut x = self.draw(n);
            device.clip(clip, x.all_mut());
            self.keep(text, &x);
        }
        let rules = Rules::DEFAULT.with_rounding(Rounding::TowardZero);
        for to in [(Format::BF16, Rules::DEFAULT), (Format::E5M2, rules)] {
            let mut x = self.draw(31 * 45);
            device.cast(to, MatrixMut::with_stride(&mut x, 31, 40, 45));
            self.keep(format!("cast to {}", to.0), &x);
        }
        let (x, mut amax) = (self.draw(31 * 45), self.draw(3));
        device.amax(Matrix::with_stride(&x, 31, 40, 45), amax.part_mut(1..2));
        self.keep("amax", &amax);
        let mut wide = self.draw(9 * 20);
        device.widen(&mut wide, 9, 20, 32);
        let mut rows = self.draw(9 * 20);
        let from = Matrix::with_stride(&wide, 9, 20, 32);
        device.copy(from, MatrixMut::new(&mut rows, 9, 20));
        self.keep("rows apart", &rows);
    }

    fn columns(&mut self, scale: usize) {
        let (device, rows, cols) = (self.device, 40 * scale, 50);
        let (x, minus) = (self.draw(rows * 52), self.draw(rows * cols));
        let x = Matrix::with_stride(&x, rows, cols, 52);
        let minus = Matrix::new(&minus, rows, cols);
        for (minus, squared) in [(None, false), (Some(minus), true)] {
            let sums = device.column_sums(x, minus, squared);
            let numbers = sums.into_iter().flat_map(super::bits).collect();
            self.push(format!("sums of columns {rows} x {cols}, bits of f64"), numbers);
            let (_, columns) = self.tokens(7, cols as u64);
            let mut taken = self.draw(rows * 9);
            let to = MatrixMut::with_stride(&mut taken, rows, 7, 9);
            device.take_columns(x, minus, &columns, to);
            self.keep(format!("some columns of {rows} x {cols}"), &taken);
            let mut out = self.draw(rows * 53);
            let to = MatrixMut::with_stride(&mut out, rows, cols, 53);
            device.add_to_columns(Matrix::with_stride(&taken, rows, 7, 9), &columns, to);
            self.keep(format!("some columns of {rows} x {cols}, added"), &out);
        }
    }

    /// Products in orders and accumulators of a recipe's own.
    fn own_sums(&mut self, scale: usize) {
        let (device, [m, n, k]) = (self.device, [9 * scale, 7, 40]);
        let random = Philox::new(5, Stream::new("sums"));
        for text in ["fma:bf16", "mul-add:e8m9@rtz", "blocked16:f16", "fma:bf16@sr8"] {
            let sum: Sum = text.parse().expect("a sum");
            for product in [Product::Forward, Product::GradInput, Product::GradWeight] {
                let [[a, b], [c, d]] = super::stored(product, [m, n, k]);
                let (left, right) = (self.draw(a * b), self.draw(c * d));
                let (left, right) = (Matrix::new(&left, a, b), Matrix::new(&right, c, d));
                for mode in [Mode::Overwrite, Mode::Accumulate] {
                    let mut out = self.draw(m * (n + 3));
                    let place = MatrixMut::with_stride(&mut out, m, n, n + 3);
                    device.sums(sum, random, product, left, right, place, mode);
                    self.keep(format!("sums {text} {product:?} {mode:?}"), &out);
                }
            }
        }
    }
}
