//! Tests of thinned records: what is drawn from them is what the whole ones say.

use crate::grid::GRID;
use exmy::error::Result;
use exmy_lab::curves::{Curves, is_kept};
use exmy_lab::finding::{Experiment, Findings, Paper, Part, Table, Verdict};
use exmy_lab::grid::{Axis, Grid, Set, level};
use exmy_lab::outcome::{calm, judge};
use exmy_lab::report;
use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::runner::{Run, Silent};
use exmy_lab::spikes;
use exmy_lab::store::{Runs, Store};
use exmy_lab::study_scale::StudyScale;
use exmy_lab::thin::{Thinned, thin};
use exmy_train::train::data::Source;
use exmy_train::train::record::Metrics;
use std::fs;
use std::sync::Arc;

/// A proxy that diverges within some steps, and one that learns.
const TWO: Grid = Grid {
    steps: [600; 3],
    axes: &[Axis::new("rate", &[level("1", Set::Rate(1.0)), level("1e-3", MEASURED)])],
    ..GRID
};

const PROBE: &str = "rho_same";

const MEASURED: Set = Set::All(&[Set::Rate(1e-3), Set::Measured(&[PROBE], [20; 3])]);

/// What a figure looks at besides what became of its runs.
enum Looks {
    No,
    AtAllLosses,
    AtValues,
    AtParts,
}

struct Drawn(Looks, Grid);

impl Experiment for Drawn {
    fn id(&self) -> &'static str {
        "X-1"
    }

    fn title(&self) -> &'static str {
        "drawn"
    }

    fn source(&self) -> &'static str {
        ""
    }

    fn claim(&self) -> &'static str {
        ""
    }

    fn runs(&self, setting: &Setting) -> Vec<RunConfig> {
        self.1.runs(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new("", &["judged"]);
        for run in self.runs(setting) {
            let trained = runs.of(&run)?;
            table.row([format!("{:?} {:?}", judge(&trained, &run), trained.summary)]);
            match self.0 {
                Looks::No => {}
                Looks::AtAllLosses => table.row([format!("{:?}", trained.losses())]),
                Looks::AtValues => table.row([format!("{:?}", trained.values(PROBE)?)]),
                Looks::AtParts => table.row([format!("{:?}", trained.probe(PROBE)?)]),
            }
        }
        Ok(Findings::of(Verdict::Reproduced("it holds".into()), vec![Part::Table(table)]))
    }
}

/// What became of some runs.
struct Kept(Vec<RunConfig>);

impl Experiment for Kept {
    fn id(&self) -> &'static str {
        "X-2"
    }

    fn title(&self) -> &'static str {
        "kept"
    }

    fn source(&self) -> &'static str {
        ""
    }

    fn claim(&self) -> &'static str {
        ""
    }

    fn runs(&self, _: &Setting) -> Vec<RunConfig> {
        self.0.clone()
    }

    fn find(&self, _: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new("", &["judged"]);
        for run in &self.0 {
            table.row([format!("{:?}", judge(&runs.of(run)?, run))]);
        }
        Ok(Findings::of(Verdict::Reproduced("it holds".into()), vec![Part::Table(table)]))
    }
}

const PAPER: Paper =
    Paper { name: "drawn", title: "", source: "", about: "", figures: &[&Drawn(Looks::No, TWO)] };

