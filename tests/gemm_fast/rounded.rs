//! Matrices rounded while they are packed, against the codes of the same quantizers.

use exmy::gemm::Operand;
use exmy::gemm::Side;
use exmy::gemm::fast::{Packed, Source};
use exmy::gemm::fast::{Scaling, multiply, multiply_plain};
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::Philox;
use exmy::random::Stream;
use exmy::simd::{Level, with_level};
use exmy::slice::View;
use exmy::slice::ViewMut;

const RANDOM: Philox = Philox::new(5, Stream::new("rounded"));

fn values(len: usize, spread: f64) -> Vec<f32> {
    let value = |i: u64| {
        let power = libm::exp2((RANDOM.uniform(i) - 0.5) * spread);
        ((RANDOM.uniform(i + (1 << 40)) - 0.5) * power) as f32
    };
    (0..len as u64).map(value).collect()
}

/// Against the codes of the same quantizers, multiplied as the definition reads.
#[test]
fn packs_what_codes_say() {
    let quantizers = [
        "mxfp8-e4m3",
        "mxfp4@sr8",
        "nvfp4",
        "nvfp4-16x16",
        "bf16>e8m3@rtz",
        "e4m3",
        "e5m10",
        "e3m4/32:ue4m3",
        "bf16>rht16>nvfp4@sr8",
        "bf16>nvfp4",
        "e5m10@rup>nvfp4@sr8",
        "nvfp4@torchao",
        "e4m3/row:bf16@max-abs",
    ];
    for (at, text) in quantizers.into_iter().enumerate() {
        let quantizer: Quantizer = text.parse().unwrap();
        // Rotations need whole groups along the sum; all else is ragged.
        let k = if quantizer.rotation.is_some() { 304 } else { 301 };
        let (m, n) = (37, 70);
        let (a, b) = (values(m * k, 4.0 + at as f64), values(k * n, 9.0));
        agrees(text, &quantizer, (m, k, n), &a, &b);
    }
}

/// Numbers that are not finite, or not any more after the cast, next to a scale of the whole tensor.
#[test]
fn tensor_scales_after_casts_see_what_casts_leave() {
    let (m, k, n) = (33, 40, 32);
    let (a, b) = (values(m * k, 9.0), values(k * n, 9.0));
    for special in [f32::MAX, -f32::MAX, f32::NEG_INFINITY, f32::NAN, 1e-40, 1e6] {
        for text in ["bf16>nvfp4", "bf16@rtz>nvfp4", "e4m3>nvfp4", "ue4m3>nvfp4", "nvfp4"] {
            let (quantizer, mut a) = (text.parse().unwrap(), a.clone());
            a[5 * k + 17] = special;
            agrees(&format!("{special} in {text}"), &quantizer, (m, k, n), &a, &b);
        }
    }
}

fn agrees(
    text: &str,
    quantizer: &Quantizer,
    (m, k, n): (usize, usize, usize),
    a: &[f32],
    b: &[f32],
) {
    for transposed in [[false, false], [false, true], [true, false]] {
        let shape = |transposed, rows, cols| if transposed { (cols, rows) } else { (rows, cols) };
        let ((ar, ac), (br, bc)) = (shape(transposed[0], m, k), shape(transposed[1], k, n));
        let (a, b) = (View::new(a, ar, ac), View::new(b, br, bc));
        let axis = |by_lane| if by_lane { Axis::Cols } else { Axis::Rows };
        let tensor = |x, by_lane| quantizer.quantize(x, axis(by_lane), RANDOM).unwrap();
        let (ta, tb) = (tensor(a, !transposed[0]), tensor(b, transposed[1]));
        let operands = [(&ta, transposed[0]), (&tb, transposed[1])].map(|(tensor, transposed)| {
            let operand = Operand::from(tensor);
            if transposed { operand.t() } else { operand }
        });
        let mut expected = vec![0.0; m * n];
        let [left, right] = &operands;
        let with = Scaling::OVERWRITE;
        multiply_plain(left, right, ViewMut::new(&mut expected, m, n), with);
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut got = vec![f32::NAN; m * n];
            let report = with_level(level, || {
                let source = |matrix| Source { matrix, quantizer: *quantizer, random: RANDOM };
                let [mut pa, mut pb] = [Side::Left, Side::Right].map(Packed::nothing);
                pa.round(&[source(a)], transposed[0], false);
                pb.round(&[source(b)], transposed[1], false);
                multiply(&pa, &pb, ViewMut::new(&mut got, m, n), with).unwrap()
            });
            assert_eq!(report.without_bf16 == 0, level >= Level::Avx512Bf16, "{text}, {level}");
            let same = expected.iter().zip(&got).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{text}, transposed {transposed:?}, {level}");
        }
    }
}

/// Matrices without rows or columns, along either way, on one thread and on several.
#[test]
fn nothing_is_packed_of_nothing() {
    for (rows, cols) in [(0, 64), (64, 0), (0, 0)] {
        for (transposed, threads) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let pack = || {
                let matrix = View::new(&[], rows, cols);
                let source = Source { matrix, quantizer: Quantizer::NONE, random: RANDOM };
                let mut packed = Packed::nothing(Side::Left);
                packed.round(&[source], transposed, false);
                packed.shape()
            };
            let found = exmy::parallel::with_threads(threads, pack).unwrap();
            assert_eq!(found, if transposed { (cols, rows) } else { (rows, cols) });
        }
    }
}

/// Two matrices below each other or side by side are rounded by themselves: blocks do not cross.
#[test]
fn members_are_rounded_apart() {
    let quantizer: Quantizer = "mxfp4".parse().unwrap();
    let (x, y) = (values(40 * 50, 9.0), values(40 * 23, 9.0));
    let (x, y) = (View::new(&x, 40, 50), View::new(&y, 40, 23));
    let source = |matrix| Source { matrix, quantizer, random: RANDOM };
    for down in [false, true] {
        // Side by side along the sum, and across it.
        let axis = if down { Axis::Rows } else { Axis::Cols };
        let image = |x: View<'_, f32>| {
            let mut image = vec![0.0; x.rows() * x.cols()];
            let out = ViewMut::new(&mut image, x.rows(), x.cols());
            quantizer.image_into(x, axis, RANDOM, out);
            image
        };
        let (ix, iy) = (image(x), image(y));
        let row = |i: usize| ix[i * 50..][..50].iter().chain(&iy[i * 23..][..23]);
        let both: Vec<f32> = (0..40).flat_map(row).copied().collect();
        let both = View::new(&both, 40, 73);
        let (mut packed, mut of_images) =
            (Packed::nothing(Side::Left), Packed::nothing(Side::Left));
        packed.round(&[source(x), source(y)], down, true);
        of_images.repack(&Operand::from(if down { both.t() } else { both }));
        let (lanes, depth) = packed.shape();
        let ones = vec![1.0_f32; depth];
        let ones = Packed::right(&Operand::from(View::new(&ones, depth, 1)));
        let sums = |packed: &Packed| {
            let mut out = vec![0.0; lanes];
            let c = ViewMut::new(&mut out, lanes, 1);
            multiply(packed, &ones, c, Scaling::OVERWRITE).unwrap();
            out
        };
        assert_eq!(sums(&packed), sums(&of_images));
    }
}
