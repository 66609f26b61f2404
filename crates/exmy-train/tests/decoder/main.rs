//! The decoder against central differences in f64, against PyTorch, and against itself: causality,
//! threads, SIMD levels.
// Tolerances, not bits, are at stake where the platform's functions serve as oracles.
#![allow(clippy::disallowed_methods)]

mod attention;
mod pytorch;

use exmy::parallel;
use exmy::random::{Philox, Stream};
use exmy::round::Rounding;
use exmy::simd::{Level, with_level};
use exmy_train::nn::decoder::{
    Biases, Config, Decoder, Gla, InitScheme, Mlp, Norm, NormPlace, Position, QkNorm,
};
use exmy_train::nn::device::{self, Cpu, SliceMut};
use exmy_train::nn::linear::{Group, Products, Unquantized};
use exmy_train::nn::parameters::Role;
use exmy_train::nn::rope::Scaling;
use exmy_train::nn::site::{Place, Vector};

/// Uniform in (-size, size).
fn random(len: usize, size: f64, stream: u64) -> Vec<f64> {
    let philox = Philox::new(11, Stream::new("decoder test").with(stream));
    (0..len as u64).map(|i| (2.0 * philox.uniform(i) - 1.0) * size).collect()
}

fn tokens(len: usize, vocab: u64, stream: u64) -> Vec<u32> {
    let philox = Philox::new(12, Stream::new("decoder tokens").with(stream));
    (0..len as u64).map(|i| philox.below(i, vocab) as u32).collect()
}

