//! E5: hot channels drift at first and stay in place later.

use super::weights::quantized;
use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Table};
use crate::measure::INPUTS;
use crate::measure::Results;
use crate::plot::{self, Axis, Panel};
use crate::series::{draw, spread};
use crate::statistics::{jaccard, mean, spearman};
use crate::test_result::{TestResult, verdict};
use exmy::error::Result;
use exmy_train::nn::site::{Operand, Site};
use exmy_train::train::probe::{Key, Line, Of};

pub type Points = Vec<(f64, f64)>;

/// One kind of set over time: how far it agrees with the one before and with the last one, and how long
/// channels stay in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sets {
    pub consecutive: Points,
    pub last: Points,
    /// The mean over sites of [`life`], in records.
    pub life: f64,
    /// The mean over sites of [`lasting`].
    pub lasting: f64,
}

/// How many records a channel that comes into the set stays in it, on average. Stays that the beginning or
/// the end of the run cuts short count as they are.
pub fn life(sets: &[&[f64]]) -> Option<f64> {
    let holds = |at: usize, channel: f64| sets[at].contains(&channel);
    let (mut stays, mut records) = (0, 0);
    for (at, set) in sets.iter().enumerate() {
        records += set.len();
        stays += set.iter().filter(|&&channel| at == 0 || !holds(at - 1, channel)).count();
    }
    (stays > 0).then(|| records as f64 / stays as f64)
}

/// The share of a set's places that are taken by channels of nine tenths of all records.
pub fn lasting(sets: &[&[f64]]) -> Option<f64> {
    let first = sets.first()?;
    let mut all: Vec<u64> = sets.concat().into_iter().map(|channel| channel as u64).collect();
    all.sort_unstable();
    let often = all.chunk_by(|a, b| a == b).filter(|same| 10 * same.len() >= 9 * sets.len());
    Some(often.count() as f64 / first.len() as f64)
}

/// The lists of a part in a line, site by site.
fn lists(line: &Line, sites: &[Site], part: impl Fn(Site) -> Key) -> Vec<Option<Vec<f64>>> {
    let of = |site: &Site| line.values.parts.get(&part(*site))?.list().map(<[f64]>::to_vec);
    sites.iter().map(of).collect()
}

/// The mean over sites of a comparison of two lines.
fn compare(
    a: &[Option<Vec<f64>>],
    b: &[Option<Vec<f64>>],
    by: impl Fn(&[f64], &[f64]) -> Option<f64>,
) -> Option<f64> {
    let pairs = a.iter().zip(b).filter_map(|(a, b)| by(a.as_ref()?, b.as_ref()?));
    mean(&pairs.collect::<Vec<_>>())
}

fn agreement(a: &[f64], b: &[f64]) -> Option<f64> {
    // Channels are whole numbers.
    let whole = |set: &[f64]| set.iter().map(|&channel| channel as u64).collect::<Vec<_>>();
    Some(jaccard(&whole(a), &whole(b)))
}

/// Steps and comparisons of each line with the one before.
fn consecutive(
    lines: &[(f64, Vec<Option<Vec<f64>>>)],
    by: impl Fn(&[f64], &[f64]) -> Option<f64>,
) -> Points {
    let pairs = lines.windows(2);
    pairs.filter_map(|two| Some((two[1].0, compare(&two[0].1, &two[1].1, &by)?))).collect()
}

