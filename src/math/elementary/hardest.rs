//! The hardest cases: exhaustive runs that show that every enclosure decides, and print the table
//! of the repository's `docs/hardest-cases.md`.

extern crate std;
use std::string::String;
use std::{format, println};

use super::number::Number;
use super::{Function, enclose, near, special};
use crate::format::Value;
use crate::round::Standard;

/// What the widest target decides by: binary64 with 32 random bits.
const MOST: u32 = 53 + 2 + 32;
/// What a target of 17 bits decides by in a deterministic mode.
const USUAL: u32 = 17 + 2;

/// What a run over the operands of a function found.
#[derive(Default)]
struct Tally {
    tried: u64,
    /// Operands left open by 64 bits for the usual targets, and by 128 and 256 bits for all.
    open: [u64; 3],
    /// Operands that 512 bits leave open for some target.
    undecided: u64,
    /// The longest run of equal bits after the 17th, and its operand.
    run: u32,
    hardest: String,
}

impl Tally {
    fn add(
        &mut self,
        function: Function,
        a: Number,
        b: Number,
        is_near: bool,
        name: impl Fn() -> String,
    ) {
        self.tried += 1;
        let ball = enclose::<2>(function, a, b);
        if !is_near {
            self.open[0] += u64::from(enclose::<1>(function, a, b).decide(USUAL).is_none());
            let run = ball.run(17).or_else(|| enclose::<4>(function, a, b).run(17));
            let run = run.expect("256 bits show how long the run is");
            if run > self.run {
                (self.run, self.hardest) = (run, name());
            }
        }
        if ball.decide(MOST).is_none() {
            self.open[1] += 1;
            if enclose::<4>(function, a, b).decide(MOST).is_none() {
                self.open[2] += 1;
                self.undecided += u64::from(enclose::<8>(function, a, b).decide(MOST).is_none());
            }
        }
    }

    fn print(&self, function: Function) {
        let Self { tried, open: [a, b, c], run, hardest, .. } = self;
        println!("| `{function}` | {tried} | {run} | {hardest} | {a} | {b} | {c} |");
        assert_eq!(self.undecided, 0, "{function}");
    }
}

/// Every number of up to 16 significant bits in `2^-160 <= |x| < 2^160`, every function of one
/// operand. Some minutes:
/// `cargo test --release --lib hardest::unary -- --ignored --nocapture`
#[test]
#[ignore = "minutes; the command is above"]
fn unary() {
    for function in Function::ALL.into_iter().filter(|function| function.operands() == 1) {
        let mut found = Tally::default();
        for significand in (1..1_u64 << 16).step_by(2) {
            let width = 64 - significand.leading_zeros() as i32;
            for exponent in -159 - width..=160 - width {
                for negative in [false, true] {
                    let x = Number { negative, significand, exponent };
                    let value = Value::Finite { negative, significand, exponent };
                    let case = special::unary(function, value, Standard::Ieee754);
                    if !matches!(case, special::Case::Open)
                        || near::unary(function, x, MOST).is_some()
                    {
                        continue;
                    }
                    let is_near = near::unary(function, x, USUAL).is_some();
                    let sign = if negative { "-" } else { "" };
                    found.add(function, x, x, is_near, || {
                        format!("{sign}{significand} * 2^{exponent}")
                    });
                }
            }
        }
        found.print(function);
    }
}

/// Widths of significands and largest differences of exponents that are tried as pairs. They are
/// those of all formats of up to 16 bits with 8, 7, and 5 or 6 exponent bits, whatever their bias.
const PAIRS: [(u32, i32); 3] = [(9, 264), (10, 136), (12, 72)];

/// Every angle of `(+-b, a 2^k)` with `a`, `b` and `k` within [`PAIRS`]. About twenty minutes:
/// `cargo test --release --lib hardest::binary -- --ignored --nocapture`
#[test]
#[ignore = "minutes; the command is above"]
fn binary() {
    for (width, reach) in PAIRS {
        for function in [Function::Atan2, Function::Atan2Pi] {
            let mut found = Tally::default();
            for a in (1..1_u64 << width).step_by(2) {
                for b in (1..1_u64 << width).step_by(2) {
                    for k in -reach..=reach {
                        for negative in [false, true] {
                            pair(&mut found, function, (a, k), (negative, b));
                        }
                    }
                }
            }
            println!("{width} bits, 2^{reach}:");
            found.print(function);
        }
    }
}

fn pair(found: &mut Tally, function: Function, (a, k): (u64, i32), (negative, b): (bool, u64)) {
    let y = Number { negative: false, significand: a, exponent: k };
    let x = Number { negative, significand: b, exponent: 0 };
    let diagonal = a == b && k == 0;
    if diagonal || near::binary(function, y, x, MOST).is_some() {
        return;
    }
    let is_near = near::binary(function, y, x, USUAL).is_some();
    let sign = if negative { "-" } else { "" };
    found.add(function, y, x, is_near, || format!("{a} * 2^{k}, {sign}{b}"));
}