/// Central differences of `f` at `x`, element by element, against `gradient`: the norm of the
/// error relative to the norm of the gradient.
fn difference(x: &mut [f64], gradient: &[f64], mut f: impl FnMut(&[f64]) -> f64) -> f64 {
    // The error is h^2 f''' / 6 + ulp / h: both below 1e-9 for functions of size 1 at this step.
    let h = 1e-5;
    let (mut errors, mut size) = (0.0, 0.0);
    for i in 0..x.len() {
        let at = x[i];
        x[i] = at + h;
        let above = f(x);
        x[i] = at - h;
        let below = f(x);
        x[i] = at;
        let slope = (above - below) / (2.0 * h);
        errors += (slope - gradient[i]).powi(2);
        size += gradient[i].powi(2);
    }
    assert!(size > 0.0, "a gradient of zeros proves nothing");
    (errors / size).sqrt()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn tiny() -> Config {
    Config {
        vocab: 7,
        context: 6,
        layers: 2,
        d_model: 8,
        heads: 2,
        kv_heads: 2,
        hidden: 11,
        norm: Norm::LayerNorm,
        norm_bias: true,
        norm_eps: 1e-5,
        position: Position::Learned,
        mlp: Mlp::Gelu,
        tied: true,
        init: InitScheme::Gpt2,
        ..Config::default()
    }
}

/// A tiny Llama: everything `tiny` is not.
fn tiny_llama() -> Config {
    Config {
        norm: Norm::RmsNorm,
        norm_bias: false,
        position: Position::Rope { base: 50.0 },
        mlp: Mlp::Swiglu,
        tied: false,
        kv_heads: 1,
        ..tiny()
    }
}

/// Every norm x position x MLP x head, in turn with as many key heads, one, and a half.
fn all() -> Vec<Config> {
    let mut all = Vec::new();
    let norms = [(Norm::LayerNorm, true), (Norm::LayerNorm, false), (Norm::RmsNorm, false)];
    for (norm, norm_bias) in norms {
        for position in [Position::Learned, Position::Rope { base: 50.0 }] {
            for mlp in [Mlp::Gelu, Mlp::Swiglu] {
                for tied in [true, false] {
                    let config = Config { norm, norm_bias, position, mlp, tied, ..tiny() };
                    all.push(match all.len() % 3 {
                        0 => config,
                        1 => Config { d_model: 12, heads: 3, kv_heads: 1, ..config },
                        _ => Config { d_model: 16, heads: 4, kv_heads: 2, ..config },
                    });
                }
            }
        }
    }
    all.extend(further());
    all
}

/// The choices that came after, each pair of them in some configuration.
fn further() -> [Config; 11] {
    let base = Config { layers: 3, heads: 4, kv_heads: 2, d_model: 16, ..tiny_llama() };
    let mixer = |text: &str| text.parse().unwrap();
    let gla = Gla { heads: 2, gate_rank: 3, gate_tau: 2.0, ..Gla::default() };
    let layer_norm = Config { norm: Norm::LayerNorm, norm_bias: true, ..base };
    let bias = Biases { qkv: true, o: true, mlp: false };
    let rope_scaling = Scaling::Llama3 { factor: 4.0, low: 1.0, high: 4.0, context: 16.0 };
    [
        Config { mixer: mixer("gla"), position: Position::None, gla, ..base },
        Config { mixer: mixer("gla,attention"), qk_norm: QkNorm::Head, sink: true, gla, ..base },
        Config { mixer: mixer("attention,gla"), mlp: Mlp::Relu, tied: true, gla, ..layer_norm },
        Config { qk_norm: QkNorm::Full, mlp: Mlp::SquaredRelu, ..layer_norm },
        Config { qk_norm: QkNorm::Head, norm_affine: false, mlp: Mlp::Relu, ..base },
        Config { qk_norm: QkNorm::Full, norm_affine: false, sink: true, tied: true, ..base },
        Config {
            mixer: mixer("gla,gla,attention"),
            qk_norm: QkNorm::Full,
            position: Position::Learned,
            norm_affine: false,
            norm_bias: false,
            mlp: Mlp::SquaredRelu,
            sink: true,
            gla: Gla { expand_k: 1.0, expand_v: 2.0, gate_min: -2.0, ..gla },
            ..layer_norm
        },
        // Without rotation a bias of all keys moves all scores of a query alike, and has no gradient.
        Config {
            position: Position::None,
            qk_norm: QkNorm::Head,
            mlp: Mlp::Gelu,
            norm_bias: false,
            ..layer_norm
        },
        Config {
            head_dim: 6,
            bias: Biases { mlp: true, ..bias },
            mlp: Mlp::GeluTanh,
            ..layer_norm
        },
        Config { norm_place: NormPlace::After, qk_norm: QkNorm::Full, bias, rope_scaling, ..base },
        Config {
            mixer: mixer("gla,attention"),
            norm_place: NormPlace::After,
            bias: Biases { qkv: false, o: true, mlp: true },
            head_dim: 2,
            gla,
            ..base
        },
    ]
}

/// All parameters random, gains about 1: after the real initialization the gradients of q and k
/// would be too small to be seen.
fn parameters(decoder: &Decoder<Cpu<f64>>, stream: u64) -> Vec<f64> {
    let mut params = random(decoder.layout().len(), 0.5, stream);
    for entry in decoder.layout() {
        if entry.role == Role::Norm {
            params[entry.range.clone()].iter_mut().for_each(|gain| *gain += 1.0);
        }
    }
    params
}

/// Every tensor of every combination, along two random directions of length 1 each: a wrong
/// gradient is orthogonal to both with probability 0.
#[test]
fn gradients_are_central_differences() {
    for (c, config) in all().into_iter().enumerate() {
        let mut decoder = Decoder::<Cpu<f64>>::new(config).unwrap();
        let params = parameters(&decoder, c as u64);
        let (x, y) = (tokens(10, 7, 0), tokens(10, 7, 1));
        let mut grads = vec![0.0; params.len()];
        let loss = decoder.forward_backward(&params, &mut grads, &x, &y, 2, &mut Unquantized);
        let mut losses = [0.0; 10];
        let layout = decoder.layout().clone();
        let mut mean = |params: &[f64]| {
            decoder.losses(params, &x, &y, 2, &mut Unquantized, &mut losses);
            losses.iter().sum::<f64>() / 10.0
        };
        assert!((mean(&params) - loss).abs() < 1e-14);
        for entry in &layout {
            let gradient = &grads[entry.range.clone()];
            let size = dot(gradient, gradient).sqrt();
            assert!(size > 0.0, "{config:?}: {}", entry.name);
            for stream in 1000..1002 {
                let mut direction = random(gradient.len(), 1.0, stream);
                let length = dot(&direction, &direction).sqrt();
                direction.iter_mut().for_each(|d| *d /= length);
                let moved_by = |h: f64| {
                    let mut moved = params.clone();
                    for (p, d) in moved[entry.range.clone()].iter_mut().zip(&direction) {
                        *p += h * d;
                    }
                    moved
                };
                let found = (mean(&moved_by(1e-5)) - mean(&moved_by(-1e-5))) / 2e-5;
                // A random direction of n elements sees about 1 / sqrt n of the gradient.
                let error = (found - dot(gradient, &direction)).abs() / size;
                let error = error * (gradient.len() as f64).sqrt();
                assert!(error < 1e-6, "{config:?}: {}: {error:e}", entry.name);
            }
        }
    }
}

/// Element by element, each tensor on its own, so that a small one does not hide behind the others.
#[test]
fn gradients_of_every_tensor() {
    for config in [tiny(), tiny_llama(), further()[1]] {
        let mut decoder = Decoder::<Cpu<f64>>::new(config).unwrap();
        let params = parameters(&decoder, 50);
        let (x, y) = (tokens(10, 7, 0), tokens(10, 7, 1));
        let mut grads = vec![0.0; params.len()];
        decoder.forward_backward(&params, &mut grads, &x, &y, 2, &mut Unquantized);
        for entry in decoder.layout().clone().iter() {
            let range = entry.range.clone();
            let mut arena = params.clone();
            let mut part = params[range.clone()].to_vec();
            let mut losses = [0.0; 10];
            let error = difference(&mut part, &grads[range.clone()], |part| {
                arena[range.clone()].copy_from_slice(part);
                decoder.losses(&arena, &x, &y, 2, &mut Unquantized, &mut losses);
                losses.iter().sum::<f64>() / 10.0
            });
            assert!(error < 1e-6, "{}: {error:e}", entry.name);
        }
    }
}

/// Gradients are added to what the caller holds; buffers of an earlier, larger step do not show.
#[test]
fn gradients_accumulate_and_buffers_are_reused() {
    let mut decoder = Decoder::<Cpu<f64>>::new(tiny_llama()).unwrap();
    let params = parameters(&decoder, 0);
    let (x, y) = (tokens(8, 7, 0), tokens(8, 7, 1));
    let mut fresh = vec![0.0; params.len()];
    let loss = decoder.forward_backward(&params, &mut fresh, &x, &y, 2, &mut Unquantized);
    let (large, mut losses) = (tokens(18, 7, 2), [0.0; 18]);
    decoder.losses(&params, &large, &large, 3, &mut Unquantized, &mut losses);
    let mut grads = vec![0.0; params.len()];
    let again = decoder.forward_backward(&params, &mut grads, &x, &y, 2, &mut Unquantized);
    assert_eq!((loss, &fresh), (again, &grads));
    decoder.forward_backward(&params, &mut grads, &x, &y, 2, &mut Unquantized);
    for (sum, one) in grads.iter().zip(&fresh) {
        assert!((sum - 2.0 * one).abs() < 1e-14);
    }
}

#[test]
fn a_later_token_changes_no_earlier_loss() {
    for config in all() {
        let mut decoder = Decoder::<Cpu>::new(config).unwrap();
        let params = decoder.layout().initialize(1);
        let (mut x, y) = (tokens(12, 7, 0), tokens(12, 7, 1));
        let (mut before, mut after) = ([0.0; 12], [0.0; 12]);
        decoder.losses(&params, &x, &y, 2, &mut Unquantized, &mut before);
        x[3] = (x[3] + 1) % 7;
        decoder.losses(&params, &x, &y, 2, &mut Unquantized, &mut after);
        assert_eq!(before[..3], after[..3], "{config:?}");
        assert_eq!(before[6..], after[6..], "{config:?}");
        assert!(before[3..6] != after[3..6], "{config:?}");
    }
}

/// The logits for sampling are those from which the loss of the last position is formed.
#[test]
fn last_logits_give_the_last_loss() {
    let mut decoder = Decoder::<Cpu<f64>>::new(tiny()).unwrap();
    let params = parameters(&decoder, 3);
    let x = tokens(5, 7, 0);
    let mut losses = [0.0; 5];
    decoder.losses(&params, &x, &[2; 5], 1, &mut Unquantized, &mut losses);
    let logits = decoder.last_logits(&params, &x, &mut Unquantized).numbers();
    let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
    assert!((total.ln() - logits[2] - losses[4]).abs() < 1e-13);
}

/// The loss and all gradients of one step in f32.
fn step(config: Config, batch: usize, sequence: usize) -> (f64, Vec<f32>) {
    let mut decoder = Decoder::<Cpu>::new(config).unwrap();
    let params = decoder.layout().initialize(5);
    let mut grads = vec![0.0; params.len()];
    let (n, vocab) = (batch * sequence, config.vocab as u64);
    let (x, y) = (tokens(n, vocab, 0), tokens(n, vocab, 1));
    let loss = decoder.forward_backward(&params, &mut grads, &x, &y, batch, &mut Unquantized);
    (loss, grads)
}

/// Large enough that products, norms and attention are divided between threads.
fn middle() -> [Config; 3] {
    let sizes = |config| Config {
        vocab: 65,
        context: 48,
        d_model: 96,
        heads: 4,
        kv_heads: 2,
        hidden: 200,
        ..config
    };
    [sizes(tiny()), sizes(tiny_llama()), sizes(Config { sink: true, ..further()[1] })]
}

#[test]
fn threads_change_no_bit() {
    for config in middle() {
        let one = parallel::with_threads(1, || step(config, 5, 37)).unwrap();
        for threads in [2, 3] {
            let many = parallel::with_threads(threads, || step(config, 5, 37)).unwrap();
            assert_eq!(one.0.to_bits(), many.0.to_bits());
            assert!(one.1 == many.1, "{threads} threads: {config:?}");
        }
    }
}

#[test]
fn levels_change_no_bit() {
    for config in middle() {
        let mut results = Vec::new();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            results.push((level, with_level(level, || step(config, 2, 37))));
        }
        for (level, result) in &results[1..] {
            assert_eq!(result.0.to_bits(), results[0].1.0.to_bits(), "{level}");
            assert!(result.1 == results[0].1.1, "{level}: {config:?}");
        }
    }
}

