//! Pictures of an evaluation: what recipes cost, what happens inside of the model, which parts cost most.

use super::layers::error;
use super::rows::Row;
use super::sensitivity::Part;
use exmy_lab::plot::{Axis, Figure, Heat, Intervals, Panel, Series};
use exmy_train::evaluate::Mean;
use exmy_train::nn::site::Operator;
use exmy_train::recipe::Recipe;

/// The most bars whose names can be read.
const MOST: usize = 12;

/// A mean with two standard errors at either side, at a place.
fn interval(at: usize, Mean { mean, error }: Mean) -> (f64, f64, f64, f64) {
    let reach = if error.is_nan() { 0.0 } else { 2.0 * error };
    (at as f64, mean - reach, mean, mean + reach)
}

/// A recipe as a picture names it: keys and values of the same numbers take one word, as `--kv` does. Names
/// that differ there alone would be cut to where they are alike.
fn label(recipe: &Recipe) -> String {
    let name = recipe.as_str();
    let short = || {
        let (before, rest) = name.split_once("+k:tensor=")?;
        let (numbers, rest) = rest.split_once("+v:tensor=")?;
        let behind = rest.strip_prefix(numbers)?;
        let ends = behind.is_empty() || behind.starts_with('+');
        ends.then(|| format!("{before}{behind}, kv {numbers}"))
    };
    short().unwrap_or_else(|| name.to_owned())
}

/// Bars with intervals of all rows.
fn bars<'a>(
    label: String,
    rows: impl Iterator<Item = &'a Row<'a>> + Clone,
    of: impl Fn(&Row<'_>) -> Mean,
) -> Panel {
    let bars = rows.clone().enumerate().map(|(at, row)| (at as f64, of(row).mean));
    let intervals = rows.clone().enumerate().map(|(at, row)| interval(at, of(row)));
    // Of one window there is no standard error.
    let has_error = rows.clone().any(|row| !of(row).error.is_nan());
    let name = if has_error { "2 standard errors" } else { "one window: no standard error" };
    let panel = Panel::new(Axis::linear(label)).bars(Series::new(name, bars));
    if has_error { panel.intervals(Intervals::new(name, intervals)) } else { panel }
}

/// The loss above the first recipe's and the divergence from it, of all others.
pub(super) fn costs(rows: &[Row<'_>], subtitle: &str) -> Figure {
    let first = label(rows[0].recipe);
    let names = rows[1..].iter().map(|row| label(row.recipe));
    Figure::new(format!("What formats cost, compared with {first}"))
        .subtitle(subtitle)
        .x(Axis::categories("", names))
        .panel(bars("loss above (nats/token)".into(), rows[1..].iter(), |row| row.above))
        .panel(bars(format!("divergence from {first} (nats)"), rows[1..].iter(), |row| {
            row.divergence
        }))
}

/// Block by block: how far the stream has gone from the first recipe's, the operators' own errors, and hot
/// channels. Of a recipe alone there are hot channels.
pub(super) fn layers(rows: &[Row<'_>], subtitle: &str) -> Figure {
    let first = label(rows[0].recipe);
    let mut panels = [
        Panel::new(Axis::log(format!("stream: distance from {first}, relative"))),
        Panel::new(Axis::log("operators' own errors: root mean square")),
        Panel::new(Axis::log("inputs: largest magnitude over the channels' median")),
    ];
    let (rows, left_out) = match rows {
        [_] => (rows, 2),
        _ => (&rows[1..], 0),
    };
    for row in rows {
        let in_block = |l: usize| move |layer: Option<u32>| layer == Some(l as u32);
        let hot = |l: usize| {
            let inputs = row.layers.linears().filter(|(site, _)| in_block(l)(site.layer));
            inputs.map(|(_, linear)| linear.input.over_median()).fold(f64::NAN, f64::max)
        };
        let own = |l: usize| error(row.layers, |site| in_block(l)(site.layer)).unwrap_or(f64::NAN);
        let name = label(row.recipe);
        let points = |values: Vec<f64>| {
            Series::new(&*name, values.into_iter().enumerate().map(|(l, value)| (l as f64, value)))
        };
        let drifts: Vec<f64> = row.layers.drifts().collect();
        let blocks = 0..drifts.len();
        let series = [
            drifts,
            blocks.clone().map(own).collect::<Vec<_>>(),
            blocks.map(hot).collect::<Vec<_>>(),
        ];
        let mut series = series.into_iter();
        panels = panels.map(|panel| panel.line(points(series.next().unwrap_or_default())));
    }
    let figure = Figure::new("What formats do inside of a model").subtitle(subtitle);
    panels.into_iter().skip(left_out).fold(figure.x(Axis::whole("block")), Figure::panel)
}

/// Parts by what they cost: a map of blocks and operators if parts are these, else bars.
pub(super) fn ranks(rows: &[Row<'_>], parts: &[Part], numbers: &str, subtitle: &str) -> Figure {
    let label = format!("divergence from {} (nats)", label(rows[0].recipe));
    let figure = Figure::new(format!("What one part costs in {numbers}"));
    let sites: Vec<(usize, Operator, &str)> = parts
        .iter()
        .filter_map(|part| part.site.map(|(layer, operator)| (layer, operator, &*part.name)))
        .collect();
    if sites.is_empty() {
        let shown = rows[1..].iter().take(MOST);
        let names = shown.clone().map(|row| row.part.unwrap_or_default());
        let which = match rows.len() - 1 {
            all if all > MOST => format!("{subtitle}; the {MOST} costliest of {all} parts"),
            _ => subtitle.to_owned(),
        };
        let axis = Axis::categories("", names);
        return figure.subtitle(which).x(axis).panel(bars(label, shown, |row| row.divergence));
    }
    let columns = sites.iter().map(|site| site.0).max().map_or(0, |last| last + 1);
    let mut operators: Vec<Operator> = sites.iter().map(|site| site.1).collect();
    operators.truncate(sites.len() / columns.max(1));
    let cost = |name: &str| {
        let row = rows.iter().find(|row| row.part == Some(name));
        row.map_or(f64::NAN, |row| row.divergence.mean)
    };
    // Operators run within a block, cells within an operator.
    let cells = (0..operators.len()).flat_map(|operator| {
        let count = operators.len();
        let sites = &sites;
        (0..columns).map(move |layer| cost(sites[layer * count + operator].2))
    });
    let heat = Heat::of_categories(Axis::log(label), columns, cells);
    let blocks = Axis::categories("block", (0..columns).map(|layer| layer.to_string()));
    let names = Axis::categories("operator", operators.iter().map(ToString::to_string));
    figure.subtitle(subtitle).x(blocks).panel(Panel::new(names).heat(heat))
}
