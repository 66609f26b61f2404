//! Products of matrices on a GPU, in the orders of summation that have kernels there: `fast`, `blocked256`,
//! and `hopper` of bfloat16 and of E4M3. Others are refused, with these as what would work.

use std::borrow::Cow;

use exmy::Format;
use exmy::gemm::fast::Scaling;
use exmy::gemm::{Accumulation, Spec};
use exmy::minifloat::Bf16;
use exmy::quantizer::{Axis, Cast};
use exmy::round::Rules;
use exmy_cuda::{Buffer, Converter, Matrix, Order, Scales, View, ViewMut, decode_into, multiply};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;

use crate::gpu::{Gpu, failed};
use crate::gpu_blocks::GpuBlocks;
use crate::product::{Given, across, needs_seed, spec, too_wide};
use crate::{compute, value_error};

/// An operand: blocks, or the address of numbers in rows.
enum Stored<'a, 'py> {
    Blocks(PyRef<'py, GpuBlocks>),
    /// Numbers of binary32.
    Numbers(&'a Bound<'py, PyAny>),
    /// Codes of a format.
    Codes(Format, &'a Bound<'py, PyAny>),
}

/// An operand, the shape that it is stored in, and whether it is transposed.
struct Operand<'a, 'py> {
    stored: Stored<'a, 'py>,
    shape: (usize, usize),
    turned: bool,
}

impl<'a, 'py> Operand<'a, 'py> {
    fn new((any, shape, turned, format): &'a Given<'py>) -> PyResult<Self> {
        let stored = match (any.cast::<GpuBlocks>(), format) {
            (Ok(blocks), _) => Stored::Blocks(blocks.borrow()),
            (Err(_), None) => Stored::Numbers(any),
            (Err(_), Some(format)) => Stored::Codes(format.parse().map_err(value_error)?, any),
        };
        Ok(Self { stored, shape: *shape, turned: *turned })
    }

    fn format(&self) -> Option<Format> {
        match self.stored {
            Stored::Codes(format, _) => Some(format),
            _ => None,
        }
    }

    /// Rows and columns as the product sees them.
    fn seen(&self) -> (usize, usize) {
        let (rows, cols) = self.shape;
        if self.turned { (cols, rows) } else { (rows, cols) }
    }

    fn sides(&self) -> [usize; 2] {
        [self.shape.0, self.shape.1]
    }

    fn is_blocks(&self) -> bool {
        matches!(self.stored, Stored::Blocks(_))
    }
}

/// What a product reads of an operand.
enum Ready<'a> {
    F32(Buffer<f32>, Option<(&'a Buffer<f32>, usize)>),
    Bf16(Buffer<Bf16>),
    E4m3(Buffer<u8>),
    /// To be written from what is stored.
    Image(&'a exmy_cuda::BlockTensor),
    Bytes(Format, Buffer<u8>),
    Words(Format, Buffer<u16>),
}

impl Ready<'_> {
    /// The same with what has to be computed first.
    fn made(self, gpu: &Gpu) -> exmy_cuda::Result<Self> {
        let room = |count| gpu.device().device().zeros::<f32>(count);
        Ok(match self {
            Self::Image(tensor) => {
                let mut image = room(tensor.shape().0 * tensor.shape().1)?;
                tensor.images_into(&mut image)?;
                Self::F32(image, tensor.factor())
            }
            Self::Bytes(format, codes) => {
                let mut values = room(codes.len())?;
                decode_into(format, &codes, &mut values)?;
                Self::F32(values, None)
            }
            Self::Words(format, codes) => {
                let mut values = room(codes.len())?;
                decode_into(format, &codes, &mut values)?;
                Self::F32(values, None)
            }
            ready => ready,
        })
    }

    fn matrix(&self, (rows, cols): (usize, usize), turned: bool) -> exmy_cuda::Result<Matrix<'_>> {
        let matrix: Matrix<'_> = match self {
            Self::F32(x, _) => View::new(x, rows, cols)?.into(),
            Self::Bf16(x) => View::new(x, rows, cols)?.into(),
            Self::E4m3(x) => View::new(x, rows, cols)?.into(),
            _ => unreachable!("made before"),
        };
        Ok(if turned { matrix.t() } else { matrix })
    }

    fn scale(&self) -> Option<(&Buffer<f32>, usize)> {
        match self {
            Self::F32(_, scale) => *scale,
            _ => None,
        }
    }
}

