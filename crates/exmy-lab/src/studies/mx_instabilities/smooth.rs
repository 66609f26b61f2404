//! Whether training is smooth: F1a.

use crate::claim::TestResult;
use crate::measure::Results;
use exmy::error::Result;

/// What is asked where training is said to be smooth.
pub(super) const ASKS: &str = "no run has a spike or diverges; contradicted where one diverges";

/// Whether all runs are smooth.
pub(super) fn judge(results: &Results<'_>) -> Result<TestResult> {
    let mut all = Vec::new();
    for point in &results.points {
        all.extend(results.outcomes(point)?);
    }
    let diverged = all.iter().filter(|outcome| outcome.diverged()).count();
    let spiked = all.iter().filter(|outcome| !outcome.verdict.spikes.is_empty()).count();
    Ok(judged(diverged, spiked, all.len()))
}

fn judged(diverged: usize, spiked: usize, runs: usize) -> TestResult {
    let text = format!("of {runs} runs {diverged} diverge and {spiked} have spikes");
    TestResult {
        holds: runs > 0 && diverged + spiked == 0,
        opposite: diverged > 0,
        known: runs > 0,
        ..TestResult::either(false, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smooth_is_without_spikes() {
        let of = |diverged, spiked| {
            let result = judged(diverged, spiked, 3);
            (result.holds, result.opposite)
        };
        assert_eq!([of(0, 0), of(0, 1), of(1, 1)], [(true, false), (false, false), (false, true)]);
    }
}
