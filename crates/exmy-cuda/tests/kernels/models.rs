//! Evaluations and texts of a published model on a device, against the CPU's, bit for bit.

use exmy_cuda::train::Cuda;
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::{Evaluation, Measures, Windows};
use exmy_train::generate::Generator;
use exmy_train::nn::decoder::{Biases, Config, Gla, QkNorm};
use exmy_train::nn::device::Cpu;
use exmy_train::nn::parameters::Entry;
use exmy_train::recipe::Recipe;
use exmy_train::recipe::device::Quantize;
use exmy_train::train::sample::Sampling;

use super::device;

/// Biases and norms of heads, heads of a size of their own, a tied head.
fn model(mixer: &str) -> (Config, Vec<f32>) {
    let config = Config {
        vocab: 97,
        context: 37,
        d_model: 48,
        heads: 4,
        kv_heads: 2,
        head_dim: 20,
        hidden: 144,
        qk_norm: QkNorm::Head,
        bias: Biases { qkv: true, ..Biases::default() },
        tied: true,
        mixer: mixer.parse().unwrap(),
        gla: Gla { heads: 2, ..Gla::default() },
        ..Config::default()
    };
    (config, config.initialize(3).into_iter().map(|x| 2.0 * x).collect())
}

fn tokens() -> Vec<u32> {
    (0..60_u32).map(|i| i * i * 7 % 97).collect()
}

fn recipes(names: &[&str]) -> Vec<Recipe> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn evaluated<D: Quantize>(device: D, by_piece: bool) -> Vec<(Measures, Layers)> {
    let (config, params) = model("attention");
    let names =
        ["f32", "bf16", "nvfp4", "mxfp4+input=f32+k:tensor=ht4>mxfp8-e4m3+v:tensor=mxfp8-e4m3"];
    let windows = Windows { window: 37, stride: 20 }.of(60);
    let recipes = recipes(&names);
    if by_piece {
        let layout = config.layout();
        let mut evaluation = Evaluation::by_piece(device, config, &recipes).unwrap();
        let load = &mut |entry: &Entry, values: &mut [f32]| {
            let range = layout.find(&entry.name).unwrap().range.clone();
            values.copy_from_slice(&params[range]);
            Ok(())
        };
        evaluation.blocks(&tokens(), &windows[..1], 0, true, load).unwrap();
        evaluation.blocks(&tokens(), &windows[1..], 1, false, load).unwrap();
        return evaluation.found();
    }
    let mut evaluation = Evaluation::new(device, config, params.clone(), &recipes).unwrap();
    let turned = Config { rotate_down: Some(3), ..config };
    evaluation.change(&turned, params.iter().map(|x| 1.5 * x).collect());
    for (number, window) in windows.iter().enumerate() {
        evaluation.block(&tokens(), window, number as u64, number == 0).unwrap();
    }
    evaluation.found()
}

/// All weights at once and one piece at a time; what happens inside, too.
#[test]
fn an_evaluation_has_the_numbers_of_the_cpu() {
    let Some(device) = device() else { return };
    for by_piece in [false, true] {
        let cuda = Cuda::new(device.clone());
        let (config, recipes) = (model("attention").0, recipes(&["f32", "nvfp4"]));
        cuda.ready_for(Some(&config), &recipes).unwrap();
        let (expected, found) = (evaluated(Cpu::new(), by_piece), evaluated(cuda, by_piece));
        for ((expected, inside), (found, seen)) in expected.iter().zip(&found) {
            assert_eq!(found, expected);
            assert!(seen.drifts().eq(inside.drifts()));
            let errors = |layers: &Layers| -> Vec<_> {
                layers.linears().map(|(site, linear)| (site, linear.error())).collect()
            };
            assert_eq!(errors(seen), errors(inside));
        }
        assert!(found[0].0.nats[0] != found[2].0.nats[0], "a test of nothing");
    }
}

/// A prompt, one more part of it, and tokens that are drawn one by one.
#[test]
fn a_text_has_the_tokens_of_the_cpu() {
    let Some(device) = device() else { return };
    let options = Sampling { temperature: 0.9, top_k: 20, seed: 5 };
    for of in [
        ("f32", "attention"),
        ("mxfp4+k:tensor=mxfp8-e4m3+v:tensor=mxfp8-e4m3", "attention"),
        ("mxfp8-e4m3", "gla,attention"),
    ] {
        fn written<D: Quantize>(
            device: D,
            (name, mixer): (&str, &str),
            options: Sampling,
        ) -> Vec<Vec<f32>> {
            let (config, params) = model(mixer);
            let recipe = name.parse().unwrap();
            let mut generator = Generator::new(device, config, params, &recipe, options).unwrap();
            let text = tokens();
            let mut logits: Vec<_> =
                [0..9, 9..14].map(|part| generator.logits(&text[part]).unwrap()).into();
            let mut next = generator.next_token(&text[14..15]).unwrap();
            for _ in 0..4 {
                logits.push(vec![next as f32]);
                next = generator.next_token(&[next]).unwrap();
            }
            logits
        }
        let expected = written(Cpu::new(), of, options);
        assert_eq!(written(Cuda::new(device.clone()), of, options), expected, "{of:?}");
    }
}
