//! BR-5 and BR-13: recipes beside each other in the same model: FP8 with and without the head, and what may help
//! where bits are few.

use super::common::{Spec, all, seeds, tails, with_seeds};
use super::rates::with_interval;
use crate::error::Result;
use crate::plot::{self, Axis, Panel};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, paired_interval};
use crate::study::store::Runs;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    MsAmp,
    Mitigations,
}

/// Some recipes, the first of which the others are compared with.
pub(super) struct Arms {
    pub(super) kind: Kind,
}

impl Arms {
    /// Names and recipes: the one without loss of precision first, then the one that suffers.
    fn recipes(&self, steps: u64) -> Vec<(&'static str, String)> {
        let of = |list: &[(&'static str, &str)]| {
            list.iter().map(|&(name, recipe)| (name, recipe.to_owned())).collect::<Vec<_>>()
        };
        match self.kind {
            Kind::MsAmp => of(&[
                ("BF16", "bf16"),
                ("FP8", "msamp-o1"),
                ("FP8, head in BF16", "msamp-o1+lm_head=bf16"),
            ]),
            Kind::Mitigations => {
                let mut list = of(&[
                    ("E8M7", "bitred-e8m7"),
                    ("E8M3", "bitred-e8m3"),
                    ("head in BF16", "bitred-e8m3+lm_head=bf16"),
                    ("first and last block in BF16", "bitred-e8m3+first1=bf16+last1=bf16"),
                    ("to nearest", "bitred-e8m3+round=rne"),
                    ("stochastic", "bitred-e8m3+round=sr8"),
                ]);
                let third = steps / 3;
                list.push(("BF16 for the first third", format!("bf16+from{third}=bf16>e8m3@rtz")));
                list.push((
                    "BF16 for the last third",
                    format!("bitred-e8m3+from{}=bf16", 2 * third),
                ));
                list
            }
        }
    }

    fn steps(setting: &Setting) -> u64 {
        setting.scale.pick([20, 600, 1200, 120_000])
    }

    fn presets(&self, setting: &Setting) -> &'static [&'static str] {
        match (self.kind, setting.scale) {
            (Kind::MsAmp, Scale::Full) => &["gpt2-124m", "llama-120m"],
            (Kind::MsAmp, _) => &["gpt-nano", "nano"],
            (Kind::Mitigations, Scale::Full) => &["llama-120m"],
            (Kind::Mitigations, Scale::Smoke) => &["nano"],
            (Kind::Mitigations, _) => &["deep"],
        }
    }

    fn arms_of(&self, setting: &Setting, preset: &'static str, recipe: &str) -> Vec<Arm> {
        let lr = match (self.kind, setting.scale) {
            (_, Scale::Full) => 4e-4,
            (Kind::MsAmp, _) => 3e-3,
            (Kind::Mitigations, _) => 1e-2,
        };
        seeds(setting, [1, 5, 5, 3])
            .map(|seed| {
                Spec { lr, ..Spec::new(preset, recipe, seed, Self::steps(setting)) }.arm(setting)
            })
            .collect()
    }
}

/// An interval in words.
fn words(gap: Option<Interval>) -> String {
    gap.map_or_else(
        || "too few seeds".into(),
        |gap| format!("{:+.4} ({:+.4} to {:+.4})", gap.estimate, gap.low, gap.high),
    )
}

/// A model: what its suffering recipe loses, and what each remedy saves of it.
type Cell<'a> = (String, Option<Interval>, Vec<(&'a str, Option<Interval>)>);

