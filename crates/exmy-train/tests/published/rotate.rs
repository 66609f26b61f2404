//! QuaRot's rotations: Hadamard matrices, the same function, and hot channels that are none any more.

use super::smooth::{logits, model};
use super::{data, farthest};
use exmy::block::hadamard::Hadamard;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::Stream;
use exmy::slice::{View, ViewMut};
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::rotate::{rotate, rotate_down, untied};
use exmy_train::evaluate::{Evaluation, Windows};
use exmy_train::nn::Cpu;
use exmy_train::nn::decoder::{Config, Decoder};
use exmy_train::nn::hadamard::Rotation;
use exmy_train::nn::site::Place;
use exmy_train::published::Published;
use exmy_train::recipe::{Engine, Images, Observer, Phase, Plan, Recipe};

/// Of each kind: Sylvester's, Paley's two, Williamson's, and products. Rows are orthogonal and have one
/// magnitude.
#[test]
fn rotations_are_hadamard_matrices() {
    let of = |n: usize| Rotation::new(n, 3, Stream::new("test"));
    for n in [1, 2, 4, 64, 12, 20, 24, 28, 36, 44, 52, 60, 76, 92, 140, 172, 576, 896] {
        let rotation = of(n).unwrap_or_else(|| panic!("{n}"));
        let row = |i: usize| {
            let mut x = vec![0.0; n];
            x[i] = 1.0;
            rotation.apply(&mut x);
            x
        };
        let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
        for (i, a) in rows.iter().enumerate() {
            assert!(a.iter().all(|x| (x.abs() * (n as f64).sqrt() - 1.0).abs() < 1e-12), "{n}");
            for (j, b) in rows.iter().enumerate().take(i + 1) {
                let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12, "{n}: {i} {j}");
            }
        }
    }
    // No order but 1, 2 and multiples of 4; of 188 no construction gives one.
    assert!([0, 3, 6, 10, 18, 188].into_iter().all(|n| of(n).is_none()));
    let signs = |seed| {
        let mut x = [1.0; 64];
        Rotation::new(64, seed, Stream::new("test")).unwrap().apply(&mut x);
        x
    };
    assert!(signs(1) == signs(1) && signs(1) != signs(2));
}

