//! `exmy study`: what a paper measured, run again.

mod saving;

use self::saving::Saving;
use crate::bar::bar;
use crate::phase::Phase;
use crate::provenance::provenance;
use crate::settings::{Jobs, Work};
use crate::show::{self, wrapped};
use crate::stop::{Held, Stop};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::amounts::{counted, duration, operations};
use exmy_lab::curves::Curves;
use exmy_lab::estimate::{Cost, Estimate};
use exmy_lab::finding::Experiment;
use exmy_lab::report::{self, Shown};
use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::runner::{self, Progress, Run, Shard, Train, share};
use exmy_lab::store::{Store, distinct};
use exmy_lab::studies::{ALL, Paper, by_name};
use exmy_lab::study_scale::StudyScale;
use exmy_lab::table::aligned;
use exmy_train::train::data::{Dataset, Source};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Outcome, Watch};
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Run the experiments of a paper and write their report: figures, tables, verdicts
#[derive(Args)]
#[command(after_long_help = help())]
pub(crate) struct Arguments {
    /// Which study; without one, list them with their figures
    study: Option<String>,
    /// Only these figures, separated by commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    figure: Vec<String>,
    /// How large: smoke (seconds), small (an hour of two cores), paper (the sizes at which it is
    /// claimed, for a cluster) [default: small]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,
    /// Text to learn: a file, a folder, or synthetic:SEED [default: synthetic]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Train the runs of part I (0 to N - 1) of N only, and write no report; /N takes I from the batch system
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Folder of the runs and the report [default: runs/ and the study's name and scale]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder of the report, if not that of the runs. A report of the same study there is replaced
    /// and nothing else: the page as a whole, pictures and tables of the figures that are drawn
    /// again; those of its other figures stay
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Show what would be trained and what it costs, and do nothing
    #[arg(long)]
    plan: bool,
    /// Draw from these curves in place of runs, and train nothing; without --figure all that they have,
    /// at their scale. Verdicts and tables are those of the runs, pictures of curves have fewer points.
    /// With --save-curves, --shard or --plan it is about the runs that these curves lack
    #[arg(long, value_name = "FILE")]
    curves: Option<PathBuf>,
    /// Also write the curves of all runs, those of --curves included, to a file for --curves, a hundredth
    /// of their size: losses and gradient norms of every tenth step and of all steps near a divergence, and
    /// probes where a figure needs them. Where training is stopped, those of the complete runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "shard"])]
    save_curves: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    work: Work,
}

fn help() -> String {
    let mut text = String::from("Studies:\n");
    for paper in ALL {
        let ids: Vec<&str> = paper.figures.iter().map(|figure| figure.id()).collect();
        text += &format!("  {}: {}\n    {}\n", paper.name, paper.title, ids.join(", "));
    }
    text += "\nRuns are shared between figures, found again by their contents, and go on where they were \
             stopped: the same command continues a study.";
    text
}

/// The figures of a study that are wanted.
fn chosen(paper: &Paper, ids: &[String]) -> Result<Vec<&'static dyn Experiment>> {
    if ids.is_empty() {
        return Ok(paper.figures.to_vec());
    }
    if ids.iter().any(|id| id.trim().is_empty()) {
        return Err(Error::new(format!("--figure {:?} has an empty name", ids.join(",")))
            .hint("separate figures by single commas, with none at the end"));
    }
    let all: Vec<&str> = paper.figures.iter().map(|figure| figure.id()).collect();
    let find = |id: &String| {
        let is_it = |figure: &&&dyn Experiment| figure.id().eq_ignore_ascii_case(id.trim());
        let found = paper.figures.iter().find(is_it);
        found.copied().ok_or_else(|| {
            Error::new(format!("{} has no figure {id:?}", paper.name))
                .hint(format!("there are {}", all.join(", ")))
        })
    };
    let mut figures: Vec<&'static dyn Experiment> = Vec::new();
    for figure in ids.iter().map(find).collect::<Result<Vec<_>>>()? {
        // What is named twice is drawn once.
        if !figures.iter().any(|known| known.id() == figure.id()) {
            figures.push(figure);
        }
    }
    Ok(figures)
}

/// Whether what curves lack is trained.
fn adds(arguments: &Arguments) -> bool {
    arguments.save_curves.is_some() || arguments.shard.is_some() || arguments.plan
}