/// From the gap of the recipe that suffers to the best, and from it to each remedy.
fn judge(kind: Kind, cells: &[Cell<'_>]) -> Verdict {
    let list: Vec<String> = cells
        .iter()
        .map(|(preset, damage, remedies)| {
            let each: Vec<String> =
                remedies.iter().map(|(name, gain)| format!("{name} {}", words(*gain))).collect();
            format!("{preset}: damage {}, saved by {}", words(*damage), each.join(", "))
        })
        .collect();
    let surer = match (kind, cells.first()) {
        (Kind::Mitigations, Some((.., remedies))) => {
            format!(", of remedies {:.1} %", 100.0 - 5.0 / remedies.len() as f64)
        }
        _ => String::new(),
    };
    let text = format!("nats, 95 % intervals of paired differences{surer}; {}", list.join("; "));
    let above = |gap: &Option<Interval>| gap.is_some_and(|gap| gap.low > 0.0);
    let below = |gap: &Option<Interval>| gap.is_some_and(|gap| gap.high < 0.0);
    let damaged = cells.iter().all(|(_, damage, _)| above(damage));
    let holds = match kind {
        Kind::MsAmp => damaged,
        Kind::Mitigations => {
            damaged
                && cells.iter().any(|(.., remedies)| remedies.iter().any(|(_, gain)| above(gain)))
        }
    };
    Verdict::of(holds, cells.iter().all(|(_, damage, _)| below(damage)), text)
}

impl Figure for Arms {
    fn id(&self) -> &'static str {
        match self.kind {
            Kind::MsAmp => "BR-5",
            Kind::Mitigations => "BR-13",
        }
    }

    fn title(&self) -> &'static str {
        match self.kind {
            Kind::MsAmp => "FP8 as MS-AMP does it, with and without the head",
            Kind::Mitigations => "what helps where bits are few",
        }
    }

    fn source(&self) -> &'static str {
        match self.kind {
            Kind::MsAmp => "v1 Fig. 5, v2 Fig. 6: MS-AMP O1 on GPT-2 124M and Llama 120M",
            Kind::Mitigations => "the Discussion's suggestions, which the paper did not try",
        }
    }

    fn claim(&self) -> &'static str {
        match self.kind {
            Kind::MsAmp => {
                "FP8 ends above BF16, and leaving the head out narrows the gap without closing it. Reproduced where FP8's loss is above \
                 BF16's (interval of the paired difference above 0) in both models."
            }
            Kind::Mitigations => {
                "Higher precision at the beginning or the end of training, in the head or in the outer blocks, or another \
                 rounding, saves part of what E8M3 costs. Reproduced where E8M3 costs something and one of them saves \
                 something (intervals of paired differences above 0; of the remedies at 95 % for all of them together, after Bonferroni)."
            }
        }
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let recipes = self.recipes(Self::steps(setting));
        let mut arms = Vec::new();
        for &preset in self.presets(setting) {
            arms.extend(
                recipes.iter().flat_map(|(_, recipe)| self.arms_of(setting, preset, recipe)),
            );
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "mean training loss of the last tenth, nats/token, with 95 % intervals over seeds; the difference from the first is paired",
            &["model", "recipe", "seeds", "loss", "above the first"],
        );
        let (mut parts, mut cells) = (Vec::new(), Vec::new());
        for &preset in self.presets(setting) {
            let mut panel = Panel::new(Axis::linear("smoothed training loss, nats/token"));
            let mut losses: Vec<(&str, Vec<f64>)> = Vec::new();
            for (name, recipe) in self.recipes(Self::steps(setting)) {
                let trained = all(runs, &self.arms_of(setting, preset, &recipe))?;
                panel = with_seeds(panel, name, &trained);
                let tails = tails(&trained);
                let gap = losses.first().map(|(_, first)| paired_interval(&tails, first, 0.95));
                table.row([
                    preset.into(),
                    name.into(),
                    tails.len().to_string(),
                    with_interval(&tails),
                    gap.map_or_else(|| "-".into(), words),
                ]);
                losses.push((name, tails));
            }
            let (base, suffers) = (&losses[0].1, &losses[1].1);
            let damage = paired_interval(suffers, base, 0.95);
            // One of several is enough, so each must be surer.
            let remedies = &losses[2..];
            let confidence = match self.kind {
                Kind::MsAmp => 0.95,
                Kind::Mitigations => 1.0 - 0.05 / remedies.len() as f64,
            };
            let saved =
                remedies.iter().map(|(name, l)| (*name, paired_interval(suffers, l, confidence)));
            cells.push((preset.to_owned(), damage, saved.collect()));
            let title = format!("{} in {preset}, mean and range over seeds", self.title());
            parts
                .push(Part::Picture(plot::Figure::new(title).x(Axis::linear("step")).panel(panel)));
        }
        parts.insert(0, Part::Table(table));
        Ok(Findings { verdict: judge(self.kind, &cells), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let gap = |x: f64| Some(Interval { estimate: x, low: x - 0.1, high: x + 0.1 });
        let word = |kind, damage, saved| {
            judge(kind, &[("m".into(), gap(damage), vec![("a", gap(saved))])]).word()
        };
        assert_eq!(word(Kind::MsAmp, 0.5, 0.0), "reproduced");
        assert_eq!(word(Kind::Mitigations, 0.5, 0.0), "not seen at this scale");
        assert_eq!(word(Kind::Mitigations, 0.5, 0.4), "reproduced");
        assert_eq!(word(Kind::MsAmp, -0.5, 0.0), "contradicted");
        assert_eq!(word(Kind::MsAmp, 0.05, 0.0), "not seen at this scale");
    }
}
