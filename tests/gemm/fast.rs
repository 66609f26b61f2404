//! `fast` in the one call: the packed product and the readable model are one definition.

use exmy::block::{Axis, BlockFormat, BlockTensor};
use exmy::format::Format;
use exmy::gemm::fast::{Scaling, multiply_plain};
use exmy::gemm::{
    Accumulation, GemmError, NonFinite, Operand, Spec, gemm, gemm_batched, gemm_codes, gemm_into,
};
use exmy::parallel::with_threads;
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::simd::{Level, with_level};
use exmy::slice::{View, ViewMut};

use crate::{bits, numbers, quantize, random_codes};

fn spec() -> Spec {
    Spec::parse("fast").unwrap()
}

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// An operand's memory.
enum Memory {
    Singles(Vec<f32>),
    Bytes(Format, Vec<u8>),
    Words(Format, Vec<u16>),
    Blocks(BlockTensor),
}

/// Kinds of operands: which numbers, held how.
const KINDS: [&str; 11] = [
    "f32",
    "extreme",
    "bf16",
    "e4m3",
    "f16",
    "mxfp8-e4m3",
    "mxfp8-e5m2",
    "mxfp4",
    "mxint8",
    "nvfp4",
    "wild mxfp8-e4m3",
];

/// Row-major rows x cols, blocks along the columns.
fn memory(kind: &str, rows: usize, cols: usize, seed: u64) -> Memory {
    let len = rows * cols;
    match kind {
        "f32" => Memory::Singles(numbers(len, seed)),
        // All exponents, subnormal numbers, infinities and NaN.
        "extreme" => {
            let words = random_codes(Format::BF16, 2 * len, seed);
            let bits = words.chunks(2).map(|w| u32::from(w[0]) << 16 | u32::from(w[1]));
            Memory::Singles(bits.map(f32::from_bits).collect())
        }
        "bf16" => Memory::Words(Format::BF16, {
            numbers(len, seed).iter().map(|x| (x.to_bits() >> 16) as u16).collect()
        }),
        "f16" => Memory::Words(Format::F16, random_codes(Format::F16, len, seed)),
        "e4m3" => {
            let codes = random_codes(Format::E4M3FN, len, seed);
            Memory::Bytes(Format::E4M3FN, codes.iter().map(|c| *c as u8).collect())
        }
        _ => match kind.strip_prefix("wild ") {
            // Any codes under any scales.
            Some(name) => {
                let format: BlockFormat = name.parse().unwrap();
                let (mut codes, mut scales, of) =
                    quantize(&vec![1.0; len], rows, cols, Axis::Cols, format).into_parts();
                let any = random_codes(Format::BF16, codes.len() + scales.len(), seed);
                let all = codes.iter_mut().chain(&mut scales);
                all.zip(any).for_each(|(byte, any)| *byte = any as u8);
                let shape = (rows, cols);
                let tensor = BlockTensor::from_parts(format, Axis::Cols, shape, codes, scales, of);
                Memory::Blocks(tensor.unwrap())
            }
            None => {
                let (x, format) = (numbers(len, seed), kind.parse().unwrap());
                Memory::Blocks(quantize(&x, rows, cols, Axis::Cols, format))
            }
        },
    }
}

impl Memory {
    fn operand(&self, rows: usize, cols: usize) -> Operand<'_> {
        match self {
            Self::Singles(x) => View::new(x, rows, cols).into(),
            Self::Bytes(format, x) => Operand::codes8(*format, View::new(x, rows, cols)).unwrap(),
            Self::Words(format, x) => Operand::codes16(*format, View::new(x, rows, cols)).unwrap(),
            Self::Blocks(tensor) => tensor.into(),
        }
    }
}

/// The readable product: `alpha a b + beta c` in binary32.
fn plain(a: &Operand<'_>, b: &Operand<'_>, c: &[f32], alpha: f32, beta: f32) -> Vec<f32> {
    let (m, n) = (a.rows(), b.cols());
    let mut out = if beta == 0.0 { vec![0.0; m * n] } else { c.to_vec() };
    multiply_plain(a, b, ViewMut::new(&mut out, m, n), Scaling { alpha, beta });
    out
}

/// All pairs of kinds at all levels, ragged, the right one stored N x K.
#[test]
fn all_pairs_of_operands() {
    let (m, n, k) = (37, 35, 71);
    for (i, left) in KINDS.into_iter().enumerate() {
        for (j, right) in KINDS.into_iter().enumerate() {
            let (a, b) = (memory(left, m, k, i as u64), memory(right, n, k, 50 + j as u64));
            let (a, b) = (a.operand(m, k), b.operand(n, k).t());
            let expected = plain(&a, &b, &[], 1.0, 0.0);
            for level in levels() {
                let found = with_level(level, || gemm(a, b, &spec()).unwrap());
                assert_eq!(bits(&found), bits(&expected), "{left} times {right}, {level}");
            }
        }
    }
}

