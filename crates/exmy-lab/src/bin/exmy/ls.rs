//! `exmy ls`: the runs in a folder, a line each.

use crate::phase::Phase;
use crate::rows::{Line, table, width};
use crate::shortened::without_middle;
use crate::{PARTLY, show};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::amounts::counted;
use exmy_lab::gather::first_line;
use exmy_lab::inventory::{Listed, age, list};
use serde_json::json;
use std::path::PathBuf;

/// List runs: recipe, seed, state, steps, losses, age
///
/// Runs that are damaged or cannot be read are named, and then the exit code is 1.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Arguments {
    /// Folder of runs, or a folder above such folders
    #[arg(value_name = "DIR", default_value = "runs")]
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  exmy ls
  exmy ls runs/0001
  exmy ls --json | jq '.runs[] | select(.state == \"diverged\") | .path'

train and val are losses: of the result, else the mean of the last 20 steps and the last validation.";

/// A number of seconds in its largest unit.
fn ago(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.iter().find(|(size, _)| seconds >= *size);
    unit.map_or(format!("{seconds} s"), |(size, unit)| format!("{} {unit}", seconds / size))
}

/// Columns that all but the name and the recipe take, and the fewest that a recipe gets.
const OTHERS: usize = 58;
const RECIPE: usize = 12;

/// A run's line; on a terminal of this `width` a long recipe loses its middle, so that all stay in columns.
fn line(run: &Listed, width: Option<usize>) -> Line {
    let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    let steps = match run.step == run.steps {
        true => run.steps.to_string(),
        false => format!("{}/{}", run.step, run.steps),
    };
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(OTHERS).max(RECIPE));
    let cells = [
        without_middle(&run.recipe, room),
        run.state.to_owned(),
        run.seed.to_string(),
        steps,
        of(run.loss),
        of(run.val_loss),
        age(run).map_or_else(|| "-".to_owned(), ago),
    ];
    let remark = if run.damage.is_some() { "damaged".to_owned() } else { String::new() };
    Line { name: run.name.clone(), cells: cells.into(), remark }
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let folder = &arguments.folder;
    if !folder.exists() && folder.as_os_str() == "runs" {
        return Err(Error::new("there is no folder runs here")
            .hint("`exmy train` makes it; for runs elsewhere name their folder: exmy ls DIR"));
    }
    let reading = Phase::begin("reading the runs", false);
    let (runs, broken) = list(folder)?;
    drop(reading);
    let damaged = || runs.iter().filter_map(|run| Some((run, run.damage.as_ref()?)));
    let code = if broken.is_empty() && damaged().count() == 0 { 0 } else { PARTLY };
    if arguments.json {
        let left_out: Vec<String> = broken.iter().map(first_line).collect();
        show::json(&json!({ "runs": runs, "left_out": left_out }))?;
        return Ok(code);
    }
    let lines: Vec<Line> = runs.iter().map(|run| line(run, width())).collect();
    let heads = ["run", "recipe", "state", "seed", "steps", "train", "val", "age"];
    if !lines.is_empty() {
        show::result(&table(&heads, 2, &lines, width()))?;
    }
    damaged().for_each(|(run, what)| say!("damaged: {}: {what}", printable_path(&run.path)));
    broken.iter().for_each(|error| say!("left out: {error}"));
    for (count, what) in [(damaged().count(), "damaged"), (broken.len(), "unreadable")] {
        if count > 0 {
            let (runs, are) = (counted(count as u64, "run"), if count == 1 { "is" } else { "are" });
            say!("{runs} of {} {are} {what}", printable_path(folder));
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// One long recipe does not break the columns of the others, from 80 columns on.
    #[test]
    fn a_long_recipe_loses_its_middle() {
        let run = |recipe: &str| Listed {
            name: format!("runs/{recipe}-s1"),
            path: PathBuf::new(),
            recipe: recipe.into(),
            seed: 1,
            lr: 1e-3,
            state: "complete",
            step: 12_345,
            steps: 100_000,
            loss: Some(10.5),
            val_loss: None,
            unit: "nats per token",
            modified: None,
            damage: None,
        };
        let runs = [run("f32"), run(&"bf16+q:k:v=bf16".repeat(6))];
        let heads = ["run", "recipe", "state", "seed", "steps", "train", "val", "age"];
        for columns in [80, 100, 200] {
            let lines: Vec<Line> = runs.iter().map(|run| line(run, Some(columns))).collect();
            let text = table(&heads, 2, &lines, Some(columns));
            // A name and a line below it, for the head and for each run.
            assert!(text.lines().count() <= 6, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        }
    }

    #[test]
    fn ages_have_their_largest_unit() {
        let of = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 20 * 86_400].map(ago);
        assert_eq!(of, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d", "20 d"]);
    }
}
