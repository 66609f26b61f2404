//! E6: which component of gated linear attention has the largest outputs, and where its decay gates go.

use super::claim::Claim;
use super::common::{BF16, Kind, changed, main, seeds, short};
use super::memory;
use super::show::{concluded, draw, late, series, spread};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings, Table};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// E6.
pub(super) struct Gates;

const OPERATORS: [&str; 9] = [
    "q_proj",
    "k_proj",
    "v_proj",
    "g_proj",
    "gk_proj.1",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
];
const GATE: usize = 4;

/// The recipes compared; at small the runs are those of other figures, of the embedded language.
fn recipes(setting: &Setting) -> &'static [(&'static str, &'static str)] {
    match setting.scale {
        Scale::Small => &[("bf16", BF16), ("NVFP4", "nv-nvfp4")],
        _ => &[
            ("bf16", BF16),
            ("NVFP4, gate in bf16", "nv-nvfp4+protect=gk_proj"),
            ("NVFP4", "nv-nvfp4"),
        ],
    }
}

fn all_arms(setting: &Setting, recipe: &str) -> Result<Vec<Arm>> {
    if setting.scale == Scale::Small {
        let of = |seed| main(setting, Kind::Gla, recipe, seed);
        return Ok(seeds(setting, 3).into_iter().map(of).collect());
    }
    let setting = memory::setting(setting)?;
    let every = setting.scale.pick([5, 20, 200]);
    let probes = format!("record.probes = [\"channels\", \"gates\"]\nrecord.probe_every = {every}");
    let of = |seed| changed(short(&setting, Kind::Gla, recipe, seed), &probes);
    Ok(seeds(&setting, 3).into_iter().map(of).collect())
}

fn claims(tops: &[Vec<f64>], [max, min]: [&[Vec<(f64, f64)>]; 2]) -> Vec<Claim> {
    let others: Vec<f64> = (0..tops[GATE].len())
        .map(|i| {
            let each = tops.iter().enumerate().filter(|(at, _)| *at != GATE).map(|(_, t)| t[i]);
            each.fold(f64::NEG_INFINITY, f64::max)
        })
        .collect();
    vec![
        Claim::below(
            ("largest output of the others", &others),
            ("of the decay gate", &tops[GATE]),
            "",
        ),
        Claim::rising("largest z", max),
        Claim::rising("smallest z", min).not(),
    ]
}

impl Figure for Gates {
    fn id(&self) -> &'static str {
        "E6"
    }

    fn title(&self) -> &'static str {
        "the decay gate has the largest outputs"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, Figure 6b: largest magnitude by component; z from about -120 to 80"
    }

    fn claim(&self) -> &'static str {
        "The largest output of gk_proj (second factor, without its bias; mean over layers, last third) exceeds that of \
         every other component of a block, and the range of the gate's z widens at both ends; reproduced under \
         NVFP4 if the 95 % interval of the paired difference to the next excludes 0, and by Mann and Kendall's \
         test in every seed."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let of = |&(_, recipe): &(&str, &str)| all_arms(setting, recipe).unwrap_or_default();
        recipes(setting).iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut header = vec!["recipe"];
        header.extend(OPERATORS);
        let mut table = Table::new(
            "largest output of each component, mean over layers, last third (mean and range over seeds)",
            &header,
        );
        let mut panels =
            [Panel::new(Axis::linear("largest z")), Panel::new(Axis::linear("smallest z"))];
        let mut judged = Vec::new();
        for (name, recipe) in recipes(setting) {
            let mut tops = vec![Vec::new(); OPERATORS.len()];
            let (mut max, mut min) = (Vec::new(), Vec::new());
            for arm in all_arms(setting, recipe)? {
                let run = runs.of(&arm)?;
                for (at, operator) in OPERATORS.iter().enumerate() {
                    let part = format!(".{operator}.output.top");
                    let found = series(&run, "channels", |name| name.ends_with(&part))?;
                    tops[at].push(late(&found, 2.0 / 3.0));
                }
                max.push(series(&run, "gates", |name| name.ends_with(".max"))?);
                min.push(series(&run, "gates", |name| name.ends_with(".min"))?);
            }
            let cells = tops.iter().map(|values| spread(values));
            table.row(std::iter::once((*name).to_owned()).chain(cells));
            let [a, b] = panels;
            panels = [draw(a, name, &max), draw(b, name, &min)];
            if *recipe == "nv-nvfp4" {
                judged = claims(&tops, [&max, &min]);
            }
        }
        let text = match setting.scale {
            Scale::Small => "embedded language",
            _ => "memory task, in which gates have to close at every reset",
        };
        let figure = plot::Figure::new("Range of the decay gate's z")
            .subtitle(format!("GLA, {text}; mean over layers; bands: range of seeds"))
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
        let rise = |sign: f64| vec![(0..9).map(|i| (f64::from(i), sign * f64::from(i))).collect()];
        let word = |gate: f64, sign: f64| {
            let mut tops = vec![vec![2.0, 2.1, 1.9]; OPERATORS.len()];
            tops[GATE] = vec![gate, gate + 0.1, gate];
            verdict(&claims(&tops, [&rise(sign), &rise(-sign)])).word()
        };
        assert_eq!(word(9.0, 1.0), "reproduced");
        assert_eq!(word(1.0, 1.0), "contradicted");
        assert_eq!(word(9.0, -1.0), "contradicted");
        assert_eq!(word(2.0, 1.0), "not seen at this scale");
    }
}
