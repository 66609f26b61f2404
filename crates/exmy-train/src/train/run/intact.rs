//! Whether the records of a run are still those that were written, by the [`Digests`] that its checkpoints
//! and its summary hold.
//!
//! Rules decide on what `metrics.jsonl` says and pictures show it, so a run whose lines were lost, cut or
//! edited is not gone on with. Summaries before version 3 may lack digests; of these only steps are compared.

use super::{Folder, Summary, tail_loss};
use crate::recipe::Recipe;
use crate::train::checkpoint;
use crate::train::config::Config;
use crate::train::probe::lines_up_to;
use crate::train::record::{Digests, bytes, digest, reach};
use exmy::error::{Error, Result};
use exmy::shown::printable_path;

/// Whether a summary is, as it stands in its file, of a version in which digests may be absent.
fn may_lack_digests(written: &Summary) -> bool {
    written.version < 3
}

/// What is wrong with the records up to `step`, or with all of them if that was the last; `None` if nothing
/// is.
fn fault(
    folder: &Folder,
    (step, is_last): (u64, bool),
    digests: Option<&Digests>,
) -> Result<Option<String>> {
    let gone = |path: &std::path::Path| if path.exists() { "empty" } else { "missing" };
    let changed = |name: &str| Some(format!("{name} up to step {step} is not as it was written"));
    let path = folder.metrics_file();
    let mut text = bytes(&path)?;
    let (kept, what) = reach(&text, step);
    if let Some(what) = what {
        if is_last {
            // A line that is none is reported by its number.
            folder.metrics()?;
        }
        return Ok(Some(match text.is_empty() {
            true => format!("metrics.jsonl is {}", gone(&path)),
            false => format!("metrics.jsonl {what}"),
        }));
    }
    let Some(digests) = digests else { return Ok(None) };
    if !is_last {
        text.truncate(kept);
    }
    if digest(&text) != digests.metrics {
        return Ok(changed("metrics.jsonl"));
    }
    let Some(expected) = &digests.probes else { return Ok(None) };
    let path = folder.probes_file();
    let text = if is_last { bytes(&path)? } else { lines_up_to(&path, step)? };
    Ok(match digest(&text) == *expected {
        true => None,
        false if text.is_empty() => Some(format!("probes.jsonl is {}", gone(&path))),
        false => changed("probes.jsonl"),
    })
}

/// What is wrong with the records up to the checkpoint of `step`.
fn of_checkpoint(folder: &Folder, config: &Config, step: u64) -> Result<Option<String>> {
    let path = checkpoint::path(&folder.checkpoints(), step);
    let mut digests = checkpoint::records(&path)?;
    if config.start.is_branch()
        && config.start.step == step
        && let Some(digests) = &mut digests
    {
        // A branch begins with the other run's metrics, and with probes of its own.
        digests.probes = None;
    }
    fault(folder, (step, false), digests.as_ref())
}

/// What is wrong with the records of a run, if something is: with all of them if it is complete, else with
/// those up to its newest checkpoint.
///
/// # Errors
/// If a file cannot be read.
pub fn of_run(folder: &Folder, config: &Config) -> Result<Option<String>> {
    if let Some(summary) = folder.written_summary()? {
        if summary.records.is_none() && !may_lack_digests(&summary) {
            return Ok(Some("summary.json lacks its key records".into()));
        }
        let summary = summary.modern();
        let fault = fault(folder, (summary.steps, true), summary.records.as_ref())?;
        return match fault {
            None if summary.records.is_some() => contradiction(folder, config, &summary),
            fault => Ok(fault),
        };
    }
    let newest = || -> Result<_> { Ok(checkpoint::list(&folder.checkpoints())?.last().copied()) };
    let mut found = (newest()?, Ok(None));
    for _ in 0..LOOKS {
        let (Some(step), _) = found else { break };
        found.1 = of_checkpoint(folder, config, step);
        let now = newest()?;
        if matches!(found.1, Ok(None)) || found.1.is_ok() && now == Some(step) {
            break;
        }
        found.0 = now;
    }
    found.1
}

/// Looks at a run whose newest checkpoint was replaced at each: whoever is at work may have removed it, with
/// the lines that led to it, while they were compared.
const LOOKS: usize = 10;

/// What a summary says that its configuration and its metrics, which are as they were written, do not. The
/// formats of the products are not compared: what counts them may become better.
fn contradiction(folder: &Folder, config: &Config, summary: &Summary) -> Result<Option<String>> {
    let lines = folder.metrics()?;
    let Some(last) = lines.last() else { return Ok(None) };
    let train_loss = if last.diverged() { None } else { tail_loss(&lines) };
    let (of_config, of_metrics) = ("config.toml", "metrics.jsonl");
    let has_recipe = summary.recipe.parse().is_ok_and(|recipe: Recipe| recipe == config.recipe);
    let pairs = [
        ("recipe", of_config, has_recipe),
        ("seed", of_config, summary.seed == config.seed),
        ("lr", of_config, summary.lr == config.train.lr),
        ("parameters", of_config, summary.parameters == config.model.layout().len() as u64),
        ("train_loss", of_metrics, summary.train_loss == train_loss),
        ("val_loss", of_metrics, summary.val_loss == last.val_loss),
        ("tokens", of_metrics, summary.tokens == last.tokens),
        ("diverged_at", of_metrics, summary.diverged_at == last.diverged().then_some(last.step)),
        ("reason", of_metrics, summary.reason.as_deref() == last.divergence()),
    ];
    let wrong = pairs.iter().find(|(_, _, agrees)| !agrees);
    Ok(wrong.map(|(key, of, _)| format!("summary.json: {key} is not what {of} gives")))
}

/// Whether [`of_run`] has digests to go by, or misses them; runs that earlier versions wrote have none.
///
/// # Errors
/// If a file cannot be read.
pub fn has_digests(folder: &Folder) -> Result<bool> {
    if let Some(summary) = folder.written_summary()? {
        return Ok(summary.records.is_some() || !may_lack_digests(&summary));
    }
    let checkpoints = folder.checkpoints();
    match checkpoint::list(&checkpoints)?.last() {
        Some(&step) => Ok(checkpoint::records(&checkpoint::path(&checkpoints, step))?.is_some()),
        None => Ok(true),
    }
}

/// Refuses a run whose records are not those that were written.
///
/// # Errors
/// Says what is wrong, and where the run can be taken up again.
pub fn check(folder: &Folder, config: &Config) -> Result<()> {
    let Some(fault) = of_run(folder, config)? else { return Ok(()) };
    let steps = checkpoint::list(&folder.checkpoints())?;
    let is_sound = |&step: &u64| matches!(of_checkpoint(folder, config, step), Ok(None));
    let sound = steps.iter().copied().rfind(is_sound);
    let result = if folder.summary_file().exists() { "summary.json" } else { "" };
    let and = if result.is_empty() { "" } else { " and " };
    let other = match sound {
        Some(step) if steps.last() == Some(&step) => {
            format!("remove {result}: --resume takes the run up again at step {step}")
        }
        Some(step) => format!(
            "remove {result}{and}the checkpoints after step {step}: --resume takes the run up again there"
        ),
        None if config.start.is_branch() => "branch off anew".into(),
        None => format!("remove {result}{and}all checkpoints: --resume begins the run anew"),
    };
    Err(Error::new(format!("{}: {fault}", printable_path(folder.path())))
        .hint(format!("put the file back as it was; or {other}")))
}
