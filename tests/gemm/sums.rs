//! Chains, trees and blocks against loops of binary32, and against orders worked out by hand.

use exmy::block::{Axis, BlockFormat};
use exmy::format::Format;
use exmy::gemm::{Operand, Spec, f32::Output, f32::matmul, gemm, gemm_codes};
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::round::Rules;
use exmy::simd::{Level, with_level};
use exmy::slice::{Converter, View, ViewMut};

use crate::{bits, numbers, quantize};

fn spec(text: &str) -> Spec {
    Spec::parse(text).unwrap()
}

/// The products of two rows added as the name says, in plain binary32.
fn by_hand(name: &str, a: &[f32], b: &[f32]) -> f32 {
    let pairs = || a.iter().zip(b);
    match name {
        "fma" => pairs().fold(0.0, |sum, (a, b)| a.mul_add(*b, sum)),
        "mul-add" => pairs().fold(0.0, |sum, (a, b)| sum + a * b),
        "pairwise" => {
            fn tree(terms: &[f32]) -> f32 {
                match terms {
                    [] => 0.0,
                    [x] => *x,
                    // The largest power of two below the length: what rounds of neighbours amount to.
                    _ => {
                        let half = terms.len().next_power_of_two() / 2;
                        tree(&terms[..half]) + tree(&terms[half..])
                    }
                }
            }
            tree(&pairs().map(|(a, b)| a * b).collect::<Vec<_>>())
        }
        "blocked8" => {
            let blocks = a.chunks(8).zip(b.chunks(8)).map(|(a, b)| by_hand("fma", a, b));
            blocks.reduce(|sum, block| sum + block).unwrap_or(0.0)
        }
        "promote8(mul-add)" => {
            let parts = a.chunks(8).zip(b.chunks(8)).map(|(a, b)| by_hand("mul-add", a, b));
            parts.fold(0.0, |sum, part| sum + part)
        }
        _ => unreachable!(),
    }
}

#[test]
fn binary32_orders() {
    for name in ["fma", "mul-add", "pairwise", "blocked8", "promote8(mul-add)"] {
        for (m, n, k) in [(1, 1, 0), (1, 1, 1), (3, 5, 7), (9, 17, 33), (2, 3, 100)] {
            let (a, b) = (numbers(m * k, 1), numbers(n * k, 2));
            let expected: Vec<f32> = (0..m * n)
                .map(|at| by_hand(name, &a[at / n * k..][..k], &b[at % n * k..][..k]))
                .collect();
            let (a, b) = (View::new(&a, m, k), View::new(&b, n, k).t());
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let got = with_level(level, || gemm(a, b, &spec(name)).unwrap());
                assert_eq!(bits(&got), bits(&expected), "{name} {m} x {n} x {k} {level}");
            }
        }
    }
}

/// The general arithmetic in an accumulator that is binary32 in all but name.
#[test]
fn plain_and_kernel_forms_agree() {
    let (m, n, k) = (4, 6, 77);
    let (a, b) = (numbers(m * k, 5), numbers(k * n, 6));
    let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
    for order in ["fma", "mul-add", "pairwise", "blocked16"] {
        // Saturation takes the general way, and nothing here overflows.
        let plain = gemm(a, b, &spec(&format!("{order}:f32@sat-finite"))).unwrap();
        assert_eq!(bits(&plain), bits(&gemm(a, b, &spec(order)).unwrap()), "{order}");
    }
}

