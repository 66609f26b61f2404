//! Every operation of a device at ragged shapes, so that two devices can be compared bit for bit.
//!
//! [`layers`] runs on any device and returns what the operations wrote, [`layers_on_cpu`] what they are to
//! write; [`differences`] compares the two. [`runs`] trains a few steps of each family of models. Inputs are
//! numbers of all magnitudes, some of them zeros of both signs and subnormal, and, where `edges` are asked
//! for, infinities and NaN. A NaN is as good as another.

mod attend;
mod elements;
mod recipes;
mod rows;
pub mod runs;

use std::fmt;

use exmy::random::{Philox, Stream};

use crate::nn::device::{Buffer, Cpu, Device};
use crate::nn::site::Product;
use crate::recipe::device::Quantize;

/// What one operation wrote.
#[derive(Clone, Debug)]
pub struct Output {
    /// The operation, its shape and the tensor.
    pub name: String,
    /// The kernels that were started for it, and perhaps for others of the same operation. None on the CPU.
    pub kernels: Vec<&'static str>,
    /// What it wrote.
    pub numbers: Vec<f32>,
}

/// The first element at which a device differs from the CPU in an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The operation, its shape and the tensor.
    pub name: String,
    /// The kernels that the device started for it.
    pub kernels: Vec<&'static str>,
    /// Which element, and of how many.
    pub at: [usize; 2],
    /// What the CPU and the device wrote.
    pub values: [f32; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kernels, at: [at, len], values: [on_cpu, on_device] } = self;
        write!(f, "{name}")?;
        if !kernels.is_empty() {
            write!(f, " (kernels: {})", kernels.join(", "))?;
        }
        let bits = [on_cpu, on_device].map(|value| value.to_bits());
        write!(
            f,
            ", element {at} of {len}: {on_cpu:?} ({:#010x}) on the CPU, {on_device:?} ({:#010x}) on the \
             device",
            bits[0], bits[1]
        )
    }
}

/// A device, what its operations wrote, and where inputs come from.
struct Trial<'a, D: Device<Real = f32>> {
    device: &'a D,
    /// The kernels that were started since it was last asked.
    started: fn() -> Vec<&'static str>,
    outputs: Vec<Output>,
    /// Those of the operation before, whose other tensors may follow.
    kernels: Vec<&'static str>,
    edges: bool,
    drawn: u64,
}

impl<D: Device<Real = f32>> Trial<'_, D> {
    /// Numbers that differ from those of any call before.
    fn numbers(&mut self, len: usize) -> Vec<f32> {
        self.drawn += 1;
        let random = Philox::new(self.drawn, Stream::new("layers"));
        (0..len as u64)
            .map(|i| {
                let word = random.word(i);
                let sign = word & 0x8000_0000;
                match word >> 8 & 63 {
                    0 => f32::from_bits(sign),
                    1 => f32::from_bits(sign | word & 0x007F_FFFF),
                    2 if self.edges && word & 1 == 0 => f32::from_bits(sign | 0x7F80_0000),
                    3 if self.edges && word & 3 == 0 => f32::NAN,
                    // From 2^-40 to 2^23; mostly from 1/8 to 8.
                    4 => f32::from_bits(sign | (87 + (word >> 16 & 63)) << 23 | word & 0x007F_FFFF),
                    _ => f32::from_bits(sign | (124 + (word >> 16 & 3)) << 23 | word & 0x007F_FFFF),
                }
            })
            .collect()
    }

    /// As [`numbers`](Self::numbers), on the device.
    fn draw(&mut self, len: usize) -> Buffer<D> {
        let numbers = self.numbers(len);
        self.device.buffer(numbers)
    }

    fn keep(&mut self, name: impl Into<String>, buffer: &Buffer<D>) {
        let numbers = self.device.read(buffer.all()).into_owned();
        self.push(name, numbers);
    }

    /// What an operation wrote, read before.
    fn push(&mut self, name: impl Into<String>, numbers: Vec<f32>) {
        let started = (self.started)();
        if !started.is_empty() {
            self.kernels = started;
        }
        self.outputs.push(Output { name: name.into(), kernels: self.kernels.clone(), numbers });
    }

    fn tokens(&mut self, len: usize, vocabulary: u64) -> (Vec<u32>, D::Tokens) {
        self.drawn += 1;
        let random = Philox::new(self.drawn, Stream::new("tokens"));
        let tokens: Vec<u32> =
            (0..len as u64).map(|i| random.below(i, vocabulary) as u32).collect();
        let mut on_device = D::Tokens::default();
        self.device.set_tokens(&tokens, &mut on_device);
        (tokens, on_device)
    }
}

/// The bits of a number in f64, sixteen to each of the f32 that are compared; NaN is one.
fn bits(value: f64) -> Vec<f32> {
    if value.is_nan() {
        return vec![f32::NAN; 4];
    }
    (0..4).map(|part| (value.to_bits() >> (48 - 16 * part) & 0xFFFF) as f32).collect()
}

/// Rows and columns of both operands, as they are stored, of a product of m x n sums of k products.
fn stored(product: Product, [m, n, k]: [usize; 3]) -> [[usize; 2]; 2] {
    match product {
        Product::Forward => [[m, k], [n, k]],
        Product::GradInput => [[m, k], [k, n]],
        Product::GradWeight => [[k, m], [k, n]],
    }
}

/// All operations on the CPU, as [`layers`] returns them.
pub fn layers_on_cpu(scale: usize) -> Vec<Output> {
    layers(&Cpu::new(), scale, Vec::new)
}

/// All operations, with and without infinities and NaN. Shapes grow with `scale`, from 1. `started` gives the
/// names of the kernels that were started since its last call.
pub fn layers<D: Quantize>(
    device: &D,
    scale: usize,
    started: fn() -> Vec<&'static str>,
) -> Vec<Output> {
    // What was started before is no part of this.
    drop(started());
    let (outputs, kernels) = (Vec::new(), Vec::new());
    let mut trial = Trial { device, started, outputs, kernels, edges: false, drawn: 0 };
    for edges in [false, true] {
        trial.edges = edges;
        trial.elements(scale);
        trial.rows(scale);
        trial.attention(scale);
        trial.recurrence(scale);
        trial.recipes(scale);
    }
    trial.outputs
}

/// Where outputs of one list of operations on the CPU and a device differ, operation by operation.
///
/// # Panics
/// If the lists are not of the same operations.
pub fn differences(on_cpu: &[Output], on_device: &[Output]) -> Vec<Difference> {
    assert_eq!(on_cpu.len(), on_device.len(), "the same operations on both devices");
    let pairs = on_cpu.iter().zip(on_device);
    pairs
        .filter_map(|(a, b)| {
            assert_eq!((&a.name, a.numbers.len()), (&b.name, b.numbers.len()));
            let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
            let mut values = a.numbers.iter().zip(&b.numbers);
            let at = values.position(|(&x, &y)| !same(x, y))?;
            Some(Difference {
                name: a.name.clone(),
                kernels: b.kernels.clone(),
                at: [at, a.numbers.len()],
                values: [a.numbers[at], b.numbers[at]],
            })
        })
        .collect()
}
