//! Products of recipes by Hopper's tensor cores: codes of both operands, as the matrices are stored, and the
//! scales of whole tensors, all on the device. The CPU's twin, which defines the bits, is exmy-train's
//! `recipe/device/cpu/cores.rs`.

use exmy::Format;
use exmy::gemm::f32::Output;
use exmy::gemm::fast::Scaling;
use exmy::minifloat::Bf16;
use exmy::quantizer::{Axis, Target};
use exmy::round::Rules;
use exmy_train::nn::device::MatrixMut;
use exmy_train::nn::site::Product;
use exmy_train::recipe::device::Source;
use exmy_train::recipe::sums::TensorCores;

use super::Cuda;
use super::products::{view, view_mut};
use crate::blocks::turned_image_into;
use crate::pack::copy_matrix;
use crate::product::multiply_to;
use crate::{
    Buffer, Converter, Element, Matrix, Order, Result, Scales, View, ViewMut, decode_into,
    factored_image_into, image_into, quantize,
};

/// The codes of one operand.
#[derive(Debug, Default)]
pub(super) struct Codes {
    bf16: Option<Buffer<Bf16>>,
    e4m3: Option<Buffer<u8>>,
    rows: usize,
    cols: usize,
    /// Whether the codes are those of the transpose: positions are adjacent, as the tensor cores take them.
    turned: bool,
    /// The scale of the whole tensor: a number of a buffer.
    factor: Option<(Buffer<f32>, usize)>,
}

/// Room for `len` codes, in the memory that is there if it is enough.
fn room<'a, T: Element>(
    cuda: &Cuda,
    buffer: &'a mut Option<Buffer<T>>,
    len: usize,
) -> Result<&'a mut Buffer<T>> {
    if buffer.as_ref().is_none_or(|buffer| buffer.len() < len) {
        // The old memory goes first, so that both need not fit.
        *buffer = None;
        *buffer = Some(Buffer::uninit(cuda.device(), len)?);
    }
    Ok(buffer.as_mut().expect("made above"))
}

/// Codes of E4M3, row-major, and what multiplies their sums.
type Scaled = (Buffer<u8>, Option<Buffer<f32>>);

/// The codes of a matrix; `None` if it has no memory.
fn e4m3(source: &Source<'_, Cuda>, axis: Axis) -> Result<Option<Scaled>> {
    let Source { matrix, quantizer, random } = source;
    let random = quantizer.is_stochastic().then_some(*random);
    let Some(x) = view(*matrix)? else { return Ok(None) };
    let (device, (rows, cols)) = (x.buffer.device(), x.shape());
    let Target::Block(format) = quantizer.target else {
        let mut image = Buffer::uninit(device, rows * cols)?;
        image_into(quantizer, x, axis, random, ViewMut::new(&mut image, rows, cols)?)?;
        let codes = Converter::new(Format::E4M3FN, Rules::DEFAULT).encode(&image)?;
        return Ok(Some((codes, None)));
    };
    let tensor = quantize(quantizer, x, axis, random)?;
    let mut factor = Buffer::uninit(device, tensor.packed_scales().len())?;
    decode_into(format.scale, tensor.packed_scales(), &mut factor)?;
    Ok(Some((tensor.into_codes(), Some(factor))))
}

impl Codes {
    fn matrix(&self, cores: TensorCores) -> Result<Option<Matrix<'_>>> {
        let (rows, cols) = (self.rows, self.cols);
        Ok(match (cores, &self.bf16, &self.e4m3) {
            (TensorCores::Bf16, Some(codes), _) if self.turned => {
                Some(Matrix::from(View::new(codes, cols, rows)?).t())
            }
            (TensorCores::Bf16, Some(codes), _) => Some(View::new(codes, rows, cols)?.into()),
            (TensorCores::E4m3, _, Some(codes)) => Some(View::new(codes, rows, cols)?.into()),
            _ => None,
        })
    }
}

