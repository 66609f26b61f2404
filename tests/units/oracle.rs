//! The fused step in exact arithmetic, written from its description with integers of any length:
//! bits of operands, truncation and rounding are this file's own.

use num_bigint::{BigInt, Sign};

use crate::{Random, dot, near, unit};
use exmy::format::Format;
use exmy::gemm::unit::Unit;

/// Every number here is a multiple of 2^-PLACES.
pub(crate) const PLACES: i32 = 1200;

/// A binary interchange format by its fields.
#[derive(Clone, Copy)]
struct Fields {
    exponent: u32,
    trailing: u32,
    bias: i32,
}

fn fields(format: Format) -> Fields {
    let (exponent, trailing, bias) = match format {
        Format::F16 => (5, 10, 15),
        Format::BF16 => (8, 7, 127),
        Format::TF32 => (8, 10, 127),
        Format::F32 => (8, 23, 127),
        Format::F64 => (11, 52, 1023),
        Format::E4M3FN => (4, 3, 7),
        Format::E5M2 => (5, 2, 15),
        Format::E3M2 => (3, 2, 3),
        Format::E2M3 => (2, 3, 1),
        Format::E2M1 => (2, 1, 1),
        Format::E4M3FNUZ => (4, 3, 8),
        Format::E5M2FNUZ => (5, 2, 16),
        Format::UE4M3 => (4, 3, 7),
        _ => panic!("{format} has no fields here"),
    };
    Fields { exponent, trailing, bias }
}

/// Significand with its sign, and the exponent of its last place and of its point.
pub(crate) fn read(format: Format, code: u64) -> (i64, i32, i32) {
    let Fields { exponent, trailing, bias } = fields(format);
    let field = (code >> trailing & ((1 << exponent) - 1)) as i32;
    let digits = (code & ((1 << trailing) - 1)) as i64;
    let negative = code >> (exponent + trailing) & 1 == 1;
    let (digits, e) =
        if field == 0 { (digits, 1 - bias) } else { (digits | 1 << trailing, field - bias) };
    (if negative { -digits } else { digits }, e - trailing as i32, e)
}

pub(crate) fn scaled(significand: i64, exponent: i32) -> BigInt {
    BigInt::from(significand) << (exponent + PLACES) as usize
}

/// The parts of the fused step that a test varies.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) l: usize,
    pub(crate) f: i32,
    pub(crate) floor: Option<i32>,
    pub(crate) zeros: Option<i32>,
    pub(crate) toward_minus: bool,
    pub(crate) sticky: bool,
    pub(crate) normal: bool,
    /// Whether what rounds to zero keeps its sign.
    pub(crate) signed: bool,
    /// Fraction bits of the result, its least exponent, and whether to nearest even.
    pub(crate) out: (u32, i32, bool),
}

impl Step {
    pub(crate) const fn new(l: usize, f: i32, floor: Option<i32>, out: (u32, i32, bool)) -> Self {
        Self {
            l,
            f,
            floor,
            zeros: None,
            toward_minus: false,
            sticky: false,
            normal: false,
            signed: false,
            out,
        }
    }

    /// `a` times `b` plus `c`, all finite; the result as a binary32 or binary16 code. `None` if a
    /// step but the last overflows.
    fn chain(&self, unit: &Unit, a: &[u64], b: &[u64], shifts: &[i32], c: u64) -> Option<u64> {
        let mut sum = c;
        for first in (0..a.len()).step_by(self.l) {
            if !unit.result().decode(sum).is_finite() {
                return None;
            }
            let last = a.len().min(first + self.l);
            let mut terms = Vec::new();
            for k in first..last {
                let (x, unit_x, ex) = read(unit.a().format, a[k]);
                let (y, unit_y, ey) = read(unit.b().format, b[k]);
                let shift = shifts.get(k).copied().unwrap_or(0);
                let value = scaled(x * y, unit_x + unit_y + shift);
                let mut e = ex + ey + shift;
                let two: BigInt = BigInt::from(2) << (e + PLACES) as usize;
                if self.normal && value.magnitude() >= two.magnitude() {
                    e += 1;
                }
                terms.push((value, e));
            }
            let (z, unit_z, ez) = read(unit.result(), sum);
            terms.push((scaled(z, unit_z), ez));
            sum = self.round(&self.add(&terms), unit.result());
        }
        Some(sum)
    }

