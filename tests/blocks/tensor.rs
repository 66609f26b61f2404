//! Stored tensors and images, which kernels make, against the plain definition.

use super::*;

fn first_difference<T: PartialEq>(a: &[T], b: &[T]) -> Option<usize> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// The stored tensor holds the plain one's codes and scales. NaN tensor scales count as equal.
fn same_tensor(plain: &PlainBlocks, stored: &BlockTensor, case: &str) {
    let (codes, scales) = (stored.codes(), stored.scales());
    let x = first_difference(&plain.scales, &scales).map(|i| (i, plain.scales[i], scales[i]));
    assert_eq!(x, None, "{case}: scale, plain and fast");
    let x = first_difference(&plain.codes, &codes).map(|i| (i, plain.codes[i], codes[i]));
    assert_eq!(x, None, "{case}: code, plain and fast");
    let bits = |x: Option<f32>| x.map(|x| if x.is_nan() { f32::NAN } else { x }.to_bits());
    assert_eq!(bits(plain.tensor_scale), bits(stored.tensor_scale()), "{case}");
    assert_eq!((plain.shape, plain.block), ((stored.rows(), stored.cols()), stored.block()));
}

/// Codes, scales, decoded values and the image of a matrix are those of the plain tensor.
fn agrees(x: View<'_, f32>, axis: Axis, quantizer: Quantizer, levels: &[Level], name: &str) {
    let Target::Block(format) = quantizer.target else { panic!("{quantizer} has no blocks") };
    let Quantizer { rounding, overflow, .. } = quantizer;
    let plain = PlainBlocks::quantize(x, axis, format, (rounding, overflow, RANDOM));
    let values = bits(&plain.dequantize());
    for level in levels {
        let case = format!("{name} {} x {} {quantizer} {axis:?} {level}", x.rows(), x.cols());
        let (stored, decoded, fast) = with_level(*level, || {
            let stored = BlockTensor::quantize(x, axis, format, (rounding, overflow, RANDOM));
            let decoded = stored.dequantize();
            (stored, bits(&decoded), bits(&image(quantizer, x, axis)))
        });
        same_tensor(&plain, &stored, &case);
        for (found, what) in [(decoded, "decoded"), (fast, "image")] {
            if let Some(at) = first_difference(&values, &found) {
                let (i, j) = (at / x.cols(), at % x.cols());
                let [found, plain] = [found[at], values[at]].map(f32::from_bits);
                panic!("{case}: {:e} at ({i}, {j}) {what} {found:e}, plain {plain:e}", x.at(i, j));
            }
        }
    }
}

fn all_levels() -> Vec<Level> {
    levels().collect()
}

fn lowest_and_highest() -> Vec<Level> {
    vec![Level::Scalar, Level::best()]
}

const SHAPE: (usize, usize) = (35, 45);

fn each(texts: &[&str], modes: &[&str], levels: &[Level]) {
    for (name, data) in matrices(SHAPE.0 * SHAPE.1) {
        let x = View::new(&data, SHAPE.0, SHAPE.1);
        for text in texts {
            for mode in modes {
                let quantizer: Quantizer = format!("{text}@{mode}").parse().unwrap();
                for axis in [Axis::Cols, Axis::Rows] {
                    agrees(x, axis, quantizer, levels, name);
                }
            }
        }
    }
}

fn named() -> Vec<&'static str> {
    NAMED.iter().map(|(name, _)| *name).collect()
}

#[test]
fn named_formats() {
    each(&named(), &["rne"], &all_levels());
}

#[test]
fn modes_of_named_formats() {
    let modes = ["rna", "rtz", "rup", "odd", "sr8", "sr24", "sr3b"];
    each(&["mxfp8-e4m3", "mxfp4", "nvfp4"], &modes, &lowest_and_highest());
    each(&["mxint8", "nvfp4-16x16"], &["rna", "rtz", "sr8"], &[Level::best()]);
}

#[test]
fn overflow_policies() {
    for policy in ["sat-none", "sat-propagate", "to-nan", "to-inf"] {
        let texts = ["mxfp8-e4m3", "mxfp8-e5m2", "mxint8", "nvfp4"];
        each(&texts, &[policy], &[Level::best()]);
    }
}

/// Formats beyond the passes, and shapes that are not theirs.
#[test]
fn other_formats() {
    let texts: Vec<String> = formats().iter().map(ToString::to_string).collect();
    let texts: Vec<&str> =
        texts.iter().map(String::as_str).filter(|text| !named().contains(text)).collect();
    each(&texts, &["rne"], &all_levels());
    each(&texts, &["rtz", "sr8"], &[Level::best()]);
}

/// Every rule in every profile that has it.
#[test]
fn rules_and_profiles() {
    let mut texts = Vec::new();
    for (name, profile) in BlockProfile::NAMED {
        for rule in profile.rules() {
            let formats: &[&str] = match rule {
                ScaleRule::Nearest => &["nvfp4", "e2m1/16:ue4m3", "e4m3/32:f32"],
                ScaleRule::FourOverSix(_) => &["nvfp4"],
                ScaleRule::MaxAbs => &["e4m3/16:ue4m3"],
                _ if profile == BlockProfile::Ocp => {
                    &["mxfp8-e4m3", "mxfp6-e2m3", "e3m2/16:ue4m3", "e4m3/32:bf16"]
                }
                _ => &["mxfp8-e4m3", "mxfp8-e5m2", "mxfp4"],
            };
            texts.extend(formats.iter().map(|format| format!("{format}@{rule}@{name}")));
        }
    }
    assert!(texts.len() > 60, "{}", texts.len());
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    each(&texts, &["rne"], &lowest_and_highest());
    let some: Vec<&str> =
        texts.iter().copied().filter(|text| text.contains("microxcaling")).collect();
    each(&some, &["rna"], &[Level::best()]);
}