impl Cuda {
    /// Rounds matrices, which lie `beside` each other or below.
    pub(super) fn pack_codes(
        &self,
        codes: &mut Codes,
        cores: TensorCores,
        sources: &[Source<'_, Self>],
        axis: Axis,
        beside: bool,
    ) {
        let Some(first) = sources.first() else { return };
        let sum = |size: fn(&Source<'_, Self>) -> usize| sources.iter().map(size).sum::<usize>();
        (codes.rows, codes.cols) = if beside {
            (first.matrix.rows(), sum(|source| source.matrix.cols()))
        } else {
            (sum(|source| source.matrix.rows()), first.matrix.cols())
        };
        codes.turned = cores == TensorCores::Bf16 && axis == Axis::Rows;
        let (len, turned) = (codes.rows * codes.cols, codes.turned);
        let stride = if turned { codes.rows } else { codes.cols };
        let mut start = 0;
        self.attempt(|| {
            for source in sources {
                let Source { matrix, quantizer, random } = source;
                let (rows, cols) = (matrix.rows(), matrix.cols());
                match cores {
                    TensorCores::Bf16 => {
                        let random = quantizer.is_stochastic().then_some(*random);
                        let all = room(self, &mut codes.bf16, len)?;
                        let (tall, wide) = if turned { (cols, rows) } else { (rows, cols) };
                        let out = ViewMut::with_stride(all, start, tall, wide, stride)?;
                        let Some(x) = view(*matrix)? else { return Ok(()) };
                        let factors = if turned {
                            turned_image_into(quantizer, x, axis, random, out)?
                        } else {
                            factored_image_into(quantizer, x, axis, random, out)?
                        };
                        // The scale itself is the second of four numbers.
                        codes.factor = factors.map(|factors| (factors, 1));
                    }
                    TensorCores::E4m3 => {
                        let Some((own, factor)) = e4m3(source, axis)? else { return Ok(()) };
                        codes.factor = factor.map(|factor| (factor, 0));
                        if sources.len() == 1 {
                            codes.e4m3 = Some(own);
                        } else {
                            let all = room(self, &mut codes.e4m3, len)?;
                            let mut out = ViewMut::with_stride(all, start, rows, cols, stride)?;
                            copy_matrix(View::new(&own, rows, cols)?, &mut out)?;
                        }
                    }
                }
                // In the transpose what is beside lies below.
                start += match (beside, turned) {
                    (true, false) => cols,
                    (true, true) => cols * stride,
                    (false, false) => rows * stride,
                    (false, true) => rows,
                };
            }
            Ok(())
        });
    }

    /// Multiplies two operands, over `out` or added to it.
    pub(super) fn multiply_codes(
        &self,
        cores: TensorCores,
        product: Product,
        [left, right]: [&Codes; 2],
        out: MatrixMut<'_, Self>,
        mode: Output,
        rounds: bool,
    ) {
        let order = match cores {
            TensorCores::Bf16 => Order::HopperBf16,
            TensorCores::E4m3 => Order::HopperE4m3,
        };
        let with = match mode {
            Output::Overwrite => Scaling::OVERWRITE,
            Output::Accumulate => Scaling::ACCUMULATE,
        };
        fn place(codes: &Codes) -> Option<(&Buffer<f32>, usize)> {
            codes.factor.as_ref().map(|(factor, at)| (factor, *at))
        }
        let scales = Scales { left: place(left), right: place(right) };
        self.attempt(|| {
            let (a, b, out) = (left.matrix(cores)?, right.matrix(cores)?, view_mut(out)?);
            let (Some(a), Some(b), Some(out)) = (a, b, out) else { return Ok(()) };
            let (a, b) = match product {
                Product::Forward => (a, b.t()),
                Product::GradInput => (a, b),
                Product::GradWeight => (a.t(), b),
            };
            multiply_to(order, a, b, out, with, scales, rounds)
        });
    }
}
