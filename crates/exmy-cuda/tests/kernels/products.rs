//! Products in every order on FP32 units, at ragged sizes, strides and transposes: the bits of the library.

use exmy::gemm::fast::{Scaling, multiply_plain};
use exmy::gemm::{Operand, f32::Output, f32::matmul_reference};
use exmy::minifloat::Bf16;
use exmy::random::{Philox, Stream};
use exmy::{View as HostView, ViewMut as HostViewMut};
use exmy_cuda::{Buffer, Matrix, Order, Scales, View, ViewMut, multiply};

use super::device;

/// Numbers of few and of many bits and magnitudes, some zero and of either sign; all are bfloat16 numbers if `short`.
fn numbers(count: usize, seed: u64, short: bool) -> Vec<f32> {
    let random = Philox::new(seed, Stream::new("products"));
    let number = |i| {
        let word = random.word(i as u64);
        let field = 100 + (word >> 8 & 31);
        let bits = word & 0x807F_FFFF | field << 23;
        let bits = if short { bits & 0xFFFF_0000 } else { bits };
        if word.is_multiple_of(17) {
            f32::from_bits(bits & 0x8000_0000)
        } else {
            f32::from_bits(bits)
        }
    };
    (0..count).map(number).collect()
}

/// A matrix as it is or transposed in memory, in a buffer with a margin.
struct Stored {
    values: Vec<f32>,
    rows: usize,
    cols: usize,
    turned: bool,
    stride: usize,
}

impl Stored {
    fn new(values: &[f32], (rows, cols): (usize, usize), turned: bool, margin: usize) -> Self {
        let (down, across) = if turned { (cols, rows) } else { (rows, cols) };
        let stride = across + margin;
        let mut stored = vec![f32::NAN; down * stride];
        for i in 0..rows {
            for j in 0..cols {
                let at = if turned { j * stride + i } else { i * stride + j };
                stored[at] = values[i * cols + j];
            }
        }
        Self { values: stored, rows: down, cols: across, turned, stride }
    }

    fn view<'a, T: exmy_cuda::Element>(&self, buffer: &'a Buffer<T>) -> View<'a, T> {
        View::with_stride(buffer, 0, self.rows, self.cols, self.stride).unwrap()
    }
}

fn narrow(x: &[f32]) -> Vec<Bf16> {
    x.iter().map(|x| Bf16::from_f32(*x)).collect()
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    FastF32,
    FastBf16,
    F32,
}

fn check(
    kind: Kind,
    (m, k, n): (usize, usize, usize),
    turned: (bool, bool),
    margin: usize,
    with: Scaling,
) {
    let Some(device) = device() else { return };
    let short = matches!(kind, Kind::FastBf16);
    let (a, b) = (numbers(m * k, 1, short), numbers(k * n, 2, short));
    let old = numbers(m * n, 3, false);
    let (left, right) = (HostView::new(&a, m, k), HostView::new(&b, k, n));
    let mut expected = old.clone();
    let place = HostViewMut::new(&mut expected, m, n);
    if matches!(kind, Kind::F32) {
        let output = if with.beta == 0.0 { Output::Overwrite } else { Output::Accumulate };
        matmul_reference(left, right, place, output);
    } else {
        multiply_plain(&Operand::from(left), &Operand::from(right), place, with);
    }
    let (x, y) =
        (Stored::new(&a, (m, k), turned.0, margin), Stored::new(&b, (k, n), turned.1, margin));
    let mut c = device.upload(&old).unwrap();
    let place = ViewMut::new(&mut c, m, n).unwrap();
    let none = Scales::default();
    let order = if matches!(kind, Kind::F32) { Order::F32 } else { Order::Fast };
    if short {
        let p = device.upload(&narrow(&x.values)).unwrap();
        let q = device.upload(&narrow(&y.values)).unwrap();
        let (p, q) = (Matrix::Bf16(x.view(&p), x.turned), Matrix::Bf16(y.view(&q), y.turned));
        multiply(order, p, q, place, with, none).unwrap();
    } else {
        let (p, q) = (device.upload(&x.values).unwrap(), device.upload(&y.values).unwrap());
        let (p, q) = (Matrix::F32(x.view(&p), x.turned), Matrix::F32(y.view(&q), y.turned));
        multiply(order, p, q, place, with, none).unwrap();
    }
    let found = c.to_vec().unwrap();
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let at = (i / n, i % n);
        let same = found.to_bits() == expected.to_bits();
        assert!(
            same,
            "{kind:?} {m} x {k} x {n} {turned:?} {with:?} at {at:?}: {found:e}, not {expected:e}"
        );
    }
}

