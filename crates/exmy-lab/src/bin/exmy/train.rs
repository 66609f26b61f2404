//! `exmy train`: from arguments to configurations to runs to a table.

use crate::DIVERGED;
#[cfg(unix)]
use crate::exhausted;
use crate::phase::Phase;
use crate::recipes;
use crate::settings::Work;
use crate::show::{self, Watcher};
use crate::stop::{STOPPED, Stop};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use exmy_lab::device::{Place, other_settings};
use exmy_lab::gather::conditions;
use exmy_lab::runner::{self, OutFolder, Progress, Run, Runner, Train, find_run};
use exmy_train::train::check::check_run;
#[cfg(unix)]
use exmy_train::train::checkpoint;
use exmy_train::train::config::{Config, read_table};
use exmy_train::train::data::{Dataset, Source};
use exmy_train::train::preset::{PRESETS, preset};
use exmy_train::train::profile::StepProfile;
use exmy_train::train::run::{self, Folder, Outcome, intact};
use exmy_train::train::start;
use exmy_train::train::{fit, memory};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What is compared when no recipe is given.
const DEFAULT_RECIPES: &str = "f32,mxfp8-e4m3,nvfp4,bitred-e8m3";

#[derive(Args)]
#[command(after_long_help = long_help())]
pub(crate) struct Arguments {
    /// Text to learn: a file, a folder, token files (of `exmy data`; .bin of nanoGPT or llm.c),
    /// synthetic:SEED, a language made by the program, or recall:SEED, a memory task [default: synthetic]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Number formats of the linear layers, separated by commas; the first is what the others are
    /// compared with [default: f32,mxfp8-e4m3,nvfp4,bitred-e8m3]
    #[arg(long, value_name = "A,B,...")]
    recipe: Option<String>,
    /// Network and training to start from [default: nano]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Optimizer steps; the warm-up shrinks in proportion
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = steps)]
    steps: Option<u64>,
    /// Peak learning rates, separated by commas; the final one keeps its ratio to each
    #[arg(long, value_name = "X,...", allow_negative_numbers = true)]
    #[arg(value_delimiter = ',', value_parser = rate)]
    lr: Vec<f64>,
    /// Seed of the initial weights, the batches and stochastic rounding [default: 1]
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(..1 << 63)
    )]
    seed: Option<u64>,
    /// Train N seeds of each: --seed and those after it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: Option<u64>,
    /// Safetensors file (of PyTorch, Hugging Face or exmy) with weights to begin with
    #[arg(long, value_name = "FILE")]
    init_from: Option<PathBuf>,
    /// Go on from a run's checkpoint, with the same batches and its configuration, under another
    /// recipe: the run's folder, @ and the step
    #[arg(long, value_name = "RUN@STEP", conflicts_with_all = [
        "data", "preset", "seed", "seeds", "init_from"
    ])]
    branch: Option<String>,
    /// Folder to create for the results [default: the next free of runs/0001, runs/0002, ...]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// TOML file with any keys of a run's config.toml
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Change one key of the configuration, for example train.batch=16; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Continue every unfinished run in DIR
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "data", "recipe", "preset", "steps", "lr", "seed", "seeds", "init_from", "branch", "out",
        "config", "set"
    ])]
    resume: Option<PathBuf>,
    /// Exit with 3 if a run diverged, which is a result and no failure otherwise
    #[arg(long)]
    fail_on_divergence: bool,
    /// Begin also where memory may not do; not where a limit of addresses (ulimit -v) leaves less than the
    /// weights, gradients, moments and activations take at least
    #[arg(long)]
    force: bool,
    /// Print where the time of the steps went, evaluations included, and the memory held
    #[arg(long)]
    profile: bool,
    /// This process is one of several that train each run together, as torchrun or Slurm started it: rank 0
    /// does what the command says
    #[arg(long)]
    ranks: bool,
    #[command(flatten)]
    work: Work,
}

