//! Recipes at work: which image each product sees, and identities between recipes.

mod border;
mod bundles;
mod docs;
mod hot;
mod interventions;
mod mechanisms;
mod options;
mod restated;
mod sums;

use exmy::gemm::Operand as Factor;
use exmy::gemm::fast::{Scaling, multiply_plain};
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::nn::device::{Cpu, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::{Engine, Images, Linear, Observer, Phase, Plan, Recipe, Rounded};
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;
use exmy_train::train::trainer::Trainer;

fn values(len: usize, of: u64) -> Vec<f32> {
    let random = Philox::new(9, Stream::new("recipe test").with(of));
    (0..len as u64).map(|i| (random.uniform(i) as f32 - 0.5) * 4.0).collect()
}

fn image(text: &str, x: View<'_, f32>, axis: Axis) -> Vec<f32> {
    let quantizer: Quantizer = text.parse().unwrap();
    let mut image = vec![0.0; x.rows() * x.cols()];
    let out = ViewMut::new(&mut image, x.rows(), x.cols());
    quantizer.image_into(x, axis, Philox::new(0, Stream::new("unused")), out);
    image
}

/// The product of images, in the order of rounded operands.
fn product(a: View<'_, f32>, b: View<'_, f32>) -> Vec<f32> {
    let mut c = vec![0.0; a.rows() * b.cols()];
    let out = ViewMut::new(&mut c, a.rows(), b.cols());
    multiply_plain(&Factor::from(a), &Factor::from(b), out, Scaling::OVERWRITE);
    c
}

const TOKENS: usize = 48;
const INPUTS: usize = 40;
/// Two operators that share an input, as q and k do; neither is a multiple of a block.
const MEMBERS: [(Operator, usize); 2] = [(Operator::Q, 24), (Operator::K, 12)];
const OUTPUTS: usize = 36;

/// The group in the second of four blocks.
fn linears() -> Vec<Linear> {
    let linear = |layer, (operator, outputs)| {
        let site = Site { layer: Some(layer), operator };
        Linear { site, outputs, inputs: INPUTS }
    };
    (0..4).flat_map(|layer| MEMBERS.map(|member| linear(layer, member))).collect()
}

/// The three products of input, weight and gradient; those of weights are added to a number.
fn three_products(
    engine: &mut Engine<'_>,
    group: &Group<'_>,
    [x, w, g]: [View<'_, f32>; 3],
    weights: f32,
) -> [Vec<f32>; 3] {
    let (tokens, inputs, outputs) = (x.rows(), x.cols(), w.rows());
    let mut y = vec![0.0; tokens * outputs];
    let mut dx = vec![0.0; tokens * inputs];
    let mut dw = vec![weights; outputs * inputs];
    let cpu = Cpu::new();
    engine.forward(&cpu, group, x.into(), w.into(), MatrixMut::new(&mut y, tokens, outputs));
    engine.grad_input(&cpu, group, g.into(), w.into(), MatrixMut::new(&mut dx, tokens, inputs));
    engine.grad_weight(&cpu, group, g.into(), x.into(), MatrixMut::new(&mut dw, outputs, inputs));
    [y, dx, dw]
}

/// The three products of the group under a recipe.
fn products(recipe: &str, observer: Option<&mut dyn Observer>) -> [Vec<f32>; 3] {
    let recipe: Recipe = recipe.parse().unwrap();
    let plan = Plan::of(&recipe, linears(), 100).unwrap();
    let mut images = Images::default();
    let mut engine = Engine::new(&plan, 7, Phase::Train(3), &mut images);
    if let Some(observer) = observer {
        engine = engine.observed(observer);
    }
    let group = Group { layer: Some(1), members: &MEMBERS };
    let (x, w) = (values(TOKENS * INPUTS, 0), values(OUTPUTS * INPUTS, 1));
    let g = values(TOKENS * OUTPUTS, 2);
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let g = View::new(&g, TOKENS, OUTPUTS);
    three_products(&mut engine, &group, [x, w, g], 0.0)
}

/// Each member's rows (weights) or columns (gradients) are a tensor of their own; the blocks run
/// along the sum of the product.
fn by_members(text: &str, whole: View<'_, f32>, axis: Axis, rows: bool) -> Vec<f32> {
    let mut result = vec![0.0; whole.rows() * whole.cols()];
    let mut start = 0;
    for (_, width) in MEMBERS {
        let range = start..start + width;
        let part = if rows { whole.rows_range(range) } else { whole.cols_range(range) };
        let part_image = image(text, part, axis);
        for i in 0..part.rows() {
            for j in 0..part.cols() {
                let (row, col) = if rows { (start + i, j) } else { (i, start + j) };
                result[row * whole.cols() + col] = part_image[i * part.cols() + j];
            }
        }
        start += width;
    }
    result
}

#[test]
fn every_product_quantizes_along_its_own_sum() {
    let (x, w) = (values(TOKENS * INPUTS, 0), values(OUTPUTS * INPUTS, 1));
    let g = values(TOKENS * OUTPUTS, 2);
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let g = View::new(&g, TOKENS, OUTPUTS);
    for (recipe, values, gradients) in [
        ("mxfp8-e4m3", "mxfp8-e4m3", "mxfp8-e4m3"),
        ("mxfp8-mix", "mxfp8-e4m3", "mxfp8-e5m2"),
        ("e8m3@rtz", "e8m3@rtz", "e8m3@rtz"),
    ] {
        let [y, dx, dw] = products(recipe, None);
        let (qx, qw) = (image(values, x, Axis::Cols), by_members(values, w, Axis::Cols, true));
        let (qx, qw) = (View::new(&qx, TOKENS, INPUTS), View::new(&qw, OUTPUTS, INPUTS));
        assert_eq!(y, product(qx, qw.t()), "{recipe} forward");
        let qg = by_members(gradients, g, Axis::Cols, false);
        let qw = by_members(values, w, Axis::Rows, true);
        let (qg, qw) = (View::new(&qg, TOKENS, OUTPUTS), View::new(&qw, OUTPUTS, INPUTS));
        assert_eq!(dx, product(qg, qw), "{recipe} grad_input");
        let (qg, qx) = (by_members(gradients, g, Axis::Rows, false), image(values, x, Axis::Rows));
        let (qg, qx) = (View::new(&qg, TOKENS, OUTPUTS), View::new(&qx, TOKENS, INPUTS));
        assert_eq!(dw, product(qg.t(), qx), "{recipe} grad_weight");
    }
}

/// Members with tensor scales: each is multiplied by itself, and where outputs are summed over, those
/// after the first are added.
#[test]
fn tensor_scales_multiply_the_sums_of_their_members() {
    let (x, w) = (values(TOKENS * INPUTS, 0), values(OUTPUTS * INPUTS, 1));
    let g = values(TOKENS * OUTPUTS, 2);
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let g = View::new(&g, TOKENS, OUTPUTS);
    let quantizer: Quantizer = "nvfp4".parse().unwrap();
    let unused = Philox::new(0, Stream::new("unused"));
    let tensor = |x, axis| quantizer.quantize(x, axis, unused).unwrap();
    let [y, dx, dw] = products("nvfp4", None);
    let (mut expected_dx, mut start) = (vec![f32::NAN; TOKENS * INPUTS], 0);
    for (_, width) in MEMBERS {
        let range = start..start + width;
        let (w, g) = (w.rows_range(range.clone()), g.cols_range(range.clone()));
        let with = Scaling::OVERWRITE;

        let (tx, tw) = (tensor(x, Axis::Cols), tensor(w, Axis::Cols));
        let mut part = vec![0.0; TOKENS * width];
        let out = ViewMut::new(&mut part, TOKENS, width);
        multiply_plain(&Factor::from(&tx), &Factor::from(&tw).t(), out, with);
        for (row, part) in y.chunks(OUTPUTS).zip(part.chunks(width)) {
            assert_eq!(row[range.clone()], *part);
        }

        let (tg, tw) = (tensor(g, Axis::Cols), tensor(w, Axis::Rows));
        let out = ViewMut::new(&mut expected_dx, TOKENS, INPUTS);
        let add = if start == 0 { with } else { Scaling::ACCUMULATE };
        multiply_plain(&Factor::from(&tg), &Factor::from(&tw), out, add);

        let (tg, tx) = (tensor(g, Axis::Rows), tensor(x, Axis::Rows));
        let mut part = vec![0.0; width * INPUTS];
        let out = ViewMut::new(&mut part, width, INPUTS);
        multiply_plain(&Factor::from(&tg).t(), &Factor::from(&tx), out, with);
        assert_eq!(dw[start * INPUTS..][..width * INPUTS], part);
        start += width;
    }
    assert_eq!(dx, expected_dx);
}

#[test]
fn outputs_are_stored_in_bf16_where_the_recipe_says_so() {
    let [plain, plain_dx, plain_dw] = products("bf16", None);
    let [y, dx, dw] = products("bf16+out=bf16", None);
    let rounded = |x: &[f32]| image("bf16", View::new(x, 1, x.len()), Axis::Cols);
    assert_eq!(y, rounded(&plain));
    assert_eq!(dx, rounded(&plain_dx));
    assert_eq!(dw, plain_dw);
    assert_ne!(y, plain);
}

/// An operand: its place, its shape, and whether rounding changed it.
type Sight = (Operator, Product, Operand, (usize, usize), bool);

/// Keeps what it sees.
#[derive(Default)]
struct SeenSites(Vec<Sight>);

impl Observer for SeenSites {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, product, operand, before, after, .. } = *seen;
        assert_eq!((before.rows(), before.cols()), (after.rows(), after.cols()));
        let all = (0..before.rows()).flat_map(|i| (0..before.cols()).map(move |j| (i, j)));
        let changed = all.into_iter().any(|(i, j)| before.at(i, j) != after.at(i, j));
        let shape = (before.rows(), before.cols());
        self.0.push((site.operator, product, operand, shape, changed));
    }
}

