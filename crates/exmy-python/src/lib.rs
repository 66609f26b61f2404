//! exmy for Python: the module `exmy._exmy`, on which the package `exmy` beside it builds.
//!
//! What is here takes contiguous buffers and shapes; the package turns arrays, tensors and axes into those.
//! Results have the bits of the Rust library. Other threads of Python run while these functions compute.

use pyo3::prelude::*;

mod array;
mod blocks;
mod format;
mod product;

#[pymodule]
mod _exmy {
    #[pymodule_export]
    use crate::blocks::{Blocks, Quantizer};
    #[pymodule_export]
    use crate::format::Format;
    #[pymodule_export]
    use crate::product::{gemm, random_words};
}

/// An exception of a value that cannot be used, with what would work.
fn value_error(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}
