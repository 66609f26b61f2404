//! App G and Nb-1: scaling laws of the stable strategies, and what losses lost after their lowest.

use super::common::{Lm, later, lm_fate};
use super::draw::{calm, number};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel, Series};
use crate::scaling::{Fit, Form, Point, fit};
use crate::store::Runs;
use exmy::error::Result;

/// App G.
pub(super) struct Laws;

/// Nb-1, from the runs of App G.
pub(super) struct Damage;

/// The first is the base, the next two the hybrids, the last full MX.
const RECIPES: [(&str, &str); 4] = [
    ("bf16", "mxpaper-bf16"),
    ("E4M3 weights, bf16 rest", "mxpaper-e4m3+bf16-act-all"),
    ("E4M3 forward only", "mxpaper-e4m3+fwd-only"),
    ("E2M3 and E3M2", "mxpaper-e2m3+a=e3m2+ln-affine=mx"),
];

/// The share of the variance that a law of use explains.
const EXPLAINED: f64 = 0.9;

fn grid(setting: &Setting) -> Vec<Lm> {
    let sizes = setting.scale.pick([
        vec![(1, 64), (2, 64), (2, 128)],
        Vec::new(),
        vec![(4, 256), (6, 384), (8, 512), (11, 704)],
    ]);
    let steps = setting.scale.pick([vec![4, 8], Vec::new(), vec![1627, 3254, 6509, 13_018]]);
    let mut all = Vec::new();
    for &(layers, width) in &sizes {
        all.extend(steps.iter().map(|&steps| Lm { layers, width, steps, ..Lm::of(setting) }));
    }
    all
}

fn arm(setting: &Setting, lm: &Lm, recipe: usize) -> Arm {
    Lm { recipe: RECIPES[recipe].1.into(), ..lm.clone() }.arm(setting)
}

fn arms(setting: &Setting) -> Vec<Arm> {
    let of =
        |lm: &Lm| (0..RECIPES.len()).map(|recipe| arm(setting, lm, recipe)).collect::<Vec<_>>();
    grid(setting).iter().flat_map(of).collect()
}

/// What came of fitting a law to the runs of a recipe.
#[derive(Clone, Copy, Debug)]
struct Fitted {
    /// Absent where the runs with a finite loss are too few for one.
    fit: Option<Fit>,
    /// Runs that ended without a finite loss.
    diverged: usize,
    /// All runs.
    runs: usize,
}

impl Fitted {
    /// Whether the runs follow a law, if they tell. Too few runs are no sign of either, unless most diverged.
    fn follows(&self) -> Option<bool> {
        match self.fit {
            Some(fit) => Some(fit.law.is_valid() && fit.r2 >= EXPLAINED),
            None => (2 * self.diverged > self.runs).then_some(false),
        }
    }

    fn words(&self) -> String {
        match self.fit {
            Some(fit) => format!(
                "alpha {:.3}, beta {:.3}, R2 {:.3}, Huber {:.1e}",
                fit.law.alpha, fit.law.beta, fit.r2, fit.huber
            ),
            None => format!("no fit, {} of {} runs diverged", self.diverged, self.runs),
        }
    }
}

/// `fits` in the order of the recipes.
fn judge(fits: &[Fitted]) -> Verdict {
    let words = |(fit, (name, _)): (&Fitted, &(&str, &str))| format!("{name}: {}", fit.words());
    let text = fits.iter().zip(&RECIPES).map(words).collect::<Vec<_>>().join("; ");
    let [base, hybrids @ .., full] = fits else { return Verdict::NotSeen(text) };
    let all_follow = hybrids.iter().all(|fit| fit.follows() == Some(true));
    let one_does_not = hybrids.iter().any(|fit| fit.follows() == Some(false));
    // Without a law of the base nothing can be said of the others.
    match (base.follows(), full.follows()) {
        (Some(true), Some(false)) if all_follow => Verdict::Reproduced(text),
        (Some(true), Some(true)) if one_does_not => Verdict::Contradicted(text),
        _ => Verdict::NotSeen(text),
    }
}

