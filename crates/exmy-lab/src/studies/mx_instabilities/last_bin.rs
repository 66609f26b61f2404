//! Why the last bin matters: gaps between neighbouring numbers, and how gains of norms cluster there.

use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::measure::Results;
use crate::outcome::number;
use crate::plot::{self, Axis, Panel, Series};
use crate::store::Trained;
use exmy::error::Result;
use exmy::format::Format;
use exmy_train::train::probe::{Key, Of};
use std::collections::BTreeMap;

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask(
            "the largest share of gains in the last bin in every seed",
            Is::Over(CLUSTERED),
            By::Value,
        ),
        ask("that at the start", Is::Under(CLUSTERED), By::Value),
        ask("the largest share of activations there", Is::Under(FEW), By::Value),
    ],
    Opposite::All(&[ask("the first of these", Is::Under(RARE), By::Value)]),
)
.noted(|| "Gains that begin there are the control.".into());

const FORMATS: [(&str, Format); 5] = [
    ("e4m3", Format::E4M3FN),
    ("e5m2", Format::E5M2),
    ("e3m2", Format::E3M2),
    ("e2m3", Format::E2M3),
    ("e2m1", Format::E2M1),
];
/// The share of gains in the last bin that counts as clustered.
const CLUSTERED: f64 = 0.5;
/// The share of gains below which nothing clusters.
const RARE: f64 = 0.05;
/// The share of activations that counts as a small one.
const FEW: f64 = 0.1;

/// Relative gaps `(x_(i+1) - x_i) / x_i` between the positive numbers of a format, by their index.
pub fn gaps(format: Format) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = format
        .codes()
        .map(|code| format.decode(code).to_f64())
        .filter(|value| value.is_finite() && *value > 0.0)
        .collect();
    values.sort_by(f64::total_cmp);
    let pairs = values.windows(2).enumerate();
    pairs.map(|(i, pair)| (i as f64, (pair[1] - pair[0]) / pair[0])).collect()
}

/// The parts of a probe as curves by name.
fn curves(run: &Trained, probe: &str) -> Result<BTreeMap<Key, Vec<(f64, f64)>>> {
    let mut all: BTreeMap<Key, Vec<(f64, f64)>> = BTreeMap::new();
    for line in run.probe(probe)? {
        for (key, value) in &line.values.parts {
            if let Some(value) = value.number() {
                all.entry(key.clone()).or_default().push((line.step as f64, value));
            }
        }
    }
    Ok(all)
}

/// What a run shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustering {
    /// Shares of gains at the beginning, at most, and at the end.
    pub first: f64,
    pub most: f64,
    pub last: f64,
    /// The largest share of activations.
    pub activations: f64,
}

impl Clustering {
    fn of(run: &Trained) -> Result<Self> {
        let gains = run.values("lastbin.gamma")?;
        let most = |values: &[(f64, f64)]| values.iter().map(|v| v.1).fold(0.0, f64::max);
        let end = |value: Option<&(f64, f64)>| value.map_or(f64::NAN, |value| value.1);
        Ok(Self {
            first: end(gains.first()),
            most: most(&gains),
            last: end(gains.last()),
            activations: most(&run.values("lastbin.activations")?),
        })
    }

    /// Gains jump into the last bin from outside it, activations stay out.
    fn clusters(&self) -> bool {
        self.first < CLUSTERED && self.most > CLUSTERED && self.activations < FEW
    }
}

pub fn judge(natural: &[Clustering], control: &[Clustering]) -> Verdict {
    let count = natural.iter().filter(|seen| seen.clusters()).count();
    let most = natural.iter().map(|seen| seen.most).fold(f64::INFINITY, f64::min);
    let activations = natural.iter().map(|seen| seen.activations).fold(0.0, f64::max);
    let text = format!(
        "in {count} of {} natural runs more than {CLUSTERED} of the gains enter the last bin (at least \
         {most:.2} at their height) while never more than {activations:.3} of all activations together are \
         there",
        natural.len()
    );
    let verdict = match count {
        count if count == natural.len() && count > 0 => Verdict::Reproduced(text),
        0 if natural.iter().all(|seen| seen.most < RARE) => Verdict::Contradicted(text),
        _ => Verdict::NotSeen(text),
    };
    let least = control.iter().map(|seen| seen.first).fold(f64::INFINITY, f64::min);
    let fired = !control.is_empty() && least > CLUSTERED;
    verdict.controlled(fired, &format!("gains that begin at 0.95 +- 0.02 give {least:.2}"))
}

