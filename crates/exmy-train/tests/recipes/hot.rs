//! Hot-channel patches: the identities of their algebra and their effect on products with outliers.

use exmy::random::{Philox, Stream};
use exmy::slice::View;
use exmy_train::nn::device::{Cpu, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::{Engine, Images, Linear, Phase, Plan};

use crate::bundles::Operands;
use crate::restated::{bf16, nvfp4};
use crate::values;

/// Rows of normal numbers; `hot` channels in ten times eight to thirty.
fn normal(rows: usize, cols: usize, seed: u64, hot: usize) -> Vec<f32> {
    let random = Philox::new(seed, Stream::new("hot test"));
    let mut x: Vec<f32> = (0..(rows * cols) as u64)
        .map(|i| {
            let (a, b) = (random.uniform(2 * i), random.uniform(2 * i + 1));
            (libm::sqrt(-2.0 * libm::log(1.0 - a)) * libm::cos(std::f64::consts::TAU * b)) as f32
        })
        .collect();
    let mut channels: Vec<usize> = Vec::new();
    for h in 0_u64.. {
        if channels.len() == hot {
            break;
        }
        let channel = random.word(1_000_000 + h) as usize % cols;
        if channels.contains(&channel) {
            continue;
        }
        channels.push(channel);
        let factor = 8.0 + 22.0 * random.uniform(2_000_000 + h) as f32;
        x.iter_mut().skip(channel).step_by(cols).for_each(|x| *x *= factor);
    }
    x
}

struct Case {
    x: Vec<f32>,
    w: Vec<f32>,
    sizes: (usize, usize, usize),
}

impl Case {
    fn new(tokens: usize, channels: usize, outputs: usize, seed: u64) -> Self {
        let x = normal(tokens, channels, seed, 10);
        let w = normal(outputs, channels, seed + 1000, 0).iter().map(|w| 0.02 * w).collect();
        Self { x, w, sizes: (tokens, channels, outputs) }
    }

    /// Y, and the images of both operands.
    fn forward(&self, recipe: &str, images: &mut Images, phase: Phase) -> (Vec<f32>, Operands) {
        let (tokens, channels, outputs) = self.sizes;
        let site = Site { layer: Some(0), operator: Operator::Up };
        let linears = vec![Linear { site, outputs, inputs: channels }];
        let plan = Plan::of(&recipe.parse().unwrap(), linears, 1000).unwrap();
        let mut kept = Operands::default();
        let mut engine = Engine::new(&plan, 1, phase, images).observed(&mut kept);
        let members = [(Operator::Up, outputs)];
        let group = Group { layer: Some(0), members: &members };
        let mut y = vec![0.0; tokens * outputs];
        let (x, w) = (View::new(&self.x, tokens, channels), View::new(&self.w, outputs, channels));
        engine.forward(
            &Cpu::new(),
            &group,
            x.into(),
            w.into(),
            MatrixMut::new(&mut y, tokens, outputs),
        );
        (y, kept)
    }

    fn y(&self, recipe: &str) -> Vec<f32> {
        self.forward(recipe, &mut Images::default(), Phase::Train(0)).0
    }

    /// Relative error of Y against the product in f64.
    fn error(&self, recipe: &str) -> f64 {
        let (tokens, channels, outputs) = self.sizes;
        let y = self.y(recipe);
        let (mut error, mut size) = (0.0, 0.0);
        for t in 0..tokens {
            for n in 0..outputs {
                let x = &self.x[t * channels..(t + 1) * channels];
                let w = &self.w[n * channels..(n + 1) * channels];
                let exact: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                let one = f64::from(y[t * outputs + n]) - exact;
                error += one * one;
                size += exact * exact;
            }
        }
        (error / size).sqrt()
    }
}

const BASE: &str = "nvfp4+weight=nvfp4-16x16";

/// The terms of each form in f64, from the images that the engine shows and the channels it remembers.
#[test]
fn every_form_is_its_algebra() {
    let case = Case::new(32, 96, 48, 3);
    let (tokens, channels, outputs) = case.sizes;
    for form in ["o1-a", "o1-w", "o2-b", "full", "literal"] {
        for kind in ["s", "d"] {
            let mut images = Images::default();
            let recipe = format!("{BASE}+hcp={kind}-{form}-k32-block16-exact");
            let (y, kept) = case.forward(&recipe, &mut images, Phase::Train(0));
            let text = images.memory.to_text();
            let hot: Vec<usize> =
                text.split_whitespace().skip(4).map(|word| word.parse().unwrap()).collect();
            assert_eq!(hot.len(), 32, "{text}");
            let xq = &kept.0[&(Product::Forward, Operand::Input)];
            let wq = &kept.0[&(Product::Forward, Operand::Weight)];
            let mut largest = 0.0_f64;
            for t in 0..tokens {
                for n in 0..outputs {
                    let mut sum = 0.0;
                    for c in 0..channels {
                        let (xi, wi) = (t * channels + c, n * channels + c);
                        let (x, q) = (f64::from(case.x[xi]), f64::from(xq[xi]));
                        let (w, v) = (f64::from(case.w[wi]), f64::from(wq[wi]));
                        let added = match form {
                            _ if !hot.contains(&c) => 0.0,
                            "o1-a" => (x - q) * v,
                            "o1-w" => q * (w - v),
                            "o2-b" => (x - q) * v + q * (w - v),
                            "full" => x * w - q * v,
                            _ => (x - q) * (w - v),
                        };
                        sum += q * v + added;
                    }
                    largest = largest.max((sum - f64::from(y[t * outputs + n])).abs());
                }
            }
            assert!(largest < 2e-5, "{recipe}: {largest}");
        }
    }
}

/// Residuals quantized again have the tensor scale of their operand, which is that of its bfloat16 numbers
/// where it is rounded to these first: the whole product from the formulas, with all channels patched.
#[test]
fn residuals_have_the_scale_of_their_operand() {
    for seed in [11, 12] {
        let case = Case::new(32, 48, 16, seed);
        let (tokens, channels, outputs) = case.sizes;
        let recipe = "bf16>nvfp4+weight=bf16>nvfp4-16x16+hcp=s-o2-b-k100%";
        let y = case.y(recipe);
        let operand = |x: &[f32], tile: (usize, usize)| {
            let rounded: Vec<f32> = x.iter().map(|&x| bf16(x)).collect();
            let image = nvfp4(&rounded, channels, tile, None);
            let largest = rounded.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
            // A row behind whole tiles brings the tensor its largest magnitude.
            let mut rest: Vec<f32> = x.iter().zip(&image).map(|(x, q)| x - q).collect();
            rest.extend((0..channels).map(|j| if j == 0 { largest } else { 0.0 }));
            let mut residual = nvfp4(&rest, channels, tile, None);
            residual.truncate(x.len());
            (image, residual)
        };
        let (xq, rx) = operand(&case.x, (1, 16));
        let (wq, rw) = operand(&case.w, (16, 16));
        for t in 0..tokens {
            for n in 0..outputs {
                let sum: f64 = (0..channels)
                    .map(|c| {
                        let (i, j) = (t * channels + c, n * channels + c);
                        let [q, r] = [xq[i], rx[i]].map(f64::from);
                        let [v, s] = [wq[j], rw[j]].map(f64::from);
                        q * v + r * v + q * s
                    })
                    .sum();
                let got = f64::from(y[t * outputs + n]);
                assert!((sum - got).abs() < 1e-5, "{seed}: {got} {sum}");
            }
        }
    }
}

#[test]
fn identities_of_the_algebra() {
    let case = Case::new(48, 64, 32, 4);
    // Nothing patched is the product itself, bit for bit; everything patched is that of f32 up to order.
    for kind in ["s", "d"] {
        assert_eq!(case.y(&format!("{BASE}+hcp={kind}-o2-b-k0")), case.y(BASE));
        assert_eq!(case.y(&format!("{BASE}+hcp={kind}-o2-b-k0%")), case.y(BASE));
        let full = case.y(&format!("{BASE}+hcp={kind}-full-k100%-exact"));
        let plain = case.y("f32");
        let near = full.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(near, "{kind}");
    }
    // Whole groups keep their codes: both forms add the same terms.
    let single = case.y(&format!("{BASE}+hcp=s-o2-b-k32-exact"));
    let dual = case.y(&format!("{BASE}+hcp=d-o2-b-k32-block16-exact"));
    assert!(single.iter().zip(&dual).all(|(a, b)| (a - b).abs() < 1e-4));
}

/// The means of four draws lie in the ranges that thirty draws elsewhere had (tokens 256, K 512, N 256, ten
/// channels of 8 to 30 times the rest); here with a quarter of the tokens and outputs.
#[test]
fn errors_fall_as_measured_elsewhere() {
    let cases: Vec<Case> = (5..9).map(|seed| Case::new(64, 512, 64, seed)).collect();
    let mean = |patch: &str| {
        let errors = cases.iter().map(|case| case.error(&format!("{BASE}{patch}")));
        errors.sum::<f64>() / cases.len() as f64
    };
    let base = mean("");
    assert!((0.135..0.148).contains(&base), "{base}");
    let ranges =
        [(16, 0.097, 0.123), (48, 0.073, 0.099), (128, 0.042, 0.054), (512, 0.0093, 0.0103)];
    let mut last = base;
    for (k, low, high) in ranges {
        let of = |form: &str, words: &str| mean(&format!("+hcp={form}-k{k}-{words}"));
        let both = of("d-o2-b", "exact");
        assert!((low..high).contains(&both) && both < last, "{k}: {both}");
        last = both;
        // One side alone repairs less, the one-block reading nothing.
        assert!(both < of("d-o1-a", "exact") && both < of("d-o1-w", "exact"));
        let literal = of("d-literal", "exact");
        assert!((literal / base - 1.0).abs() < 0.02, "{k}: {literal}");
        // Residuals in NVFP4 cost little.
        let (exact, again) = (of("s-o2-b", "exact"), of("s-o2-b", "same"));
        assert!(
            again > exact && again < if k < 512 { 1.08 * exact } else { 0.025 },
            "{k}: {again}"
        );
    }
    for score in ["normalized", "product"] {
        let error = mean(&format!("+hcp=d-o2-b-k48-exact-{score}"));
        assert!((0.06..0.105).contains(&error), "{score}: {error}");
    }
}

#[test]
fn channels_stay_until_they_are_due() {
    let (early, late) = (Case::new(32, 96, 32, 6), Case::new(32, 96, 32, 7));
    let mut images = Images::default();
    let recipe = format!("{BASE}+hcp=s-o2-b-k16-channel-r10-ema");
    early.forward(&recipe, &mut images, Phase::Train(0));
    let first = images.memory.to_text();
    assert!(first.starts_with("hot layers.0.up_proj 0 16 "), "{first}");
    late.forward(&recipe, &mut images, Phase::Train(9));
    late.forward(&recipe, &mut images, Phase::Evaluate { step: 10, pass: 0 });
    assert_eq!(images.memory.to_text(), first);
    late.forward(&recipe, &mut images, Phase::Train(10));
    let second = images.memory.to_text();
    assert_ne!(second, first);
    // The second pass of a step sees the choice of the first.
    early.forward(&recipe, &mut images, Phase::Train(10));
    assert_eq!(images.memory.to_text(), second);
}

/// `dX_I += dYq RW_I` and `dW_I += dYqᵀ RX_I`, on all channels and without rounding of dY: the exact
/// gradients, with and without a rotation along tokens that need filling up.
#[test]
fn backward_patches_give_back_what_rounding_took() {
    let (tokens, inputs, outputs) = (40, 48, 32);
    let (x, w) = (values(tokens * inputs, 20), values(outputs * inputs, 21));
    let g = values(tokens * outputs, 22);
    let run = |recipe: &str| {
        let site = Site { layer: Some(0), operator: Operator::Up };
        let plan = Plan::of(&recipe.parse().unwrap(), vec![Linear { site, outputs, inputs }], 9);
        let plan = plan.unwrap();
        let mut images = Images::default();
        let mut engine = Engine::new(&plan, 1, Phase::Train(0), &mut images);
        let members = [(Operator::Up, outputs)];
        let group = Group { layer: Some(0), members: &members };
        let (x, w) = (View::new(&x, tokens, inputs), View::new(&w, outputs, inputs));
        let g = View::new(&g, tokens, outputs);
        let mut y = vec![0.0; tokens * outputs];
        let (mut dx, mut dw) = (vec![0.0; tokens * inputs], vec![0.0; outputs * inputs]);
        engine.forward(
            &Cpu::new(),
            &group,
            x.into(),
            w.into(),
            MatrixMut::new(&mut y, tokens, outputs),
        );
        engine.grad_input(
            &Cpu::new(),
            &group,
            g.into(),
            w.into(),
            MatrixMut::new(&mut dx, tokens, inputs),
        );
        engine.grad_weight(
            &Cpu::new(),
            &group,
            g.into(),
            x.into(),
            MatrixMut::new(&mut dw, outputs, inputs),
        );
        (dx, dw)
    };
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
    let (dx, dw) = run("f32");
    let plain = "nvfp4+grad_output=f32+hcp=d-o2-b-k100%";
    let rotated = "+grad_weight:input=rht16-f32>nvfp4+grad_weight:grad_output=rht16-f32>none";
    for rotated in ["", rotated] {
        let (patched_dx, patched_dw) = run(&format!("{plain}-dgrad-wgrad{rotated}"));
        assert!(near(&patched_dx, &dx) && near(&patched_dw, &dw), "{rotated:?}");
        let (rough_dx, rough_dw) = run(&format!("{plain}{rotated}"));
        assert!(!near(&rough_dx, &dx) && !near(&rough_dw, &dw));
    }
}