#[test]
fn an_observer_sees_every_operand_and_changes_nothing() {
    let mut seen = SeenSites::default();
    assert_eq!(products("mxfp4@sr8", Some(&mut seen)), products("mxfp4@sr8", None));
    let expected: Vec<Sight> = [
        (Product::Forward, [Operand::Input, Operand::Weight]),
        (Product::GradInput, [Operand::GradOutput, Operand::Weight]),
        (Product::GradWeight, [Operand::GradOutput, Operand::Input]),
    ]
    .into_iter()
    .flat_map(|(product, operands)| operands.map(|operand| (product, operand)))
    .flat_map(|(product, operand)| MEMBERS.map(|(op, width)| (op, product, operand, width)))
    .map(|(op, product, operand, width)| {
        let shape = match operand {
            Operand::Input => (TOKENS, INPUTS),
            Operand::Weight => (width, INPUTS),
            Operand::GradOutput => (TOKENS, width),
        };
        (op, product, operand, shape, true)
    })
    .collect();
    assert_eq!(seen.0, expected);
    let mut seen = SeenSites::default();
    products("f32", Some(&mut seen));
    assert!(seen.0.iter().all(|(.., changed)| !changed) && seen.0.len() == 12);
}

/// The random words of an operand are addressed by step, layer, operator, product and operand, as
/// written out here.
#[test]
fn random_streams_are_named_by_their_place() {
    struct Keep(Vec<f32>);
    impl Observer for Keep {
        fn operand(&mut self, seen: &Rounded<'_>) {
            let Rounded { site, product, operand, after, .. } = *seen;
            if (site.operator, product, operand)
                == (Operator::K, Product::GradWeight, Operand::GradOutput)
            {
                let all = (0..after.rows()).flat_map(|i| (0..after.cols()).map(move |j| (i, j)));
                self.0 = all.into_iter().map(|(i, j)| after.at(i, j)).collect();
            }
        }
    }
    let mut keep = Keep(Vec::new());
    products("e4m3@sr8", Some(&mut keep));
    let (step, layer_1, k, grad_weight, grad_output) = (3, 2, 1, 2, 2);
    let stream = Stream::new("quantize").with(step).with(layer_1).with(k);
    let random = Philox::new(7, stream.with(grad_weight).with(grad_output));
    let g = values(TOKENS * OUTPUTS, 2);
    let part = View::new(&g, TOKENS, OUTPUTS).cols_range(24..36);
    let mut expected = vec![0.0; TOKENS * 12];
    let quantizer: Quantizer = "e4m3@sr8".parse().unwrap();
    let out = ViewMut::new(&mut expected, TOKENS, 12);
    quantizer.image_into(part, Axis::Rows, random, out);
    assert_eq!(keep.0, expected);
}

