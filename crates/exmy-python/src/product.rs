//! Products of matrices in a stated order of summation, and the words that stochastic roundings take.

use exmy::ViewMut;
use exmy::gemm::{Operand, Spec, gemm_into};
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::slice::words_into;
use pyo3::prelude::*;

use crate::array::{Input, Output};
use crate::blocks::{Blocks, matrix};
use crate::value_error;

/// An operand: blocks, or an array of binary32 numbers in rows.
enum Stored<'py> {
    Blocks(PyRef<'py, Blocks>),
    Numbers(Input<f32>),
}

impl<'py> Stored<'py> {
    fn new(any: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        match any.cast::<Blocks>() {
            Ok(blocks) => Ok(Self::Blocks(blocks.borrow())),
            Err(_) => Input::new(any, name).map(Self::Numbers),
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
        };
        Ok(if turned { operand.t() } else { operand })
    }
}

/// C = A B in the order that `sum` names. Each operand is blocks or binary32 numbers of the shape that comes
/// with it, transposed if so said. `out` is written and has the results of the output's format in binary32.
#[pyfunction]
pub(crate) fn gemm<'py>(
    py: Python<'py>,
    a: (Bound<'py, PyAny>, (usize, usize), bool),
    b: (Bound<'py, PyAny>, (usize, usize), bool),
    sum: &str,
    output: Option<&str>,
    rounding: Option<&str>,
    seed: Option<u64>,
    out: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let ((a, a_shape, a_turned), (b, b_shape, b_turned)) = (a, b);
    let mut spec = Spec::parse(sum).map_err(value_error)?;
    if let Some(format) = output {
        spec.output = Cast::new(format.parse().map_err(value_error)?);
    }
    if let Some(mode) = rounding {
        spec.output.rounding = mode.parse().map_err(value_error)?;
    }
    spec.random = seed.map(|seed| Philox::new(seed, Stream::new("gemm")));
    let (a, b) = (Stored::new(&a, "a")?, Stored::new(&b, "b")?);
    let (left, right) = (a.operand(a_shape, a_turned, "a")?, b.operand(b_shape, b_turned, "b")?);
    let (rows, cols) = (left.rows(), right.cols());
    let mut out = Output::<f32>::new(out, "out", rows * cols)?;
    for (stored, name) in [(&a, "a"), (&b, "b")] {
        if let Stored::Numbers(x) = stored {
            out.apart_from(x, ["out", name])?;
        }
    }
    let made =
        py.detach(|| gemm_into(left, right, &spec, ViewMut::new(out.elements(), rows, cols)));
    made.map(drop).map_err(value_error)
}

/// Writes the random words of the elements from `first` on.
#[pyfunction]
pub(crate) fn random_words(
    py: Python<'_>,
    seed: u64,
    stream: &str,
    first: u64,
    out: &Bound<'_, PyAny>,
    count: usize,
) -> PyResult<()> {
    let mut out = Output::<u32>::new(out, "out", count)?;
    py.detach(|| words_into(Philox::new(seed, Stream::new(stream)), first, out.elements()));
    Ok(())
}
