//! Results as a table: a row for each condition, over its seeds.

use crate::statistics::{mean, sd};
use exmy_train::train::run::Summary;
use std::collections::HashMap;

/// One run: what is special about it apart from its seed, and its result once it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Under which condition it was made, a word for each column; the recipe first.
    pub labels: Vec<String>,
    /// Its result.
    pub result: Option<Summary>,
}

/// The runs of one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The condition.
    pub labels: Vec<String>,
    /// Its runs.
    pub runs: usize,
    /// Those of them that are not complete.
    pub unfinished: usize,
    /// The step at which the first of them diverged, and how many did.
    pub diverged: Option<(u64, usize)>,
    /// Mean over those with a result.
    pub train_loss: Option<f64>,
    /// Mean over those with a result.
    pub val_loss: Option<f64>,
    /// Mean over those that know it, in bits a byte of text.
    pub val_bits: Option<f64>,
    /// Sample standard deviation of the validation losses, of two or more.
    pub spread: Option<f64>,
    /// How much the validation loss is above that of the first row that differs in the first label at most,
    /// in percent: taken seed by seed, the mean of the seeds that both have and that did not diverge.
    pub gap: Option<f64>,
}

/// How much higher `loss` is than `base`, in percent.
pub fn gap_percent(loss: f64, base: f64) -> f64 {
    (loss / base - 1.0) * 100.0
}

/// The rows, in the order in which their conditions first appear.
pub fn rows(runs: &[Run]) -> Vec<Row> {
    let mut order: Vec<&[String]> = Vec::new();
    let mut groups: HashMap<&[String], Vec<&Run>> = HashMap::new();
    for run in runs {
        let group = groups.entry(&run.labels).or_default();
        if group.is_empty() {
            order.push(&run.labels);
        }
        group.push(run);
    }
    let whole = |result: &Summary| result.val_loss.filter(|_| result.diverged_at.is_none());
    let of_seed = |labels: &[String], seed: u64| {
        let mut results = groups[labels].iter().filter_map(|run| run.result.as_ref());
        results.find(|result| result.seed == seed).and_then(whole)
    };
    let mut rows: Vec<Row> = Vec::new();
    for labels in order {
        let group = &groups[labels];
        let results: Vec<&Summary> = group.iter().filter_map(|run| run.result.as_ref()).collect();
        let ends: Vec<u64> = results.iter().filter_map(|result| result.diverged_at).collect();
        let losses = |loss: fn(&Summary) -> Option<f64>| -> Vec<f64> {
            results.iter().filter_map(|result| loss(result)).collect()
        };
        let val = losses(|result| result.val_loss);
        let base = rows.iter().find(|row| row.labels.get(1..) == labels.get(1..));
        let base = base.map_or(labels, |row| &*row.labels);
        let gaps = results
            .iter()
            .filter_map(|result| Some(gap_percent(whole(result)?, of_seed(base, result.seed)?)));
        let gap = mean(&gaps.collect::<Vec<_>>());
        rows.push(Row {
            labels: labels.to_vec(),
            runs: group.len(),
            unfinished: group.len() - results.len(),
            diverged: ends.iter().min().map(|&first| (first, ends.len())),
            train_loss: mean(&losses(|result| result.train_loss)),
            val_loss: mean(&val),
            val_bits: mean(&losses(|result| result.val_bits_per_byte)),
            spread: sd(&val),
            gap,
        });
    }
    rows
}

/// Whether a text is one of these tables.
pub(crate) fn is_table(text: &str) -> bool {
    let head = text.lines().next().unwrap_or_default();
    head.contains("train loss") && head.contains("val loss") && head.ends_with("gap")
}

/// The rows as lines of text under `header`, which names the labels' columns.
pub fn text(header: &[&str], rows: &[Row]) -> String {
    aligned(&cells(header, rows), header.len())
}

/// The rows as cells, those of the headings first.
pub fn cells(header: &[&str], rows: &[Row]) -> Vec<Vec<String>> {
    let several = rows.iter().any(|row| row.runs > 1);
    let has_bits = rows.iter().any(|row| row.val_bits.is_some());
    let head = header.iter().copied();
    let mut cells: Vec<Vec<String>> = vec![
        head.chain(several.then_some("seeds"))
            .chain(["train loss", "val loss"])
            .chain(several.then_some("+-"))
            .chain(has_bits.then_some("val bits/byte"))
            .chain(["gap"])
            .map(String::from)
            .collect(),
    ];
    for row in rows {
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.4}"));
        let gap = row.gap.map_or_else(|| "-".into(), |gap| format!("{gap:+.2} %"));
        let end = match row.diverged {
            Some((step, _)) if row.runs == 1 => format!("diverged at step {step}"),
            Some((step, count)) => format!("{gap}, {count} diverged, the first at step {step}"),
            None => gap,
        };
        let end = match row.unfinished {
            0 => end,
            n => format!("{end}, {n} not done"),
        };
        let mut line = row.labels.clone();
        line.extend(several.then(|| row.runs.to_string()));
        line.extend([number(row.train_loss), number(row.val_loss)]);
        line.extend(several.then(|| number(row.spread)));
        line.extend(has_bits.then(|| number(row.val_bits)));
        line.push(end);
        cells.push(line);
    }
    cells
}

/// Cells as lines; the first `left` columns begin, the others end in line.
pub fn aligned(cells: &[Vec<String>], left: usize) -> String {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = cells.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in cells {
        let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A number of a picture or table, three significant digits or so.
pub(crate) fn number(y: f64) -> String {
    match y.abs() {
        _ if !y.is_finite() => "-".into(),
        a if a >= 100.0 => format!("{y:.0}"),
        a if a >= 10.0 => format!("{y:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{y:.2}"),
        a if a >= 0.001 => format!("{y:.4}"),
        _ => format!("{y:.1e}"),
    }
}
