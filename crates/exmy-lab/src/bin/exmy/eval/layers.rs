//! What recipes do to each linear operator and to the stream between blocks, as tables and as JSON.

use super::rows::Row;
use exmy_lab::table::aligned;
use exmy_train::evaluate::layers::{Layers, OperandError, OperatorError};
use exmy_train::nn::site::{Operator, Site};
use serde_json::{Value, json};

/// Everything of every operator. What is infinite, as the signal to noise ratio of what nothing rounds, is
/// null.
pub(super) fn json(layers: &Layers) -> Value {
    let operand = |of: &OperandError| {
        json!({
            "sqnr_db": of.sqnr_db(),
            "flushed": of.flushed(),
            "kurtosis": of.kurtosis(),
            "over_median": of.over_median(),
        })
    };
    let linears = layers.linears().map(|(site, linear)| {
        json!({
            "site": site.to_string(),
            "error": linear.error(),
            "input": operand(&linear.input),
            "weight": operand(&linear.weight),
        })
    });
    linears.collect()
}

/// The root of the mean square of the errors of some operators; none of no operators.
pub(super) fn error(layers: &Layers, of: impl Fn(Site) -> bool) -> Option<f64> {
    let errors = layers.linears().filter(|(site, _)| of(*site)).map(|(_, linear)| linear.error());
    let (sum, count) = errors.fold((0.0, 0.0), |(sum, n), error| (sum + error * error, n + 1.0));
    (count > 0.0).then(|| libm::sqrt(sum / count))
}

/// A mean over the blocks of something of an operator.
fn mean(layers: &Layers, operator: Operator, of: impl Fn(&OperatorError) -> f64) -> f64 {
    let found = layers.linears().filter(|(site, _)| site.operator == operator);
    let (sum, count) = found.fold((0.0, 0.0), |(sum, n), (_, linear)| (sum + of(linear), n + 1.0));
    sum / count
}

/// A table of the stream after each block, and for each recipe but the first one of the operators; of the
/// first where it is the only one, which has nothing to be compared with.
pub(super) fn tables(rows: &[Row<'_>]) -> String {
    match rows {
        [only] => operators(only),
        _ => stream(rows) + &rows[1..].iter().map(operators).collect::<String>(),
    }
}

fn stream(rows: &[Row<'_>]) -> String {
    let first = rows[0].recipe;
    let mut cells = vec![vec!["block".to_owned()]];
    cells[0].extend(rows[1..].iter().map(|row| row.recipe.to_string()));
    for block in 0..rows[0].layers.drifts().count() {
        let drift = |row: &Row<'_>| row.layers.drifts().nth(block).unwrap_or(f64::NAN);
        let mut line = vec![block.to_string()];
        line.extend(rows[1..].iter().map(|row| format!("{:.5}", drift(row))));
        cells.push(line);
    }
    let head =
        format!("\nthe stream after each block: distance from that of {first} over its length\n");
    head + &aligned(&cells, 1)
}

fn operators(row: &Row<'_>) -> String {
    let head = [
        "operator",
        "error",
        "input dB",
        "weight dB",
        "input flushed",
        "weight flushed",
        "input kurtosis",
        "input max/median",
    ];
    let mut cells = vec![head.map(String::from).to_vec()];
    // Where nothing is lost the ratio to the noise is no number.
    let decibels = |ratio: f64| match ratio.is_finite() {
        true => format!("{ratio:.2}"),
        false => "-".into(),
    };
    for &operator in Operator::ALL {
        let Some(error) = error(row.layers, |site| site.operator == operator) else { continue };
        let mean = |of: fn(&OperatorError) -> f64| mean(row.layers, operator, of);
        cells.push(vec![
            operator.to_string(),
            format!("{error:.5}"),
            decibels(mean(|linear| linear.input.sqnr_db())),
            decibels(mean(|linear| linear.weight.sqnr_db())),
            format!("{:.2} %", 100.0 * mean(|linear| linear.input.flushed())),
            format!("{:.2} %", 100.0 * mean(|linear| linear.weight.flushed())),
            format!("{:.1}", mean(|linear| linear.input.kurtosis())),
            format!("{:.1}", mean(|linear| linear.input.over_median())),
        ]);
    }
    format!("\noperators under {}: means over blocks\n", row.recipe) + &aligned(&cells, 1)
}
