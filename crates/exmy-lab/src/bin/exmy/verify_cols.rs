//! `exmy verify-cols`: recorded conversions of hardware and libraries against this crate's.

use crate::bar::bar;
use crate::stop::Stop;
use crate::{inputs, show};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy::vectors::columns::{ColumnVerdict, Columns, Conversion, Table};
use indicatif::ProgressBar;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Exit code where a recorded result is not the computed one.
const MISMATCH: u8 = 1;

/// Time between lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

#[derive(Args)]
#[command(after_long_help = long_help())]
pub(crate) struct Arguments {
    /// Files of recorded conversions (EXMYCONV), or folders of files that end in .cols; - is standard
    /// input
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

fn long_help() -> String {
    let mut text = String::from(
        "For each column it prints `column: R rows, M mismatches` and the first mismatches, \
         decoded. Columns of unknown names are skipped. Exit code 0 if everything matches, 1 if \
         something does not, 2 if a file cannot be used.\n\nColumns and what they record, as \
         options of `exmy convert`:\n",
    );
    for (table, title) in [(Table::F32, "f32 and f16 inputs"), (Table::F8, "8-bit inputs")] {
        text += &format!("  {title}\n");
        for name in Conversion::names(table) {
            if let Some(conversion) = Conversion::find(table, name) {
                let conversion = conversion.to_string();
                let rules = conversion.strip_prefix("--from f32 ").unwrap_or(&conversion);
                text += &format!("    {name:<28} {rules}\n");
            }
        }
    }
    text
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    let stop = stop.looked_at();
    let mut code = 0;
    let mut files = Vec::new();
    for path in &arguments.paths {
        match inputs::files(path, "cols") {
            Ok(found) => files.extend(found),
            Err(error) => {
                show::error(&error);
                code = crate::MISUSE;
            }
        }
    }
    for path in &files {
        if files.len() > 1 {
            print(&format!("{}\n", printable_path(path)))?;
        }
        match verify(path, arguments.quiet, stop) {
            Ok(Outcome::Stopped) => return Ok(stop.code()),
            Ok(Outcome::Done { mismatches: 0 }) => {}
            Ok(Outcome::Done { .. }) => code = code.max(MISMATCH),
            // The other files are still worth a look.
            Err(error) => {
                show::error(&error);
                code = crate::MISUSE;
            }
        }
    }
    Ok(code)
}

enum Outcome {
    Stopped,
    Done { mismatches: usize },
}

fn verify(path: &Path, quiet: bool, stop: &Stop) -> Result<Outcome> {
    let columns = if path.as_os_str() == "-" {
        Columns::read(io::stdin().lock())
    } else {
        Columns::read(inputs::open(path)?)
    };
    let columns = columns.map_err(|error| Error::io("use", path, error))?;
    let known = |name: &str| usize::from(Conversion::find(columns.table(), name).is_some());
    let count: usize = columns.results().iter().map(|column| known(column.name())).sum();
    let progress = Progress::new(&columns, count, quiet);
    let mut mismatches = 0;
    for column in columns.results() {
        progress.name(column.name());
        let verdict = columns.verify(column, &|rows| {
            progress.add(rows);
            !stop.is_asked()
        });
        let verdict = verdict.map_err(|error| {
            Error::new(format!("cannot use {}", printable_path(path))).because(error)
        })?;
        let Some(verdict) = verdict else {
            progress.bar.finish_and_clear();
            return Ok(Outcome::Stopped);
        };
        mismatches += verdict.mismatches;
        progress.bar.suspend(|| print(&line(&verdict)))?;
    }
    progress.bar.finish_and_clear();
    if count == 0 {
        print("nothing verified: no column is known by its name\n")?;
    }
    Ok(Outcome::Done { mismatches })
}

fn line(verdict: &ColumnVerdict<'_>) -> String {
    format!("{verdict}\n")
}

/// To stdout; a reader that has gone away ends the program without complaint.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.map_err(|error| Error::new("cannot write results").because(error)),
    }
}

/// How many rows of the known columns are done; only digests take long enough to show it.
struct Progress {
    bar: ProgressBar,
    done: AtomicUsize,
    total: usize,
    /// The next line, where there is no terminal.
    next_line: Option<Mutex<Instant>>,
    begun: Instant,
}

impl Progress {
    fn new(columns: &Columns, known: usize, quiet: bool) -> Self {
        let shown = !quiet && columns.table() == Table::F32Digest;
        let total = known * columns.rows();
        let template = "{prefix} {wide_bar:.cyan/dim} {percent} % {eta:>4}";
        let bar = bar(total as u64, template, !shown);
        let now = Instant::now();
        let next_line =
            (shown && !io::stderr().is_terminal()).then(|| Mutex::new(now + LINE_EVERY));
        Self { bar, done: AtomicUsize::new(0), total, next_line, begun: now }
    }

    fn name(&self, column: &str) {
        self.bar.set_prefix(column.to_owned());
    }

    fn add(&self, rows: usize) {
        let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
        self.bar.inc(rows as u64);
        let Some(next) = &self.next_line else { return };
        let Ok(mut next) = next.try_lock() else { return };
        let now = Instant::now();
        if now >= *next {
            *next = now + LINE_EVERY;
            let seconds = self.begun.elapsed().as_secs_f64();
            let left = seconds * (self.total - done) as f64 / done as f64;
            say!("{} %, {left:.0} s left", 100 * done / self.total);
        }
    }
}
