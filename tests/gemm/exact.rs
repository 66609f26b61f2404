//! `exact` against integers of any length and a rounding that looks neighbours up.

use exmy::block::{Axis, BlockFormat, BlockTensor};
use exmy::format::{Format, Value};
use exmy::gemm::{Operand, Spec, gemm, gemm_codes, gemm_into};
use exmy::round::{Overflow, Rounding};
use exmy::slice::{View, ViewMut};
use num_bigint::BigInt;

use crate::{numbers, quantize, random_codes};

/// An integer times a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Dyadic(BigInt, i32);

impl Dyadic {
    pub(crate) fn of(value: Value) -> Option<Self> {
        let Value::Finite { negative, significand, exponent } = value else { return None };
        let integer = BigInt::from(significand);
        Some(Self(if negative { -integer } else { integer }, exponent))
    }

    fn f32(x: f32) -> Self {
        Self::of(Value::from_f32(x)).unwrap()
    }

    fn times(&self, other: &Self) -> Self {
        Self(&self.0 * &other.0, self.1 + other.1)
    }

    fn plus(&self, other: &Self) -> Self {
        let exponent = self.1.min(other.1);
        Self((&self.0 << (self.1 - exponent)) + (&other.0 << (other.1 - exponent)), exponent)
    }

    fn minus(&self, other: &Self) -> Self {
        self.plus(&Self(-&other.0, other.1))
    }

    fn sign(&self) -> i32 {
        match &self.0 {
            x if *x > BigInt::ZERO => 1,
            x if *x < BigInt::ZERO => -1,
            _ => 0,
        }
    }

    /// The code of the nearest value, ties to the even code, or of the next one toward zero;
    /// codes of a sign-magnitude format, infinity beyond the largest.
    pub(crate) fn round(&self, format: Format, mode: Rounding) -> u64 {
        let size = Self(if self.sign() < 0 { -&self.0 } else { self.0.clone() }, self.1);
        let value = |code: u64| Self::of(format.decode(code)).unwrap();
        let (mut low, mut high) = (0, format.max_code());
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if value(middle).minus(&size).sign() <= 0 { low = middle } else { high = middle - 1 }
        }
        // Past the largest value the grid goes on by its last step.
        let below = value(low);
        let above = match low == format.max_code() {
            false => value(low + 1),
            true => below.plus(&below.minus(&value(low - 1))),
        };
        let side = size.minus(&below).minus(&above.minus(&size)).sign();
        let up = match mode {
            Rounding::TiesToEven => side > 0 || (side == 0 && low % 2 == 1),
            Rounding::TowardZero => false,
            _ => unreachable!(),
        };
        let code = if !up {
            low
        } else if low == format.max_code() {
            format.infinity_code(false).unwrap()
        } else {
            low + 1
        };
        code | u64::from(self.sign() < 0) << (format.bits() - 1)
    }
}

/// The sum of the products of two rows of values.
pub(crate) fn dot(a: &[Dyadic], b: &[Dyadic]) -> Dyadic {
    let zero = Dyadic(BigInt::ZERO, 0);
    a.iter().zip(b).fold(zero, |sum, (a, b)| sum.plus(&a.times(b)))
}

fn finite_codes(format: Format, len: usize, seed: u64) -> Vec<u16> {
    let mut codes = random_codes(format, len, seed);
    for code in &mut codes {
        if !format.decode(u64::from(*code)).is_finite() {
            *code = 1;
        }
    }
    codes
}

