//! Blocks with infinity or NaN where they are awkward: alone at the end of a tile, in widths that
//! are no multiple of a vector's, and under scales that cannot say NaN.

use super::{RANDOM, bits, levels};
use exmy::block::{Axis, BlockFormat, BlockTensor, PlainBlocks};
use exmy::quantizer::{Quantizer, Target};
use exmy::simd::with_level;
use exmy::slice::{View, ViewMut};

/// Reports the first difference, not all numbers.
fn same<T: Copy + PartialEq + std::fmt::Debug>(found: &[T], plain: &[T], at: &str, what: &str) {
    assert_eq!(found.len(), plain.len(), "{at}: {what}s");
    let first = found.iter().zip(plain).position(|(found, plain)| found != plain);
    if let Some(i) = first {
        panic!("{at}: {what} {i} is {:?}, by the definition {:?}", found[i], plain[i]);
    }
}

/// Codes, scales, decoded values and the image are the definition's.
pub(crate) fn agrees(text: &str, data: &[f32], (rows, cols): (usize, usize), axis: Axis) {
    let quantizer: Quantizer = text.parse().unwrap();
    let Target::Block(format) = quantizer.target else { panic!("{text} has no blocks") };
    let x = View::new(data, rows, cols);
    let Quantizer { rounding, overflow, .. } = quantizer;
    let plain = PlainBlocks::quantize(x, axis, format, (rounding, overflow, RANDOM));
    for level in levels() {
        with_level(level, || {
            let tensor = BlockTensor::quantize(x, axis, format, (rounding, overflow, RANDOM));
            let at = format!("{text} {rows}x{cols} {axis:?} {level}");
            same(&tensor.codes(), &plain.codes, &at, "code");
            same(&tensor.scales(), &plain.scales, &at, "scale");
            let values = bits(&plain.dequantize());
            same(&bits(&tensor.dequantize()), &values, &at, "value");
            let mut image = vec![0.0; rows * cols];
            quantizer.image_into(x, axis, RANDOM, ViewMut::new(&mut image, rows, cols));
            same(&bits(&image), &values, &at, "image");
        });
    }
}

#[test]
fn a_lone_last_block_may_hold_nan() {
    let cases = [
        ("e4m3/row:f32", 9, 1000),
        ("e4m3/row:e8m0", 9, 1000),
        ("e4m3/100:e8m0", 3, 8193),
        ("e4m3/1000:e8m0", 3, 8193),
        ("e2m1/2050:e8m0", 1, 20_001),
        ("e2m1/16x3:e8m0", 33, 2049),
        ("e4m3/24x24:e8m0", 3, 2050),
        ("e2m1/5x3:e8m0", 3, 2050),
    ];
    for (text, rows, cols) in cases {
        for axis in [Axis::Cols, Axis::Rows] {
            let mut data: Vec<f32> =
                (0..rows * cols).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
            data[(rows - 1) * cols + 5] = f32::NAN;
            data[rows * cols - 1] = f32::NAN;
            agrees(text, &data, (rows, cols), axis);
        }
    }
}

/// A scale without NaN does not make a number of a NaN; the element format does, if it has to.
#[test]
fn scales_without_nan() {
    for scale in ["e2m1", "e3m2", "e2m3", "int8"] {
        let mut data = [1.0_f32; 40];
        data[3] = f32::NAN;
        data[35] = f32::NEG_INFINITY;
        let text = format!("e4m3/16:{scale}@nearest");
        agrees(&text, &data, (1, 40), Axis::Cols);
        let format: BlockFormat = text.parse().unwrap();
        let Quantizer { rounding, overflow, .. } = Quantizer::new(format.into());
        let x = View::new(&data, 1, 40);
        let tensor = BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM));
        assert!(tensor.dequantize()[3].is_nan(), "{text}");
    }
    let mut data = [1.0_f32; 40];
    data[3] = f32::NAN;
    agrees("int4/row:e2m1@nearest@te", &data, (1, 40), Axis::Cols);
    agrees("binary8p4se/16:e2m1@nearest", &data, (1, 40), Axis::Cols);
}

/// Where a profile's scale stays finite, what becomes of an infinite element is the policy's say.
#[test]
fn infinite_elements_under_finite_scales() {
    let mut data: Vec<f32> = (0..96).map(|i| i as f32 / 7.0).collect();
    data[1] = f32::INFINITY;
    data[70] = f32::NEG_INFINITY;
    for profile in ["te", "te-2.13", "torchao-0.18"] {
        for policy in ["sat-propagate", "sat-finite", "sat-none", "to-inf"] {
            agrees(&format!("mxfp8-e5m2@rceil@{profile}@{policy}"), &data, (3, 32), Axis::Cols);
        }
    }
}
