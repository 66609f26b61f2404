//! Recorded conversions in columns: the file format `EXMYCONV`, and the verdict on each column.
//!
//! Such a file holds inputs `x` and, column by column, the codes that a device or library made of
//! them. A column's name says how it was made; [`Conversion::find`] knows the names and expresses
//! each by a source format, a target format, a [`Profile`](crate::round::Profile) and a rounding
//! mode. All integers are little-endian:
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic `EXMYCONV` |
//! | 8 | four u32: version (1), [`Table`], rows R, columns N; zero to byte 32 |
//! | 32 | N descriptors of 32 bytes: name (28 bytes, zero padded), u32 element size (1, 2, 4, 8) |
//! | then | the columns one after another, R elements each; the first is `x`, except of digests |
//!
//! A digest file has no `x`. Row `b` of a column covers the `2^22` binary32 words from `b * 2^22`
//! on: it is the sum modulo `2^64` of [`mix64`]`(x << 32 | code)`. The 1,024 rows of a column thus
//! bind the result of every one of the `2^32` inputs.
//!
//! ```
//! use exmy::vectors::columns::{Columns, Conversion, Table};
//!
//! let conversion = Conversion::find(Table::F32, "e4m3_rn_satfinite").unwrap();
//! assert_eq!(conversion.to_string(), "--from f32 --to e4m3 --profile cuda-satfinite");
//! assert_eq!(conversion.apply(u64::from(500.0_f32.to_bits())), 0x7E); // 448
//! assert!(Columns::parse(b"EXMYCONV".to_vec()).is_err());
//! ```

mod conversion;
mod digest;
mod file;
mod verdict;

pub use conversion::Conversion;
pub use digest::{BLOCK, digest, mix64};
pub use file::{Column, Columns, ColumnsError, Table};
pub use verdict::{ColumnMismatch, ColumnVerdict};