#[test]
fn any_pair_of_formats() {
    let formats =
        ["e4m3", "e5m2", "e2m1", "int8", "e3m2", "bf16", "f16", "e8m3", "e11m4", "binary8p4sf"];
    let formats = formats.map(|name| name.parse::<Format>().unwrap());
    let outputs = [Format::F32, Format::BF16, Format::F16, Format::E5M2, Format::F64];
    for (n, (x, y)) in formats.iter().flat_map(|x| formats.map(|y| (*x, y))).enumerate() {
        let k = [1, 33, 64, 7][n % 4];
        let (a, b) = (finite_codes(x, 2 * k, n as u64), finite_codes(y, 3 * k, 1000 + n as u64));
        let values = |format: Format, codes: &[u16]| -> Vec<Dyadic> {
            let value = |code: &u16| Dyadic::of(format.decode(u64::from(*code))).unwrap();
            codes.iter().map(value).collect()
        };
        let (p, q) = (values(x, &a), values(y, &b));
        let a = Operand::codes16(x, View::new(&a, 2, k)).unwrap();
        let b = Operand::codes16(y, View::new(&b, 3, k)).unwrap().t();
        for (output, mode) in outputs
            .into_iter()
            .zip([Rounding::TiesToEven, Rounding::TowardZero].into_iter().cycle())
        {
            let spec = Spec::parse("exact").unwrap().with_output(output).with_rounding(mode);
            let codes: Vec<u64> = gemm_codes(a, b, &spec).unwrap();
            for (at, code) in codes.iter().enumerate() {
                let (i, j) = (at / 3, at % 3);
                let sum = dot(&p[i * k..][..k], &q[j * k..][..k]);
                assert_eq!(*code, sum.round(output, mode), "{x} times {y} into {output} by {mode}");
            }
        }
    }
}

/// Element, block scale and tensor scale of every element, as exact factors.
fn block_values(tensor: &BlockTensor) -> Vec<Dyadic> {
    let format = tensor.format();
    let own = Dyadic::f32(tensor.tensor_scale().unwrap_or(1.0));
    let codes = tensor.codes();
    let value = |at: usize| {
        let element = Dyadic::of(format.element.decode(u64::from(codes[at]))).unwrap();
        let scale = Dyadic::of(tensor.scale(at / tensor.cols(), at % tensor.cols())).unwrap();
        element.times(&scale).times(&own)
    };
    (0..codes.len()).map(value).collect()
}

#[test]
fn blocks_with_their_scales_and_alpha_beta_c() {
    let names = [
        "mxfp8-e4m3",
        "mxfp8-e5m2",
        "mxfp6-e3m2",
        "mxfp4",
        "mxint8",
        "nvfp4",
        "nvfp4-16x16",
        "e4m3/7:bf16@nearest",
    ];
    let formats = names.map(|name| name.parse::<BlockFormat>().unwrap());
    for (n, format) in formats.into_iter().enumerate() {
        let other = formats[(n * 3 + 1) % formats.len()];
        let (m, k, cols) = (3, 75, 2); // ragged blocks
        let (x, y) = (numbers(m * k, 7), numbers(cols * k, 8));
        let a = quantize(&x, m, k, Axis::Cols, format);
        let b = quantize(&y, cols, k, Axis::Cols, other);
        let (p, q) = (block_values(&a), block_values(&b));
        let (alpha, beta, c) = (-0.3_f32, 1.7_f32, numbers(m * cols, 9));
        let plain = gemm(&a, Operand::from(&b).t(), &Spec::parse("exact").unwrap()).unwrap();
        let spec = Spec::parse("exact").unwrap().with_alpha(alpha).with_beta(beta);
        let mut full = c.clone();
        let out = ViewMut::new(&mut full, m, cols);
        gemm_into(&a, Operand::from(&b).t(), &spec, out).unwrap();
        for at in 0..m * cols {
            let (i, j) = (at / cols, at % cols);
            let sum = dot(&p[i * k..][..k], &q[j * k..][..k]);
            let expected = sum.round(Format::F32, Rounding::TiesToEven) as u32;
            assert_eq!(plain[at].to_bits(), expected, "{format} times {other}");
            let all = sum.times(&Dyadic::f32(alpha));
            let all = all.plus(&Dyadic::f32(beta).times(&Dyadic::f32(c[at])));
            let expected = all.round(Format::F32, Rounding::TiesToEven) as u32;
            assert_eq!(full[at].to_bits(), expected, "{format} times {other}, with C");
        }
    }
}

/// 2^127 and 2^-149 in one sum, whose rounding hangs on the smallest of them.
#[test]
fn binary32_over_its_whole_range() {
    let (big, tiny) = (f32::from_bits(254 << 23), f32::from_bits(1));
    let by_one = [1.0_f32; 4];
    let sum = |a: [f32; 4]| {
        let (a, b) = (View::new(&a, 1, 4), View::new(&by_one, 4, 1));
        gemm(a, b, &Spec::parse("exact").unwrap()).unwrap()[0]
    };
    assert_eq!(sum([big, tiny, -big, 0.0]), tiny);
    // Half a unit of the last place above 1 is a tie; with 2^-149 it is not.
    let half = f32::EPSILON / 2.0;
    assert_eq!(sum([1.0, half, 0.0, 0.0]), 1.0);
    assert_eq!(sum([1.0, half, tiny, 0.0]), 1.0 + f32::EPSILON);
    assert_eq!(sum([1.0, half, -tiny, 0.0]), 1.0);
    assert_eq!(sum([big, big, -tiny, 0.0]), f32::INFINITY); // 2^128 less 2^-149 is nearest to 2^128
    assert_eq!(sum([-tiny, tiny, 0.0, -0.0]).to_bits(), 0); // a sum of zero is +0
}

