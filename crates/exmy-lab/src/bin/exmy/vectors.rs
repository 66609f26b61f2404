//! `exmy vectors`: prints cases of any operation on any formats.

use crate::settings::{Options, quiet_pipe, remark_on_function};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::round::Profile;
use exmy::vectors::cases::{Cases, Request, Style, TestLevel, write};
use exmy::vectors::function::TestFunction;
use std::io::stdout;

/// Print test cases of arithmetic with their results and flags
///
/// Prints cases with the right results and flags, as `exmy verify` reads them.
///
/// Operands are special exponents times special significands in all combinations, beside each
/// the same with operands replaced by weighted random ones. Conversions also get every value of the target,
/// every midpoint and their neighbours. Where all operands are fewer, all are taken. The same arguments print
/// the same bytes everywhere.
///
/// Under a stochastic mode (srN) the N-bit random integer stands behind the operands: the top bits
/// of the words of the Philox4x32-10 stream "golden" under --seed.
///
/// Files of the styles readmemh, sv, c and json begin with the version of exmy and the whole command that
/// makes them again. TestFloat's lines have no head, for TestFloat's programs read them.
#[derive(Args)]
#[command(after_long_help = crate::operations::list())]
pub(crate) struct Arguments {
    /// What is computed: f16_add, e4m3_mulAdd_to_f32, f32_to_i32, ...; `exmy verify --help` explains the
    /// names
    function: TestFunction,
    #[command(flatten)]
    options: Options,
    /// 1: few special significands and exponents; 2: walking ones and zeros, runs, more exponents
    #[arg(long, value_name = "1|2", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=2))]
    level: u8,
    /// All operands; at most 2^32 cases
    #[arg(long)]
    exhaustive: bool,
    /// Seed of the random operands
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// So many cases: a part spread over all, or more random ones
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// testfloat: lines of hexadecimal words; readmemh: one word a case for Verilog; sv: a package of
    /// SystemVerilog; c: an array; json: one object
    #[arg(long, value_name = "STYLE", default_value = "testfloat")]
    style: Style,
}

/// Cases beyond which their number is shown first: minutes, and gigabytes.
const MANY: u128 = 100_000_000;

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    if arguments.count == Some(0) {
        return Err(Error::new("--count 0 asks for nothing").hint("give at least 1"));
    }
    let evaluator = arguments.function.evaluator(&arguments.options.settings(Profile::Ieee))?;
    let request = Request {
        level: if arguments.level == 1 { TestLevel::One } else { TestLevel::Two },
        exhaustive: arguments.exhaustive,
        seed: arguments.seed,
        count: arguments.count,
    };
    let cases = Cases::new(&arguments.function, &request)?;
    remark_on_function(&evaluator);
    if cases.len() > MANY {
        say!(
            "{} cases follow; --count N takes N of them, spread over all",
            exmy_lab::amounts::thousands(u64::try_from(cases.len()).unwrap_or(u64::MAX))
        );
    }
    quiet_pipe(write(&evaluator, &cases, arguments.style, stdout().lock()))?;
    Ok(0)
}
