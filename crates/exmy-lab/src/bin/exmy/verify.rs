//! `exmy verify`: judges case lines of Berkeley TestFloat for any operation on any formats.

use crate::settings::{Complaints, Options, Shown, announce, quiet_pipe, remark_on_function};
use clap::Args;
use exmy::error::Result;
use exmy::round::Profile;
use exmy::vectors::function::TestFunction;
use exmy::vectors::testfloat::{Finding, Strictness, verify};
use exmy_lab::amounts::counted;
use std::cell::RefCell;
use std::io::{BufWriter, Write, stdin, stdout};
use std::ops::ControlFlow;

/// Judge results of arithmetic, in the lines of Berkeley TestFloat
///
/// Reads case lines as testfloat_gen prints them - operands, result and exception flags in
/// hexadecimal - and prints those that are wrong, then "N passed, M failed".
///
/// FUNCTION is a name of TestFloat with any format: f16_mulAdd, e4m3_div, f32_to_bf16,
/// f16_to_i32, i64_to_e5m2, f16_le_quiet; an operation that TestFloat does not have: e4m3_recip,
/// f16_minimumNumber, bf16_faa; or one of mixed formats: e4m3_mulAdd_to_f32,
/// e4m3,e5m2,f32_mulAdd_to_f32.
///
/// Flags: 01 inexact, 02 underflow, 04 overflow, 08 infinite, 10 invalid. Any NaN equals any NaN
/// unless --check-nans. Under a stochastic mode (srN) the N-bit random integer stands behind the
/// operands.
///
/// Every malformed line is reported with its number on stderr. Where there is no case at all a note
/// says so and the exit code is 0, as it is of a generator that failed. Set `pipefail` in the shell, or look
/// for the number of cases in the last line.
///
/// The exit code is 0 if every line is right, 1 if a case failed or a line was malformed, 2 for
/// misuse and for the malformed line that --strict stopped at.
#[derive(Args)]
#[command(after_long_help = crate::operations::list())]
pub(crate) struct Arguments {
    /// What was computed: f16_add, e4m3_mulAdd_to_f32, f32_to_i32, ...
    function: TestFunction,
    #[command(flatten)]
    options: Options,
    /// Wrong cases to show; all are counted, and malformed lines are always shown
    #[arg(long, value_name = "N", default_value_t = 20)]
    max_errors: u64,
    /// Compare NaN codes too; without --profile by the rules of x86
    #[arg(long)]
    check_nans: bool,
    /// Stop at the first malformed line
    #[arg(long)]
    strict: bool,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let function = &arguments.function;
    let profile = if arguments.check_nans { Profile::X86 } else { Profile::Ieee };
    let evaluator = function.evaluator(&arguments.options.settings(profile))?;
    let mut words: Vec<String> = function.operands().iter().map(ToString::to_string).collect();
    if evaluator.random_bits() > 0 {
        words.push(counted(evaluator.random_bits().into(), "random bit"));
    }
    words.push(format!("{} (result)", function.result()));
    words.push("flags (00 to 1f)".into());
    let expected = words.join(", ");
    remark_on_function(&evaluator);
    announce(&expected);
    let complaints = &RefCell::new(Complaints::new(expected + ", in hexadecimal"));
    let source = Shown { stream: stdin().lock(), complaints };
    let mut out = BufWriter::new(stdout().lock());
    let mut shown = 0;
    let strictness = Strictness { nan_codes: arguments.check_nans, lines: arguments.strict };
    let streamed = verify(&evaluator, strictness, source, |finding| {
        match finding {
            Finding::Malformed(malformed) => complaints.borrow_mut().add(malformed),
            Finding::Mismatch(mismatch) if shown < arguments.max_errors => {
                shown += 1;
                complaints.borrow_mut().flush();
                writeln!(out, "{mismatch}")?;
                out.flush()?;
            }
            Finding::Mismatch(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    });
    complaints.borrow_mut().flush();
    let Some(verdict) = quiet_pipe(streamed)? else { return Ok(1) };
    let mut last = format!("{} passed, {} failed", verdict.passed, verdict.failed);
    if verdict.malformed > 0 {
        last += &format!(", {} malformed", verdict.malformed);
    }
    let printed = writeln!(out, "{last}").and_then(|()| out.flush());
    quiet_pipe(printed)?;
    if verdict.passed + verdict.failed + verdict.malformed == 0 {
        say!("there was no case on standard input");
    }
    Ok(match (verdict.failed, verdict.malformed) {
        (0, 0) => 0,
        (_, 1..) if arguments.strict => crate::MISUSE,
        _ => 1,
    })
}
