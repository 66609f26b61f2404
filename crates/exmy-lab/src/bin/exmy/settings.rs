//! The options that `convert`, `compute`, `verify` and `vectors` have in common, and how they treat their
//! streams.

use crate::phase::Phase;
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use exmy::error::{Error, Result};
use exmy::format::Format;
use exmy::math::IntInvalid;
use exmy::reserve::reserve;
use exmy::round::{Flush, Operands, Overflow, Profile, Rounding, Tininess};
use exmy::vectors::convert::Summary;
use exmy::vectors::evaluate::{Evaluator, Settings};
use exmy::vectors::function::Kind;
use exmy::vectors::lines::Malformed;
use exmy_lab::amounts::counted;
use exmy_lab::device::{Choice, Place, Rank, Seated};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, BufWriter, Read, StdinLock, StdoutLock, Write};
use std::sync::Arc;

/// What a function's name leaves open.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounding mode: rne rna rnz rtz rup rdn raz odd, or srN, srNb, srNc with N random bits
    #[arg(long, value_name = "R", help = "Rounding mode [default: the profile's; rne]")]
    pub(crate) round: Option<Rounding>,
    /// What becomes of results out of range [default: the profile's; sat-none]
    #[arg(long, value_name = "O")]
    pub(crate) overflow: Option<Overflow>,
    /// When underflow is detected: before or after rounding [default: the profile's; after]
    #[arg(long, value_name = "WHEN")]
    pub(crate) tininess: Option<Tininess>,
    /// Rounding to an integer raises inexact
    #[arg(long)]
    exact: bool,
    /// Rounding to an integer does not raise inexact (the default)
    #[arg(long, conflicts_with = "exact")]
    notexact: bool,
    /// What an invalid conversion to an integer gives
    #[arg(long, value_name = "CPU", default_value = "x86")]
    int_invalid: Invalid,
    /// The standard, library or device whose rules hold: ieee, p3109, ocp-sat, cuda-satfinite, ...
    /// [default: ieee]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<Profile>,
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
}

#[derive(Clone, Copy, ValueEnum)]
enum Invalid {
    /// Smallest signed, largest unsigned number
    X86,
    /// The nearer end of the range; NaN the largest number
    Riscv,
    /// The nearer end of the range; NaN 0
    Arm,
}

impl Options {
    /// The settings, with `profile` where none is named.
    pub(crate) fn settings(&self, profile: Profile) -> Settings {
        Settings {
            rounding: self.round,
            overflow: self.overflow,
            tininess: self.tininess,
            flush: self.flush,
            operands: self.subnormals,
            exact: self.exact,
            int_invalid: match self.int_invalid {
                Invalid::X86 => IntInvalid::X86,
                Invalid::Riscv => IntInvalid::Riscv,
                Invalid::Arm => IntInvalid::Arm,
            },
            profile: self.profile.unwrap_or(profile),
        }
    }
}

/// How a command works that takes its time.
#[derive(Args)]
pub(crate) struct Work {
    /// Threads to use; the results are the same bits for any number [default: all cores]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    threads: Option<u16>,
    /// Show no progress: only the final table, and warnings
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Where to compute, to the same bits: cpu, cuda, cuda:1 (an NVIDIA GPU by its number), or auto; several
    /// GPUs that train one run are cuda:0,cuda:1
    #[arg(long, value_name = "D", default_value = "cpu", hide_default_value = true)]
    device: Choice,
}

pub(crate) fn threads(text: &str) -> Result<u16, String> {
    let found = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    found.ok_or_else(|| "threads are a whole number from 1 to 1024".to_owned())
}

/// How many runs are trained at once.
#[derive(Args)]
pub(crate) struct Jobs {
    /// Runs at once, on a processor of one thread each [default: 16 on a GPU, fewer of large ones; on a
    /// processor a study has one for each thread, a sweep one at a time]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
}

fn jobs(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|jobs| (1..=1024).contains(jobs));
    found.ok_or_else(|| "jobs are a whole number from 1 to 1024".to_owned())
}

/// Refuses `-` in place of a file of tensors.
pub(crate) fn no_stream(path: &std::path::Path) -> Result<()> {
    if path.as_os_str() != "-" {
        return Ok(());
    }
    let what =
        "- is no file: tensors are read from and written to their places, which a stream has not";
    Err(Error::new(what)
        .hint("name files; a file of this name is ./- and /dev/shm holds some without a disk"))
}

impl Work {
    /// The device that is asked for; a line says so where `auto` is not a GPU.
    pub(crate) fn place(&self) -> Result<Place> {
        self.device.clone().open(|note| {
            if !self.quiet {
                say!("{note}");
            }
        })
    }

