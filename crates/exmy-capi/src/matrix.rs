//! An operand of a product: codes of a format in rows and columns, or blocks.

#![allow(unsafe_code)] // the caller's arrays

use std::ffi::c_void;

use exmy::gemm::Operand;
use exmy::{Format, View};

use crate::arrays::{Arrays, Codes};
use crate::blocks::{ExmyBlocks, span};
use crate::format::ExmyFormat;
use crate::status::Failure;

/// An operand of a product. It is `blocks`, or where that is null `rows` x `cols` codes of `format`: element
/// (i, j) is code `i * row_stride + j * col_stride`. Two strides of 0 mean rows one after the other.
#[repr(C)]
pub struct ExmyMatrix<'a> {
    /// A matrix of blocks. All below but `transposed` does not count then.
    pub blocks: Option<&'a ExmyBlocks>,
    /// The format of the codes.
    pub format: Option<&'a ExmyFormat>,
    /// The codes: of `f32` an array of `float`.
    pub codes: *const c_void,
    /// Rows of what is stored.
    pub rows: usize,
    /// Columns of what is stored.
    pub cols: usize,
    /// Codes from an element to the one below.
    pub row_stride: usize,
    /// Codes from an element to the one on its right.
    pub col_stride: usize,
    /// If not 0, the operand has the columns as rows and the rows as columns; nothing is moved.
    pub transposed: u32,
}

impl<'a> ExmyMatrix<'a> {
    /// The operand.
    ///
    /// # Safety
    /// As [`Arrays::read`].
    pub(crate) unsafe fn operand(
        &self,
        arrays: &mut Arrays,
        name: &'static str,
    ) -> Result<Operand<'a>, Failure> {
        let stored = match self.blocks {
            Some(blocks) => Operand::from(&blocks.0),
            // SAFETY: the caller's word.
            None => unsafe { self.codes(arrays, name) }?,
        };
        Ok(if self.transposed == 0 { stored } else { stored.t() })
    }

    /// # Safety
    /// As [`Arrays::read`].
    unsafe fn codes(
        &self,
        arrays: &mut Arrays,
        name: &'static str,
    ) -> Result<Operand<'a>, Failure> {
        let Self { rows, cols, codes, .. } = *self;
        let Some(format) = self.format else {
            return Err(Failure::argument(format_args!("{name} has neither blocks nor a format")));
        };
        let (down, right) = match (self.row_stride, self.col_stride) {
            (0, 0) => (cols, 1),
            strides => strides,
        };
        let count = span(rows, cols, down, right)?;
        macro_rules! view {
            ($numbers:expr) => {
                View::with_strides($numbers, (rows, cols), (down, right))
                    .map_err(Failure::argument)?
            };
        }
        // SAFETY: the caller's word.
        unsafe {
            Ok(match format.0 {
                Format::F32 => Operand::f32(view!(arrays.read(codes.cast(), count, name)?)),
                Format::F64 => Operand::f64(view!(arrays.read(codes.cast(), count, name)?)),
                format => match arrays.codes(codes, count, format.bits(), name)? {
                    Codes::U8(codes) => {
                        Operand::codes8(format, view!(codes)).map_err(Failure::unsupported)?
                    }
                    Codes::U16(codes) => {
                        Operand::codes16(format, view!(codes)).map_err(Failure::unsupported)?
                    }
                    Codes::U32(codes) => {
                        Operand::codes32(format, view!(codes)).map_err(Failure::unsupported)?
                    }
                    Codes::U64(codes) => Operand::codes64(format, view!(codes)),
                },
            })
        }
    }
}
