//! E9: outliers by depth.

use crate::finding::{Findings, Part, Table};
use crate::measure::{INPUTS, Results};
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::RunConfig;
use crate::series::{late, spread};
use crate::statistics::mean;
use crate::store::Trained;
use crate::test_result::{TestResult, concluded};
use exmy::error::Result;
use exmy_train::nn::site::{Operand, Site};
use exmy_train::train::probe::{Line, Value};

/// Kurtosis, and the largest magnitude: the probe and its statistic of inputs.
const MEASURES: [(&str, &str, &str); 2] =
    [("kurtosis", "kurtosis", ""), ("largest magnitude", "channels", "top")];

/// The mean over the inputs of a layer of a statistic in a line of a probe.
fn of_layer(line: &Line, layer: u32, statistic: &str) -> Option<f64> {
    let is_own = |site: Site| site.layer == Some(layer) && INPUTS.contains(&site.operator);
    let own = line.values.parts.iter().filter(|(key, _)| {
        key.site().is_some_and(is_own)
            && key.operand() == Some(Operand::Input)
            && key.statistic() == statistic
    });
    // Of a list of ranks the first.
    let first = |value: &Value| value.list().and_then(|list| list.first().copied());
    let values = own.filter_map(|(_, value)| value.number().or_else(|| first(value)));
    mean(&values.collect::<Vec<_>>())
}

/// The mean of the last third, layer by layer.
fn profile(
    (planned, run): &(RunConfig, Trained),
    (probe, statistic): (&str, &str),
) -> Result<Vec<f64>> {
    let layers = planned.config.model.decoder().map_or(0, |model| model.layers);
    let lines = run.probe(probe)?;
    let of = |layer: u32| {
        let point = |line: &Line| Some((line.step as f64, of_layer(line, layer, statistic)?));
        late(&lines.iter().filter_map(point).collect::<Vec<_>>(), 2.0 / 3.0)
    };
    Ok((0..layers as u32).map(of).collect())
}

/// The mean of the last quarter of the layers over that of the others; NaN where these have a mean of 0 or
/// below, as flat distributions have.
fn ratio(profile: &[f64]) -> f64 {
    let (rest, last) = profile.split_at(profile.len() - (profile.len() / 4).max(1));
    let rest = mean(rest).filter(|rest| *rest > 0.0);
    mean(last).unwrap_or(f64::NAN) / rest.unwrap_or(f64::NAN)
}

pub(crate) const ASKS: &str = "Reproduced where the 95 % intervals of all four ratios lie above 1; \
                               contradicted where one lies below.";

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let (mut claims, mut parts) = (Vec::new(), Vec::new());
    let mut table = Table::new(
        "last quarter of the layers over the others (mean and range over seeds)",
        &["measure", "model", "ratio"],
    );
    let mut figure = plot::Figure::new("Outliers by layer")
        .subtitle("bfloat16, last third of the run; lines: mean over seeds")
        .x(Axis::whole("layer"));
    for (label, probe, statistic) in MEASURES {
        let mut panel = Panel::new(Axis::linear(format!("{label} of inputs")).include(0.0));
        for kind in ["GLA", "SA"] {
            let runs = results.picked(&[kind])?;
            let profiles: Vec<Vec<f64>> =
                runs.iter().map(|run| profile(run, (probe, statistic))).collect::<Result<_>>()?;
            let ratios: Vec<f64> = profiles.iter().map(|one| ratio(one)).collect();
            let what = format!("{label}, {}: last layers over others", kind);
            claims.push(TestResult::above(&what, &ratios, 1.0, ""));
            table.row([label.to_owned(), kind.to_owned(), spread(&ratios)]);
            let at = |layer: usize| mean(&profiles.iter().map(|p| p[layer]).collect::<Vec<_>>());
            let line = (0..profiles[0].len()).map(|i| (i as f64, at(i).unwrap_or(f64::NAN)));
            panel = panel.line(Series::new(kind, line));
        }
        figure = figure.panel(panel);
    }
    parts.push(Part::Picture(figure));
    parts.push(Part::Table(table));
    Ok(concluded(&claims, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_quarter_over_the_rest() {
        assert_eq!(ratio(&[1.0, 1.0, 1.0, 3.0]), 3.0);
        assert_eq!(ratio(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 3.0, 3.0]), 2.0);
        assert_eq!(ratio(&[2.0, 1.0]), 0.5);
        assert!(ratio(&[-1.0, -2.0]).is_nan(), "twice as flat is no outlier");
    }
}
