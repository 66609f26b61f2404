//! Matrices of blocks on a GPU, codes and values there, by addresses of PyTorch's tensors.
//!
//! Results go to memory that PyTorch has made room in. Blocks themselves are exmy-cuda's own memory.

use exmy::quantizer::{Axis, Cast};
use exmy::random::Philox;
use exmy_cuda::{BlockTensor, Buffer, Converter, Element, View};
use pyo3::prelude::*;

use crate::array::axis;
use crate::format::Format;
use crate::gpu::{Gpu, failed};
use crate::{compute, value_error};

/// A matrix of packed codes with the scales of its blocks, in the memory of a GPU.
#[pyclass(frozen, module = "exmy._exmy")]
pub(crate) struct GpuBlocks {
    gpu: Gpu,
    pub(crate) tensor: BlockTensor,
}

impl Gpu {
    /// The codes and scales of a matrix.
    pub(crate) fn quantize(
        self,
        py: Python<'_>,
        quantizer: &exmy::Quantizer,
        (axis, random): (Axis, Option<Philox>),
        (rows, cols): (usize, usize),
        x: &Bound<'_, PyAny>,
    ) -> PyResult<GpuBlocks> {
        let x = self.memory(x, [rows, cols])?;
        let work = || {
            let made = exmy_cuda::quantize(quantizer, View::new(&x, rows, cols)?, axis, random)?;
            self.device().device().synchronize().map(|()| made)
        };
        let tensor = compute(py, work).map_err(failed)?;
        Ok(GpuBlocks { gpu: self, tensor })
    }

    /// Writes the codes of `count` binary32 numbers.
    pub(crate) fn encode(
        &self,
        py: Python<'_>,
        (cast, random): (Cast, Option<Philox>),
        count: usize,
        [x, out]: [&Bound<'_, PyAny>; 2],
    ) -> PyResult<()> {
        let converter = Converter::new(cast.format, cast.rules());
        let converter = random.map_or(converter, |random| converter.with_random(random));
        let x = self.memory(x, [count, 1])?;
        macro_rules! encode {
            ($code:ty) => {{
                let mut out = self.memory::<$code>(out, [count, 1])?;
                let work = || {
                    converter.encode_into(&x, &mut out)?;
                    self.device().device().synchronize()
                };
                compute(py, work).map_err(failed)
            }};
        }
        match cast.format.bits() {
            0..=8 => encode!(u8),
            9..=16 => encode!(u16),
            _ => encode!(u32),
        }
    }

    /// Writes the values of `count` codes.
    pub(crate) fn decode(
        &self,
        py: Python<'_>,
        format: exmy::Format,
        count: usize,
        [codes, out]: [&Bound<'_, PyAny>; 2],
    ) -> PyResult<()> {
        let mut out = self.memory(out, [count, 1])?;
        macro_rules! decode {
            ($code:ty) => {{
                let codes = self.memory::<$code>(codes, [count, 1])?;
                let work = || {
                    exmy_cuda::decode_into(format, &codes, &mut out)?;
                    self.device().device().synchronize()
                };
                compute(py, work).map_err(failed)
            }};
        }
        match format.bits() {
            0..=8 => decode!(u8),
            9..=16 => decode!(u16),
            _ => decode!(u32),
        }
    }
}

impl GpuBlocks {
    /// Writes to memory of PyTorch what `work` makes of the tensor.
    fn write<T: Element>(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        count: usize,
        work: impl FnOnce(&BlockTensor, &mut Buffer<T>) -> exmy_cuda::Result<()> + Send,
    ) -> PyResult<()> {
        let mut out = self.gpu.memory(out, [count, 1])?;
        let work = || {
            work(&self.tensor, &mut out)?;
            self.gpu.device().device().synchronize()
        };
        compute(py, work).map_err(failed)
    }

    fn count(&self) -> usize {
        self.tensor.shape().0 * self.tensor.shape().1
    }
}

#[pymethods]
impl GpuBlocks {
    /// A matrix of its parts: the GPU, the block format's name, rows and columns, whether blocks lie along
    /// the columns, addresses and bytes of packed codes and scales, and the scale of the tensor.
    #[staticmethod]
    fn from_parts(
        py: Python<'_>,
        device: usize,
        name: &str,
        shape: (usize, usize),
        along_cols: bool,
        codes: (Bound<'_, PyAny>, usize),
        scales: (Bound<'_, PyAny>, usize),
        tensor_scale: Option<f32>,
    ) -> PyResult<Self> {
        let format = name.parse().map_err(value_error)?;
        let gpu = Gpu::of(device)?;
        let parts = [&codes, &scales].map(|(at, size)| gpu.memory::<u8>(at, [*size, 1]));
        let [codes, scales] = parts;
        let (codes, scales) = (codes?, scales?);
        let work = || {
            let (codes, scales) = (codes.try_clone()?, scales.try_clone()?);
            let axis = axis(along_cols);
            let made = BlockTensor::from_parts(format, axis, shape, codes, scales, tensor_scale)?;
            gpu.device().device().synchronize().map(|()| made)
        };
        // What can be wrong here is what was given.
        let tensor = compute(py, work).map_err(value_error)?;
        Ok(Self { gpu, tensor })
    }

    /// The number of the GPU.
    #[getter]
    fn device(&self) -> usize {
        self.gpu.index()
    }

    /// The block format's name.
    #[getter]
    fn name(&self) -> String {
        self.tensor.format().to_string()
    }

    /// Rows and columns of the matrix.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.tensor.shape()
    }

    /// Whether blocks lie along the columns.
    #[getter]
    fn along_cols(&self) -> bool {
        self.tensor.axis() == Axis::Cols
    }

    /// Rows and columns of blocks.
    #[getter]
    fn blocks(&self) -> (usize, usize) {
        self.tensor.blocks()
    }

    /// The format of the elements.
    #[getter]
    fn element(&self) -> Format {
        Format(self.tensor.format().element)
    }

    /// The format of the scales.
    #[getter]
    fn scale(&self) -> Format {
        Format(self.tensor.format().scale)
    }

    /// The scale of the tensor; None if the format has none.
    #[getter]
    fn tensor_scale(&self, py: Python<'_>) -> PyResult<Option<f32>> {
        compute(py, || self.tensor.tensor_scale()).map_err(failed)
    }

    /// Bytes of the packed codes and of the scales.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        (self.tensor.packed_codes().len(), self.tensor.packed_scales().len())
    }

    /// Copies the codes as a stream of bits.
    fn _packed(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(py, out, self.sizes().0, |tensor, out| out.copy_from(tensor.packed_codes()))
    }

    /// Copies the codes of the scales.
    fn _packed_scales(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(py, out, self.sizes().1, |tensor, out| out.copy_from(tensor.packed_scales()))
    }

    /// Writes the codes of the elements, one in each integer of `out`.
    fn _codes(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.tensor.format().element.bits() {
            0..=8 => self
                .write::<u8>(py, out, self.count(), |tensor, out| out.copy_from(&tensor.codes()?)),
            _ => self
                .write::<u16>(py, out, self.count(), |tensor, out| out.copy_from(&tensor.codes()?)),
        }
    }

    /// Writes the values.
    fn _dequantize(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(py, out, self.count(), BlockTensor::dequantize_into)
    }
}