/// Accumulators of other formats, many columns at a time and one number after the other: a row of
/// numbers that binary32 does not have makes a product take the latter way, whatever its other rows.
#[test]
fn columns_and_plain_forms_agree() {
    let (m, n, k) = (5, 19, 43);
    let specials = [f32::INFINITY, -f32::INFINITY, f32::NAN, -0.0, f32::MAX, 1e-42, 3e38, -7e-46];
    // Usual numbers, any numbers, numbers about both ends of the range, and specials among others.
    let matrix = |len: usize, kind: usize, seed| -> Vec<f32> {
        let random = Philox::new(seed, Stream::new("columns"));
        let any = |i: usize| f32::from_bits(random.word(i as u64));
        let scaled = |i: usize, by: f32| (random.uniform(i as u64) as f32 - 0.5) * by;
        match kind {
            0 => numbers(len, seed),
            1 => (0..len).map(any).collect(),
            2 => (0..len).map(|i| scaled(i, [1e-20, 1e-25, 1e-3, 1.0][i % 4])).collect(),
            3 => (0..len).map(|i| scaled(i, [1e19, 1e15, 500.0, 1e5][i % 4])).collect(),
            _ => {
                let special = |i: usize| random.word(1 + i as u64) as usize;
                let of = |(i, x): (usize, f32)| match special(i) % 40 {
                    0 => specials[special(i) / 64 % specials.len()],
                    _ => x,
                };
                numbers(len, seed).into_iter().enumerate().map(of).collect()
            }
        }
    };
    let orders = ["fma", "mul-add", "pairwise", "blocked8", "promote8(fma", "promote5(mul-add"];
    let accumulators = [
        "e8m13",
        "e8m13@rtz",
        "bf16",
        "bf16@odd",
        "f16",
        "f16@rup",
        "f16@raz",
        "f16@rnz",
        "e5m2@rna",
        "e4m3",
        "e4m3@to-nan",
        "e4m3fnuz",
        "f32@rtz",
        "f32@odd",
        "f32@sat-finite",
        "e8m22",
        "int8",
        "f16@rdn",
        "tf32@sat-finite",
        "e2m1",
        "f16@sr8",
        "e2m20",
    ];
    let random = Philox::new(3, Stream::new("columns"));
    for (case, (order, accumulator)) in
        orders.iter().flat_map(|order| accumulators.map(move |by| (order, by))).enumerate()
    {
        let name = match order.starts_with("promote") {
            true => format!("{order}:{accumulator}):{}", ["f32", "bf16", accumulator][case % 3]),
            false => format!("{order}:{accumulator}"),
        };
        for kind in 0..5 {
            let (a, b) = (matrix(m * k, kind, 1), matrix(n * k, kind, 2));
            let mut with_wide: Vec<f64> = a.iter().map(|x| f64::from(*x)).collect();
            with_wide.extend([1.0 + f64::EPSILON].repeat(k));
            let b = View::new(&b, n, k).t();
            let spec = spec(&name).with_output(Format::F64).with_random(random);
            let found: Vec<u64> = gemm_codes(View::new(&a, m, k), b, &spec).unwrap();
            let plain: Vec<u64> =
                gemm_codes(Operand::f64(View::new(&with_wide, m + 1, k)), b, &spec).unwrap();
            for (at, found) in found.iter().enumerate() {
                let (found, plain) = (f64::from_bits(*found), f64::from_bits(plain[at]));
                assert_eq!(
                    found.to_bits(),
                    plain.to_bits(),
                    "{name}, kind {kind}: {found:e} {plain:e}"
                );
            }
        }
    }
}

#[test]
fn blocked256_is_the_order_of_the_f32_product() {
    let (m, n, k) = (5, 9, 700);
    let (a, b) = (numbers(m * k, 3), numbers(k * n, 4));
    let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
    let mut expected = vec![0.0; m * n];
    matmul(a, b, ViewMut::new(&mut expected, m, n), Output::Overwrite);
    assert_eq!(bits(&gemm(a, b, &spec("blocked256")).unwrap()), bits(&expected));
}

/// Narrow accumulators against binary64 and one conversion: a product of two of these numbers and a
/// sum are exact in binary64.
#[test]
fn accumulators_of_any_format_and_mode() {
    let (n, k) = (40, 50);
    let (mut a, mut b) = (numbers(n * k, 11), numbers(k, 12));
    for x in [&mut a, &mut b] {
        Converter::new(Format::E4M3FN, Rules::SATURATING).fake_quantize(x);
    }
    for text in ["e8m13@rtz", "bf16", "f16@rup", "e5m2@rdn", "f16@rna"] {
        let (format, mode) = text.split_once('@').unwrap_or((text, "rne"));
        let format: Format = format.parse().unwrap();
        let round = |x: f64| {
            let mut x = [x];
            let cast = Cast::new(format).with_rounding(mode.parse().unwrap());
            Converter::from(cast).fake_quantize(&mut x);
            x[0]
        };
        let fma = |row: &[f32]| {
            row.iter().zip(&b).fold(0.0, |sum, (a, b)| round(f64::from(*a) * f64::from(*b) + sum))
        };
        let mul_add = |row: &[f32]| {
            let products = row.iter().zip(&b).map(|(a, b)| round(f64::from(*a) * f64::from(*b)));
            products.fold(0.0, |sum, product| round(sum + product))
        };
        let (x, y) = (View::new(&a, n, k), View::new(&b, k, 1));
        for (order, expected) in [("fma", &fma as &dyn Fn(&[f32]) -> f64), ("mul-add", &mul_add)] {
            let got = gemm(x, y, &spec(&format!("{order}:{text}"))).unwrap();
            for (i, got) in got.iter().enumerate() {
                assert_eq!(f64::from(*got), expected(&a[i * k..][..k]), "{order}:{text}");
            }
        }
    }
}

/// Hopper's 14 bits lose what promotion every 2 elements keeps: by hand.
#[test]
fn promotion_keeps_what_a_narrow_accumulator_loses() {
    let tiny = 1.0 / 16_384.0_f32;
    let (a, b) = ([1.0, 0.0, tiny, tiny], [1.0_f32; 4]);
    let (a, b) = (View::new(&a, 1, 4), View::new(&b, 4, 1));
    let by = |name| gemm(a, b, &spec(name)).unwrap()[0];
    assert_eq!(by("fma:e8m13@rtz"), 1.0);
    assert_eq!(by("promote2(fma:e8m13@rtz)"), 1.0 + 2.0 * tiny);
    assert_eq!(by("promote2(fma:e8m13@rtz):e8m13@rtz"), 1.0 + 2.0 * tiny);
    assert_eq!(by("promote2(fma:e8m13@rtz):bf16"), 1.0);
}

