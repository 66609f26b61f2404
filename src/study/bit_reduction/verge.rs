//! What sharpness and the gradient norm of a run do on its way to where it breaks.
//!
//! The way has two stretches: the second half of the steps up to the lowest smoothed loss, while the loss still falls, and
//! those from there until the run breaks. Sharpness foretells only if it rises in the first. A trend is
//! that of Mann and Kendall, one-sided at 5 %.

use super::common::smoothed_loss;
use crate::error::Result;
use crate::study::statistics::{Interval, mann_kendall, mean, mean_interval};
use crate::study::store::Trained;

/// Signs of trends, before the lowest loss and from there on: 1 up, -1 down, 0 neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verge {
    pub(super) phi: [i8; 2],
    pub(super) norm: [i8; 2],
}

fn sign(values: &[f64]) -> i8 {
    match mann_kendall(values) {
        Some(trend) if trend.p_rising < 0.05 => 1,
        Some(trend) if trend.p_falling < 0.05 => -1,
        _ => 0,
    }
}

/// The trends of a curve in both stretches.
fn signs(curve: &[(f64, f64)], lowest: f64, broken: f64) -> [i8; 2] {
    let within = |from: f64, to: f64| -> Vec<f64> {
        curve.iter().filter(|x| x.0 >= from && x.0 <= to).map(|x| x.1).collect()
    };
    [sign(&within(lowest / 2.0, lowest)), sign(&within(lowest, broken))]
}

/// Means of every so many steps, each at its last one: neighbouring steps have neighbouring norms.
fn means(curve: &[(f64, f64)], every: usize) -> Vec<(f64, f64)> {
    let whole = curve.chunks_exact(every.max(1));
    let one = |part: &[(f64, f64)]| {
        let values: Vec<f64> = part.iter().map(|x| x.1).collect();
        Some((part.last()?.0, mean(&values)?))
    };
    whole.filter_map(one).collect()
}

/// The trends of a run that breaks at a step.
pub(super) fn read(run: &Trained, broken: u64) -> Result<Verge> {
    let broken = broken as f64;
    let smoothed = smoothed_loss(run);
    let before = smoothed.iter().filter(|point| point.0 < broken);
    let lowest = before.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(broken, |point| point.0);
    let phi = run.values("phi")?;
    let every = phi.windows(2).map(|two| (two[1].0 - two[0].0) as usize).min().unwrap_or(1);
    Ok(Verge {
        phi: signs(&phi, lowest, broken),
        norm: signs(&means(&run.norms(), every), lowest, broken),
    })
}

/// How much more often sharpness rises than falls before the lowest loss, by seed, and the numbers in
/// words.
pub(super) fn judge(seeds: &[Vec<Verge>]) -> (Option<Interval>, String) {
    let all = || seeds.iter().flatten();
    let count = |of: &dyn Fn(&Verge) -> i8, sign: i8| all().filter(|run| of(run) == sign).count();
    let before: Vec<f64> = seeds
        .iter()
        .filter_map(|runs| mean(&runs.iter().map(|run| f64::from(run.phi[0])).collect::<Vec<_>>()))
        .collect();
    let found = mean_interval(&before, 0.95);
    let shown = found.map_or_else(
        || "no interval".into(),
        |found| format!("{:+.2} [{:+.2}, {:+.2}]", found.estimate, found.low, found.high),
    );
    let text = format!(
        "{} runs break; before the lowest loss sharpness rises in {} of them and falls in {} (rising minus falling, by \
         seed: {shown}), from there on it rises in {} and falls in {}; the gradient norm rises in {} and falls in {} before, \
         rises in {} and falls in {} after",
        all().count(),
        count(&|run| run.phi[0], 1),
        count(&|run| run.phi[0], -1),
        count(&|run| run.phi[1], 1),
        count(&|run| run.phi[1], -1),
        count(&|run| run.norm[0], 1),
        count(&|run| run.norm[0], -1),
        count(&|run| run.norm[1], 1),
        count(&|run| run.norm[1], -1),
    );
    (found, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trends_are_of_either_side_of_the_lowest_loss() {
        // Falls until step 60, rises from there on; what lies before step 50 is not looked at.
        let curve: Vec<(f64, f64)> = (0_i32..=30)
            .map(|i| {
                (f64::from(i) * 10.0, f64::from((i - 6).abs()) + if i < 5 { 99.0 } else { 0.0 })
            })
            .collect();
        assert_eq!(signs(&curve, 100.0, 200.0), [1, 1]);
        assert_eq!(signs(&curve, 60.0, 65.0), [-1, 0], "one measurement has no trend");
        let up: Vec<(f64, f64)> = (0..30).map(|i| (f64::from(i), f64::from(i % 10))).collect();
        assert_eq!(means(&up, 10), [(9.0, 4.5), (19.0, 4.5), (29.0, 4.5)]);
        assert_eq!(sign(&[1.0, 2.0, 1.0, 2.0, 1.0]), 0);
    }

    #[test]
    fn seeds_are_judged_by_their_means() {
        let run = |phi: i8| Verge { phi: [phi, -phi], norm: [0, 1] };
        let (found, text) = judge(&[vec![run(1), run(1)], vec![run(1)], vec![run(1), run(0)]]);
        let found = found.unwrap();
        assert!((found.estimate - (1.0 + 1.0 + 0.5) / 3.0).abs() < 1e-12, "{found:?}");
        assert!(
            text.starts_with("5 runs break; before the lowest loss sharpness rises in 4"),
            "{text}"
        );
        assert!(
            text.contains("on it rises in 0 and falls in 4; the gradient norm rises in 0"),
            "{text}"
        );
        assert_eq!(judge(&[vec![], vec![run(1)]]).0, None);
    }
}