/// What all runs have in common, those of curves included, and the text.
///
/// # Errors
/// If the text cannot be read, or is not that of the curves.
fn read_setting(
    scale: StudyScale,
    curves: Option<&Curves>,
    arguments: &Arguments,
) -> Result<(Setting, Dataset)> {
    let known = curves.map(Curves::setting).transpose()?.flatten();
    // Nothing is trained on it.
    if let Some(known) = &known
        && arguments.data.is_none()
        && !adds(arguments)
    {
        return Ok((known.clone(), Dataset::drawn()));
    }
    let source = match &arguments.data {
        None => Source::default(),
        Some(path) => Source::from_os(path.as_os_str()).map_err(Error::from_cause)?,
    };
    let (setting, data) = Setting::new(scale, source)?;
    if let Some(known) = known.filter(|known| adds(arguments) && known.text() != setting.text()) {
        let (own, other) = (setting.text(), known.text());
        let what = format!(
            "the curves are of the text {} ({}), not of {} ({})",
            other.name, other.fingerprint, own.name, own.fingerprint
        );
        return Err(Error::new(what).hint("name that text with --data"));
    }
    Ok((setting, data))
}

/// The figures that are drawn from curves: those that are wanted, or all that the curves have.
///
/// # Errors
/// If the curves lack one, or are of another scale.
fn chosen_of(
    paper: &Paper,
    curves: &Curves,
    arguments: &Arguments,
) -> Result<Vec<&'static dyn Experiment>> {
    let (file, has) = (printable_path(curves.path()), curves.figures().join(", "));
    if let Some(asked) = &arguments.scale
        && asked.parse::<StudyScale>()? != curves.scale()
    {
        let what = format!("{file} has curves of scale {}, not {asked}", curves.scale());
        return Err(Error::new(what).hint("leave --scale out"));
    }
    let wanted = if arguments.figure.is_empty() { curves.figures() } else { &arguments.figure };
    if wanted.is_empty() {
        let what = format!("{file} has no figure of which all runs are there");
        return Err(
            Error::new(what).hint("name the figure that is to be completed, with --save-curves")
        );
    }
    let mut figures = chosen(paper, wanted)?;
    if arguments.figure.is_empty() {
        // In the order of the paper; the file has them as they were added.
        figures.sort_by_key(|figure| paper.figures.iter().position(|of| of.id() == figure.id()));
    }
    if adds(arguments) {
        return Ok(figures);
    }
    let lacks = |figure: &&&dyn Experiment| !curves.figures().iter().any(|id| id == figure.id());
    match figures.iter().find(lacks) {
        Some(figure) => Err(Error::new(format!("{file} has no curves for {}", figure.id()))
            .hint(format!("it has {has}"))),
        None => Ok(figures),
    }
}

/// An option that says something about a study, if one is given.
fn of_a_study(arguments: &Arguments) -> Option<&'static str> {
    let given = [
        ("--figure", !arguments.figure.is_empty()),
        ("--scale", arguments.scale.is_some()),
        ("--data", arguments.data.is_some()),
        ("--shard", arguments.shard.is_some()),
        ("--out", arguments.out.is_some()),
        ("--report", arguments.report.is_some()),
        ("--plan", arguments.plan),
        ("--curves", arguments.curves.is_some()),
        ("--save-curves", arguments.save_curves.is_some()),
    ];
    given.into_iter().find_map(|(name, given)| given.then_some(name))
}

/// Tells what a page that is replaced has and the new one will not have.
///
/// # Errors
/// If it is of another scale: a page of `small` takes an hour, and its pictures would stay beside one of
/// `smoke`.
fn tell_replaced(
    standing: &Shown,
    figures: &[&dyn Experiment],
    scale: StudyScale,
    folder: &Path,
) -> Result<()> {
    let plural =
        |count: usize| if count == 1 { "1 figure".into() } else { format!("{count} figures") };
    let (page, had) = (folder.join("report.html"), plural(standing.figures.len()));
    if let Some(before) = standing.scale.filter(|before| *before != scale) {
        let text = format!(
            "{} is a report of {had} at scale {before} and would be lost to one at scale {scale}",
            printable_path(&page)
        );
        return Err(Error::new(text).hint(
            "name another folder with --report, or take that page and the files beside it away",
        ));
    }
    let is_other = |id: &&str| !figures.iter().any(|figure| figure.id() == *id);
    let others: Vec<&str> = standing.figures.iter().map(String::as_str).filter(is_other).collect();
    if !others.is_empty() {
        say!(
            "replaces {} of {had} by one of {}; pictures and tables of {} stay beside it",
            printable_path(&page),
            plural(figures.len()),
            others.join(", ")
        );
    }
    Ok(())
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|paper| paper.name).collect()
}

