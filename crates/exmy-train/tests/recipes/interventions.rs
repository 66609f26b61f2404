//! The interventions of the MX study in whole training steps: what `fwd-only` and `no-ln-q` leave in f32.

use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;
use exmy_train::train::trainer::Trainer;

use crate::options::{SeenOperand, Watch};
use crate::restated::bf16_away;

/// A proxy of two blocks of width 32, 16 rows a step, whose optimizer keeps the gradient as it is.
fn small(recipe: &str, settings: &[&str]) -> Config {
    let common = ["model.width=32", "train.batch=16", "train.optimizer=sgd", "train.momentum=0.9"];
    let mut config = preset("proxy").unwrap();
    for setting in [&common[..], &["train.clip=0.0", "train.lr=0.05"], settings].concat() {
        config = config.with_setting(setting).unwrap();
    }
    config.recipe = recipe.parse().unwrap_or_else(|error| panic!("{recipe}: {error}"));
    config
}

fn data() -> Dataset {
    Dataset::load(&Source::default(), &DataOptions::default()).unwrap()
}

/// `silu(gate) up` is rounded before the last product forward, and that of the backward pass reads it as it
/// was multiplied: two bfloat16 numbers have a product of at most sixteen significant bits.
#[test]
fn forward_only_keeps_the_product_of_gate_and_up() {
    let data = data();
    let first = |recipe: &str| {
        let config = small(recipe, &["model.activation=swiglu"]);
        let site = Site { layer: Some(1), operator: Operator::Down };
        let mut watch = Watch { site, seen: Vec::new() };
        let mut trainer = Trainer::new(&config, &data).unwrap();
        trainer.step(Some(&mut watch));
        let mut weight =
            trainer.layout().iter().filter(|entry| entry.name.ends_with("down_proj.weight"));
        let range = weight.next_back().unwrap().range.clone();
        // After one step the momentum is the gradient.
        (watch.seen, trainer.state().m[range].to_vec())
    };
    let of = |seen: &[SeenOperand], product, operand| -> Vec<f32> {
        let one = seen.iter().find(|seen| (seen.product, seen.operand) == (product, operand));
        one.unwrap().after.clone()
    };
    let is_bf16 = |x: &f32| x.to_bits() & 0xFFFF == 0;
    let (seen, gradient) = first("mxpaper-e4m3+fwd-only");
    let x = of(&seen, Product::GradWeight, Operand::Input);
    let g = of(&seen, Product::GradWeight, Operand::GradOutput);
    assert!(x.iter().all(|x| x.to_bits() & 0xFF == 0));
    assert!(x.iter().filter(|x| !is_bf16(x)).count() > x.len() / 2);
    // And it is what the gradient of the weight was made of.
    let (rows, inputs, outputs) = (16, x.len() / 16, g.len() / 16);
    assert_eq!(gradient.len(), inputs * outputs);
    let error = |x: &[f32]| -> f64 {
        let one = |at: usize| {
            let (i, j) = (at / inputs, at % inputs);
            let terms =
                (0..rows).map(|t| f64::from(g[t * outputs + i]) * f64::from(x[t * inputs + j]));
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            (f64::from(gradient[at]) - sum).abs() / size
        };
        (0..gradient.len()).map(one).fold(0.0, f64::max)
    };
    let rounded: Vec<f32> = x.iter().copied().map(bf16_away).collect();
    assert!(error(&x) < 1e-6 && error(&rounded) > 1e-4, "{} {}", error(&x), error(&rounded));
    // Where the backward pass is rounded, so is the product; forward reads the same numbers.
    let (plain, _) = first("mxpaper-e4m3");
    let before = |seen: &[SeenOperand], product| -> Vec<f32> {
        let mut inputs = seen.iter().filter(|seen| seen.operand == Operand::Input);
        inputs.find(|seen| seen.product == product).unwrap().before.clone()
    };
    assert_eq!(before(&plain, Product::GradWeight), rounded);
    let forward = |seen: &[SeenOperand]| of(seen, Product::Forward, Operand::Input);
    assert_eq!(forward(&seen), forward(&plain));
}

/// The row of docs/recipes.md on `no-ln-q`, sentence by sentence, as trainings that are the same and others.
#[test]
fn norms_without_rounding_are_as_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = page.lines().find(|line| line.starts_with("| `no-ln-q` |")).unwrap();
    let rules: Vec<&str> = row.split('`').skip(1).step_by(2).filter(|x| x.contains('=')).collect();
    let [tail, back] = rules[..] else { panic!("{rules:?}") };
    let data = data();
    let trained = |recipe: &str| {
        let config = small(recipe, &["model.gain_spread=0.1"]);
        let mut trainer = Trainer::new(&config, &data).unwrap();
        for _ in 0..3 {
            trainer.step(None);
        }
        trainer.state().params.to_vec()
    };
    let [whole, text, code] = ["", "+no-ln-q", "+no-ln-q=code"].map(|x| format!("mxpaper-e4m3{x}"));
    let [of_whole, of_text, of_code] = [&whole, &text, &code].map(|recipe| trained(recipe));
    assert!(of_whole != of_text && of_text != of_code && of_code != of_whole);
    // "Norms and their parameters are f32": both, and each makes a difference.
    let (steps, parameters) = ("+norm=none", "+norm_gamma:norm_beta:tensor=none");
    assert!(trained(&format!("{whole}{steps}{parameters}")) == of_text);
    for one in [steps, parameters] {
        assert!(trained(&format!("{whole}{one}")) != of_text, "{one}");
    }
    // "With `code` what follows the variance is bfloat16."
    assert!(trained(&format!("{text}{}", format_args!("+{tail}"))) == of_code);
    // "The backward pass is f32", with the rule that rounds its steps.
    for (recipe, expected) in [(&text, &of_text), (&code, &of_code)] {
        assert!(trained(&format!("{recipe}+norm:gradient=none")) == *expected);
        assert!(trained(&format!("{recipe}{back}")) != *expected);
    }
}
