//! A page and pictures of any runs: what `exmy report` and `exmy plot` show.

use crate::amounts::duration;
use crate::comparison::{self, Curves};
use crate::finding::Table;
use crate::gather::{RecordedRun, quantities, states};
use crate::page::{Download, Page};
use crate::plot::{Axis, Figure};
use crate::provenance::Provenance;
use crate::remaining::Remaining;
use crate::runner::{self, Kind, Manifest, differ};
use crate::table;
use crate::timing::{Time, tokens_per_step};
use answer::Gap;
use chosen::{Chosen, MOST};
use condition::{Condition, conditions};
use exmy::error::{Error, Result};
use exmy::safetensors::whole;
use std::collections::BTreeSet;
use std::path::Path;
use unlike::unlike;

#[doc(hidden)]
pub mod answer;
#[doc(hidden)]
pub mod chosen;
#[doc(hidden)]
pub mod condition;
#[doc(hidden)]
pub mod unlike;

/// What made a page, as its head says.
const MAKER: &str = "exmy report";

/// Whether a page is one of [`page`], which a new one may replace.
pub fn is_page(html: &str) -> bool {
    html.contains(&Page::mark(MAKER))
}

/// The axis of a quantity.
fn axis(quantity: &str, runs: &[&RecordedRun]) -> Axis {
    let units = || runs.iter().map(|run| run.config.model.loss_unit());
    let unit =
        if differ(units()) { "each in its model's unit" } else { units().next().unwrap_or("") };
    match quantity {
        "loss" => Axis::log(format!("training loss, {unit}")),
        "val_loss" => Axis::log(format!("validation loss, {unit}")),
        "grad_norm" => Axis::log("gradient norm"),
        "lr" => Axis::linear("learning rate"),
        other => Axis::linear(other),
    }
}

/// Parts that a probe has recorded as numbers, the first twenty of them.
fn parts(quantity: &str, runs: &[RecordedRun]) -> Result<Vec<String>> {
    let Some((probe, _)) = quantity.split_once('/') else { return Ok(Vec::new()) };
    for run in runs {
        let lines = run.probes()?;
        if let Some(line) = lines.iter().rfind(|line| line.probe == probe) {
            let numbers = line.values.parts.iter().filter(|(_, part)| part.number().is_some());
            return Ok(numbers.take(20).map(|(name, _)| format!("{probe}/{name}")).collect());
        }
    }
    Ok(Vec::new())
}

/// One picture, and what a reader is to know who sees it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The picture, which says so too.
    pub figure: Figure,
    /// In what its runs differ in addition to recipe and seed, and what is left out of it.
    pub remarks: Vec<String>,
}

/// One picture of some quantities: for each a panel of the differences from the first recipe, where there are
/// several, and one of the values. Runs that differ in the seed alone are a line with a band; the first 36
/// such lines are drawn.
///
/// # Errors
/// If a file cannot be read, or no run has recorded one of them.
pub fn picture(title: &str, names: &[String], runs: &[RecordedRun]) -> Result<Picture> {
    let all = conditions(runs);
    draw(title, names, runs, (&all, &recorded(&all)?), true)
}

/// What the runs of each condition have recorded.
fn recorded(all: &[Condition<'_>]) -> Result<Vec<BTreeSet<String>>> {
    let of = |one: &Condition<'_>| -> Result<BTreeSet<String>> {
        let each = one.runs.iter().map(|run| run.recorded()).collect::<Result<Vec<_>>>()?;
        Ok(each.into_iter().flatten().collect())
    };
    all.iter().map(of).collect()
}

