//! New seeds where AppC's search found runs that diverge in MX and not in f32.
//!
//! A cell that a search has found is likely to look worse than it is, so what it seems to show is tried
//! on seeds that nobody has looked at: those of the steady rate of [`unstable`](super::unstable). E2M1, the worst of the
//! search, is judged; the other formats stand beside it.

use super::common::{F32, Proxy, STILL, proxy_fate, text};
use super::judge::{Paired, by_signs};
use super::unstable::{Stress, judged};
use crate::error::Result;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Part, Table, Verdict};
use crate::study::statistics::{sign_test, wilson};
use crate::study::store::Runs;
use std::ops::Range;

/// Names and recipes: what is compared with, the judged one, others.
fn formats(stress: &Stress) -> [(String, String); 6] {
    let mx = |format: &str| (format.to_uppercase(), text(format));
    [
        ("f32, betas still".into(), STILL.into()),
        mx(stress.format),
        mx("e2m3"),
        mx("e4m3"),
        ("bfloat16".into(), "mxpaper-bf16+gelu=fp32".into()),
        ("f32".into(), F32.into()),
    ]
}

/// None where the study's own runs are trained, or nothing is judged.
fn seeds(setting: &Setting) -> Range<u64> {
    match setting.scale {
        Scale::Small | Scale::Medium => judged(setting).seeds(setting),
        Scale::Smoke | Scale::Full => 0..0,
    }
}

fn arm(setting: &Setting, format: usize, seed: u64) -> Arm {
    let stress = judged(setting);
    if format == 1 {
        // The same run as F4's and D1's.
        return stress.control(setting, seed);
    }
    let recipe = formats(&stress)[format].1.clone();
    Proxy { recipe, ..stress.proxy(setting, seed) }.arm(setting)
}

pub(super) fn arms(setting: &Setting) -> Vec<Arm> {
    let of = |seed| (0..6).map(move |format| arm(setting, format, seed));
    seeds(setting).flat_map(of).collect()
}

/// Whether more seeds diverge in MX alone than in f32 alone; `diverged` holds f32 and MX of each seed.
fn judge(name: &str, diverged: &[(bool, bool)]) -> Verdict {
    let count = |f32: bool, mx: bool| diverged.iter().filter(|run| **run == (f32, mx)).count();
    let signs: Vec<f64> =
        diverged.iter().map(|(f32, mx)| f64::from(*mx) - f64::from(*f32)).collect();
    let text = format!(
        "{name}, {} new seeds: {} diverge in MX alone, {} in f32 alone (betas still), {} in both (one-sided p {:.4})",
        diverged.len(),
        count(false, true),
        count(true, false),
        count(true, true),
        sign_test(&signs).map_or(1.0, |test| test.p_positive)
    );
    by_signs(&signs, text)
}

/// The verdict, and a table; `None` where there are no such runs.
pub(super) fn find(setting: &Setting, runs: &Runs<'_>) -> Result<Option<(Verdict, Part)>> {
    if seeds(setting).is_empty() {
        return Ok(None);
    }
    let stress = judged(setting);
    let words = stress.words(setting);
    let caption = format!(
        "{words}; new seeds: diverged runs, of how many, the 95 % interval of the share (Wilson), and ln(loss at \
         the end) less that of f32 whose betas stay still, by pairs of seeds"
    );
    let mut table = Table::new(&caption, &["numbers", "diverged", "runs", "interval", "ln(loss)"]);
    let mut all: Vec<Vec<(bool, f64)>> = Vec::new();
    for (format, (name, _)) in formats(&stress).iter().enumerate() {
        let fates = seeds(setting)
            .map(|seed| proxy_fate(runs, &arm(setting, format, seed)))
            .collect::<Result<Vec<_>>>()?;
        all.push(fates.iter().map(|fate| (fate.diverged(), fate.tail)).collect());
        let losses = |i: usize| all[i].iter().map(|run| run.1).collect::<Vec<_>>();
        let lost = all[format].iter().filter(|run| run.0).count();
        let share = wilson(lost as u64, fates.len() as u64, 0.95);
        table.row([
            name.clone(),
            lost.to_string(),
            fates.len().to_string(),
            share.map_or_else(|| "-".into(), |i| format!("{:.2} to {:.2}", i.low, i.high)),
            match format {
                0 => "-".into(),
                _ => Paired::of_logarithms(&losses(format), &losses(0)).words(),
            },
        ]);
    }
    let pairs: Vec<(bool, bool)> = all[0].iter().zip(&all[1]).map(|(a, b)| (a.0, b.0)).collect();
    Ok(Some((judge(&words, &pairs), Part::Table(table))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_count_seeds() {
        let word = |pairs: &[(bool, bool)]| judge("E2M1", pairs).word();
        // Half to the fifth power is 0.031, to the fourth 0.0625.
        assert_eq!(word(&[(false, true); 5]), "reproduced");
        assert_eq!(word(&[(false, true); 4]), "not seen at this scale");
        assert_eq!(word(&[(true, false); 5]), "contradicted");
        assert_eq!(word(&[(true, true); 9]), "not seen at this scale");
        assert_eq!(word(&[]), "not seen at this scale");
    }

    #[test]
    fn seeds_are_not_those_of_the_search() {
        let setting = Setting::unread(Scale::Small);
        assert_eq!(seeds(&setting), 21..45);
        assert_eq!(arms(&setting).len(), 24 * 6);
        assert!(arms(&Setting::unread(Scale::Smoke)).is_empty());
    }
}