#[test]
fn figures_are_drawn_again_without_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let (setting, data) = Setting::new(StudyScale::Smoke, Source::default()).unwrap();
    let planned = TWO.runs(&setting);
    let runs: Vec<Run> = planned.iter().map(RunConfig::run).collect();
    store.runner().work(&runs, Some(Arc::new(data)), &Silent).unwrap();
    let find = |figure: &Drawn, store: &Store| {
        report::find(&[figure], &setting, store, |_| true).map(Option::unwrap)
    };
    let of = |figure: &Drawn| thin(&PAPER, &[figure], (&setting, &store), None);
    let Thinned { curves, left_out } = of(&Drawn(Looks::No, TWO)).unwrap();
    assert!(left_out.is_empty());
    let path = folder.path().join("curves.xz");
    curves.write(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let again = Curves::read(PAPER.name, &path).unwrap();
    assert_eq!((again.scale(), again.figures()), (StudyScale::Smoke, &["X-1".to_owned()][..]));
    Curves::check(PAPER.name, &path, |_| true).unwrap();
    assert_eq!(again.setting().unwrap().unwrap(), setting);
    again.write(&path).unwrap();
    assert!(fs::read(&path).unwrap() == bytes, "read and written again they are the same");

    let thinned = Store::drawn_from(Arc::new(again));
    let figure = Drawn(Looks::No, TWO);
    assert_eq!(find(&figure, &thinned).unwrap(), find(&figure, &store).unwrap());
    let mut diverged = 0;
    for run in &planned {
        let (whole, few) = (store.runs().of(run).unwrap(), thinned.runs().of(run).unwrap());
        let end = judge(&whole, run).verdict.diverged;
        diverged += usize::from(end.is_some());
        // Steps 1 and 10, 20, ... 600, and those near the divergence.
        let near = end.map_or(0, |end| (1..=600).filter(|step| end.abs_diff(*step) <= 200).count());
        assert!(few.metrics.len() >= 61.max(near) && few.metrics.len() < 601, "{near}");
        let mut from = 1;
        for line in &few.metrics {
            // Those since the line before.
            let others = &whole.metrics[from..=line.step as usize];
            from += others.len();
            assert_eq!(
                (line.step, line.tokens),
                (others.last().unwrap().step, others.last().unwrap().tokens)
            );
            let near = |own: Option<f64>, of: fn(&Metrics) -> Option<f64>, error: f64| {
                let sum: Option<f64> = others.iter().map(of).sum();
                let mean = sum.map(|sum| sum / others.len() as f64);
                assert_eq!(own.is_some(), mean.is_some());
                let is_near = |(own, mean): (f64, f64)| (own / mean - 1.0).abs() <= error;
                assert!(own.zip(mean).is_none_or(is_near));
            };
            // Half a unit of six and of five digits.
            near(line.loss, |line| line.loss, 6e-6);
            near(line.grad_norm, |line| line.grad_norm, 6e-5);
        }
    }
    assert_eq!(diverged, 1, "one diverges and one learns");

    // What needs more than is kept is left out when it is written, and not drawn otherwise.
    for looks in [Looks::AtAllLosses, Looks::AtParts] {
        let others = of(&Drawn(looks, TWO)).unwrap();
        assert_eq!((others.left_out, others.curves.figures().len()), (vec!["X-1"], 0));
        assert!(others.curves.is_empty(), "runs of nothing that is drawn");
    }
    let error = thinned.runs().of(&planned[1]).unwrap().values(PROBE).unwrap_err().to_string();
    assert!(error.contains("do not have what rho_same measured"), "{error}");
    let error = thinned.runs().of(&GRID.runs(&setting)[0]).unwrap_err().to_string();
    assert!(error.contains("lacks the run mxpaper-e2m1"), "{error}");

    // Nothing else is read as curves, or replaced by them.
    let other = Paper { name: "other", ..PAPER };
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    for (paper, bytes, part) in [
        (&other, &bytes[..], "curves of drawn, not of other"),
        (&PAPER, &flipped[..], "damaged"),
        (&PAPER, &bytes[..bytes.len() - 40], "curves.xz is cut off"),
        (&PAPER, b"a text of mine", "is no .xz file"),
        (&PAPER, b"", "curves.xz is cut off"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = Curves::read(paper.name, &path).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        let error = Curves::check(paper.name, &path, |_| true).unwrap_err().to_string();
        assert!(error.contains("would be lost"), "{error}");
    }
    curves.write(&path).unwrap();
    let of_one = |name: &str| name == planned[0].name();
    let error = Curves::check(PAPER.name, &path, of_one).unwrap_err().to_string();
    assert!(error.contains("has 1 run that would be lost"), "{error}");
    let not_the_figure = |name: &str| name != "X-1";
    let error = Curves::check(PAPER.name, &path, not_the_figure).unwrap_err().to_string();
    assert!(error.contains("has X-1 that would be lost"), "{error}");
    let nowhere = folder.path().join("none/curves.xz");
    let error = Curves::check(PAPER.name, &nowhere, |_| true).unwrap_err().to_string();
    assert!(error.contains("there is no folder"), "{error}");
}

/// A study grows: what its curves have is not trained again.
#[test]
fn runs_are_added_to_curves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let (setting, data) = Setting::new(StudyScale::Smoke, Source::default()).unwrap();
    let short = Grid { steps: [100; 3], ..TWO };
    let planned: Vec<RunConfig> =
        short.runs(&setting).into_iter().map(|run| run.keeping(&[50])).collect();
    let train = |store: &Store, planned: &[RunConfig]| {
        let runs: Vec<Run> = planned.iter().map(RunConfig::run).collect();
        store.runner().work(&runs, Some(Arc::new(data.clone())), &Silent).unwrap();
    };
    let figures = |planned: &[RunConfig]| Kept(planned.to_vec());
    let curves = |store: &Store, planned: &[RunConfig]| {
        thin(&PAPER, &[&figures(planned)], (&setting, store), None).unwrap().curves
    };
    train(&store, &planned);
    let first = Arc::new(curves(&store, &planned[..1]));

    let other = folder.path().join("other");
    let both = Store::new(&other).beside(Arc::clone(&first));
    assert!(both.is_thinned() && both.has_folder());
    assert_eq!(both.of_folder(&planned).unwrap(), planned[1..]);
    assert!(both.has(&planned[0]).unwrap() && !both.has(&planned[1]).unwrap());
    train(&both, &both.of_folder(&planned).unwrap());
    assert!(both.has(&planned[1]).unwrap());
    assert_eq!(curves(&both, &planned), curves(&store, &planned));

    // Of a study that was stopped the complete runs are kept, and what is missing is added to them.
    let half = Store::new(folder.path().join("half"));
    train(&half, &planned[1..]);
    let figure = figures(&planned);
    let kept = thin(&PAPER, &[&figure], (&setting, &half), None).unwrap().curves;
    assert_eq!((kept.len(), kept.figures()), (1, &[][..]));
    let rest = Store::new(folder.path().join("rest")).beside(Arc::new(kept));
    assert_eq!(rest.of_folder(&planned).unwrap(), planned[..1]);
    train(&rest, &planned[..1]);
    assert_eq!(curves(&rest, &planned), curves(&store, &planned));

    // What other figures have stays, and what another process has written since.
    let alone = Store::new(folder.path().join("alone"));
    let nothing: [&dyn Experiment; 0] = [];
    let kept = thin(&PAPER, &nothing, (&setting, &alone), Some(&first)).unwrap().curves;
    assert_eq!(kept.len(), 1);
    let none = Store::new(folder.path().join("none")).beside(Arc::clone(&first));
    assert_eq!((curves(&none, &planned[1..]).len(), first.len()), (1, 1));
    assert_eq!(curves(&both, &planned[1..]).len(), 2);

    // Of a run that is drawn from curves no checkpoint is left. A branch that is whole needs none.
    let branch = |parent: usize| [planned[parent].branch(50)];
    assert_eq!(both.of_folder(&branch(1)).unwrap(), branch(1));
    let error = both.of_folder(&branch(0)).unwrap_err().to_string();
    assert!(error.contains("has no checkpoint"), "{error}");
    train(&store, &[planned[0].clone(), branch(0)[0].clone()]);
    let whole = store.folder(&branch(0)[0].name());
    fs::rename(whole.path(), both.folder(&branch(0)[0].name()).path()).unwrap();
    assert_eq!(both.of_folder(&branch(0)).unwrap(), branch(0));
    let drawn = Store::drawn_from(first);
    assert!(!drawn.has_folder() && !drawn.has(&planned[1]).unwrap());
}

