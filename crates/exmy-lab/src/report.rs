//! The report of a study: one page, and its pictures, tables and plan as files of their own.
//!
//! ```text
//! DIR/manifest.json        what the page shows: the study, the scale, the figures
//! DIR/report.html          everything, in one page that stands alone
//! DIR/figures/ID-N.svg     its pictures, and as ID-N-values.csv their numbers
//! DIR/tables/ID-N.csv      its tables
//! DIR/plan.toml            the runs: for each its name and its configuration
//! ```
//!
//! A report replaces one of the same study and nothing else. `manifest.json` says whose the files are, so it
//! is written first: what a kill cuts short can be written again.

mod old;

use crate::amounts::{duration, operations};
use crate::curves::Curves;
use crate::finding::Paper;
use crate::finding::{Experiment, Findings, Part, Table, Verdict};
use crate::listing;
use crate::page::Page;
pub use crate::provenance::Provenance;
use crate::run_config::{RunConfig, Setting};
pub use crate::runner::Page as Shown;
use crate::runner::{Kind, Manifest};
use crate::store::{Store, distinct};
use crate::study_scale::StudyScale;
use crate::timing;
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::safetensors::whole::{self, WholeFile};
use exmy::shown::printable_path;
use std::fs;
use std::path::{Path, PathBuf};

/// A short name of a run's recipe, rate, seed and steps, for lists of runs.
fn row(run: &RunConfig, store: &Store) -> Result<Vec<String>> {
    let config = &run.config;
    let result = store.summary(run)?;
    let of = |loss: Option<f64>| loss.map_or_else(|| "-".to_owned(), |loss| format!("{loss:.4}"));
    let end = match &result {
        None => "not trained".to_owned(),
        Some(result) => match result.diverged_at {
            Some(step) => format!("diverged at {step}"),
            None => "complete".to_owned(),
        },
    };
    let (train, val) = result.as_ref().map_or((None, None), |r| (r.train_loss, r.val_loss));
    Ok(vec![
        run.name(),
        config.recipe.to_string(),
        format!("{:e}", config.train.lr),
        config.seed.to_string(),
        run.steps().to_string(),
        of(train),
        of(val),
        end,
    ])
}

/// What would work where a report cannot be written once its runs are trained.
const KEPT: &str =
    "the runs are kept; the same command with --report DIR writes it to another folder";

fn write(path: &Path, text: &str) -> Result<()> {
    whole::remove_abandoned(path);
    whole::write_whole(path, text.as_bytes()).map_err(|error| error.hint(KEPT))
}

/// What the report of a study in a folder shows, if there is one.
fn standing(paper: &Paper, out: &Path, html: &Path) -> Result<Option<Shown>> {
    let of_this = |page: &Shown| page.study == paper.name;
    match Manifest::read(out)?.and_then(|manifest| manifest.page) {
        Some(page) => Ok(Some(page).filter(of_this)),
        // Of an earlier version, or something else.
        None => {
            let text = given::read(html, given::RESULTS)
                .map_err(|error| Error::io("read", html, error).hint("name another folder"))?;
            Ok(old::page(paper, &String::from_utf8_lossy(&text)))
        }
    }
}

/// How the name of a file ends that has the numbers of a picture.
const VALUES: &str = "-values";

/// Files in a report's folder with the names of a figure's pictures and tables.
fn files_of(id: &str, out: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for (folder, extension) in [("figures", "svg"), ("figures", "csv"), ("tables", "csv")] {
        for entry in fs::read_dir(out.join(folder)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(stem) = name.to_str().and_then(|name| {
                name.strip_prefix(id)?.strip_prefix('-')?.strip_suffix(extension)?.strip_suffix('.')
            }) else {
                continue;
            };
            let stem = if folder == "figures" { stem.trim_end_matches(VALUES) } else { stem };
            let is_number = stem.parse::<u32>().is_ok_and(|number| number.to_string() == stem);
            if is_number || extension == "csv" && stem == "runs" {
                all.push(entry.path());
            }
        }
    }
    all.sort();
    all
}

/// Whether a report of some of a study's figures may be written to a folder: it is none yet, or holds nothing
/// that would be replaced, or a report of the same study, which is the result.
///
/// # Errors
/// If it is a file, holds another page, or files with the names of the report's and no page that says whose
/// they are.
pub fn check(paper: &Paper, figures: &[&dyn Experiment], out: &Path) -> Result<Option<Shown>> {
    if out.exists() && !out.is_dir() {
        return Err(Error::new(format!(
            "{} is a file, and a report is a folder",
            printable_path(out)
        ))
        .hint("name another folder"));
    }
    let page = out.join("report.html");
    if !page.exists() {
        let mut found = vec![out.join("plan.toml")];
        found.retain(|path| path.exists());
        found.extend(figures.iter().flat_map(|figure| files_of(figure.id(), out)));
        let Some(first) = found.first() else { return Ok(None) };
        let more = match found.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let lost = format!("{}{more} would be lost", printable_path(first));
        return Err(Error::new(format!("{lost}: no report of {} is beside", paper.name))
            .hint("name another folder, or take these files away"));
    }
    let standing = standing(paper, out, &page)?;
    if standing.is_none() {
        let lost =
            format!("{} is no report of {}, and would be lost", printable_path(&page), paper.name);
        return Err(Error::new(lost)
            .hint("name another folder, or take that page and the files beside it away"));
    }
    Ok(standing)
}

