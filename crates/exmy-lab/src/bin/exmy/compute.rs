//! `exmy compute`: operands from stdin, results and flags to stdout.

use crate::settings::{Options, answer_lines, remark_on_function};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::round::Profile;
use exmy::vectors::compute::{ComputeOptions, RandomSource, compute};
use exmy::vectors::function::TestFunction;
use exmy_lab::amounts::counted;

/// Compute results of arithmetic, line by line
///
/// Reads the operands of FUNCTION in hexadecimal, one case a line, and prints the result, in lower case with
/// all its digits, and the flags: 01 inexact, 02 underflow, 04 overflow, 08 infinite, 10 invalid, 20
/// saturated. Lines are answered as they come, so a test bench can keep the command open.
///
/// FUNCTION is a name as `exmy verify` takes it: f16_mulAdd, e4m3_div, f32_to_bf16, f16_to_i32, f16_le_quiet,
/// e4m3_mulAdd_to_f32, e4m3,e5m2,f32_mulAdd_to_f32.
///
/// A blank line is answered with a blank line. So is one that holds no operands, after a message with its
/// number on stderr. Line N of the output belongs to line N of the input, and the exit code is 1 in the end.
/// With --strict the first such line ends the stream with exit code 2.
///
/// Under a stochastic mode (srN) the N-bit random integer stands behind the operands, or with --seed it is
/// drawn: the top N bits of word L-1 of the Philox4x32-10 stream "golden" for line L.
#[derive(Args)]
#[command(after_long_help = crate::operations::list())]
pub(crate) struct Arguments {
    /// What is computed: f16_add, e4m3_mulAdd_to_f32, f32_to_i32, ...
    function: TestFunction,
    #[command(flatten)]
    options: Options,
    /// Print the results alone, without flags
    #[arg(long)]
    no_flags: bool,
    /// Stop at the first malformed line
    #[arg(long)]
    strict: bool,
    /// Draw the random bits of a stochastic mode under this seed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let function = &arguments.function;
    let evaluator = function.evaluator(&arguments.options.settings(Profile::Ieee))?;
    let bits = evaluator.random_bits();
    let random = match arguments.seed {
        Some(_) if bits == 0 => {
            let mode = evaluator.context().rules.rounding;
            return Err(Error::new(format!("{mode} takes no random bits"))
                .hint("--seed belongs to a stochastic mode, for example --round sr8"));
        }
        Some(seed) => RandomSource::Seed(seed),
        None => RandomSource::Column,
    };
    let options = ComputeOptions { flags: !arguments.no_flags, strict: arguments.strict, random };
    let mut words: Vec<String> = function.operands().iter().map(ToString::to_string).collect();
    if bits > 0 && random == RandomSource::Column {
        words.push(counted(bits.into(), "random bit"));
    }
    let expected = words.join(", ");
    remark_on_function(&evaluator);
    answer_lines(expected, arguments.strict, ("result", "computed"), |source, sink, report| {
        compute(source, sink, &evaluator, &options, report)
    })
}
