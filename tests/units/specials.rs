//! NaN, infinities and zeros of both signs, and every pair of codes of 8 bits.

use crate::{code, unit};
use exmy::format::Format;
use exmy::gemm::unit::Unit;

fn one(unit: &Unit, a: &[u64], b: &[u64], c: u64) -> u64 {
    let (a, b) = (unit.rows(a, &[], a.len()).unwrap(), unit.columns(b, &[], b.len()).unwrap());
    let plain = unit.dot(&a.row(0), &b.row(0), c);
    let mut fast = [c];
    unit.multiply(&a, &b, &mut fast);
    assert_eq!(fast[0], plain, "{unit}");
    plain
}

#[test]
fn infinities_and_nan() {
    for (text, nan) in [
        ("volta:f16", 0x7FFF_FFFF),
        ("volta:f16+f16", 0x7FFF),
        ("ampere:bf16", 0x7FFF_FFFF),
        ("ada:e5m2", 0x7FFF_FFFF),
        ("hopper:f16+f16", 0x7FFF),
        ("hopper:tf32", 0x7FFF_FFFF),
        ("hopper:e5m2", 0x7FFF_FFFF),
        ("hopper-mma:e5m2", 0x7FFF_FFFF),
        ("hopper-mma:e5m2+f16", 0x7FFF),
        ("hopper,promote=2:e5m2", 0x7FFF_FFFF),
        ("blackwell:e5m2", 0x7FFF_FFFF),
        ("cdna1:f16", 0x7FC0_0000),
        ("cdna1-tree:bf16", 0x7FC0_0000),
        ("cdna2:bf16", 0x7FC0_0000),
        ("cdna3:f16", 0x7FC0_0000),
        ("fast:e5m2", 0x7FC0_0000),
    ] {
        let unit = unit(text);
        let (format, result) = (unit.a().format, unit.result());
        let [zero, one_, two] = [0.0, 1.0, 2.0].map(|x| code(format, x));
        let infinity = [false, true].map(|negative| format.infinity_code(negative).unwrap());
        let quiet = format.nan_code().unwrap();
        let end = [false, true].map(|negative| result.infinity_code(negative).unwrap());
        let c = |x: f64| code(result, x);
        let nans = [
            (vec![quiet, one_], vec![one_, one_], c(1.0)),
            (vec![one_, one_], vec![one_, quiet | 1 << (format.bits() - 1)], c(1.0)),
            (vec![zero, one_], vec![infinity[0], one_], c(1.0)),
            (vec![infinity[1], one_], vec![zero, one_], c(0.0)),
            (vec![infinity[0], one_], vec![one_, infinity[1]], c(0.0)),
            (vec![infinity[0], one_], vec![two, two], end[1]),
            (vec![one_], vec![one_], result.nan_code().unwrap()),
            (vec![quiet, infinity[0]], vec![infinity[0], one_], end[1]),
        ];
        for (a, b, c) in nans {
            assert_eq!(one(&unit, &a, &b, c), nan, "{unit} {a:x?} {b:x?} {c:x}");
        }
        let infinities = [
            (vec![infinity[0], one_], vec![one_, two], c(-1.0), false),
            (vec![infinity[0], one_], vec![infinity[1], two], c(1.0), true),
            (vec![infinity[1], one_], vec![infinity[1], two], end[0], false),
            (vec![one_, two], vec![one_, two], end[1], true),
        ];
        for (a, b, c, negative) in infinities {
            let expected = end[usize::from(negative)];
            assert_eq!(one(&unit, &a, &b, c), expected, "{unit} {a:x?} {b:x?} {c:x}");
        }
    }
}