    /// Does `work` on the device of this process; the exit code. With `ranks` this is one of several
    /// processes that train each run together. Then the first of them does the work, and the others take
    /// part until it lets them go.
    pub(crate) fn on_place(
        &self,
        ranks: bool,
        stop: &Stop,
        work: impl FnOnce(Place) -> Result<u8>,
    ) -> Result<u8> {
        if !ranks {
            return work(self.place()?);
        }
        let gathering = Phase::begin("waiting for the other ranks", self.quiet);
        let seated = Rank::gather(&self.device)?;
        drop(gathering);
        // Ends after `rank`: who asks for the end waits until that has let go of its device.
        let _held;
        let rank = match seated {
            Seated::Alone(place) => return work(place),
            Seated::Among(rank) => Arc::new(rank),
        };
        if rank.leads() {
            let end = work(Place::Party(rank.clone()));
            _held = stop.hold();
            rank.dismiss(&end);
            return end;
        }
        // A signal may have reached this process alone, or all of the job. The first of them writes a
        // checkpoint and lets the others go.
        _held = stop.hold();
        let end = rank.follow(&|| stop.is_asked());
        if stop.is_asked() {
            end.err().iter().for_each(crate::show::error);
            return Ok(stop.code());
        }
        end
    }

    /// Does `work` with as many threads as are wanted.
    pub(crate) fn with_threads<R: Send>(
        &self,
        work: impl FnOnce() -> Result<R> + Send,
    ) -> Result<R> {
        with_threads(self.threads, work)
    }
}

/// Does `work` with that many threads, or as many as the machine has. The pool of all programs, which
/// would be made by whoever asks for it first, ends the process where threads cannot start.
pub(crate) fn with_threads<R: Send>(
    threads: Option<u16>,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    room(threads.map_or_else(all, usize::from))?;
    // 0 leaves the number to the pool, which knows its own variable of the environment.
    exmy::parallel::with_threads(threads.map_or(0, usize::from), work).map_err(|error| {
        Error::new("cannot start threads")
            .because(error)
            .hint("raise the limits (ulimit -v, ulimit -u), or take fewer --threads")
    })?
}

/// Refuses to begin where memory ends before the first tensor is asked for: small allocations of
/// threads end the process where they fail.
fn room(threads: usize) -> Result<()> {
    /// What a thread takes for its stack, and what the command itself needs.
    const STACK: usize = 2 << 20;
    const BESIDE: usize = 4 << 20;
    let bytes = threads * STACK + BESIDE;
    reserve(&mut Vec::<u8>::new(), bytes).map_err(|_| {
        let counted = counted(threads as u64, "thread");
        Error::new(format!("{counted} and what they work with need {bytes} bytes of memory"))
            .hint("there is not as much: raise the limit (ulimit -v), or take fewer --threads")
    })
}

/// Complaints about lines, each on stderr with the line's number.
///
/// They are gathered into large writes, so that a stream of nothing else is not slowed to a system
/// call a line; `flush` is due before the program waits for more input, which [`Shown`] sees to.
pub(crate) struct Complaints {
    out: BufWriter<io::Stderr>,
    expected: Option<String>,
}

impl Complaints {
    /// `expected` says what a line holds.
    pub(crate) fn new(expected: String) -> Self {
        Self { out: BufWriter::with_capacity(1 << 16, io::stderr()), expected: Some(expected) }
    }

    pub(crate) fn add(&mut self, malformed: &Malformed) {
        // Nobody is left to read that stderr cannot be written to.
        let _ = writeln!(self.out, "{malformed}");
        if let Some(expected) = self.expected.take() {
            let _ = writeln!(self.out, "  expected: {expected}");
        }
    }

    /// Shows what has been gathered.
    pub(crate) fn flush(&mut self) {
        let _ = self.out.flush();
    }
}

/// A stream before whose every use the complaints are shown: they stand before the answers to
/// lines behind them, and before a wait for more.
pub(crate) struct Shown<'a, T> {
    /// The stream.
    pub(crate) stream: T,
    /// What is shown.
    pub(crate) complaints: &'a RefCell<Complaints>,
}

impl<T: Read> Read for Shown<'_, T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.complaints.borrow_mut().flush();
        self.stream.read(into)
    }
}