/// All studies with their figures.
fn list() -> String {
    let (mut text, width) = (String::new(), crate::rows::width().unwrap_or(usize::MAX));
    let mut line = |line: String, indent| text += &(wrapped(&line, width, indent) + "\n");
    for paper in ALL {
        line(format!("{}: {}", paper.name, paper.title), 2);
        line(format!("  {}", paper.source), 2);
        for figure in paper.figures {
            line(format!("  {:<8} {}", figure.id(), figure.title()), 11);
        }
    }
    text
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    let Some(name) = &arguments.study else {
        if let Some(option) = of_a_study(arguments) {
            return Err(Error::new(format!("{option} is about a study, and none is named"))
                .hint(format!("there are {}", names().join(", "))));
        }
        show::result(&list())?;
        return Ok(0);
    };
    let paper = by_name(name).ok_or_else(|| {
        Error::new(format!("there is no study {name:?}"))
            .hint(format!("there are {}", names().join(", ")))
    })?;
    let reading = arguments.curves.as_ref();
    let reading = reading.map(|_| Phase::begin("reading the curves", arguments.work.quiet));
    let curves =
        arguments.curves.as_ref().map(|path| Curves::read(paper.name, path)).transpose()?;
    drop(reading);
    let (figures, scale) = match &curves {
        Some(curves) => (chosen_of(paper, curves, arguments)?, curves.scale()),
        None => {
            let scale = arguments.scale.as_deref().unwrap_or("small").parse()?;
            (chosen(paper, &arguments.figure)?, scale)
        }
    };
    let shard = Shard::choose(arguments.shard.as_deref(), |name| std::env::var(name).ok())
        .map_err(Error::from_cause)?;
    let out = match &arguments.out {
        Some(path) => path.clone(),
        None => PathBuf::from("runs").join(format!("{}-{scale}", paper.name)),
    };
    let target = arguments.report.as_ref().unwrap_or(&out);
    let writes = shard == Shard::ALL && !arguments.plan;
    if writes && let Some(standing) = report::check(paper, &figures, target)? {
        tell_replaced(&standing, &figures, scale, target)?;
    }
    let stop = stop.looked_at();
    arguments.work.with_threads(|| {
        let quiet = arguments.work.quiet;
        let reading = Phase::begin("reading the data and the runs", quiet);
        let (setting, data) = read_setting(scale, curves.as_ref(), arguments)?;
        let data = Arc::new(data);
        let place = arguments.work.place()?;
        let jobs = place.at_once(arguments.jobs.jobs, exmy::parallel::threads())?;
        let saving = arguments.save_curves.as_deref();
        let saving = saving.map(|path| Saving::new(paper, path, &figures, curves.as_ref()));
        let store = match curves {
            Some(curves) if adds(arguments) => Store::new(&out).beside(Arc::new(curves)),
            Some(curves) => Store::drawn_from(Arc::new(curves)),
            None => Store::new(&out),
        };
        let mut planned = report::runs(&figures, &setting, &store)?;
        if let Some(saving) = &saving {
            saving.check(&setting, &store)?;
        }
        if writes {
            report::prepare(target)?;
        }
        drop(reading);
        // Once for each stage; of what is drawn from curves there is none.
        while store.has_folder() {
            let mut of_folder = store.of_folder(&planned)?;
            // Seed by seed: where training is stopped, all recipes have the first ones.
            of_folder.sort_by_key(|run| run.config.seed);
            let runs: Vec<Run> = of_folder.iter().map(RunConfig::run).collect();
            let own = share(&runs, shard);
            let mut left = Vec::new();
            for &i in &own {
                if !store.has(&of_folder[i])? {
                    left.push(of_folder[i].clone());
                }
            }
            let mut seconds = 0.0;
            if arguments.plan || !arguments.work.quiet && !left.is_empty() {
                let mut estimate = Estimate::new(&data);
                time(&mut estimate, &planned, quiet)?;
                let cost = estimate.of(&left)?;
                seconds = cost.seconds / jobs as f64;
                let text = plan(&figures, &setting, &mut estimate, &planned, cost, jobs)?;
                match arguments.plan {
                    true => show::result(&text)?,
                    false => say!("{}", text.trim_end()),
                }
            }
            if arguments.plan {
                return Ok(0);
            }
            let names: Vec<String> = left.iter().map(RunConfig::name).collect();
            let named = names.iter().map(String::as_str).zip(left.iter().map(|run| &run.config));
            runner::refuse_impossible(named, &place)?;
            store.describe(paper.name, scale, &runs)?;
            let counts = (own.len() - left.len(), own.len());
            let shown = Training::new(arguments.work.quiet, stop, &runs, counts, &left, seconds);
            let trainer =
                store.runner().with_jobs(jobs).with_shard(shard).waiting().on(place.clone());
            let end = trainer.work(&runs, Some(Arc::clone(&data)), &shown)?;
            shown.bar.finish_and_clear();
            if end.stopped {
                if let Some(saving) = &saving {
                    // Takes seconds, more than who is asked to end has otherwise.
                    let _held = stop.hold();
                    for line in saving.write((&setting, &store), false)? {
                        say!("{line}");
                    }
                }
                say!("stopped; every step so far is kept, and the same command goes on");
                return Ok(stop.code());
            }
            let all = report::runs(&figures, &setting, &store)?;
            if all.len() == planned.len() {
                break;
            }
            planned = all;
        }
        if shard != Shard::ALL {
            say!("share {shard} done; without --shard the same command writes the report");
            return Ok(0);
        }
        let provenance = provenance(Some(exmy::parallel::threads()));
        let drawn = Drawn::new(arguments.work.quiet, stop, figures.len());
        let findings = report::find(&figures, &setting, &store, |figure| drawn.figure(figure))?;
        drawn.bar.finish_and_clear();
        let Some(findings) = findings else {
            say!("stopped; all runs are kept, and the same command draws the report");
            return Ok(stop.code());
        };
        let writing = Phase::begin("writing the report", quiet);
        report::make(paper, &figures, (&setting, &store), &findings, target, &provenance)?;
        let saved = saving.map(|saving| saving.write((&setting, &store), quiet)).transpose()?;
        drop(writing);
        let mut text = String::new();
        let width = crate::rows::width().unwrap_or(usize::MAX);
        for (figure, found) in figures.iter().zip(&findings) {
            let (word, reason) = (found.verdict.word(), found.verdict.reason());
            let line = format!("{:<8} {}: {word}: {reason}", figure.id(), figure.title());
            text += &(wrapped(&line, width, 9) + "\n");
        }
        show::result(&text)?;
        if !arguments.work.quiet {
            say!("report: {}", printable_path(&target.join("report.html")));
        }
        for line in saved.into_iter().flatten() {
            say!("{line}");
        }
        Ok(0)
    })
}

