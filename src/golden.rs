//! Golden numbers: recorded results of hardware, libraries and test generators, and whether this
//! crate agrees with them.

#![forbid(unsafe_code)]

pub mod columns;