#[test]
fn the_function_stays() {
    for family in ["llama", "llama3", "mistral", "qwen2", "qwen3"] {
        let (config, weights, tokens) = model(family);
        let before = logits(&config, &weights, &tokens);
        let (config, mut weights) = untied(&config, weights);
        assert_eq!(logits(&config, &weights, &tokens), before, "{family}");
        let old = weights.clone();
        rotate(&config, &config.layout(), &mut weights, 1).unwrap();
        let error = farthest(&logits(&config, &weights, &tokens), &before);
        assert!(error < 1e-5, "{family}: {error:e}");
        // Nothing stays but norms over queries and keys, and biases of what does not write the stream.
        for entry in &config.layout() {
            let same = weights[entry.range.clone()] == old[entry.range.clone()];
            let stays = [
                "q_norm",
                "k_norm",
                "q_proj.bias",
                "k_proj.bias",
                "gate_proj.bias",
                "up_proj.bias",
            ];
            assert_eq!(same, stays.iter().any(|name| entry.name.contains(name)), "{}", entry.name);
        }
    }
    for (family, why) in
        [("olmo2", "norms come after"), ("gpt2", "layer norms"), ("gla", "gated linear")]
    {
        let (config, weights, _) = model(family);
        let (config, mut weights) = untied(&config, weights);
        let error = rotate(&config, &config.layout(), &mut weights, 1).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    // What does not go is named: of a width whose matrix is known the heads' may not be.
    let config = Config { d_model: 60, heads: 2, kv_heads: 2, ..Config::default() };
    let mut weights = config.initialize(1);
    let error = rotate(&config, &config.layout(), &mut weights, 1).unwrap_err();
    assert!(error.to_string().contains("head_dim is 30, and no Hadamard matrix"), "{error}");
}

/// A channel of the stream that is hot in every token, as real checkpoints have them.
#[test]
fn a_hot_channel_is_spread() {
    let (config, mut weights, tokens) = model("llama");
    let (layout, d) = (config.layout(), config.d_model);
    let table = layout.find("model.embed_tokens.weight").unwrap().range.clone();
    weights[table].chunks_mut(d).for_each(|row| row[5] = 40.0 * row[3]);
    let before = logits(&config, &weights, &tokens);
    let hot = |weights: &[f32]| -> Vec<f64> {
        let seen = Layers::of_text(&config, weights, &tokens).unwrap();
        let first = seen.linears().find(|(site, _)| site.to_string() == "layers.0.q_proj").unwrap();
        vec![first.1.input.over_median(), first.1.input.kurtosis()]
    };
    // A scale a token, as QuaRot has them: blocks of 32 shut a hot channel in.
    let cost = |weights: &[f32]| {
        let recipes = ["f32", "f32+input=e2m1/row:e8m0"].map(|name| name.parse().unwrap());
        let mut evaluation =
            Evaluation::new(Cpu::new(), config, weights.to_vec(), &recipes).unwrap();
        let windows = Windows { window: tokens.len(), stride: tokens.len() }.of(tokens.len());
        evaluation.block(&tokens, &windows[0], 0, false).unwrap();
        evaluation.measures().last().unwrap().divergence[0]
    };
    let (was, lost) = (hot(&weights), cost(&weights));
    rotate(&config, &layout, &mut weights, 1).unwrap();
    let error = farthest(&logits(&config, &weights, &tokens), &before);
    assert!(error < 1e-4, "{error:e}");
    let (is, loses) = (hot(&weights), cost(&weights));
    assert!(is[0] < 0.5 * was[0] && is[1] < 0.2 * was[1], "{was:?} {is:?}");
    assert!(loses < 0.8 * lost, "{lost} {loses}");
    let model = Published::open(&data("llama")).unwrap();
    assert!(!model.config().tied, "a test of nothing");
}

/// What is at a place of the first block, and the logits.
fn at(
    place: Place,
    recipe: &str,
    (config, weights, tokens): &(Config, Vec<f32>, Vec<u32>),
) -> [Vec<f32>; 2] {
    struct SeenPlace(Place, Vec<f32>);
    impl Observer for SeenPlace {
        fn place(&mut self, layer: Option<u32>, place: Place, _: bool, values: View<'_, f32>) {
            if (layer, place) == (Some(0), self.0) {
                self.1 = values.data().to_vec();
            }
        }
    }
    let mut decoder = Decoder::<Cpu>::new(*config).unwrap();
    let recipe: Recipe = recipe.parse().unwrap();
    let plan = Plan::new(&recipe, decoder.layout(), 1).unwrap();
    let (mut images, mut seen) = (Images::default(), SeenPlace(place, Vec::new()));
    let phase = Phase::Evaluate { step: 0, pass: 0 };
    let mut engine = Engine::new(&plan, 0, phase, &mut images).observed(&mut seen);
    let logits = decoder.last_logits(weights, tokens, &mut engine).numbers().to_vec();
    [seen.1, logits]
}

/// QuaRot's cache: a head of keys is rotated, rounded, and here rotated back, which is as good as rotating
/// the queries.
#[test]
fn keys_and_values_are_rounded_in_rotated_coordinates() {
    let model = model("llama");
    let width = model.0.kv_heads * model.0.head_dim();
    let (ht, format) = ("ht8-f32", "e2m1/8:e8m0");
    for (place, name) in [(Place::K, "k"), (Place::V, "v")] {
        let [plain, exact] = at(place, "f32", &model);
        let [_, turned] = at(place, &format!("f32+{name}:tensor={ht}>none"), &model);
        let error = farthest(&turned, &exact);
        assert!(error < 1e-5 && turned != exact, "{name}: {error:e}");
        let rotation: Hadamard = ht.parse().unwrap();
        let quantizer: Quantizer = format.parse().unwrap();
        let rows = plain.len() / width;
        let (mut rotated, mut expected) = (plain.clone(), vec![0.0; plain.len()]);
        rotation.apply(&mut rotated);
        let out = ViewMut::new(&mut expected, rows, width);
        quantizer.image_into(View::new(&rotated, rows, width), Axis::Cols, None, out);
        rotation.invert(&mut expected);
        let [found, _] = at(place, &format!("f32+{name}:tensor={ht}>{format}"), &model);
        assert_eq!(found, expected, "{name}");
    }
    let layout = model.0.layout();
    for (recipe, why) in [
        ("f32+k=rht8>mxfp4", "without signs"),
        ("f32+residual=ht8>mxfp4", "not residual"),
        ("f32+k:attention=ht8>mxfp4", "not attention"),
        (
            "f32+v=ht64>mxfp4",
            "v=ht64>mxfp4: groups of 64 do not fill the 16 numbers that v has of a token: ht16 in place of \
             ht64",
        ),
    ] {
        let error = match recipe.parse::<Recipe>() {
            Ok(recipe) => Plan::new(&recipe, &layout, 1).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(why), "{error}");
    }
}

/// A hot channel of the values is none in what o reads, whether or not v has a bias.
#[test]
fn a_hot_value_is_spread() {
    for family in ["llama", "qwen2"] {
        let (config, mut weights, tokens) = model(family);
        let layout = config.layout();
        let v = "model.layers.0.self_attn.v_proj";
        let rows = layout.find(&format!("{v}.weight")).unwrap().range.clone();
        for w in &mut weights[rows][..config.d_model] {
            *w *= 40.0;
        }
        if let Some(bias) = layout.find(&format!("{v}.bias")) {
            weights[bias.range.start] += 30.0;
        }
        let before = logits(&config, &weights, &tokens);
        let hot = |config: &Config, weights: &[f32]| {
            let seen = Layers::of_text(config, weights, &tokens).unwrap();
            let o = seen.linears().find(|(site, _)| site.to_string() == "layers.0.o_proj").unwrap();
            [o.1.input.over_median(), o.1.input.kurtosis()]
        };
        let was = hot(&config, &weights);
        let (config, mut weights) = untied(&config, weights);
        rotate(&config, &config.layout(), &mut weights, 1).unwrap();
        let error = farthest(&logits(&config, &weights, &tokens), &before);
        assert!(error < 1e-4, "{family}: {error:e}");
        let is = hot(&config, &weights);
        assert!(is[0] < 0.5 * was[0] && is[1] < 0.5 * was[1], "{family}: {was:?} {is:?}");
    }
}

/// Inputs of down are rotated in its weights and while the model computes; by a recipe in groups.
#[test]
fn what_down_reads_is_rotated_while_the_model_computes() {
    for family in ["gla", "gpt2", "llama", "olmo2", "qwen3"] {
        let (config, mut weights, tokens) = model(family);
        let (layout, hidden) = (config.layout(), config.hidden);
        let name = |name: &str| layout.find(name).unwrap().range.clone();
        // A unit of the first MLP that is hot in every token.
        for row in weights[name("model.layers.0.mlp.down_proj.weight")].chunks_mut(hidden) {
            row[5] /= 64.0;
        }
        let up = &mut weights[name("model.layers.0.mlp.up_proj.weight")];
        up[5 * config.d_model..][..config.d_model].iter_mut().for_each(|w| *w *= 64.0);
        let model = (config, weights, tokens);
        let [_, before] = at(Place::Residual, "f32", &model);
        let [_, in_groups] = at(Place::Residual, "f32+down_proj=ht16-f32>none", &model);
        assert!(farthest(&in_groups, &before) < 2e-5, "{family}");
        let (config, mut weights, tokens) = model;
        let hot = |config: &Config, weights: &[f32]| {
            let seen = Layers::of_text(config, weights, &tokens).unwrap();
            let site = "layers.0.down_proj";
            let down = seen.linears().find(|(found, _)| found.to_string() == site).unwrap();
            [down.1.input.over_median(), down.1.input.kurtosis()]
        };
        let was = hot(&config, &weights);
        let old = weights.clone();
        let turned = rotate_down(&config, &layout, &mut weights, 1).unwrap();
        assert_eq!(turned, Config { rotate_down: Some(1), ..config });
        for entry in &layout {
            let same = weights[entry.range.clone()] == old[entry.range.clone()];
            assert_eq!(same, !entry.name.ends_with("mlp.down_proj.weight"), "{}", entry.name);
        }
        let error = farthest(&logits(&turned, &weights, &tokens), &before);
        assert!(error < 2e-5, "{family}: {error:e}");
        let is = hot(&turned, &weights);
        assert!(is[0] < 0.5 * was[0] && is[1] < 0.5 * was[1], "{family}: {was:?} {is:?}");
        // An evaluation has the model's own weights and the rotated ones next to each other.
        let recipes = ["f32", "f32"].map(|name| name.parse().unwrap());
        let mut evaluation = Evaluation::new(Cpu::new(), config, old, &recipes).unwrap();
        evaluation.change(&turned, weights.clone());
        let windows = Windows { window: 24, stride: 12 }.of(tokens.len());
        for (number, window) in windows.iter().enumerate() {
            evaluation.block(&tokens, window, number as u64, false).unwrap();
        }
        let found = evaluation.measures().last().unwrap();
        assert!(found.divergence.iter().all(|nats| nats.abs() < 1e-5), "{family}: {found:?}");
        let error = rotate_down(&turned, &layout, &mut weights, 2).unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
    }
    let config = Config { hidden: 188, ..Config::default() };
    let mut weights = vec![0.0; config.layout().len()];
    let error = rotate_down(&config, &config.layout(), &mut weights, 1).unwrap_err();
    assert!(error.to_string().contains("hidden is 188, and no Hadamard matrix"), "{error}");
    let error = Config { rotate_down: Some(1), ..config }.validate().unwrap_err();
    assert!(error.to_string().contains("hidden is 188"), "{error}");
}
