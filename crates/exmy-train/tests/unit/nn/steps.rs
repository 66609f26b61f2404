use exmy::format::Format;
use exmy::round::{Overflow, Rounding};
use exmy_train::nn::norm::{Norm, layer_norm, layer_norm_backward};
use exmy_train::nn::steps::{
    gelu, gelu_backward, maybe, norm, norm_backward, round, swiglu, swiglu_backward,
};

fn values(n: usize, stream: u64) -> Vec<f32> {
    use exmy::random::{Philox, Stream};
    let philox = Philox::new(31, Stream::new("steps").with(stream));
    (0..n as u64).map(|i| (4.0 * philox.uniform(i) - 2.0) as f32).collect()
}

/// Layer norm whose ties all go away from zero.
fn away_norm(x: &[f32], gamma: &[f32], beta: Option<&[f32]>, y: &mut [f32]) {
    norm(Norm::LayerNorm, [Some(Rounding::TiesToAway); 2], x, gamma, beta, 1e-5, y);
}

/// The integer shortcuts against the rounding core, on halves, neighbours and specials.
#[test]
fn shortcuts_round_as_the_core_does() {
    for high in [0_u32, 1, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0x8000, 0xBF80, 0xFF7F] {
        for low in [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF] {
            let x = f32::from_bits(high << 16 | low);
            if x.is_nan() {
                continue;
            }
            for rounding in [Rounding::TiesToEven, Rounding::TiesToAway, Rounding::TowardZero] {
                let code = Format::BF16.encode_f32(x, rounding, Overflow::None, 0).code;
                assert_eq!(round(rounding, x).to_bits(), (code as u32) << 16, "{x:e}");
            }
        }
    }
}

/// A row of 2, worked out by hand: 1 and 1 + 2^-8 (a tie, to even 1); mean 1, c = 0, so that
/// only beta is left; then 1 and 3, whose deviations are -1 and 1.
#[test]
fn a_norm_by_hand() {
    let x = [1.0, 1.0 + 1.0 / 256.0, 1.0, 3.0];
    let mut y = [9.0_f32; 4];
    norm(
        Norm::LayerNorm,
        [Some(Rounding::TiesToEven); 2],
        &x,
        &[2.0, 1.0],
        Some(&[0.5, 0.25]),
        1e-5,
        &mut y,
    );
    assert_eq!(y, [0.5, 0.25, -1.5, 1.25]);
    // Away from zero the tie is 1 + 2^-7; the sum 2 + 2^-7 is a tie again, 2 + 2^-6.
    away_norm(&x, &[2.0, 1.0], None, &mut y);
    assert!(y[0] < 0.0 && y[1] == 0.0, "{y:?}");
}

/// Within a few units of bfloat16 of the plain layers, and every output a bfloat16.
#[test]
fn steps_follow_the_plain_layers() {
    let (rows, width) = (40, 32);
    let (x, dy) = (values(rows * width, 0), values(rows * width, 1));
    let (gamma, beta) = (values(width, 2), values(width, 3));
    let mut plain = vec![0.0; x.len()];
    let (mut mean, mut rstd) = (vec![0.0; rows], vec![0.0; rows]);
    layer_norm(&x, &gamma, Some(&beta), 1e-5, &mut plain, &mut mean, &mut rstd);
    let mut y = vec![f32::NAN; x.len()];
    away_norm(&x, &gamma, Some(&beta), &mut y);
    let close = |name: &str, got: &[f32], expected: &[f32], bound: f32| {
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() <= bound, "{name}: {got} {expected}");
            assert_eq!(got.to_bits() & 0xFFFF, 0, "{name}: {got}");
        }
    };
    close("norm", &y, &plain, 0.06);
    let mut expected = vec![0.0; x.len()];
    let (mut g, mut b) = (vec![0.0; width], vec![0.0; width]);
    let d = Some(&mut b[..]);
    layer_norm_backward(&x, &gamma, &mean, &rstd, &dy, &mut expected, &mut g, d);
    let mut dx = vec![f32::NAN; x.len()];
    let (mut g16, mut b16) = (vec![0.0; width], vec![0.0; width]);
    let rounding = Rounding::TiesToAway;
    norm_backward(
        Norm::LayerNorm,
        ([Some(rounding); 2], Some(rounding)),
        &x,
        &gamma,
        1e-5,
        &dy,
        &mut dx,
        &mut g16,
        Some(&mut b16),
    );
    close("dx", &dx, &expected, 0.08);
    close("dgamma", &g16, &g, 0.3);
    close("dbeta", &b16, &b, 0.3);

    use exmy_train::nn::activation as plain_layer;
    let mut expected = vec![0.0; x.len()];
    plain_layer::gelu(&x, &mut expected);
    gelu(rounding, &x, &mut y);
    close("gelu", &y, &expected, 0.04);
    let (mut d, mut d16) = (dy.clone(), dy.clone());
    plain_layer::gelu_backward(&x, &mut d);
    gelu_backward((rounding, Some(rounding)), &x, &mut d16);
    close("gelu backward", &d16, &d, 0.08);
    let half = x.len() / 2;
    plain_layer::swiglu(&x, 16, &mut expected[..half]);
    swiglu((rounding, Some(rounding)), &x, 16, &mut y[..half]);
    close("swiglu", &y[..half], &expected[..half], 0.03);
    plain_layer::swiglu_backward(&x, 16, &dy[..half], &mut expected);
    let both = (rounding, Some(rounding));
    swiglu_backward(both, &x, 16, &dy[..half], &mut dx);
    close("swiglu backward", &dx, &expected, 0.08);
}

