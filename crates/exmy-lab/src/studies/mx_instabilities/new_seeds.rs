//! New seeds near where a search found runs that diverge in MX and not in f32.
//!
//! A grid point that a search has found is likely to look worse than it is, so what it seems to show is tried
//! on seeds that nobody has looked at, and by several thresholds: those of the steady rate. E2M1, the worst
//! of the search, is judged; the other formats are shown, too.

use super::grids::{JUDGED, NEW_SEEDS};
use crate::claim::Paired;
use crate::finding::{Part, Table, Verdict};
use crate::measure::Results;
use crate::outcome::Outcome;
use crate::spikes::Factor;
use crate::statistics::{Signs, sign_test, wilson};
use exmy::error::Result;

/// Multiples of the lowest level above which a run counts as diverged; the third is the study's own.
const FACTORS: [f64; 4] = [3.0, 5.0, 10.0, 20.0];

/// The p at which chance is not believed.
pub(super) const SURE: f64 = 0.05;

/// By one multiple, whether f32 and MX of each seed diverged.
pub type Pairs = Vec<(bool, bool)>;

/// Counts of MX alone, f32 alone and both, and the sign test's probability that chance gives as many more of
/// MX.
fn counts(pairs: &Pairs) -> ([usize; 3], f64) {
    let count = |f32: bool, mx: bool| pairs.iter().filter(|run| **run == (f32, mx)).count();
    let p = sign_test(&signs(pairs)).map_or(1.0, |test| test.p_positive);
    ([count(false, true), count(true, false), count(true, true)], p)
}

fn signs(pairs: &Pairs) -> Vec<f64> {
    pairs.iter().map(|(f32, mx)| f64::from(*mx) - f64::from(*f32)).collect()
}

/// The verdict on a claim that signs are above 0 more often than below (sign test, p at most `SURE`).
fn by_signs(signs: &[f64], text: String) -> Verdict {
    let test = sign_test(signs);
    let by = |p: fn(Signs) -> f64| test.is_some_and(|test| p(test) <= SURE);
    Verdict::of(by(|test| test.p_positive), by(|test| test.p_negative), text)
}

/// Whether more seeds diverge in MX alone than in f32 alone, by each multiple.
pub fn judge(name: &str, by: &[Pairs; FACTORS.len()], losses: &str) -> Verdict {
    let words = |(factor, pairs): (&f64, &Pairs)| {
        let ([mx, f32, both], p) = counts(pairs);
        format!("{mx} : {f32} ({both} in both, p {p:.3}) by {factor} times the lowest level")
    };
    let list: Vec<String> = FACTORS.iter().zip(by).map(words).collect();
    let text = format!(
        "{name}, {} new seeds, diverged in MX alone : in f32 alone (fixed betas): {}; ln(loss) of MX minus \
         that of f32: {losses}",
        by[0].len(),
        list.join(", ")
    );
    let verdicts = by.each_ref().map(|pairs| by_signs(&signs(pairs), String::new()));
    let same = verdicts.iter().all(|verdict| verdict.word() == verdicts[0].word());
    if same { verdicts[0].with(text) } else { Verdict::NotSeen(text) }
}

/// The verdict, and tables; `None` where there are no such runs.
pub(super) fn find(results: &Results<'_>) -> Result<Option<(Verdict, [Part; 2])>> {
    let results = results.of_grid(&NEW_SEEDS);
    if results.points.is_empty() {
        return Ok(None);
    }
    let words = JUDGED.words(results.setting);
    let numbers = JUDGED.numbers(results.setting);
    let of = |name: &'static str| if name == "MX" { numbers } else { name };
    let names: Vec<&str> =
        results.levels(results.grid.axis("numbers")).iter().map(|level| of(level.name)).collect();
    let outcomes: Vec<Vec<Outcome>> =
        results.points.iter().map(|point| results.outcomes(point)).collect::<Result<_>>()?;
    let losses = |format: usize| {
        let of = |format: usize| {
            outcomes[format].iter().map(|outcome| libm::log(outcome.tail)).collect::<Vec<_>>()
        };
        Paired::of(&of(format), &of(0)).words()
    };
    let caption = format!(
        "{words}; new seeds. Exploded: the loss was above that before training at some step. Diverged: its \
         last tenth is ten times above its lowest level, with the 95 % interval of the share (Wilson). \
         ln(loss) at the end, at most that before training, minus that of f32 whose betas are fixed, by \
         pairs of seeds"
    );
    let mut table =
        Table::new(&caption, &["numbers", "exploded", "diverged", "runs", "interval", "ln(loss)"]);
    for (format, name) in names.iter().enumerate() {
        let exploded = |outcome: &&Outcome| {
            let first = outcome.losses.first().map_or(f64::NAN, |first| first.1);
            outcome.losses.iter().any(|(_, loss)| !loss.is_finite() || *loss > first)
        };
        let outcomes = &outcomes[format];
        let diverged = outcomes.iter().filter(|outcome| outcome.diverged()).count();
        let share = wilson(diverged as u64, outcomes.len() as u64, 0.95);
        table.row([
            (*name).to_owned(),
            outcomes.iter().filter(exploded).count().to_string(),
            diverged.to_string(),
            outcomes.len().to_string(),
            share.map_or_else(|| "-".into(), |i| format!("{:.2} to {:.2}", i.low, i.high)),
            if format == 0 { "-".into() } else { losses(format) },
        ]);
    }
    let diverged = |outcome: &Outcome, factor: f64| {
        let rule = Factor { factor, ..Factor::default() };
        rule.judge(&outcome.losses, &outcome.norms).diverged.is_some()
    };
    let by = FACTORS.map(|factor| -> Pairs {
        let pairs = outcomes[0].iter().zip(&outcomes[1]);
        pairs.map(|(f32, mx)| (diverged(f32, factor), diverged(mx, factor))).collect()
    });
    let caption = format!("{} against f32 whose betas are fixed, by other multiples", names[1]);
    let header = ["times the lowest level", "MX alone", "f32 alone", "both", "p"];
    let mut others = Table::new(&caption, &header);
    for (factor, pairs) in FACTORS.iter().zip(&by) {
        let ([mx, f32, both], p) = counts(pairs);
        let counts = [factor.to_string(), mx.to_string(), f32.to_string(), both.to_string()];
        others.row(counts.into_iter().chain([format!("{p:.4}")]));
    }
    let verdict = judge(&words, &by, &losses(1));
    Ok(Some((verdict, [Part::Table(table), Part::Table(others)])))
}
