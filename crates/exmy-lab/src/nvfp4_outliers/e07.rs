//! E7: what softmax attention does to its logits.

use super::claim::Claim;
use super::common::{BF16, Kind, changed, main, seeds, short};
use super::memory;
use super::show::{concluded, draw, late, series, spread};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings, Table};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// E7.
pub(super) struct Softmax;

/// What is looked at, as the probe names it, and what it is called; the first three in the order of the claims.
pub(super) const PARTS: [(&str, &str); 4] = [
    ("entropy", "entropy of the softmax, nats"),
    ("logit_kurtosis", "excess kurtosis of the logits"),
    ("logit_max", "mean largest logit"),
    ("sink", "share of the first key"),
];

/// With and without norms of queries and keys; at small without, from runs of other figures.
fn kinds(setting: &Setting) -> &'static [(&'static str, &'static str)] {
    match setting.scale {
        Scale::Small => &[("no norm", "none")],
        _ => &[("no norm", "none"), ("norm of queries and keys", "head")],
    }
}

fn all_arms(setting: &Setting, norm: &str) -> Result<Vec<Arm>> {
    if setting.scale == Scale::Small {
        let of = |seed| main(setting, Kind::Sa, BF16, seed);
        return Ok(seeds(setting, 3).into_iter().map(of).collect());
    }
    let setting = memory::setting(setting)?;
    let (steps, every) = (memory::steps(&setting), setting.scale.pick([5, 20, 200]));
    let changes = format!(
        "model.qk_norm = \"{norm}\"\ntrain.steps = {steps}\nrecord.probes = [\"attention\"]\n\
         record.probe_every = {every}"
    );
    let of = |seed| changed(short(&setting, Kind::Sa, BF16, seed), &changes);
    Ok(seeds(&setting, 3).into_iter().map(of).collect())
}

fn claims(found: [&[Vec<(f64, f64)>]; 3]) -> Vec<Claim> {
    vec![
        Claim::rising("entropy", found[0]).not(),
        Claim::rising("kurtosis of logits", found[1]),
        Claim::rising("largest logit", found[2]),
    ]
}

impl Figure for Softmax {
    fn id(&self) -> &'static str {
        "E7"
    }

    fn title(&self) -> &'static str {
        "softmax sharpens: entropy falls, logits grow tails"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, Figure 7: the mean largest logit grows from about 4 to 10"
    }

    fn claim(&self) -> &'static str {
        "Without norms of queries and keys the entropy of the softmax falls over training while the kurtosis of its \
         logits and their mean maximum rise; reproduced if Mann and Kendall's test says so in every seed."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let of = |&(_, norm): &(&str, &str)| all_arms(setting, norm).unwrap_or_default();
        kinds(setting).iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut header = vec!["model"];
        header.extend(PARTS.map(|(_, label)| label));
        let mut table = Table::new(
            "last third of the run, mean over layers (mean and range over seeds)",
            &header,
        );
        let mut panels = PARTS.map(|(_, label)| Panel::new(Axis::linear(label)));
        let mut judged = Vec::new();
        for (name, norm) in kinds(setting) {
            let mut found: [Vec<Vec<(f64, f64)>>; 4] = Default::default();
            for arm in all_arms(setting, norm)? {
                let run = runs.of(&arm)?;
                for (part, all) in PARTS.iter().zip(&mut found) {
                    let suffix = format!(".{}", part.0);
                    all.push(series(&run, "attention", |name| name.ends_with(&suffix))?);
                }
            }
            let ends = |all: &Vec<Vec<(f64, f64)>>| {
                spread(&all.iter().map(|one| late(one, 2.0 / 3.0)).collect::<Vec<_>>())
            };
            table.row(std::iter::once((*name).to_owned()).chain(found.iter().map(ends)));
            for (panel, all) in panels.iter_mut().zip(&found) {
                *panel = draw(panel.clone(), name, all);
            }
            if *norm == "none" {
                judged = claims([&found[0], &found[1], &found[2]]);
            }
        }
        let text = match setting.scale {
            Scale::Small => "embedded language",
            _ => "memory task",
        };
        let figure = plot::Figure::new("Softmax attention over training")
            .subtitle(format!("{text}, bfloat16, mean over layers; bands: range of seeds"))
            .x(Axis::linear("step"));
        Ok(concluded(&judged, figure, panels, table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::verdict;
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let line =
            |slope: f64| vec![(0..9).map(|i| (f64::from(i), slope * f64::from(i))).collect()];
        let flat: Vec<Vec<(f64, f64)>> =
            vec![(0..9).map(|i| (f64::from(i), f64::from(i % 2))).collect()];
        let word =
            |a: &[Vec<(f64, f64)>], b: &[Vec<(f64, f64)>]| verdict(&claims([a, b, b])).word();
        assert_eq!(word(&line(-1.0), &line(1.0)), "reproduced");
        assert_eq!(word(&line(1.0), &line(1.0)), "contradicted");
        assert_eq!(word(&line(-1.0), &flat), "not seen at this scale");
    }
}
