//! GPTQ against the formulas that it is a fast form of, and on a model.

use super::{data, truth};
use exmy::block::Axis;
use exmy::random::{Philox, Stream};
use exmy::{BlockFormat, BlockTensor, Rounding, View};
use exmy_train::evaluate::gptq::{Hessians, gptq, inverse_factor, round_blocks};
use exmy_train::evaluate::layers::watch_text;
use exmy_train::evaluate::{Evaluation, Windows};
use exmy_train::nn::Cpu;
use exmy_train::published::Published;

/// The inverse by Gauss and Jordan.
fn inverse(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
    }
    for i in 0..n {
        let pivot: Vec<f64> = a[i].iter().map(|x| x / a[i][i]).collect();
        for (k, row) in a.iter_mut().enumerate() {
            let factor = if k == i { 0.0 } else { row[i] };
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
        a[i] = pivot;
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}

/// Correlated inputs, and weights.
fn numbers(tokens: usize, inputs: usize, outputs: usize) -> (Vec<Vec<f64>>, Vec<f32>) {
    let philox = Philox::new(6, Stream::new("gptq"));
    let normal = |i: usize| philox.uniform(i as u64) + philox.uniform((i + 100_000) as u64) - 1.0;
    let input = |t: usize, j: usize| {
        normal(t * inputs + j) + 0.9 * normal(50_000 + t) + 0.1 * (j % 3) as f64
    };
    let x = (0..tokens).map(|t| (0..inputs).map(|j| input(t, j)).collect()).collect();
    (x, (0..outputs * inputs).map(|i| normal(70_000 + i) as f32).collect())
}

fn products(x: &[Vec<f64>]) -> Vec<f64> {
    let n = x[0].len();
    let sum = |at: usize| x.iter().map(|row| row[at / n] * row[at % n]).sum();
    (0..n * n).map(sum).collect()
}

#[test]
fn the_factor_is_that_of_the_inverse() {
    let h = products(&numbers(40, 12, 1).0);
    let u = inverse_factor(h.clone(), 12).unwrap();
    let expected = inverse(h.chunks(12).map(<[f64]>::to_vec).collect());
    for i in 0..12 {
        for j in 0..12 {
            let sum: f64 = (0..12).map(|k| u[k * 12 + i] * u[k * 12 + j]).sum();
            assert!((sum - expected[i][j]).abs() < 1e-9 * expected[i][i].abs(), "{i} {j}");
            assert!(i <= j || u[i * 12 + j] == 0.0);
        }
    }
    assert!(inverse_factor(vec![1.0, 2.0, 2.0, 1.0], 2).is_err());
}

/// Equations 2 and 3 of the paper as they stand: after each rounding the inverse of what is left of H.
fn by_the_book(w: &[f32], h: &[f64], n: usize, format: BlockFormat, width: usize) -> Vec<f64> {
    const VALUES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let mut w: Vec<f64> = w.iter().map(|&w| w.into()).collect();
    let mean = (0..n).map(|i| h[i * n + i]).sum::<f64>() / n as f64;
    let damped = |i: usize, j: usize| h[i * n + j] + if i == j { 0.01 * mean } else { 0.0 };
    let mut scale = 0.0;
    for j in 0..n {
        if j % width == 0 {
            let block: Vec<f32> = w[j..j + width].iter().map(|&w| w as f32).collect();
            let view = View::new(&block, 1, width);
            let tensor = BlockTensor::quantize(view, Axis::Cols, format, Rounding::TiesToEven);
            scale = libm::exp2(f64::from(tensor.packed_scales()[0]) - 127.0);
        }
        let rest = (j..n).map(|a| (j..n).map(|b| damped(a, b)).collect()).collect();
        let rest = inverse(rest);
        let distance = |value: &f64| (w[j].abs() / scale - value).abs();
        let nearest = VALUES.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
        let q = nearest * scale * w[j].signum();
        let error = (w[j] - q) / rest[0][0];
        w[j..].iter_mut().zip(&rest).for_each(|(w, row)| *w -= error * row[0]);
        w[j] = q;
    }
    w
}

#[test]
fn weights_are_those_of_the_papers_equations() {
    let (n, outputs, width) = (24, 18, 8);
    let (x, w) = numbers(60, n, outputs);
    let (h, format) = (products(&x), "e2m1/8:e8m0".parse().unwrap());
    let mut found = w.clone();
    gptq(&mut found, n, &h, format).unwrap();
    let view = View::new(&w, outputs, n);
    let nearest =
        BlockTensor::quantize(view, Axis::Cols, format, Rounding::TiesToEven).dequantize();
    let lost = |q: &[f32]| -> f64 {
        let of = |x: &Vec<f64>, i: usize| -> f64 {
            let y: f64 = (0..n).map(|j| x[j] * f64::from(q[i * n + j] - w[i * n + j])).sum();
            y * y
        };
        x.iter().map(|x| (0..outputs).map(|i| of(x, i)).sum::<f64>()).sum()
    };
    for (row, found) in w.chunks(n).zip(found.chunks(n)) {
        let expected = by_the_book(row, &h, n, format, width);
        assert!(
            found.iter().zip(&expected).all(|(&q, e)| f64::from(q) == *e),
            "{found:?} {expected:?}"
        );
    }
    assert!(lost(&found) < 0.6 * lost(&nearest), "{} {}", lost(&found), lost(&nearest));
    // An input that is always zero has no weight; blocks that are no rows are refused.
    let silent: Vec<Vec<f64>> = x.iter().map(|x| [&[0.0], &x[1..]].concat()).collect();
    let mut found = w.clone();
    gptq(&mut found, n, &products(&silent), format).unwrap();
    assert!(found.chunks(n).all(|row| row[0] == 0.0 && row[1..].iter().any(|&q| q != 0.0)));
    let error = gptq(&mut found, n, &h, "e2m1/16x16:e8m0".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("GPTQ rounds rows"), "{error}");
}

/// On the text that it was calibrated with a model loses less than by rounding to nearest.
#[test]
fn a_model_loses_less() {
    ["gla", "qwen2"].iter().for_each(|family| loses_less(family));
}

#[track_caller]
fn loses_less(family: &str) {
    let mut model = Published::open(&data(family)).unwrap();
    let (config, weights) = (*model.config(), model.weights(|_| {}).unwrap());
    let tokens = truth(&data(family).join("truth.safetensors")).0;
    let mut inputs = Hessians::default();
    watch_text(&config, &weights, &tokens, &mut inputs).unwrap();
    for (format, name) in [(BlockFormat::MXFP4, "mxfp4"), (BlockFormat::NVFP4, "nvfp4")] {
        let mut changed = weights.clone();
        round_blocks(&config.layout(), &mut changed, &inputs, format).unwrap();
        let nearest = format!("f32+blocks:weight={name}");
        let cost = |recipe: &str, changed: Option<&Vec<f32>>| {
            let recipes = ["f32", recipe].map(|recipe| recipe.parse().unwrap());
            let mut evaluation =
                Evaluation::new(Cpu::new(), config, weights.clone(), &recipes).unwrap();
            changed.into_iter().for_each(|params| evaluation.change(&config, params.clone()));
            let windows = Windows { window: tokens.len(), stride: 1 }.of(tokens.len());
            evaluation.block(&tokens, &windows[0], 0, false).unwrap();
            evaluation.measures().last().unwrap().divergence[0]
        };
        let (nearest, found) = (cost(&nearest, None), cost("f32", Some(&changed)));
        assert!(found > 0.0 && found < 0.8 * nearest, "{family} {name}: {found} {nearest}");
    }
}
