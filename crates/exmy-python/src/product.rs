//! Products of matrices in a stated order of summation, and the words that stochastic roundings take.

use exmy::block::{Axis, BlockFormat};
use exmy::gemm::{Accumulation, GemmError, Operand, Spec, Why, gemm_into};
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::slice::words_into;
use exmy::{Format, ViewMut};
use pyo3::prelude::*;

use crate::array::{Input, Output};
use crate::blocks::{Blocks, matrix};
use crate::format::Address;
use crate::{compute, value_error};

/// An operand: blocks, or an array in rows, of binary32 numbers or of codes.
enum Stored<'py> {
    Blocks(PyRef<'py, Blocks>),
    Numbers(Input<f32>),
    Bytes(Format, Input<u8>),
    Words(Format, Input<u16>),
}

/// An operand as it comes: what is stored, the shape of that, whether it is transposed, and the format of
/// codes.
pub(crate) type Given<'py> = (Bound<'py, PyAny>, (usize, usize), bool, Option<String>);

impl<'py> Stored<'py> {
    fn new((any, _, _, format): &Given<'py>, name: &str) -> PyResult<Self> {
        if let Ok(blocks) = any.cast::<Blocks>() {
            return Ok(Self::Blocks(blocks.borrow()));
        }
        let Some(format) = format else { return Input::new(any, name).map(Self::Numbers) };
        let format: Format = format.parse().map_err(value_error)?;
        match format.bits() {
            0..=8 => Input::new(any, name).map(|codes| Self::Bytes(format, codes)),
            9..=16 => Input::new(any, name).map(|codes| Self::Words(format, codes)),
            bits => {
                Err(value_error(format_args!("{name} has codes of {bits} bits; up to 16 work")))
            }
        }
    }

    fn operand(
        &self,
        (rows, cols): (usize, usize),
        turned: bool,
        name: &str,
    ) -> PyResult<Operand<'_>> {
        let operand = match self {
            Self::Blocks(blocks) => Operand::from(&blocks.0),
            Self::Numbers(x) => Operand::f32(matrix(x, rows, cols, name)?),
            Self::Bytes(format, x) => {
                Operand::codes8(*format, matrix(x, rows, cols, name)?).map_err(value_error)?
            }
            Self::Words(format, x) => {
                Operand::codes16(*format, matrix(x, rows, cols, name)?).map_err(value_error)?
            }
        };
        Ok(if turned { operand.t() } else { operand })
    }
}

/// The exception of a product that cannot be formed: where the library's message names its own functions,
/// those of the package.
fn in_words_of_python(error: &GemmError) -> PyErr {
    match &error.why {
        Why::Blocks { format, block, needed, .. } => {
            let name = if *needed == Axis::Cols { "a" } else { "b" };
            across(name, format, *block, (error.a, error.b))
        }
        Why::Random => needs_seed(),
        Why::Wide(format) => too_wide(format),
        _ => value_error(error),
    }
}

/// Blocks of the operand `name` that lie across the sum.
pub(crate) fn across(
    name: &str,
    format: &BlockFormat,
    (high, wide): (usize, usize),
    ((m, k), (_, n)): ((usize, usize), (usize, usize)),
) -> PyErr {
    let axis = if name == "a" { -1 } else { 0 };
    value_error(format_args!(
        "{name} is {format} in blocks of {high} x {wide}, and the sum of ({m} x {k}) times ({k} x {n}) \
         runs along its axis {axis}: exmy.quantize({name}, .., axis={axis})"
    ))
}

pub(crate) fn needs_seed() -> PyErr {
    value_error("stochastic rounding needs a seed: seed=1")
}

pub(crate) fn too_wide(format: &Format) -> PyErr {
    value_error(format_args!(
        "results are float32, which has not all numbers of {format}: output is a format within it"
    ))
}

/// A product's order of summation, and what its results are rounded to.
pub(crate) fn spec(
    sum: &str,
    output: Option<&str>,
    rounding: Option<&str>,
    seed: Option<u64>,
) -> PyResult<Spec> {
    let mut spec = Spec::from(Accumulation::named(sum).map_err(value_error)?);
    if let Some(format) = output {
        spec.output = Cast::new(format.parse().map_err(value_error)?);
    }
    if let Some(mode) = rounding {
        spec.output.rounding = mode.parse().map_err(value_error)?;
    }
    spec.random = seed.map(|seed| Philox::new(seed, Stream::new("gemm")));
    Ok(spec)
}

/// C = A B in the order that `sum` names. Each operand is blocks or binary32 numbers of the shape that comes
/// with it, transposed if so said. `out` is written and has the results of the output's format in binary32.
#[pyfunction]
pub(crate) fn gemm<'py>(
    py: Python<'py>,
    a: Given<'py>,
    b: Given<'py>,
    sum: &str,
    output: Option<&str>,
    rounding: Option<&str>,
    seed: Option<u64>,
    out: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let spec = spec(sum, output, rounding, seed)?;
    let (left, right) = (Stored::new(&a, "a")?, Stored::new(&b, "b")?);
    let operands = [&left, &right];
    let (left, right) = (left.operand(a.1, a.2, "a")?, right.operand(b.1, b.2, "b")?);
    let (rows, cols) = (left.rows(), right.cols());
    let mut out = Output::<f32>::new(out, "out", rows * cols)?;
    for (stored, name) in operands.into_iter().zip(["a", "b"]) {
        match stored {
            Stored::Blocks(_) => {}
            Stored::Numbers(x) => out.apart_from(x, ["out", name])?,
            Stored::Bytes(_, x) => out.apart_from(x, ["out", name])?,
            Stored::Words(_, x) => out.apart_from(x, ["out", name])?,
        }
    }
    let made =
        compute(py, || gemm_into(left, right, &spec, ViewMut::new(out.elements(), rows, cols)));
    made.map(drop).map_err(|error| in_words_of_python(&error))
}

/// Writes the random words of the elements from `first` on.
#[pyfunction]
pub(crate) fn random_words(
    py: Python<'_>,
    seed: u64,
    stream: Address,
    first: u64,
    out: &Bound<'_, PyAny>,
    count: usize,
) -> PyResult<()> {
    let mut out = Output::<u32>::new(out, "out", count)?;
    compute(py, || words_into(Philox::new(seed, stream.0), first, out.elements()));
    Ok(())
}
