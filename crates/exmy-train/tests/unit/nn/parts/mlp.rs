use crate::nn::parts::linear::Watch;
use exmy_train::nn::device::Cpu;
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::nn::parts::Context;
use exmy_train::nn::parts::linear::Linear;
use exmy_train::nn::parts::mlp::{Activation, Mlp, MlpSaved};
use exmy_train::nn::site::{Operator, Vector};

/// The gradient of the last weight reads `silu(gate) up` as it was multiplied, where the backward pass is not
/// rounded: silu in bfloat16, seen beside up projections of 1, times an up projection.
#[test]
fn the_product_that_backward_reads_is_rounded_with_backward() {
    let mut layout = Layout::default();
    layout.push("in".into(), &[6, 1], Role::Matrix, Init::Zeros);
    layout.push("out".into(), &[1, 3], Role::Matrix, Init::Zeros);
    let members = [(Operator::Gate, 3), (Operator::Up, 3)];
    let mlp = Mlp {
        layer: Some(0),
        activation: Activation::Swiglu,
        hidden: 3,
        up: Linear::new(&layout, Some(0), &members, 1, ["in", "in"]),
        down: Linear::new(&layout, Some(0), &[(Operator::Down, 1)], 3, ["out", "out"]),
    };
    let read = |ways, up: [f32; 3]| {
        let params = [[0.3, -1.27, 2.11], up, [1.0; 3]].concat();
        let (mut saved, mut grads) = (MlpSaved::default(), [0.0; 9]);
        let (mut y, mut dx, mut after, mut before) = ([0.0], [0.0], [0.0; 3], [0.0; 6]);
        let mut watch = Watch { operation: Vector::Activation, ways, read: Vec::new() };
        let cpu = &Cpu::new();
        saved.reserve(cpu, &mlp, 1);
        let cx = &mut Context { device: cpu, products: &mut watch, params: (&params).into() };
        mlp.forward(cx, 1, (&[1.0]).into(), None, &mut saved, (&mut y).into());
        let buffers = [(&mut after).into(), (&mut before).into()];
        let (sums, x, dy) = (&mut (&mut grads).into(), (&[1.0]).into(), (&[1.0]).into());
        mlp.backward(cx, sums, 1, x, &saved, dy, buffers, (&mut dx).into());
        watch.read
    };
    let up = [0.8046875, 1.2578125, -0.75390625]; // of bfloat16
    let silu = read([true, true], [1.0; 3]);
    let product: Vec<f32> = silu.iter().zip(up).map(|(silu, up)| silu * up).collect();
    let away = |x: &f32| f32::from_bits((x.to_bits() + 0x8000) & 0xFFFF_0000);
    let rounded: Vec<f32> = product.iter().map(away).collect();
    assert!(product.iter().zip(&rounded).all(|(product, rounded)| product != rounded));
    assert_eq!(read([true, false], up), product);
    assert_eq!(read([true, true], up), rounded);
}
