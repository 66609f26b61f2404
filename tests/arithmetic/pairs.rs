//! Pairs of codes of the formats of up to 8 bits, in all deterministic modes with all flags, and
//! where a result is outside of the range, infinite or NaN under all policies.

use exmy::format::{Format, Specials};
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rounded, Rounding, Rules, Standard, Tininess};

use crate::common::Meaning;
use crate::oracle::{self, Grid, Real, is_p3109};
use crate::threads::on_all;

/// The rules of a format's own standard.
pub fn rules(format: Format, mode: Rounding, overflow: Overflow, tininess: Tininess) -> Rules {
    let standard = if is_p3109(format) { Standard::P3109 } else { Standard::Ieee754 };
    Rules::DEFAULT
        .with_rounding(mode)
        .with_overflow(overflow)
        .with_tininess(tininess)
        .with_standard(standard)
}

/// A result by the crate against the oracle's, code and all six flags, in all modes: by both
/// notions of tininess where a number may be tiny, by all policies where it may be out of range.
/// `raised` are the operation's own flags.
pub fn check(
    grid: &Grid,
    exact: &Real,
    raised: u8,
    what: &dyn Fn() -> String,
    ours: impl Fn(&Context) -> Rounded,
) {
    let place = match exact {
        Real::Finite(x) => Some(grid.place(x)),
        _ => None,
    };
    let outside = match exact {
        Real::Finite(x) => {
            place.is_some_and(|place| place.lower >= grid.model.max_code())
                || x.negative && !grid.model.signed
                || !grid.model.zero && place.is_some_and(|place| place.lower == 0)
        }
        _ => true,
    };
    let policies: &[Overflow] = if outside { &Overflow::ALL } else { &[Overflow::None] };
    let may_be_tiny = place.is_some_and(|place| grid.may_be_tiny(place));
    for &overflow in policies {
        for (i, mode) in Rounding::DETERMINISTIC.into_iter().enumerate() {
            let tininess = [Tininess::After, Tininess::Before];
            let tininess = if may_be_tiny { &tininess[..] } else { &tininess[i % 2..=i % 2] };
            for &tininess in tininess {
                let (code, flags) =
                    grid.outcome(exact, place, (mode, overflow, tininess), 0, raised);
                let rules = rules(grid.format, mode, overflow, tininess);
                let rounded = ours(&Context::new(grid.format, rules));
                assert!(
                    rounded.code == code && rounded.flags.bits() == flags,
                    "{} {} {mode} {overflow} {tininess:?}: {:#x} flags {:#x}, expected {code:#x} \
                     flags {flags:#x}",
                    grid.format,
                    what(),
                    rounded.code,
                    rounded.flags.bits(),
                );
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

/// Every `step`th pair, from the first one, counted with the second operand changing fastest.
fn pairs(format: Format, operations: &[(&str, Exact, Ours)], step: usize) {
    let grid = Grid::new(format);
    let p3109 = is_p3109(format);
    let count = 1_u64 << format.bits();
    for pair in (0..count * count).step_by(step) {
        let (a, b) = (pair / count, pair % count);
        let (x, y) = (grid.decode(a), grid.decode(b));
        // A signaling NaN gives NaN whatever the operation's table says of quiet ones.
        let signaling = is_signaling(&grid, a) || is_signaling(&grid, b);
        for (name, exact, ours) in operations {
            let what = || format!("{a:#x} {name} {b:#x}");
            let operands = (Operand::new(format, a), Operand::new(format, b));
            let exact = if signaling { oracle::add(x, y) } else { exact(x, y, p3109) };
            let raised = oracle::raised(&exact, &[x, y], signaling);
            check(&grid, &exact, raised, &what, |context| ours(context, operands.0, operands.1));
        }
    }
}

/// Those and hypot, rem and fmod: of all shapes of up to 8 bits one pair in 211, and all of up to
/// 4 bits.
#[test]
fn some_pairs_of_every_shape() {
    let shapes = oracle::shapes(8);
    assert_eq!(shapes.len(), 1175);
    on_all(&shapes, |format| {
        pairs(*format, &OPERATIONS, if format.bits() <= 4 { 1 } else { 211 });
    });
}

/// hypot, rem and fmod: all pairs of the formats of up to 7 bits with names, of P3109's with up to
/// 5 bits, of E4M3FN and of E5M2.
#[test]
fn every_pair_of_the_rarer_operations() {
    let formats = oracle::formats(8, 3..=5);
    on_all(&formats, |format| {
        if format.bits() < 8 || [Format::E4M3FN, Format::E5M2].contains(format) {
            pairs(*format, &OPERATIONS[4..], 1);
        }
    });
}

/// Add, subtract, multiply and divide, all pairs of all shapes of up to 8 bits:
///
/// ```text
/// cargo test --release --test arithmetic -- --ignored every_pair_of_every_shape
/// ```
#[test]
#[ignore = "minutes; the command is above"]
fn every_pair_of_every_shape() {
    on_all(&oracle::shapes(8), |format| pairs(*format, &OPERATIONS[..4], 1));
}

/// hypot, rem and fmod, all pairs of all shapes of up to 8 bits: as above, with the name
/// `every_rarer_pair_of_every_shape`.
#[test]
#[ignore = "minutes; the command is above"]
fn every_rarer_pair_of_every_shape() {
    on_all(&oracle::shapes(8), |format| pairs(*format, &OPERATIONS[4..], 1));
}

mod long {
    use super::*;

    /// Add, subtract, multiply and divide: all pairs of the named formats of up to 8 bits, of P3109's of
    /// up to 7, and of all shapes of up to 5; of P3109's with 8 bits one pair in 7.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn every_pair_of_every_named_or_tiny_format() {
        let mut formats = oracle::formats(8, 3..=7);
        formats.extend(oracle::shapes(5));
        on_all(&formats, |format| pairs(*format, &OPERATIONS[..4], 1));
        on_all(&oracle::formats(0, 8..=8), |format| {
            if !formats.contains(format) {
                pairs(*format, &OPERATIONS[..4], 7);
            }
        });
    }
}
