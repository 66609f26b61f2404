//! `exmy report` and `exmy plot`: a page, or one picture, of any runs.

use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::files::whole;
use exmy::study::gather::{Found, gather};
use exmy::study::overview;
use std::path::{Path, PathBuf};

/// Write one page with the curves, probes and configurations of any runs
#[derive(Args)]
pub(crate) struct ReportArguments {
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// File to write [default: report.html in the first folder]
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Heading of the page [default: the folders]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Draw quantities of any runs as one SVG: loss, grad_norm, a probe, a part of a probe
#[derive(Args)]
pub(crate) struct PlotArguments {
    /// Folders of runs, or folders above them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// What is drawn, a panel each: loss, val_loss, grad_norm, lr, PROBE, PROBE/PART
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "loss")]
    what: Vec<String>,
    /// File to write; - is the output [default: plot.svg in the first folder]
    #[arg(long, value_name = "FILE.svg")]
    out: Option<PathBuf>,
    /// Heading of the picture [default: what is drawn]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

fn write(path: &Path, text: &str) -> Result<()> {
    if path.as_os_str() == "-" {
        return show::result(text);
    }
    if path.is_dir() {
        return Err(Error::new(format!("{} is a folder", path.display())).hint("name a file"));
    }
    whole::remove_abandoned(path);
    whole::write_whole(path, text.as_bytes())?;
    tell!("{}", path.display());
    Ok(())
}

/// All runs, or what to do where there are none.
fn found(paths: &[PathBuf]) -> Result<Vec<Found>> {
    if let Some(path) = paths.iter().find(|path| !path.exists()) {
        return Err(Error::new(format!("there is no folder {}", path.display()))
            .hint("name folders of runs, as `exmy train` writes them below runs/"));
    }
    gather(paths)
}

/// Writes the page; the result is the exit code.
pub(crate) fn report(arguments: &ReportArguments) -> Result<u8> {
    let runs = found(&arguments.runs)?;
    let names = || arguments.runs.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let title = arguments.title.clone().unwrap_or_else(|| names().join(", "));
    let out = arguments.out.clone().unwrap_or_else(|| arguments.runs[0].join("report.html"));
    write(&out, &overview::page(&title, &runs)?.to_html())?;
    Ok(0)
}

/// Writes the picture; the result is the exit code.
pub(crate) fn plot(arguments: &PlotArguments) -> Result<u8> {
    let runs = found(&arguments.runs)?;
    let title = arguments.title.clone().unwrap_or_else(|| arguments.what.join(", "));
    let out = arguments.out.clone().unwrap_or_else(|| arguments.runs[0].join("plot.svg"));
    write(&out, &overview::picture(&title, &arguments.what, &runs)?.to_svg())?;
    Ok(0)
}
