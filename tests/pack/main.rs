//! Codes in their containers and out of them, against packers written for the purpose.

mod containers;
mod errors;
mod reference;
mod scales;
mod stream;