/// A zero sum is +0 under the aligned orders, whatever its terms are.
#[test]
fn zeros() {
    let aligned =
        ["volta:f16", "hopper:bf16", "hopper:e5m2", "hopper-mma:e4m3", "cdna1:f16", "cdna3:f16"];
    for text in aligned {
        let unit = unit(text);
        let minus = 1 << (unit.a().format.bits() - 1);
        let one_ = code(unit.a().format, 1.0);
        let c = 1_u64 << (unit.result().bits() - 1);
        for (a, b) in [(minus, one_), (one_, minus), (minus, minus)] {
            let sum = one(&unit, &[a, a], &[b, b], c);
            // The last operation of `hopper-mma` is an IEEE addition, of +0 and -0 here.
            assert_eq!(sum, 0, "{unit}");
        }
        let cancelled = one(&unit, &[one_, one_], &[one_, one_ | minus], c);
        assert_eq!(cancelled, 0, "{unit}");
    }
}

/// Every product of two codes, alone, is exact where it is finite and in range.
#[test]
fn all_pairs_of_eight_bits() {
    for text in [
        "hopper:e4m3",
        "hopper:e5m2",
        "hopper:e4m3,e5m2",
        "hopper-mma:e4m3",
        "ada:e5m2,e4m3",
        "blackwell:e4m3",
        "cdna3:e4m3fnuz",
        "cdna3:e5m2fnuz,e4m3fnuz",
        "blackwell:e3m2,e2m1",
    ] {
        let unit = unit(text);
        let codes = |format: Format| (0..1_u64 << format.bits()).collect::<Vec<_>>();
        let (a, b) = (codes(unit.a().format), codes(unit.b().format));
        let (rows, columns) = (unit.rows(&a, &[], 1).unwrap(), unit.columns(&b, &[], 1).unwrap());
        let mut sums = vec![0; a.len() * b.len()];
        unit.multiply(&rows, &columns, &mut sums);
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                let product = unit.a().format.to_f64(*x) * unit.b().format.to_f64(*y);
                let found = unit.result().to_f64(sums[i * b.len() + j]);
                let same = found == product || (found.is_nan() && product.is_nan());
                assert!(same, "{unit} {x:x} {y:x}: {found} is not {product}");
                if product == 0.0 {
                    assert!(found.is_sign_positive());
                }
                // The plain form, on a part of them.
                if (i * 7 + j) % 31 == 0 {
                    let plain = unit.dot(&rows.row(i), &columns.row(j), 0);
                    assert_eq!(plain, sums[i * b.len() + j], "{unit} {x:x} {y:x}");
                }
            }
        }
    }
}

/// A NaN scale makes NaN of what it scales; the sign bit of an E4M3 scale is none.
#[test]
fn scales() {
    for text in ["blackwell:nvfp4", "blackwell:mxfp4", "blackwell:mxfp8-e4m3"] {
        let unit = unit(text);
        let scale = unit.a().scale.unwrap();
        let nan = scale.format.nan_code().unwrap();
        let one_ = code(scale.format, 1.0);
        let elements = vec![code(unit.a().format, 1.0); 40];
        let blocks = unit.a().scales(40);
        let dot = |x: &[u64], y: &[u64]| {
            let rows = unit.rows(&elements, x, 40).unwrap();
            let columns = unit.columns(&elements, y, 40).unwrap();
            let mut sum = [0];
            unit.multiply(&rows, &columns, &mut sum);
            assert_eq!(unit.dot(&rows.row(0), &columns.row(0), 0), sum[0]);
            sum[0]
        };
        let ones = vec![one_; blocks];
        assert_eq!(dot(&ones, &ones), u64::from(40.0_f32.to_bits()), "{unit}");
        let mut wrong = ones.clone();
        wrong[blocks - 1] = nan;
        assert_eq!([dot(&wrong, &ones), dot(&ones, &wrong)], [0x7FFF_FFFF; 2], "{unit}");
    }
    let unit = unit("blackwell:nvfp4");
    let elements = [2; 16];
    let rows = unit.rows(&elements, &[0x38 | 0x80], 16).unwrap();
    let columns = unit.columns(&elements, &[0x38], 16).unwrap();
    assert_eq!(unit.dot(&rows.row(0), &columns.row(0), 0), u64::from(16.0_f32.to_bits()));
}