fn long_help() -> String {
    let mut text = String::from("Presets:\n");
    for preset in PRESETS {
        text += &format!("  {:<12} {}\n", preset.name, preset.about);
    }
    text += "\nRecipes:\n  ";
    text += &exmy_train::recipe::NAMED.join(", ");
    text +=
        "\n  any format (e5m2, e3m4@rtz), any block format (e2m1/16:e8m0), each also +out=bf16\n";
    text += "\nExamples:\n  exmy train\n  \
             exmy train --data book.txt --recipe f32,mxfp4 --preset micro --steps 1000\n  \
             exmy train --recipe bf16,mxfp8-e4m3 --seeds 8 --lr 1e-3,1e-2\n  \
             exmy train --branch runs/0002/mxfp4-s1@500 --recipe bf16\n  \
             exmy train --resume runs/0001\n";
    text
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: Arguments, stop: &Stop) -> Result<u8> {
    let stop = stop.looked_at();
    let work = |place: Place| {
        let reading = || Phase::begin("reading the data", arguments.work.quiet);
        // One from the beginning until the first run: between two there would be a silence.
        let mut first = Some(reading());
        let folders = match &arguments.resume {
            Some(path) => OutFolder::open(path)?,
            None => vec![plan(&arguments)?],
        };
        let mut code = 0;
        for folder in folders {
            let (path, runs) = (folder.path().to_owned(), folder.folders());
            let is_new = arguments.resume.is_none();
            #[cfg(unix)]
            {
                let (path, runs) = (path.clone(), runs.clone());
                exhausted::before_the_end(move || {
                    if is_new {
                        // The one that is at work is this process.
                        take_away(&path, &runs, 1);
                    }
                    kept(&path, &runs)
                });
            }
            let reading = first.take().unwrap_or_else(reading);
            let result = train_all(folder, &arguments, &place, stop, reading);
            if result.is_err() && is_new {
                take_away(&path, &runs, 0);
            }
            code = result?.max(code);
            // Also where another rank was.
            if stop.is_asked() || code == STOPPED {
                break;
            }
        }
        Ok(code)
    };
    arguments.work.with_threads(|| arguments.work.on_place(arguments.ranks, stop, work))
}

/// Removes an output folder that was just made, in which no step was trained and at most so many runs are at
/// work.
fn take_away(out: &Path, runs: &[Folder], at_work: usize) {
    let is_unused =
        |run: &Folder| run.metrics().is_ok_and(|lines| lines.iter().all(|line| line.step == 0));
    let is_at_work = |run: &&Folder| run::is_at_work(run);
    if runs.iter().all(is_unused) && runs.iter().filter(is_at_work).count() <= at_work {
        // The error that led here is what matters.
        let _ = std::fs::remove_dir_all(out);
    }
}

/// What is kept of runs that ended early, if some steps are.
#[cfg(unix)]
fn kept(out: &Path, runs: &[Folder]) -> Option<String> {
    let has_steps =
        |run: &Folder| checkpoint::list(&run.checkpoints()).is_ok_and(|steps| !steps.is_empty());
    runs.iter().any(has_steps).then(|| {
        let out = printable_path(out);
        format!("steps up to the last checkpoint are kept; exmy train --resume {out} goes on\n")
    })
}

/// A number of steps, also as `1e3`.
fn steps(text: &str) -> Result<u64, String> {
    const MOST: f64 = (1_u64 << 53) as f64;
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..=MOST).contains(number);
    let number = || text.parse().ok().filter(whole).map(|number| number as u64);
    let found = text.parse().ok().or_else(number);
    found.ok_or_else(|| "steps are a whole number from 1 to 2^36, for example 1000".to_owned())
}

/// A learning rate; there may be blanks behind the comma before it.
fn rate(text: &str) -> Result<f64, String> {
    let found = text.trim().parse();
    found.map_err(|_| "a rate is a number as 1e-3; several are separated by commas".to_owned())
}

/// A path as text: records are text, so it must be UTF-8.
fn utf8<'a>(option: &str, path: &'a Path) -> Result<&'a str> {
    path.to_str().ok_or_else(|| {
        Error::new(format!("{option} {}: the path is not UTF-8", printable_path(path)))
            .hint("paths are written into records; rename the file or give it a link")
    })
}

