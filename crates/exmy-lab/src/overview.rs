//! A page and pictures of any runs: what `exmy report` and `exmy plot` show.

use crate::finding::Table;
use crate::gather::{RecordedRun, quantities, states};
use crate::page::Page;
use crate::plot::{Axis, Figure, Panel, Series, smooth};
use crate::provenance::{Provenance, seconds};
use crate::runner::{conditions, differ};
use chosen::{Chosen, MOST};
use exmy::error::{Error, Result};
use std::collections::BTreeSet;
use unlike::unlike;

mod chosen;
mod unlike;

/// What made a page, as its head says.
const MAKER: &str = "exmy report";

/// Whether a page is one of [`page`], which a new one may replace.
pub fn is_page(html: &str) -> bool {
    html.contains(&Page::mark(MAKER))
}

/// Whether a picture is one of this crate, which a new one may replace.
pub fn is_picture(svg: &str) -> bool {
    let tag = svg.split('>').next().unwrap_or_default();
    tag.starts_with("<svg ") && tag.contains("class=\"exmy\"")
}

/// The axis of a quantity.
fn axis(quantity: &str, runs: &[&RecordedRun]) -> Axis {
    let units = || runs.iter().map(|run| run.config.model.loss_unit());
    let unit =
        if differ(units()) { "each in its model's unit" } else { units().next().unwrap_or("") };
    match quantity {
        "loss" => Axis::log(format!("training loss, {unit}")),
        "val_loss" => Axis::log(format!("validation loss, {unit}")),
        "grad_norm" => Axis::log("gradient norm"),
        "lr" => Axis::linear("learning rate"),
        other => Axis::linear(other),
    }
}

/// Parts that a probe has recorded as numbers, the first twenty of them.
fn parts(quantity: &str, runs: &[RecordedRun]) -> Result<Vec<String>> {
    let Some((probe, _)) = quantity.split_once('/') else { return Ok(Vec::new()) };
    for run in runs {
        let lines = run.probes()?;
        if let Some(line) = lines.iter().rfind(|line| line.probe == probe) {
            let numbers = line.values.parts.iter().filter(|(_, part)| part.number().is_some());
            return Ok(numbers.take(20).map(|(name, _)| format!("{probe}/{name}")).collect());
        }
    }
    Ok(Vec::new())
}

/// One picture, and what a reader is to know who sees it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The picture, which says so too.
    pub figure: Figure,
    /// In what its runs differ in addition to recipe and seed, and what is left out of it.
    pub remarks: Vec<String>,
}

/// One picture of some quantities, a panel each, a line for each of the runs that have recorded it, the first
/// 36 of them.
///
/// # Errors
/// If a file cannot be read, or no run has recorded one of them.
pub fn picture(title: &str, names: &[String], runs: &[RecordedRun]) -> Result<Picture> {
    draw(title, names, runs, &recorded(runs)?)
}

/// What each of some runs has recorded.
fn recorded(runs: &[RecordedRun]) -> Result<Vec<BTreeSet<String>>> {
    runs.iter().map(RecordedRun::recorded).collect()
}

/// As [`picture`], of runs of which it is known what they have recorded.
fn draw(
    title: &str,
    names: &[String],
    runs: &[RecordedRun],
    recorded: &[BTreeSet<String>],
) -> Result<Picture> {
    let chosen = Chosen::new(names, runs, recorded)?;
    let drawn: Vec<&RecordedRun> = chosen.runs().iter().map(|&i| &runs[i]).collect();
    let mut figure = Figure::new(title).x(Axis::linear("step"));
    let mut remarks: Vec<String> = unlike(&drawn).into_iter().collect();
    for (k, name) in names.iter().enumerate() {
        if !chosen.has(k) {
            return Err(unknown(name, runs, recorded)?);
        }
        remarks.extend(chosen.remark(k, name));
        let mut panel = Panel::new(axis(name, &drawn));
        for run in chosen.of(k).into_iter().map(|i| &runs[i]) {
            let points = run.curve(name)?;
            let noisy = matches!(name.as_str(), "loss" | "grad_norm") && points.len() > 60;
            if noisy {
                let values: Vec<f64> = points.iter().map(|point| point.1).collect();
                let count = values.len() as f64;
                let smoothed = smooth(&values, |i| (i as f64 / 10.0).min(count / 30.0).max(1.0));
                let steps = points.iter().map(|point| point.0);
                let line: Vec<(f64, f64)> = steps.zip(smoothed).collect();
                panel =
                    panel.faint(Series::new(&run.name, points)).line(Series::new(&run.name, line));
            } else {
                panel = panel.line(Series::new(&run.name, points));
            }
        }
        figure = figure.panel(panel);
    }
    // What is true of all panels is said once.
    let mut seen = BTreeSet::new();
    remarks.retain(|remark| seen.insert(remark.clone()));
    let under = shared(&drawn).into_iter().chain(remarks.iter().cloned()).collect::<Vec<_>>();
    Ok(Picture { figure: figure.subtitle(under.join("; ")), remarks })
}

