//! `exmy report` and `exmy plot`: a page, or one picture, of any runs.
//!
//! Each replaces only what is of its own making: a study's page took a night, and may lie where an overview
//! would be written.

use crate::PARTLY;
use crate::follow::{Follow, follow};
use crate::phase::Phase;
use crate::provenance::provenance;
use crate::settings::with_threads;
use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::safetensors::whole::{self, WholeFile};
use exmy::shown::printable_path;
use exmy_lab::gather::{RecordedRun, first_line, not_begun, undamaged};
use exmy_lab::remaining::Remaining;
use exmy_lab::runner::Manifest;
use exmy_lab::{overview, standing};
use exmy_train::train::old::modern;
use std::path::{Path, PathBuf};

/// Write one page with the curves, probes and configurations of any runs
///
/// Runs that are damaged are left out and named; then the exit code is 1, and a file that stands there stays.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct ReportArguments {
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// File to write; only a page of this command is replaced [default: report.html in the first
    /// folder]
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Heading of the page [default: the folders]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    follow: Follow,
}

impl ReportArguments {
    /// The heading of the page.
    fn title(&self) -> String {
        let names = || self.runs.iter().map(printable_path).collect::<Vec<_>>();
        self.title.clone().unwrap_or_else(|| names().join(", "))
    }
}

const HELP: &str = "\
Examples:
  exmy report runs/0001
  exmy report runs/0001 runs/0002 --out both.html
  exmy report runs/0001 --follow                # while they train";

/// Draw quantities of any runs as one SVG: loss, grad_norm, a probe, a part of a probe
///
/// Runs that are damaged are left out and named; then the exit code is 1, and a file that stands there stays.
#[derive(Args)]
pub(crate) struct PlotArguments {
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// What is drawn, a panel each: loss, val_loss, grad_norm, lr, PROBE, PROBE/PART
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "loss")]
    what: Vec<String>,
    /// File to write, - is the output; only a picture of exmy is replaced [default: plot.svg in the
    /// first folder]
    #[arg(long, value_name = "FILE.svg")]
    out: Option<PathBuf>,
    /// Heading of the picture [default: what is drawn]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Writes a page or picture, which replaces only one of these commands' own making.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if path.as_os_str() == "-" {
        return show::raw(text);
    }
    no_folder(path)?;
    // Others may have written there meanwhile.
    spare(path)?;
    whole::remove_abandoned(path);
    whole::write_whole(path, text.as_bytes())?;
    say!("{}", printable_path(path));
    Ok(())
}

/// Refuses a folder where a file is wanted.
fn no_folder(path: &Path) -> Result<()> {
    match path.is_dir() {
        false => Ok(()),
        true => {
            Err(Error::new(format!("{} is a folder", printable_path(path))).hint("name a file"))
        }
    }
}

/// What would be lost if a file were replaced, in words.
fn lost(path: &Path) -> Result<Option<&'static str>> {
    if path.extension().is_some_and(|found| found.eq_ignore_ascii_case("svg")) {
        return standing::lost_picture(path);
    }
    let what = if is_of_a_study(path) {
        "is the report of a study"
    } else {
        "is no page of `exmy report`"
    };
    standing::lost(path, overview::is_page, what)
}

/// Whether a file is the page of a study, by the manifest in its folder.
fn is_of_a_study(path: &Path) -> bool {
    let folder = whole::split(path).0;
    let has_page = || matches!(Manifest::read(folder), Ok(Some(found)) if found.page.is_some());
    path.file_name().is_some_and(|name| name == "report.html") && has_page()
}

/// Refuses to replace what is not of these commands' own making.
fn spare(path: &Path) -> Result<()> {
    let Some(what) = lost(path)? else { return Ok(()) };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let other = |i| path.with_file_name(format!("{stem}-{i}.{extension}"));
    let other = (2..100).map(other).find(|path| matches!(lost(path), Ok(None)));
    let other = other.map_or_else(|| "FILE".to_owned(), |path| printable_path(&path));
    Err(Error::new(format!("{} {what}, and would be lost", printable_path(path)))
        .hint(format!("name another file: --out {other}")))
}

/// Says before anything is read that a file has no folder to stand in.
fn has_folder(out: &Path) -> Result<()> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder.filter(|folder| !folder.is_dir()) else { return Ok(()) };
    let what = if folder.exists() { "is a file" } else { "does not exist" };
    let hint = match folder.exists() {
        true => "name a file in a folder with --out".to_owned(),
        false => {
            format!("create it (mkdir -p {}), or name a file in another", printable_path(folder))
        }
    };
    let found = format!("the folder {} {what}", printable_path(folder));
    Err(Error::new(format!("{} cannot be written: {found}", printable_path(out))).hint(hint))
}

