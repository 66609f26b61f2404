//! The options that `convert`, `verify` and `vectors` have in common, and how they treat their
//! streams.

use clap::{Args, ValueEnum};
use exmy::error::{Error, Result};
use exmy::golden::function::Settings;
use exmy::math::IntInvalid;
use exmy::round::{Overflow, Profile, Rounding, Tininess};
use std::io;

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
    #[arg(long, overrides_with = "notexact")]
    exact: bool,
    /// Rounding to an integer does not raise inexact (the default)
    #[arg(long, overrides_with = "exact")]
    notexact: bool,
    /// What an invalid conversion to an integer gives
    #[arg(long, value_name = "CPU", default_value = "x86")]
    int_invalid: Invalid,
    /// The standard, library or device whose rules hold: ieee, p3109, ocp-sat, cuda-satfinite, ...
    /// [default: ieee]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<Profile>,
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

/// Malformed lines shown before the rest is only counted.
const SHOWN: u64 = 20;

/// Complaints about lines, on stderr and not without end.
pub(crate) struct Complaints {
    count: u64,
    expected: String,
}

impl Complaints {
    /// `expected` says what a line holds.
    pub(crate) fn new(expected: String) -> Self {
        Self { count: 0, expected }
    }

    pub(crate) fn add(&mut self, malformed: &exmy::golden::lines::Malformed) {
        self.count += 1;
        if self.count <= SHOWN {
            eprintln!("{malformed}");
        }
        if self.count == 1 {
            eprintln!("  expected: {}", self.expected);
        }
        if self.count == SHOWN + 1 {
            eprintln!("further malformed lines are only counted");
        }
    }
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
        eprintln!("reading {expected} from the terminal, one case a line; Ctrl-D ends");
    }
}
