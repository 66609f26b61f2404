//! What rounds a matrix, and matrices of codes that share scales.

use exmy::block::Axis;
use exmy::random::Philox;
use exmy::{BlockTensor, View, ViewMut};
use pyo3::buffer::Element;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Input, Output, axis};
use crate::format::{Address, Format, random};
use crate::gpu::Gpu;
use crate::gpu_blocks::GpuBlocks;
use crate::{compute, value_error};

/// What rounds a matrix: a format or a block format with modes and rules, as `Quantizer("nvfp4@sr8")`.
#[pyclass(frozen, eq, hash, subclass, module = "exmy._exmy")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Quantizer(exmy::Quantizer);

/// A matrix of packed codes with the scales of its blocks.
#[pyclass(frozen, module = "exmy._exmy")]
pub(crate) struct Blocks(pub(crate) BlockTensor);

/// A matrix of so many rows and columns.
pub(crate) fn matrix<'a, T: Element>(
    x: &'a Input<T>,
    rows: usize,
    cols: usize,
    name: &str,
) -> PyResult<View<'a, T>> {
    let (x, count) = (x.elements(), rows.checked_mul(cols));
    if count != Some(x.len()) {
        let found = x.len();
        return Err(value_error(format_args!(
            "{name} has {found} elements, which are not {rows} x {cols}"
        )));
    }
    Ok(View::new(x, rows, cols))
}

impl Quantizer {
    /// The axis and the random words for a matrix of this shape, if it can be rounded.
    fn how(
        &self,
        (rows, cols): (usize, usize),
        along_cols: bool,
        seed: Option<u64>,
        stream: Address,
    ) -> PyResult<(Axis, Option<Philox>)> {
        let (random, axis) =
            (random(self.0.is_stochastic(), seed, stream, &self.0)?, axis(along_cols));
        self.0.check_size(rows, cols, axis).map_err(value_error)?;
        Ok((axis, random))
    }
}

#[pymethods]
impl Quantizer {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        name.parse().map(Self).map_err(value_error)
    }

    /// Whether it needs a seed.
    #[getter]
    fn is_stochastic(&self) -> bool {
        self.0.is_stochastic()
    }

    /// Writes the values that a matrix has in low precision.
    fn _fake_quantize(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        shape: (usize, usize),
        along_cols: bool,
        seed: Option<u64>,
        stream: Address,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let x = Input::new(x, "x")?;
        let (axis, random) = self.how(shape, along_cols, seed, stream)?;
        let view = matrix(&x, shape.0, shape.1, "x")?;
        let mut out = Output::new(out, "out", x.elements().len())?;
        out.apart_from(&x, ["out", "x"])?;
        let out = ViewMut::new(out.elements(), shape.0, shape.1);
        compute(py, || self.0.image_into(view, axis, random, out));
        Ok(())
    }

    /// The same of a tensor on a GPU of this number; `x` and `out` are addresses in its memory.
    fn _fake_quantize_on(
        &self,
        py: Python<'_>,
        device: usize,
        x: &Bound<'_, PyAny>,
        shape: (usize, usize),
        along_cols: bool,
        seed: Option<u64>,
        stream: Address,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (axis, random) = self.how(shape, along_cols, seed, stream)?;
        Gpu::of(device)?.fake_quantize(py, &self.0, (axis, random), shape, [x, out])
    }

    /// The codes and scales of a matrix.
    fn _quantize(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        shape: (usize, usize),
        along_cols: bool,
        seed: Option<u64>,
        stream: Address,
    ) -> PyResult<Blocks> {
        let x = Input::new(x, "x")?;
        let (axis, random) = self.how(shape, along_cols, seed, stream)?;
        let view = matrix(&x, shape.0, shape.1, "x")?;
        let made = compute(py, || self.0.quantize(view, axis, random));
        made.map(Blocks).map_err(value_error)
    }

    /// The same of a tensor on a GPU of this number, at an address in its memory.
    fn _quantize_on(
        &self,
        py: Python<'_>,
        device: usize,
        x: &Bound<'_, PyAny>,
        shape: (usize, usize),
        along_cols: bool,
        seed: Option<u64>,
        stream: Address,
    ) -> PyResult<GpuBlocks> {
        let how = self.how(shape, along_cols, seed, stream)?;
        Gpu::of(device)?.quantize(py, &self.0, how, shape, x)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

#[pymethods]
impl Blocks {
    /// A matrix of its parts: the block format's name, rows and columns, whether blocks lie along the
    /// columns, packed codes, scales, and the scale of the tensor if the format has one.
    #[staticmethod]
    fn from_parts(
        name: &str,
        shape: (usize, usize),
        along_cols: bool,
        codes: &[u8],
        scales: &[u8],
        tensor_scale: Option<f32>,
    ) -> PyResult<Self> {
        let format = name.parse().map_err(value_error)?;
        let (codes, scales) = (codes.to_vec(), scales.to_vec());
        let made =
            BlockTensor::from_parts(format, axis(along_cols), shape, codes, scales, tensor_scale);
        made.map(Self).map_err(value_error)
    }

    /// The block format's name.
    #[getter]
    fn name(&self) -> String {
        self.0.format().to_string()
    }

    /// Rows and columns of the matrix.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.cols())
    }

    /// Whether blocks lie along the columns.
    #[getter]
    fn along_cols(&self) -> bool {
        self.0.axis() == Axis::Cols
    }

    /// Rows and columns of a block.
    #[getter]
    fn block(&self) -> (usize, usize) {
        self.0.block()
    }

    /// The format of the elements.
    #[getter]
    fn element(&self) -> Format {
        Format(self.0.format().element)
    }

    /// The format of the scales.
    #[getter]
    fn scale(&self) -> Format {
        Format(self.0.format().scale)
    }

    /// The scale of the tensor; None if the format has none.
    #[getter]
    fn tensor_scale(&self) -> Option<f32> {
        self.0.tensor_scale()
    }

    /// The codes as a stream of bits, row by row, the first code in the low bits of the first byte.
    #[getter]
    fn packed(&self, py: Python<'_>) -> Py<PyBytes> {
        PyBytes::new(py, self.0.packed_codes()).unbind()
    }

    /// The codes of the scales, little-endian, row by row over blocks.
    #[getter]
    fn packed_scales(&self, py: Python<'_>) -> Py<PyBytes> {
        PyBytes::new(py, self.0.packed_scales()).unbind()
    }

    /// Writes the codes of the elements, one in each number of `out`.
    fn _codes(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let (rows, cols) = self.shape();
        let codes = compute(py, || self.0.codes());
        match self.0.format().element.bits() {
            0..=8 => {
                let mut out = Output::<u8>::new(out, "out", rows * cols)?;
                out.elements().iter_mut().zip(codes).for_each(|(out, code)| *out = code as u8);
            }
            _ => {
                let mut out = Output::<u16>::new(out, "out", rows * cols)?;
                out.elements().iter_mut().zip(codes).for_each(|(out, code)| *out = code);
            }
        }
        Ok(())
    }

    /// Writes the values.
    fn _dequantize(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let (rows, cols) = self.shape();
        let mut out = Output::<f32>::new(out, "out", rows * cols)?;
        compute(py, || self.0.dequantize_into(ViewMut::new(out.elements(), rows, cols)));
        Ok(())
    }
}