/// Creates the folders of a report and sees whether they take files, which is not to be found out after days
/// of training.
///
/// # Errors
/// If a folder cannot be created or does not take a file.
pub fn prepare(out: &Path) -> Result<()> {
    for folder in [out.to_owned(), out.join("figures"), out.join("tables")] {
        let hint =
            "name a folder that can be written with --out, or with --report for the page alone";
        fs::create_dir_all(&folder)
            .map_err(|error| Error::io("create", &folder, error).hint(hint))?;
        // Begun and dropped: nothing stays.
        WholeFile::create(&folder.join("report"))
            .map_err(|error| Error::io("write into", &folder, error).hint(hint))?;
    }
    Ok(())
}

/// The runs of some figures, each once, with those of second stages that are known by what is complete.
///
/// # Errors
/// If a run's files cannot be read.
pub fn runs(
    figures: &[&dyn Experiment],
    setting: &Setting,
    store: &Store,
) -> Result<Vec<RunConfig>> {
    let mut all: Vec<RunConfig> = figures.iter().flat_map(|figure| figure.runs(setting)).collect();
    for figure in figures {
        all.extend(figure.later(setting, &store.runs())?);
    }
    Ok(distinct(&all))
}

/// What some figures find in their runs, in their order. `before` is called with each figure before it is
/// read, which may take minutes; nothing is found once it says no.
///
/// # Errors
/// If a run is not complete or cannot be read.
pub fn find(
    figures: &[&dyn Experiment],
    setting: &Setting,
    store: &Store,
    mut before: impl FnMut(&dyn Experiment) -> bool,
) -> Result<Option<Vec<Findings>>> {
    let mut all = Vec::new();
    for figure in figures {
        if !before(*figure) {
            return Ok(None);
        }
        let mut findings = figure.find(setting, &store.runs())?;
        if setting.scale == StudyScale::Smoke && !figure.runs(setting).is_empty() {
            let reason = findings.verdict.reason();
            findings.verdict =
                Verdict::Shown(format!("runs of this scale judge nothing; {reason}"));
            findings.judged.clear();
        }
        all.push(findings);
    }
    Ok(Some(all))
}

/// What a report comes to: how many of the claims are what.
fn answer(found: &[Findings], scale: StudyScale) -> String {
    let mut words: Vec<(&str, usize)> = Vec::new();
    let is_judged = |verdict: &&Verdict| !matches!(verdict, Verdict::Shown(_) | Verdict::NotRun(_));
    let judged = || found.iter().map(|findings| &findings.verdict).filter(is_judged);
    for verdict in judged() {
        match words.iter_mut().find(|(word, _)| *word == verdict.word()) {
            Some((_, count)) => *count += 1,
            None => words.push((verdict.word(), 1)),
        }
    }
    let said: Vec<String> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let not_run = found.iter().filter(|one| matches!(one.verdict, Verdict::NotRun(_))).count();
    let mut text = match (judged().count(), scale) {
        (_, StudyScale::Smoke) => {
            "Runs of scale smoke only show that everything works: they judge no claim.".to_owned()
        }
        (0, _) => "Nothing here is a claim that is judged.".to_owned(),
        (1, _) => format!("The one claim that was tried: {}.", said.join("")),
        (count, _) => format!("Of {count} claims that were tried: {}.", said.join(", ")),
    };
    if not_run > 0 {
        text += &format!(
            " {not_run} of {} figures belong to a larger scale and were not run.",
            found.len()
        );
    }
    text
}

/// Links of a report: to its plan, and to reports of other studies that stand where this command writes them.
fn links(paper: &Paper, scale: StudyScale, out: &Path) -> Vec<(String, String)> {
    let mut all =
        vec![("plan.toml".to_owned(), "all runs and their configurations (TOML)".to_owned())];
    for other in crate::studies::ALL.iter().filter(|other| other.name != paper.name) {
        let to = format!("../{}-{scale}/report.html", other.name);
        if out.join(&to).is_file() {
            all.push((to, format!("study {}", other.name)));
        }
    }
    all
}

