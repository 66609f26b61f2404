//! E9: outliers by depth.

use crate::finding::{Part, Table};
use crate::measure::{Computed, INPUTS, Metric, Results};
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::RunConfig;
use crate::series::{late, spread};
use crate::statistics::mean;
use crate::store::Trained;
use exmy::error::Result;
use exmy_train::nn::site::{Operand, Site};
use exmy_train::train::probe::{Line, Value};

/// What is measured of inputs: the probe and its statistic.
#[derive(Clone, Copy)]
struct Measure {
    name: &'static str,
    probe: &'static str,
    statistic: &'static str,
}

const MEASURES: [Measure; 2] = [
    Measure { name: "kurtosis", probe: "kurtosis", statistic: "" },
    Measure { name: "largest magnitude", probe: "channels", statistic: "top" },
];

/// What the last quarter of the layers has over what the others have.
pub(super) const KURTOSIS: Metric = Metric::Computed(Computed {
    what: "kurtosis of the last layers over that of the others",
    of: |run, planned| Ok(ratio(&profile(run, planned, MEASURES[0])?)),
});
pub(super) const LARGEST: Metric = Metric::Computed(Computed {
    what: "largest magnitude of the last layers over that of the others",
    of: |run, planned| Ok(ratio(&profile(run, planned, MEASURES[1])?)),
});

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
fn profile(run: &Trained, planned: &RunConfig, measure: Measure) -> Result<Vec<f64>> {
    let Measure { probe, statistic, .. } = measure;
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
pub fn ratio(profile: &[f64]) -> f64 {
    let (rest, last) = profile.split_at(profile.len() - (profile.len() / 4).max(1));
    let rest = mean(rest).filter(|rest| *rest > 0.0);
    mean(last).unwrap_or(f64::NAN) / rest.unwrap_or(f64::NAN)
}

pub(super) fn draw(results: &Results<'_>) -> Result<Vec<Part>> {
    let mut table = Table::new(
        "last quarter of the layers over the others (mean and range over seeds)",
        &["measure", "model", "ratio"],
    );
    let mut figure = plot::Figure::new("Outliers by layer")
        .subtitle("bfloat16, last third of the run; lines: mean over seeds")
        .x(Axis::whole("layer"));
    for measure in MEASURES {
        let axis = Axis::linear(format!("{} of inputs", measure.name));
        let mut panel = Panel::new(axis.include(0.0));
        for kind in ["GLA", "SA"] {
            let runs = results.picked(&[kind])?;
            let profiles = runs.iter().map(|(planned, run)| profile(run, planned, measure));
            let profiles: Vec<Vec<f64>> = profiles.collect::<Result<_>>()?;
            let ratios = profiles.iter().map(|one| ratio(one)).collect::<Vec<_>>();
            table.row([measure.name.to_owned(), kind.to_owned(), spread(&ratios)]);
            let at = |layer: usize| mean(&profiles.iter().map(|p| p[layer]).collect::<Vec<_>>());
            let layers = profiles.first().map_or(0, Vec::len);
            let line = (0..layers).map(|i| (i as f64, at(i).unwrap_or(f64::NAN)));
            panel = panel.line(Series::new(kind, line));
        }
        figure = figure.panel(panel);
    }
    Ok(vec![Part::Picture(figure), Part::Table(table)])
}
