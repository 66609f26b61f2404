//! `exmy conformance`: what of a standard is implemented, operation by operation.

use crate::show;
use clap::{Args, ValueEnum};
use exmy::error::Result;
use exmy::vectors::p3109::{OPERATIONS, Row, Signature, kappa};

/// What of a standard is implemented, operation by operation, with its tests
///
/// Prints a statement as Markdown. With SPECIALIZATION, written as the standard writes it, prints by how
/// many values its results may differ from the defined ones (kappa), which is 0; an error says what is not
/// provided.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The standard
    standard: Standard,
    /// For example: Exp<Binary8p3se, Binary8p4se, (NearestTiesToEven, SatFinite)>
    specialization: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Standard {
    P3109,
}

/// What stands above the table.
const ABOVE: &str = "# P3109\n
What is implemented of the IEEE P3109 Interim Report 4.0 (26 June 2026): every operation of its Annex G,
block operations and scaled operations included. `exmy conformance p3109` prints this page.\n
    exmy conformance p3109 'Exp<Binary8p3se, Binary8p4se, (NearestTiesToEven, SatFinite)>'     # kappa 0\n
* *Formats*: all 504 members of the family, as operands and as results, in any mixture; binary16, binary32,
  binary64 and BFloat16 as external formats (4.14), and every other format of the crate. What clause 4.5
  asks of every implementation is provided for all six formats.
* *Projections*: the six rounding modes, StochasticA, B and C with 1 to 32 random bits of the caller, and
  the three saturation modes. `Profile::P3109.rules(format)` is (NearestTiesToEven, SatNone).
* *Kappa*: every operation is correctly rounded, so kappa is 0 (4.4). An operand of an elementary function
  that 512 bits do not decide would be an error; none is known ([hardest-cases.md](hardest-cases.md)). `Sin`,
  `Cos` and `Tan` need formats whose range is that of 11 exponent bits or less.
* *Blocks*: BlockOp applies the operation that it is given to the values of blocks (5.4). Products of scale
  and element must be numbers of binary64. Results may be divided by a scale that is no power of two if 53
  bits are enough to round once. Scaled operations are blocks of one element (5.5). Reductions and dot
  products have no limit.
* *Exceptions*: P3109 has no flags. Results come with IEEE 754's, which may be ignored.\n
Below, `Context` and `Operand` are in `exmy::math`, the functions on blocks in `exmy::block::operations`.
Tests are files of `tests`.\n
| group | operation | call | tests |
|---|---|---|---|
";

fn signature(row: &Row) -> &'static str {
    match row.signature {
        Signature::Format => "f",
        Signature::Truth => "fx, fy",
        Signature::Rounded(1) => "fx, fr, ρ",
        Signature::Rounded(2) => "fx, fy, fr, ρ",
        Signature::Rounded(_) => "fx, fy, fz, fr, ρ",
        Signature::FromBlock | Signature::Reduction => "B, fs, fx, fr, ρ",
        Signature::ToBlock if row.name.ends_with("MaxAbsFinite") => "B, fx, fs, fr, ρs, ρ",
        Signature::ToBlock => "B, fx, fs, fr, ρ",
        _ => "B, fsx, fx, fsy, fy, fr, ρ",
    }
}

fn statement() -> String {
    let mut text = ABOVE.to_owned();
    for row in OPERATIONS {
        let Row { name, group, call, tests, .. } = row;
        text += &format!("| {group} | `{name}<{}>` | `{call}` | {tests} |\n", signature(row));
    }
    let rounded = |group: &str| {
        let is_it =
            |row: &&Row| row.group == group && matches!(row.signature, Signature::Rounded(_));
        OPERATIONS.iter().filter(is_it).map(|row| row.name).collect::<Vec<_>>().join(", ")
    };
    for (group, of) in [("KA", "A"), ("KB", "B"), ("KC", "C")] {
        text += &format!(
            "| {group} | Block... of {} | `elementwise` with the call above | blocks_rules/operations |\n",
            rounded(of)
        );
    }
    let call = "`elementwise` of one element, result scale 1";
    text + &format!("| 5.5 | Scaled... of the same | {call} | blocks_rules/operations |\n")
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let Standard::P3109 = arguments.standard;
    let text = match &arguments.specialization {
        None => statement(),
        Some(asked) => format!("kappa {}\n", kappa(asked)?),
    };
    show::result(&text)?;
    Ok(0)
}
