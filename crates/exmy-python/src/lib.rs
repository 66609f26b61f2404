//! exmy for Python: the module `exmy._exmy`, on which the package `exmy` beside it builds.
//!
//! What is here takes contiguous buffers and shapes; the package turns arrays, tensors and axes into those.
//! Results have the bits of the Rust library. Other threads of Python run while these functions compute.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

mod array;
mod blocks;
mod evaluate;
mod format;
mod gpu;
mod gpu_blocks;
mod gpu_product;
mod layers;
mod product;

#[pymodule]
mod _exmy {
    #[pymodule_export]
    use crate::_after_fork;
    #[pymodule_export]
    use crate::blocks::{Blocks, Quantizer};
    #[pymodule_export]
    use crate::evaluate::evaluate;
    #[pymodule_export]
    use crate::format::Format;
    #[pymodule_export]
    use crate::gpu_blocks::GpuBlocks;
    #[pymodule_export]
    use crate::gpu_product::gemm_on;
    #[pymodule_export]
    use crate::layers::{Plan, place_of};
    #[pymodule_export]
    use crate::product::{gemm, random_words};

    /// The feature is there.
    #[cfg(feature = "emulated")]
    #[pymodule_export]
    const _EMULATED: bool = true;
}

/// Whether this process was forked from one that may have had threads, which it has not.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The package calls this in a child process, which has threads of its own for each call from then on:
/// those of the pool are the parent's alone, and waiting for them would not end.
#[pyfunction]
fn _after_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Does the work while other threads of Python run.
fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| match FORKED.load(Ordering::Relaxed) {
        true => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            exmy::parallel::with_threads(threads, work).expect("the system grants threads")
        }
        false => work(),
    })
}

/// An exception of a value that cannot be used, with what would work.
fn value_error(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}
