//! F4: what a change of precision does to a run that is about to diverge.

use super::common::{F32, Fate, Proxy, STILL, proxy_fate, text};
use super::draw::{calm, number};
use super::judge;
use super::unstable;
use crate::error::Result;
use crate::plot::{self, Axis, Panel, Series};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::sign_test;
use crate::study::store::Runs;

/// F4.
pub(super) struct Interventions;

/// Steps by which a divergence must move to count as delayed or hastened.
const MOVED: u64 = 5;

/// The nine of the study, and `fp32_still`: f32 whose betas stay 0, as they do in MX. Name, and what the recipe
/// becomes.
fn interventions(setting: &Setting) -> [(&'static str, String); 10] {
    let format = unstable::format(setting);
    let mx = text(format);
    let with = |word: &str| format!("{mx}+{word}");
    // Norms out of it: neither their gains nor their steps are rounded.
    let without_norms = format!("mxpaper-{format}+gelu=fp32+no-ln-q");
    [
        ("control", mx.clone()),
        ("fp32", F32.into()),
        ("fp32_still", STILL.into()),
        ("bump", with("bump")),
        ("no_ln_q", without_norms),
        ("bf16_act", with("bf16-act")),
        ("bf16_act_all", with("bf16-act-all")),
        ("fwd_only", with("fwd-only")),
        ("no_gelu_q", with("no-gelu-q")),
        ("bf16_weight", with("bf16-weight")),
    ]
}

/// Those of which the study says that they avert or delay.
const CLAIMED: [&str; 7] =
    ["fp32", "fp32_still", "bump", "no_ln_q", "bf16_act", "bf16_act_all", "fwd_only"];

/// What an intervention did to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Averted,
    Delayed(u64),
    Hastened(u64),
    None,
    /// Only with it does the run diverge.
    Caused,
    /// The run had diverged before.
    TooLate,
}

impl Effect {
    fn of(control: Option<u64>, branch: Option<u64>, at: u64) -> Self {
        match (control, branch) {
            (None, Some(_)) => Self::Caused,
            (Some(end), _) if end <= at => Self::TooLate,
            (Some(_), None) => Self::Averted,
            (Some(end), Some(now)) if now > end + MOVED => Self::Delayed(now - end),
            (Some(end), Some(now)) if now + MOVED < end => Self::Hastened(end - now),
            _ => Self::None,
        }
    }

    fn word(self) -> String {
        match self {
            Self::Averted => "averted".into(),
            Self::Delayed(by) => format!("delayed by {by}"),
            Self::Hastened(by) => format!("hastened by {by}"),
            Self::None => "no effect".into(),
            Self::Caused => "caused".into(),
            Self::TooLate => "-".into(),
        }
    }

    /// 1 where it helps, -1 where it harms.
    fn sign(self) -> Option<f64> {
        match self {
            Self::Averted | Self::Delayed(_) => Some(1.0),
            Self::Hastened(_) | Self::Caused => Some(-1.0),
            Self::None => Some(0.0),
            Self::TooLate => None,
        }
    }
}

fn branch(setting: &Setting, seed: u64, at: u64, recipe: &str) -> Arm {
    unstable::control(setting, seed).branch(at, &format!("recipe = {recipe:?}"))
}

/// What MX is compared with from the beginning.
const BASES: [&str; 2] = [F32, STILL];

fn plain(setting: &Setting, seed: u64, recipe: &str) -> Arm {
    Proxy { recipe: recipe.into(), ..unstable::proxy(setting, seed) }.arm(setting)
}

/// The run whose divergence the detector must see: E2M1 at ten times the rate.
fn positive(setting: &Setting) -> Arm {
    let proxy = unstable::proxy(setting, 1);
    let lr = 10.0 * proxy.lr;
    Proxy { recipe: text("e2m1"), lr, ..proxy }.arm(setting)
}

