//! Operands of more than 16 bits: TF32 as 19-bit codes, binary64, and formats between and beyond.

use exmy::format::Format;
use exmy::gemm::unit::Unit;
use exmy::gemm::{Operand, Spec, gemm, gemm_codes};
use exmy::random::{Philox, Stream};
use exmy::round::Rounding;
use exmy::slice::View;

use crate::exact::{Dyadic, dot};

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

/// Any codes of a format, or some whose exponents are near that of 1; with stray bits above them.
fn codes(format: Format, len: usize, near: bool, seed: u64) -> Vec<u64> {
    let random = Philox::new(seed, Stream::new("wide codes"));
    let one = format.one_code().unwrap();
    let binade = 1_u64 << format.man_bits();
    let code = |i| {
        let word = random.word64(2 * i);
        let sign = word & 1 << (format.bits() - 1);
        let step = random.word64(2 * i + 1) % (16 * binade);
        let small = one.wrapping_sub(8 * binade).wrapping_add(step);
        let stray = if format.bits() < 64 { u64::MAX << format.bits() } else { 0 };
        if near { small | sign | word & stray } else { word }
    };
    (0..len as u64).map(code).collect()
}

fn finite_codes(format: Format, len: usize, near: bool, seed: u64) -> Vec<u64> {
    let mut codes = codes(format, len, near, seed);
    codes.iter_mut().filter(|code| !format.decode(**code).is_finite()).for_each(|code| *code = 1);
    codes
}

/// `exact` against integers of any length.
#[test]
fn exact_products_of_any_pair() {
    let formats = ["tf32", "e8m13", "f32", "e11m20", "f64", "e15m48", "e16m3", "e4m3"];
    let formats = formats.map(format);
    let outputs = [Format::F64, Format::F32, Format::TF32];
    for (n, (x, y)) in formats.iter().flat_map(|x| formats.map(|y| (*x, y))).enumerate() {
        let (k, near) = ([1, 33, 64, 7][n % 4], n / 4 % 2 == 0);
        let near = |format: Format| near && format.exp_bits() >= 8;
        let p = finite_codes(x, 2 * k, near(x), n as u64);
        let q = finite_codes(y, 2 * k, near(y), 1000 + n as u64);
        let values = |format: Format, codes: &[u64]| -> Vec<Dyadic> {
            codes.iter().map(|code| Dyadic::of(format.decode(*code)).unwrap()).collect()
        };
        let (left, right) = (values(x, &p), values(y, &q));
        let a = Operand::codes64(x, View::new(&p, 2, k));
        let b = Operand::codes64(y, View::new(&q, 2, k)).t();
        for (output, mode) in outputs
            .into_iter()
            .zip([Rounding::TiesToEven, Rounding::TowardZero].into_iter().cycle())
        {
            let spec = Spec::parse("exact").unwrap().with_output(output).with_rounding(mode);
            let found: Vec<u64> = gemm_codes(a, b, &spec).unwrap();
            for (at, code) in found.iter().enumerate() {
                let (i, j) = (at / 2, at % 2);
                let sum = dot(&left[i * k..][..k], &right[j * k..][..k]);
                assert_eq!(*code, sum.round(output, mode), "{x} times {y} into {output} by {mode}");
            }
        }
    }
}

/// A sum of products of two rows.
type Order<'a> = &'a dyn Fn(&[f64], &[f64]) -> f64;