/// Two rows of small variance, where it matters that epsilon is added as it is: every number from a
/// restatement of microxcaling's functions in numpy, ties away from zero. Gradients in f32 follow from the
/// same rounded forward pass.
#[test]
#[allow(clippy::excessive_precision, reason = "bfloat16 numbers, written out")]
fn a_norm_as_the_library_has_it() {
    let x = [-0.0025, -0.0015, 0.0, -0.0045, 0.0009, -0.0003, -0.0036, -0.0072_f32];
    let (gamma, beta) = ([1.01, 0.93, 1.13, 0.877_f32], [0.1, -0.2, 0.05, 0.33_f32]);
    let dy = [0.11, -0.23, 0.37, 0.51, -0.71, 0.13, 0.29, -0.43_f32];
    let mut y = [0.0_f32; 8];
    away_norm(&x, &gamma, Some(&beta), &mut y);
    let expected = [
        -0.00830078125,
        -0.0390625,
        0.7265625,
        -0.255859375,
        0.8828125,
        0.26953125,
        -0.2177734375,
        -0.59375,
    ];
    assert_eq!(y, expected);
    let back = |rounding: Option<Rounding>| {
        let (mut dx, mut g, mut b) = ([0.0_f32; 8], [0.0_f32; 4], [0.0_f32; 4]);
        let ways = ([Some(Rounding::TiesToAway); 2], rounding);
        let gamma = gamma.map(|gamma| maybe(rounding, gamma));
        norm_backward(Norm::LayerNorm, ways, &x, &gamma, 1e-5, &dy, &mut dx, &mut g, Some(&mut b));
        (dx, g, b)
    };
    let dx = [-23.5, -113.0, 68.0, 68.0, -116.0, 68.0, 107.0, -59.0];
    let d_gamma = [-0.5625, 0.025390625, 0.15234375, 0.107421875];
    let d_beta = [-0.6015625, -0.1005859375, 0.66015625, 0.08203125];
    assert_eq!(back(Some(Rounding::TiesToAway)), (dx, d_gamma, d_beta));
    let (dx, d_gamma, d_beta) = back(None);
    let near = |got: &[f32], expected: &[f32]| {
        got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs())
    };
    let plain =
        [-23.110086, -112.59886, 68.11293, 67.59602, -116.88707, 68.2646, 107.29826, -58.675797];
    assert!(near(&dx, &plain), "{dx:?}");
    assert!(near(&d_gamma, &[-0.560957, 0.025527336, 0.15259767, 0.10949221]), "{d_gamma:?}");
    assert!(near(&d_beta, &[-0.6, -0.1, 0.66, 0.08]), "{d_beta:?}");
}