/// The unit of that name, dot product by dot product, where it takes the operands.
#[test]
fn other_parameters_are_other_models() {
    let (m, n, k) = (3, 4, 40);
    let (a, b) = (memory("f32", m, k, 1), memory("f32", k, n, 2));
    let (a, b) = (a.operand(m, k), b.operand(k, n));
    let by = |text: &str| bits(&gemm(a, b, &Spec::parse(text).unwrap()).unwrap());
    assert_eq!(by("fast"), bits(&plain(&a, &b, &[], 1.0, 0.0)));
    assert_ne!(by("fast,l=8"), by("fast"));
    assert_ne!(by("fast,promote=8"), by("fast"));
}

#[test]
fn factors_and_what_c_holds() {
    let (m, n, k) = (40, 33, 64);
    let (a, b) = (memory("nvfp4", m, k, 3), memory("nvfp4", n, k, 4));
    let (a, b) = (a.operand(m, k), b.operand(n, k).t());
    assert!(a.tensor_scale().is_some_and(|scale| scale != 1.0));
    let old = numbers(m * n, 5);
    for (alpha, beta) in
        [(1.0, 0.0), (-0.3, 0.0), (1.0, 1.0), (0.7, -2.5), (0.0, 1.0), (1e38, 1e38)]
    {
        let expected = plain(&a, &b, &old, alpha, beta);
        let spec = spec().with_alpha(alpha).with_beta(beta);
        for level in levels() {
            for threads in [1, 3] {
                // With gaps between the rows, which stay as they are.
                let mut c = vec![f32::NAN; m * (n + 2)];
                for (c, old) in c.chunks_mut(n + 2).zip(old.chunks(n)) {
                    c[..n].copy_from_slice(old);
                }
                let report = with_threads(threads, || {
                    let out = ViewMut::with_row_stride(&mut c, m, n, n + 2).unwrap();
                    with_level(level, || gemm_into(a, b, &spec, out).unwrap())
                });
                let infinite = expected.iter().filter(|x| !x.is_finite()).count() as u64;
                assert_eq!(report.unwrap().non_finite, infinite);
                for (c, expected) in c.chunks(n + 2).zip(expected.chunks(n)) {
                    assert_eq!(bits(&c[..n]), bits(expected), "{alpha} {beta} {level} {threads}");
                    assert!(c[n..].iter().all(|x| x.is_nan()));
                }
            }
        }
    }
}

/// Any output by any mode is the binary32 result, rounded once more.
#[test]
fn all_outputs() {
    let (m, n, k) = (9, 1000, 33);
    let (a, b) = (memory("extreme", m, k, 6), memory("mxfp4", n, k, 7));
    let (a, b) = (a.operand(m, k), b.operand(n, k).t());
    let numbers = plain(&a, &b, &[], 1.0, 0.0);
    let random = Philox::new(3, Stream::new("out"));
    for text in ["bf16", "f16", "e4m3", "e5m2", "e2m1", "e8m13", "f64", "f32", "int8", "e15m5"] {
        let format: Format = text.parse().unwrap();
        for rounding in [
            Rounding::TiesToEven,
            Rounding::TowardZero,
            Rounding::AwayFromZero,
            "sr8".parse().unwrap(),
        ] {
            for overflow in [Overflow::None, Overflow::Finite] {
                let output = Cast::new(format).with_rounding(rounding).with_overflow(overflow);
                let spec = spec().with_output(output).with_random(random);
                let expected: Vec<u64> = numbers
                    .iter()
                    .enumerate()
                    .map(|(e, x)| {
                        let value = exmy::format::Value::from_f32(*x);
                        let word = if rounding.is_stochastic() { random.word(e as u64) } else { 0 };
                        format.encode_by(value, &output.rules(), word).code
                    })
                    .collect();
                let found: Vec<u64> = gemm_codes(a, b, &spec).unwrap();
                assert_eq!(found, expected, "{text} {rounding} {overflow:?}");
                let wrong =
                    |(x, code): (&f32, &u64)| !x.is_finite() || !format.decode(*code).is_finite();
                let wrong: Vec<bool> = numbers.iter().zip(&expected).map(wrong).collect();
                let count = wrong.iter().filter(|wrong| **wrong).count() as u64;
                let strict = spec.clone().with_non_finite(NonFinite::Error);
                let error = gemm_codes::<u64>(a, b, &strict).unwrap_err();
                let first = wrong.iter().position(|wrong| *wrong).unwrap();
                let place = format!(
                    "{count} of the results are infinite or NaN, the first at ({}, {})",
                    first / n,
                    first % n
                );
                assert!(error.to_string().contains(&place), "{error}, {place}");
                if format.is_exact_in_f32() {
                    let found = gemm(a, b, &spec).unwrap();
                    let expected: Vec<_> = expected.iter().map(|c| format.to_f32(*c)).collect();
                    assert_eq!(bits(&found), bits(&expected), "{text} {rounding} {overflow:?}");
                    assert_eq!(gemm(a, b, &strict).unwrap_err(), error);
                    let mut c = vec![7.0; m * n];
                    let out = ViewMut::new(&mut c, m, n);
                    assert_eq!(gemm_into(a, b, &strict, out).unwrap_err(), error);
                    assert_eq!(c, vec![7.0; m * n], "nothing is written");
                    let out = ViewMut::new(&mut c, m, n);
                    assert_eq!(gemm_into(a, b, &spec, out).unwrap().non_finite, count);
                    assert_eq!(bits(&c), bits(&expected));
                }
            }
        }
    }
}

