//! Operands of every kind and orientation, batches, outputs, threads.

use exmy::block::{Axis, BlockFormat};
use exmy::format::Format;
use exmy::gemm::{NonFinite, Operand, Spec, gemm, gemm_batched, gemm_codes, gemm_into};
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};

use crate::{bits, numbers, quantize, random_codes};

const NAMES: [&str; 8] = [
    "exact",
    "fma",
    "mul-add",
    "pairwise",
    "blocked16",
    "fma:bf16@rtz",
    "fma:f16@sr8",
    "promote16(mul-add:f16):bf16",
];

fn spec(text: &str) -> Spec {
    Spec::parse(text).unwrap().with_random(Philox::new(1, Stream::new("calls")))
}

#[test]
fn any_store_of_the_same_numbers_gives_the_same_bits() {
    let (m, n, k) = (5, 7, 37);
    let a8: Vec<u8> =
        random_codes(Format::E4M3FN, m * k, 1).iter().map(|c| (*c % 0x78) as u8).collect();
    let b8: Vec<u8> = random_codes(Format::E2M3, k * n, 2).iter().map(|c| *c as u8).collect();
    let a32: Vec<f32> = a8.iter().map(|c| Format::E4M3FN.to_f32(u64::from(*c))).collect();
    let b32: Vec<f32> = b8.iter().map(|c| Format::E2M3.to_f32(u64::from(*c))).collect();
    let b16: Vec<u16> = b32.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
    let tf32: Vec<u32> = b32.iter().map(|x| x.to_bits() >> 13).collect();
    let e8m13: Vec<u64> = b32.iter().map(|x| u64::from(x.to_bits() >> 10)).collect();
    let b64: Vec<f64> = b32.iter().map(|x| f64::from(*x)).collect();
    let bt: Vec<f32> = (0..n * k).map(|at| b32[at % k * n + at / k]).collect();
    let rights = [
        Operand::from(View::new(&b32, k, n)),
        Operand::codes8(Format::E2M3, View::new(&b8, k, n)).unwrap(),
        Operand::codes16(Format::BF16, View::new(&b16, k, n)).unwrap(),
        Operand::codes32(Format::TF32, View::new(&tf32, k, n)).unwrap(),
        Operand::codes64("e8m13".parse().unwrap(), View::new(&e8m13, k, n)),
        Operand::f64(View::new(&b64, k, n)),
        Operand::f64(View::new(&b64, k, n)).t().t(),
        Operand::from(View::new(&bt, n, k)).t(),
        Operand::from(View::new(&bt, n, k).t()),
    ];
    let lefts = [
        Operand::from(View::new(&a32, m, k)),
        Operand::codes8(Format::E4M3FN, View::new(&a8, m, k)).unwrap(),
        Operand::codes8(Format::E4M3FN, View::new(&a8, m, k)).unwrap().t().t(),
    ];
    for name in NAMES {
        let expected = bits(&gemm(lefts[0], rights[0], &spec(name)).unwrap());
        for (a, b) in lefts.iter().flat_map(|a| rights.iter().map(move |b| (a, b))) {
            assert_eq!(bits(&gemm(a, b, &spec(name)).unwrap()), expected, "{name}");
        }
    }
}

#[test]
fn tensors_may_be_transposed_and_ragged() {
    let (m, n, k) = (3, 4, 45);
    let (x, y) = (numbers(m * k, 3), numbers(k * n, 4));
    for (format, name) in [
        (BlockFormat::MXFP8_E4M3, "exact"),
        (BlockFormat::MXFP4, "fma"),
        (BlockFormat::NVFP4, "pairwise"),
    ] {
        let a = quantize(&x, m, k, Axis::Cols, format);
        let b = quantize(&y, k, n, Axis::Rows, format);
        let at: Vec<f32> = (0..k * m).map(|e| x[e % m * k + e / m]).collect();
        let bt: Vec<f32> = (0..n * k).map(|e| y[e % k * n + e / k]).collect();
        let at = quantize(&at, k, m, Axis::Rows, format);
        let bt = quantize(&bt, n, k, Axis::Cols, format);
        let expected = gemm(&a, &b, &spec(name)).unwrap();
        assert_eq!(
            gemm(Operand::from(&at).t(), Operand::from(&bt).t(), &spec(name)).unwrap(),
            expected
        );
        assert_eq!(gemm(&a, Operand::from(&bt).t(), &spec(name)).unwrap(), expected);
    }
}