/// `layers.0.norm_output` as `norm_output`: the mean over layers.
fn by_place(parts: &BTreeMap<Key, Vec<(f64, f64)>>) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut sums: BTreeMap<String, (usize, Vec<(f64, f64)>)> = BTreeMap::new();
    for (key, curve) in parts {
        let Of::Place(_, place) = key.of() else { continue };
        let place = place.name().replace('_', " ");
        let (count, sum) = sums
            .entry(place)
            .or_insert_with(|| (0, curve.iter().map(|point| (point.0, 0.0)).collect()));
        *count += 1;
        sum.iter_mut().zip(curve).for_each(|(sum, point)| sum.1 += point.1);
    }
    let mean = |(count, sum): (usize, Vec<(f64, f64)>)| {
        sum.into_iter().map(|(x, y)| (x, y / count as f64)).collect()
    };
    sums.into_iter().map(|(name, entry)| (name, mean(entry))).collect()
}

/// How far neighbouring numbers are apart.
fn formats() -> [Part; 2] {
    let mut panel = Panel::new(Axis::log("relative gap"));
    let mut table = Table::new(
        "positive numbers of the formats; band: what MX blocks make of their largest elements, in units of \
         the block maximum's power of two",
        &["format", "numbers", "largest", "gap below it", "clamped above"],
    );
    for (name, format) in FORMATS {
        let gaps = gaps(format);
        let max = format.max().to_f64();
        let band = max / libm::exp2(libm::floor(libm::log2(max)));
        let last = gaps.last().map_or(f64::NAN, |gap| gap.1);
        table.row([
            name.into(),
            (gaps.len() + 1).to_string(),
            format!("{max}"),
            format!("{:.2} %", 100.0 * last),
            format!("{band}"),
        ]);
        panel = panel.line(Series::new(name, gaps));
    }
    let picture = Part::Picture(
        plot::Figure::new("How far neighbouring numbers are apart, by format")
            .subtitle("gap to the next number over the number, positive numbers in order; subnormals at the \
                       left")
            .x(Axis::whole("index of the number"))
            .panel(panel),
    );
    [picture, Part::Table(table)]
}

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let mut parts = Vec::from(formats());
    let mut table = Table::new(
        "shares in the last bin of blocks of 32 (E4M3): of all gains, and the most of activations",
        &["run", "seed", "gains at the start", "at most", "at the end", "activations at most"],
    );
    let (mut natural, mut control) = (Vec::new(), Vec::new());
    for point in &results.points {
        let name = point.words(&[]);
        let mut shares = Panel::new(Axis::linear("share of gains in the last bin").range(0.0, 1.0));
        let mut means = Panel::new(Axis::linear("mean gain")).rule(1.0, "").rule(0.875, "7/8");
        let mut others = Panel::new(Axis::linear("share of activations").include(0.0));
        for (planned, run) in results.trained(point)? {
            let seed = planned.config.seed;
            let seen = Clustering::of(&run)?;
            table.row([
                name.clone(),
                seed.to_string(),
                number(seen.first),
                number(seen.most),
                number(seen.last),
                number(seen.activations),
            ]);
            match name.as_str() {
                "natural" => natural.push(seen),
                "gains begin at 0.95" => control.push(seen),
                _ => {}
            }
            if seed > 1 {
                continue;
            }
            for (norm, curve) in curves(&run, "lastbin.gamma")? {
                shares = shares.line(Series::new(short(norm.of()), curve));
            }
            for (key, curve) in curves(&run, "gamma")? {
                // Biases of norms are no gains.
                if key.statistic() == "mean" && !key.of().is_bias() {
                    means = means.line(Series::new(short(key.of()), curve));
                }
            }
            for (place, curve) in by_place(&curves(&run, "lastbin.activations")?) {
                others = others.line(Series::new(place, curve));
            }
        }
        parts.push(Part::Picture(
            plot::Figure::new(format!("Gains and activations in the last bin: {name}"))
                .subtitle("seed 1; between 7/8 and 1 lies the band in which E4M3 makes all gains of a block \
                           7/8")
                .x(Axis::linear("step"))
                .panel(shares)
                .panel(means)
                .panel(others),
        ));
    }
    parts.push(Part::Table(table));
    Ok(Findings::of(judge(&natural, &control), parts))
}

/// `layers.0.input`, of a norm's gains: legends are narrow.
fn short(norm: &Of) -> String {
    norm.to_string().replace("model.", "").replace("_layernorm", "").replace(".weight", "")
}
