//! Block formats and quantizers: the fast image against the plain tensor, the plain tensor against
//! formulas, and both against published values.

#![cfg(feature = "std")]

mod hard;
mod nvfp4;
mod rules;
#[cfg(all(feature = "serde", feature = "safetensors"))]
mod serde;
mod shapes;
mod statistics;
mod tensor;

use exmy::block::scale::ScaleRule;
use exmy::block::{BlockFormat, BlockProfile, BlockTensor, NAMED, PlainBlocks};
use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding, Rules};
use exmy::simd::{Level, with_level};
use exmy::slice::{Converter, View, ViewMut};

const RANDOM: Philox = Philox::new(5, Stream::new("blocks"));

fn image(quantizer: Quantizer, x: View<'_, f32>, axis: Axis) -> Vec<f32> {
    let (rows, cols) = (x.rows(), x.cols());
    let mut out = vec![0.0; rows * cols];
    quantizer.image_into(x, axis, RANDOM, ViewMut::new(&mut out, rows, cols));
    out
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// `2^k` in the range of normal numbers, exactly on every platform.
fn power64(k: i32) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

fn power(k: i32) -> f32 {
    power64(k) as f32
}

/// Matrices a kernel could get wrong, all of the same size.
fn matrices(n: usize) -> Vec<(&'static str, Vec<f32>)> {
    let random = Philox::new(1, Stream::new("matrices"));
    let uniform = |i: usize| 2.0 * random.uniform(i as u64) as f32 - 1.0;
    // Any finite bits: every exponent, subnormals included.
    let any = |i: usize| match f32::from_bits(random.word(9_000_000 + i as u64)) {
        x if x.is_finite() => x,
        _ => 0.0,
    };
    let sparse = |i: usize, x: f32| if i % 37 == 5 { x } else { uniform(i) };
    vec![
        ("uniform", (0..n).map(uniform).collect()),
        ("outliers", (0..n).map(|i| sparse(i, 1e4 * uniform(i))).collect()),
        ("any bits", (0..n).map(any).collect()),
        ("zeros", (0..n).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect()),
        ("subnormals", (0..n).map(|i| uniform(i) * power(-126)).collect()),
        ("tiny", (0..n).map(|i| uniform(i) * power(-115 - (i % 20) as i32)).collect()),
        ("huge", (0..n).map(|i| uniform(i) * 3.4e38).collect()),
        ("infinity", (0..n).map(|i| if i == n / 2 { f32::INFINITY } else { uniform(i) }).collect()),
        ("NaN", (0..n).map(|i| if i == n / 3 { -f32::NAN } else { uniform(i) }).collect()),
        ("block ranges", (0..n).map(|i| uniform(i) * power((i / 64 % 60) as i32 - 30)).collect()),
    ]
}

fn formats() -> Vec<BlockFormat> {
    let others = [
        "e4m3/32x1:e8m0",
        "e2m1/row:e8m0",
        "e4m3/tensor:f32",
        "e5m2/5x3:ue4m3",
        "e3m0/7:e8m0",
        "e8m3/32:e8m0",
        "e2m3/32:e8m0@nearest",
        "e4m3fnuz/16:ue5m3+tensor",
        "bf16/32:e8m0",
    ];
    let others = others.map(|text| text.parse().unwrap());
    NAMED.into_iter().map(|(_, format)| format).chain(others).collect()
}

/// Matrices of several chunks and spans, rows joined and rows apart, casts before blocks.
#[test]
fn chunks_do_not_show() {
    let texts = [
        "mxfp8-e4m3",
        "mxfp4@sr8",
        "nvfp4",
        "nvfp4-16x16@sr8",
        "e2m1/48:e8m0",
        "e4m3/tensor:f32",
        "bf16>nvfp4@sr8",
        "bf16@rna>mxfp8-e5m2@rna",
        "bf16@sr5>e4m3/32:e8m0",
        "bf16>e8m3@rtz",
        "bf16>none",
    ];
    for (rows, cols) in [(70, 1100), (1200, 96), (3, 40_000)] {
        let data = &matrices(rows * cols)[1].1;
        let x = View::new(data, rows, cols);
        for text in texts {
            let quantizer: Quantizer = text.parse().unwrap();
            for axis in [Axis::Cols, Axis::Rows] {
                let plain = bits(&plain_image(quantizer, x, axis));
                let found = with_level(Level::best(), || image(quantizer, x, axis));
                assert_eq!(bits(&found), plain, "{rows}x{cols} {text} {axis:?}");
                let stride = cols + 5;
                let mut apart = vec![7.0; rows * stride];
                let out = ViewMut::with_row_stride(&mut apart, rows, cols, stride).unwrap();
                with_level(Level::best(), || quantizer.image_into(x, axis, RANDOM, out));
                for (i, row) in apart.chunks(stride).enumerate() {
                    assert_eq!(
                        bits(&row[..cols]),
                        plain[i * cols..(i + 1) * cols],
                        "{text} {axis:?}"
                    );
                    assert_eq!(row[cols..], [7.0; 5], "{text}: written between the rows");
                }
            }
        }
    }
}

/// Rotations go piece by piece, along either axis, before casts and blocks.
#[test]
fn rotated_pieces() {
    for (rows, cols) in [(1200, 96), (16, 8000), (96, 1040)] {
        let data = &matrices(rows * cols)[1].1;
        let x = View::new(data, rows, cols);
        for text in ["rht16>nvfp4", "bf16>rht16>mxfp4@sr8", "rht16>e4m3", "bf16>rht16>none"] {
            let quantizer: Quantizer = text.parse().unwrap();
            for axis in [Axis::Cols, Axis::Rows] {
                let plain = bits(&plain_image(quantizer, x, axis));
                let found = with_level(Level::best(), || image(quantizer, x, axis));
                assert_eq!(bits(&found), plain, "{rows}x{cols} {text} {axis:?}");
            }
        }
    }
}

#[test]
fn threads_do_not_show() {
    let (rows, cols) = (70, 1100);
    let data = &matrices(rows * cols)[1].1;
    for text in ["bf16>nvfp4@sr8", "mxfp8-e4m3", "e8m3@rtz", "nvfp4-16x16"] {
        let with = |threads| {
            let quantize = || image(text.parse().unwrap(), View::new(data, rows, cols), Axis::Rows);
            bits(&exmy::parallel::with_threads(threads, quantize).unwrap())
        };
        assert_eq!(with(1), with(3), "{text}");
    }
}

/// A quantizer by the plain functions alone.
fn plain_image(quantizer: Quantizer, x: View<'_, f32>, axis: Axis) -> Vec<f32> {
    let (rows, cols) = (x.rows(), x.cols());
    let mut out: Vec<f32> = (0..rows * cols).map(|i| x.at(i / cols, i % cols)).collect();
    let cast = |out: &mut Vec<f32>, format, rounding, overflow| {
        let x = out.clone();
        let cast = Cast { format, rounding, overflow };
        Converter::from(cast).with_random(RANDOM).fake_quantize_plain(&x, out);
    };
    if let Some(before) = quantizer.before {
        cast(&mut out, before.format, before.rounding, before.overflow);
    }
    if let Some(rotation) = quantizer.rotation {
        rotation.apply_matrix(ViewMut::new(&mut out, rows, cols), axis == Axis::Rows).unwrap();
    }
    let Quantizer { rounding, overflow, .. } = quantizer;
    match quantizer.target {
        Target::None => out,
        Target::Format(format) => {
            cast(&mut out, format, rounding, overflow);
            out
        }
        Target::Block(format) => {
            let x = View::new(&out, rows, cols);
            PlainBlocks::quantize(x, axis, format, (rounding, overflow, RANDOM)).dequantize()
        }
        _ => unreachable!("not of this test"),
    }
}

/// Blocks relative to the reduction axis: quantizing a matrix along its rows is quantizing its
/// transpose along its columns.
#[test]
fn axes_are_relative() {
    let (rows, cols) = (50, 35);
    let data = &matrices(rows * cols)[1].1;
    let x = View::new(data, rows, cols);
    for format in formats() {
        let quantizer = Quantizer::new(Target::Block(format));
        let down = image(quantizer, x, Axis::Rows);
        let along = image(quantizer, x.t(), Axis::Cols);
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            assert_eq!(down[i * cols + j].to_bits(), along[j * rows + i].to_bits(), "{format}");
        }
    }
}

