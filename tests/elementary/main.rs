//! Elementary functions: against an arbitrary-precision crate, a binary64 library as a screen, and
//! the tables of the standards.

#[path = "../common/mod.rs"]
mod common;

mod names;
mod oracle;
mod pairs;
#[allow(dead_code, unreachable_pub)]
#[path = "../arithmetic/oracle.rs"]
mod places;
mod power;
mod powers_of_two;
mod screen;
mod sixteen;
mod small;
mod special;

use common::{Meaning, Model, Num};

/// The finite nonzero number of a code, by the model.
fn number(model: &Model, code: u64) -> Option<(bool, Num)> {
    match model.decode(code) {
        Meaning::Finite(negative, x) if x.integer != 0 => Some((negative, x)),
        _ => None,
    }
}
