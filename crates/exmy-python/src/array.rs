//! Arrays of Python by the buffer protocol, without a copy.
//!
//! The package hands over contiguous arrays of the element type that is asked for. As with functions of
//! NumPy, no other thread may write to them meanwhile.

#![allow(unsafe_code)] // memory that Python owns

use std::ops::Range;

use exmy::block::Axis;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

use crate::value_error;

/// An array that is read.
pub(crate) struct Input<T: Element>(PyBuffer<T>);

/// An array that is written.
pub(crate) struct Output<T: Element>(PyBuffer<T>);

fn contiguous<T: Element>(any: &Bound<'_, PyAny>, name: &str) -> PyResult<PyBuffer<T>> {
    let buffer = PyBuffer::get(any)
        .map_err(|error| value_error(format_args!("{name} is no array of its type: {error}")))?;
    if !buffer.is_c_contiguous() {
        return Err(value_error(format_args!(
            "{name} is not contiguous; numpy.ascontiguousarray copies it"
        )));
    }
    Ok(buffer)
}

fn addresses<T: Element>(buffer: &PyBuffer<T>) -> Range<usize> {
    let start = buffer.buf_ptr().addr();
    start..start + buffer.len_bytes()
}

impl<T: Element> Input<T> {
    /// The array `any`, called `name` in messages.
    pub(crate) fn new(any: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        contiguous(any, name).map(Self)
    }

    /// Its elements.
    pub(crate) fn elements(&self) -> &[T] {
        let count = self.0.item_count();
        if count == 0 {
            return &[];
        }
        // SAFETY: the buffer is contiguous and has as many initialized elements of this type, aligned for it,
        // as `PyBuffer` has checked; Python keeps it while `self` lives; nobody writes to it meanwhile, by
        // the contract of the module, and no `Output` of ours does, which sees to that.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), count) }
    }
}

impl<T: Element> Output<T> {
    /// The array `any` of `count` elements, called `name` in messages.
    pub(crate) fn new(any: &Bound<'_, PyAny>, name: &str, count: usize) -> PyResult<Self> {
        let buffer = contiguous::<T>(any, name)?;
        if buffer.readonly() {
            return Err(value_error(format_args!("{name} is read-only")));
        }
        if buffer.item_count() != count {
            let found = buffer.item_count();
            return Err(value_error(format_args!(
                "{name} has {found} elements; there are {count} results"
            )));
        }
        Ok(Self(buffer))
    }

    /// Refuses memory that an operand has, too.
    pub(crate) fn apart_from<U: Element>(
        &self,
        input: &Input<U>,
        names: [&str; 2],
    ) -> PyResult<()> {
        let (own, other) = (addresses(&self.0), addresses(&input.0));
        if own.start < other.end && other.start < own.end {
            let [own, other] = names;
            return Err(value_error(format_args!(
                "{own} and {other} share memory; {own} needs its own"
            )));
        }
        Ok(())
    }

    /// Its elements.
    pub(crate) fn elements(&mut self) -> &mut [T] {
        let count = self.0.item_count();
        if count == 0 {
            return &mut [];
        }
        // SAFETY: as for `Input`, of a buffer that can be written; `apart_from` has seen to it that no slice
        // of ours shares its memory.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), count) }
    }
}

/// Blocks lie along the columns of rows (True) or along rows, that is down the columns.
pub(crate) const fn axis(along_cols: bool) -> Axis {
    if along_cols { Axis::Cols } else { Axis::Rows }
}
