//! `exmy sweep`: a grid of runs, divided among processes.

use crate::phase::Phase;
use crate::settings::{Jobs, Work};
use crate::show::{self, Watcher};
use crate::stop::Stop;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::device::Place;
use exmy_lab::gather::conditions;
use exmy_lab::runner::{self, OutFolder, Progress, Run, Runner, Shard, Train};
use exmy_lab::sweep::Plan;
use exmy_train::train::data::Dataset;
use exmy_train::train::run::{Folder, Outcome};
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
    /// Go on with what nobody works on when the share is done
    #[arg(long)]
    steal: bool,
    /// Show how far the sweep is, and do nothing
    #[arg(long, conflicts_with_all = ["shard", "steal", "jobs"])]
    status: bool,
    /// Collect results into manifest.json, table.txt and loss.svg, and print the table
    #[arg(long, conflicts_with_all = ["shard", "steal", "status", "jobs"])]
    merge: bool,
    /// This process is one of several that train each run together, as torchrun or Slurm started it: rank 0
    /// does what the command says
    #[arg(long)]
    ranks: bool,
    #[command(flatten)]
    jobs: Jobs,
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

Processes share the folder and keep out of each other's runs. A process that was killed is started
again in the same way and goes on. When all runs are done, the last process writes the results.";

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    let out = match &arguments.out {
        Some(path) => path.clone(),
        None => match arguments.plan.file_stem() {
            Some(stem) => PathBuf::from("runs").join(stem),
            None => return Err(Error::new("the plan has no name").hint("give --out DIR")),
        },
    };
    if arguments.status || arguments.merge {
        return look(arguments, OutFolder::read_sweep(&out)?);
    }
    let shard = Shard::choose(arguments.shard.as_deref(), |name| std::env::var(name).ok())
        .map_err(Error::from_cause)?;
    let stop = stop.looked_at();
    let work = |place: Place| {
        let jobs = place.at_once(arguments.jobs.jobs, 1)?;
        let quiet = arguments.work.quiet;
        let reading = Phase::begin("reading the plan and its data", quiet);
        let plan = Plan::read(&arguments.plan)?;
        drop(reading);
        let runs = plan.runs.iter().map(|run| (run.name.as_str(), &run.config));
        runner::refuse_impossible(runs, &place)?;
        let mut folder = OutFolder::of_sweep(&out, &plan)?;
        if !quiet {
            say!("shard {shard} of {} runs in {}", plan.runs.len(), printable_path(&out));
        }
        let shown = Shown {
            runs: &plan.runs,
            names: conditions(&plan.runs),
            quiet,
            several: jobs > 1,
            stop,
            place: &place,
        };
        let runner = Runner::new(out.join("runs")).with_shard(shard).stealing(arguments.steal);
        let runner = runner.on(place.clone()).with_jobs(jobs);
        if runner.work(&plan.runs, None, &shown)?.stopped {
            say!("stopped; every step so far is kept, and the same command goes on");
            return Ok(show::code_of_stop(stop));
        }
        let status = folder.status()?;
        if status.done.len() == plan.runs.len() {
            return conclude(&mut folder, quiet);
        }
        if !quiet {
            let (fresh, begun) = (status.fresh.len(), status.at_work.len() + status.stopped.len());
            say!("share done; of the others {fresh} are not begun and {begun} not complete");
        }
        Ok(0)
    };
    arguments.work.with_threads(|| arguments.work.on_place(arguments.ranks, stop, work))
}

/// Collects the results and shows them; the exit code.
fn conclude(folder: &mut OutFolder, quiet: bool) -> Result<u8> {
    let drawing = Phase::begin("drawing the curves", quiet);
    let unwritten = folder.conclude()?;
    drop(drawing);
    unwritten.iter().for_each(show::error);
    show::result(&folder.table())?;
    Ok(show::code(&unwritten))
}

/// What needs no plan: the folder says it all.
fn look(arguments: &Arguments, mut folder: OutFolder) -> Result<u8> {
    if arguments.merge {
        return conclude(&mut folder, arguments.work.quiet);
    }
    let status = folder.status()?;
    let [done, at_work, stopped, fresh] =
        [&status.done, &status.at_work, &status.stopped, &status.fresh].map(Vec::len);
    let mut text =
        format!("{done} done, {at_work} at work, {stopped} stopped, {fresh} not begun\n");
    for (names, state) in [(&status.at_work, "at work"), (&status.stopped, "stopped")] {
        for name in names {
            let metrics = Folder::new(folder.path().join(name)).metrics()?;
            let step = metrics.last().map_or(0, |line| line.step);
            text += &format!("{name}: {state}, recorded up to step {step}\n");
        }
    }
    show::result(&text)?;
    Ok(0)
}

/// Shows each run as `exmy train` does.
struct Shown<'a> {
    runs: &'a [Run],
    /// What they are called but for their seeds.
    names: Vec<String>,
    quiet: bool,
    /// Whether runs are trained at once: one line each, when it is complete.
    several: bool,
    stop: &'a Stop,
    place: &'a Place,
}

impl Progress for Shown<'_> {
    fn run(&self, index: usize, _: &Dataset, train: Train<'_>) -> Result<Outcome> {
        let config = &self.runs[index].config;
        show::cost(config, self.place);
        let (quiet, place) = (self.quiet || self.several, (index, self.runs.len()));
        let known = self.runs[..index].iter().map(|run| &run.config.recipe);
        let run = (&*self.names[index], config);
        let outcome = train(&mut Watcher::new(run, place, known, quiet, self.stop))?;
        if self.several && !self.quiet && outcome.summary.is_some() {
            let (name, steps) = (&self.runs[index].name, outcome.steps);
            say!("{name}: {steps} steps in {:.1} s", outcome.train_seconds);
        }
        Ok(outcome)
    }

    fn goes_on(&self) -> bool {
        !self.stop.is_asked()
    }
}