impl Figure for Laws {
    fn id(&self) -> &'static str {
        "AppG"
    }

    fn title(&self) -> &'static str {
        "scaling laws of the stable strategies"
    }

    fn source(&self) -> &'static str {
        "Appendix G: Chinchilla laws of E4M3 weights with bfloat16 activations (alpha 0.524, beta 0.553, E 0.535) \
         and of E4M3 forward only; unstable pairs give beta above 1"
    }

    fn claim(&self) -> &'static str {
        "The hybrids follow scaling laws as full precision does, unstable MX does not. Counts as reproduced where \
         the laws of bf16 and of both hybrids are valid (exponents positive, beta at most 1) and explain 90 % \
         of the variance, and that of full MX is not; contradicted where a hybrid's is not and full MX's is. Where there is no fit, there is no law \
         if most runs diverged; otherwise it is not told."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut table = Table::new(
            "laws L = A / N^alpha + B / D^beta + E, in nats, of the loss over the last tenth of the steps",
            &[
                "numbers",
                "A",
                "alpha",
                "B",
                "beta",
                "E",
                "a of N* ~ C^a",
                "R2",
                "Huber",
                "runs left out",
            ],
        );
        let mut predicted = Panel::new(Axis::linear("predicted loss, nats per byte"));
        let (mut fits, mut parts) = (Vec::new(), Vec::new());
        for (recipe, (name, _)) in RECIPES.iter().enumerate() {
            let mut points = Vec::new();
            let mut panel = Panel::new(Axis::linear("training loss, nats per byte"));
            let mut left_out = 0;
            for lm in grid(setting) {
                let fate = lm_fate(runs, &arm(setting, &lm, recipe))?;
                let (n, d) = lm.size(setting);
                if fate.trained.tail_loss().is_finite() {
                    points.push(Point { n, d, loss: fate.tail });
                } else {
                    left_out += 1;
                }
                if Some(&lm.steps) == grid(setting).iter().map(|lm| &lm.steps).max() {
                    let curve = calm(&fate.losses).into_iter();
                    let tokens = d / lm.steps as f64;
                    let flops = curve.map(|(step, loss)| (6.0 * n * tokens * step / 1e12, loss));
                    panel = panel.line(Series::new(format!("{n:.0} parameters"), flops));
                }
            }
            let found = fit(Form::Chinchilla, &points).ok();
            if let Some(Fit { law, huber, r2 }) = found {
                table.row([
                    (*name).into(),
                    number(law.a),
                    format!("{:.3}", law.alpha),
                    number(law.b),
                    format!("{:.3}", law.beta),
                    number(law.e),
                    format!("{:.3}", law.exponent()),
                    format!("{r2:.4}"),
                    format!("{huber:.1e}"),
                    left_out.to_string(),
                ]);
                let pairs = points.iter().map(|point| (point.loss, law.loss(point.n, point.d)));
                predicted = predicted.points(Series::new(*name, pairs));
            }
            let runs = points.len() + left_out;
            fits.push(Fitted { fit: found, diverged: left_out, runs });
            parts.push(Part::Picture(
                plot::Figure::new(format!("Loss against compute: {name}"))
                    .subtitle("the longest run of each size; moving average over 2 % of the steps")
                    .x(Axis::log("compute 6 N D, TFLOP"))
                    .panel(panel),
            ));
        }
        parts.push(Part::Picture(
            plot::Figure::new("What laws predict and what was measured")
                .subtitle("one point a run; those that ended without a finite loss are left out")
                .x(Axis::linear("measured loss, nats per byte"))
                .panel(predicted),
        ));
        parts.push(Part::Table(table));
        Ok(Findings { verdict: judge(&fits), parts })
    }
}

/// `lost[recipe]` is what each run of a recipe lost after its lowest loss, nats.
fn judge_damage(lost: &[Vec<f64>]) -> Verdict {
    let most = |values: &Vec<f64>| values.iter().copied().fold(0.0, f64::max);
    let list: Vec<f64> = lost.iter().map(most).collect();
    let words = list.iter().zip(&RECIPES).map(|(most, (name, _))| format!("{name} {most:.3}"));
    let text = format!(
        "most that a run lost after its lowest smoothed loss, nats: {}",
        words.collect::<Vec<_>>().join(", ")
    );
    // What a smoothed curve wanders by anyway is well below a tenth of a nat.
    let large = |most: &f64| *most > 0.1;
    let [stable @ .., full] = &*list else { return Verdict::NotSeen(text) };
    match (stable.iter().any(large), large(full)) {
        (false, true) => Verdict::Reproduced(text),
        (true, false) => Verdict::Contradicted(text),
        _ => Verdict::NotSeen(text),
    }
}