const TURNS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[test]
fn every_order_at_ragged_sizes() {
    for kind in [Kind::FastF32, Kind::FastBf16, Kind::F32] {
        for size in [(1, 1, 1), (3, 0, 5), (17, 33, 9), (70, 64, 130), (64, 100, 65), (5, 600, 3)] {
            for turned in TURNS {
                check(kind, size, turned, size.1 % 5, Scaling::OVERWRITE);
                check(kind, size, turned, 0, Scaling::ACCUMULATE);
            }
        }
    }
}

#[test]
fn every_tile() {
    // The emulated device has four processors: more tiles than that make the larger ones pay.
    for kind in [Kind::FastF32, Kind::FastBf16, Kind::F32] {
        for turned in TURNS {
            check(kind, (256, 40, 256), turned, 0, Scaling::OVERWRITE);
            check(kind, (250, 300, 128), turned, 3, Scaling::OVERWRITE);
        }
    }
}

#[test]
fn factors_are_multiplied_as_written() {
    let Some(device) = device() else { return };
    check(Kind::FastF32, (9, 70, 9), (false, false), 0, Scaling { alpha: 0.3, beta: -1.7 });
    let (a, b) = (numbers(64, 1, false), numbers(64, 2, false));
    let (x, y) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let scales = device.upload(&[0.1_f32, 7.3]).unwrap();
    let mut c = device.zeros::<f32>(16).unwrap();
    let with = Scaling { alpha: 1.1, beta: 0.0 };
    let (p, q) =
        (Matrix::from(View::new(&x, 4, 16).unwrap()), Matrix::from(View::new(&y, 16, 4).unwrap()));
    let both = Scales { left: Some((&scales, 0)), right: Some((&scales, 1)) };
    multiply(Order::Fast, p, q, ViewMut::new(&mut c, 4, 4).unwrap(), with, both).unwrap();
    let mut sums = vec![0.0; 16];
    let (left, right) = (HostView::new(&a, 4, 16), HostView::new(&b, 16, 4));
    let place = HostViewMut::new(&mut sums, 4, 4);
    multiply_plain(&Operand::from(left), &Operand::from(right), place, Scaling::OVERWRITE);
    let factor = 1.1_f32 * 0.1 * 7.3;
    let expected: Vec<f32> = sums.iter().map(|sum| factor * sum).collect();
    assert_eq!(c.to_vec().unwrap(), expected);
}

#[test]
fn what_is_not_there_is_refused() {
    let Some(device) = device() else { return };
    let x = device.zeros::<f32>(16).unwrap();
    let z = device.zeros::<u8>(16).unwrap();
    let mut c = device.zeros::<f32>(16).unwrap();
    let (x, z) =
        (Matrix::from(View::new(&x, 4, 4).unwrap()), Matrix::from(View::new(&z, 4, 4).unwrap()));
    let mut said = |order, a, b, with, rows| {
        let c = ViewMut::new(&mut c, rows, 4).unwrap();
        multiply(order, a, b, c, with, Scales::default()).unwrap_err().to_string()
    };
    let text = said(Order::Fast, x, z, Scaling::OVERWRITE, 4);
    assert_eq!(text, "multiply: Fast of f32 and e4m3 codes is not there");
    let text = said(Order::Fast, x, x, Scaling::OVERWRITE, 3);
    assert_eq!(text, "multiply: (4 x 4) times (4 x 4) into (3, 4) do not fit each other");
    let half = Scaling { alpha: 0.5, beta: 0.0 };
    assert_eq!(
        said(Order::F32, x, x, half, 4),
        "multiply: the order f32 overwrites or adds, without factors"
    );
}