/// As [`picture`], of conditions of which it is known what they have recorded; a picture that stands alone
/// says what its runs share, and how its lines came about.
fn draw(
    title: &str,
    names: &[String],
    runs: &[RecordedRun],
    (all, recorded): (&[Condition<'_>], &[BTreeSet<String>]),
    alone: bool,
) -> Result<Picture> {
    let chosen = Chosen::new(names, all, recorded)?;
    let drawn: Vec<&RecordedRun> =
        chosen.conditions().iter().flat_map(|&i| all[i].runs.iter().copied()).collect();
    let order =
        if all.len() > MOST { chosen.conditions().to_vec() } else { (0..all.len()).collect() };
    let order = order.iter().map(|&i| &*all[i].name);
    let mut figure = Figure::new(title).x(Axis::linear("step")).order(order);
    let mut remarks: Vec<String> = unlike(&drawn).into_iter().collect();
    for (k, name) in names.iter().enumerate() {
        if !chosen.has(k) {
            return Err(unknown(name, runs, recorded)?);
        }
        remarks.extend(chosen.remark(k, name));
        let own = chosen.of(k);
        // What a condition is compared with may not be drawn.
        let place = |base: usize| own.iter().position(|&i| i == base);
        let curves = own.iter().map(|&i| {
            let curves = all[i].curves(name)?;
            Ok(Curves { base: curves.base.and_then(place), ..curves })
        });
        let curves = curves.collect::<Result<Vec<Curves>>>()?;
        let points = curves.iter().flat_map(|one| &one.seeds).map(|(_, points)| points.len());
        let noisy = matches!(name.as_str(), "loss" | "grad_norm") && points.max() > Some(60);
        let (shown, twins) = without_twins(&curves);
        let of = if names.len() > 1 { format!("{}: ", chosen::words(name)) } else { String::new() };
        remarks.extend(twins.map(|twins| of + &twins));
        if let Some(panel) = comparison::differences(&shown, noisy) {
            figure = figure.panel(panel);
        }
        let mut panel = comparison::values(axis(name, &drawn), &shown, noisy);
        if let ("loss" | "val_loss", Some(reference)) = (name.as_str(), reference(&drawn)) {
            if alone {
                remarks.push(format!("the language itself has {reference:.4}"));
            }
            let near = |y: f64| y < 1.5 * reference;
            let last = |one: &Curves| one.seeds.first().and_then(|s| s.1.last()).map(|p| p.1);
            if shown.iter().filter_map(last).any(near) {
                panel = panel.rule(reference, "the language itself");
            }
        }
        figure = figure.panel(panel);
    }
    // What is true of all panels is said once.
    let mut seen = BTreeSet::new();
    remarks.retain(|remark| seen.insert(remark.clone()));
    let several = alone && drawn.len() > chosen.conditions().len();
    let band = several.then(|| "mean over seeds, bands from the lowest to the highest".to_owned());
    let shared = shared(&drawn).filter(|_| alone);
    let under = shared.into_iter().chain(band).chain(remarks.iter().cloned());
    let figure = figure.subtitle(under.collect::<Vec<_>>().join("; "));
    let tokens = |run: &&RecordedRun| tokens_per_step(&run.config);
    let figure = match drawn.first() {
        Some(first) if !differ(drawn.iter().map(tokens)) => figure.tokens(tokens(first)),
        _ => figure,
    };
    Ok(Picture { figure, remarks })
}

/// The curves without those that have exactly the values of another one, and which these are.
fn without_twins(all: &[Curves]) -> (Vec<Curves>, Option<String>) {
    let twins = comparison::twins(all);
    let kept: Vec<usize> = (0..all.len()).filter(|&i| twins[i].is_none()).collect();
    let place = |base: usize| kept.iter().position(|&i| i == twins[base].unwrap_or(base));
    let curve = |&i: &usize| Curves { base: all[i].base.and_then(place), ..all[i].clone() };
    let names: Vec<&str> =
        (0..all.len()).filter(|&i| twins[i].is_some()).map(|i| &*all[i].name).collect();
    let remark = match (&names[..], twins.iter().flatten().next()) {
        ([one], Some(&first)) => {
            Some(format!("{one} has exactly the values of {}", all[first].name))
        }
        ([one, .., _], Some(_)) => Some(format!(
            "{one} and {} more have exactly the values of another one, and are not drawn",
            names.len() - 1
        )),
        _ => None,
    };
    (kept.iter().map(curve).collect(), remark)
}

/// The loss of the text's own source on the validation text, if it is known and the same of all runs.
fn reference(runs: &[&RecordedRun]) -> Option<f64> {
    let of = |run: &RecordedRun| match Manifest::read(whole::split(run.folder.path()).0) {
        Ok(Some(Manifest { kind: Kind::Train { reference, .. }, .. })) => reference,
        _ => None,
    };
    let mut known: Vec<&Path> = runs.iter().map(|run| whole::split(run.folder.path()).0).collect();
    known.dedup();
    let of_folder = |folder: &&Path| {
        runs.iter().find(|run| whole::split(run.folder.path()).0 == *folder).and_then(|run| of(run))
    };
    let first = known.first().and_then(of_folder)?;
    known.iter().all(|folder| of_folder(folder) == Some(first)).then_some(first)
}

/// The conditions of some runs, where all have the same but for their seeds.
fn shared(runs: &[&RecordedRun]) -> Option<String> {
    let seeds = runs.iter().map(|run| run.config.seed).collect();
    let of = |run: &&RecordedRun| runner::conditions(&run.config, &seeds);
    let same = !differ(runs.iter().map(of));
    runs.first().filter(|_| same).map(of)
}

/// The mistake of asking for a quantity that no run has.
fn unknown(name: &str, runs: &[RecordedRun], recorded: &[BTreeSet<String>]) -> Result<Error> {
    let (known, parts) = (quantities(recorded), parts(name, runs)?);
    let hint = if known.is_empty() {
        "no run has recorded anything yet".to_owned()
    } else if parts.is_empty() {
        format!("there are {}; a part of a probe is PROBE/PART", known.join(", "))
    } else {
        format!("parts that are numbers are {}", parts.join(", "))
    };
    Ok(Error::new(format!("no run has recorded {name:?} as a number")).hint(hint))
}

/// Each run as a row.
fn table_of_runs(runs: &[RecordedRun]) -> Table {
    let mut table = Table::new(
        "each run; train loss is the mean of the last tenth of the steps; before the end that of the last 20 \
         steps, and val loss the last one",
        &["run", "recipe", "lr", "seed", "steps", "train loss", "val loss", "state"],
    );
    for (run, state) in runs.iter().zip(states(runs)) {
        let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
        let steps = run.metrics.last().map_or(0, |line| line.step);
        let reason = run.summary.as_ref().and_then(|summary| summary.reason.clone());
        let [train_loss, val_loss] = run.losses();
        let state = match reason {
            Some(reason) => format!("{}: {reason}", state.word()),
            None => state.word().to_owned(),
        };
        table.row([
            run.name.clone(),
            run.config.recipe.to_string(),
            format!("{:e}", run.config.train.lr),
            run.config.seed.to_string(),
            format!("{steps} of {}", run.config.train.steps),
            of(train_loss),
            of(val_loss),
            state,
        ]);
    }
    table
}

/// The conditions as rows of results.
#[doc(hidden)]
pub fn rows(all: &[Condition<'_>]) -> Vec<table::Row> {
    let of = |(i, one): (usize, &Condition<'_>)| -> Vec<table::Run> {
        // Rows of the same further labels are compared with the first of them.
        let labels = vec![i.to_string(), one.base.unwrap_or(i).to_string()];
        let run =
            |run: &&RecordedRun| table::Run { labels: labels.clone(), result: run.summary.clone() };
        one.runs.iter().map(run).collect()
    };
    table::rows(&all.iter().enumerate().flat_map(of).collect::<Vec<_>>())
}

/// What the gap of the table of results is.
const GAP: &str = "gap: how far the validation loss is above that of the recipe that is compared with, seed \
    by seed, at the last step at which all these runs have one";

/// What came of each condition, as `exmy train` prints it.
fn results(
    all: &[Condition<'_>],
    rows: &[table::Row],
    gaps: &[Option<Gap>],
    left: &Remaining,
    unit: &str,
) -> Table {
    let several = rows.iter().any(|row| row.runs > 1);
    let compared = gaps.iter().any(Option::is_some);
    // What all runs of a condition still take.
    let time_left = |one: &Condition<'_>| {
        let each = one.runs.iter().filter_map(|run| left.of(&run.folder));
        each.reduce(|sum, more| sum + more).map(duration)
    };
    let goes_on = all.iter().any(|one| time_left(one).is_some());
    let heads = [
        ("recipe", true),
        ("gap, %", compared),
        ("95 % interval, %", compared && several),
        ("val loss", true),
        ("deviation", several),
        ("train loss", true),
        ("seeds", several),
        ("steps", true),
        ("tokens/s", true),
        ("time left", goes_on),
        ("state", true),
    ];
    let open = |row: &table::Row| row.unfinished == row.runs;
    let mut caption = vec![format!("losses in {unit}")];
    let words = [
        (compared, GAP),
        (several, "deviation: standard deviation of the validation loss over seeds"),
        (true, "tokens/s: of training steps, on the machine that trained them"),
        (goes_on, "time left: of all runs of the row, one after the other"),
        (rows.iter().any(open), "losses of a row without a complete run: so far"),
    ];
    caption.extend(words.iter().filter(|(is_there, _)| *is_there).map(|(_, of)| (*of).to_owned()));
    let heads_shown: Vec<&str> = heads.iter().filter(|head| head.1).map(|head| head.0).collect();
    let mut table = Table::new(caption.join("; "), &heads_shown);
    for ((one, row), gap) in all.iter().zip(rows).zip(gaps) {
        let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
        let steps = one.runs.iter().map(|run| run.metrics.last().map_or(0, |line| line.step));
        let (low, high) = (steps.clone().min().unwrap_or(0), steps.max().unwrap_or(0));
        let steps = if low == high { low.to_string() } else { format!("{low} to {high}") };
        let of_all = match row.unfinished {
            0 => String::new(),
            _ => format!(" of {}", one.runs[0].config.train.steps),
        };
        let [train_loss, val_loss] = match open(row) {
            true => one.losses(),
            false => [row.train_loss, row.val_loss],
        };
        let time: Time = one.runs.iter().map(|run| run.time()).sum();
        let interval = gap.as_ref().and_then(|gap| gap.interval);
        let cells = [
            one.name.clone(),
            gap.as_ref().map_or_else(|| "-".into(), |gap| format!("{:+.2}", gap.percent)),
            interval.map_or_else(|| "-".into(), |i| format!("{:+.2} to {:+.2}", i.low, i.high)),
            of(val_loss),
            of(row.spread),
            of(train_loss),
            row.runs.to_string(),
            steps + &of_all,
            time.speed().map_or_else(|| "-".into(), |speed| format!("{speed:.0}")),
            time_left(one).unwrap_or_else(|| "-".into()),
            state(row),
        ];
        table.row(cells.into_iter().zip(heads).filter(|(_, head)| head.1).map(|(cell, _)| cell));
    }
    table
}

/// Where the runs of a condition stand.
fn state(row: &table::Row) -> String {
    let of = |count: usize, what: &str| match (count, row.runs) {
        (0, _) => None,
        (count, runs) if count == runs => Some(what.to_owned()),
        (count, _) => Some(format!("{count} {what}")),
    };
    let ended = row.diverged.map(|(step, count)| match row.runs {
        1 => format!("diverged at {step}"),
        runs => format!("{count} of {runs} diverged, the first at {step}"),
    });
    let complete = row.runs - row.unfinished - row.diverged.map_or(0, |(_, count)| count);
    let words = [of(complete, "complete"), ended, of(row.unfinished, "not complete")];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What happened in runs: changes of the recipe, divergence.
fn events(runs: &[RecordedRun]) -> Option<Table> {
    let mut table = Table::new("events", &["run", "step", "what happened"]);
    for run in runs {
        for line in &run.metrics {
            for event in &line.events {
                table.row([run.name.clone(), line.step.to_string(), event.to_string()]);
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// In which formats linear layers multiplied, and from which step on.
fn multiplications(runs: &[RecordedRun]) -> Option<Table> {
    let head = ["recipe", "from step", "share of the multiplications of linear layers"];
    let mut table = Table::new("formats in which linear layers multiply", &head);
    for summary in runs.iter().filter_map(|run| run.summary.as_ref()) {
        for span in &summary.precision {
            let row = vec![summary.recipe.clone(), span.from.to_string(), span.to_string()];
            if !table.rows.contains(&row) {
                table.rows.push(row);
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What a reader of a [`page`] of these runs is to know: in what they differ in addition to recipe and seed.
pub fn remarks(runs: &[RecordedRun]) -> Vec<String> {
    unlike(&runs.iter().collect::<Vec<_>>()).into_iter().collect()
}

/// What a quantity is called as a heading.
fn heading(quantity: &str) -> String {
    let words = chosen::words(quantity);
    if words == quantity {
        return format!("Probe {quantity}");
    }
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

/// Why a quantity is not drawn: it is the same everywhere.
fn not_drawn(name: &str, all: &[Condition<'_>]) -> Result<Option<String>> {
    let curves = all.iter().map(|one| one.curves(name)).collect::<Result<Vec<_>>>()?;
    let curves: Vec<Curves> = curves.into_iter().filter(|one| !one.seeds.is_empty()).collect();
    let what = heading(name);
    if let Some(value) = comparison::constant(&curves) {
        return Ok(Some(format!("{what} is {value} in all runs at all steps.")));
    }
    let points =
        |one: &Curves| one.seeds.iter().map(|(_, points)| points.clone()).collect::<Vec<_>>();
    let each: Vec<_> = curves.iter().flat_map(points).collect();
    let longest = each.iter().max_by_key(|points| points.len());
    let same = longest.is_some_and(|long| each.iter().all(|points| long.starts_with(points)));
    let (low, high) = each
        .iter()
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| (low.min(p.1), high.max(p.1)));
    Ok((same && each.len() > 1)
        .then(|| format!("{what} is the same in all runs, from {low:.2e} to {high:.2e}.")))
}

/// A page of everything that some runs have recorded: the answer, the table, the pictures, and folded away
/// how it came about. `left_out` says which others cannot be read, and why, `left` which are not begun and
/// how long all will take, `provenance` how the page is made.
///
/// # Errors
/// If a file cannot be read.
pub fn page(
    title: &str,
    runs: &[RecordedRun],
    left_out: &[String],
    left: &Remaining,
    provenance: &Provenance,
) -> Result<Page> {
    let mut page = Page::new(title).made_by(MAKER);
    let all = conditions(runs);
    let rows = rows(&all);
    let gaps: Vec<Option<Gap>> = all.iter().map(|one| Gap::of(one, &all)).collect();
    let refs: Vec<&RecordedRun> = runs.iter().collect();
    let units_differ = differ(runs.iter().map(|run| run.config.model.loss_unit()));
    let unit = match runs.first() {
        Some(first) if !units_differ => first.config.model.loss_unit(),
        _ => "the unit of each model",
    };
    page.answer(&answer::answer(&all, &rows, &gaps, left, unit).join(" "));
    if let Some(reference) = reference(&refs) {
        page.soft(&format!(
            "The language itself has {reference:.4} nats per byte of validation text. Tokens are bytes here, \
             so this is the validation loss of a model that knows the language exactly."
        ));
    }
    shared(&refs).iter().for_each(|conditions| page.soft(conditions));
    remarks(runs).iter().for_each(|remark| page.soft(&format!("Note that {remark}.")));
    page.heading("results", "Results", "");
    page.table(&results(&all, &rows, &gaps, left, unit), Download::Embedded("results"));
    events(runs).iter().for_each(|events| page.table(events, Download::Embedded("events")));
    if let [one] = left_out {
        page.soft(&format!("A run that cannot be read is left out: {one}."));
    } else if !left_out.is_empty() {
        let (count, all) = (left_out.len(), left_out.join("; "));
        page.soft(&format!("{count} runs that cannot be read are left out: {all}."));
    }
    if all.len() > MOST {
        page.soft(&format!(
            "Each picture has the first {MOST} of the {} conditions that have recorded what it shows.",
            all.len()
        ));
    }
    if units_differ {
        page.soft("The runs are of models with losses of different kinds; do not compare these.");
    }
    let recorded = recorded(&all)?;
    let mut same = Vec::new();
    page.heading("pictures", "Pictures", "");
    for name in quantities(&recorded) {
        if let Some(why) = not_drawn(&name, &all)? {
            same.push(why);
            continue;
        }
        let picture =
            draw(&heading(&name), std::slice::from_ref(&name), runs, (&all, &recorded), false)?;
        page.figure_of(&name, &picture.figure, Download::Embedded(&name.replace('/', "-")));
    }
    if !same.is_empty() {
        page.heading("same", "Not drawn", "");
        page.text(&same.join(" "));
    }
    page.heading("methods", "Runs and methods", "");
    page.text(METHODS);
    page.folded_part("each run", |page| {
        page.table(&table_of_runs(runs), Download::Embedded("runs"));
    });
    if let Some(table) = multiplications(runs) {
        page.folded_part("formats in which linear layers multiply", |page| {
            page.table(&table, Download::Embedded("formats"));
        });
    }
    page.folded_part("configuration of each run", |page| {
        for run in runs {
            page.folded(&format!("configuration of {}", run.name), &run.config.to_toml());
        }
    });
    let made = format!(
        "{} runs, {} of training steps added up over threads, wherever they were trained.",
        runs.len(),
        duration(runs.iter().map(RecordedRun::time).sum::<Time>().seconds)
    );
    provenance.section(&mut page, "", &[made]);
    Ok(page)
}

/// How the numbers of a page come about.
const METHODS: &str = "Runs of one seed begin with the same weights and see the same batches, so differences \
    are taken seed by seed, at the same step. Lines are means over seeds, bands go from the lowest seed to \
    the highest. Training losses and gradient norms are averaged over up to a thirtieth of the run. \
    Intervals are Student's t of the gaps of the seeds. Vertical axes are those of the last nine tenths of \
    the steps, without a few extreme values, so a line may leave its picture.";