/// The configuration that preset, file and options describe for one learning rate, and the text of
/// its recipes.
fn configure(arguments: &Arguments, lr: Option<f64>) -> Result<(Config, String)> {
    let mut recipes = arguments.recipe.clone();
    let mut name = arguments.preset.clone();
    let mut changes = None;
    if let Some(path) = &arguments.config {
        let text = given::text(path, given::SETTINGS).map_err(|error| {
            Error::io("read", path, error)
                .hint("--config takes a TOML file with any keys of a run's config.toml")
        })?;
        let context = |error: Error| Error::new(format!("{}: {error}", printable_path(path)));
        let mut table = read_table(&text).map_err(context)?;
        if table.contains_key("grid") {
            return Err(Error::new(format!("{} has a [grid]", printable_path(path))).hint(
                format!("it is a plan of many runs: `exmy sweep {}`", printable_path(path)),
            ));
        }
        // These two may say more in a file given by a person than in a run's own record.
        if let Some(toml::Value::String(text)) = table.remove("recipe") {
            recipes.get_or_insert(text);
        }
        if let Some(toml::Value::String(text)) = table.remove("preset") {
            name.get_or_insert(text);
        }
        changes = Some((toml::to_string(&table).unwrap_or_default(), path));
    }
    let mut config = match &arguments.branch {
        Some(branch) => branch_off(branch)?,
        None => preset(name.as_deref().unwrap_or("nano"))?,
    };
    if let Some((text, path)) = changes {
        config = config
            .overlaid(&text)
            .map_err(|error| Error::new(format!("{}: {error}", printable_path(path))))?;
    }
    if let Some(path) = &arguments.data {
        utf8("--data", path)?;
        config.data.source = Source::from_os(path.as_os_str()).map_err(Error::from_cause)?;
        config.data.fingerprint.clear();
    }
    if let Some(steps) = arguments.steps {
        config.train = config.train.with_steps(steps);
    }
    if let Some(lr) = lr {
        config.train = config.train.with_lr(lr);
    }
    if let Some(seed) = arguments.seed {
        config.seed = seed;
    }
    for setting in &arguments.set {
        match setting.split_once('=') {
            Some((key, text)) if key.trim() == "recipe" => recipes = Some(text.trim().to_owned()),
            _ => config = config.with_setting(setting)?,
        }
    }
    if let Source::Path(path) = &config.data.source {
        // A resume may be started from another folder.
        let whole = std::fs::canonicalize(path).map_err(|error| {
            Error::io("read", path, error)
                .hint("--data takes a text file, a folder of text, or a .bin token file")
        })?;
        utf8("--data", &whole)?;
        config.data.source = Source::Path(whole);
    }
    if let Some(path) = &arguments.init_from {
        config.start.weights = utf8("--init-from", &find_run(path))?.to_owned();
    }
    config.validate()?;
    let recipes = recipes.unwrap_or_else(|| match &arguments.branch {
        Some(_) => config.recipe.to_string(),
        None => DEFAULT_RECIPES.to_owned(),
    });
    Ok((config, recipes))
}

/// The configuration of a branch, from `RUN@STEP`.
fn branch_off(text: &str) -> Result<Config> {
    let parts = text.rsplit_once('@').and_then(|(run, step)| Some((run, step.parse().ok()?)));
    let (run, step) = parts.ok_or_else(|| {
        Error::new(format!("--branch {text:?} is not a run and a step"))
            .hint("write RUN@STEP, for example runs/0001/f32-s1@500")
    })?;
    start::branch(&Folder::new(find_run(Path::new(run))), step)
}

/// Refuses a run that memory will not do for, and says whether it can be begun all the same.
fn enough_memory(config: &Config, arguments: &Arguments) -> Result<()> {
    let Some(error) = fit::refusal(config) else { return Ok(()) };
    match (fit::impossible(config), arguments.force) {
        (None, true) => Ok(()),
        (None, false) => Err(Error::from_cause(error).hint("--force begins all the same")),
        (Some(impossible), true) => Err(impossible),
        (Some(_), false) => Err(error),
    }
}

/// Checks everything that can be checked, then creates the output folder.
fn plan(arguments: &Arguments) -> Result<OutFolder> {
    let (mut config, recipes) = configure(arguments, arguments.lr.first().copied())?;
    let others = arguments.lr.iter().skip(1).map(|&lr| Ok(configure(arguments, Some(lr))?.0.train));
    let others = others.collect::<Result<Vec<_>>>()?;
    let recipes = recipes::list(&recipes)?;
    if let Some(path) = &arguments.out {
        utf8("--out", path)?;
        runner::refuse_used(path)?;
    }
    let data = run::load_data(&mut config)?;
    if !data.bytes
        && let Some(model) = config.model.decoder_mut()
    {
        model.vocab = data.vocab;
    }
    enough_memory(&config, arguments)?;
    start::settle(&mut config)?;
    if !config.start.weights.is_empty() {
        let path = Path::new(&config.start.weights);
        let layout = config.model.layout();
        memory::ensure(layout.len(), "the weights")?;
        let matching = start::load_matching(path, &layout, &mut vec![0.0; layout.len()])?;
        show::matching(path, &matching);
    }
    let mut configs = Vec::new();
    for recipe in recipes {
        for train in std::iter::once(&config.train).chain(&others) {
            for seed in config.seed..config.seed.saturating_add(arguments.seeds.unwrap_or(1)) {
                let (recipe, train) = (recipe.clone(), train.clone());
                configs.push(Config { recipe, train, seed, ..config.clone() });
            }
        }
    }
    for config in &configs {
        check_run(config, &data)?;
    }
    let reference = data.reference.map(|reference| reference.validation);
    match &arguments.out {
        Some(path) => OutFolder::create(path, &configs, &data.description, reference),
        None => {
            OutFolder::create_numbered(Path::new("runs"), &configs, &data.description, reference)
        }
    }
}