/// What OCP MX 1.0 (tables 2 to 6) says of an element format: M, exponent of the lowest binade,
/// emax, largest value.
const ELEMENTS: [(&str, i32, i32, i32, f64); 6] = [
    ("mxfp8-e4m3", 3, -6, 8, 448.0),
    ("mxfp8-e5m2", 2, -14, 15, 57344.0),
    ("mxfp6-e3m2", 2, -2, 4, 28.0),
    ("mxfp6-e2m3", 3, 0, 2, 7.5),
    ("mxfp4", 1, 0, 2, 6.0),
    ("mxint8", 6, 0, 0, 127.0 / 64.0),
];

/// floor(log2 x) of a positive normal f64.
fn log2(x: f64) -> i32 {
    (x.to_bits() >> 52) as i32 - 1023
}

/// One MX block by the formulas of OCP MX 1.0 (6.3) in f64, where every step is exact but the one
/// rounding.
fn mx_block(
    block: &[f32],
    (m, emin, emax, max): (i32, i32, i32, f64),
    round: fn(f64) -> f64,
) -> Vec<f32> {
    let amax = block.iter().fold(0.0_f64, |a, x| a.max(f64::from(x.abs())));
    if block.iter().any(|x| !x.is_finite()) {
        return vec![f32::NAN; block.len()];
    }
    let s = if amax == 0.0 { -127 } else { (log2(amax) - emax).max(-127) };
    let value = |x: &f32| {
        if *x == 0.0 {
            return *x;
        }
        let y = f64::from(x.abs()) / power64(s);
        let ulp = power64(log2(y).max(emin) - m);
        let q = (round(y / ulp) * ulp).min(max);
        ((q * power64(s)) as f32).copysign(*x)
    };
    block.iter().map(value).collect()
}