#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let cases = [
        ([inf, 1.0], [1.0, 1.0], inf),
        ([inf, 1.0], [-2.0, 1.0], -inf),
        ([inf, inf], [1.0, -1.0], nan),
        ([inf, 1.0], [0.0, 1.0], nan),
        ([nan, 1.0], [0.0, 1.0], nan),
        ([f32::MAX, f32::MAX], [f32::MAX, -f32::MAX], 0.0), // both products are far above 2^128
        ([f32::MAX, 1.0], [f32::MAX, 1.0], inf),
    ];
    for (a, b, expected) in cases {
        let got = gemm(View::new(&a, 1, 2), View::new(&b, 2, 1), &Spec::parse("exact").unwrap());
        let got = got.unwrap()[0];
        assert!(got == expected || (got.is_nan() && expected.is_nan()), "{a:?} {b:?}: {got}");
    }
    // A NaN scale makes its block NaN and no other.
    let scales = vec![127, 255];
    let a = BlockTensor::from_parts(
        BlockFormat::MXFP4,
        Axis::Cols,
        (2, 32),
        vec![0x22; 32],
        scales,
        None,
    );
    let b = quantize(&[1.0; 32], 32, 1, Axis::Rows, BlockFormat::MXFP4);
    let got = gemm(&a.unwrap(), &b, &Spec::parse("exact").unwrap()).unwrap();
    assert!(got[0] == 32.0 && got[1].is_nan());
    // alpha and C take part: infinity times zero, infinity less infinity.
    let one = View::new(&[1.0_f32], 1, 1);
    let by = |alpha: f32, c: f32| {
        let mut c = [c];
        let spec = Spec::parse("exact").unwrap().with_alpha(alpha).with_beta(1.0);
        gemm_into(one, one, &spec, ViewMut::new(&mut c, 1, 1)).unwrap();
        c[0]
    };
    assert!(by(inf, -inf).is_nan() && by(nan, 0.0).is_nan());
    assert_eq!((by(inf, 5.0), by(2.0, -inf), by(0.0, 7.0)), (inf, -inf, 7.0));
}

/// P3109 `BlockDotProduct`: one projection of the exact number, here into 8 bits.
#[test]
fn into_narrow_formats_by_their_rules() {
    let format: Format = "binary8p3sf".parse().unwrap();
    let (a, b) = ([40000.0_f32, 30000.0], [1.0_f32, 1.0]);
    let (a, b) = (View::new(&a, 1, 2), View::new(&b, 2, 1));
    let largest = format.max().to_f32();
    let spec = Spec::parse("exact").unwrap().with_output(format);
    assert_eq!(gemm(a, b, &spec).unwrap(), [largest]);
    let cast = exmy::quantizer::Cast::new(Format::E4M3FN).with_overflow(Overflow::Nan);
    assert!(gemm(a, b, &spec.with_output(cast)).unwrap()[0].is_nan());
}

/// 31 products of 2^60 and one of 1: their integers have 31 bits, their sum more than 64.
#[test]
fn sums_beyond_64_bits() {
    let big = (1_u32 << 30) as f32;
    let x: Vec<f32> = (0..32).map(|k| if k == 7 { 1.0 } else { big }).collect();
    let (a, b) = (View::new(&x, 1, 32), View::new(&x, 32, 1));
    let spec = Spec::parse("exact").unwrap();
    assert_eq!(gemm(a, b, &spec).unwrap(), [31.0 * big * big]);
    // Toward infinity the 1 is seen.
    let above = f32::from_bits((31.0 * big * big).to_bits() + 1);
    assert_eq!(gemm(a, b, &spec.with_rounding(Rounding::TowardPositive)).unwrap(), [above]);
}
