//! Whether sharpness rises before the loss does, in runs of fewer mantissa bits beside those of most.
//!
//! The paper says so of its curves and gives no threshold ("no exact threshold", caption of v2 Fig. 7), and
//! levels of two quantities cannot be compared by eye. So both are held to the same rule: a curve has risen
//! at the first of two measurements in a row that lie above those of the reference run of the same seed by
//! more than three times the scatter between the seeds of the reference.

use super::common::smoothed_loss;
use crate::error::Result;
use crate::study::statistics::{mean, sd, sign_test};
use crate::study::store::Trained;

/// Scatters between seeds that a difference must exceed.
const SCATTERS: f64 = 3.0;
/// Measurements in a row.
const ROW: usize = 2;

type Curve = Vec<(f64, f64)>;

/// The value at a step, if the curve goes that far.
fn at(curve: &[(f64, f64)], step: f64) -> Option<f64> {
    curve.iter().find(|point| point.0 == step).map(|point| point.1).filter(|x| x.is_finite())
}

/// The standard deviation between curves at one step, over all steps that all of them have.
fn scatter(curves: &[Curve]) -> Option<f64> {
    let steps = curves.first()?.iter().map(|point| point.0);
    let variances = steps.filter_map(|step| {
        let values: Vec<f64> = curves.iter().filter_map(|curve| at(curve, step)).collect();
        (values.len() == curves.len()).then(|| sd(&values).map(|sd| sd * sd)).flatten()
    });
    mean(&variances.collect::<Vec<_>>()).map(f64::sqrt)
}

/// The first step of `ROW` in a row at which a curve lies above its reference by more than `limit`.
///
/// A loss that is no longer there is above any: runs end where it is no finite number.
fn risen(curve: &Curve, reference: &Curve, limit: f64, gone: bool) -> Option<f64> {
    let above = |step: f64| match (at(curve, step), at(reference, step)) {
        (Some(value), Some(reference)) => value - reference > limit,
        (None, Some(_)) => gone,
        _ => false,
    };
    let rows = reference.windows(ROW);
    rows.into_iter().find(|row| row.iter().all(|point| above(point.0))).map(|row| row[0].0)
}

/// When sharpness and loss of one run rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Risen {
    pub(super) phi: Option<f64>,
    pub(super) loss: Option<f64>,
}

impl Risen {
    /// 1 where sharpness rises before the loss does, -1 after, 0 at the same measurement; `None` for a run
    /// whose loss does not rise.
    fn sign(&self) -> Option<f64> {
        let loss = self.loss?;
        Some(match self.phi {
            Some(phi) if phi < loss => 1.0,
            Some(phi) if phi == loss => 0.0,
            _ => -1.0,
        })
    }
}

/// Compares runs, seed by seed, with the reference.
pub(super) fn compare(reference: &[Trained], runs: &[Trained]) -> Result<Vec<Risen>> {
    let phi = |runs: &[Trained]| -> Result<Vec<Curve>> {
        let ln = |values: Curve| values.into_iter().map(|(step, phi)| (step, libm::log(phi)));
        runs.iter().map(|run| Ok(ln(run.values("phi")?).collect())).collect()
    };
    let (phi_reference, phi) = (phi(reference)?, phi(runs)?);
    let loss = |runs: &[Trained]| -> Vec<Curve> {
        let measured = |step: f64| phi_reference.iter().any(|curve| at(curve, step).is_some());
        let curve = |run| smoothed_loss(run).into_iter().filter(|point| measured(point.0));
        runs.iter().map(|run| curve(run).collect()).collect()
    };
    let (loss_reference, loss) = (loss(reference), loss(runs));
    let limits = [scatter(&phi_reference), scatter(&loss_reference)];
    let [Some(phi_limit), Some(loss_limit)] = limits.map(|s| s.map(|s| SCATTERS * s)) else {
        return Ok(Vec::new());
    };
    let seeds = phi.iter().zip(&phi_reference).zip(loss.iter().zip(&loss_reference));
    Ok(seeds
        .map(|((phi, phi_reference), (loss, loss_reference))| Risen {
            phi: risen(phi, phi_reference, phi_limit, false),
            loss: risen(loss, loss_reference, loss_limit, true),
        })
        .collect())
}

/// Whether sharpness rises first in more runs than the loss, whether the opposite, and the numbers.
pub(super) fn judge(runs: &[Risen]) -> (bool, bool, String) {
    let alone = runs.iter().filter(|run| run.phi.is_some() && run.loss.is_none()).count();
    let signs: Vec<f64> = runs.iter().filter_map(Risen::sign).collect();
    let count = |sign: f64| signs.iter().filter(|s| **s == sign).count();
    let test = sign_test(&signs);
    let text = format!(
        "of {} runs whose loss rises above that of the most bits, sharpness rises before in {}, at the same \
         measurement in {}, later or never in {} (one-sided p {:.4}); in {alone} runs sharpness rises and the \
         loss does not",
        signs.len(),
        count(1.0),
        count(0.0),
        count(-1.0),
        test.map_or(1.0, |test| test.p_positive),
    );
    let by = |p: Option<f64>| p.is_some_and(|p| p <= 0.05);
    (by(test.map(|test| test.p_positive)), by(test.map(|test| test.p_negative)), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Curve {
        values.iter().enumerate().map(|(i, value)| (25.0 * i as f64, *value)).collect()
    }

    #[test]
    fn curves_rise_where_they_leave_the_scatter_of_the_reference() {
        // At each step two seeds 0.2 apart: a standard deviation of 0.2 / sqrt 2.
        let seeds = [curve(&[1.0, 2.0, 3.0, 2.0]), curve(&[1.2, 2.2, 2.8, 2.2])];
        let found = scatter(&seeds).unwrap();
        assert!((found - 0.02f64.sqrt()).abs() < 1e-12, "{found}");
        assert_eq!(scatter(&seeds[..1]), None, "one seed has none");
        let flat = curve(&[1.0; 6]);
        let limit = 0.5;
        assert_eq!(risen(&curve(&[1.0, 1.6, 1.2, 1.6, 1.7, 2.0]), &flat, limit, true), Some(75.0));
        assert_eq!(risen(&curve(&[1.0, 1.6, 1.2, 1.6, 1.2, 2.0]), &flat, limit, true), None);
        // The run ends after three measurements.
        assert_eq!(risen(&curve(&[1.0, 1.0, 1.1]), &flat, limit, true), Some(75.0));
        assert_eq!(risen(&curve(&[1.0, 1.0, 1.1]), &flat, limit, false), None);
    }

    #[test]
    fn what_rises_first_is_counted() {
        let run = |phi, loss| Risen { phi, loss };
        let (first, alone) = (run(Some(50.0), Some(100.0)), run(Some(50.0), None));
        let (later, tie) = (run(None, Some(25.0)), run(Some(25.0), Some(25.0)));
        let (holds, opposite, text) = judge(&[first, first, first, first, first, alone, tie]);
        assert!(holds && !opposite, "{text}");
        assert!(text.starts_with("of 6 runs") && text.contains("before in 5"), "{text}");
        assert!(text.contains("in 1 runs sharpness rises and"), "{text}");
        let (holds, opposite, _) = judge(&[later; 5]);
        assert!(!holds && opposite);
        let (holds, opposite, _) = judge(&[first, first, first, first, later]);
        assert!(!holds && !opposite, "four of five are not enough");
        assert!(!judge(&[alone; 9]).0);
    }
}
