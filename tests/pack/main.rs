//! Codes in their containers and out of them, against packers written for the purpose.

#![cfg(feature = "std")]

mod containers;
mod errors;
mod reference;
mod scales;
mod stream;