#[test]
fn mx_is_the_formula() {
    let (rows, cols) = (40, 80);
    for (name, data) in matrices(rows * cols) {
        for (text, m, emin, emax, max) in ELEMENTS {
            for (mode, round) in [
                ("rne", f64::round_ties_even as fn(f64) -> f64),
                ("rtz", f64::floor),
                ("rna", f64::round),
            ] {
                let quantizer: Quantizer = format!("{text}@{mode}").parse().unwrap();
                let found = image(quantizer, View::new(&data, rows, cols), Axis::Cols);
                for (i, (x, y)) in data.chunks(cols).zip(found.chunks(cols)).enumerate() {
                    for (x, y) in x.chunks(32).zip(y.chunks(32)) {
                        let want = mx_block(x, (m, emin, emax, max), round);
                        for (want, y) in want.iter().zip(y) {
                            let negative_zero_missing = text == "mxint8" && *want == 0.0;
                            let same = want.to_bits() == y.to_bits()
                                || (want.is_nan() && y.is_nan())
                                || (negative_zero_missing && y.to_bits() == 0);
                            assert!(same, "{name} {quantizer} row {i}: {y:e}, formula {want:e}");
                        }
                    }
                }
            }
        }
    }
}

/// Scale codes by hand: `floor(log2 amax) - emax + 127`.
#[test]
fn mx_scale_codes() {
    let scale = |text: &str, amax: f32| {
        let format: BlockFormat = text.parse().unwrap();
        let data = [0.0, -amax, 0.0];
        let tensor = BlockTensor::quantize(
            View::new(&data, 1, 3),
            Axis::Cols,
            format,
            (Rounding::TiesToEven, Overflow::Finite, RANDOM),
        );
        tensor.scales()[0]
    };
    assert_eq!(scale("mxfp8-e4m3", 1.0), 119);
    assert_eq!(scale("mxfp8-e4m3", 0.999_999_94), 118);
    assert_eq!(scale("mxfp8-e4m3", 448.0), 127);
    assert_eq!(scale("mxfp8-e4m3", 511.0), 127);
    assert_eq!(scale("mxfp8-e4m3", 512.0), 128);
    assert_eq!(scale("mxfp8-e5m2", 1.0), 112);
    assert_eq!(scale("mxfp6-e3m2", 1.0), 123);
    assert_eq!(scale("mxfp6-e2m3", 1.0), 125);
    assert_eq!(scale("mxfp4", 6.0), 127);
    assert_eq!(scale("mxint8", 1.0), 127);
    assert_eq!(scale("mxint8", f32::MAX), 254);
    assert_eq!(scale("mxfp8-e4m3", 0.0), 0);
    assert_eq!(scale("mxfp8-e4m3", f32::from_bits(1)), 0);
    assert_eq!(scale("mxfp8-e4m3", power(-119)), 0);
    assert_eq!(scale("mxfp8-e4m3", power(-118)), 1);
    assert_eq!(scale("mxfp8-e4m3", f32::INFINITY), 255);
    assert_eq!(scale("mxfp8-e4m3", f32::NAN), 255);
}

