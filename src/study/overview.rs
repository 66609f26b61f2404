//! A page and pictures of any runs: what `exmy report` and `exmy plot` show.

use crate::error::{Error, Result};
use crate::plot::{Axis, Figure, Panel, Series, smooth};
use crate::study::compare::{conditions, differ};
use crate::study::finding::Table;
use crate::study::gather::{Found, quantities};
use crate::study::page::Page;

/// Runs of which a picture can tell the lines apart.
const MOST: usize = 36;

/// What made a page, as its head tells it.
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
fn axis(quantity: &str, runs: &[Found]) -> Axis {
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
fn parts(quantity: &str, runs: &[Found]) -> Result<Vec<String>> {
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

/// One picture of some quantities, a panel each, a line for each run.
///
/// # Errors
/// If a file cannot be read, or no run has recorded one of them.
pub fn picture(title: &str, names: &[String], runs: &[Found]) -> Result<Figure> {
    let known = quantities(runs)?;
    let mut figure = Figure::new(title).x(Axis::linear("step"));
    if let Some(run) =
        runs.first().filter(|_| !differ(runs.iter().map(|run| conditions(&run.config))))
    {
        figure = figure.subtitle(conditions(&run.config));
    }
    for name in names {
        let mut panel = Panel::new(axis(name, runs));
        let mut any = false;
        for run in runs.iter().take(MOST) {
            let points = run.curve(name)?;
            any |= !points.is_empty();
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
        if !any {
            let parts = parts(name, runs)?;
            let hint = if known.is_empty() {
                "no run has recorded anything yet".to_owned()
            } else if parts.is_empty() {
                format!("there are {}; a part of a probe is PROBE/PART", known.join(", "))
            } else {
                format!("parts that are numbers are {}", parts.join(", "))
            };
            return Err(Error::new(format!("no run has recorded {name:?} as a number")).hint(hint));
        }
        figure = figure.panel(panel);
    }
    Ok(figure)
}

/// The runs as a table.
pub fn table(runs: &[Found]) -> Table {
    let mut table = Table::new(
        "losses in the unit of the pictures; train loss is the mean of the last tenth of the steps",
        &["run", "recipe", "lr", "seed", "steps", "train loss", "val loss", "state"],
    );
    for run in runs {
        let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
        let summary = run.summary.as_ref();
        let steps = run.metrics.last().map_or(0, |line| line.step);
        let reason = summary.and_then(|summary| summary.reason.clone());
        let state = match reason {
            Some(reason) => format!("{}: {reason}", run.state().word()),
            None => run.state().word().to_owned(),
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

/// A page of everything that some runs have recorded.
///
/// # Errors
/// If a file cannot be read.
pub fn page(title: &str, runs: &[Found]) -> Result<Page> {
    let mut page = Page::new(title).made_by(MAKER);
    if let Some(run) =
        runs.first().filter(|_| !differ(runs.iter().map(|run| conditions(&run.config))))
    {
        page.soft(&conditions(&run.config));
    }
    page.table(&table(runs));
    if runs.len() > MOST {
        page.soft(&format!("The pictures have the first {MOST} of {} runs.", runs.len()));
    }
    if differ(runs.iter().map(|run| run.config.model.loss_unit())) {
        page.soft("The runs are of models with losses of different kinds; do not compare these.");
    }
    for name in quantities(runs)? {
        page.heading(&name, &name, "");
        let figure = picture(&format!("{name} by run"), std::slice::from_ref(&name), runs)?;
        page.picture(&figure.to_svg());
    }
    page.heading("configurations", "Configurations", "");
    for run in runs {
        page.folded(&run.name, &run.config.to_toml());
    }
    Ok(page)
}
