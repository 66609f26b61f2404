//! The typed scalars: their values, names, traits and functions, the short ways against the definition, and
//! other crates' types beside them.

#![cfg(feature = "std")]

#[path = "../common/mod.rs"]
mod common;
mod fast;
mod functions;
mod names;
mod peers;
mod scalars;
mod traits;
mod types;