/// Mean and deviations are 1/2 + 2^-9 and the variance 1/4 + 2^-9 + 2^-18, none of them bfloat16. Then by
/// hand, away from zero: the variance becomes 129 2^-9, its root 0.501949 a half, the reciprocal 2; twice the
/// deviation, 1 + 2^-8, is a tie and 1 + 2^-7. The gain is a little below 1 + 2^-8 and would be 1 in
/// bfloat16: 1.011748 is above the tie of 1 + 2^-7 and 1 + 2^-6, which it becomes. The bias is a little below
/// 2^-8, which it would be in bfloat16 and make a tie: so 1 + 2^-6 stays.
#[test]
fn the_tail_of_a_norm_by_hand() {
    let (unit, little) = (1.0 / 256.0, 1.0 / 1_048_576.0);
    let x = [0.0, 1.0 + unit];
    let (gamma, beta) = ([1.0 + unit - little; 2], [unit - little; 2]);
    let mut y = [9.0_f32; 2];
    norm(Norm::LayerNorm, [None, Some(Rounding::TiesToAway)], &x, &gamma, Some(&beta), 0.0, &mut y);
    assert_eq!(y, [-1.0 - 4.0 * unit, 1.0 + 4.0 * unit]);
    // With nothing rounded it is the plain norm, whose rows are -1 and 1.
    norm(Norm::LayerNorm, [None; 2], &x, &[1.0; 2], None, 0.0, &mut y);
    assert!((y[0] + 1.0).abs() < 1e-6 && (y[1] - 1.0).abs() < 1e-6, "{y:?}");
    // With all rounded the mean is 1/2 + 2^-8, the gain 1 and the bias 2^-8.
    let all = [Some(Rounding::TiesToAway); 2];
    norm(Norm::LayerNorm, all, &x, &gamma, Some(&beta), 0.0, &mut y);
    assert_eq!(y, [-1.0 + unit, 1.0 + 2.0 * unit]);
}

/// GELU and `SwiGLU`'s gate by the same restatement.
#[test]
#[allow(clippy::excessive_precision, reason = "bfloat16 numbers, written out")]
fn activations_as_the_library_has_them() {
    let x = [0.3, -1.27, 2.11, -0.041, 1.9_f32];
    let (dy, up) = ([1.0, 0.7, -0.3, 0.9, 1.1_f32], [0.5, 1.25, -0.75, 2.0, 1.5_f32]);
    let (rna, mut y) = (Rounding::TiesToAway, [0.0_f32; 5]);
    gelu(rna, &x, &mut y);
    assert_eq!(y, [0.185546875, -0.130859375, 2.078125, -0.0196533203125, 1.8359375]);
    let back = |rounding| {
        let mut d = dy;
        gelu_backward((rna, rounding), &x, &mut d);
        d
    };
    let expected = [0.73046875, -0.087890625, -0.322265625, 0.41796875, 1.21875];
    assert_eq!(back(Some(rna)), expected);
    let near = |got: &[f32], expected: [f32; 5]| {
        got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6)
    };
    let plain = [0.731517, -0.0868275, -0.3200997, 0.41773865, 1.2153133];
    assert!(near(&back(None), plain), "{:?}", back(None));

    let gate_up = [x, up].concat();
    let back = |rounding| {
        let mut d = [0.0_f32; 10];
        swiglu_backward((rna, rounding), &gate_up, 5, &dy, &mut d);
        d
    };
    let d = back(Some(rna));
    assert_eq!(d[..5], [0.32421875, 0.0008544921875, 0.2470703125, 0.859375, 1.796875]);
    let plain = [0.32390785, 0.0007243156, 0.24653321, 0.86046636, 1.7895814];
    assert!(near(&back(None)[..5], plain), "{:?}", back(None));
}

/// x = 1: u = 1.6640625, from 1.044677734 -> 1.046875, times 1.59375 = 1.66845 -> 1.671875 or
/// below; phi about 0.84, y about 0.84: between the bfloat16 neighbours of gelu(1) = 0.8413.
#[test]
fn gelu_by_hand() {
    let mut y = [0.0_f32];
    gelu(Rounding::TiesToEven, &[1.0], &mut y);
    assert_eq!(y, [0.843_75]);
}
