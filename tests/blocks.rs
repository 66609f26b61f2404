//! Block formats and quantizers: the fast image against the plain tensor, the plain tensor against
//! formulas, and both against published values.

use exmy::block::{BlockFormat, BlockTensor};
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::simd::{Level, with_level};
use exmy::view::{View, ViewMut};

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
        ("subnormals", (0..n).map(|i| uniform(i) * 2.0_f32.powi(-126)).collect()),
        ("tiny", (0..n).map(|i| uniform(i) * 2.0_f32.powi(-115 - (i % 20) as i32)).collect()),
        ("huge", (0..n).map(|i| uniform(i) * 3.4e38).collect()),
        ("infinity", (0..n).map(|i| if i == n / 2 { f32::INFINITY } else { uniform(i) }).collect()),
        ("NaN", (0..n).map(|i| if i == n / 3 { -f32::NAN } else { uniform(i) }).collect()),
        (
            "block ranges",
            (0..n).map(|i| uniform(i) * 2.0_f32.powi((i / 64 % 60) as i32 - 30)).collect(),
        ),
    ]
}

fn formats() -> Vec<BlockFormat> {
    let texts = [
        "mxfp8-e4m3",
        "mxfp8-e5m2",
        "mxfp6-e3m2",
        "mxfp6-e2m3",
        "mxfp4",
        "mxint8",
        "nvfp4",
        "nvfp4-16x16",
        "e4m3fn/32x1:e8m0",
        "e2m1/row:e8m0",
        "e4m3fn/tensor:f32",
        "e5m2/5x3:ue4m3",
        "e3m0/7:e8m0",
        "e8m3/32:e8m0",
        "e2m3/32:e8m0@nearest",
        "e4m3fnuz/16:ue5m3+tensor",
        "bf16/32:e8m0",
    ];
    texts.map(|text| text.parse().unwrap()).to_vec()
}

/// The fast image is the plain tensor's, on every level, along both axes, for ragged and transposed
/// matrices and outputs whose rows are apart.
#[test]
fn fast_is_plain() {
    let (rows, cols) = (67, 45);
    let modes = ["rne", "rtz", "rna", "odd", "sr8", "sr3b"];
    for (name, data) in matrices(rows * cols) {
        for format in formats() {
            for mode in modes {
                let rounding: Rounding = mode.parse().unwrap();
                let quantizer = Quantizer::new(Target::Block(format)).with_rounding(rounding);
                for (axis, transposed) in [
                    (Axis::Cols, false),
                    (Axis::Rows, false),
                    (Axis::Cols, true),
                    (Axis::Rows, true),
                ] {
                    let x = View::new(&data, rows, cols);
                    let x = if transposed { x.t() } else { x };
                    let tensor =
                        BlockTensor::quantize(x, axis, format, rounding, Overflow::Finite, RANDOM);
                    let plain = bits(&tensor.dequantize());
                    for level in levels() {
                        let fast = bits(&with_level(level, || image(quantizer, x, axis)));
                        let wrong = plain.iter().zip(&fast).position(|(a, b)| a != b);
                        if let Some(at) = wrong {
                            let x = x.at(at / x.cols(), at % x.cols());
                            panic!(
                                "{name} {quantizer} {axis:?} transposed {transposed} {level}: {x:e} at \
                                 {at}: {:e}, plain {:e}",
                                f32::from_bits(fast[at]),
                                f32::from_bits(plain[at])
                            );
                        }
                    }
                }
            }
        }
    }
}