/// A NaN or infinity costs its block and no other.
#[test]
fn mx_nan_stays_in_its_block() {
    for special in [f32::NAN, f32::NEG_INFINITY] {
        let mut data = [1.0_f32; 96];
        data[40] = special;
        let found = image("mxfp4".parse().unwrap(), View::new(&data, 1, 96), Axis::Cols);
        for (i, y) in found.iter().enumerate() {
            assert_eq!(y.is_nan(), (32..64).contains(&i), "{i}");
        }
    }
}

/// arXiv 2506.20752: a block of layer-norm weights just below 1 collapses to one value.
#[test]
fn saturating_block() {
    let block = |low: f32, high: f32| -> Vec<f32> {
        (0..32).map(|i| low + (high - low) * (i as f32 + 0.5) / 32.0).collect()
    };
    let found =
        |text: &str, data: &[f32]| image(text.parse().unwrap(), View::new(data, 1, 32), Axis::Cols);
    let gamma = block(0.90, 0.99);
    assert_eq!(found("mxfp8-e4m3", &gamma), [0.875; 32]);
    assert_eq!(found("mxfp8-e5m2", &gamma), [0.875; 32]);
    assert_eq!(found("mxfp6-e2m3", &block(0.94, 0.99)), [0.9375; 32]);
    assert_eq!(found("mxfp4", &gamma), [0.75; 32]);
    // A maximum of 1 changes the scale, and the others survive to within 1/32.
    let mut kept = gamma.clone();
    kept[3] = 1.0;
    for (x, y) in kept.iter().zip(found("mxfp8-e4m3", &kept)) {
        assert!((x - y).abs() <= 1.0 / 32.0, "{x} {y}");
    }
}

/// arXiv 2405.18710: masking a bf16 significand is rounding toward zero, for all 65 536 codes.
#[test]
fn masks() {
    let words: Vec<f32> =
        (0..=u16::MAX).map(|code| f32::from_bits(u32::from(code) << 16)).collect();
    let masked = |m: u32, x: &[f32]| {
        let quantizer = if m == 7 { "bf16".parse() } else { format!("bf16>e8m{m}@rtz").parse() };
        image(quantizer.unwrap(), View::new(x, 1, x.len()), Axis::Cols)
    };
    for m in 1..=7 {
        let keep = (0xFFFF << (7 - m)) & 0xFFFF;
        for (code, y) in masked(m, &words).iter().enumerate() {
            let nan = code as u32 & 0x7FFF > 0x7F80;
            assert_eq!(y.is_nan(), nan, "{code:#x} M {m}");
            assert!(nan || y.to_bits() == (code as u32 & keep) << 16, "{code:#x} M {m}");
        }
    }
    // Rounded to bf16 first: pi is 0x4049, 0.1 is 0x3DCD, -0.001 is 0xBA83.
    let x = [std::f32::consts::PI, 0.1, -0.001];
    assert_eq!(masked(3, &x), [3.0, 0.09375, -0.000_976_562_5]);
    assert_eq!(masked(4, &x), [3.125, 0.097_656_25, -0.000_976_562_5]);
    assert_eq!(masked(6, &x), [3.125, 0.099_609_375, f32::from_bits(0xBA82_0000)]);
    // Two steps are not one: 1.125 - 2^-12 is 1.125 in bf16.
    let x = [1.125 - power(-12)];
    assert_eq!(masked(3, &x), [1.125]);
    assert_eq!(image("e8m3@rtz".parse().unwrap(), View::new(&x, 1, 1), Axis::Cols), [1.0]);
}

/// Defaults of overflow: infinity where the format has one, else the largest value.
#[test]
fn overflow_defaults() {
    let x = [1e6_f32, -1e6, f32::INFINITY];
    let found = |text: &str| image(text.parse().unwrap(), View::new(&x, 1, 3), Axis::Cols);
    let infinity = f32::INFINITY;
    assert_eq!(found("e5m2"), [infinity, -infinity, infinity]);
    assert_eq!(found("e5m2@rtz"), [57344.0, -57344.0, infinity]);
    assert_eq!(found("e5m2@to-inf@rtz"), [infinity, -infinity, infinity]);
    assert_eq!(found("e5m2@sat-finite"), [57344.0, -57344.0, 57344.0]);
    assert_eq!(found("e4m3"), [448.0, -448.0, 448.0]);
    assert_eq!(found("e2m1"), [6.0, -6.0, 6.0]);
    assert!(found("e4m3@to-nan").iter().all(|y| y.is_nan()));
    assert_eq!(found("none"), x);
}

