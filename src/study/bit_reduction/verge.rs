//! What sharpness and the gradient norm of a run do on its way to where it breaks.
//!
//! The way has two stretches: the second half of the steps up to the lowest loss, while the loss still falls, and
//! those from there until the run breaks. Sharpness foretells only if it rises in the first. The lowest loss is that
//! of means around each step: a trailing average finds it some ten steps too late, and sharpness early by as many. A
//! trend is that of Mann and Kendall, one-sided at 5 %, which fewer than five values hardly ever have.

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

/// Steps on either side that the mean around a step has.
const REACH: usize = 7;

/// The step around which losses before `end` are lowest.
fn lowest(losses: &[(f64, f64)], end: f64) -> Option<f64> {
    let before: Vec<(f64, f64)> = losses.iter().copied().filter(|x| x.0 < end).collect();
    let around = before.windows(2 * REACH + 1);
    let means = around.filter_map(|near| {
        let values: Vec<f64> = near.iter().map(|x| x.1).collect();
        Some((near[REACH].0, mean(&values)?))
    });
    means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|point| point.0)
}

/// The trends of a run that breaks, or ends, at a step.
pub(super) fn read(run: &Trained, end: u64) -> Result<Verge> {
    let end = end as f64;
    let lowest = lowest(&run.losses(), end).unwrap_or(end);
    let phi = run.values("phi")?;
    let every = phi.windows(2).map(|two| (two[1].0 - two[0].0) as usize).min().unwrap_or(1);
    let norms = means(&run.norms(), every);
    Ok(Verge { phi: signs(&phi, lowest, end), norm: signs(&norms, lowest, end) })
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
        "before the lowest loss of {} runs that break sharpness rises in {} and falls in {} (rising minus falling, by \
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
    fn the_lowest_loss_is_where_it_is() {
        // Falls to step 60 and rises after; one low loss elsewhere does not count.
        let loss = |step: i32| f64::from((step - 60).abs()) - if step == 90 { 40.0 } else { 0.0 };
        let losses: Vec<(f64, f64)> = (1..=120).map(|step| (f64::from(step), loss(step))).collect();
        assert_eq!(lowest(&losses, 100.0), Some(60.0));
        assert_eq!(lowest(&losses, 50.0), Some(42.0), "the last with seven on either side");
        assert_eq!(lowest(&losses, 10.0), None);
    }

    #[test]
    fn seeds_are_judged_by_their_means() {
        let run = |phi: i8| Verge { phi: [phi, -phi], norm: [0, 1] };
        let (found, text) = judge(&[vec![run(1), run(1)], vec![run(1)], vec![run(1), run(0)]]);
        let found = found.unwrap();
        assert!((found.estimate - (1.0 + 1.0 + 0.5) / 3.0).abs() < 1e-12, "{found:?}");
        assert!(
            text.starts_with(
                "before the lowest loss of 5 runs that break sharpness rises in 4 and falls in 0"
            ),
            "{text}"
        );
        assert!(
            text.contains("on it rises in 0 and falls in 4; the gradient norm rises in 0"),
            "{text}"
        );
        assert_eq!(judge(&[vec![], vec![run(1)]]).0, None);
    }
}
