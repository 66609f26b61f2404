//! Products in every order at ragged sizes, transposed and with strides.

use exmy::format::Format;
use exmy::gemm::fast::{Packed, Scaling, multiply as multiply_fast};
use exmy::gemm::{Operand, Spec, f32::Output, f32::matmul, gemm_into};
use exmy::minifloat::Bf16;
use exmy::random::{Philox, Stream};
use exmy::{View as HostView, ViewMut as HostViewMut};

use super::Trial;
use crate::{Buffer, Element, Error, Matrix, Order, Result, Scales, View, ViewMut, multiply};

/// What operands hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    /// Few and many bits, magnitudes over 2^31, zeros of both signs.
    Ordinary,
    /// Infinities, NaN, subnormal numbers and ends of the range among them.
    Special,
    /// Exponents over the whole range.
    Extreme,
}

/// Matrices of sums over `k` numbers. However large that is, about a third of the rows have an infinity or
/// NaN, so that there are results of every kind.
fn numbers(count: usize, seed: u64, kind: Distribution, k: usize) -> Vec<f32> {
    let rarer = k.div_ceil(24).max(1) as u32;
    let random = Philox::new(seed, Stream::new("products"));
    let number = |i: usize| {
        let word = random.word(i as u64);
        let sign = word & 0x8000_0000;
        let field = match kind {
            Distribution::Extreme => (word >> 8) % 255,
            _ => 112 + (word >> 8 & 15),
        };
        let is_rare = kind == Distribution::Special && (word / 97).is_multiple_of(rarer);
        let bits = match word % 97 {
            0 if is_rare => sign | 0x7F80_0000,
            1 if is_rare => 0x7FC0_0000,
            2 if kind == Distribution::Special => sign | 0x7F7F_0000,
            3..8 if kind != Distribution::Ordinary => sign | word & 0x007F_FFFF,
            8..16 => sign,
            _ => word & 0x807F_FFFF | field << 23,
        };
        f32::from_bits(bits)
    };
    (0..count).map(number).collect()
}

/// A matrix as it is or transposed in memory, its rows some numbers further apart than they are long.
fn stored<T: Copy>(
    values: &[T],
    (rows, cols): (usize, usize),
    turned: bool,
    margin: usize,
) -> (Vec<T>, usize) {
    let (down, across) = if turned { (cols, rows) } else { (rows, cols) };
    let stride = across + margin;
    let at = |i: usize, j: usize| {
        let (i, j) = if turned { (j, i) } else { (i, j) };
        values[(i * cols + j).min(values.len() - 1)]
    };
    let all = (0..down * stride).map(|k| at(k / stride, (k % stride).min(across - 1)));
    (if values.is_empty() { Vec::new() } else { all.collect() }, stride)
}

fn view<T: Element>(
    buffer: &Buffer<T>,
    (rows, cols): (usize, usize),
    turned: bool,
    stride: usize,
) -> Result<View<'_, T>> {
    let (rows, cols) = if turned { (cols, rows) } else { (rows, cols) };
    View::with_stride(buffer, 0, rows, cols, stride)
}

/// One product.
#[derive(Clone, Copy, Debug)]
struct Case {
    order: Order,
    short: bool,
    size: (usize, usize, usize),
    turned: (bool, bool),
    margin: usize,
    with: Scaling,
    numbers: Distribution,
}

impl Case {
    fn name(&self) -> String {
        let Self { size: (m, k, n), turned, with, numbers, margin, .. } = self;
        let turn = |turned: bool| if turned { "^T" } else { "" };
        let Scaling { alpha, beta } = with;
        format!(
            "{m} x {k}{} times {k} x {n}{}, {numbers:?} numbers, margin {margin}, alpha {alpha}, beta {beta}",
            turn(turned.0),
            turn(turned.1)
        )
    }
}

const TURNS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];
const RAGGED: [(usize, usize, usize); 6] =
    [(1, 1, 1), (3, 0, 5), (17, 33, 9), (70, 64, 130), (64, 100, 65), (5, 600, 3)];
/// More than a processor's tiles, so that each size of them is taken; six large ones for four processors. The
/// last has so many rows that the right operand is transposed first.
const WHOLE: [(usize, usize, usize); 4] =
    [(256, 40, 256), (250, 300, 128), (300, 600, 256), (2051, 9, 5)];
