//! Tensors in the memory of a GPU, by their addresses.
//!
//! PyTorch has the primary context of a GPU, and so has exmy-cuda, so an address of the one is one of the
//! other. The package waits for PyTorch's stream before a call; a call waits for its own work before it
//! returns. The driver is loaded when a tensor of a GPU comes, so the package needs no CUDA.

#![allow(unsafe_code)] // memory that PyTorch owns

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use exmy::quantizer::{Axis, Quantizer};
use exmy::random::Philox;
use exmy_cuda::train::Cuda;
use exmy_cuda::{Device, Element, View, ViewMut};
use exmy_train::nn::device::{Buffer, Storage as _};
use exmy_train::recipe::state::RecipeState;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A GPU and a stream of it, one a process.
pub(crate) struct Gpu {
    index: usize,
    cuda: Cuda,
}

/// An exception of what a GPU could not do.
pub(crate) fn failed(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl Gpu {
    /// The GPU of this number.
    pub(crate) fn of(index: usize) -> PyResult<Self> {
        static OPEN: Mutex<BTreeMap<usize, Cuda>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let cuda = match open.get(&index) {
            Some(cuda) => cuda.clone(),
            None => {
                let cuda = Cuda::new(opened(index)?);
                open.insert(index, cuda.clone());
                cuda
            }
        };
        Ok(Self { index, cuda })
    }

    /// Its number.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    /// What the layers compute with.
    pub(crate) const fn device(&self) -> &Cuda {
        &self.cuda
    }

    /// The tensor of binary32 numbers at an address, contiguous, of a shape.
    pub(crate) fn tensor(
        &self,
        address: &Bound<'_, PyAny>,
        [rows, cols]: [usize; 2],
    ) -> PyResult<Buffer<Cuda>> {
        let buffer = self.memory::<f32>(address, [rows, cols])?;
        let len = buffer.len();
        Ok(Buffer::of(buffer.into(), len))
    }

    /// The contiguous tensor at an address, of a shape.
    pub(crate) fn memory<T: Element>(
        &self,
        address: &Bound<'_, PyAny>,
        [rows, cols]: [usize; 2],
    ) -> PyResult<exmy_cuda::Buffer<T>> {
        let len =
            rows.checked_mul(cols).ok_or_else(|| failed("a tensor of more than 2**64 elements"))?;
        // SAFETY: the package hands over addresses of tensors of this GPU that are contiguous and have this
        // shape and type, keeps them while the call runs, and waits for the stream that wrote them; the call
        // waits for its own work before it returns.
        let buffer =
            unsafe { exmy_cuda::Buffer::borrowed(self.cuda.device(), address.extract()?, len) };
        buffer.map_err(failed)
    }

    /// Waits for what was asked of the stream.
    pub(crate) fn wait(&self) -> exmy::error::Result<()> {
        self.cuda.check()
    }

    /// The exception of what went wrong, which then is out of the way.
    pub(crate) fn finish(&self, result: exmy::error::Result<()>) -> PyResult<()> {
        result.map_err(|error| {
            self.cuda.take_failure();
            failed(error)
        })
    }

    /// Writes the values that a matrix has in low precision.
    pub(crate) fn fake_quantize(
        &self,
        py: Python<'_>,
        quantizer: &Quantizer,
        (axis, random): (Axis, Option<Philox>),
        (rows, cols): (usize, usize),
        [x, out]: [&Bound<'_, PyAny>; 2],
    ) -> PyResult<()> {
        let x = self.memory(x, [rows, cols])?;
        let mut out = self.memory::<f32>(out, [rows, cols])?;
        let work = || {
            let (x, out) = (View::new(&x, rows, cols)?, ViewMut::new(&mut out, rows, cols)?);
            exmy_cuda::image_into(quantizer, x, axis, random, out)?;
            self.cuda.device().synchronize()
        };
        crate::compute(py, work).map_err(failed)
    }
}

/// A GPU, or with the feature `emulated` this processor, which then is the GPU 99.
fn opened(index: usize) -> PyResult<Device> {
    #[cfg(feature = "emulated")]
    if index == 99 {
        let folder = std::env::temp_dir().join("exmy-emulated");
        return Device::emulated(folder).ok_or_else(|| failed("there is no C++ compiler"));
    }
    Device::new(index).map_err(failed)
}

/// Memory to work in, of each GPU, and what the recipe remembers, which lies with the one used last.
#[derive(Default)]
pub(crate) struct Images {
    all: BTreeMap<usize, exmy_train::recipe::Images<Cuda>>,
    last: usize,
}

impl Images {
    /// Those of a GPU.
    pub(crate) fn of(&mut self, gpu: &Gpu) -> &mut exmy_train::recipe::Images<Cuda> {
        if self.last != gpu.index {
            let memory = std::mem::take(self.memory());
            self.last = gpu.index;
            *self.memory() = memory;
        }
        self.all.entry(gpu.index).or_default()
    }

    /// What the recipe remembers.
    pub(crate) fn memory(&mut self) -> &mut RecipeState {
        &mut self.all.entry(self.last).or_default().memory
    }
}