/// `effects` are those of claimed interventions on runs that diverged without.
fn judge(effects: &[Effect], diverged: usize, runs: usize) -> Verdict {
    let signs: Vec<f64> = effects.iter().filter_map(|effect| effect.sign()).collect();
    let averted = effects.iter().filter(|effect| **effect == Effect::Averted).count();
    let helped = signs.iter().filter(|sign| **sign > 0.0).count();
    let caused = effects.iter().filter(|effect| **effect == Effect::Caused).count();
    let harmed = signs.iter().filter(|sign| **sign < 0.0).count();
    let text = format!(
        "{diverged} of {runs} MX runs diverge; of {} interventions of the kinds {} before that, {averted} \
         avert it, {} delay it, {} hasten it, and {caused} make runs diverge that do not without",
        signs.len(),
        CLAIMED.join(", "),
        helped - averted,
        harmed - caused,
    );
    let test = sign_test(&signs);
    if test.is_some_and(|test| test.p_positive <= 0.05) {
        Verdict::Reproduced(text)
    } else if test.is_some_and(|test| test.p_negative <= 0.05) {
        Verdict::Contradicted(text)
    } else {
        Verdict::NotSeen(text)
    }
}

impl Figure for Interventions {
    fn id(&self) -> &'static str {
        "F4"
    }

    fn title(&self) -> &'static str {
        "interventions shortly and well before divergence"
    }

    fn source(&self) -> &'static str {
        "Fig. 4: nine changes of precision at two distances from the divergence of an E4M3 proxy of depth 4, \
         width 512, at steps 4500 and 5080 of a run that diverges at 5090"
    }

    fn claim(&self) -> &'static str {
        "Taking norms, activations or the backward pass out of MX, or raising the exponent of blocks that would \
         saturate, averts or delays divergence, earlier better than later. Counts as reproduced where, over \
         all seeds, these interventions avert or delay it more often than they hasten or cause it (sign test, p \
         at most 0.05): at stressed rates divergence is partly chance, so that any change averts some."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = vec![positive(setting)];
        for seed in unstable::seeds(setting) {
            arms.push(unstable::control(setting, seed));
            arms.extend(BASES.map(|recipe| plain(setting, seed, recipe)));
            for at in unstable::times(setting) {
                for (_, recipe) in interventions(setting) {
                    arms.push(branch(setting, seed, at, &recipe));
                }
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let fate = |arm: &Arm| proxy_fate(runs, arm);
        let seeds: Vec<u64> = unstable::seeds(setting).collect();
        let mut controls: Vec<(u64, Fate)> = Vec::new();
        let mut ends = Table::new(
            "the runs without interventions: the step from which on the loss stays ten times above its \
             lowest level, and the mean squared error at the end",
            &["seed", "MX", "loss of MX", "f32", "loss of f32", "f32, betas still", "its loss"],
        );
        for &seed in &seeds {
            let control = fate(&unstable::control(setting, seed))?;
            let mut row = vec![seed.to_string(), control.word(), number(control.tail)];
            for recipe in BASES {
                let plain = fate(&plain(setting, seed, recipe))?;
                row.extend([plain.word(), number(plain.tail)]);
            }
            ends.row(row);
            controls.push((seed, control));
        }
        let shown = controls.iter().position(|(_, control)| control.diverged()).unwrap_or(0);
        let (mut parts, mut claimed) = (Vec::new(), Vec::new());
        let mut header = vec!["intervention".to_owned()];
        let mut rows: Vec<Vec<String>> =
            interventions(setting).iter().map(|(name, _)| vec![(*name).to_owned()]).collect();
        for at in unstable::times(setting) {
            header.push(format!("averted at {at}"));
            header.push(format!("delayed at {at}"));
            header.push(format!("hastened or caused at {at}"));
            header.push(format!("each seed at {at}"));
            let mut panel = Panel::new(Axis::log("training loss, mean squared error"));
            for ((name, recipe), row) in interventions(setting).iter().zip(&mut rows) {
                let mut effects = Vec::new();
                for (i, (seed, control)) in controls.iter().enumerate() {
                    let branch = fate(&branch(setting, *seed, at, recipe))?;
                    effects.push(Effect::of(control.verdict.diverged, branch.verdict.diverged, at));
                    if i == shown {
                        let from =
                            calm(&branch.losses).into_iter().filter(|p| p.0 >= at as f64 * 0.8);
                        panel = panel.line(Series::new(*name, from).note(branch.word()));
                    }
                }
                let counted = effects.iter().filter(|effect| **effect != Effect::TooLate).count();
                let of = |kind: fn(&Effect) -> bool| {
                    format!("{} of {counted}", effects.iter().filter(|e| kind(e)).count())
                };
                row.push(of(|effect| *effect == Effect::Averted));
                row.push(of(|effect| matches!(effect, Effect::Delayed(_))));
                row.push(of(|effect| matches!(effect, Effect::Hastened(_) | Effect::Caused)));
                row.push(effects.iter().map(|e| e.word()).collect::<Vec<_>>().join(", "));
                if CLAIMED.contains(name) {
                    claimed.extend(effects);
                }
            }
            let (seed, control) = &controls[shown];
            parts.push(Part::Picture(
                plot::Figure::new(format!("The precision changes after step {at}"))
                    .subtitle(format!(
                        "seed {seed}, whose MX run: {}; the curves begin before",
                        control.word()
                    ))
                    .x(Axis::linear("step"))
                    .panel(panel),
            ));
        }
        parts.push(Part::Table(ends));
        let caption = format!(
            "what interventions do, of all seeds but those whose MX run had diverged before; delayed or hastened: by \
             more than {MOVED} steps; caused: the run diverges with the intervention alone; fp32 trains betas of \
             norms again, fp32_still does not"
        );
        parts.push(Part::Table(Table { caption, header, rows }));
        let diverged = controls.iter().filter(|(_, control)| control.diverged()).count();
        let verdict = judge(&claimed, diverged, controls.len());
        parts.push(Part::Text(
            "The learning rate rises by 5e-4 a step through rates at which f32 diverges as well: no divergence \
             of MX alone was found at this size. Norms of the study's MX code return no gradient of their betas; \
             f32 runs that train betas diverge at lower rates than all others, which is why f32 with betas still \
             stands beside them."
                .into(),
        ));
        let positive = fate(&positive(setting))?;
        let control = format!("E2M1 at ten times the rate: {}", positive.word());
        Ok(Findings { verdict: judge::controlled(positive.diverged(), &control, verdict), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_compare_divergences() {
        let of = |control, branch| Effect::of(control, branch, 100);
        assert_eq!(of(Some(200), None), Effect::Averted);
        assert_eq!(of(Some(200), Some(260)), Effect::Delayed(60));
        assert_eq!(of(Some(200), Some(205)), Effect::None);
        assert_eq!(of(Some(200), Some(194)), Effect::Hastened(6));
        assert_eq!(of(Some(100), None), Effect::TooLate);
        assert_eq!(of(None, None), Effect::None);
        assert_eq!(of(None, Some(150)), Effect::Caused);
    }

    #[test]
    fn verdicts_follow_the_signs() {
        let word = |effects: &[Effect]| judge(effects, 3, 5).word();
        assert_eq!(word(&[Effect::Averted; 6]), "reproduced");
        assert_eq!(word(&[Effect::Averted, Effect::Delayed(40)]), "not seen at this scale");
        assert_eq!(word(&[Effect::Hastened(50); 6]), "contradicted");
        assert_eq!(word(&[Effect::Caused; 6]), "contradicted");
        assert_eq!(word(&[Effect::TooLate; 9]), "not seen at this scale");
        assert_eq!(word(&[]), "not seen at this scale");
    }
}
