//! Windows and means by hand, and an evaluation against the decoder's own losses.

use super::{data, truth};
use exmy::block::Axis;
use exmy::error::Error;
use exmy::{BlockFormat, BlockTensor, Rounding, View};
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::{Evaluation, Measures, Window, Windows, shape};
use exmy_train::nn::Cpu;
use exmy_train::nn::decoder::{Config, Decoder};
use exmy_train::nn::linear::Unquantized;
use exmy_train::nn::parameters::Entry;
use exmy_train::published::Published;
use exmy_train::recipe::Recipe;

#[test]
fn windows_by_hand() {
    let of = |tokens, window, stride| {
        let windows = Windows { window, stride }.of(tokens);
        windows.into_iter().map(|Window { tokens, scored }| (tokens, scored)).collect::<Vec<_>>()
    };
    assert_eq!(of(5, 8, 4), [(0..5, 1..5)]);
    assert_eq!(of(10, 4, 2), [(0..4, 1..4), (2..6, 4..6), (4..8, 6..8), (6..10, 8..10)]);
    assert_eq!(of(9, 4, 3), [(0..4, 1..4), (3..7, 4..7), (6..9, 7..9)]);
    // Without overlap the first token of each window is scored by none.
    assert_eq!(of(7, 3, 3), [(0..3, 1..3), (3..6, 4..6)]);
    assert_eq!(of(1, 3, 3), []);
}

/// Blocks of 1 and 3 tokens with sums 2 and 2: the mean is 1, squares are (2 - 1)² and (2 - 3)², and
/// sqrt(2 / 1 * 2) / 4 = 0.5.
#[test]
fn means_by_hand() {
    let measures = Measures { tokens: vec![1, 3], nats: vec![2.0, 2.0], ..Measures::default() };
    let loss = measures.loss();
    assert_eq!((measures.count(), loss.mean, loss.error), (4, 1.0, 0.5));
    let other = Measures { nats: vec![1.0, 0.0], ..measures.clone() };
    // Differences of 1 and 2: the mean 3/4, squares 1/16 and 1/16.
    let above = measures.loss_above(&other);
    assert_eq!((above.mean, above.error), (0.75, (2.0_f64 / 8.0).sqrt() / 4.0));
}

#[test]
fn an_evaluation_has_the_losses_of_the_decoder() {
    let mut model = Published::open(&data("llama")).unwrap();
    let weights = model.weights(|_| {}).unwrap();
    let (tokens, logits) = truth(&data("llama/truth.safetensors"));
    let recipes: Vec<Recipe> =
        ["f32", "f32", "mxfp4", "mxfp4+input=f32"].map(|name| name.parse().unwrap()).to_vec();
    let windows = Windows { window: 24, stride: 16 }.of(tokens.len());
    let config = shape(model.config(), 24);
    let mut evaluation = Evaluation::new(Cpu::new(), config, weights.clone(), &recipes).unwrap();
    for (number, window) in windows.iter().enumerate() {
        evaluation.block(&tokens, window, number as u64, number == 0).unwrap();
    }
    let measures: Vec<Measures> = evaluation.measures().cloned().collect();
    let mut decoder = Decoder::<Cpu>::new(config).unwrap();
    for (window, &nats) in windows.iter().zip(&measures[0].nats) {
        let (seen, next) = (window.tokens.start..window.tokens.end - 1, window.tokens.start + 1);
        let mut losses = vec![0.0; seen.len()];
        let targets = &tokens[next..window.tokens.end];
        decoder.losses(&weights, &tokens[seen], targets, 1, &mut Unquantized, &mut losses[..]);
        let scored = &losses[window.scored.start - next..];
        let sum: f64 = scored.iter().map(|&loss| f64::from(loss)).sum();
        assert!((nats / sum - 1.0).abs() < 1e-6, "{nats} {sum}");
    }
    // Of the first window transformers' logits say the same.
    let sum: f64 = (0..23).map(|i| loss(&logits[i * 96..(i + 1) * 96], tokens[i + 1])).sum();
    assert!((measures[0].nats[0] / sum - 1.0).abs() < 1e-5, "{sum}");
    let [first, same, both, weights_only] = &measures[..] else { unreachable!("four recipes") };
    assert_eq!((&first.nats, first.count()), (&same.nats, 39));
    assert_eq!(same.divergence.iter().sum::<f64>(), 0.0);
    assert_eq!((first.mean(&first.agreement).mean, same.mean(&same.agreement).mean), (1.0, 1.0));
    let [both, weights_only] = [both, weights_only].map(|measures| {
        assert!(measures.mean(&measures.agreement).mean < 1.0);
        measures.mean(&measures.divergence).mean
    });
    assert!(both > weights_only && weights_only > 0.0, "{both} {weights_only}");
    let seen: Vec<&Layers> = evaluation.layers().collect();
    assert!(seen[1].linears().all(|(_, linear)| linear.error() == 0.0));
    assert!(
        seen[1].drifts().all(|drift| drift == 0.0) && seen[2].drifts().all(|drift| drift > 0.0)
    );
    let (site, head) = seen[2].linears().last().unwrap();
    assert!(site.layer.is_none() && head.error() > 0.0 && head.input.sqnr_db() < 40.0);
    first_queries(&config, &weights, &tokens[..24], seen[3]);
}