/// The last one has 144 large tiles for the 132 processors of an H100.
const LARGE: [(usize, usize, usize); 5] =
    [(1024, 512, 640), (500, 777, 617), (2048, 64, 1024), (300, 5000, 40), (1500, 600, 1530)];

impl Trial<'_> {
    pub(super) fn products(&mut self) -> Result<()> {
        let overwrite = Scaling::OVERWRITE;
        for (order, short) in [(Order::Fast, false), (Order::Fast, true), (Order::F32, false)] {
            for turned in TURNS {
                let case = |size, margin, with, numbers| Case {
                    order,
                    short,
                    size,
                    turned,
                    margin,
                    with,
                    numbers,
                };
                for size in RAGGED {
                    self.product(case(size, size.1 % 5, overwrite, Distribution::Ordinary))?;
                    self.product(case(size, 0, Scaling::ACCUMULATE, Distribution::Special))?;
                    self.product(case(size, 1, overwrite, Distribution::Extreme))?;
                }
                for size in WHOLE {
                    self.product(case(size, 0, overwrite, Distribution::Ordinary))?;
                }
                if self.full() {
                    for size in LARGE {
                        self.product(case(size, 0, overwrite, Distribution::Ordinary))?;
                        self.product(case(size, 3, Scaling::ACCUMULATE, Distribution::Special))?;
                    }
                }
            }
        }
        let (turned, numbers) = ((false, true), Distribution::Ordinary);
        let with = Scaling { alpha: 0.3, beta: -1.7 };
        let (order, size) = (Order::Fast, (9, 70, 9));
        self.product(Case { order, short: false, size, turned, margin: 0, with, numbers })?;
        self.on_tensor_cores()
    }

    fn product(&mut self, case: Case) -> Result<()> {
        let Case { order, short, size: (m, k, n), turned, margin, with, numbers: kind } = case;
        let cut = |x: Vec<f32>| -> Vec<f32> {
            let short_one = |x: f32| Bf16::from_f32(x).to_f32();
            if short { x.into_iter().map(short_one).collect() } else { x }
        };
        let (a, b) = (cut(numbers(m * k, 1, kind, k)), cut(numbers(k * n, 2, kind, k)));
        let old = numbers(m * n, 3, Distribution::Ordinary, 1);
        let (left, right) = (HostView::new(&a, m, k), HostView::new(&b, k, n));
        let mut expected = old.clone();
        let place = HostViewMut::new(&mut expected, m, n);
        if order == Order::F32 {
            let output = if with.beta == 0.0 { Output::Overwrite } else { Output::Accumulate };
            matmul(left, right, place, output);
        } else {
            let packed = (Packed::left(&Operand::from(left)), Packed::right(&Operand::from(right)));
            multiply_fast(&packed.0, &packed.1, place, with)
                .map_err(|error| Error::unfit("verify", error.to_string()))?;
        }
        let device = self.device;
        let (x, x_stride) = stored(&a, (m, k), turned.0, margin);
        let (y, y_stride) = stored(&b, (k, n), turned.1, margin);
        let mut c = device.upload(&old)?;
        let place = ViewMut::new(&mut c, m, n)?;
        if short {
            let narrow =
                |x: &[f32]| -> Vec<Bf16> { x.iter().map(|x| Bf16::from_f32(*x)).collect() };
            let (p, q) = (device.upload(&narrow(&x))?, device.upload(&narrow(&y))?);
            let p = Matrix::Bf16(view(&p, (m, k), turned.0, x_stride)?, turned.0);
            let q = Matrix::Bf16(view(&q, (k, n), turned.1, y_stride)?, turned.1);
            multiply(order, p, q, place, with, Scales::default())?;
        } else {
            let (p, q) = (device.upload(&x)?, device.upload(&y)?);
            let p = Matrix::F32(view(&p, (m, k), turned.0, x_stride)?, turned.0);
            let q = Matrix::F32(view(&q, (k, n), turned.1, y_stride)?, turned.1);
            multiply(order, p, q, place, with, Scales::default())?;
        }
        let (name, kernels) = match (order, short) {
            (Order::F32, _) => ("products in the order gemm::f32", "product_f32.cu"),
            (_, false) => ("products in the order fast, f32", "product_fast_f32.cu"),
            (_, true) => ("products in the order fast, bf16", "product_fast_bf16.cu"),
        };
        let found = c.to_vec()?;
        self.row(name, kernels).compare_f32(|| case.name(), &found, &expected, order == Order::F32);
        Ok(())
    }

    /// The tensor cores, where there are some, against the library's models of them.
    fn on_tensor_cores(&mut self) -> Result<()> {
        let sizes =
            [(1, 1, 1), (3, 0, 5), (64, 16, 8), (130, 200, 70), (70, 64, 300), (257, 1000, 129)];
        let large = [(512, 256, 384), (300, 1024, 136)];
        let large: &[_] = if self.full() { &large } else { &[] };
        for order in [Order::HopperBf16, Order::HopperE4m3] {
            let (name, kernels) = match order {
                Order::HopperBf16 => ("products in the order hopper, bf16", "product_hopper.cu"),
                _ => ("products in the order hopper, e4m3", "product_hopper.cu"),
            };
            for &size in sizes.iter().chain(large) {
                for (turned, with) in TURNS.into_iter().zip([
                    Scaling::OVERWRITE,
                    Scaling::OVERWRITE,
                    Scaling::ACCUMULATE,
                    Scaling { alpha: 0.3, beta: -1.7 },
                ]) {
                    for numbers in
                        [Distribution::Ordinary, Distribution::Special, Distribution::Extreme]
                    {
                        let case =
                            Case { order, short: true, size, turned, margin: 1, with, numbers };
                        match self.hopper(case) {
                            Err(Error::Architecture { needed, .. }) => {
                                self.row(name, kernels).missing = Some(needed.to_owned());
                            }
                            Err(error) => return Err(error),
                            Ok((found, expected)) => {
                                self.row(name, kernels).compare_f32(
                                    || case.name(),
                                    &found,
                                    &expected,
                                    false,
                                );
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn hopper(&self, case: Case) -> Result<(Vec<f32>, Vec<f32>)> {
        let Case { order, size: (m, k, n), turned, margin, with, numbers: kind, .. } = case;
        let device = self.device;
        let (format, scale) = match order {
            Order::HopperBf16 => (Format::BF16, 1.0),
            // Into the range of E4M3, whose middle is 1.
            _ => (Format::E4M3FN, 0.03125),
        };
        let codes = |count, seed| -> Vec<u16> {
            let x: Vec<f32> =
                numbers(count, seed, kind, k).into_iter().map(|x| x * scale).collect();
            exmy::Converter::new(format, exmy::Rules::DEFAULT).encode(&x)
        };
        let (a, b) = (codes(m * k, 1), codes(k * n, 2));
        let old = numbers(m * n, 3, Distribution::Ordinary, 1);
        let mut c = device.upload(&old)?;
        let place = ViewMut::new(&mut c, m, n)?;
        let (x, x_stride) = stored(&a, (m, k), turned.0, margin);
        let (y, y_stride) = stored(&b, (k, n), turned.1, margin);
        if order == Order::HopperBf16 {
            let typed =
                |x: &[u16]| -> Vec<Bf16> { x.iter().map(|x| Bf16::from_bits(*x)).collect() };
            let (p, q) = (device.upload(&typed(&x))?, device.upload(&typed(&y))?);
            let p = Matrix::Bf16(view(&p, (m, k), turned.0, x_stride)?, turned.0);
            let q = Matrix::Bf16(view(&q, (k, n), turned.1, y_stride)?, turned.1);
            multiply(order, p, q, place, with, Scales::default())?;
        } else {
            let bytes = |x: &[u16]| -> Vec<u8> { x.iter().map(|x| *x as u8).collect() };
            let (p, q) = (device.upload(&bytes(&x))?, device.upload(&bytes(&y))?);
            let p = Matrix::E4m3(view(&p, (m, k), turned.0, x_stride)?, turned.0);
            let q = Matrix::E4m3(view(&q, (k, n), turned.1, y_stride)?, turned.1);
            multiply(order, p, q, place, with, Scales::default())?;
        }
        let unfit = |error: String| Error::unfit("verify", error);
        let mut spec = Spec::parse("hopper").map_err(|error| unfit(error.to_string()))?;
        (spec.alpha, spec.beta) = (with.alpha, with.beta);
        let operand = |codes, rows, cols| {
            Operand::codes16(format, HostView::new(codes, rows, cols))
                .map_err(|error| unfit(error.to_string()))
        };
        let (left, right) = (operand(&a, m, k)?, operand(&b, k, n)?);
        let mut expected = old;
        gemm_into(left, right, &spec, HostViewMut::new(&mut expected, m, n))
            .map_err(|error| unfit(error.to_string()))?;
        Ok((c.to_vec()?, expected))
    }
}