impl Figure for Damage {
    fn id(&self) -> &'static str {
        "Nb-1"
    }

    fn title(&self) -> &'static str {
        "what runs lose after their lowest loss"
    }

    fn source(&self) -> &'static str {
        "the published notebook's heat map of min(loss) - final loss over parameters and tokens: 0 for small \
         budgets, -0.5 to -1.1 from 1e10 tokens on in E5M2 weights and E4M3 activations"
    }

    fn claim(&self) -> &'static str {
        "Long runs in unstable MX pairs end above the lowest loss they had; stable ones do not. Counts as \
         reproduced where a run in full MX loses more than 0.1 nats and none of the others does."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut table = Table::new(
            "lowest less last smoothed loss, nats per byte: 0 where a run ends at its lowest",
            &["parameters", "tokens", RECIPES[0].0, RECIPES[1].0, RECIPES[2].0, RECIPES[3].0],
        );
        let mut lost: Vec<Vec<f64>> = vec![Vec::new(); RECIPES.len()];
        for lm in grid(setting) {
            let (n, d) = lm.size(setting);
            let mut row = vec![format!("{n}"), format!("{d}")];
            for (recipe, lost) in lost.iter_mut().enumerate() {
                let fate = lm_fate(runs, &arm(setting, &lm, recipe))?;
                let curve = calm(&fate.losses);
                let lowest = curve.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
                let last = curve.last().map_or(f64::NAN, |point| point.1);
                let last = if last.is_finite() { last } else { fate.tail };
                row.push(format!("{:.3}", lowest - last));
                lost.push(last - lowest);
            }
            table.row(row);
        }
        Ok(Findings { verdict: judge_damage(&lost), parts: vec![Part::Table(table)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::Law;

    #[test]
    fn verdicts_need_laws_of_base_and_hybrids() {
        let of = |beta: f64| {
            let law = Law { form: Form::Chinchilla, a: 1.0, b: 1.0, e: 1.0, alpha: 0.5, beta };
            let fit = Some(Fit { law, huber: 1e-6, r2: 0.99 });
            Fitted { fit, diverged: 0, runs: 16 }
        };
        let (good, bad) = (of(0.5), of(1.7));
        let none = |diverged| Fitted { fit: None, diverged, runs: 16 };
        let word = |fits: [Fitted; 4]| judge(&fits).word();
        assert_eq!(word([good, good, good, bad]), "reproduced");
        assert_eq!(word([good, good, good, none(11)]), "reproduced", "divergence");
        let not = "not seen at this scale";
        assert_eq!(word([good, good, good, none(0)]), not, "no fit for another reason");
        assert_eq!(word([good, good, good, none(8)]), not, "half of the runs");
        assert_eq!(word([good, none(0), good, good]), not, "a hybrid that is not told");
        assert_eq!(word([good, none(0), good, bad]), not);
        assert_eq!(word([good, none(11), good, good]), "contradicted");
        assert_eq!(word([none(0), good, good, bad]), not);
        let verdict = judge(&[good, good, good, none(11)]);
        assert!(verdict.reason().ends_with("E2M3 and E3M2: no fit, 11 of 16 runs diverged"));
        assert_eq!(word([good, good, good, good]), "not seen at this scale");
        assert_eq!(word([good, bad, good, good]), "contradicted");
        assert_eq!(word([bad, good, good, bad]), "not seen at this scale");
    }

    #[test]
    fn damage_is_that_of_full_mx_alone() {
        let word = |stable: f64, full: f64| {
            judge_damage(&[vec![0.01], vec![stable, 0.0], vec![0.0], vec![0.02, full]]).word()
        };
        assert_eq!(word(0.02, 0.5), "reproduced");
        assert_eq!(word(0.02, 0.03), "not seen at this scale");
        assert_eq!(word(0.3, 0.5), "not seen at this scale");
        assert_eq!(word(0.3, 0.01), "contradicted");
    }
}
