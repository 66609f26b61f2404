//! Arithmetic on codes against exact rational results, tables written out by hand, the machine's
//! own floating-point unit, and other libraries.

#![cfg(feature = "std")]

#[path = "../common/mod.rs"]
mod common;
mod hardware;
mod integers;
mod mixed;
mod oracle;
mod pairs;
mod stochastic;
mod tables;
mod triples;
mod unary;
