//! E11: what patches of hot channels give back, by forward products alone.
//!
//! Products of drawn operands first: N(0, 1) activations with ten channels 8 to 30 times as large, weights of
//! deviation 0.02. That more patches leave less of their error follows from how patches are defined; it is a
//! check, and judges nothing. Judged are trained models in which channels are made hot without a change of
//! function: gains of norms times a power of two, columns of what reads them divided by it.

use super::product;
use super::weights::{data, under};
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::measure::Results;
use crate::plot::{self, Axis, Panel};
use crate::series::{draw, spread};
use crate::statistics::mean;
use crate::table::gap_percent;
use crate::table::number;
use crate::test_result::{TestResult, all, concluded};
use exmy::error::Result;
use exmy::gemm::f32::{Output, matmul};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::nn::device::{Cpu, Matrix, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::Operator;
use exmy_train::recipe::hot::{Count, Patch, Residual, Score, Terms};
use exmy_train::recipe::{Engine, Images, Phase};
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::trainer::Trainer;
use std::collections::BTreeMap;

/// The forms, in the order of the table.
const FORMS: [(&str, Patch); 5] = [
    ("O1-A", exact(Terms::Input)),
    ("O1-W", exact(Terms::Weight)),
    ("O2-B", exact(Terms::Both)),
    ("O2-B, NVFP4", NVFP4),
    ("literal", Patch::new(true, Terms::Literal)),
];
/// Another product whose residuals are not rounded.
pub const fn exact(terms: Terms) -> Patch {
    Patch { residual: Residual::Exact, ..Patch::new(false, terms) }
}
/// Both residuals in NVFP4 again, in one product.
const NVFP4: Patch = Patch::new(true, Terms::Both);
pub const COUNTS: [usize; 5] = [16, 32, 48, 128, 512];
/// Scores, granularities and numbers of residuals at 48 channels.
const WAYS: [(&str, Patch); 8] = [
    ("raw score, single channels, exact", OF_48),
    ("normalized score", Patch { score: Score::Normalized, ..OF_48 }),
    ("product score", Patch { score: Score::Product, ..OF_48 }),
    ("raw score, residuals in bf16", Patch { residual: Residual::Bf16, ..OF_48 }),
    ("raw score, groups of 16, exact", Patch { blocks: true, ..OF_48 }),
    ("product score, groups of 16, exact", Patch { blocks: true, score: Score::Product, ..OF_48 }),
    ("raw score, groups of 16, residuals in NVFP4", Patch { count: OF_48.count, ..NVFP4 }),
    (
        "product score, groups of 16, residuals in NVFP4",
        Patch { count: OF_48.count, score: Score::Product, ..NVFP4 },
    ),
];
const OF_48: Patch = Patch { count: Some(Count::Channels(48)), ..exact(Terms::Both) };
const SHAPE: (usize, usize, usize) = (256, 512, 256);
/// Channels of a model planted hot, and how hot.
const PLANTED: usize = 4;
const SCALES: [f64; 4] = [1.0, 4.0, 16.0, 64.0];
const MODELS: [(&str, &str); 3] = [
    ("no patch", "nv-nvfp4+last=0"),
    ("k = 16", "nv-nvfp4+last=0+hcp=s-o2-b-k16"),
    ("k = 32", "nv-nvfp4+last=0+hcp=s-o2-b-k32"),
];

/// Activations (tokens, inputs) and weights (outputs, inputs).
pub struct Drawn {
    x: Vec<f32>,
    w: Vec<f32>,
    /// `x wᵀ` in f32.
    y: Vec<f32>,
}

pub fn draw_operands(seed: u64) -> Drawn {
    let (tokens, inputs, outputs) = SHAPE;
    let philox = |label| Philox::new(seed, Stream::new(label));
    let normal = |label, count: usize, scale: f64| -> Vec<f32> {
        let random = philox(label);
        (0..count as u64).map(|i| (scale * product::normal(&random, i)) as f32).collect()
    };
    let mut x = normal("patch activations", tokens * inputs, 1.0);
    let hot = philox("patch channels");
    for i in 0..10 {
        let (channel, factor) =
            (hot.below(i, inputs as u64) as usize, 8.0 + 22.0 * hot.uniform(100 + i));
        x[channel..].iter_mut().step_by(inputs).for_each(|x| *x *= factor as f32);
    }
    let w = normal("patch weights", outputs * inputs, 0.02);
    let mut y = vec![0.0; tokens * outputs];
    let (left, right) = (View::new(&x, tokens, inputs), View::new(&w, outputs, inputs));
    matmul(left, right.t(), ViewMut::new(&mut y, tokens, outputs), Output::Overwrite);
    Drawn { x, w, y }
}

/// The relative error in Frobenius norm of a forward product in NVFP4, with a patch or without.
pub fn error(drawn: &Drawn, patch: Option<Patch>) -> Result<f64> {
    let (tokens, inputs, outputs) = SHAPE;
    let plan = product::plan(&product::patched(patch)?, outputs, inputs)?;
    let (mut images, mut y) = (Images::default(), vec![0.0; tokens * outputs]);
    let members = [(Operator::Up, outputs)];
    Engine::new(&plan, 1, Phase::Train(0), &mut images).forward(
        &Cpu::new(),
        &Group { layer: Some(0), members: &members },
        Matrix::new(&drawn.x, tokens, inputs),
        Matrix::new(&drawn.w, outputs, inputs),
        MatrixMut::new(&mut y, tokens, outputs),
    );
    let [wrong, all] = product::squares(&y, &drawn.y);
    Ok((wrong / all).sqrt())
}

/// Errors of every form by number of channels, draw by draw; 0 channels are no patch.
#[derive(Default)]
pub struct Errors {
    pub base: Vec<f64>,
    /// By form and channels.
    pub forms: BTreeMap<(usize, usize), Vec<f64>>,
    /// By way.
    pub ways: Vec<Vec<f64>>,
}

fn measure(draws: u64) -> Result<Errors> {
    let mut found = Errors { ways: vec![Vec::new(); WAYS.len()], ..Errors::default() };
    for seed in 1..=draws {
        let drawn = draw_operands(seed);
        found.base.push(error(&drawn, None)?);
        for (form, (_, patch)) in FORMS.into_iter().enumerate() {
            for k in COUNTS {
                let patch = Patch { count: Some(Count::Channels(k as u32)), ..patch };
                found.forms.entry((form, k)).or_default().push(error(&drawn, Some(patch))?);
            }
        }
        for (way, (_, patch)) in WAYS.into_iter().enumerate() {
            found.ways[way].push(error(&drawn, Some(patch))?);
        }
    }
    Ok(found)
}

/// The check of what must be by definition: that each larger number of channels, and both residuals in place
/// of one, leave less of the error.
pub fn check(found: &Errors) -> Verdict {
    let of = |form, k| found.forms.get(&(form, k)).map(Vec::as_slice).unwrap_or_default();
    // The weakest of several comparisons, as all must hold.
    let weakest = |all: Vec<TestResult>| {
        let rank = |claim: &TestResult| (!claim.opposite, claim.holds);
        let hold = all.iter().filter(|claim| claim.holds).count();
        let of = format!(" ({hold} of {} hold)", all.len());
        let found = all.into_iter().min_by_key(rank)?;
        Some(TestResult { text: found.text.clone() + &of, ..found })
    };
    let steps = COUNTS.windows(2).map(|two| {
        let names = (format!("error with {} channels", two[1]), format!("with {}", two[0]));
        TestResult::below((&names.0, of(2, two[1])), (&names.1, of(2, two[0])), "")
    });
    let mut parts: Vec<TestResult> = weakest(steps.collect()).into_iter().collect();
    for (form, name) in [(0, "O1-A"), (1, "O1-W")] {
        let each = COUNTS.map(|k| {
            let own = format!("error of O2-B with {k} channels");
            TestResult::below((&own, of(2, k)), (name, of(form, k)), "")
        });
        parts.extend(weakest(each.into()));
    }
    let found = all(&parts);
    Verdict::of_check(found.holds, found.text)
}

/// What the gaps of planted channels are judged by: those patched with the fewest channels against those that
/// are not patched; by recipe, hotness and seed.
pub fn claims(gaps: &[Vec<Vec<f64>>]) -> Vec<TestResult> {
    let hot = SCALES.iter().enumerate().filter(|(_, scale)| **scale >= HOT);
    let of = |(at, scale): (usize, &f64)| {
        let patched = format!("planted gap (times {scale}) with {}", MODELS[1].0);
        TestResult::below((&patched, &gaps[1][at]), (MODELS[0].0, &gaps[0][at]), " points")
    };
    hot.map(of).collect()
}

/// The channels of a model of some width that are planted hot.
pub fn planted_channels(width: usize) -> Vec<usize> {
    (0..PLANTED).map(|i| (2 * i + 1) * width / (2 * PLANTED)).collect()
}

/// The validation loss of weights under a recipe.
pub fn loss(config: &Config, recipe: &str, params: &[f32], text: &Dataset) -> Result<f64> {
    let mut config = under(config, recipe)?;
    config.record.eval_windows = 64;
    let mut trainer = Trainer::new(&config, text)?;
    trainer.begin(params.to_vec());
    Ok(trainer.validation_loss())
}

/// Gaps in percent by recipe, hotness and seed.
fn planted(results: &Results<'_>) -> Result<Vec<Vec<Vec<f64>>>> {
    let text = data(results.setting)?;
    let mut gaps = vec![vec![Vec::new(); SCALES.len()]; MODELS.len()];
    for (_, run) in results.picked(&["bf16"])? {
        let config = run.folder.config()?;
        let layout = config.model.layout();
        let trained = exmy_train::train::checkpoint::load_model(&run.folder.model_file(), &layout)?;
        let Some(model) = config.model.decoder() else { continue };
        let channels = planted_channels(model.d_model);
        for (at, &scale) in SCALES.iter().enumerate() {
            let mut params = trained.clone();
            model.plant(&mut params, &channels, scale);
            let base = loss(&config, "bf16+out=bf16", &params, &text)?;
            for (own, (_, recipe)) in MODELS.iter().enumerate() {
                gaps[own][at].push(gap_percent(loss(&config, recipe, &params, &text)?, base));
            }
        }
    }
    Ok(gaps)
}

/// Pictures and tables of the drawn products.
fn drawn_parts(found: &Errors) -> Vec<Part> {
    let mut header = vec!["form"];
    let names = COUNTS.map(|k| format!("k = {k}"));
    header.extend(names.iter().map(String::as_str));
    let mut table = Table::new(
        format!(
            "relative error of the product (mean and range over {} draws), by channels patched of 512; \
             without a patch {}. O1-A: residual of activations, O1-W: of weights, O2-B: both (NVFP4: rounded \
             again), literal: their product alone",
            found.base.len(),
            spread(&found.base)
        ),
        &header,
    );
    let mut panel = Panel::new(Axis::linear("relative error of the product").include(0.0));
    for (form, (name, _)) in FORMS.iter().enumerate() {
        let of = |k: usize| found.forms[&(form, k)].as_slice();
        table.row(std::iter::once((*name).to_owned()).chain(COUNTS.map(|k| spread(of(k)))));
        let by_draw = (0..found.base.len()).map(|i| {
            let points = COUNTS.iter().map(|&k| (k as f64, of(k)[i]));
            std::iter::once((0.0, found.base[i])).chain(points).collect()
        });
        panel = draw(panel, name, &by_draw.collect::<Vec<_>>());
    }
    let mut ways = Table::new(
        "relative error with 48 channels by score, granularity and numbers of the residuals",
        &["way", "error", "over that without a patch"],
    );
    for ((name, _), errors) in WAYS.iter().zip(&found.ways) {
        let ratio: Vec<f64> = errors.iter().zip(&found.base).map(|(a, b)| a / b).collect();
        ways.row([(*name).to_owned(), spread(errors), spread(&ratio)]);
    }
    let figure = plot::Figure::new("Error of a product by the residuals that are patched")
        .subtitle(
            "256 tokens x 512 channels x 256 outputs, ten hot channels; O1-A: residuals of activations, \
             O1-W: of weights, O2-B: of both, literal: their product alone; bands: range of draws",
        )
        .x(Axis::whole("channels patched"))
        .panel(panel);
    vec![Part::Picture(figure), Part::Table(table), Part::Table(ways)]
}

/// How much larger planted channels must be to count as hot.
const HOT: f64 = 16.0;

pub(crate) const ASKS: Criterion = Criterion::new(
    &[ask(
        "the gap with planted channels of which 16 are patched",
        Is::Below("that with none patched"),
        By::Interval,
    )],
    Opposite::One,
)
.noted(|| format!("Channels are planted {HOT} times as large, and 64 times."));

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let found = measure(results.setting.scale.pick([2, 30, 30]))?;
    let check = check(&found);
    let mut parts = drawn_parts(&found);
    parts.push(Part::Text(format!(
        "{} (what follows from how patches are defined, which judges nothing): {}.",
        check.word(),
        check.reason()
    )));
    let gaps = planted(results)?;
    let header: Vec<String> = SCALES.iter().map(|a| format!("times {a}")).collect();
    let mut names = vec!["recipe"];
    names.extend(header.iter().map(String::as_str));
    let mut table = Table::new(
        format!(
            "gap in percent of the validation loss of {} trained models with {PLANTED} channels of each norm \
             planted hot, all blocks in NVFP4 (mean and range)",
            gaps[0][0].len()
        ),
        &names,
    );
    let mut panel = Panel::new(Axis::linear("gap to bfloat16, %"));
    for ((name, _), by_scale) in MODELS.iter().zip(&gaps) {
        table.row(std::iter::once((*name).to_owned()).chain(by_scale.iter().map(|g| spread(g))));
        let of = |i: usize| -> Vec<(f64, f64)> {
            SCALES.iter().zip(by_scale).map(|(&a, gaps)| (a, gaps[i])).collect()
        };
        panel = draw(panel, name, &(0..by_scale[0].len()).map(of).collect::<Vec<_>>());
    }
    parts.push(Part::Picture(
        plot::Figure::new("Planted hot channels, patched and not")
            .subtitle("GLA trained in bfloat16, validation loss without further training; bands: range of \
                       seeds")
            .x(Axis::log("gain of the planted channels, times"))
            .panel(panel.rule(0.0, "bfloat16")),
    ));
    parts.push(Part::Table(table));
    let share = |form: usize, k: usize| {
        let ratio = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
        number(ratio(&found.forms[&(form, k)]) / ratio(&found.base))
    };
    parts.push(Part::Text(format!(
        "With 48 channels, O2-B leaves {} of the error, with its residuals in NVFP4 again {}. Taken \
         literally, a one-block augmentation adds the product of the residuals alone and leaves {}: the form \
         of the paper must be the one with two blocks. Inputs and outputs are bfloat16.",
        share(2, 48),
        share(3, 48),
        share(4, 48)
    )));
    Ok(concluded(&claims(&gaps), parts))
}