/// Rounded weights that are kept, all of them or as many as there is room for, change no bit.
#[test]
fn kept_weights_change_no_bit() {
    let names =
        ["f32", "mxfp4", "nvfp4", "mxfp4+input=f32", "rht16>nvfp4", "nvfp4@sr8", "e5m2+input=f32"];
    let recipes = names.map(|name| name.parse().unwrap());
    let mut model = Published::open(&data("llama")).unwrap();
    let (weights, config) = (model.weights(|_| {}).unwrap(), shape(model.config(), 16));
    let (tokens, _) = truth(&data("llama/truth.safetensors"));
    let windows = Windows { window: 16, stride: 8 }.of(tokens.len());
    let measured = |bytes: u64, by_piece: bool| -> Vec<Measures> {
        if by_piece {
            let mut model = Published::open(&data("llama")).unwrap();
            let load = &mut |entry: &Entry, values: &mut [f32]| model.fill(entry, values);
            let evaluation = Evaluation::by_piece(Cpu::new(), config, &recipes).unwrap();
            let mut evaluation = evaluation.keeping(bytes);
            evaluation.blocks(&tokens, &windows, 0, false, load).unwrap();
            return evaluation.measures().cloned().collect();
        }
        let evaluation = Evaluation::new(Cpu::new(), config, weights.clone(), &recipes).unwrap();
        let mut evaluation = evaluation.keeping(bytes);
        for (number, window) in windows.iter().enumerate() {
            evaluation.block(&tokens, window, number as u64, false).unwrap();
        }
        evaluation.measures().cloned().collect()
    };
    let expected = measured(0, false);
    for (bytes, by_piece) in [(1 << 30, false), (200_000, false), (1 << 30, true)] {
        assert!(measured(bytes, by_piece) == expected, "{bytes} {by_piece}");
    }
}

/// The parameters of one piece of the model at a time change no bit.
#[test]
fn piece_by_piece_is_the_same() {
    let recipes = ["f32", "nvfp4", "mxfp4+layer1=bf16"].map(|name| name.parse().unwrap());
    for family in ["gla", "gpt2", "llama", "olmo2", "qwen3"] {
        let mut model = Published::open(&data(family)).unwrap();
        let (tokens, _) = truth(&data(family).join("truth.safetensors"));
        let windows = Windows { window: 16, stride: 8 }.of(tokens.len());
        let config = shape(model.config(), 16);
        let weights = model.weights(|_| {}).unwrap();
        let mut whole = Evaluation::new(Cpu::new(), config, weights, &recipes).unwrap();
        for (number, window) in windows.iter().enumerate() {
            whole.block(&tokens, window, number as u64, number == 0).unwrap();
        }
        let mut pieces = Evaluation::by_piece(Cpu::new(), config, &recipes).unwrap();
        let (first, others) = windows.split_at(1);
        let load = &mut |entry: &Entry, values: &mut [f32]| model.fill(entry, values);
        pieces.blocks(&tokens, first, 0, true, load).unwrap();
        pieces.blocks(&tokens, others, 1, false, load).unwrap();
        assert!(others.len() > 1 && pieces.measures().eq(whole.measures()), "{family}");
        for (pieces, whole) in pieces.layers().zip(whole.layers()) {
            assert!(pieces.drifts().eq(whole.drifts()), "{family}");
            let errors = |layers: &Layers| -> Vec<_> {
                layers.linears().map(|(site, linear)| (site, linear.error())).collect()
            };
            assert_eq!(errors(pieces), errors(whole), "{family}");
        }
        let fail = &mut |entry: &Entry, _: &mut [f32]| Err(Error::new(&*entry.name));
        let error = pieces.blocks(&tokens, first, 0, false, fail).unwrap_err().to_string();
        assert!(error.starts_with("model.embed"), "{error}");
    }
}