    pub(crate) fn add(&self, terms: &[(BigInt, i32)]) -> BigInt {
        let zero = |value: &BigInt| value.sign() == Sign::NoSign;
        let exponents =
            terms.iter().filter_map(|(value, e)| if zero(value) { self.zeros } else { Some(*e) });
        let Some(top) = exponents.chain(self.floor).max() else { return BigInt::ZERO };
        let last = (top - self.f + PLACES) as usize;
        let mut sum = BigInt::ZERO;
        for (value, _) in terms {
            let magnitude = BigInt::from(value.magnitude().clone());
            let mut kept: BigInt = (magnitude.clone() >> last) << last;
            if self.sticky {
                // One bit more is kept, and set if that bit or anything below it is.
                let half = last - 1;
                kept = (magnitude.clone() >> half) << half;
                if kept != magnitude && (kept.clone() >> half) % 2 == BigInt::ZERO {
                    kept += BigInt::from(1) << half;
                }
            }
            let negative = value.sign() == Sign::Minus;
            if self.toward_minus && negative && kept != magnitude {
                kept += BigInt::from(1) << last;
            }
            sum += if negative { -kept } else { kept };
        }
        sum
    }

    pub(crate) fn round(&self, sum: &BigInt, result: Format) -> u64 {
        let (digits, least, nearest) = self.out;
        let Fields { exponent, trailing, bias } = fields(result);
        let magnitude = BigInt::from(sum.magnitude().clone());
        if magnitude == BigInt::ZERO {
            return 0;
        }
        let top = (magnitude.bits() as i32 - 1 - PLACES).max(least);
        let last = (top - digits as i32 + PLACES) as usize;
        let mut kept: BigInt = magnitude.clone() >> last;
        let rest: BigInt = magnitude.clone() - (kept.clone() << last);
        let half: BigInt = BigInt::from(1) << (last - 1);
        let odd = kept.clone() % 2 != BigInt::ZERO;
        if nearest && (rest > half || (rest == half && odd)) {
            kept += 1;
        }
        let sign = u64::from(sum.sign() == Sign::Minus) << (exponent + trailing);
        if kept == BigInt::ZERO {
            return if self.signed { sign } else { 0 };
        }
        let mut whole = u64::try_from(kept).unwrap();
        let mut top = top;
        if whole >> digits >= 2 {
            (whole, top) = (whole >> 1, top + 1);
        }
        let infinity = ((1 << exponent) - 1) << trailing;
        if top > bias {
            return sign | infinity;
        }
        let field = if whole >> digits == 0 { 0 } else { (top + bias) as u64 };
        let digits_there = whole & ((1 << digits) - 1);
        sign | field << trailing | digits_there << (trailing - digits)
    }
}

pub(crate) const F32: (u32, i32, bool) = (23, -126, false);
const E8M13: (u32, i32, bool) = (13, -126, false);
const F16: (u32, i32, bool) = (10, -14, true);