#[test]
fn empty_products() {
    let none: [f32; 0] = [];
    for name in NAMES {
        let (a, b) = (View::new(&none, 2, 0), View::new(&none, 0, 3));
        assert_eq!(bits(&gemm(a, b, &spec(name)).unwrap()), [0; 6], "{name}");
        let mut c = [1.0; 6];
        let by = spec(name).with_beta(2.0);
        gemm_into(a, b, &by, ViewMut::new(&mut c, 2, 3)).unwrap();
        assert_eq!(c, [2.0; 6], "{name}");
        let x = [1.0; 6];
        assert!(gemm(View::new(&none, 0, 2), View::new(&x, 2, 3), &spec(name)).unwrap().is_empty());
        assert!(gemm(View::new(&x, 3, 2), View::new(&none, 2, 0), &spec(name)).unwrap().is_empty());
    }
}

#[test]
fn c_may_be_a_part_of_a_larger_matrix() {
    let (a, b) = ([1.0, 2.0], [3.0, 4.0]);
    let mut c = [9.0_f32; 8];
    let out = ViewMut::with_row_stride(&mut c, 2, 2, 4).unwrap();
    let by = spec("fma").with_beta(1.0);
    gemm_into(View::new(&a, 2, 1), View::new(&b, 1, 2), &by, out).unwrap();
    assert_eq!(c, [12.0, 13.0, 9.0, 9.0, 15.0, 17.0, 9.0, 9.0]);
}

#[test]
fn batches_are_products_one_after_the_other() {
    let (x, w) = (numbers(3 * 2 * 20, 5), numbers(20 * 4, 6));
    let heads: Vec<Operand> = x.chunks(40).map(|x| View::new(x, 2, 20).into()).collect();
    let shared = [Operand::from(View::new(&w, 20, 4))];
    for name in NAMES {
        let got = gemm_batched(&heads, &shared, &spec(name)).unwrap();
        // Six rows in one matrix are the same outputs by number, and so the same random words.
        let all = gemm(View::new(&x, 6, 20), shared[0], &spec(name)).unwrap();
        assert_eq!(bits(&got), bits(&all), "{name}");
    }
    assert!(gemm_batched(&[], &[], &spec("exact")).unwrap().is_empty());
    assert!(gemm_batched(&[], &shared, &spec("exact")).unwrap().is_empty());
}

#[test]
fn codes_are_those_of_the_values() {
    let (x, y) = (numbers(3 * 40, 7), numbers(40 * 5, 8));
    let (a, b) = (View::new(&x, 3, 40), View::new(&y, 40, 5));
    for format in [Format::BF16, Format::E4M3FN, Format::E5M2] {
        for name in NAMES {
            let by =
                spec(name).with_output(Cast::new(format).with_rounding("sr4".parse().unwrap()));
            let codes: Vec<u16> = gemm_codes(a, b, &by).unwrap();
            let values: Vec<f32> = codes.iter().map(|c| format.to_f32(u64::from(*c))).collect();
            assert_eq!(bits(&values), bits(&gemm(a, b, &by).unwrap()), "{name} into {format}");
        }
    }
}

#[test]
fn infinite_results_are_kept_counted_or_refused() {
    let a = [f32::MAX, 1.0, 1.0, f32::MAX];
    let (a, b) = (View::new(&a, 2, 2), View::new(&[2.0, 2.0, 1.0, -2.0], 2, 2));
    for name in ["exact", "fma"] {
        let mut c = [7.0; 4];
        let report = gemm_into(a, b, &spec(name), ViewMut::new(&mut c, 2, 2)).unwrap();
        assert_eq!((report.non_finite, c[0], c[3]), (3, f32::INFINITY, f32::NEG_INFINITY));
        c = [7.0; 4];
        let by = spec(name).with_non_finite(NonFinite::Error);
        let error = gemm_into(a, b, &by, ViewMut::new(&mut c, 2, 2)).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "(2 x 2) times (2 x 2): 3 of the results are infinite or NaN, the first at (0, 0)"
            ),
            "{error}"
        );
        assert_eq!(c, [7.0; 4], "nothing is written");
    }
}

#[cfg(feature = "parallel")]
#[test]
fn threads_change_no_bit() {
    let (m, n, k) = (50, 11, 70);
    let (x, y) = (numbers(m * k, 9), numbers(k * n, 10));
    let (a, b) = (View::new(&x, m, k), View::new(&y, k, n));
    for name in NAMES {
        let one = exmy::parallel::with_threads(1, || gemm(a, b, &spec(name)).unwrap()).unwrap();
        let four = exmy::parallel::with_threads(4, || gemm(a, b, &spec(name)).unwrap()).unwrap();
        assert_eq!(bits(&one), bits(&four), "{name}");
    }
}

#[cfg(feature = "half")]
#[test]
fn halves_are_operands() {
    use half::{bf16, f16};
    let a: Vec<bf16> = [1.5, -2.0].map(bf16::from_f32).into();
    let b: Vec<f16> = [0.5, 3.0].map(f16::from_f32).into();
    let got = gemm(View::new(&a, 1, 2), View::new(&b, 1, 2).t(), &spec("exact")).unwrap();
    assert_eq!(got, [-5.25]);
}
