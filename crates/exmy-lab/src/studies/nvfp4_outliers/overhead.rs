//! E19: what patches cost.

use super::product::patched;
use crate::finding::{Findings, Part, Table, Verdict};
use crate::measure::Results;
use crate::series::spread;
use crate::store::Trained;
use crate::table::number;
use crate::timing;
use exmy::error::{Error, Result};
use exmy_train::recipe::hot::{Count, Patch, Terms};
use exmy_train::recipe::{Linear, Plan};
use exmy_train::train::preset::preset;

const SHARES: [u32; 5] = [1, 2, 5, 10, 25];
const MODELS: [&str; 3] = ["gla-micro", "gla-340m", "gla-1.3b"];
const RECIPES: [&str; 4] = ["nv-nvfp4+last=0", "nv-post-qk+last=0", "nv-hcp+last=0", "chon+last=0"];

/// What patches of `percent` of the channels add to the forward products of the operators that they are
/// on: as planned, and twice the share of channels as it is after rounding up to 16.
pub fn overhead(model: &str, percent: u32) -> Result<(f64, f64)> {
    let config = preset(model)?;
    let count = Some(Count::Percent(percent));
    let recipe = patched(Some(Patch { count, ..Patch::new(true, Terms::Both) }))?;
    let layout = config.model.layout();
    let plan = Plan::new(&recipe, &layout, 1).map_err(Error::from_cause)?;
    let linears: Vec<Linear> = Linear::all(&layout);
    let all: u64 = linears.iter().map(Linear::size).sum();
    let patched = linears.iter().filter(|one| plan.patch(0, one.site).is_some());
    let (mut forward, mut expected) = (0, 0.0);
    for linear in patched {
        let width = linear.inputs as f64;
        // At least a group of 16; no more channels than there are.
        let k = ((width * f64::from(percent) / 100.0 / 16.0).ceil() * 16.0).min(width);
        forward += linear.size();
        expected += 2.0 * k / width * linear.size() as f64;
    }
    // The plan counts all three products of all operators.
    Ok((plan.patched(0) * 3.0 * all as f64 / forward as f64, expected / forward as f64))
}

/// Seconds of a step.
fn seconds(run: &Trained) -> f64 {
    let of_step = run.summary.tokens / run.summary.steps.max(1);
    let time = timing::of(&run.folder, of_step);
    time.seconds / (time.tokens / of_step as f64).round()
}

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let header: Vec<String> = SHARES.iter().map(|share| format!("k = {share} %")).collect();
    let mut names = vec!["model"];
    names.extend(header.iter().map(String::as_str));
    let mut table = Table::new(
        "multiplications added to the forward products of patched operators, in percent (k is rounded up to \
         a multiple of 16)",
        &names,
    );
    let mut farthest = 0.0_f64;
    for model in MODELS {
        let mut row = vec![model.to_owned()];
        for share in SHARES {
            let (found, expected) = overhead(model, share)?;
            farthest = farthest.max((found / expected - 1.0).abs());
            row.push(number(100.0 * found));
        }
        table.row(row);
    }
    let mut times = Table::new(
        "time of a step of this program on one thread, over that of nv-nvfp4+last=0 (mean and range over \
         seeds); other processes on the machine disturb it",
        &["recipe", "relative time", "milliseconds"],
    );
    for recipe in RECIPES {
        let (mut ratios, mut own) = (Vec::new(), Vec::new());
        let base = results.picked(&[RECIPES[0]])?;
        for ((_, run), (_, base)) in results.picked(&[recipe])?.iter().zip(&base) {
            ratios.push(seconds(run) / seconds(base));
            own.push(1000.0 * seconds(run));
        }
        times.row([recipe.to_owned(), spread(&ratios), spread(&own)]);
    }
    let (found, _) = overhead("gla-1.3b", 5)?;
    let text = format!(
        "counted and 2 k / K differ by at most {:.1e}; at 5 % of the channels of GLA-1.3B {:.1} % of the \
         forward products, {:.1} % of all three, against the paper's 9 to 13 % of time",
        farthest,
        100.0 * found,
        100.0 * found / 3.0
    );
    let verdict = Verdict::Shown(text);
    Ok(Findings::of(verdict, vec![Part::Table(table), Part::Table(times)]))
}