/// Times a step of each kind of run; on a terminal a bar shows how many are done.
fn time(estimate: &mut Estimate<'_>, runs: &[RunConfig], quiet: bool) -> Result<()> {
    let kinds = estimate.untried(runs) as u64;
    if !quiet && kinds > 0 && !std::io::stderr().is_terminal() {
        say!("timing a step of each of {} of runs", counted(kinds, "kind"));
    }
    let bar = bar(
        kinds,
        "{spinner} timing a step of each kind of run {wide_bar:.cyan/dim} {pos}/{len}",
        quiet,
    );
    bar.tick();
    for run in runs {
        let known = estimate.untried(std::slice::from_ref(run)) == 0;
        estimate.of(std::slice::from_ref(run))?;
        bar.inc(u64::from(!known));
    }
    bar.finish_and_clear();
    Ok(())
}

/// What a plan costs, figure by figure and together.
fn plan(
    figures: &[&'static dyn Experiment],
    setting: &Setting,
    estimate: &mut Estimate<'_>,
    runs: &[RunConfig],
    left: Cost,
    jobs: usize,
) -> Result<String> {
    let mut lines = vec![["figure", "runs", "operations", "time here"].map(str::to_owned)];
    let mut line = |name: &str, cost: Cost, none: &str| {
        let of = |text: String, none: &str| if cost.runs == 0 { none.into() } else { text };
        let time = of(duration(cost.seconds / jobs as f64), none);
        lines.push([name.into(), cost.runs.to_string(), of(operations(cost.flops), "-"), time]);
    };
    for figure in figures {
        let none = if figure.is_of_larger_scale(setting) { "at a larger --scale" } else { "-" };
        line(figure.id(), estimate.of(&distinct(&figure.runs(setting)))?, none);
    }
    line("all", estimate.of(runs)?, "-");
    line("to do", left, "-");
    Ok(aligned(&lines.into_iter().map(Vec::from).collect::<Vec<_>>(), 1))
}

/// One bar for all figures that are read.
struct Drawn<'a> {
    bar: ProgressBar,
    stop: &'a Stop,
}

