use exmy_train::train::optimizer::{AdamW, CHUNK, Sgd, clip_scale, global_norm};

#[track_caller]
fn assert_close(got: &[f32], absolute: f64, expected: [f64; 10]) {
    for (got, expected) in got.iter().zip(expected) {
        let error = (f64::from(*got) - expected).abs();
        assert!(error <= 1e-6 * expected.abs() + absolute, "{got}, not {expected}");
    }
}

const START: [f32; 10] = [0.5, -1.25, 3.0, 0.001, -0.75, 2.0, -0.031_25, 100.0, 0.0, -7.5];

/// Ten parameters after three clipped steps of lr 1e-3, betas 0.9 and 0.99, clip 1.0, gradients
/// `((7 i + 3 t) mod 11 - 5) / 4 * 10^(i mod 4 - 2)`.
fn three_steps(decay: bool) -> [[f32; 10]; 3] {
    let adam = AdamW { beta2: 0.99, weight_decay: 0.1, ..AdamW::default() };
    let (mut params, mut m, mut v) = (START, [0.0; 10], [0.0; 10]);
    for t in 1..=3_u64 {
        let grads: [f32; 10] = core::array::from_fn(|i| {
            let power = [0.01, 0.1, 1.0, 10.0][i % 4];
            (((7 * i as u64 + 3 * t) % 11) as f32 - 5.0) * 0.25 * power
        });
        let scale = clip_scale(global_norm(&grads), 1.0);
        adam.step(t, 1e-3, decay, &mut params, &grads, &mut m, &mut v, scale);
    }
    [params, m, v]
}

/// The literals are PyTorch 2.15's, in f32: `torch.optim.AdamW(foreach=False)` after
/// `clip_grad_norm_`, printed with nine digits.
#[test]
fn three_steps_of_pytorch() {
    // A parameter near 0 is a sum of steps of up to lr that cancel.
    const ROUNDED_STEP: f64 = 1e-3 * f32::EPSILON as f64;
    let [params, m, v] = three_steps(true);
    #[rustfmt::skip]
    assert_close(&params, ROUNDED_STEP, [
        0.500703096, -1.25108469, 2.9972887, 0.00252051838, -0.750685155,
        1.99901307, -0.0292037893, 99.969635, 2.12370651e-05, -7.49535227,
    ]);
    #[rustfmt::skip]
    assert_close(&m, 0.0, [
        9.00242085e-05, 0.000411837216, -0.00193323533, 0.025564814, -2.32756738e-05,
        -0.000837917323, -0.00388945756, -0.0877350643, 0.000154483598, -0.00103353965,
    ]);
    #[rustfmt::skip]
    assert_close(&v, 0.0, [
        1.46691015e-08, 1.70210274e-06, 0.000189506914, 0.0116701247, 1.56781752e-08,
        2.24752171e-06, 0.000120510907, 0.0177152697, 2.10480202e-08, 1.58119985e-06,
    ]);
    #[rustfmt::skip]
    assert_close(&three_steps(false)[0], ROUNDED_STEP, [
        0.50085336, -1.25145996, 2.99818826, 0.00252108532, -0.750910342,
        1.99961305, -0.0292128827, 99.9996414, 2.1406915e-05, -7.49760199,
    ]);
}

/// At t = 1 the corrected moments are g and g^2, so a parameter moves by lr against the sign.
#[test]
fn first_step_by_hand() {
    let (mut params, mut m, mut v) = ([1.0_f32, 1.0, 1.0], [0.0; 3], [0.0; 3]);
    let adam = AdamW { weight_decay: 0.5, ..AdamW::default() };
    adam.step(1, 0.125, false, &mut params, &[3.0, -1e-3, 0.0], &mut m, &mut v, 1.0);
    assert!((params[0] - 0.875).abs() < 1e-6 && (params[1] - 1.125).abs() < 1e-5);
    assert_eq!(params[2], 1.0);
    let (mut decayed, mut m, mut v) = ([1.0], [0.0], [0.0]);
    adam.step(1, 0.125, true, &mut decayed, &[0.0], &mut m, &mut v, 1.0);
    assert_eq!(decayed, [1.0 - 0.125 * 0.5]);
}