/// Writes down which product is asked for, and computes it.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn note(&mut self, product: &str, group: &Group<'_>) {
        let sites: Vec<_> = group.sites().map(|(site, _)| site.to_string()).collect();
        self.0.push(format!("{product} {}", sites.join("|")));
    }
}

type Matrix<'a> = device::Matrix<'a, Cpu>;
type MatrixMut<'a> = device::MatrixMut<'a, Cpu>;

impl Products<Cpu> for Log {
    fn forward(
        &mut self,
        cpu: &Cpu,
        group: &Group<'_>,
        x: Matrix<'_>,
        w: Matrix<'_>,
        y: MatrixMut<'_>,
    ) {
        self.note("forward", group);
        Unquantized.forward(cpu, group, x, w, y);
    }

    fn grad_input(
        &mut self,
        cpu: &Cpu,
        group: &Group<'_>,
        g: Matrix<'_>,
        w: Matrix<'_>,
        dx: MatrixMut<'_>,
    ) {
        self.note("grad_input", group);
        Unquantized.grad_input(cpu, group, g, w, dx);
    }

    fn grad_weight(
        &mut self,
        cpu: &Cpu,
        group: &Group<'_>,
        g: Matrix<'_>,
        x: Matrix<'_>,
        dw: MatrixMut<'_>,
    ) {
        self.note("grad_weight", group);
        Unquantized.grad_weight(cpu, group, g, x, dw);
    }
}