/// Orders in binary64 against loops of it, of binary64 numbers.
#[test]
fn binary64_orders() {
    let (m, n, k) = (3, 4, 45);
    let matrix = |len, seed| -> Vec<f64> {
        codes(Format::F64, len, true, seed).into_iter().map(f64::from_bits).collect()
    };
    let (a, b) = (matrix(m * k, 1), matrix(n * k, 2));
    let fma = |x: &[f64], y: &[f64]| x.iter().zip(y).fold(0.0, |sum, (x, y)| x.mul_add(*y, sum));
    let mul_add = |x: &[f64], y: &[f64]| x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y);
    let blocks = |x: &[f64], y: &[f64]| {
        x.chunks(8).zip(y.chunks(8)).map(|(x, y)| fma(x, y)).reduce(|sum, part| sum + part).unwrap()
    };
    let promoted = |x: &[f64], y: &[f64]| {
        x.chunks(8).zip(y.chunks(8)).fold(0.0, |sum, (x, y)| sum + mul_add(x, y))
    };
    let tree = |x: &[f64], y: &[f64]| {
        let mut terms: Vec<f64> = x.iter().zip(y).map(|(x, y)| x * y).collect();
        while terms.len() > 1 {
            terms = terms.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        terms[0]
    };
    let orders: [(&str, Order<'_>); 5] = [
        ("fma:f64", &fma),
        ("mul-add:f64", &mul_add),
        ("blocked8:f64", &blocks),
        ("promote8(mul-add:f64):f64", &promoted),
        ("pairwise:f64", &tree),
    ];
    let words = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
    let (p, q) = (words(&a), words(&b));
    for (name, order) in orders {
        let spec = Spec::parse(name).unwrap().with_output(Format::F64);
        let by = |a: Operand<'_>, b: Operand<'_>| -> Vec<u64> { gemm_codes(a, b, &spec).unwrap() };
        let views = by(Operand::f64(View::new(&a, m, k)), Operand::f64(View::new(&b, n, k).t()));
        let coded = by(
            Operand::codes64(Format::F64, View::new(&p, m, k)),
            Operand::codes64(Format::F64, View::new(&q, n, k)).t(),
        );
        for (at, found) in views.iter().enumerate() {
            let expected = order(&a[at / n * k..][..k], &b[at % n * k..][..k]);
            assert_eq!(*found, expected.to_bits(), "{name}");
        }
        assert_eq!(coded, views, "{name}");
    }
}

/// Units that take wide formats, any codes.
#[test]
fn matrix_units() {
    let (m, n, k) = (5, 6, 37);
    for (name, x, y, result) in [
        ("ampere", "tf32", "tf32", "f32"),
        ("hopper", "tf32", "tf32", "f32"),
        ("blackwell", "tf32", "tf32", "f32"),
        ("cdna3", "tf32", "tf32", "f32"),
        ("cdna1", "f32", "f32", "f32"),
        ("fast", "tf32", "e8m13", "f32"),
        ("fast,l=16", "f32", "tf32", "f32"),
        ("ampere", "f64", "f64", "f64"),
        ("hopper", "f64", "f64", "f64"),
        ("cdna2", "f64", "f64", "f64"),
    ] {
        let unit: Unit = format!("{name}:{x},{y}+{result}").parse().unwrap();
        let (x, y) = (format(x), format(y));
        for near in [true, false] {
            // The readable unit takes codes without stray bits.
            let masked = |format: Format, codes: &[u64]| -> Vec<u64> {
                codes.iter().map(|code| code & (u64::MAX >> (64 - format.bits()))).collect()
            };
            let (p, q) = (codes(x, m * k, near, 3), codes(y, n * k, near, 4));
            let rows = unit.rows(&masked(x, &p), &[], k).unwrap();
            let columns = unit.columns(&masked(y, &q), &[], k).unwrap();
            let expected: Vec<u64> =
                (0..m * n).map(|e| unit.dot(&rows.row(e / n), &columns.row(e % n), 0)).collect();
            let spec = Spec::parse(&format!("{name}+{result}")).unwrap();
            let spec = spec.with_output(format(result));
            let wide = |format, codes, rows| Operand::codes64(format, View::new(codes, rows, k));
            let mut found: Vec<u64> =
                gemm_codes(wide(x, &p, m), wide(y, &q, n).t(), &spec).unwrap();
            // In binary64 a result that is NaN is the canonical one, not the unit's.
            if result == "f64" {
                let nans = expected.iter().map(|e| f64::from_bits(*e).is_nan());
                for ((found, expected), nan) in found.iter_mut().zip(&expected).zip(nans) {
                    assert_eq!(nan, f64::from_bits(*found).is_nan(), "{name}");
                    *found = if nan { *expected } else { *found };
                }
            }
            assert_eq!(found, expected, "{name} {x} {y}");
            if x.bits() <= 32 && y.bits() <= 32 {
                let narrow = |codes: &[u64]| codes.iter().map(|c| *c as u32).collect::<Vec<_>>();
                let (p, q) = (narrow(&p), narrow(&q));
                let a = Operand::codes32(x, View::new(&p, m, k)).unwrap();
                let b = Operand::codes32(y, View::new(&q, n, k)).unwrap().t();
                assert_eq!(gemm_codes::<u64>(a, b, &spec).unwrap(), found, "{name} {x} {y}");
            }
        }
    }
}

#[test]
fn what_does_not_take_them_says_what_it_takes() {
    let (x, codes) = ([1.0_f64; 6], [1_u32; 6]);
    let a = Operand::f64(View::new(&x, 2, 3));
    let error = |spec: &str| gemm(a, a.t(), &Spec::parse(spec).unwrap()).unwrap_err().to_string();
    assert_eq!(
        error("fast"),
        "(2 x 3) times (3 x 2): fast does not multiply f64 by f64 into f32; it takes any formats whose \
         values are binary32 numbers, with block scales or without, into f32"
    );
    assert!(error("hopper").ends_with("bf16, tf32 into f32; f64 into f64"));
    assert!(error("te-nvfp4").contains("does not take the left operand; it takes e2m1"));
    let error = Operand::codes32(Format::F64, View::new(&codes, 2, 3)).unwrap_err().to_string();
    assert_eq!(error, "f64 has 64 bits, which codes of 32 bits cannot hold");
}