/// The pictures and tables of a figure as files.
fn files_to_write(id: &str, parts: &[Part], out: &Path) -> Vec<(PathBuf, String)> {
    let (mut pictures, mut tables, mut files) = (0, 0, Vec::new());
    for part in parts {
        match part {
            Part::Picture(picture) => {
                pictures += 1;
                let named = |end: &str| out.join("figures").join(format!("{id}-{pictures}{end}"));
                files.push((named(".svg"), picture.to_svg()));
                files.push((named(&format!("{VALUES}.csv")), picture.to_csv(usize::MAX)));
            }
            Part::Table(table) => {
                tables += 1;
                files.push((out.join("tables").join(format!("{id}-{tables}.csv")), table.csv()));
            }
            Part::Text(_) => {}
        }
    }
    files
}

/// Writes the report of what some of a paper's figures [found](find) into `out`. Of these figures nothing
/// older stays; files of others do.
///
/// # Errors
/// If a run is not complete, something cannot be read or written, or what is there is not to be
/// [replaced](check).
pub fn make(
    paper: &Paper,
    figures: &[&dyn Experiment],
    (setting, store): (&Setting, &Store),
    found: &[Findings],
    out: &Path,
    provenance: &Provenance,
) -> Result<()> {
    let mut page = Page::new(paper.title);
    page.answer(&answer(found, setting.scale));
    page.soft(paper.source);
    page.text(paper.about);
    if store.is_thinned() {
        page.text(&Curves::words());
    }
    page.links(&links(paper, setting.scale, out));
    let mut files = Vec::new();
    let (not_run, run): (Vec<_>, Vec<_>) = figures
        .iter()
        .zip(found)
        .partition(|(_, findings)| matches!(findings.verdict, Verdict::NotRun(_)));
    for (figure, findings) in run {
        let id = figure.id();
        page.heading_of(id, &format!("{id}: {}", figure.title()), &findings.verdict);
        page.verdict(&findings.verdict, &findings.judged);
        page.text(&format!("The claim: {}", figure.claim()));
        page.parts(&findings.parts, id);
        files.extend(files_to_write(id, &findings.parts, out));
        let own = runs(&[*figure], setting, store)?;
        let mut table = Table::new(
            "runs",
            &["name", "recipe", "lr", "seed", "steps", "train loss", "val loss", "end"],
        );
        for run in &own {
            table.row(row(run, store)?);
        }
        if !own.is_empty() {
            files.push((out.join("tables").join(format!("{id}-runs.csv")), table.csv()));
        }
        page.folded_part("how this was judged, and the runs", |page| {
            page.soft(figure.source());
            let criterion = figure.criterion();
            if !criterion.is_empty() {
                page.text(&criterion);
            }
            if let Some(first) = own.first() {
                let all =
                    (format!("tables/{id}-runs.csv"), format!("the {} runs as CSV", own.len()));
                page.links(&[all]);
                page.folded("the configuration of the first run", &first.config.to_toml());
            }
        });
    }
    if !not_run.is_empty() {
        page.heading("not-run", "Not run at this scale", &not_run.len().to_string());
        for (figure, findings) in not_run {
            let (id, reason) = (figure.id(), findings.verdict.reason());
            page.text(&format!("{id}: {}. {} ({reason})", figure.title(), figure.claim()));
        }
    }
    let runs = runs(figures, setting, store)?;
    let mut made = Vec::new();
    if !runs.is_empty() {
        let flops: f64 = runs.iter().map(RunConfig::flops).sum();
        let time = |run: &RunConfig| {
            timing::of(&store.folder(&run.name()), timing::tokens_per_step(&run.config))
        };
        let time: timing::Time = runs.iter().map(time).sum();
        let time = match store.is_thinned() {
            true => "whose curves were read".to_owned(),
            false => format!("{} of training steps added up over threads", duration(time.seconds)),
        };
        let (count, flops) = (runs.len(), operations(flops));
        made.push(format!("{count} runs on {}, {flops} of training, {time}.", setting.source()));
    }
    provenance.section(&mut page, &format!(", scale {}", setting.scale), &made);
    files.push((out.join("plan.toml"), listing::plan(&runs)));
    // Another process may have written there while the runs were trained.
    check(paper, figures, out).map_err(|error| error.hint(KEPT))?;
    prepare(out).map_err(|error| error.hint(KEPT))?;
    let ids = figures.iter().map(|figure| figure.id().to_owned()).collect();
    let (study, scale) = (paper.name.to_owned(), setting.scale);
    let kind = Kind::Study { study: study.clone(), scale };
    let manifest = Manifest::read(out).map_err(|error| error.hint(KEPT))?;
    let mut manifest = manifest.unwrap_or_else(|| Manifest::new(kind, Vec::new(), Vec::new()));
    manifest.page = Some(Shown { study, scale: Some(scale), figures: ids });
    manifest.write(out).map_err(|error| error.hint(KEPT))?;
    write(&out.join("report.html"), &page.to_html())?;
    for (path, text) in &files {
        write(path, text)?;
    }
    for old in figures.iter().flat_map(|figure| files_of(figure.id(), out)) {
        if !files.iter().any(|(path, _)| *path == old) {
            fs::remove_file(&old).map_err(|error| Error::io("remove", &old, error))?;
        }
    }
    Ok(())
}
