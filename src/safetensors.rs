//! Tensors in files: safetensors in and out, one tensor at a time.
//!
//! [`Reader`] and [`Writer`] read and write the format, of which [`Header`] is the table of
//! contents. Only the header and one tensor are in memory at a time, so a model may be larger than
//! it. What a file claims of itself is checked before anything relies on it, and a file that is
//! being written appears whole or not at all.
//!
//! [`quantize()`] makes a file of codes and scales from one of numbers, by [`QuantizeOptions`]; [`Record`] is
//! what such a file says of itself, [`Reader::read_blocks`] and [`Reader::read_values`] read its
//! tensors, and [`dequantize`] writes their values. [`store()`] writes tensors that the caller has rounded.
//! [`Survey`] sums up what numbers look like.
//!
//! Errors say in words what was wrong; [`Fault::of`] says it to a program.

#![forbid(unsafe_code)]

mod container;
mod dtype;
mod fault;
mod fold;
#[doc(hidden)] // for the commands of exmy-lab
pub mod given;
mod glob;
mod header;
mod layout;
mod plan;
mod quantize;
mod reader;
mod record;
mod report;
mod run;
mod store;
mod stored;
mod survey;
mod values;
#[doc(hidden)] // for the commands of exmy-lab
pub mod whole;
mod writer;

pub use dtype::Dtype;
pub use fault::Fault;
#[doc(hidden)]
pub use fault::{extents, quoted};
pub use glob::{Glob, GlobFault, ParseGlobError};
pub use header::{Entry, Header, MAX_HEADER, Outline};
pub use layout::FileLayout;
pub use plan::{Output, QuantizeOptions};
pub use quantize::{dequantize, quantize};
pub use reader::Reader;
pub use record::{BITS, Record};
pub use report::{CopyReason, FileReport, Progress, TensorOutcome, TensorReport, Watch};
pub use store::{Stored, store};
pub use survey::Survey;
pub use writer::Writer;