/// Trains every run of an output folder, then writes and prints the results.
fn train_all(
    mut out: OutFolder,
    arguments: &Arguments,
    place: &Place,
    stop: &Stop,
    reading: Phase,
) -> Result<u8> {
    let folders = out.folders();
    if arguments.resume.is_some() {
        show::unchecked(&folders);
    }
    let mut runs = Vec::new();
    for (i, folder) in folders.iter().enumerate() {
        let config = folder.config()?;
        if out.is_meant(i) {
            match folder.summary()? {
                Some(_) => intact::check(folder, &config)?,
                None => enough_memory(&config, arguments)
                    .and_then(|()| place.refuse(&config))
                    .map_err(|error| match arguments.resume {
                        Some(_) => Error::from_cause(error).hint(other_settings(folder)),
                        None => error,
                    })?,
            }
        }
        let name = out.manifest().runs[i].folder.clone();
        runs.push(Run { name, config, parent: None });
    }
    let meant: Vec<usize> = (0..runs.len()).filter(|&i| out.is_meant(i)).collect();
    let wanted: Vec<Run> = meant.iter().map(|&i| runs[i].clone()).collect();
    let collected = Mutex::new(Collected {
        outcomes: vec![None; runs.len()],
        printed: Ok(()),
        reading: Some(reading),
    });
    let shown = Shown {
        out: out.path(),
        runs: &runs,
        names: conditions(&runs),
        meant: &meant,
        arguments,
        stop,
        place,
        collected,
    };
    let end = Runner::new(out.path()).on(place.clone()).work(&wanted, None, &shown)?;
    let Collected { outcomes, printed, reading } =
        shown.collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    drop(reading);
    if !end.stopped && !end.left.is_empty() {
        // Whoever has them may have come to their end meanwhile.
        let is_open =
            |name: &&String| !matches!(Folder::new(out.path().join(name)).summary(), Ok(Some(_)));
        if let Some(name) = end.left.iter().find(is_open) {
            let folder = printable_path(&out.path().join(name));
            if outcomes.iter().all(Option::is_none) {
                return Err(Error::new(format!("{folder} is being trained"))
                    .hint("another process works on it; wait for it or stop it"));
            }
            say!(
                "share done; another process is at {folder}, and the last to end writes the results"
            );
            return Ok(0);
        }
    }
    let drawing = Phase::begin("drawing the curves", arguments.work.quiet);
    let unwritten = out.conclude()?;
    drop(drawing);
    unwritten.iter().for_each(show::error);
    if end.stopped {
        show::stopped(out.path());
        return Ok(show::code_of_stop(stop));
    }
    let unit = runs.first().map_or("", |run| run.config.model.loss_unit());
    printed.and(show::result(&show::table(&out, &outcomes, unit, place)))?;
    let mut results = out.manifest().runs.iter().filter_map(|entry| entry.result.as_ref());
    let diverged = results.any(|result| result.reason.is_some());
    Ok(match diverged && arguments.fail_on_divergence {
        true => DIVERGED,
        false => show::code(&unwritten),
    })
}

/// Shows each run while it is trained.
struct Shown<'a> {
    out: &'a Path,
    runs: &'a [Run],
    /// What they are called but for their seeds.
    names: Vec<String>,
    /// The places of those that are trained.
    meant: &'a [usize],
    arguments: &'a Arguments,
    stop: &'a Stop,
    place: &'a Place,
    collected: Mutex<Collected>,
}

/// What is known when the runs are trained.
struct Collected {
    outcomes: Vec<Option<Outcome>>,
    /// What cannot be printed is reported when the work is done.
    printed: Result<()>,
    /// Until the first run begins.
    reading: Option<Phase>,
}

impl Progress for Shown<'_> {
    fn run(&self, index: usize, data: &Dataset, train: Train<'_>) -> Result<Outcome> {
        let (index, quiet) = (self.meant[index], self.arguments.work.quiet);
        let (config, count) = (&self.runs[index].config, self.runs.len());
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        collected.reading = None;
        if !quiet && collected.outcomes.iter().all(Option::is_none) {
            show::header(self.out, config, data, count);
        }
        show::cost(config, self.place);
        let known = self.runs[..index].iter().map(|run| &run.config.recipe);
        let run = (&*self.names[index], config);
        let mut watcher = Watcher::new(run, (index, count), known, quiet, self.stop);
        let (outcome, profile) = if self.arguments.profile {
            if !matches!(self.place, Place::Cpu) {
                exmy_cuda::times::begin();
            }
            let (outcome, profile) = StepProfile::of_run(config, || train(&mut watcher));
            (outcome?, Some(profile))
        } else {
            (train(&mut watcher)?, None)
        };
        watcher.finish(&outcome);
        if let Some(profile) = profile {
            let printed = show::result(&format!(
                "{}\n{profile}\n{}",
                config.recipe,
                exmy_cuda::times::table()
            ));
            collected.printed = std::mem::replace(&mut collected.printed, Ok(())).and(printed);
        }
        collected.outcomes[index] = Some(outcome.clone());
        Ok(outcome)
    }

    fn goes_on(&self) -> bool {
        !self.stop.is_asked()
    }
}
