//! Arithmetic on codes against exact rational results, tables written out by hand, the machine's
//! own floating-point unit, and other libraries.

#![cfg(feature = "std")]
#![allow(unreachable_pub)]

#[path = "../common/mod.rs"]
mod common;
mod hardware;
mod integers;
mod mixed;
mod oracle;
mod pairs;
mod peers;
mod rules;
mod stochastic;
mod tables;
#[path = "../common/threads.rs"]
mod threads;
mod triples;
mod unary;
mod whole;