#[test]
fn products_come_in_the_written_order() {
    let config = Config { mlp: Mlp::Swiglu, layers: 1, ..tiny() };
    let mut decoder = Decoder::<Cpu>::new(config).unwrap();
    let params = decoder.layout().initialize(1);
    let mut grads = vec![0.0; params.len()];
    let mut log = Log::default();
    decoder.forward_backward(&params, &mut grads, &[1, 2], &[2, 3], 1, &mut log);
    let expected = [
        "forward layers.0.q_proj|layers.0.k_proj|layers.0.v_proj",
        "forward layers.0.o_proj",
        "forward layers.0.gate_proj|layers.0.up_proj",
        "forward layers.0.down_proj",
        "forward lm_head",
        "grad_input lm_head",
        "grad_weight lm_head",
        "grad_input layers.0.down_proj",
        "grad_weight layers.0.down_proj",
        "grad_input layers.0.gate_proj|layers.0.up_proj",
        "grad_weight layers.0.gate_proj|layers.0.up_proj",
        "grad_input layers.0.o_proj",
        "grad_weight layers.0.o_proj",
        "grad_input layers.0.q_proj|layers.0.k_proj|layers.0.v_proj",
        "grad_weight layers.0.q_proj|layers.0.k_proj|layers.0.v_proj",
    ];
    assert_eq!(log.0, expected);
}

