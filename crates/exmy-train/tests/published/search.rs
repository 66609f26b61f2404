//! Scales found by a search, against all scales tried by hand.

use super::data;
use exmy::block::Axis;
use exmy::random::{Philox, Stream};
use exmy::{BlockFormat, BlockTensor, Rounding, View};
use exmy_train::evaluate::nearest_blocks;
use exmy_train::evaluate::search::{search, search_blocks};
use exmy_train::published::Published;

/// Numbers of all sizes, with outliers.
fn weights(count: usize) -> Vec<f32> {
    let philox = Philox::new(4, Stream::new("search"));
    let uniform = |i: usize| philox.uniform(i as u64) as f32 - 0.5;
    (0..count).map(|i| uniform(i) * if i % 29 == 3 { 9.0 } else { 1.0 }).collect()
}

fn square(x: f64) -> f64 {
    x * x
}

/// The squared error of a block under a scale, with the values of E2M1 written out.
fn error(w: &[f32], scale: f64) -> f64 {
    const VALUES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let one = |&w: &f32| {
        let w = f64::from(w).abs();
        VALUES.iter().map(|value| square(w - value * scale)).fold(f64::INFINITY, f64::min)
    };
    w.iter().map(one).sum()
}

fn lost(w: &[f32], q: &[f32]) -> f64 {
    w.iter().zip(q).map(|(w, q)| square(f64::from(*w) - f64::from(*q))).sum()
}

/// With scales of powers of two three are tried; ragged rows, a row of zeros.
#[test]
fn powers_are_the_best_of_three() {
    let (inputs, format): (usize, BlockFormat) = (40, "e2m1/32:e8m0".parse().unwrap());
    let mut w = weights(12 * inputs);
    w[..inputs].fill(0.0);
    // 4 becomes 3, and loses 1; 31 quarters are exact, and lost 1/16 each.
    w[inputs..][..32].fill(0.25);
    w[inputs] = 4.0;
    let mut found = w.clone();
    let tensor = search(&mut found, inputs, format).unwrap();
    assert_eq!(tensor.dequantize(), found);
    let rule =
        BlockTensor::quantize(View::new(&w, 12, inputs), Axis::Cols, format, Rounding::TiesToEven);
    let (mut smaller, mut larger) = (0, 0);
    for (i, row) in w.chunks(inputs).enumerate() {
        for (b, block) in row.chunks(32).enumerate() {
            let of = |tensor: &BlockTensor| i32::from(tensor.packed_scales()[i * 2 + b]) - 127;
            let errors =
                [0, -1, 1].map(|more| error(block, libm::exp2(f64::from(of(&rule) + more))));
            let at = i * inputs + b * 32;
            let own = lost(block, &found[at..at + block.len()]);
            let least = errors.into_iter().fold(f64::INFINITY, f64::min);
            assert!((own - least).abs() <= 1e-12 * least.max(1e-30), "{i} {b}: {own} {errors:?}");
            smaller += u32::from(of(&tensor) < of(&rule));
            larger += u32::from(of(&tensor) > of(&rule));
        }
    }
    assert!(smaller > 0 && larger > 0, "{smaller} {larger}: a test of nothing");
    let error = search(&mut found, inputs, "e2m1/16x16:e8m0".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("rounds rows"), "{error}");
}

/// No block of any format is worse than by its rule, and all together are better.
#[test]
fn no_block_is_worse() {
    let inputs = 96;
    let w = weights(20 * inputs);
    for name in ["nvfp4", "mxfp4", "e2m1/32:ue4m3", "mxfp6-e2m3", "e2m1/16:e5m2+tensor"] {
        let format: BlockFormat = name.parse().unwrap();
        let mut found = w.clone();
        let tensor = search(&mut found, inputs, format).unwrap();
        assert_eq!(tensor.dequantize(), found, "{name}");
        let x = View::new(&w, 20, inputs);
        let rule = BlockTensor::quantize(x, Axis::Cols, format, Rounding::TiesToEven).dequantize();
        let width = tensor.block().1;
        for ((w, found), rule) in w.chunks(width).zip(found.chunks(width)).zip(rule.chunks(width)) {
            assert!(lost(w, found) <= lost(w, rule) * (1.0 + 1e-5) + 1e-12, "{name}");
        }
        assert!(lost(&w, &found) < lost(&w, &rule), "{name}");
    }
}

#[test]
fn weights_of_blocks_are_rounded_and_others_stay() {
    let mut model = Published::open(&data("llama")).unwrap();
    let (weights, layout) = (model.weights(|_| {}).unwrap(), model.layout().clone());
    let [mut searched, mut nearest] = [weights.clone(), weights.clone()];
    let stored = search_blocks(&layout, &mut searched, BlockFormat::MXFP4).unwrap();
    nearest_blocks(&layout, &mut nearest, BlockFormat::MXFP4);
    for entry in &layout {
        let range = entry.range.clone();
        let tensor = stored.iter().find(|(name, _)| *name == entry.name);
        assert_eq!(tensor.is_some(), entry.name.contains("_proj"), "{}", entry.name);
        match tensor {
            None => assert_eq!(searched[range.clone()], weights[range], "{}", entry.name),
            Some((_, tensor)) => assert_eq!(searched[range], tensor.dequantize()),
        }
    }
    assert!(lost(&weights, &searched) < lost(&weights, &nearest));
}
