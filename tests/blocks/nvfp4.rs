//! NVFP4: the published vectors and accuracy, the edge cases, and an independent spelling of the
//! formulas (arXiv 2509.25149, Transformer Engine's order of operations).

use super::*;
use exmy::quantizer::QuantizeError;

/// The rows of the published vectors: (1..=32)/7 and -0.01 times that.
fn golden_input() -> Vec<f32> {
    let first: Vec<f32> = (1..=32).map(|i| i as f32 / 7.0).collect();
    first.iter().copied().chain(first.iter().map(|x| -0.01 * x)).collect()
}

/// Values of Transformer Engine's reference (order of operations since 2.14).
#[test]
fn nvfp4_golden() {
    let data = golden_input();
    let x = View::new(&data, 2, 32);
    let tensor = BlockTensor::quantize(
        x,
        Axis::Cols,
        BlockFormat::NVFP4,
        (Rounding::TiesToEven, Overflow::Finite, RANDOM),
    );
    let scales: Vec<f32> =
        tensor.scales().iter().map(|code| Format::UE4M3.to_f32(u64::from(*code))).collect();
    assert_eq!(scales, [224.0, 448.0, 2.25, 4.5]);
    assert_eq!(tensor.tensor_scale(), Some(1.0 / 588.0));
    let values: Vec<f32> =
        tensor.codes().iter().map(|code| Format::E2M1.to_f32(u64::from(*code))).collect();
    let row = [
        0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, //
        3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0,
    ];
    assert_eq!(values[..32], row);
    let mut second = row.map(|x| -x);
    second[1] = -0.5;
    assert_eq!(values[32..], second);
    let decoded = tensor.dequantize();
    assert_eq!(decoded[31], 6.0 * 448.0 * (1.0 / 588.0_f32));
    assert_eq!(bits(&decoded), bits(&image("nvfp4".parse().unwrap(), x, Axis::Cols)));
}

/// `amax_b * (s_enc * (1/6))` in that order: here it is 19, a tie that goes to 20 (0x5A), while
/// `amax_b * (s_enc / 6)` and `(amax_b / 6) * s_enc` are one place lower and go to 18 (0x59).
#[test]
fn nvfp4_scale_order() {
    let (amax, amax_b) = (f32::from_bits(0x3F91_32D9), f32::from_bits(0x3D45_0E26));
    let enc = 2688.0 / amax;
    assert!(amax_b * (enc / 6.0) < 19.0 && amax_b / 6.0 * enc < 19.0);
    let mut data = [0.0; 32];
    (data[0], data[16]) = (amax, amax_b);
    let x = View::new(&data, 1, 32);
    let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
    let tensor =
        BlockTensor::quantize(x, Axis::Cols, BlockFormat::NVFP4, (rounding, overflow, RANDOM));
    assert_eq!(tensor.scales(), [0x7E, 0x5A]);
}

/// NVFP4 from the formulas, with E4M3 and E2M1 by tables: one binary32 operation a step.
#[test]
fn nvfp4_is_the_formula() {
    fn e4m3(d: f32) -> f32 {
        // Codes 0..=126 ascend; ties go to the even code.
        let value = |code: u32| match (code >> 3, code & 7) {
            (0, t) => t as f32 / 512.0,
            (e, t) => (8 + t) as f32 * power(e as i32 - 10),
        };
        let best = (0..=126).min_by(|a, b| {
            let distance = |code: u32| (f64::from(value(code)) - f64::from(d)).abs();
            distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1)))
        });
        value(best.unwrap())
    }
    fn e2m1(y: f32) -> f32 {
        let a = y.abs();
        let value = match a {
            _ if a <= 0.25 => 0.0,
            _ if a < 0.75 => 0.5,
            _ if a <= 1.25 => 1.0,
            _ if a < 1.75 => 1.5,
            _ if a <= 2.5 => 2.0,
            _ if a < 3.5 => 3.0,
            _ if a <= 5.0 => 4.0,
            _ => 6.0,
        };
        if y < 0.0 { -value } else { value }
    }
    let (rows, cols) = (24, 40);
    for (name, data) in matrices(rows * cols) {
        if data.iter().any(|x| x.is_nan()) {
            continue; // a case of its own below
        }
        let max = |x: &[f32]| x.iter().fold(0.0_f32, |a, x| a.max(x.abs()));
        let mut enc = (2688.0 / max(&data)).min(f32::MAX);
        if max(&data) == 0.0 || enc == 0.0 {
            enc = 1.0;
        }
        let dec = 1.0 / enc;
        let found = image("nvfp4".parse().unwrap(), View::new(&data, rows, cols), Axis::Cols);
        for (x, found) in data.chunks(cols).zip(found.chunks(cols)) {
            for (x, found) in x.chunks(16).zip(found.chunks(16)) {
                let s = e4m3((max(x) * (enc * (1.0 / 6.0))).min(f32::MAX).min(448.0));
                let factor = (1.0 / (s * dec)).min(f32::MAX);
                for (x, found) in x.iter().zip(found) {
                    let want = e2m1((x * factor).clamp(-6.0, 6.0)) * s * dec;
                    assert_eq!(want.to_bits(), found.to_bits(), "{name}: {x:e} {want:e} {found:e}");
                }
            }
        }
    }
}

