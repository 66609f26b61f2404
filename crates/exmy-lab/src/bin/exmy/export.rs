//! `exmy export`: records for TensorBoard, W&B and data frames.

use crate::PARTLY;
use crate::phase::Phase;
use crate::settings::quiet_pipe;
use crate::stop::Stop;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::amounts::counted;
use exmy_lab::export::{check, to_file, to_lines, to_tensorboard};
use exmy_lab::gather::configured;
use std::io::{BufWriter, stdout};
use std::path::{Path, PathBuf};

/// Write records for TensorBoard, or as lines of JSON for W&B, pandas and polars
///
/// Runs that cannot be read are left out and named, and then the exit code is 1.
#[derive(Args)]
#[command(after_long_help = HELP)]
#[command(group(clap::ArgGroup::new("form").required(true).args(["tensorboard", "jsonl"])))]
pub(crate) struct Arguments {
    /// Folder to write event files into, a folder for each run; event files of an earlier export are
    /// replaced
    #[arg(long, value_name = "OUT")]
    tensorboard: Option<PathBuf>,
    /// File to write, a line for each run and step; - is the output
    #[arg(long, value_name = "FILE.jsonl")]
    jsonl: Option<PathBuf>,
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
}

const HELP: &str = "\
Examples:
  exmy export --tensorboard board runs/0001 && tensorboard --logdir board
  exmy export --jsonl runs.jsonl runs/0001
  python3 -c 'import pandas; print(pandas.read_json(\"runs.jsonl\", lines=True))'

A step has the numbers of metrics.jsonl and probes.jsonl under their names: loss, val_loss, PROBE,
PROBE/PART. A run's own metrics.jsonl can be read in the same way.";

/// Where lines are to go: a file that is named for what it will hold, so that no other is lost by a slip.
fn named(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|found| found.eq_ignore_ascii_case("jsonl")) {
        return Ok(());
    }
    let what = format!("what is written is JSONL, and {} is named otherwise", printable_path(path));
    Err(Error::new(what).hint(format!("name it {}", printable_path(&path.with_extension("jsonl")))))
}

/// Refuses to write over a run's own records.
fn is_a_record(path: &Path) -> bool {
    let is_one = |name: &str| path.file_name().is_some_and(|found| found == name);
    (is_one("metrics.jsonl") || is_one("probes.jsonl") || is_one("timing.jsonl")) && path.exists()
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    let stop = stop.looked_at();
    if let Some(out) = &arguments.tensorboard {
        check(out)?;
    }
    let file = arguments.jsonl.as_ref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = file {
        named(path)?;
        if is_a_record(path) {
            return Err(Error::new(format!("{} is a run's own record", printable_path(path)))
                .hint("name another file"));
        }
    }
    let writing = Phase::begin("reading and writing the runs", false);
    let (runs, mut left_out) = configured(&arguments.runs)?;
    let goes_on = || !stop.is_asked();
    let done = match (&arguments.tensorboard, file) {
        (Some(out), _) => to_tensorboard(&runs, out, goes_on),
        (None, Some(path)) => to_file(&runs, path, goes_on),
        (None, None) => {
            let written = to_lines(&runs, &mut BufWriter::new(stdout().lock()), goes_on);
            quiet_pipe(written).map(Option::unwrap_or_default)
        }
    };
    drop(writing);
    if stop.is_asked() {
        return Ok(stop.code());
    }
    let done = done?;
    match (&arguments.tensorboard, file) {
        (Some(out), _) => {
            let files = counted(done.written as u64, "event file");
            say!("{files} in {}", printable_path(out));
        }
        (None, Some(path)) => say!("{}", printable_path(path)),
        (None, None) => {}
    }
    left_out.extend(done.left_out);
    left_out.iter().for_each(|error| say!("left out: {error}"));
    Ok(if left_out.is_empty() { 0 } else { PARTLY })
}