/// Every threshold of every power rule: both sides of each mantissa boundary, in binades from the
/// smallest subnormal number to the largest.
#[test]
fn power_rules_at_their_thresholds() {
    for text in ["mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4", "mxint8"] {
        for suffix in
            ["floor", "ceil", "even", "rceil", "rceil@te", "even@torchao", "rceil@torchao"]
        {
            let mut data = Vec::new();
            for field in (0..255_u32).step_by(3).chain([1, 2, 252, 253, 254]) {
                for eighth in 0..32_u32 {
                    let bits = (field << 23 | eighth << 18) as i32;
                    for near in [-1, 0, 1] {
                        // One number a block of 32: its own maximum.
                        data.push(f32::from_bits((bits + near).max(0) as u32));
                        data.extend([0.0; 31]);
                    }
                }
            }
            let x = View::new(&data, data.len() / 32, 32);
            let quantizer: Quantizer = format!("{text}@{suffix}").parse().unwrap();
            let Target::Block(format) = quantizer.target else { unreachable!() };
            let Quantizer { rounding, overflow, .. } = quantizer;
            let plain = PlainBlocks::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM));
            for level in levels() {
                let fast = with_level(level, || {
                    BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM))
                });
                same_tensor(&plain, &fast, &format!("{quantizer} {level}"));
            }
        }
    }
}

/// Transposed matrices are read where they lie.
#[test]
fn transposed_views() {
    for (name, data) in matrices(SHAPE.0 * SHAPE.1).into_iter().take(2) {
        let x = View::new(&data, SHAPE.0, SHAPE.1).t();
        for text in
            named().into_iter().chain(["e5m2/5x3:ue4m3", "mxfp4@sr8", "bf16/32:e8m0@nearest"])
        {
            for axis in [Axis::Cols, Axis::Rows] {
                agrees(x, axis, text.parse().unwrap(), &[Level::best()], name);
            }
        }
    }
}

/// Ragged sizes: every remainder of a block, of a vector and of a byte.
#[test]
fn ragged_sizes() {
    let data = &matrices(70 * 70)[1].1;
    for cols in (0..=70).chain([1023, 1024, 1025, 1633]) {
        for rows in [1, 2, 3] {
            let x = View::new(data, rows, cols);
            for text in ["mxfp4", "nvfp4", "mxfp6-e2m3", "e2m1/7:e8m0", "e4m3/32x1:e8m0"] {
                agrees(x, Axis::Cols, text.parse().unwrap(), &[Level::best()], "ragged");
            }
        }
        let x = View::new(data, cols.min(70), 3);
        agrees(x, Axis::Rows, "mxfp4".parse().unwrap(), &[Level::best()], "ragged");
    }
}

/// Rows of many blocks, whose maxima kernels find sixteen blocks at a time, at every level.
#[test]
fn wide_rows() {
    let (rows, cols) = (64, 1024);
    for (name, data) in matrices(rows * cols) {
        let x = View::new(&data, rows, cols);
        for text in ["nvfp4", "mxfp4", "mxfp8-e4m3"] {
            agrees(x, Axis::Cols, text.parse().unwrap(), &all_levels(), name);
        }
    }
    let data = &matrices(rows * cols)[1].1;
    let x = View::new(data, rows, cols);
    for text in ["nvfp4@sr8", "nvfp4-16x16", "e2m1/64:e8m0", "e4m3/32:e8m0@rceil"] {
        for axis in [Axis::Cols, Axis::Rows] {
            agrees(x, axis, text.parse().unwrap(), &all_levels(), "outliers");
        }
    }
}

/// Stored tensors of several chunks: each has its part of the random words, the codes and the
/// scales, whether its rows are joined (96 columns) or not, and bytes end within rows (97).
#[test]
fn stored_chunks() {
    for (rows, cols) in [(1201, 97), (1201, 96), (35, 2050)] {
        let data = &matrices(rows * cols)[1].1;
        let x = View::new(data, rows, cols);
        let one = ["e4m3/tensor:f32@sr8", "e2m1/tensor:ue4m3+tensor", "e2m3/5000x5000:e8m0"];
        for text in ["nvfp4@sr8", "mxfp4", "mxfp6-e3m2@sr8", "nvfp4-16x16@sr8", "mxfp8-e4m3"]
            .into_iter()
            .chain(one)
        {
            for axis in [Axis::Cols, Axis::Rows] {
                agrees(x, axis, text.parse().unwrap(), &[Level::best()], "chunks");
            }
        }
    }
}

/// Views whose neighbours are apart along both axes, with larger numbers between them.
#[test]
fn views_with_gaps() {
    let (rows, cols, down, right) = (170, 210, 640, 3);
    let random = Philox::new(2, Stream::new("gaps"));
    let mut data = vec![1e9_f32; rows * down];
    for i in 0..rows * cols {
        data[i / cols * down + i % cols * right] = random.uniform(i as u64) as f32 - 0.5;
    }
    // The tensor's largest number at both ends, between, and before and behind chunks' edges.
    for (i, j) in [(0, 0), (169, 209), (80, 100), (155, 209), (156, 0), (157, 0), (0, 209)] {
        let mut data = data.clone();
        data[i * down + j * right] = -77.0;
        let x = View::with_strides(&data, (rows, cols), (down, right)).unwrap();
        for (x, name) in [(x, "as it is"), (x.t(), "transposed")] {
            for text in ["nvfp4", "e4m3/tensor:f32"] {
                let name = format!("{name}, largest at ({i}, {j})");
                agrees(x, Axis::Cols, text.parse().unwrap(), &[Level::best()], &name);
            }
        }
    }
}
