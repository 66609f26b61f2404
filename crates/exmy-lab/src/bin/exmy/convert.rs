//! `exmy convert`: codes of one format from stdin, codes of another to stdout.

use crate::settings::{answer_lines, remark_on};
use clap::Args;
use exmy::error::Result;
use exmy::format::Format;
use exmy::round::{Flush, Operands, Overflow, Profile, Rounding, Tininess};
use exmy::vectors::convert::{ConvertOptions, RandomSource, convert};
use exmy_lab::amounts::counted;

/// Convert codes from one format to another, line by line
///
/// Reads one hexadecimal code a line (any case, 0x or not) and prints one a line, in lower case
/// with all its digits.
///
/// A blank line is answered with a blank line. So is one that holds no code of the format, after a message
/// with its number on stderr. Line N of the output belongs to line N of the input, and the exit code is 1 in
/// the end. With --strict the first such line ends the stream with exit code 2.
///
/// Every such line is reported, and lines count from 1.
///
/// `e4m3` is the format that OCP, CUDA and PyTorch call so; the IEEE-like one of ml_dtypes is
/// `e4m3-ieee`. A code of tf32 has 19 bits, the upper ones of the binary32 word that hardware reads:
/// `--from f32 --to tf32 --round rtz` is what dropping the lower 13 gives, and the code shifted
/// left by 13 is the word.
///
/// Stochastic modes (srN) take the top N bits of word L-1 of the Philox4x32-10 stream "golden"
/// under --seed for line L, or with --random-column an N-bit integer from a second word on the
/// line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Format of the codes read: e4m3, bf16, f32, binary8p3se, or any other
    #[arg(long, value_name = "FORMAT")]
    from: Format,
    /// Format of the codes printed
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Rounding mode: rne rna rnz rtz rup rdn raz odd, or srN, srNb, srNc [default: the
    /// profile's; rne]
    #[arg(long, value_name = "R")]
    round: Option<Rounding>,
    /// What becomes of numbers out of range: sat-none sat-finite sat-propagate to-nan to-inf onnx
    /// [default: the profile's; sat-none]
    #[arg(long, value_name = "O")]
    overflow: Option<Overflow>,
    /// The standard, library or device whose rules hold
    #[arg(long, value_name = "P", default_value = "ieee")]
    profile: Profile,
    /// What becomes of results below the smallest normal one [default: the profile's; flush-none]
    ///
    /// flush-none: subnormal numbers. flush-input: zero where the exact number is below it.
    /// flush-candidates: rounded to zero or to it. flush-output: zero where the rounded number is below it.
    #[arg(long, value_name = "F")]
    flush: Option<Flush>,
    /// How subnormal operands are read: exact, zero (with their sign; denormals are zero), positive-zero
    /// [default: the profile's; exact]
    #[arg(long, value_name = "S")]
    subnormals: Option<Operands>,
    /// When underflow is detected: before or after rounding [default: the profile's; after]
    #[arg(long, value_name = "WHEN")]
    tininess: Option<Tininess>,
    /// Print the flags in a second column: 01 inexact, 02 underflow, 04 overflow, 08 infinite,
    /// 10 invalid, 20 saturated
    #[arg(long)]
    flags: bool,
    /// Stop at the first malformed line
    #[arg(long)]
    strict: bool,
    /// Seed of the random bits
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The random bits of a stochastic mode stand behind each code
    #[arg(long, conflicts_with = "seed")]
    random_column: bool,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let rules = arguments.profile.conversion(arguments.from, arguments.to);
    let rules = rules
        .with_rounding(arguments.round.unwrap_or(rules.rounding))
        .with_overflow(arguments.overflow.unwrap_or(rules.overflow))
        .with_flush(arguments.flush.unwrap_or(rules.flush))
        .with_operands(arguments.subnormals.unwrap_or(rules.operands))
        .with_tininess(arguments.tininess.unwrap_or(rules.tininess));
    let random = match (arguments.random_column, rules.rounding) {
        (true, Rounding::Stochastic { .. }) => RandomSource::Column,
        (true, mode) => {
            return Err(exmy::error::Error::new(format!("{mode} takes no random bits"))
                .hint("--random-column belongs to a stochastic mode, for example --round sr8"));
        }
        (false, _) => RandomSource::Seed(arguments.seed),
    };
    let options = ConvertOptions {
        from: arguments.from,
        to: arguments.to,
        rules,
        flags: arguments.flags,
        strict: arguments.strict,
        random,
    };
    let bits = counted(options.from.bits().into(), "bit");
    let digits = counted(options.from.bits().div_ceil(4).into(), "digit");
    let mut expected = format!("one code of {} ({bits}, {digits})", options.from);
    if random == RandomSource::Column {
        expected += &format!(" and the random integer of {}", rules.rounding);
    }
    remark_on(arguments.profile, &[options.from, options.to]);
    answer_lines(expected, arguments.strict, ("code", "converted"), |source, sink, report| {
        convert(source, sink, &options, report)
    })
}
