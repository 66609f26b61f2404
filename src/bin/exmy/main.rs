//! The command `exmy`: parses, calls the library, shows progress.

#![forbid(unsafe_code)]

/// `eprintln!` that does not panic where nobody reads any more: progress that cannot be shown is no
/// reason to end the work that it is about.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod convert;
mod explain_mma;
mod formats;
mod inputs;
mod inspect;
mod operations;
mod provenance;
mod quantize;
mod report;
mod rows;
mod sample;
mod settings;
mod show;
mod study;
mod sweep;
mod train;
mod vectors;
mod verify;
mod verify_cols;
mod verify_tiles;
mod watch;

use clap::{Parser, Subcommand};
use exmy::error::Error;
use std::process::ExitCode;

/// Software floating-point formats of any shape: conversions and arithmetic to verify hardware
/// with, and what happens when a network is trained in them.
#[derive(Parser)]
#[command(name = "exmy", version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a transformer in one or several number formats and compare the losses
    Train(Box<train::Arguments>),
    Sweep(sweep::Arguments),
    Study(study::Arguments),
    Report(report::ReportArguments),
    Plot(report::PlotArguments),
    Watch(watch::Arguments),
    /// Show number formats: a table, one format with all its constants, or all its codes
    Formats(formats::Arguments),
    /// Continue a text with a trained model
    Sample(sample::Arguments),
    Quantize(Box<quantize::Arguments>),
    Inspect(inspect::Arguments),
    Convert(convert::Arguments),
    Verify(Box<verify::Arguments>),
    Vectors(Box<vectors::Arguments>),
    /// Compare recorded conversions of hardware and libraries with this crate's
    #[command(name = "verify-cols")]
    VerifyCols(verify_cols::Arguments),
    #[command(name = "verify-tiles")]
    VerifyTiles(verify_tiles::Arguments),
    #[command(name = "explain-mma")]
    ExplainMma(Box<explain_mma::Arguments>),
}

/// Misuse: bad arguments, bad input, files that cannot be used.
const MISUSE: u8 = 2;

/// Stopped by Ctrl-C, as shells report it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = exmy::simd::wanted() {
        show::error(&Error::new(error.to_string()));
        return ExitCode::from(MISUSE);
    }
    let result = match arguments.command {
        Command::Train(arguments) => train::run(*arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Study(arguments) => study::run(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Plot(arguments) => report::plot(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Formats(arguments) => formats::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Quantize(arguments) => quantize::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Vectors(arguments) => vectors::run(&arguments),
        Command::VerifyCols(arguments) => verify_cols::run(&arguments),
        Command::VerifyTiles(arguments) => verify_tiles::run(&arguments),
        Command::ExplainMma(arguments) => explain_mma::run(&arguments),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            show::error(&error);
            ExitCode::from(MISUSE)
        }
    }
}
