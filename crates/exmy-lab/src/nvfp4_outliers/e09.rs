//! E9: outliers by depth.

use super::claim::{Claim, verdict};
use super::common::{BF16, INPUTS, Kind, main, seeds};
use super::show::{late, spread};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table};
use crate::plot::{self, Axis, Panel, Series};
use crate::statistics::mean;
use crate::store::{Runs, Trained};
use exmy::error::Result;
use exmy_train::train::probe::{Line, Value};

/// E9.
pub(super) struct Depth;

/// Kurtosis, and the largest magnitude: the probe and the end of its part.
const MEASURES: [(&str, &str, &str); 2] =
    [("kurtosis", "kurtosis", "input"), ("largest magnitude", "channels", "input.top")];

/// The mean over the inputs of a layer of what a line of a probe has under this end.
fn of_layer(line: &Line, layer: usize, end: &str) -> Option<f64> {
    let names = INPUTS.map(|operator| format!("layers.{layer}.{operator}.{end}"));
    let own = line.values.parts.iter().filter(|(name, _)| names.contains(name));
    // Of a list of ranks the first.
    let first = |value: &Value| value.list().and_then(|list| list.first().copied());
    let values = own.filter_map(|(_, value)| value.number().or_else(|| first(value)));
    mean(&values.collect::<Vec<_>>())
}

/// The mean of the last third, layer by layer.
fn profile(setting: &Setting, run: &Trained, (probe, end): (&str, &str)) -> Result<Vec<f64>> {
    let layers =
        main(setting, Kind::Gla, BF16, 1).config.model.decoder().map_or(0, |model| model.layers);
    let lines = run.probe(probe)?;
    let of = |layer: usize| {
        let point = |line: &Line| Some((line.step as f64, of_layer(line, layer, end)?));
        late(&lines.iter().filter_map(point).collect::<Vec<_>>(), 2.0 / 3.0)
    };
    Ok((0..layers).map(of).collect())
}

/// The mean of the last quarter of the layers over that of the others; NaN where these have a mean of 0 or below, as flat
/// distributions have.
fn ratio(profile: &[f64]) -> f64 {
    let (rest, last) = profile.split_at(profile.len() - (profile.len() / 4).max(1));
    let rest = mean(rest).filter(|rest| *rest > 0.0);
    mean(last).unwrap_or(f64::NAN) / rest.unwrap_or(f64::NAN)
}

impl Figure for Depth {
    fn id(&self) -> &'static str {
        "E9"
    }

    fn title(&self) -> &'static str {
        "outliers gather in the last layers"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, by notes of readers: outliers accumulate in the last four layers or so"
    }

    fn claim(&self) -> &'static str {
        "In the last quarter of the layers the kurtosis of the inputs of linear operators, and their largest \
         magnitude, exceed those of the other layers (last third of the run); reproduced if the 95 % intervals of \
         all four ratios lie above 1."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let seeds = seeds(setting, 3);
        let all = Kind::ALL.into_iter();
        all.flat_map(|kind| seeds.iter().map(move |&seed| main(setting, kind, BF16, seed)))
            .collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let (mut claims, mut parts) = (Vec::new(), Vec::new());
        let mut table = Table::new(
            "last quarter of the layers over the others (mean and range over seeds)",
            &["measure", "model", "ratio"],
        );
        let mut figure = plot::Figure::new("Outliers by layer")
            .subtitle("bfloat16, last third of the run; lines: mean over seeds")
            .x(Axis::whole("layer"));
        for (label, probe, end) in MEASURES {
            let mut panel = Panel::new(Axis::linear(format!("{label} of inputs")).include(0.0));
            for kind in Kind::ALL {
                let mut profiles = Vec::new();
                for seed in seeds(setting, 3) {
                    let run = runs.of(&main(setting, kind, BF16, seed))?;
                    profiles.push(profile(setting, &run, (probe, end))?);
                }
                let ratios: Vec<f64> = profiles.iter().map(|one| ratio(one)).collect();
                let what = format!("{label}, {}: last layers over others", kind.name());
                claims.push(Claim::above(&what, &ratios, 1.0, ""));
                table.row([label.to_owned(), kind.name().to_owned(), spread(&ratios)]);
                let at =
                    |layer: usize| mean(&profiles.iter().map(|p| p[layer]).collect::<Vec<_>>());
                let line = (0..profiles[0].len()).map(|i| (i as f64, at(i).unwrap_or(f64::NAN)));
                panel = panel.line(Series::new(kind.name(), line));
            }
            figure = figure.panel(panel);
        }
        parts.push(Part::Picture(figure));
        parts.push(Part::Table(table));
        Ok(Findings { verdict: verdict(&claims), parts })
    }
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