/// Random dot products of several shapes, none of them with special values.
fn compare(text: &str, step: Step, dots: usize) {
    let unit = unit(text);
    let mut random = Random(0x5EED ^ text.len() as u64);
    let scale = unit.a().scale.map(|scale| scale.block as usize);
    let mut compared = 0;
    for i in 0..dots {
        let k = [step.l, 2 * step.l, step.l + 3, 1][i % 4];
        let field = |format: Format| (format.max_code() >> format.man_bits()) + 1;
        let width = [1, 3, 9, 60][random.below(4) as usize];
        let mut operand = |format: Format, centre: u64, len: usize| -> Vec<u64> {
            (0..len).map(|_| near(&mut random, format, centre, width)).collect()
        };
        // Wide formats stay where their products are in the result's range.
        let (fa, fb) = (field(unit.a().format), field(unit.b().format));
        let low = i % 3 == 0;
        let centre = |fields: u64| if low { fields / 4 } else { fields / 2 };
        let a = operand(unit.a().format, centre(fa), k);
        let mut b = operand(unit.b().format, centre(fb), k);
        if i % 2 == 0 {
            // What cancels shows the last places.
            for j in k / 2..k {
                b[j] = b[j - k / 2] ^ 1 << (unit.b().format.bits() - 1);
            }
        }
        let c = match random.below(3) {
            0 => 0,
            1 => near(&mut random, unit.result(), field(unit.result()) / 2, width),
            _ => {
                near(&mut random, unit.result(), if low { 3 } else { field(unit.result()) / 2 }, 12)
            }
        };
        let blocks = scale.map_or(0, |block| k.div_ceil(block));
        let mut scales = || (0..blocks).map(|_| 110 + random.below(34)).collect::<Vec<_>>();
        let (x, y) = (scales(), scales());
        let shifts: Vec<i32> = match scale {
            Some(block) => (0..k).map(|j| (x[j / block] + y[j / block]) as i32 - 254).collect(),
            None => Vec::new(),
        };
        let rows = unit.rows(&a, &x, k).unwrap();
        let columns = unit.columns(&b, &y, k).unwrap();
        let plain = unit.dot(&rows.row(0), &columns.row(0), c);
        let expected = step.chain(&unit, &a, &b, &shifts, c);
        let Some(expected) = expected else { continue };
        compared += 1;
        assert_eq!(plain, expected, "{unit} {a:x?} {b:x?} {c:x} {x:?} {y:?}");
        let mut fast = [c];
        unit.multiply(&rows, &columns, &mut fast);
        assert_eq!(fast[0], expected, "fast: {unit} {a:x?} {b:x?} {c:x}");
    }
    assert!(compared > dots * 3 / 4, "{unit}: only {compared} of {dots} compared");
}

#[test]
fn units_of_nvidia() {
    let floor = Some;
    for (text, step) in [
        ("volta:f16", Step::new(4, 23, None, F32)),
        ("volta:f16+f16", Step::new(4, 23, floor(-19), F16)),
        ("turing:f16", Step::new(8, 24, None, F32)),
        ("ampere:f16", Step::new(8, 24, floor(-132), F32)),
        ("ampere:f16+f16", Step::new(8, 24, floor(-20), F16)),
        ("ampere:bf16", Step::new(8, 24, floor(-132), F32)),
        ("ampere:tf32", Step::new(4, 24, floor(-132), F32)),
        ("ada:e4m3", Step::new(16, 13, floor(-132), E8M13)),
        ("ada:e5m2,e4m3+f16", Step::new(16, 13, floor(-20), F16)),
        ("hopper:f16", Step::new(16, 25, floor(-133), F32)),
        ("hopper:bf16", Step::new(16, 25, floor(-133), F32)),
        ("hopper:tf32", Step::new(8, 25, floor(-133), F32)),
        ("hopper:e4m3", Step::new(32, 13, floor(-133), E8M13)),
        ("hopper:e4m3,e5m2", Step::new(32, 13, floor(-133), E8M13)),
        ("hopper:e5m2+f16", Step::new(32, 13, floor(-21), F16)),
        ("hopper:f16+f16", Step::new(16, 25, floor(-21), F16)),
        ("blackwell:e4m3", Step::new(32, 25, floor(-133), F32)),
        ("blackwell:e3m2,e2m3", Step::new(32, 25, floor(-133), F32)),
        ("blackwell:e2m1,e5m2+f16", Step::new(32, 25, floor(-21), F16)),
        ("blackwell:mxfp8-e4m3", Step::new(32, 25, floor(-133), F32)),
        ("blackwell-mxf8f6f4:mxfp4,mxfp6-e3m2", Step::new(32, 25, floor(-133), F32)),
    ] {
        compare(text, step, 1500);
    }
}