/// Word `e * (K + 1) + k` of the stream rounds product `k` of output `e`, the last one the output.
#[test]
fn stochastic_accumulators_use_their_own_words() {
    let random = Philox::new(5, Stream::new("sr"));
    let (m, k) = (4, 3);
    let (a, b) = ([0.3_f32; 12], [1.0_f32; 3]);
    let (a, b) = (View::new(&a, m, k), View::new(&b, k, 1));
    let got = gemm(a, b, &spec("fma:e5m2@sr8").with_random(random)).unwrap();
    let convert = |x: f64, word: u64| {
        let rounding = "sr8".parse().unwrap();
        let cast = Cast::new(Format::E5M2).with_rounding(rounding);
        let mut x = [x];
        Converter::from(cast).with_random(random).starting_at(word).fake_quantize(&mut x);
        x[0]
    };
    for (e, got) in got.iter().enumerate() {
        let sum = (0..3).fold(0.0, |sum, k| convert(sum + f64::from(0.3_f32), (e * 4 + k) as u64));
        assert_eq!(f64::from(*got), sum, "output {e}");
    }
    // Without a stochastic accumulator, output e uses word e.
    let cast = Cast::new(Format::E5M2).with_rounding("sr8".parse().unwrap());
    let got = gemm(a, b, &spec("exact").with_output(cast).with_random(random)).unwrap();
    for (e, got) in got.iter().enumerate() {
        assert_eq!(f64::from(*got), convert(3.0 * f64::from(0.3_f32), e as u64));
    }
}

/// The images of scaled elements are exact, also where binary32 has no such number.
#[test]
fn scales_enter_without_rounding() {
    let format: BlockFormat = "e5m10/16:f32@nearest".parse().unwrap();
    let (x, y) = (numbers(2 * 40, 1), numbers(3 * 40, 2));
    let a = quantize(&x, 2, 40, Axis::Cols, format);
    let b = quantize(&y, 3, 40, Axis::Cols, format);
    let got = gemm(&a, Operand::from(&b).t(), &spec("fma:f64@rne")).unwrap();
    let value = |t: &exmy::block::BlockTensor, i: usize, j: usize| {
        format.element.to_f64(u64::from(t.codes()[i * 40 + j])) * t.scale(i, j).to_f64()
    };
    for (at, got) in got.into_iter().enumerate() {
        let sum =
            (0..40).fold(0.0_f64, |sum, k| value(&a, at / 3, k).mul_add(value(&b, at % 3, k), sum));
        assert_eq!(got, sum as f32);
    }
}

/// scale = (alpha t_a) t_b, then scale * sum, then + beta c, each rounded to binary32.
#[test]
fn alpha_beta_and_c_in_their_order() {
    let (x, y) = (numbers(2 * 32, 21), numbers(3 * 32, 22));
    let a = quantize(&x, 2, 32, Axis::Cols, BlockFormat::NVFP4);
    let b = quantize(&y, 3, 32, Axis::Cols, BlockFormat::NVFP4);
    let (alpha, beta, c) = (0.7_f32, -1.3_f32, numbers(6, 23));
    let mut got = c.clone();
    let by = spec("fma").with_alpha(alpha).with_beta(beta);
    exmy::gemm::gemm_into(&a, Operand::from(&b).t(), &by, ViewMut::new(&mut got, 2, 3)).unwrap();
    for at in 0..6 {
        let image = |t: &exmy::block::BlockTensor, i, k: usize| {
            Format::E2M1.to_f32(u64::from(t.codes()[i * 32 + k])) * t.scale(i, k).to_f32()
        };
        let sum =
            (0..32).fold(0.0_f32, |sum, k| image(&a, at / 3, k).mul_add(image(&b, at % 3, k), sum));
        let scale = (alpha * a.tensor_scale().unwrap()) * b.tensor_scale().unwrap();
        assert_eq!(got[at], scale * sum + beta * c[at]);
    }
}

#[test]
fn special_values_follow_ieee() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for name in ["fma", "mul-add", "pairwise", "blocked2", "fma:bf16", "promote1(fma)"] {
        let by = |a: [f32; 2], b: [f32; 2]| {
            gemm(View::new(&a, 1, 2), View::new(&b, 2, 1), &spec(name)).unwrap()[0]
        };
        assert_eq!(by([inf, 1.0], [1.0, 1.0]), inf, "{name}");
        assert_eq!(by([inf, 0.0], [1.0, inf]).to_bits(), 0x7FC0_0000, "{name}");
        assert_eq!(by([inf, inf], [1.0, -1.0]).to_bits(), 0x7FC0_0000, "{name}");
        assert_eq!(by([1.0, -nan], [1.0, 1.0]).to_bits(), 0x7FC0_0000, "{name}");
    }
    // A saturating accumulator comes back from the end of its range.
    let (a, b) = ([400.0, 400.0, -400.0], [1.0_f32; 3]);
    let (a, b) = (View::new(&a, 1, 3), View::new(&b, 3, 1));
    assert_eq!(gemm(a, b, &spec("fma:e4m3")).unwrap(), [48.0]); // 400 is 416 there: 448 - 400
}