/// Says before anything is read that a file cannot be written.
fn is_writable(out: &Path) -> Result<()> {
    has_folder(out)?;
    WholeFile::create(out).map(drop).map_err(|error| Error::io("write", out, error))
}

/// Where to write: a file that is named for what it will hold, so that no other is lost by a slip.
pub(crate) fn target(out: Option<&PathBuf>, runs: &[PathBuf], name: &str) -> Result<PathBuf> {
    let Some(out) = out else {
        let out = runs[0].join(name);
        return spare(&out).map(|()| out);
    };
    let (extension, what) = match name.ends_with("svg") {
        true => ("svg", "an SVG"),
        false => ("html", "an HTML page"),
    };
    let fits = out.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
    if out.as_os_str() == "-" {
        return Ok(out.clone());
    }
    no_folder(out)?;
    if fits {
        spare(out)?;
        return is_writable(out).map(|()| out.clone());
    }
    Err(Error::new(format!(
        "what is written is {what}, and {} is named otherwise",
        printable_path(out)
    ))
    .hint(format!("name it {}", printable_path(&out.with_extension(extension)))))
}

/// The runs that can be read; a message says why the others are left out, and each reason is returned on a
/// line.
fn readable(paths: &[PathBuf]) -> Result<(Vec<RecordedRun>, Vec<String>)> {
    let reading = Phase::begin("reading the runs", false);
    let (runs, broken) = undamaged(paths)?;
    drop(reading);
    broken.iter().for_each(|error| say!("left out: {error}"));
    let left_out = broken.iter().map(first_line).collect();
    if runs.is_empty() {
        return Err(Error::new("no run can be read"));
    }
    Ok((runs, left_out))
}

/// The exit code, after the work: whether what was written is of all runs.
fn code(left_out: &[String]) -> u8 {
    match left_out.len() {
        0 => return 0,
        1 => say!("1 run is damaged and was left out"),
        n => say!("{n} runs are damaged and were left out"),
    }
    PARTLY
}

/// Writes what shows all runs, or where some were left out what replaces nothing: what stands there may show
/// more of them.
fn write_of(left_out: &[String], path: &Path, text: &str) -> Result<()> {
    if left_out.is_empty() || path.as_os_str() == "-" || !path.is_file() {
        return write(path, text);
    }
    say!(
        "{} stays as it is, as it may show what was left out: name another file with --out",
        printable_path(path)
    );
    Ok(())
}

/// Writes the page, or serves it; the result is the exit code.
pub(crate) fn report(arguments: &ReportArguments) -> Result<u8> {
    with_threads(None, || match arguments.follow.follow {
        true => follow(&arguments.follow, &arguments.runs, &arguments.title()),
        false => write_report(arguments),
    })
}

fn write_report(arguments: &ReportArguments) -> Result<u8> {
    let out = target(arguments.out.as_ref(), &arguments.runs, "report.html")?;
    let (runs, left_out) = readable(&arguments.runs)?;
    overview::remarks(&runs).iter().for_each(|remark| say!("{remark}"));
    let (left, provenance) =
        (Remaining::unseen(not_begun(&arguments.runs)?.len()), provenance(None));
    let drawing = Phase::begin("drawing the page", false);
    let page = overview::page(&arguments.title(), &runs, &left_out, &left, &provenance)?.to_html();
    drop(drawing);
    write_of(&left_out, &out, &page)?;
    Ok(code(&left_out))
}

/// Writes the picture; the result is the exit code.
pub(crate) fn plot(arguments: &PlotArguments) -> Result<u8> {
    if arguments.what.iter().any(|name| name.trim().is_empty()) {
        return Err(Error::new(format!("--what {:?} has an empty name", arguments.what.join(",")))
            .hint("separate names by single commas, with none at the end"));
    }
    let out = target(arguments.out.as_ref(), &arguments.runs, "plot.svg")?;
    let (runs, left_out) = readable(&arguments.runs)?;
    let what: Vec<String> = arguments.what.iter().map(|name| modern(name)).collect();
    let title = arguments.title.clone().unwrap_or_else(|| what.join(", "));
    let drawing = Phase::begin("drawing the picture", false);
    let picture = overview::picture(&title, &what, &runs)?;
    drop(drawing);
    picture.remarks.iter().for_each(|remark| say!("{remark}"));
    write_of(&left_out, &out, &picture.figure.to_svg())?;
    Ok(code(&left_out))
}