/// The edge cases of Transformer Engine's kernels and reference, one by one.
#[test]
fn nvfp4_edges() {
    let quantize = |data: &[f32]| {
        BlockTensor::quantize(
            View::new(data, 1, data.len()),
            Axis::Cols,
            BlockFormat::NVFP4,
            (Rounding::TiesToEven, Overflow::Finite, RANDOM),
        )
    };
    // All zeros.
    let zeros = quantize(&[0.0; 32]);
    assert_eq!((zeros.scales(), zeros.tensor_scale()), (vec![0, 0], Some(1.0)));
    assert_eq!(zeros.codes(), [0; 32]);
    assert_eq!(bits(&zeros.dequantize()), [0; 32]);
    // A block of zeros beside one that is not.
    let mut data = [0.0; 32];
    data[0] = 3.0;
    let half = quantize(&data);
    assert_eq!(half.scales(), [0x7E, 0]);
    assert_eq!(half.codes()[16..], [0; 16]);
    // A tiny block: amax_b * 2688 / amax / 6 at or below 2^-10 rounds to scale 0; codes saturate.
    let threshold = 6.0 / 2688.0 / 1024.0;
    for (amax, scale) in [(threshold * 0.999, 0), (threshold * 1.001, 1)] {
        let mut data = [0.0; 32];
        (data[0], data[20], data[21]) = (1.0, amax, -amax);
        let tiny = quantize(&data);
        assert_eq!(tiny.scales(), [0x7E, scale]);
        if scale == 0 {
            assert_eq!(tiny.codes()[19..23], [0, 7, 0xF, 0]);
            assert_eq!(tiny.dequantize()[19..23], [0.0; 4]);
        }
    }
    // Negative zero is code 0, what rounds to zero from below is code 8.
    let mut data = [1.0_f32; 16];
    (data[1], data[2]) = (-0.0, -0.01);
    assert_eq!(quantize(&data).codes()[..3], [7, 0, 8]);
    // Infinity: tensor factors are 1, its block saturates, finite blocks go on.
    let mut data = [1.0_f32; 32];
    data[5] = f32::NEG_INFINITY;
    let infinite = quantize(&data);
    assert_eq!(infinite.tensor_scale(), Some(1.0));
    assert_eq!(infinite.scales()[0], 0x7E);
    assert_eq!((infinite.codes()[5], infinite.dequantize()[5]), (0xF, -2688.0));
    // 1/6 rounds to 0.171875 in E4M3, and 1/0.171875 = 5.8 to 6.
    assert_eq!(infinite.dequantize()[16..], [6.0 * 0.171875; 16]);
    // NaN: the tensor is NaN, and its codes are the largest.
    data[5] = f32::NAN;
    let nan = quantize(&data);
    assert!(nan.tensor_scale().is_some_and(f32::is_nan));
    assert_eq!((nan.codes()[5], nan.scales()[0]), (7, 0x7F));
    assert!(nan.dequantize().iter().all(|x| x.to_bits() == 0x7FC0_0000));
    // An amax so small that 2688 / amax overflows.
    let mut data = [0.0; 16];
    data[3] = f32::from_bits(1);
    assert_eq!(quantize(&data).tensor_scale(), Some(1.0 / f32::MAX));
}

