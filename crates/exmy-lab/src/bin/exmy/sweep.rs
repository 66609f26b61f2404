//! `exmy sweep`: a grid of runs, divided among processes.

use crate::settings::Work;
use crate::show::{self, Watcher};
use crate::stop::Stop;
use clap::Args;
use exmy::error::{Error, Result};
use exmy_lab::sweep::{Folder, Plan, Progress, Shard};
use exmy_train::train::config::Config;
use exmy_train::train::run::{Outcome, Watch};
use std::path::PathBuf;

/// Train a grid of configurations into one folder, alone or as one of many processes
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Arguments {
    /// TOML file: any keys of a run's config.toml, and lists of values in [grid]
    plan: PathBuf,
    /// Do the runs whose place is I modulo N; /N takes I from the batch system [default: all, or
    /// what SLURM_ARRAY_TASK_ID and _COUNT say]
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Folder of the results [default: runs/ and the plan's name without its ending]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with what nobody has begun when the share is done
    #[arg(long)]
    steal: bool,
    /// Show how far the sweep is, and do nothing
    #[arg(long, conflicts_with_all = ["shard", "steal"])]
    status: bool,
    /// Collect results into sweep.json, table.txt and loss.svg, and print the table
    #[arg(long, conflicts_with_all = ["shard", "steal", "status"])]
    merge: bool,
    /// Put what processes that are no more had begun back into the queue
    #[arg(long, conflicts_with_all = ["shard", "steal", "status", "merge"])]
    reclaim: bool,
    #[command(flatten)]
    work: Work,
}

const HELP: &str = "\
A plan:
  preset = \"nano\"
  steps = 300
  [grid]
  recipe = [\"f32\", \"mxfp8-e4m3\", \"nvfp4\"]
  lr = [1e-3, 1e-2]
  seed = [1, 2, 3]

The folder is put together by whichever process comes first. A process that was killed is started
again in the same way and goes on. When all runs are done, the last process writes the results.";

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let out = match &arguments.out {
        Some(path) => path.clone(),
        None => match arguments.plan.file_stem() {
            Some(stem) => PathBuf::from("runs").join(stem),
            None => return Err(Error::new("the plan has no name").hint("give --out DIR")),
        },
    };
    if arguments.status || arguments.merge || arguments.reclaim {
        return look(arguments, &Folder::read(&out)?);
    }
    let shard = Shard::choose(arguments.shard.as_deref(), |name| std::env::var(name).ok())
        .map_err(|error| Error::new(error.to_string()))?;
    let stop = Stop::listen()?;
    arguments.work.with_threads(|| {
        let plan = Plan::read(&arguments.plan)?;
        for cell in &plan.cells {
            show::refuse(&cell.config, &cell.name)?;
        }
        let folder = Folder::open(&out, &plan)?;
        let quiet = arguments.work.quiet;
        if !quiet {
            tell!("shard {shard} of {} runs in {}", plan.cells.len(), show::path(&out));
        }
        let mut shown = Shown { quiet, stop: &stop };
        if !folder.work(&plan, shard, arguments.steal, &mut shown)? {
            tell!("stopped; every step so far is kept, and the same command goes on");
            return Ok(stop.code());
        }
        let status = folder.status()?;
        if status.queued.is_empty() && status.claimed.is_empty() {
            show::result(&folder.merge()?)?;
        } else if !quiet {
            let (queued, claimed) = (status.queued.len(), status.claimed.len());
            tell!("share done; of the others {queued} are not begun and {claimed} at work");
        }
        Ok(0)
    })
}

/// What needs no plan: the folder says it all.
fn look(arguments: &Arguments, folder: &Folder) -> Result<u8> {
    if arguments.merge {
        show::result(&folder.merge()?)?;
    } else if arguments.reclaim {
        show::result(&format!("{} put back\n", folder.reclaim()?))?;
    } else {
        let status = folder.status()?;
        let (queued, claimed) = (status.queued.len(), status.claimed.len());
        let mut text =
            format!("{} done, {claimed} claimed, {queued} not begun\n", status.done.len());
        for (name, shard, at_work) in &status.claimed {
            let steps = folder.run(name).metrics()?.last().map_or(0, |line| line.step);
            let work = if *at_work { "at work" } else { "nobody seen at work" };
            text += &format!("{name}: shard {shard}, {work}, recorded up to step {steps}\n");
        }
        for name in &status.lost {
            text += &format!("{name}: done, without its summary.json; the sweep makes it anew\n");
        }
        show::result(&text)?;
    }
    Ok(0)
}

/// Shows each run as `exmy train` does.
struct Shown<'a> {
    quiet: bool,
    stop: &'a Stop,
}

impl Progress for Shown<'_> {
    fn begin(&mut self, index: usize, count: usize, config: &Config) -> Box<dyn Watch + '_> {
        show::shortage(config);
        Box::new(Watcher::new(config, (index, count), self.quiet, self.stop))
    }

    fn end(&mut self, _: &Outcome) {}
}
