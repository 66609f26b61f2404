//! E10: gate and up projections of SwiGLU align.

use super::claim::Claim;
use super::common::{BF16, Kind, changed, main, seeds, short};
use super::show::{concluded, draw, series, spread};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings, Table};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// E10.
pub(super) struct Alignment;

/// Weight decays; at small the runs of other figures, of 0.1.
fn decays(setting: &Setting) -> &'static [f64] {
    match setting.scale {
        Scale::Small => &[0.1],
        _ => &[0.0, 0.1, 0.3],
    }
}

fn arm(setting: &Setting, decay: f64, seed: u64) -> Arm {
    if setting.scale == Scale::Small {
        return main(setting, Kind::Sa, BF16, seed);
    }
    let lr = setting.scale.pick([4e-3, 4e-3, 1e-3]);
    let every = setting.scale.pick([2, 10, 200]);
    let changes = format!(
        "train.lr = {lr:?}\ntrain.lr_min = {:?}\ntrain.weight_decay = {decay:?}\nrecord.probes = [\"swiglu\"]\n\
         record.probe_every = {every}",
        lr / 10.0
    );
    changed(short(setting, Kind::Sa, BF16, seed), &changes)
}

type Points = Vec<(f64, f64)>;

fn claims(decay: f64, cosines: &[Points], null: &[f64]) -> Vec<Claim> {
    let end = |one: &Points| one.last().map_or(f64::NAN, |&(_, y)| y);
    let ends: Vec<f64> = cosines.iter().map(end).collect();
    let at = format!("mean |cos| (weight decay {decay})");
    vec![
        Claim::below(("that of random directions", null), (&at, &ends), ""),
        Claim::rising(&at, cosines),
    ]
}

impl Figure for Alignment {
    fn id(&self) -> &'static str {
        "E10"
    }

    fn title(&self) -> &'static str {
        "gate and up projections of SwiGLU align"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047 after arXiv 2409.12517: the product of aligned gate and up makes outliers in the input of down"
    }

    fn claim(&self) -> &'static str {
        "The mean |cos| between rows of the gate and the up projection of a hidden unit ends above that of random \
         directions and rises over training, at every weight decay (at scale small one of them, 0.1); reproduced if \
         the 95 % interval of the paired difference excludes 0, and by Mann and Kendall's test in every seed."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let seeds = seeds(setting, 3);
        let decays = decays(setting).iter();
        decays.flat_map(|&decay| seeds.iter().map(move |&seed| arm(setting, decay, seed))).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut all = Vec::new();
        let mut table = Table::new(
            "at the end of the run (mean and range over seeds; mean over layers)",
            &[
                "weight decay",
                "mean |cos|",
                "random directions",
                "99th percentile",
                "correlation of outputs",
                "kurtosis of what enters down",
                "its largest magnitude",
            ],
        );
        let mut panels = [
            Panel::new(Axis::linear("mean |cos| of gate and up")),
            Panel::new(Axis::linear("largest magnitude of what enters down")),
        ];
        for &decay in decays(setting) {
            let (mut cosines, mut tops, mut null) = (Vec::new(), Vec::new(), Vec::new());
            let mut others: [Vec<f64>; 4] = Default::default();
            for seed in seeds(setting, 3) {
                let run = runs.of(&arm(setting, decay, seed))?;
                let of = |end: &str| series(&run, "swiglu", |part| part.ends_with(end));
                let end = |points: Points| points.last().map_or(f64::NAN, |&(_, y)| y);
                cosines.push(of("cos_mean")?);
                tops.push(of("tail_top")?);
                null.push(end(of("null")?));
                let ends = ["cos_p99", "correlation", "tail_kurtosis", "tail_top"];
                for (all, name) in others.iter_mut().zip(ends) {
                    all.push(end(of(name)?));
                }
            }
            let end = |points: &Points| points.last().map_or(f64::NAN, |&(_, y)| y);
            let ends: Vec<f64> = cosines.iter().map(end).collect();
            let mut row = vec![decay.to_string(), spread(&ends), spread(&null)];
            row.extend(others.iter().map(|values| spread(values)));
            table.row(row);
            let name = format!("weight decay {decay}");
            let [a, b] = panels;
            panels = [draw(a, &name, &cosines), draw(b, &name, &tops)];
            if let Some(&null) = null.first() {
                panels[0] = panels[0].clone().rule(null, "random directions");
            }
            all.extend(claims(decay, &cosines, &null));
        }
        let figure = plot::Figure::new("Alignment in SwiGLU over training")
            .subtitle("softmax attention, bfloat16; bands: range of seeds")
            .x(Axis::linear("step"));
        Ok(concluded(&all, figure, panels, table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::verdict;
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let word = |slope: f64, null: f64| {
            let of =
                |seed: f64| (0..9).map(|i| (f64::from(i), seed + slope * f64::from(i))).collect();
            let series = [0.1, 0.101, 0.102].map(of);
            verdict(&claims(0.1, &series, &[null; 3])).word()
        };
        assert_eq!(word(0.01, 0.07), "reproduced");
        assert_eq!(word(-0.01, 0.07), "contradicted");
        assert_eq!(word(0.0, 0.07), "not seen at this scale");
    }
}