pub fn sets(lines: &[Line], sites: &[Site], statistic: &str) -> Sets {
    let part = |site| Key::new(site, statistic);
    let all: Vec<_> =
        lines.iter().map(|line| (line.step as f64, lists(line, sites, part))).collect();
    let Some(((_, last), before)) = all.split_last() else { return Sets::default() };
    let of_sites = |figure: fn(&[&[f64]]) -> Option<f64>| {
        let figures = (0..sites.len()).filter_map(|site| {
            let sets: Vec<&[f64]> = all.iter().filter_map(|one| one.1[site].as_deref()).collect();
            figure(&sets)
        });
        mean(&figures.collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let (life, lasting) = (of_sites(life), of_sites(lasting));
    let against =
        before.iter().filter_map(|(step, one)| Some((*step, compare(one, last, agreement)?)));
    Sets { consecutive: consecutive(&all, agreement), last: against.collect(), life, lasting }
}

/// Spearman's correlation of the channels' magnitudes with those of the line before.
pub fn ranks(lines: &[Line], sites: &[Site]) -> Points {
    let input = |site| Key::new(Of::Operator(site, None, Some(Operand::Input)), "");
    let all: Vec<_> =
        lines.iter().map(|line| (line.step as f64, lists(line, sites, input))).collect();
    consecutive(&all, spearman)
}

/// The means of the first and of the last quarter of the steps.
fn quarters(points: &Points) -> (f64, f64) {
    let end = points.last().map_or(0.0, |&(step, _)| step);
    let of = |within: &dyn Fn(f64) -> bool| {
        let some = points.iter().filter(|(step, _)| within(step / end)).map(|&(_, y)| y);
        mean(&some.collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    (of(&|share| share <= 0.25), of(&|share| share >= 0.75))
}

/// What is claimed of the sets of several seeds.
pub fn claims(sets: &[Sets]) -> Vec<TestResult> {
    let consecutive: Vec<Points> = sets.iter().map(|one| one.consecutive.clone()).collect();
    let (first, last): (Vec<f64>, Vec<f64>) = sets.iter().map(|one| quarters(&one.last)).unzip();
    // A bound that is missed is not the opposite of drifting and settling.
    let bound = |claim: TestResult| TestResult { opposite: false, ..claim };
    vec![
        AGREE.of_series(&consecutive),
        DRIFT.of_pairs(&first, &last, ""),
        bound(EARLY.of_values(&first, "")),
        bound(LATE.of_values(&last, "")),
    ]
}

const FIRST: &str = "the agreement with the final set in the first quarter";
const LAST: &str = "that in the last quarter";
const AGREE: Requirement = ask("the agreement of consecutive sets", Is::Rising, By::Trend);
const DRIFT: Requirement = ask(FIRST, Is::Below(LAST), By::Interval);
const EARLY: Requirement = ask(FIRST, Is::Under(0.4), By::Interval);
const LATE: Requirement =
    ask("the agreement with it in the last quarter", Is::Over(0.7), By::Interval);

pub(crate) const ASKS: Criterion = Criterion::new(
    &[AGREE, DRIFT, EARLY, LATE],
    Opposite::Any(&[
        ask(AGREE.of, Is::Falling, AGREE.by),
        ask(DRIFT.of, Is::Above(LAST), DRIFT.by),
    ]),
)
.noted(|| "Sets are those by magnitude, in the first runs.".into());

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let mut table = Table::new(
        "Jaccard index with the final set, mean and range over seeds; 16 channels of 128 drawn at random \
         agree to 0.07, 16 of 64 to 0.14. Stay: records in which a channel that has come into the set is in \
         it, one after another. Lasting: the share of a set that channels in nine tenths of all records are",
        &[
            "runs",
            "sets by",
            "first quarter",
            "last quarter",
            "consecutive, first quarter",
            "last quarter",
            "stay, of records",
            "lasting, %",
        ],
    );
    let (mut parts, mut texts) = (Vec::new(), Vec::new());
    for point in &results.points {
        let name = point.words(&[]);
        let name = name.as_str();
        let (mut errors, mut magnitudes, mut drift) = (Vec::new(), Vec::new(), Vec::new());
        for (planned, run) in results.trained(point)? {
            let sites = distinct(quantized(&planned.config)?);
            let lines = run.probe("hot")?;
            errors.push(sets(&lines, &sites, "error"));
            magnitudes.push(sets(&lines, &sites, "magnitude"));
            drift.push(ranks(&run.probe("channels")?, &sites));
        }
        let all = [("magnitude", &magnitudes), ("rounding error", &errors)];
        for (kind, found) in all {
            table.row(row(name, kind, found));
            texts.push((format!("{name}, by {kind}"), verdict(&claims(found))));
        }
        parts.push(Part::Picture(picture(name, all, &drift)));
    }
    parts.push(Part::Table(table));
    let others = texts[1..].iter().map(|(name, found)| format!("{name}: {}", found.word()));
    let others = others.collect::<Vec<_>>().join(", ");
    let (name, judged) = &texts[0];
    let text = format!("{name}: {}; not judged: {others}", judged.reason());
    Ok(Findings::of(judged.with(text), parts))
}

/// One operator of each input: the others of a block read the same channels, and the second matrix of the
/// decay gate has as many as a set.
fn distinct(sites: Vec<Site>) -> Vec<Site> {
    sites.into_iter().filter(|site| INPUTS.contains(&site.operator)).collect()
}

fn row(name: &str, kind: &str, found: &[Sets]) -> [String; 8] {
    let of = |pick: fn(&Sets) -> &Points| {
        let (first, end): (Vec<f64>, Vec<f64>) =
            found.iter().map(|one| quarters(pick(one))).unzip();
        [spread(&first), spread(&end)]
    };
    let ([a, b], [c, d]) = (of(|sets| &sets.last), of(|sets| &sets.consecutive));
    let records = found.first().map_or(0, |one| one.last.len() + 1);
    let of = |pick: fn(&Sets) -> f64| spread(&found.iter().map(pick).collect::<Vec<_>>());
    let life = format!("{}, of {records}", of(|sets| sets.life));
    [name.to_owned(), kind.to_owned(), a, b, c, d, life, of(|sets| 100.0 * sets.lasting)]
}

fn picture(name: &str, all: [(&str, &Vec<Sets>); 2], drift: &[Points]) -> plot::Figure {
    let mut last = Panel::new(Axis::linear("Jaccard index with the final set"));
    let mut consecutive = Panel::new(Axis::linear("Jaccard index of consecutive sets"));
    for (kind, found) in all {
        let of = |pick: fn(&Sets) -> &Points| -> Vec<Points> {
            found.iter().map(|one| pick(one).clone()).collect()
        };
        last = draw(last, kind, &of(|sets| &sets.last));
        consecutive = draw(consecutive, kind, &of(|sets| &sets.consecutive));
    }
    let ranks = Panel::new(Axis::linear("Spearman, magnitudes of consecutive records"));
    plot::Figure::new(format!("Which channels are hot, over the run: {name}"))
        .subtitle(
            "GLA under nv-nvfp4, mean over inputs of q, o, gate and down; bands: range of seeds",
        )
        .x(Axis::linear("step"))
        .panel(last.rule(LATE.bound(), "claimed at the end").rule(EARLY.bound(), "at first below"))
        .panel(consecutive)
        .panel(draw(ranks, "rank drift", drift))
}
