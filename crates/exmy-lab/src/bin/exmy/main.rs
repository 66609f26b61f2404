//! The command `exmy`: parses, calls the library, shows progress.

#![deny(unsafe_code)]

/// `eprintln!` by [`show::say`].
macro_rules! say {
    ($($text:tt)*) => { $crate::show::say(format_args!($($text)*)) };
}

mod bar;
mod compare;
mod compute;
mod conformance;
mod convert;
#[cfg(feature = "tokenizers")]
mod data;
mod device;
#[cfg(feature = "tokenizers")]
mod eval;
#[cfg(unix)]
mod exhausted;
mod explain_mma;
mod export;
mod fill_tiles;
mod follow;
mod formats;
#[cfg(feature = "tokenizers")]
mod generate;
mod inputs;
mod inspect;
mod keys;
mod ls;
#[cfg(feature = "tokenizers")]
mod methods;
#[cfg(feature = "tokenizers")]
mod model;
mod operations;
mod phase;
mod provenance;
mod quantize;
mod recipes;
mod report;
mod rows;
mod sample;
mod settings;
mod shortened;
mod show;
mod stop;
mod study;
mod sweep;
#[cfg(feature = "tokenizers")]
mod tokens;
mod train;
mod vectors;
mod verify;
mod verify_cols;
mod verify_tiles;
mod watch;

use clap::builder::StyledStr;
use clap::{Parser, Subcommand};
use exmy::error::{Error, Result};
use exmy::shown::printable;
use settings::with_threads;
use shortened::without_middle;
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;
use stop::Stop;

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
    Ls(ls::Arguments),
    Compare(compare::Arguments),
    Export(export::Arguments),
    Device(device::Arguments),
    #[cfg(feature = "tokenizers")]
    Data(data::Arguments),
    #[cfg(feature = "tokenizers")]
    Eval(Box<eval::Arguments>),
    #[cfg(feature = "tokenizers")]
    Generate(Box<generate::Arguments>),
    /// Show number formats: a table, one format with all its constants, or all its codes
    Formats(formats::Arguments),
    /// Continue a text with a trained model
    Sample(sample::Arguments),
    Conformance(conformance::Arguments),
    Quantize(Box<quantize::Arguments>),
    Inspect(inspect::Arguments),
    Convert(convert::Arguments),
    Compute(Box<compute::Arguments>),
    Verify(Box<verify::Arguments>),
    Vectors(Box<vectors::Arguments>),
    /// Compare recorded conversions of hardware and libraries with this crate's
    #[command(name = "verify-cols")]
    VerifyCols(verify_cols::Arguments),
    #[command(name = "verify-tiles")]
    VerifyTiles(verify_tiles::Arguments),
    #[command(name = "fill-tiles")]
    FillTiles(fill_tiles::Arguments),
    #[command(name = "explain-mma")]
    ExplainMma(Box<explain_mma::Arguments>),
}

/// Misuse: bad arguments, bad input, files that cannot be used.
const MISUSE: u8 = 2;

/// Done without some of what was asked for: runs that are damaged, files that stand in the way.
const PARTLY: u8 = 1;

/// Runs diverged, where that was to be reported.
const DIVERGED: u8 = 3;

/// The text of a complaint about an argument that is not to reach the terminal as it is: it would act on it,
/// or fill it.
fn escaped(error: &clap::Error) -> Option<String> {
    const LONGEST: usize = 200;
    let arguments = std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned());
    // A complaint names an argument, its part before or behind =, or one word of a list there.
    let parts = arguments.flat_map(|text| {
        let (name, value) = text.split_once('=').unwrap_or(("", &text));
        let words = value.split(',');
        [&*text, name, value].into_iter().chain(words).map(str::to_owned).collect::<Vec<_>>()
    });
    let shown = |text: &str| without_middle(&printable(text), LONGEST);
    // Blanks alone are everywhere in it.
    let odd: Vec<String> =
        parts.filter(|text| !text.trim().is_empty() && shown(text) != *text).collect();
    // With its colours: as plain text it would lack those of arguments, too, and no argument be found in it.
    let coloured = error.use_stderr().then(|| error.render().ansi().to_string());
    let text = coloured.filter(|_| !odd.is_empty())?;
    let text = odd.iter().fold(text, |text, odd| text.replace(odd, &shown(odd)));
    Some(StyledStr::from(text).to_string().trim_end().to_owned())
}

/// The arguments; else, when help was shown or the mistake was reported, the exit code.
fn arguments() -> std::result::Result<Arguments, u8> {
    Arguments::try_parse().map_err(|error| {
        if let Some(text) = escaped(&error) {
            say!("{text}");
            return u8::try_from(error.exit_code()).unwrap_or(MISUSE);
        }
        let printed = error.print().and_then(|()| stdout().flush());
        match printed {
            // Help is a result. A reader that has seen enough (`| head`) is no error.
            Err(failed) if !error.use_stderr() && failed.kind() != ErrorKind::BrokenPipe => {
                show::error(&Error::new("cannot write the help").because(failed));
                MISUSE
            }
            _ => u8::try_from(error.exit_code()).unwrap_or(MISUSE),
        }
    })
}

fn main() -> ExitCode {
    #[cfg(unix)]
    exhausted::begin();
    // Before there are other threads, or they would get the signals.
    let stop = match Stop::listen() {
        Ok(stop) => stop,
        Err(error) => {
            show::error(&error);
            return ExitCode::from(MISUSE);
        }
    };
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(code) => return ExitCode::from(code),
    };
    if let Err(error) = exmy::simd::wanted() {
        show::error(&Error::from_cause(error));
        return ExitCode::from(MISUSE);
    }
    settings::remark_on_e4m3(std::env::args_os().skip(1));
    let result = run(arguments.command, &stop);
    keys::restore();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            show::error(&error);
            ExitCode::from(MISUSE)
        }
    }
}

/// Runs a command; the result is the exit code.
fn run(command: Command, stop: &Stop) -> Result<u8> {
    match command {
        Command::Train(arguments) => train::run(*arguments, stop),
        Command::Sweep(arguments) => sweep::run(&arguments, stop),
        Command::Study(arguments) => study::run(&arguments, stop),
        Command::Report(arguments) => report::report(&arguments),
        Command::Plot(arguments) => report::plot(&arguments),
        Command::Watch(arguments) => watch::run(&arguments, stop),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Export(arguments) => export::run(&arguments, stop),
        #[cfg(feature = "tokenizers")]
        Command::Data(arguments) => data::run(&arguments, stop),
        Command::Device(arguments) => with_threads(None, || device::run(&arguments)),
        #[cfg(feature = "tokenizers")]
        Command::Eval(arguments) => eval::run(&arguments),
        #[cfg(feature = "tokenizers")]
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Formats(arguments) => formats::run(&arguments),
        Command::Sample(arguments) => with_threads(None, || sample::run(&arguments)),
        Command::Quantize(arguments) => quantize::run(&arguments, stop),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Compute(arguments) => compute::run(&arguments),
        Command::Conformance(arguments) => conformance::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Vectors(arguments) => vectors::run(&arguments),
        Command::VerifyCols(arguments) => verify_cols::run(&arguments, stop),
        Command::VerifyTiles(arguments) => verify_tiles::run(&arguments),
        Command::FillTiles(arguments) => fill_tiles::run(&arguments),
        Command::ExplainMma(arguments) => explain_mma::run(&arguments),
    }
}