impl<'a> Drawn<'a> {
    fn new(quiet: bool, stop: &'a Stop, figures: usize) -> Self {
        let template = "{spinner} {wide_bar:.cyan/dim} {pos}/{len} figures read {msg}";
        Self { bar: bar(figures as u64, template, quiet), stop }
    }

    /// Shows the figure that is read next, if that is still wanted.
    fn figure(&self, figure: &dyn Experiment) -> bool {
        // The first one has none before it.
        if !self.bar.message().is_empty() {
            self.bar.inc(1);
        }
        self.bar.set_message(figure.id().to_owned());
        self.bar.tick();
        !self.stop.is_asked()
    }
}

/// One bar for all runs.
struct Training<'a> {
    bar: ProgressBar,
    stop: &'a Stop,
    lines: bool,
    quiet: bool,
    runs: &'a [Run],
    /// How many runs are complete, and of how many.
    done: AtomicUsize,
    count: usize,
    last: Mutex<Instant>,
}

impl<'a> Training<'a> {
    fn new(
        quiet: bool,
        stop: &'a Stop,
        runs: &'a [Run],
        (done, count): (usize, usize),
        left: &[RunConfig],
        seconds: f64,
    ) -> Self {
        let steps = left.iter().map(RunConfig::steps).sum();
        let bar =
            bar(steps, "{spinner} {wide_bar:.cyan/dim} {pos}/{len} steps {msg} {eta:>4}", quiet);
        let lines = !quiet && !std::io::stderr().is_terminal();
        if lines && !left.is_empty() {
            let (runs, time) = (counted(left.len() as u64, "run"), duration(seconds));
            say!("{runs} to train, about {time}");
        }
        let (done, last) = (AtomicUsize::new(done), Mutex::new(Instant::now()));
        Self { bar, stop, lines, quiet, runs, done, count, last }
    }
}

/// Moves the bar, and stops where that is asked for.
struct Step<'a> {
    training: &'a Training<'a>,
    /// While it is trained.
    held: Option<Held<'a>>,
}

impl Watch for Step<'_> {
    fn begin(&mut self) {
        self.held = Some(self.training.stop.hold());
    }

    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        self.training.bar.inc(1);
        self.training.goes_on()
    }

    fn phase(&mut self, _: &str) {}
}

impl Progress for Training<'_> {
    fn run(&self, index: usize, _: &Dataset, train: Train<'_>) -> Result<Outcome> {
        let outcome = train(&mut Step { training: self, held: None })?;
        if outcome.summary.is_some() {
            let (done, count) = (self.done.fetch_add(1, Ordering::Relaxed) + 1, self.count);
            self.bar.set_message(format!("{done} of {count} runs"));
            let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if self.lines && last.elapsed().as_secs() >= 10 {
                *last = Instant::now();
                let name = &self.runs[index].name;
                say!("{done} of {count} runs complete, {name} the last");
            }
        }
        Ok(outcome)
    }

    fn goes_on(&self) -> bool {
        !self.stop.is_asked()
    }

    fn waits(&self, runs: usize) {
        if !self.quiet {
            let runs = counted(runs as u64, "run");
            say!("waits for other processes, which work on {runs}");
        }
    }
}
