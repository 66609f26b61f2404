//! The report of a study: one page, and its pictures, tables and plan as files of their own.
//!
//! ```text
//! DIR/report.html          everything, in one page that stands alone
//! DIR/figures/ID-N.svg     its pictures
//! DIR/tables/ID-N.csv      its tables
//! DIR/plan.toml            the runs: for each its name and its configuration
//! ```

use crate::error::{Error, Result};
use crate::files::whole;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::listing;
use crate::study::page::Page;
use crate::study::papers::Paper;
use crate::study::store::{Store, distinct};
use std::fs;
use std::path::Path;

/// Where and how the runs were made: what of a report is not the same on every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The command that makes the report.
    pub command: String,
    /// The machine, in words.
    pub machine: String,
}

/// A short name of an arm's recipe, rate, seed and steps, for lists of runs.
fn row(arm: &Arm, store: &Store) -> Result<Vec<String>> {
    let config = &arm.config;
    let result = store.folder(&arm.name()).summary()?;
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
        arm.name(),
        config.recipe.to_string(),
        format!("{:e}", config.train.lr),
        config.seed.to_string(),
        arm.steps().to_string(),
        of(train),
        of(val),
        end,
    ])
}

/// Seconds of training in the records of some runs, over all their processes.
fn seconds(arms: &[Arm], store: &Store) -> f64 {
    let of_run = |arm: &Arm| -> f64 {
        let text = fs::read_to_string(store.folder(&arm.name()).timing_file()).unwrap_or_default();
        // Seconds count from the beginning of each process.
        let (mut total, mut last) = (0.0, 0.0);
        for line in text.lines() {
            let value: Option<serde_json::Value> = serde_json::from_str(line).ok();
            let now = value.and_then(|value| value["train_seconds"].as_f64()).unwrap_or(last);
            if now < last {
                total += last;
            }
            last = now;
        }
        total + last
    };
    arms.iter().map(of_run).sum()
}

fn write(path: &Path, text: &str) -> Result<()> {
    whole::remove_abandoned(path);
    whole::write_whole(path, text.as_bytes())
}

/// Whether a report of a study may be written to a folder: it is none yet, or empty of reports, or has one of
/// the same study.
///
/// # Errors
/// If it is a file, or holds another page.
pub fn check(paper: &Paper, out: &Path) -> Result<()> {
    if out.exists() && !out.is_dir() {
        return Err(Error::new(format!("{} is a file, and a report is a folder", out.display()))
            .hint("name another folder"));
    }
    let page = out.join("report.html");
    if !page.exists() {
        return Ok(());
    }
    let found = fs::read_to_string(&page).map_err(|error| Error::io("read", &page, error))?;
    if found.contains(&Page::tag(paper.title)) {
        return Ok(());
    }
    Err(Error::new(format!("{} is no report of {}, and would be lost", page.display(), paper.name))
        .hint("name another folder, or take that page away"))
}

/// Writes the report of some of a paper's figures into `out`; the result is what was found, figure by figure.
///
/// # Errors
/// If a run is not complete, or something cannot be read or written.
pub fn make(
    paper: &Paper,
    figures: &[&dyn Figure],
    setting: &Setting,
    store: &Store,
    out: &Path,
    provenance: &Provenance,
) -> Result<Vec<Findings>> {
    for folder in ["figures", "tables"].map(|name| out.join(name)) {
        fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
    }
    let mut page = Page::new(paper.title);
    page.soft(paper.source);
    page.text(paper.about);
    let mut all = Vec::new();
    for figure in figures {
        let mut findings = figure.find(setting, &store.runs())?;
        if setting.scale == Scale::Smoke && !figure.arms(setting).is_empty() {
            let reason = findings.verdict.reason();
            findings.verdict =
                Verdict::Shown(format!("runs of this scale judge nothing; {reason}"));
        }
        all.push(findings);
    }
    for (figure, findings) in figures.iter().zip(&all) {
        let id = figure.id();
        page.heading(id, &format!("{id}: {}", figure.title()), findings.verdict.word());
        page.soft(figure.source());
        page.text(figure.claim());
        page.findings(findings);
        let (mut pictures, mut tables) = (0, 0);
        for part in &findings.parts {
            match part {
                Part::Picture(picture) => {
                    pictures += 1;
                    let name = format!("{id}-{pictures}.svg");
                    write(&out.join("figures").join(name), &picture.to_svg())?;
                }
                Part::Table(table) => {
                    tables += 1;
                    let name = format!("{id}-{tables}.csv");
                    write(&out.join("tables").join(name), &table.csv())?;
                }
                Part::Text(_) => {}
            }
        }
        let arms = distinct(&figure.arms(setting));
        if let Some(first) = arms.first() {
            let mut runs = Table::new(
                "runs",
                &["name", "recipe", "lr", "seed", "steps", "train loss", "val loss", "end"],
            );
            for arm in &arms {
                runs.row(row(arm, store)?);
            }
            write(&out.join("tables").join(format!("{id}-runs.csv")), &runs.csv())?;
            let count = arms.len();
            page.folded(
                &format!("the first of {count} runs: config.toml"),
                &first.config.to_toml(),
            );
        }
    }
    let arms: Vec<Arm> = figures.iter().flat_map(|figure| figure.arms(setting)).collect();
    let arms = distinct(&arms);
    page.heading("provenance", "How this was made", "");
    page.text(&format!("exmy {}, scale {}.", env!("CARGO_PKG_VERSION"), setting.scale));
    page.text(&provenance.machine);
    if !arms.is_empty() {
        let flops: f64 = arms.iter().map(Arm::flops).sum();
        page.text(&format!(
            "{} runs on {}, {:.2} TFLOP of training, {:.1} minutes of training steps added up over threads.",
            arms.len(),
            setting.source(),
            flops / 1e12,
            seconds(&arms, store) / 60.0
        ));
    }
    page.folded("the command", &provenance.command);
    write(&out.join("plan.toml"), &listing::plan(&arms))?;
    write(&out.join("report.html"), &page.to_html())?;
    Ok(all)
}
