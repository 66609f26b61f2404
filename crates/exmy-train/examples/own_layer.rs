//! A layer of one's own, trained in f32 and in MXFP8 by a loop of one's own.
//!
//! The layer is a residual block whose branch has a gate: `y = x + u σ(g)` with `g | u = x Wᵀ`, for rows `x`
//! of `WIDTH` elements. It is a forward and a backward function; a `Products` multiplies its matrices, so any
//! recipe applies to it. A stack of two learns the outputs of another stack with other weights.
//!
//! `cargo run -p exmy-train --example own_layer` prints the losses, the same bits on every machine.

use core::ops::Range;

use exmy::random::{Philox, Stream};
use exmy_train::nn::device::{Matrix, MatrixMut};
use exmy_train::nn::linear::{Group, Products, Unquantized};
use exmy_train::nn::optimizer::AdamW;
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::nn::site::Operator;
use exmy_train::nn::{Cpu, Real, loss};
use exmy_train::recipe::{Engine, Images, Phase, Plan, Recipe};

const WIDTH: usize = 64;
const ROWS: usize = 128;
const STEPS: u64 = 300;

/// The two linear operators, which read one input. Recipes find them by these names.
const MEMBERS: [(Operator, usize); 2] = [(Operator::Gate, WIDTH), (Operator::Up, WIDTH)];

/// The block, and where the weights of its two operators lie among the parameters, one below the other.
struct Gated {
    layer: u32,
    weight: Range<usize>,
}

fn sigmoid(x: f32) -> f32 {
    // The library's exponential: the standard library's differs between platforms.
    1.0 / (1.0 + Real::exp(-x))
}

impl Gated {
    fn new(layout: &mut Layout, layer: u32) -> Self {
        let init = Init::Normal { std: 1.0 / (WIDTH as f64).sqrt() };
        let [gate, up] = MEMBERS.map(|(operator, outputs)| {
            let name = format!("layers.{layer}.{operator}.weight");
            layout.push(name, &[outputs, WIDTH], Role::Matrix, init)
        });
        Self { layer, weight: gate.start..up.end }
    }

    fn group(&self) -> Group<'static> {
        Group { layer: Some(self.layer), members: &MEMBERS }
    }

    /// From `x` (ROWS, WIDTH) to `g | u` (ROWS, 2 WIDTH), which the backward function reads, and `y`.
    fn forward(
        &self,
        products: &mut dyn Products<Cpu>,
        params: &[f32],
        x: &[f32],
    ) -> [Vec<f32>; 2] {
        let mut gu = vec![0.0; 2 * x.len()];
        let w = Matrix::new(&params[self.weight.clone()], 2 * WIDTH, WIDTH);
        let (rows, out) = (Matrix::new(x, ROWS, WIDTH), MatrixMut::new(&mut gu, ROWS, 2 * WIDTH));
        products.forward(&Cpu::new(), &self.group(), rows, w, out);
        let element = |(at, x): (usize, &f32)| {
            let [g, u] = places(at).map(|at| gu[at]);
            x + u * sigmoid(g)
        };
        let y = x.iter().enumerate().map(element).collect();
        [gu, y]
    }

    /// Turns `d`, dL/dy, into dL/dx; adds the weights' gradient to its place in `grads`.
    fn backward(
        &self,
        products: &mut dyn Products<Cpu>,
        (params, grads): (&[f32], &mut [f32]),
        (x, gu): (&[f32], &[f32]),
        d: &mut [f32],
    ) {
        let mut d_gu = vec![0.0; gu.len()];
        for (at, &dy) in d.iter().enumerate() {
            let [of_g, of_u] = places(at);
            let s = sigmoid(gu[of_g]);
            d_gu[of_g] = dy * gu[of_u] * s * (1.0 - s);
            d_gu[of_u] = dy * s;
        }
        let mut dx = vec![0.0; d.len()];
        let (device, group) = (&Cpu::new(), self.group());
        let d_gu = Matrix::new(&d_gu, ROWS, 2 * WIDTH);
        let w = Matrix::new(&params[self.weight.clone()], 2 * WIDTH, WIDTH);
        let dw = MatrixMut::new(&mut grads[self.weight.clone()], 2 * WIDTH, WIDTH);
        products.grad_input(device, &group, d_gu, w, MatrixMut::new(&mut dx, ROWS, WIDTH));
        products.grad_weight(device, &group, d_gu, Matrix::new(x, ROWS, WIDTH), dw);
        d.iter_mut().zip(dx).for_each(|(d, dx)| *d += dx);
    }
}

/// Where the row of `g | u` has what belongs to element `at` of `x`.
fn places(at: usize) -> [usize; 2] {
    let first = 2 * WIDTH * (at / WIDTH) + at % WIDTH;
    [first, first + WIDTH]
}

/// Trains under a recipe; the loss of every step.
fn train(recipe: &str) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let recipe: Recipe = recipe.parse()?;
    let mut layout = Layout::default();
    let blocks = [0, 1].map(|layer| Gated::new(&mut layout, layer));
    let plan = Plan::new(&recipe, &layout, STEPS)?;
    let (mut params, teacher) = (layout.initialize(1), layout.initialize(2));
    let (mut m, mut v) = (vec![0.0; params.len()], vec![0.0; params.len()]);
    let (optimizer, mut images) = (AdamW::default(), Images::default());
    let mut curve = Vec::new();
    for step in 0..STEPS {
        // Rows by address, the same for every recipe: uniform, of variance 1.
        let random = Philox::new(3, Stream::new("rows").with(step));
        let uniform = |i| (12.0_f64.sqrt() * (random.uniform(i) - 0.5)) as f32;
        let x: Vec<f32> = (0..(ROWS * WIDTH) as u64).map(uniform).collect();
        let [_, h] = blocks[0].forward(&mut Unquantized, &teacher, &x);
        let [_, target] = blocks[1].forward(&mut Unquantized, &teacher, &h);

        let mut engine = Engine::new(&plan, 1, Phase::Train(step), &mut images);
        let [gu0, h] = blocks[0].forward(&mut engine, &params, &x);
        let [gu1, y] = blocks[1].forward(&mut engine, &params, &h);
        let mut losses = vec![0.0; ROWS];
        loss::squared_error(&y, &target, WIDTH, &mut losses);
        curve.push(loss::mean(&losses));

        let (mut d, mut grads) = (vec![0.0; y.len()], vec![0.0; params.len()]);
        loss::squared_error_backward(&y, &target, 2.0 / y.len() as f32, &mut d);
        blocks[1].backward(&mut engine, (&params, &mut grads), (&h, &gu1), &mut d);
        blocks[0].backward(&mut engine, (&params, &mut grads), (&x, &gu0), &mut d);
        optimizer.step(step + 1, 3e-3, true, &mut params, &grads, &mut m, &mut v, 1.0);
    }
    Ok(curve)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recipes = ["f32", "mxfp8-e4m3"];
    let [f32s, mxfp8] = [train(recipes[0])?, train(recipes[1])?];
    println!("step  {:>10}  {:>10}", recipes[0], recipes[1]);
    for step in (0..f32s.len()).step_by(50).chain([f32s.len() - 1]) {
        println!("{step:>4}  {:>10.5}  {:>10.5}", f32s[step], mxfp8[step]);
    }
    for curve in [&f32s, &mxfp8] {
        let (first, last) = (curve[0], curve[curve.len() - 1]);
        assert!(last < 0.1 * first, "the layer learns: the loss was {first} and is {last}");
    }
    Ok(())
}