/// Products as they are.
macro_rules! unquantized {
    ($cpu:ty) => {
        unquantized!($cpu, forward, x, w, y);
        unquantized!($cpu, grad_input, g, w, dx);
        unquantized!($cpu, grad_weight, g, x, dw);
    };
    ($cpu:ty, $product:ident, $a:ident, $b:ident, $out:ident) => {
        fn $product(
            &mut self,
            cpu: &$cpu,
            group: &Group<'_>,
            $a: device::Matrix<'_, $cpu>,
            $b: device::Matrix<'_, $cpu>,
            $out: device::MatrixMut<'_, $cpu>,
        ) {
            Unquantized.$product(cpu, group, $a, $b, $out);
        }
    };
}

/// Shows every place to the same products, which round nothing but are asked as if they did: the
/// attention then goes the way whose steps can be rounded.
#[derive(Default)]
struct Places(Vec<(Option<u32>, Place, bool, usize)>);

type Cpu64 = Cpu<f64>;

impl Products<Cpu64> for Places {
    unquantized!(Cpu64);

    fn tensor(
        &mut self,
        _: &Cpu64,
        layer: Option<u32>,
        (place, gradient): (Place, bool),
        values: SliceMut<'_, Cpu64>,
        width: usize,
    ) {
        assert!(width > 0 && values.len().is_multiple_of(width), "{place}");
        self.0.push((layer, place, gradient, values.len()));
    }
}