impl Gpu {
    /// What a product of this order reads: codes where tensor cores or kernels take them, else numbers.
    fn ready<'a>(
        &self,
        of: &'a Operand<'_, '_>,
        order: Order,
        narrow: bool,
    ) -> PyResult<Ready<'a>> {
        let sides = of.sides();
        Ok(match &of.stored {
            Stored::Blocks(blocks) => Ready::Image(&blocks.tensor),
            Stored::Numbers(at) => Ready::F32(self.memory(at, sides)?, None),
            Stored::Codes(_, at) if narrow && order == Order::HopperE4m3 => {
                Ready::E4m3(self.memory(at, sides)?)
            }
            Stored::Codes(_, at) if narrow => Ready::Bf16(self.memory(at, sides)?),
            Stored::Codes(format, at) if format.bits() <= 8 => {
                Ready::Bytes(*format, self.memory(at, sides)?)
            }
            Stored::Codes(format, at) => Ready::Words(*format, self.memory(at, sides)?),
        })
    }
}

/// The order of kernels that an accumulation is, of such operands, and whether those are multiplied as codes.
fn order(
    spec: &Spec,
    sum: &str,
    a: &Operand<'_, '_>,
    b: &Operand<'_, '_>,
) -> PyResult<(Order, bool)> {
    let is = |name| Accumulation::named(name).is_ok_and(|named| named == spec.accumulation);
    let both = |format| a.format() == Some(format) && b.format() == Some(format);
    let refused = |why: Cow<'_, str>| {
        Err(PyNotImplementedError::new_err(format!(
            "{why}; GPUs have \"fast\", \"blocked256\" of numbers without blocks, and \"hopper\" of two \
             matrices of bfloat16 or of float8_e4m3fn. a.cpu() and b.cpu() have every order"
        )))
    };
    let blocks = a.is_blocks() || b.is_blocks();
    if is("fast") {
        return Ok((Order::Fast, both(Format::BF16)));
    }
    if is("blocked256") {
        return match blocks {
            true => refused("sum=\"blocked256\" of blocks has no kernel".into()),
            false => Ok((Order::F32, false)),
        };
    }
    match (is("hopper"), both(Format::BF16), both(Format::E4M3FN)) {
        (true, true, _) => Ok((Order::HopperBf16, true)),
        (true, _, true) => Ok((Order::HopperE4m3, true)),
        (true, ..) => refused("sum=\"hopper\" of these operands has no kernel".into()),
        _ => refused(format!("sum={sum:?} has no kernel").into()),
    }
}

/// C = A B as [`gemm`](crate::product::gemm), of operands on a GPU: blocks there, or addresses.
#[pyfunction]
pub(crate) fn gemm_on<'py>(
    py: Python<'py>,
    device: usize,
    a: Given<'py>,
    b: Given<'py>,
    sum: &str,
    output: Option<&str>,
    rounding: Option<&str>,
    seed: Option<u64>,
    out: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let gpu = &Gpu::of(device)?;
    let spec = spec(sum, output, rounding, seed)?;
    let (a, b) = (Operand::new(&a)?, Operand::new(&b)?);
    let shapes = (a.seen(), b.seen());
    for (operand, name, axis) in [(&a, "a", Axis::Cols), (&b, "b", Axis::Rows)] {
        if let Stored::Blocks(blocks) = &operand.stored
            && !blocks.tensor.sums_along(axis)
        {
            return Err(across(name, &blocks.tensor.format(), blocks.tensor.block(), shapes));
        }
    }
    let (order, narrow) = order(&spec, sum, &a, &b)?;
    let Cast { format, rounding, .. } = spec.output;
    if !format.is_exact_in_f32() {
        return Err(too_wide(&format));
    }
    if rounding.is_stochastic() && spec.random.is_none() {
        return Err(needs_seed());
    }
    let ((rows, depth), (_, cols)) = shapes;
    let mut out = gpu.memory::<f32>(out, [rows, cols])?;
    let (left, right) = (gpu.ready(&a, order, narrow)?, gpu.ready(&b, order, narrow)?);
    let ((a_shape, a_turned), (b_shape, b_turned)) = ((a.shape, a.turned), (b.shape, b.turned));
    let work = move || {
        if depth == 0 {
            // A sum of nothing, in every format.
            out.fill_bytes(0)?;
            return gpu.device().device().synchronize();
        }
        let (left, right) = (left.made(gpu)?, right.made(gpu)?);
        let (x, y) = (left.matrix(a_shape, a_turned)?, right.matrix(b_shape, b_turned)?);
        let scales = Scales { left: left.scale(), right: right.scale() };
        let place = ViewMut::new(&mut out, rows, cols)?;
        multiply(order, x, y, place, Scaling::OVERWRITE, scales)?;
        let rules = spec.output.rules();
        // Sums of this order keep whatever NaN the GPU makes; the conversion has one, as the CPU's products
        // have.
        if order == Order::F32 || format != Format::F32 || rules != Rules::DEFAULT {
            let converter = Converter::new(format, rules);
            let converter = spec.random.map_or(converter, |words| converter.with_random(words));
            let sums = out.try_clone()?;
            converter.fake_quantize_into(&sums, &mut out)?;
        }
        gpu.device().device().synchronize()
    };
    compute(py, work).map_err(failed)
}
