//! exmy for C and C++: `include/exmy.h` and the functions it declares.
//!
//! Each function here is a call of the library `exmy` and has its bits. This crate adds what a border
//! needs: handles, arrays checked before they are read, and a status in place of an error or a panic.
//! `docs/c.md` and `docs/systemverilog.md` in the repository are for who calls it; this page is for who
//! changes it.
//!
//! * **A call** returns an [`ExmyStatus`]. What went wrong is reported by [`exmy_message`], of this thread's
//!   last failure. Only functions that free something, the message and the version return anything else.
//! * **A panic** ends at the border as [`ExmyStatus::Internal`]. Arguments are checked before, so none is
//!   known. Where Rust is built with `panic = "abort"` there is nothing to catch, and one ends the process.
//! * **A handle** is made by `exmy_X_new` and freed by `exmy_X_free`, which takes null, too. Handles do not
//!   change, so threads may share them.
//! * **A text** ends with a zero byte and is UTF-8.
//! * **Codes** stand in the smallest of `uint8_t`, `uint16_t`, `uint32_t` and `uint64_t` that holds them.
//!   The numbers of C are codes as well: a `float` is one of `f32`, a `double` one of `f64`.
//!
//! # Safety
//!
//! One contract holds for every function that is `unsafe`. A pointer to an array is valid for as many
//! elements as the function says; one to a text up to its zero byte. A handle was made by its function and
//! is not freed yet. During a call nobody else writes to what it reads, or touches what it writes. Null,
//! misaligned and overlapping arrays are found and refused.

#![deny(unsafe_code)]
// One contract for all functions stands above, and need not stand at each in the header.
#![allow(clippy::missing_safety_doc)]

mod arrays;
mod blocks;
mod convert;
mod format;
mod function;
mod matrix;
mod pack;
mod product;
mod random;
mod settings;
mod status;
mod unit;

pub use blocks::*;
pub use convert::*;
pub use format::*;
pub use function::*;
pub use matrix::*;
pub use pack::*;
pub use product::*;
pub use random::*;
pub use status::*;
pub use unit::*;