/// Every tensor that is shown has its gradient shown, and what is only looked at changes no more
/// than the order of sums.
#[test]
fn every_place_is_shown_forward_and_backward() {
    let (x, y) = (tokens(10, 7, 0), tokens(10, 7, 1));
    let mut seen = Vec::new();
    for config in all() {
        let mut decoder = Decoder::<Cpu<f64>>::new(config).unwrap();
        let params = parameters(&decoder, 7);
        let (mut plain, mut shown) = (vec![0.0; params.len()], vec![0.0; params.len()]);
        let mut places = Places::default();
        let a = decoder.forward_backward(&params, &mut plain, &x, &y, 2, &mut Unquantized);
        let b = decoder.forward_backward(&params, &mut shown, &x, &y, 2, &mut places);
        assert!((a - b).abs() < 1e-13, "{config:?}");
        let size = dot(&plain, &plain).sqrt();
        for (a, b) in plain.iter().zip(&shown) {
            assert!((a - b).abs() < 1e-13 * size, "{config:?}: {a} {b}");
        }
        let of = |wanted: bool| {
            let mut of: Vec<_> = places.0.iter().filter(|shown| shown.2 == wanted).collect();
            of.sort();
            of.iter().map(|&&(layer, place, _, len)| (layer, place, len)).collect::<Vec<_>>()
        };
        assert_eq!(of(false), of(true), "{config:?}");
        seen.extend(places.0.iter().map(|shown| shown.1));
    }
    assert!(Place::ALL.iter().all(|place| seen.contains(place)));
}

/// Rounds each step of norms and activations to bfloat16.
struct Steps;

impl Products<Cpu> for Steps {
    unquantized!(Cpu);

    fn vector(&self, _: Option<u32>, _: Vector, _: bool) -> Option<Rounding> {
        Some(Rounding::TiesToEven)
    }
}

/// The model with bfloat16 steps is near the plain one, and another.
#[test]
fn steps_in_bfloat16_move_the_loss_a_little() {
    for config in all() {
        let mut decoder = Decoder::<Cpu>::new(config).unwrap();
        let params = decoder.layout().initialize(3);
        let (x, y) = (tokens(12, 7, 0), tokens(12, 7, 1));
        let (mut a, mut b) = (vec![0.0; params.len()], vec![0.0; params.len()]);
        let plain = decoder.forward_backward(&params, &mut a, &x, &y, 2, &mut Unquantized);
        let steps = decoder.forward_backward(&params, &mut b, &x, &y, 2, &mut Steps);
        assert!(plain != steps && (plain - steps).abs() < 0.02, "{config:?}: {plain} {steps}");
        let size = |x: &[f32]| x.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
        let difference: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        assert!(size(&difference) < 0.06 * size(&a), "{config:?}: {}", size(&difference));
    }
}

/// A planted channel leaves every loss as it was, to the bit where the scale is a power of two, and
/// is there.
#[test]
fn hot_channels_change_no_function() {
    for config in further() {
        let hot = Config { hot_channels: 2, hot_scale: 8.0, norm_bias: false, ..config };
        // Without gains, and where no linear operator reads a norm, there is nothing to plant.
        if !config.norm_affine || config.norm_place == NormPlace::After {
            assert!(hot.validate().is_err());
            continue;
        }
        let plain = Config { hot_channels: 0, ..hot };
        let run = |config: Config| {
            let mut decoder = Decoder::<Cpu>::new(config).unwrap();
            let (params, mut losses) = (config.initialize(9), [0.0; 12]);
            let (x, y) = (tokens(12, 7, 0), tokens(12, 7, 1));
            decoder.losses(&params, &x, &y, 2, &mut Unquantized, &mut losses);
            (params, losses)
        };
        let ((before, losses), (after, same)) = (run(plain), run(hot));
        assert_eq!(losses, same, "{config:?}");
        let gain =
            hot.layout().find("model.layers.1.input_layernorm.weight").unwrap().range.clone();
        for (j, (before, after)) in before[gain.clone()].iter().zip(&after[gain]).enumerate() {
            let factor = if hot.hot(9).contains(&j) { 8.0 } else { 1.0 };
            assert_eq!(before * factor, *after);
        }
    }
}

#[test]
#[should_panic(expected = "14 tokens are not 2 sequences of 1 to 6 tokens")]
fn too_long_a_sequence_is_named() {
    let mut decoder = Decoder::<Cpu>::new(tiny()).unwrap();
    let params = vec![0.0; decoder.layout().len()];
    decoder.losses(&params, &[0; 14], &[0; 14], 2, &mut Unquantized, &mut [0.0; 14]);
}
