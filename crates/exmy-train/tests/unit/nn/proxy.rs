//! The proxy against central differences, against its definition, and against what was counted.

use exmy::random::{Philox, Stream};
use exmy_train::nn::batch::{Batch, Model};
use exmy_train::nn::device::Cpu;
use exmy_train::nn::linear::Unquantized;
use exmy_train::nn::loss;
use exmy_train::nn::normal::normals;
use exmy_train::nn::proxy::{Activation, Config, Init, Loss, Proxy, TeacherActivation};

fn tiny() -> Config {
    Config { layers: 2, width: 6, noise: 0.3, ..Config::default() }
}

fn batch(rows: usize, first: u64) -> Batch<'static> {
    Batch::Drawn { seed: 4, stream: Stream::new("proxy test"), first, rows }
}

fn all() -> Vec<Config> {
    let functions = [Activation::Gelu, Activation::Relu, Activation::Linear, Activation::Swiglu];
    let mut all: Vec<_> = functions.map(|activation| Config { activation, ..tiny() }).into();
    all.push(Config { norm: false, ..tiny() });
    all.push(Config { norm_affine: false, teacher_layers: 1, teacher_width: 9, ..tiny() });
    let teacher_activation = TeacherActivation::Tanh;
    all.push(Config { teacher_activation, init: Init::Xavier, ..tiny() });
    all.push(Config { loss: Loss::Kl, ..tiny() });
    all.push(Config { loss: Loss::Kl, norm: false, activation: Activation::Swiglu, ..tiny() });
    all
}

/// Per layer 8 d² + 3 d; SwiGLU of d = 6 has 16 hidden units, 3 d h + 3 d.
#[test]
fn sizes_by_hand() {
    let wide = Config { layers: 4, width: 512, ..tiny() };
    assert_eq!(wide.layout().len(), 4 * (8 * 512 * 512 + 3 * 512));
    assert_eq!(wide.linear_parameters(), 4 * 8 * 512 * 512);
    let gated = Config { activation: Activation::Swiglu, ..tiny() };
    assert_eq!((gated.hidden(), gated.teacher_hidden()), (16, 4));
    assert_eq!(gated.layout().len(), 2 * (3 * 6 * 16 + 18));
    assert_eq!(Config { width: 512, ..gated }.hidden(), 1365);
    let no = Config { width: 0, ..tiny() }.validate().unwrap_err().to_string();
    assert!(no.contains("width is 0"), "{no}");
}

/// 6 a weight of the student, 2 a weight of the teacher: 4 blocks of 8 d² and 2 d² of width 512,
/// and 2 blocks of 3 * 6 * 16 and 3 * 6 * 4.
#[test]
fn operations_by_hand() {
    let wide = Config { layers: 4, width: 512, ..tiny() };
    assert_eq!(wide.flops_per_row(), 6 * 8_388_608 + 2 * 2_097_152);
    let gated = Config { activation: Activation::Swiglu, ..tiny() };
    assert_eq!(gated.flops_per_row(), 6 * 576 + 2 * 144);
    // A teacher of its own shape: one block of 2 * 6 * 9.
    let other = Config { teacher_layers: 1, teacher_width: 9, ..tiny() };
    assert_eq!(other.flops_per_row(), 6 * 576 + 2 * 108);
    let model = exmy_train::nn::model::Config::from(other);
    assert_eq!(model.flops_per_token(), 3672);
}

/// Every tensor of every combination along a random direction.
#[test]
fn gradients_are_central_differences() {
    for config in all() {
        let mut proxy = Proxy::<Cpu<f64>>::new(config, 8).unwrap();
        let params: Vec<f64> =
            config.layout().initialize(8).iter().map(|x| f64::from(*x)).collect();
        let (mut grads, products) = (vec![0.0; params.len()], &mut Unquantized);
        let loss =
            proxy.forward_backward((&params).into(), (&mut grads).into(), &batch(7, 0), products);
        let mut mean = |params: &[f64]| {
            let mut losses = [0.0; 7];
            proxy.losses(params.into(), &batch(7, 0), &mut Unquantized, (&mut losses).into());
            losses.iter().sum::<f64>() / 7.0
        };
        assert!((mean(&params) - loss).abs() < 1e-14);
        for entry in &config.layout() {
            let philox = Philox::new(9, Stream::new(&entry.name));
            let direction: Vec<f64> =
                (0..entry.range.len() as u64).map(|i| philox.uniform(i) - 0.5).collect();
            let moved = |h: f64| {
                let mut moved = params.clone();
                let part = moved[entry.range.clone()].iter_mut();
                part.zip(&direction).for_each(|(p, d)| *p += h * d);
                moved
            };
            let found = (mean(&moved(1e-5)) - mean(&moved(-1e-5))) / 2e-5;
            let gradient = &grads[entry.range.clone()];
            let expected: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
            let name = &entry.name;
            assert!((found - expected).abs() < 1e-8, "{config:?} {name}: {found} {expected}");
            assert!(gradient.iter().any(|g| *g != 0.0), "{config:?} {name}");
        }
    }
}

