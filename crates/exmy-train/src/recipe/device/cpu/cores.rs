//! Products of tensor cores on the CPU, by the library's model of them: slow, and what a GPU is compared
//! with.
//!
//! An operand is its codes, as the matrix is stored, and the scale of the whole tensor, which multiplies the
//! sums: `((1 * left) * right) * sum`, in binary32 as [`gemm_into`] does it.

use crate::nn::Cpu;
use crate::nn::device::MatrixMut;
use crate::nn::site::Product;
use crate::recipe::device::Source;
use crate::recipe::sums::TensorCores;
use exmy::block::{BlockFormat, BlockTensor};
use exmy::format::Format;
use exmy::gemm::f32::Output;
use exmy::gemm::unit::Preset;
use exmy::gemm::{Accumulation, Operand, Spec, gemm_into};
use exmy::quantizer::{Axis, Target};
use exmy::round::Rules;
use exmy::slice::{Converter, View, ViewMut};

/// An operand of tensor cores.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    codes: Vec<u16>,
    rows: usize,
    cols: usize,
    /// The scale of the whole tensor.
    factor: Option<f32>,
}

/// The values of a matrix, row-major, without the scale of the whole tensor, and that scale.
fn values(source: &Source<'_, Cpu>, axis: Axis) -> (Vec<f32>, Option<f32>) {
    let Source { matrix, quantizer, random } = *source;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    match quantizer.target {
        Target::Block(format) if format.tensor_scale => {
            let (codes, scales, factor) = stored(source, axis).into_parts();
            let format = BlockFormat { tensor_scale: false, ..format };
            let tensor = BlockTensor::from_parts(format, axis, (rows, cols), codes, scales, None);
            (tensor.unwrap_or_else(|error| panic!("{error}")).dequantize(), factor)
        }
        _ => {
            let mut values = vec![0.0; rows * cols];
            let out = ViewMut::new(&mut values, rows, cols);
            quantizer.image_into(matrix.view(), axis, random, out);
            (values, None)
        }
    }
}

/// Codes and scales of a matrix.
fn stored(source: &Source<'_, Cpu>, axis: Axis) -> BlockTensor {
    let Source { matrix, quantizer, random } = *source;
    quantizer.quantize(matrix.view(), axis, random).unwrap_or_else(|error| panic!("{error}"))
}

/// The codes of a matrix, row-major, and what multiplies their sums.
fn coded(cores: TensorCores, source: &Source<'_, Cpu>, axis: Axis) -> (Vec<u16>, Option<f32>) {
    match cores {
        TensorCores::Bf16 => {
            let (values, factor) = values(source, axis);
            (Converter::new(Format::BF16, Rules::DEFAULT).encode(&values), factor)
        }
        TensorCores::E4m3 => {
            let tensor = stored(source, axis);
            let scale = tensor.scales().first().copied();
            let factor = scale.map(|code| tensor.format().scale.to_f32(u64::from(code)));
            (tensor.packed_codes().iter().map(|&code| code.into()).collect(), factor)
        }
    }
}

impl Codes {
    /// Rounds matrices, which lie `beside` each other or below.
    pub(super) fn pack(
        &mut self,
        cores: TensorCores,
        sources: &[Source<'_, Cpu>],
        axis: Axis,
        beside: bool,
    ) {
        let Some(first) = sources.first() else { return };
        let sizes = sources.iter().map(|one| (one.matrix.rows(), one.matrix.cols()));
        let (mut rows, mut cols) = (first.matrix.rows(), first.matrix.cols());
        if beside {
            cols = sizes.map(|(_, cols)| cols).sum();
        } else {
            rows = sizes.map(|(rows, _)| rows).sum();
        }
        self.codes.clear();
        self.codes.resize(rows * cols, 0);
        (self.rows, self.cols) = (rows, cols);
        let mut start = 0;
        for source in sources {
            let (codes, factor) = coded(cores, source, axis);
            self.factor = factor;
            let width = source.matrix.cols();
            for (i, codes) in codes.chunks(width.max(1)).enumerate() {
                self.codes[start + i * cols..][..width].copy_from_slice(codes);
            }
            start += if beside { width } else { source.matrix.rows() * cols };
        }
    }

    fn operand(&self, cores: TensorCores) -> Operand<'_> {
        let codes = View::new(&self.codes, self.rows, self.cols);
        Operand::codes16(cores.format(), codes).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Multiplies two operands, over `out` or added to it.
pub(super) fn multiply(
    cores: TensorCores,
    product: Product,
    [left, right]: [&Codes; 2],
    out: MatrixMut<'_, Cpu>,
    mode: Output,
) {
    let (a, b) = (left.operand(cores), right.operand(cores));
    let (a, b) = match product {
        Product::Forward => (a, b.t()),
        Product::GradInput => (a, b),
        Product::GradWeight => (a.t(), b),
    };
    let result = Format::F32;
    let mut spec = Spec::from(Accumulation::Unit { model: Preset::Hopper.into(), result });
    spec.alpha = [left, right].into_iter().filter_map(|one| one.factor).product();
    spec.beta = if mode == Output::Accumulate { 1.0 } else { 0.0 };
    gemm_into(a, b, &spec, out.view()).unwrap_or_else(|error| panic!("{error}"));
}