#[test]
fn phases_share_no_stream() {
    let phases = [
        Phase::Train(0),
        Phase::Train(1),
        Phase::Evaluate { step: 0, pass: 0 },
        Phase::Evaluate { step: 0, pass: 1 },
        Phase::Evaluate { step: 1, pass: 0 },
        Phase::Sample(0),
        Phase::Sample(1),
    ];
    for (i, a) in phases.iter().enumerate() {
        assert!(phases[..i].iter().all(|b| a.stream() != b.stream()), "{a:?}");
    }
    assert_eq!(Phase::Train(3).stream(), Stream::new("quantize").with(3));
}

/// Losses and final weights of a few steps.
fn train(recipe: &str) -> (Vec<f64>, Vec<f32>) {
    let mut config: Config = preset("nano").unwrap();
    config.recipe = recipe.parse().unwrap();
    config.model.decoder_mut().unwrap().context = 32;
    config.train.batch = 2;
    config.record.eval_windows = 4;
    let options = DataOptions {
        synthetic_train_bytes: 4096,
        synthetic_validation_bytes: 1024,
        ..DataOptions::default()
    };
    let data = Dataset::load(&Source::default(), &options).unwrap();
    let mut trainer = Trainer::new(&config, &data).unwrap();
    let mut losses: Vec<f64> = (0..8).map(|_| trainer.step(None).loss).collect();
    losses.push(trainer.validation_loss());
    (losses, trainer.state().params.to_vec())
}

/// Cutting no bit of a bf16 value is bf16 with bf16 outputs; cutting one is another training.
#[test]
fn bitred_e8m7_is_bf16_with_bf16_outputs_bit_for_bit() {
    let expected = train("bf16+out=bf16");
    assert!(train("bitred-e8m7") == expected);
    assert!(train("bitred-e8m6") != expected);
    assert!(train("bf16") != expected);
}

/// Evaluating draws no bits from training.
#[test]
fn an_evaluation_changes_no_later_step() {
    let mut config = preset("nano").unwrap();
    config.recipe = "mxfp4@sr8".parse().unwrap();
    config.train.batch = 1;
    config.record.eval_windows = 2;
    let options = DataOptions { synthetic_train_bytes: 4096, ..DataOptions::default() };
    let data = Dataset::load(&Source::default(), &options).unwrap();
    let run = |evaluates: bool| {
        let mut trainer = Trainer::new(&config, &data).unwrap();
        for _ in 0..4 {
            trainer.step(None);
            if evaluates {
                trainer.validation_loss();
            }
        }
        let state = trainer.state();
        assert!(state.memory.is_empty());
        [state.params, state.m, state.v].map(|arena| arena.to_vec())
    };
    assert!(run(true) == run(false));
}