/// The parameters that no preset uses, and some that a user sets.
#[test]
fn parameters_one_by_one() {
    let step = Step::new(8, 20, Some(-10), F32);
    for (text, step) in [
        ("custom,l=8,f=20,floor=-10:f16", step),
        ("custom,l=8,f=20,floor=-10,zeros=-3:f16", Step { zeros: Some(-3), ..step }),
        ("custom,l=8,f=20,floor=-10,align=rd:f16", Step { toward_minus: true, ..step }),
        ("custom,l=8,f=20,floor=-10,align=sticky:bf16", Step { sticky: true, ..step }),
        ("custom,l=8,f=20,floor=-10,product=normal:tf32", Step { normal: true, ..step }),
        ("custom,l=5,f=9,floor=none,out=e8m13@rtz:e5m2", Step::new(5, 9, None, E8M13)),
        ("custom,l=64,f=40:e4m3", Step::new(64, 40, Some(-133), F32)),
        ("custom,l=256,f=40:e4m3", Step::new(256, 40, Some(-133), F32)),
        ("custom,l=100,f=24:e5m2", Step::new(100, 24, Some(-133), F32)),
        ("custom,l=16,f=0,out=f32@rne:e2m1", Step::new(16, 0, Some(-133), (23, -126, true))),
    ] {
        compare(text, step, 1000);
    }
}

/// Operands of 24 bits, whose products have 46 places, sums of 50, results in binary64.
#[test]
fn wide_operands_sums_and_results() {
    const F64: (u32, i32, bool) = (52, -1022, true);
    let nearest = (23, -126, true);
    for (text, step) in [
        ("custom:f32", Step::new(16, 25, Some(-133), F32)),
        ("custom,f=50,floor=none,l=256:f32", Step::new(256, 50, None, F32)),
        (
            "custom,f=46,out=f32@rne,product=normal:f32,bf16",
            Step { normal: true, ..Step::new(16, 46, Some(-133), nearest) },
        ),
        (
            "custom,f=50,align=sticky,l=4,out=f64@rne:f32+f64",
            Step { sticky: true, ..Step::new(4, 50, None, F64) },
        ),
        (
            "custom,f=50,align=rd,l=256,out=f64@rne:f16+f64",
            Step { toward_minus: true, ..Step::new(256, 50, None, F64) },
        ),
        ("custom,f=25,l=8,out=f64@rne:e4m3+f64", Step::new(8, 25, None, F64)),
        ("custom,f=30,l=8:f32+f64", Step::new(8, 30, None, (52, -1022, false))),
        ("custom,f=25,l=8,out=f32@rtz:e4m3+f64", Step::new(8, 25, None, F32)),
    ] {
        compare(text, step, 1000);
    }
}

/// The largest sum of a step, 256 times the square of 2 - 2^-23, fits its 64 bits in every order and cut.
#[test]
fn the_largest_sums_fit() {
    let place = 1.0 / f64::from(1 << 23);
    let (x, y) = ([2.0 - place; 256], [place - 2.0; 256]);
    let sum = 256.0 * (4.0 - 4.0 * place + place * place);
    for order in ["fused", "late", "halves"] {
        for cut in ["rz", "rd", "sticky"] {
            for second in ["rz", "rd", "sticky"] {
                let text = format!(
                    "custom,order={order},l=256,f=50,f2=50,align={cut},align2={second},out=f64@rne:f32+f64"
                );
                assert_eq!(dot(&text, &x, &x, 3.0), sum + 3.0, "{text}");
                assert_eq!(dot(&text, &x, &y, -3.0), -sum - 3.0, "{text}");
            }
        }
    }
}

/// Nothing is cut and the result is to nearest even: the exact sum, rounded once.
#[test]
fn exact_sums() {
    let widest = Step { signed: true, ..Step::new(4, 650, None, (23, -126, true)) };
    compare("cdna1:f16", widest, 2000);
    compare("cdna1:bf16", Step { l: 2, ..widest }, 2000);
    compare("custom,align=exact,l=8,out=f32@rne:f32", Step { l: 8, signed: false, ..widest }, 1000);
    compare(
        "custom,align=exact,l=32,out=f32@rtz:mxfp8-e5m2",
        Step { l: 32, out: F32, signed: false, ..widest },
        500,
    );
}