#[test]
fn texts() {
    let canonical = [
        "none",
        "e4m3",
        "e8m3@rtz",
        "bf16>e8m3@rtz",
        "bf16>none",
        "mxfp4@sr8",
        "nvfp4",
        "nvfp4-16x16@sr8",
        "mxfp8-e4m3@rna@to-nan",
        "e4m3/32x1:e8m0",
        "e2m1/row:f32",
        "e4m3/tensor:f32+tensor",
        "mxfp8-e4m3@nearest@sr4c",
        "bf16@rna>mxint8@rna",
        "e5m2@sat-finite",
        "bf16@sr8>e4m3",
    ];
    for text in canonical {
        let quantizer: Quantizer = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(quantizer.to_string(), text);
    }
    let same = [
        ("e4m3/32:e8m0@floor", "mxfp8-e4m3"),
        ("MXFP4", "mxfp4"),
        ("e2m1/1x16:ue4m3+tensor", "nvfp4"),
        ("e2m1/16x16:ue4m3+tensor@rne", "nvfp4-16x16"),
        ("mxfp4@sr8@floor", "mxfp4@sr8"),
        ("mxfp4@floor@sr8a", "mxfp4@sr8"),
        ("e2m1/32:e8m0@nearest", "mxfp4@nearest"),
        ("e5m2@sat-none", "e5m2"),
        ("float8_e4m3fn@sat-finite", "e4m3"),
        ("bf16@rne>e8m3@rtz", "bf16>e8m3@rtz"),
    ];
    for (text, expected) in same {
        let quantizer: Quantizer = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(quantizer.to_string(), expected, "{text}");
    }
    let wrong = [
        ("mxfp8-e4m4", "mxfp8-e4m3"),
        ("nvpf4", "nvfp4"),
        ("mxfp4@sr40", "sr8"),
        ("mxfp4@flor", "floor"),
        ("e4m3nf", "e4m3"),
        ("e4m3@floor", "only block formats"),
        ("mxfp4@rne@rtz", "two rounding modes"),
        ("none@rtz", "no suffix"),
        ("none>e4m3", "alone"),
        ("e2m1/0:e8m0", "numbers from 1"),
        ("e2m1/rwo:e8m0", "row"),
        ("e2m1/16:e3m2@floor", "e8m0"),
        ("e2m1/32:e8m0+tensor", "tensor scale"),
        ("e8m0/32:e8m0", "has a zero"),
        ("f32/32:e8m0", "16 bits"),
        ("e2m1/16:f64", "f32 has"),
        ("e2m1/16", "element/shape:scale"),
        ("e2m1/16:ue4m3+tenser", "+tensor"),
        ("bf16@sr8>mxfp4@sr8", "stochastically twice"),
        ("", "none"),
        ("@rne", "none"),
        (">e4m3", "format"),
        ("bf16>bf16>e4m3", "bf16"),
    ];
    for (text, hint) in wrong {
        let error = text.parse::<Quantizer>().expect_err(text).to_string();
        assert!(error.contains(hint), "{text:?}: {error}");
    }
}

#[test]
fn constants_and_sizes() {
    assert!(Quantizer::NONE.is_none() && Quantizer::default() == Quantizer::NONE);
    assert!(!"bf16>none".parse::<Quantizer>().unwrap().is_none());
    assert!("mxfp4@sr8".parse::<Quantizer>().unwrap().is_stochastic());
    let bits = |text: &str| text.parse::<BlockFormat>().unwrap().bits_per_element();
    assert_eq!([bits("mxfp8-e4m3"), bits("mxfp6-e2m3"), bits("mxfp4")], [8.25, 6.25, 4.25]);
    assert_eq!(
        [bits("nvfp4"), bits("nvfp4-16x16"), bits("e2m1/row:f32")],
        [4.5, 4.0 + 8.0 / 256.0, 4.0]
    );
    for (rows, cols) in [(0, 0), (0, 5), (5, 0)] {
        for text in ["nvfp4", "mxfp4", "e4m3", "e4m3/tensor:f32"] {
            let x = View::new(&[], rows, cols);
            assert!(image(text.parse().unwrap(), x, Axis::Rows).is_empty());
        }
    }
}