/// The values of probes are kept where a figure is not drawn without them, and where a run has been trained
/// whose curves lack them, they are added.
#[test]
fn values_of_probes_are_kept_where_a_figure_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("whole"));
    let (setting, data) = Setting::new(StudyScale::Smoke, Source::default()).unwrap();
    const ONE: Grid = Grid { axes: &[Axis::new("rate", &[level("1e-3", MEASURED)])], ..TWO };
    let planned = ONE.runs(&setting);
    let runs: Vec<Run> = planned.iter().map(RunConfig::run).collect();
    store.runner().work(&runs, Some(Arc::new(data)), &Silent).unwrap();
    let drawn = |looks| Drawn(looks, ONE);
    let written = |figure: &Drawn, store: &Store, name: &str| {
        let path = folder.path().join(name);
        thin(&PAPER, &[figure], (&setting, store), None).unwrap().curves.write(&path).unwrap();
        Arc::new(Curves::read(PAPER.name, &path).unwrap())
    };
    let without = written(&drawn(Looks::No), &store, "without.xz");
    let with = written(&drawn(Looks::AtValues), &store, "with.xz");
    let values = |store: &Store| store.runs().of(&planned[0]).unwrap().values(PROBE);
    let (whole, kept) =
        (values(&store).unwrap(), values(&Store::drawn_from(with.clone())).unwrap());
    let steps: Vec<f64> = kept.iter().map(|point| point.0).collect();
    assert_eq!(steps, (1..=30).map(|i| 20.0 * f64::from(i)).collect::<Vec<_>>());
    assert_eq!(kept, whole);
    assert!(values(&Store::drawn_from(without.clone())).is_err());

    // The run in the folder has what its curves lack.
    let both = Store::new(folder.path().join("whole")).beside(without);
    let added = written(&drawn(Looks::AtValues), &both, "added.xz");
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("added.xz") == bytes("with.xz"));
    // Of a figure whose runs are not all there they are kept, too: it may need them.
    let more = Drawn(Looks::AtValues, TWO);
    let part = thin(&PAPER, &[&more], (&setting, &store), None).unwrap().curves;
    assert_eq!((part.len(), part.figures().len()), (1, 0));
    assert_eq!(values(&Store::drawn_from(Arc::new(part))).unwrap(), whole);
    // What is kept is kept when other runs are added.
    let empty = Store::new(folder.path().join("empty")).beside(added);
    written(&drawn(Looks::AtValues), &empty, "again.xz");
    assert!(bytes("again.xz") == bytes("with.xz"));
}