/// Relative errors of NVFP4 on normal data, within sampling error.
#[test]
#[expect(clippy::disallowed_methods, reason = "an average is tested to 1%, no bit depends on it")]
fn nvfp4_accuracy() {
    let (rows, cols) = (512, 1024);
    let random = Philox::new(21, Stream::new("normal"));
    let normal = |i: u64| {
        let radius = (-2.0 * (1.0 - random.uniform(2 * i)).ln()).sqrt();
        (radius * (std::f64::consts::TAU * random.uniform(2 * i + 1)).cos()) as f32
    };
    let data: Vec<f32> = (0..(rows * cols) as u64).map(normal).collect();
    for (text, expected) in [("nvfp4", 0.0951), ("nvfp4-16x16", 0.1113), ("nvfp4@sr8", 0.1375)] {
        let found = image(text.parse().unwrap(), View::new(&data, rows, cols), Axis::Cols);
        let square = |x: f32| f64::from(x) * f64::from(x);
        let error: f64 = data.iter().zip(&found).map(|(x, y)| square(x - y)).sum();
        let rmse = (error / data.iter().map(|x| square(*x)).sum::<f64>()).sqrt();
        assert!((rmse / expected - 1.0).abs() < 0.01, "{text}: {rmse}, published {expected}");
    }
}

/// A matrix quantized by the largest magnitude of a larger one is a part of that, quantized.
#[test]
fn the_callers_largest_magnitude_is_that_of_the_whole() {
    let (rows, cols) = (32, 48);
    let data: Vec<f32> = matrices(rows * cols).swap_remove(0).1;
    let names = ["nvfp4", "nvfp4-16x16", "nvfp4@4over6", "nvfp4@torchao", "e2m1/row:ue4m3+tensor"];
    for (name, amax) in names.into_iter().flat_map(|name| [(name, 1.0), (name, 700.0)]) {
        let Ok(format) = name.parse::<BlockFormat>() else { panic!("{name}") };
        let whole = [&data[..], &[amax; 16 * 48]].concat();
        let (x, whole) = (View::new(&data, rows, cols), View::new(&whole, rows + 16, cols));
        let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
        let (axis, quantizer) = (Axis::Cols, Quantizer::new(format.into()));
        let expected = BlockTensor::quantize(whole, axis, format, (rounding, overflow, RANDOM));
        let plain =
            PlainBlocks::quantize_with_amax(x, axis, format, (rounding, overflow, RANDOM), amax);
        for level in levels() {
            let found = with_level(level, || quantizer.quantize_with_amax(x, axis, RANDOM, amax));
            let found = found.unwrap();
            assert_eq!(found.tensor_scale(), expected.tensor_scale(), "{name} {level}");
            assert_eq!(found.codes(), expected.codes()[..rows * cols], "{name} {level}");
            let scales = found.scales();
            assert_eq!(scales, expected.scales()[..scales.len()], "{name} {level}");
            assert_eq!(found, BlockTensor::from_plain(&plain, axis), "{name} {level}");
        }
    }
}

#[test]
fn largest_magnitudes_that_are_none_are_refused() {
    let x = View::new(&[1.0_f32, 2.0], 1, 2);
    let quantize = |text: &str, amax| {
        let quantizer: Quantizer = text.parse().unwrap();
        quantizer.quantize_with_amax(x, Axis::Cols, RANDOM, amax)
    };
    for amax in [f32::NAN, -1.0, f32::INFINITY] {
        assert!(matches!(quantize("nvfp4", amax), Err(QuantizeError::Amax(_))), "{amax}");
    }
    for text in ["mxfp4", "e2m1", "none", "e2m1/16:ue4m3"] {
        assert!(matches!(quantize(text, 1.0), Err(QuantizeError::NoTensorScale(_))), "{text}");
    }
    assert_eq!(quantize("nvfp4", 0.0).unwrap().tensor_scale(), Some(1.0)); // as of zeros
}

/// Views whose strides are 0 have any size; bytes for all their numbers do not exist.
#[test]
fn matrices_larger_than_memory_are_refused() {
    let side = 1 << (usize::BITS / 2);
    let x = View::with_strides(&[1.0_f32], (side, side), (0, 0)).unwrap();
    for text in ["mxfp4", "nvfp4", "e2m1/tensor:e8m0", "e4m3", "bf16>mxfp8-e4m3"] {
        let quantizer: Quantizer = text.parse().unwrap();
        let error = quantizer.quantize(x, Axis::Cols, RANDOM).unwrap_err();
        assert_eq!(error, QuantizeError::Memory { shape: (side, side) }, "{text}");
        let Target::Block(format) = quantizer.target else { continue };
        let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
        for plain in [false, true] {
            let panic = std::panic::catch_unwind(|| match plain {
                true => {
                    drop(PlainBlocks::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM)))
                }
                false => {
                    drop(BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM)))
                }
            });
            let message = panic.unwrap_err().downcast_ref::<String>().cloned();
            assert!(message.is_some_and(|text| text.contains("larger than any memory")), "{text}");
        }
    }
}
