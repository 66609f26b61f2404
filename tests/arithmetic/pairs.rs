//! All pairs of all formats of up to 8 bits, in all deterministic modes, and where a result
//! overflows under all policies.

use exmy::format::{Format, Specials};
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Overflow, Rounded, Rounding, Rules, Standard, Tininess};

use crate::common::Meaning;
use crate::oracle::{self, Grid, Real, is_p3109, on_all};

/// The rules of a format's own standard.
pub fn rules(format: Format, mode: Rounding, overflow: Overflow, tininess: Tininess) -> Rules {
    let standard = if is_p3109(format) { Standard::P3109 } else { Standard::Ieee754 };
    Rules { rounding: mode, overflow, tininess, standard, ..Rules::DEFAULT }
}

/// A result by the crate against the oracle's, in all modes.
pub fn check(
    grid: &Grid,
    exact: &Real,
    what: &dyn Fn() -> String,
    ours: impl Fn(&Context) -> Rounded,
) {
    let place = match exact {
        Real::Finite(x) => Some(grid.place(x)),
        _ => None,
    };
    let end = place.is_some_and(|place| place.lower >= grid.model.max_code());
    let special = place.is_none();
    let policies: &[Overflow] = if end || special { &Overflow::ALL } else { &[Overflow::None] };
    for &overflow in policies {
        for (i, mode) in Rounding::DETERMINISTIC.into_iter().enumerate() {
            if special && i > 0 {
                break;
            }
            let tininess = if i % 2 == 0 { Tininess::After } else { Tininess::Before };
            let (code, flags) = grid.expected(exact, place, mode, overflow, 0, tininess);
            let context = Context::new(grid.format, rules(grid.format, mode, overflow, tininess));
            let rounded = ours(&context);
            let ours = rounded.flags.bits() & 7;
            assert!(
                rounded.code == code && flags.is_none_or(|flags| flags == ours),
                "{} {} {mode} {overflow}: {:#x} flags {ours:#x}, expected {code:#x} flags {flags:x?}",
                grid.format,
                what(),
                rounded.code,
            );
            if matches!(exact, Real::Infinite(false)) {
                assert!(!rounded.flags.contains(Flags::INEXACT), "{} {}", grid.format, what());
            }
        }
    }
}

/// Whether a code is a NaN whose first significand bit is clear, in a format of IEEE's kind.
pub fn is_signaling(grid: &Grid, code: u64) -> bool {
    grid.format.specials() == Specials::Ieee
        && matches!(grid.decode(code), Meaning::Nan(_))
        && code >> (grid.model.man_bits - 1) & 1 == 0
}

type Exact = fn(Meaning, Meaning, bool) -> Real;
type Ours = fn(&Context, Operand, Operand) -> Rounded;

const OPERATIONS: [(&str, Exact, Ours); 7] = [
    ("+", |a, b, _| oracle::add(a, b), |c, a, b| c.add(a, b)),
    ("-", |a, b, _| oracle::sub(a, b), |c, a, b| c.sub(a, b)),
    ("*", |a, b, _| oracle::mul(a, b), |c, a, b| c.mul(a, b)),
    ("/", oracle::div, |c, a, b| c.div(a, b)),
    ("hypot", oracle::hypot, |c, a, b| c.hypot(a, b)),
    ("rem", |a, b, _| oracle::rem(a, b, true), |c, a, b| c.rem(a, b)),
    ("fmod", |a, b, _| oracle::rem(a, b, false), |c, a, b| c.fmod(a, b)),
];

fn all_pairs(format: Format, operations: &[(&str, Exact, Ours)]) {
    let grid = Grid::new(format);
    let p3109 = is_p3109(format);
    let quiet = |code: u64| !is_signaling(&grid, code);
    for a in format.codes() {
        for b in format.codes() {
            let (x, y) = (grid.decode(a), grid.decode(b));
            for (name, exact, ours) in operations {
                let what = || format!("{a:#x} {name} {b:#x}");
                let operands = (Operand::new(format, a), Operand::new(format, b));
                // A signaling NaN gives NaN whatever the operation's table says of quiet ones.
                let loud = !quiet(a) || !quiet(b);
                let exact = if loud { oracle::add(x, y) } else { exact(x, y, p3109) };
                check(&grid, &exact, &what, |context| ours(context, operands.0, operands.1));
            }
        }
    }
}

#[test]
fn every_pair_of_every_small_format() {
    on_all(&oracle::formats(8, (3..=6).chain([8])), |format| all_pairs(*format, &OPERATIONS[..4]));
}

#[test]
fn every_pair_of_the_rarer_operations() {
    let formats = oracle::formats(8, 3..=5);
    on_all(&formats, |format| {
        if format.bits() < 8 || [Format::E4M3FN, Format::E5M2].contains(format) {
            all_pairs(*format, &OPERATIONS[4..]);
        }
    });
}