/// Each product of a batch is a product, one shared operand or none, sizes differing; words run on.
#[test]
fn batches() {
    let shapes = [(5, 40, 33), (70, 40, 33), (1, 40, 33)];
    let left: Vec<_> = shapes.iter().map(|(m, _, k)| memory("mxfp8-e4m3", *m, *k, 8)).collect();
    let right: Vec<_> = (0..3).map(|i| memory("nvfp4", 40, 33, 9 + i)).collect();
    let a: Vec<_> = left.iter().zip(shapes).map(|(x, (m, _, k))| x.operand(m, k)).collect();
    let b: Vec<_> = right.iter().map(|x| x.operand(40, 33).t()).collect();
    for (a, b) in [(&a[..], &b[..]), (&a[..], &b[1..2]), (&a[..1], &b[..]), (&a[1..2], &b[..1])] {
        for level in levels() {
            let found = with_level(level, || gemm_batched(a, b, &spec()).unwrap());
            let count = a.len().max(b.len());
            let expected: Vec<f32> = (0..count)
                .flat_map(|i| plain(&a[i.min(a.len() - 1)], &b[i.min(b.len() - 1)], &[], 1.0, 0.0))
                .collect();
            assert_eq!(bits(&found), bits(&expected), "{level}");
        }
    }
    let random = Philox::new(3, Stream::new("out"));
    let spec = spec().with_output(Format::E4M3FN).with_rounding("sr8".parse().unwrap());
    let spec = spec.with_random(random);
    let cast = Cast::new(Format::E4M3FN).with_rounding("sr8".parse().unwrap());
    let mut expected: Vec<f32> = a.iter().flat_map(|a| plain(a, &b[0], &[], 1.0, 0.0)).collect();
    exmy::slice::Converter::from(cast).with_random(random).fake_quantize(&mut expected);
    assert_eq!(bits(&gemm_batched(&a, &b[..1], &spec).unwrap()), bits(&expected));
}

/// No size is too small, no combination of empty sizes, transpositions or strides panics.
#[test]
fn products_of_nothing() {
    for text in ["fast", "exact", "fma", "fma:bf16", "pairwise", "hopper", "promote4(fma):f32"] {
        let accumulation: Accumulation = text.parse().unwrap();
        for (m, n, k) in (0..8).map(|i| (i & 1, i >> 1 & 1, i >> 2 & 1)) {
            let (x, y) = (vec![0x3C00_u16; m * k * 4], vec![0x3C00_u16; n * k * 4]);
            let (a, b) = (View::new(&x, 2 * m, 2 * k), View::new(&y, 2 * n, 2 * k).t());
            let (a, b) = (
                Operand::codes16(Format::F16, a).unwrap(),
                Operand::codes16(Format::F16, b).unwrap(),
            );
            let spec: Spec = accumulation.clone().into();
            let sum = 2.0 * k as f32;
            assert_eq!(gemm(a, b, &spec).unwrap(), vec![sum; 4 * m * n], "{text}");
            let all = gemm_batched(&[a, a], &[b], &spec).unwrap();
            assert_eq!(all, vec![sum; 8 * m * n]);
            for gap in [0, 3] {
                let stride = 2 * n + gap;
                let mut c = vec![1.0; 2 * m * stride];
                let Ok(out) = ViewMut::with_row_stride(&mut c, 2 * m, 2 * n, stride) else {
                    panic!("{m} {n} {stride}")
                };
                gemm_into(a, b, &spec.clone().with_beta(1.0), out).unwrap();
                let written = |c: &f32| *c == sum + 1.0;
                assert_eq!(
                    c.iter().filter(|c| written(c)).count(),
                    if k == 0 { c.len() } else { 4 * m * n }
                );
            }
            let mut none: [f32; 0] = [];
            if n == 0 {
                // Rows of no columns, which have no place in memory.
                let out = ViewMut::with_row_stride(&mut none, 2 * m, 0, 5).unwrap();
                gemm_into(a, b, &spec.clone().with_beta(1.0), out).unwrap();
            }
        }
        let none: [Operand<'_>; 0] = [];
        assert!(gemm_batched(&none, &none, &accumulation.into()).unwrap().is_empty());
    }
}

/// As of every accumulation: an error with both shapes.
#[test]
fn blocks_across_the_sum_are_an_error() {
    let x = memory("mxfp4", 64, 64, 1);
    let x = x.operand(64, 64);
    let error: GemmError = gemm(x, x, &spec()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "(64 x 64) times (64 x 64): the right operand is mxfp4 in blocks of 1 x 32"
        )
    );
    assert!(text.contains("quantize it with Axis::Rows"), "{text}");
}