/// One row through the equations of the paper, with plain loops.
#[test]
fn losses_are_the_definition() {
    let config = tiny();
    let mut proxy = Proxy::<Cpu<f64>>::new(config, 8).unwrap();
    let params: Vec<f64> = config.layout().initialize(8).iter().map(|x| f64::from(*x)).collect();
    let mut losses = [0.0; 3];
    proxy.losses((&params).into(), &batch(3, 5), &mut Unquantized, (&mut losses).into());
    let mut x = vec![0.0_f32; 6];
    let stream = Stream::new("proxy test");
    normals(&mut x, 6 * 6, &Philox::new(4, stream.with(0)));
    let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let product = |w: &[f64], x: &[f64]| -> Vec<f64> {
        w.chunks(x.len()).map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    };
    let gelu = |x: Vec<f64>| -> Vec<f64> {
        x.iter().map(|x| 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))).collect()
    };
    let (mut a, mut y) = (x.clone(), x);
    let layout = config.layout();
    let teachers = config.teacher_layout();
    let teacher: Vec<f64> = teachers.initialize(8).iter().map(|x| f64::from(*x)).collect();
    for k in 0..2 {
        let part = |name: &str| &params[layout.find(name).unwrap().range.clone()];
        let name = |rest: &str| format!("model.layers.{k}.{rest}");
        let mean = a.iter().sum::<f64>() / 6.0;
        let variance = a.iter().map(|a| (a - mean) * (a - mean)).sum::<f64>() / 6.0;
        let normed: Vec<f64> = a.iter().map(|a| (a - mean) / (variance + 1e-5).sqrt()).collect();
        let inside = gelu(product(part(&name("mlp.up_proj.weight")), &normed));
        let out = product(part(&name("mlp.down_proj.weight")), &inside);
        for (d, a) in a.iter_mut().enumerate() {
            *a += out[d] + part(&name("mlp.down_proj.bias"))[d];
        }
        let part = |rest: &str| {
            let name = format!("teacher.layers.{k}.{rest}.weight");
            &teacher[teachers.find(&name).unwrap().range.clone()]
        };
        y = product(part("down_proj"), &gelu(product(part("up_proj"), &y)));
    }
    let mut noise = [0.0_f32; 6];
    normals(&mut noise, 6 * 6, &Philox::new(4, stream.with(1)));
    let difference = |d: usize| a[d] - y[d] - 0.3 * f64::from(noise[d]);
    let loss: f64 = (0..6).map(|d| difference(d) * difference(d)).sum();
    assert!((losses[1] - loss / 6.0).abs() < 1e-13, "{} {}", losses[1], loss / 6.0);
    // The divergence of the softmaxes of the same numbers.
    let mut proxy = Proxy::<Cpu<f64>>::new(Config { loss: Loss::Kl, ..config }, 8).unwrap();
    proxy.losses((&params).into(), &batch(3, 5), &mut Unquantized, (&mut losses).into());
    let softmax = |x: &[f64]| -> Vec<f64> {
        let sum: f64 = x.iter().map(|x| libm::exp(*x)).sum();
        x.iter().map(|x| libm::exp(*x) / sum).collect()
    };
    let target: Vec<f64> = (0..6).map(|d| y[d] + 0.3 * f64::from(noise[d])).collect();
    let (p, q) = (softmax(&target), softmax(&a));
    let loss: f64 = p.iter().zip(&q).map(|(p, q)| p * libm::log(p / q)).sum();
    assert!(loss > 0.01 && (losses[1] - loss).abs() < 1e-13, "{} {loss}", losses[1]);
}

/// A batch in parts is the batch; another part of the data is another.
#[test]
fn rows_are_addressed() {
    let mut proxy = Proxy::<Cpu>::new(tiny(), 8).unwrap();
    let params = tiny().layout().initialize(8);
    let mut losses = |rows, first| {
        let mut losses = vec![0.0; rows];
        proxy.losses((&params).into(), &batch(rows, first), &mut Unquantized, (&mut losses).into());
        losses
    };
    let whole = losses(9, 0);
    assert_eq!([losses(4, 0), losses(5, 4)].concat(), whole);
    assert_ne!(losses(9, 9), whole);
}

/// With d = 64 and four blocks the teacher's output has all but vanished, so that the loss at the
/// start is that of the identity path and what the student adds to it: about 1.1 to 1.2.
#[test]
fn the_initial_loss_is_near_one() {
    let config = Config { layers: 4, width: 64, ..Config::default() };
    let mut proxy = Proxy::<Cpu>::new(config, 1).unwrap();
    let params = config.layout().initialize(1);
    let mut losses = vec![0.0; 256];
    proxy.losses((&params).into(), &batch(256, 0), &mut Unquantized, (&mut losses).into());
    let mean = loss::mean(&losses);
    assert!((1.0..1.35).contains(&mean), "{mean}");
    let targets =
        proxy.targets().numbers().iter().map(|y| f64::from(*y) * f64::from(*y)).sum::<f64>();
    assert!(targets / (256.0 * 64.0) < 0.01, "{targets}");
}