/// What the first block of a Llama's attention reads, computed in f64 from the weights: a row a token.
pub(super) fn normed(config: &Config, weights: &[f32], tokens: &[u32]) -> Vec<Vec<f64>> {
    let (layout, d) = (config.layout(), config.d_model);
    let tensor = |name: &str| &weights[layout.find(name).unwrap().range.clone()];
    let table = tensor("model.embed_tokens.weight");
    let gain = tensor("model.layers.0.input_layernorm.weight");
    let row = |&token: &u32| {
        let x: Vec<f64> = table[token as usize * d..][..d].iter().map(|&x| x.into()).collect();
        let mean: f64 = x.iter().map(|x| x * x).sum::<f64>() / d as f64;
        let rms = (mean + config.norm_eps).sqrt();
        x.iter().zip(gain).map(|(x, &g)| x / rms * f64::from(g)).collect()
    };
    tokens.iter().map(row).collect()
}

/// What is said of the first block's queries with weights in MXFP4, computed in f64 from the weights.
fn first_queries(config: &Config, weights: &[f32], tokens: &[u32], seen: &Layers) {
    let layout = config.layout();
    let tensor = |name: &str| &weights[layout.find(name).unwrap().range.clone()];
    let d = config.d_model;
    let w = tensor("model.layers.0.self_attn.q_proj.weight");
    let view = View::new(w, w.len() / d, d);
    let rounded = BlockTensor::quantize(view, Axis::Cols, BlockFormat::MXFP4, Rounding::TiesToEven);
    let q = rounded.dequantize();
    let [mut lost, mut whole] = [0.0; 2];
    for x in normed(config, weights, tokens) {
        let square = |w: &[f64]| {
            let y: f64 = w.iter().zip(&x).map(|(w, x)| w * x).sum();
            y * y
        };
        for (w, q) in w.chunks(d).zip(q.chunks(d)) {
            whole += square(&w.iter().map(|&w| w.into()).collect::<Vec<_>>());
            let differences = w.iter().zip(q).map(|(&w, &q)| f64::from(q) - f64::from(w));
            lost += square(&differences.collect::<Vec<_>>());
        }
    }
    let (site, linear) = seen.linears().next().unwrap();
    assert_eq!(site.to_string(), "layers.0.q_proj");
    let expected = (lost / whole).sqrt();
    assert!((linear.error() / expected - 1.0).abs() < 1e-5, "{} {expected}", linear.error());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let signal: f64 = w.iter().map(|&w| square(w)).sum();
    let noise: f64 = w.iter().zip(&q).map(|(w, q)| square(w - q)).sum();
    let expected = 10.0 * libm::log10(signal / noise);
    assert!((linear.weight.sqnr_db() - expected).abs() < 1e-4, "{expected}");
    let flushed = w.iter().zip(&q).filter(|&(&w, &q)| w != 0.0 && q == 0.0).count();
    assert_eq!(linear.weight.flushed(), flushed as f64 / w.len() as f64);
    assert_eq!((linear.input.sqnr_db(), linear.input.flushed()), (f64::INFINITY, 0.0));
    assert!(linear.input.over_median() >= 1.0 && linear.weight.kurtosis().is_finite());
}

/// The loss in nats of a token, in f64.
#[allow(clippy::disallowed_methods)]
fn loss(logits: &[f32], token: u32) -> f64 {
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    sum.ln() - f64::from(logits[token as usize])
}