/// Three steps by hand, all numbers exact: lr 1/4, momentum 1/2, gradients 1, 2, -4 halved by the scale. The
/// buffer is 1/2, 1/4 + 1, 5/8 - 2; each step first keeps 1 - 1/4 * 1/2 = 7/8 of the parameter where it
/// decays, and the buffer does not see that. One with decay in the gradient, as PyTorch's, would end at other
/// numbers.
#[test]
fn momentum_by_hand() {
    let run = |momentum: f64, decay: bool| {
        let sgd = Sgd { momentum, weight_decay: 0.5 };
        let (mut p, mut b) = ([8.0_f32], if momentum == 0.0 { vec![] } else { vec![0.0] });
        let moves = [1.0, 2.0, -4.0].map(|g| {
            sgd.step(0.25, decay, &mut p, &[g], &mut b, 0.5);
            p[0]
        });
        (moves, b)
    };
    assert_eq!(run(0.5, false), ([7.875, 7.5625, 7.906_25], vec![-1.375]));
    assert_eq!(run(0.5, true), ([6.875, 5.703_125, 2731.0 / 512.0], vec![-1.375]));
    assert_eq!(run(0.0, false), ([7.875, 7.625, 8.125], vec![]));
    assert_eq!(run(0.0, true), ([6.875, 5.765_625, 2839.0 / 512.0], vec![]));
}

/// Long slices in chunks are short ones, whatever the level.
#[test]
fn descent_in_chunks() {
    use exmy::simd::{Level, with_level};
    let sgd = Sgd { momentum: 0.9, weight_decay: 0.1 };
    let start: Vec<f32> = (0..CHUNK + 37).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let (mut p, mut b) = (start.clone(), vec![0.5; start.len()]);
        let grads: Vec<f32> = start.iter().rev().copied().collect();
        with_level(level, || sgd.step(0.01, true, &mut p, &grads, &mut b, 0.3));
        for (i, (p, b)) in p.iter().zip(&b).enumerate() {
            let buffer = 0.5 * 0.9_f32 + grads[i] * 0.3;
            assert_eq!(*b, buffer, "{level}");
            assert_eq!(*p, start[i] * 0.999 + -0.01 * buffer, "{level}");
        }
    }
}

#[test]
#[should_panic(expected = "a buffer of 1")]
fn a_buffer_without_momentum_is_named() {
    let sgd = Sgd { momentum: 0.0, weight_decay: 0.0 };
    sgd.step(0.1, true, &mut [0.0], &[0.0], &mut [0.0], 1.0);
}

#[test]
fn norm_and_clip() {
    let mut grads = vec![0.0; 3 * CHUNK + 5];
    (grads[0], grads[CHUNK], grads[3 * CHUNK + 4]) = (2.0, -3.0, 6.0);
    assert_eq!(global_norm(&grads), 7.0);
    assert_eq!(global_norm::<f32>(&[]), 0.0);
    // Squares of these would overflow or vanish in f32.
    assert_eq!(global_norm(&[3e30, 4e30]) as f32, 5e30);
    assert!((global_norm(&[3e-30, 4e-30]) / 5e-30 - 1.0).abs() < 1e-6);
    assert_eq!((clip_scale(0.5, 1.0), clip_scale(0.0, 1.0)), (1.0, 1.0));
    assert_eq!(clip_scale(4.0, 1.0), 0.249_999_94);
    assert_eq!(clip_scale(f64::INFINITY, 1.0), 0.0);
    assert!(clip_scale(f64::NAN, 1.0).is_nan());
}

#[test]
#[should_panic(expected = "3 parameters, 2 gradients")]
fn lengths_are_named() {
    let (m, v) = (&mut [0.0; 3], &mut [0.0; 3]);
    AdamW::default().step(1, 0.1, true, &mut [0.0; 3], &[0.0; 2], m, v, 1.0);
}