/// The conditions of some runs, where all have the same.
fn shared(runs: &[&RecordedRun]) -> Option<String> {
    let first = runs.first()?;
    let differ = differ(runs.iter().map(|run| conditions(&run.config)));
    (!differ).then(|| conditions(&first.config))
}

/// The mistake of asking for a quantity that no run has.
fn unknown(name: &str, runs: &[RecordedRun], recorded: &[BTreeSet<String>]) -> Result<Error> {
    let (known, parts) = (quantities(recorded), parts(name, runs)?);
    let hint = if known.is_empty() {
        "no run has recorded anything yet".to_owned()
    } else if parts.is_empty() {
        format!("there are {}; a part of a probe is PROBE/PART", known.join(", "))
    } else {
        format!("parts that are numbers are {}", parts.join(", "))
    };
    Ok(Error::new(format!("no run has recorded {name:?} as a number")).hint(hint))
}

/// The runs as a table.
pub fn table(runs: &[RecordedRun]) -> Table {
    let mut table = Table::new(
        "losses in the unit of the pictures; train loss is the mean of the last tenth of the steps",
        &["run", "recipe", "lr", "seed", "steps", "train loss", "val loss", "state"],
    );
    for (run, state) in runs.iter().zip(states(runs)) {
        let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
        let summary = run.summary.as_ref();
        let steps = run.metrics.last().map_or(0, |line| line.step);
        let reason = summary.and_then(|summary| summary.reason.clone());
        let state = match reason {
            Some(reason) => format!("{}: {reason}", state.word()),
            None => state.word().to_owned(),
        };
        table.row([
            run.name.clone(),
            run.config.recipe.to_string(),
            format!("{:e}", run.config.train.lr),
            run.config.seed.to_string(),
            format!("{steps} of {}", run.config.train.steps),
            of(summary.and_then(|summary| summary.train_loss)),
            of(summary.and_then(|summary| summary.val_loss)),
            state,
        ]);
    }
    table
}

/// What a reader of a [`page`] of these runs is to know: in what they differ in addition to recipe and seed.
pub fn remarks(runs: &[RecordedRun]) -> Vec<String> {
    unlike(&runs.iter().collect::<Vec<_>>()).into_iter().collect()
}

/// A page of everything that some runs have recorded; `left_out` says which others cannot be read, and why,
/// `provenance` how the page is made.
///
/// # Errors
/// If a file cannot be read.
pub fn page(
    title: &str,
    runs: &[RecordedRun],
    left_out: &[String],
    provenance: &Provenance,
) -> Result<Page> {
    let mut page = Page::new(title).made_by(MAKER);
    let all: Vec<&RecordedRun> = runs.iter().collect();
    shared(&all).iter().for_each(|conditions| page.soft(conditions));
    remarks(runs).iter().for_each(|remark| page.soft(&format!("Note that {remark}.")));
    page.table(&table(runs));
    if let [one] = left_out {
        page.soft(&format!("A run that cannot be read is left out: {one}."));
    } else if !left_out.is_empty() {
        let (count, all) = (left_out.len(), left_out.join("; "));
        page.soft(&format!("{count} runs that cannot be read are left out: {all}."));
    }
    if runs.len() > MOST {
        page.soft(&format!(
            "Each picture has the first {MOST} of the {} runs that have recorded what it shows.",
            runs.len()
        ));
    }
    if differ(runs.iter().map(|run| run.config.model.loss_unit())) {
        page.soft("The runs are of models with losses of different kinds; do not compare these.");
    }
    let recorded = recorded(runs)?;
    for name in quantities(&recorded) {
        page.heading(&name, &name, "");
        let title = format!("{name} by run");
        let picture = draw(&title, std::slice::from_ref(&name), runs, &recorded)?;
        page.picture(&picture.figure.to_svg());
    }
    page.heading("configurations", "Configurations", "");
    for run in runs {
        page.folded(&run.name, &run.config.to_toml());
    }
    let made = format!(
        "{} runs, {:.1} minutes of training steps added up over threads, wherever they were trained.",
        runs.len(),
        seconds(runs.iter().map(|run| run.folder.clone())) / 60.0
    );
    provenance.section(&mut page, "", &[made]);
    Ok(page)
}
