//! Golden numbers: test vectors in the formats that verification flows use, read, judged and
//! written.
//!
//! * [`function`]: an operation on formats by its Berkeley TestFloat name;
//! * [`evaluate`]: what it returns;
//! * [`testfloat`]: TestFloat's case lines and the verdict on them;
//! * [`mod@compute`]: a stream of operands, answered with results;
//! * [`convert`]: a stream of codes from one format to another;
//! * [`cases`]: cases for any operation on any formats, in several styles;
//! * [`columns`]: recorded conversions of hardware and libraries, recomputed;
//! * [`tiles`]: recorded dot products of matrix units, recomputed;
//! * [`p3109`]: what of that standard is here, and κ;
//! * [`lines`]: what they read their input with.

#![forbid(unsafe_code)]

mod answer;
pub mod cases;
pub mod columns;
pub mod compute;
pub mod convert;
pub mod evaluate;
mod exact;
pub mod function;
pub mod lines;
mod operation;
pub mod p3109;
mod recording;
pub mod testfloat;
pub mod tiles;

pub use recording::RecordingError;