impl<T: Write> Write for Shown<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.complaints.borrow_mut().flush();
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Answers the lines of stdin on stdout by `stream`, which reports what it could not read; gives the exit
/// code. `expected` says what a line holds, `done` what an answer is and was: "code", "converted".
pub(crate) fn answer_lines(
    expected: String,
    strict: bool,
    (what, done): (&str, &str),
    stream: impl FnOnce(
        Shown<'_, StdinLock<'_>>,
        Shown<'_, StdoutLock<'_>>,
        &mut dyn FnMut(&Malformed),
    ) -> io::Result<Summary>,
) -> Result<u8> {
    announce(&expected);
    let complaints = &RefCell::new(Complaints::new(expected + ", in hexadecimal"));
    let source = Shown { stream: io::stdin().lock(), complaints };
    let sink = Shown { stream: io::stdout().lock(), complaints };
    let streamed = stream(source, sink, &mut |malformed| complaints.borrow_mut().add(malformed));
    complaints.borrow_mut().flush();
    let Some(summary) = quiet_pipe(streamed)? else { return Ok(0) };
    Ok(match summary.malformed {
        0 => 0,
        _ if strict => crate::MISUSE,
        count => {
            let lines = counted(count, "malformed line");
            say!("{lines}, {} {done}", counted(summary.converted, what));
            1
        }
    })
}

/// Says on stderr where a profile's rules are applied to a format that its source does not have: E4M3 and
/// E3M4 as IEEE would make them exist in ml_dtypes, LLVM and on AWS Trainium alone.
pub(crate) fn remark_on(profile: Profile, formats: &[Format]) {
    let name = profile.to_string();
    let lacks = ["cuda", "ocp", "torch", "onnx"].iter().any(|source| name.starts_with(source));
    let foreign =
        [Format::E4M3_IEEE, Format::E3M4].into_iter().find(|format| formats.contains(format));
    if let Some(format) = foreign.filter(|_| lacks) {
        say!("note: {name} does not have {format}; its rules are those of the nearest format");
    }
}

/// Whether `e4m3` is written in an argument, neither with a class nor as a part of another name. A path that
/// exists is none.
fn names_e4m3(argument: &str) -> bool {
    let is_word = |(at, word): (usize, &str)| {
        let (before, behind) = (&argument[..at], &argument[at + word.len()..]);
        let behind = behind.strip_prefix(['b', 'B']).map_or(behind, |bias| {
            bias.trim_start_matches('-').trim_start_matches(|c: char| c.is_ascii_digit())
        });
        let begins =
            before.is_empty() || before.ends_with("_to_") || before.ends_with(['=', ':', ',', '>']);
        let goes_on = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || "./\\".contains(c))
            || behind.starts_with("-ieee");
        // The elements of `mxpaper` have always been OCP's.
        let is_element =
            ["w=", "a=", "-bp=", "g-ex=", "g-os="].iter().any(|key| before.ends_with(key));
        begins && !goes_on && !is_element
    };
    let lower = argument.to_ascii_lowercase();
    lower.match_indices("e4m3").any(is_word) && !std::path::Path::new(argument).exists()
}

/// Says on stderr, for a release, that the meaning of `e4m3` changed, if it was typed.
pub(crate) fn remark_on_e4m3(arguments: impl Iterator<Item = OsString>) {
    /// Options whose values are no formats.
    const OTHERS: [&str; 6] =
        ["--out", "--report", "--prompt", "--data", "--curves", "--save-curves"];
    let arguments: Vec<_> = arguments.map(|one| one.to_string_lossy().into_owned()).collect();
    let is_other = |text: &str| {
        OTHERS.iter().any(|name| text.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    };
    let behind_other = |at: usize| at > 0 && OTHERS.contains(&arguments[at - 1].as_str());
    let means =
        |(at, text): (usize, &String)| names_e4m3(text) && !is_other(text) && !behind_other(at);
    if arguments.iter().enumerate().any(means) {
        say!("note: e4m3 is OCP's (largest 448); the IEEE-like format is e4m3-ieee");
    }
}

/// The same of the formats of a function's operands and result.
pub(crate) fn remark_on_function(evaluator: &Evaluator) {
    let function = evaluator.function();
    let kinds = function.operands().iter().copied().chain([function.result()]);
    let format = |kind| if let Kind::Format(format) = kind { Some(format) } else { None };
    remark_on(evaluator.settings().profile, &kinds.filter_map(format).collect::<Vec<_>>());
}

/// A reader of the output that has seen enough (`| head`) is no error and ends the command well.
pub(crate) fn quiet_pipe<T>(result: io::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(error) => Err(Error::new("the stream broke off").because(error)),
    }
}

/// Tells who waits at a terminal what is waited for.
pub(crate) fn announce(expected: &str) {
    use std::io::IsTerminal;
    if io::stdin().is_terminal() {
        say!("reading {expected} from the terminal, one case a line; Ctrl-D ends");
    }
}