/// Runs are named by what they learn, which whoever draws their curves need not have.
#[test]
fn the_text_is_not_needed_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a text.txt");
    fs::write(&text, "to be learned, byte by byte. ".repeat(40)).unwrap();
    let (setting, _) = Setting::new(StudyScale::Smoke, Source::Path(text.clone())).unwrap();
    fs::remove_file(&text).unwrap();
    let known = Setting::known(StudyScale::Smoke, &setting.text()).unwrap();
    assert_eq!(known.source().to_string(), "a text.txt");
    let name = |setting: &Setting| RunConfig::new(setting.config("gpt-nano")).name();
    assert_eq!(name(&known), name(&setting));
    assert_ne!(name(&known), name(&Setting::unread(StudyScale::Smoke)));
}

#[test]
fn steps_near_a_divergence_are_kept() {
    let kept = |diverged| (1..=1005).filter(|&step| is_kept(step, diverged, 1005)).count();
    // 1, the last, and each tenth.
    assert_eq!(kept(None), 102);
    // In place of 41 tenths all 401 steps from 300 to 700.
    assert_eq!(kept(Some(500)), 102 + 360);
    // Of 1 to 205 there were 21.
    assert_eq!(kept(Some(5)), 102 + 184);
}

/// A moving average looks back over as many steps, however many of them are kept.
#[test]
fn averages_of_thinned_curves_look_back_as_far() {
    let whole: spikes::Curve = (1..=1000).map(|step| (step, step as f64)).collect();
    let kept = |point: &&(u64, f64)| is_kept(point.0, Some(500), 1000);
    let few: spikes::Curve = whole.iter().filter(kept).copied().collect();
    let whole = calm(&whole);
    for (step, value) in calm(&few) {
        let of_whole = whole[step as usize - 1].1;
        assert!((value - of_whole).abs() <= 10.0, "at {step}: {value}, not {of_whole}");
    }
}
