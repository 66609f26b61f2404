//! Arithmetic on blocks of P3109 (Interim Report 4.0, clause 5), against its sentences in exact fractions.

use exmy::block::operations::{
    Block, OperationError, dot, elementwise, max_abs_finite, product, sum,
};
use exmy::format::{Format, Value};
use exmy::math::elementary::Unsupported;
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Profile, Rounded, Rounding, Rules};
use num_bigint::BigInt;

use super::p3109::nearest;

/// A fraction; the divisor is positive.
#[derive(Clone, Debug)]
struct Fraction(BigInt, BigInt);

impl Fraction {
    fn of(operand: Operand) -> Option<Self> {
        let Value::Finite { negative, significand, exponent } = operand.value() else {
            return None;
        };
        let size = BigInt::from(significand);
        let size = if negative { -size } else { size };
        let power = |places: i32| BigInt::from(1) << places.max(0);
        Some(Self(size * power(exponent), power(-exponent)))
    }

    fn times(&self, other: &Self) -> Self {
        Self(&self.0 * &other.0, &self.1 * &other.1)
    }

    fn plus(&self, other: &Self) -> Self {
        Self(&self.0 * &other.1 + &other.0 * &self.1, &self.1 * &other.1)
    }

    fn over(&self, other: &Self) -> Self {
        let zero = BigInt::from(0);
        let sign = if other.0 < zero { -1 } else { 1 };
        Self(&self.0 * &other.1 * sign, &self.1 * &other.0 * sign)
    }

    fn minus(&self) -> Self {
        Self(-&self.0, self.1.clone())
    }

    /// The code nearest to it, ties to even, the largest for what is beyond.
    fn code(&self, format: Format) -> u64 {
        let zero = BigInt::from(0);
        let negative = self.0 < zero;
        let size = if negative { -&self.0 } else { self.0.clone() };
        nearest(format, negative, &size, &self.1)
    }
}

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

fn saturating(to: Format) -> Context {
    Context::new(to, Profile::P3109.rules(to).with_overflow(Overflow::Finite))
}

fn code(format: Format, x: f32) -> u64 {
    saturating(format).convert(Operand::f32(x)).code
}

/// What the standard asks of everybody: ScaledAdd, ScaledSubtract and ScaledMultiply of elements with
/// scales that are powers of two, into elements and binary32; and with other scales of the result, FMA
/// and quotients.
#[test]
fn results_are_those_of_fractions() {
    let power = format("binary8p1uf");
    let one = Operand::new(power, power.one_code().unwrap());
    let (e4m3, e5m2, e2m1) = (format("binary8p4se"), format("binary8p3se"), format("binary4p2sf"));
    let results = [(e4m3, one), (e5m2, one), (format("binary6p3sf"), Operand::new(power, 0x83))];
    let results = results.into_iter().chain([
        (e4m3, Operand::new(format("binary8p4uf"), 0x4B)),
        (e5m2, Operand::new(format("binary6p3sf"), 0x2D)), // a negative scale
        (e2m1, Operand::f32(0.1)),
    ]);
    let mut count = 0;
    for (to, scale) in results {
        let context = saturating(to);
        let divisor = Fraction::of(scale).unwrap();
        for (x, y, step) in [(e2m1, e2m1, 1), (e4m3, e2m1, 7), (e5m2, e4m3, 31)] {
            for pair in (0..x.code_count() as u64 * y.code_count() as u64).step_by(step) {
                let (a, b) = (pair % x.code_count() as u64, pair / x.code_count() as u64);
                // Scales from 2^-7 to 2^7.
                let scales = [one.code - 7 + pair % 15, one.code + 7 - pair % 13];
                let scales = scales.map(|code| Operand::new(power, code));
                let values = [Operand::new(x, a), Operand::new(y, b)].map(Fraction::of);
                let [Some(p), Some(q)] = values else { continue };
                let (p, q) = (
                    p.times(&Fraction::of(scales[0]).unwrap()),
                    q.times(&Fraction::of(scales[1]).unwrap()),
                );
                let (a, b) = ([a], [b]);
                let blocks = [Block::new(scales[0], x, &a), Block::new(scales[1], y, &b)];
                type Of = fn(&Context, [Operand; 2]) -> Rounded;
                let cases: [(&str, Of, Option<Fraction>); 6] = [
                    ("add", |to, [x, y]| to.add(x, y), Some(p.plus(&q))),
                    ("sub", |to, [x, y]| to.sub(x, y), Some(p.plus(&q.minus()))),
                    ("mul", |to, [x, y]| to.mul(x, y), Some(p.times(&q))),
                    ("fma", |to, [x, y]| to.fma(x, y, x), Some(p.times(&q).plus(&p))),
                    ("faa", |to, [x, y]| to.faa(x, y, y), Some(p.plus(&q).plus(&q))),
                    (
                        "div",
                        |to, [x, y]| to.div(x, y),
                        (q.0 != BigInt::from(0)).then(|| p.over(&q)),
                    ),
                ];
                for (name, operation, exact) in cases {
                    let found =
                        elementwise(blocks, scale, context, &[], |to, x| Ok(operation(to, x)))
                            .unwrap()[0]
                            .code;
                    let Some(exact) = exact else {
                        // P3109 divides nothing by zero.
                        assert!(to.decode(found).is_nan(), "{name} {a:?} {b:?}");
                        continue;
                    };
                    let want = exact.over(&divisor).code(to);
                    assert_eq!(found, want, "{name} {x} {a:?} {y} {b:?} over {scale:?} to {to}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 60_000, "{count}");
}

/// A function of the crate, and binary64's.
type Pair = (fn(&Context, Operand) -> Result<Rounded, Unsupported>, fn(f64) -> f64);

/// Functions whose results are no fractions, into elements of a scale that is no power of two.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the last digits of the machine's functions decide nothing here"
)]
fn functions_are_rounded_once() {
    let (to, element) = (format("binary8p4se"), format("binary8p3se"));
    let (scale, of) = (Operand::new(format("binary8p4uf"), 0x4B), Operand::f32(0.375));
    let divisor = scale.format.to_f64(scale.code);
    let codes: Vec<u64> = (0..128).filter(|code| element.to_f64(*code).is_finite()).collect();
    let block = Block::new(of, element, &codes);
    let functions: [Pair; 3] = [
        (|to, x| to.exp(x), f64::exp),
        (|to, x| Ok(to.sqrt(x)), f64::sqrt),
        (|to, x| to.tanh(x), f64::tanh),
    ];
    for (function, near) in functions {
        let found =
            elementwise([block], scale, saturating(to), &[], |to, [x]| function(to, x)).unwrap();
        for (code, found) in codes.iter().zip(found) {
            let exact = near(element.to_f64(*code) * 0.375) / divisor;
            let distance = |code: u64| (to.to_f64(code) - exact.min(224.0)).abs();
            let least = (0..=to.max_code()).map(distance).fold(f64::INFINITY, f64::min);
            assert!(distance(found.code) <= least * (1.0 + 1e-9) + 1e-300, "{exact} {found:?}");
        }
    }
}

#[test]
fn sums_products_and_dot_products_are_exact() {
    let element = format("binary8p4se");
    let single = Context::new(Format::F32, Rules::DEFAULT);
    let codes: Vec<u64> = (0..8).map(|i| (i * 29 + 3) % 120).collect();
    let others: Vec<u64> = (0..8).map(|i| 128 + (i * 53 + 1) % 120).collect();
    let scales = [Operand::f32(0.1), Operand::f32(-3e5)];
    let (x, y) = (Block::new(scales[0], element, &codes), Block::new(scales[1], element, &others));
    let of = |scale: Operand, codes: &[u64]| -> Vec<Fraction> {
        let scale = Fraction::of(scale).unwrap();
        let value = |code: &u64| Fraction::of(Operand::new(element, *code)).unwrap().times(&scale);
        codes.iter().map(value).collect()
    };
    let (p, q) = (of(scales[0], &codes), of(scales[1], &others));
    let zero = Fraction(BigInt::from(0), BigInt::from(1));
    let total = p.iter().fold(zero.clone(), |all, x| all.plus(x));
    // Fractions are compared with a format of few codes, whose rounding is found by looking at all of them.
    let few = saturating(format("binary10p6se"));
    assert_eq!(sum(x, few).unwrap().code, total.code(few.to));
    let all = p.iter().skip(1).fold(p[0].clone(), |all, x| all.times(x));
    assert_eq!(product(x, few).unwrap().code, all.code(few.to));
    let pairs = p.iter().zip(&q).fold(zero, |all, (x, y)| all.plus(&x.times(y)));
    let wide = saturating(Format::p3109(12, 6, true, true).unwrap());
    assert_eq!(dot(x, y, wide).unwrap().code, pairs.code(wide.to));
    // Of nothing: 0 and 1.
    let none = Block::new(scales[0], element, &[]);
    let value = |found: Result<Rounded, _>| f32::from_bits(found.unwrap().code as u32);
    assert_eq!((value(sum(none, single)), value(product(none, single))), (0.0, 1.0));
    // What cancels leaves the rest, however small; squares of 3e30 are beyond binary32.
    let codes = [1.0_f32, 3e30, -3e30].map(|x| u64::from(x.to_bits()));
    let block = Block::new(Operand::f32(1.0), Format::F32, &codes);
    assert_eq!(value(sum(block, single)), 1.0);
    assert_eq!(value(dot(block, block, single)), f32::INFINITY);
}

#[test]
fn special_values_are_those_of_the_report() {
    let (e4m3, power) = (format("binary8p4se"), format("binary8p1uf"));
    let (inf, nan) = (e4m3.infinity_code(false).unwrap(), e4m3.nan_code().unwrap());
    let codes = [code(e4m3, 3.0), code(e4m3, -3.0), 0, inf, inf | 0x80, nan];
    let one = Operand::new(power, power.one_code().unwrap());
    let block = Block::new(one, e4m3, &codes);
    let to = Context::new(e4m3, Profile::P3109.rules(e4m3));
    let by = |scale: Operand| -> Vec<f32> {
        let found = elementwise([block], scale, to, &[], |to, [x]| Ok(to.convert(x))).unwrap();
        found.iter().map(|found| e4m3.to_f32(found.code)).collect()
    };
    let same = |found: Vec<f32>, want: [f32; 6]| {
        let is_same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(found.iter().zip(&want).all(is_same), "{found:?} {want:?}");
    };
    let (i, n) = (f32::INFINITY, f32::NAN);
    same(by(Operand::f32(2.0)), [1.5, -1.5, 0.0, i, -i, n]);
    // NOTE 1 and 2 of 5.1.2: no number is left but 0, or the signs.
    same(by(Operand::f32(0.0)), [0.0, 0.0, 0.0, 0.0, 0.0, n]);
    same(by(Operand::f32(i)), [1.0, -1.0, 0.0, 1.0, -1.0, n]);
    same(by(Operand::f32(-i)), [-1.0, 1.0, 0.0, -1.0, 1.0, n]);
    same(by(Operand::f32(n)), [n; 6]);
    // Infinity times zero, and infinities of both signs.
    let zero = Block::new(Operand::f32(0.0), e4m3, &codes[3..4]);
    assert!(e4m3.decode(sum(zero, to).unwrap().code).is_nan());
    assert!(e4m3.decode(sum(Block::new(one, e4m3, &codes[3..5]), to).unwrap().code).is_nan());
    assert_eq!(product(Block::new(one, e4m3, &codes[3..5]), to).unwrap().code, inf | 0x80);
    assert_eq!(sum(Block::new(one, e4m3, &codes[..4]), to).unwrap().code, inf);
}

/// NOTE 1 to 3 of 5.2.3.
#[test]
fn the_scale_is_the_largest_finite_magnitude() {
    let scales = format("binary8p4uf");
    let to = Context::new(scales, Profile::P3109.rules(scales));
    let of = |x: &[f32]| {
        let x: Vec<Operand> = x.iter().map(|x| Operand::f32(*x)).collect();
        scales.to_f32(max_abs_finite(&x, to).unwrap().code)
    };
    let (i, n) = (f32::INFINITY, f32::NAN);
    assert_eq!(of(&[1.0, -5.0, i, n, 0.25]), 5.0);
    assert!(of(&[n, n]).is_nan());
    // A finite format has no infinity, so the largest number stands for it.
    assert_eq!(of(&[n, -i]), scales.to_f32(scales.max_code()));
    assert_eq!(of(&[0.0, 0.0]), 0.0);
}

#[test]
fn what_cannot_be_rounded_once_is_refused() {
    let (e4m3, codes) = (Format::E4M3FN, [0x38, 0x40]);
    let one = Operand::f32(1.0);
    let block = Block::new(one, e4m3, &codes);
    let to = Context::new(e4m3, Rules::DEFAULT);
    let add = |to: &Context, [x, y]: [Operand; 2]| Ok(to.add(x, y));
    let error = elementwise([block, Block::new(one, e4m3, &codes[..1])], one, to, &[], add);
    assert_eq!(error, Err(OperationError::Lengths { first: 2, other: 1 }));
    let wide = Block::new(Operand::f64(1.0), e4m3, &codes);
    let error = elementwise([block, wide], one, to, &[], add);
    assert_eq!(error, Err(OperationError::Wide { scale: Format::F64, element: e4m3 }));
    let double = Context::new(Format::F64, Rules::DEFAULT);
    let error = elementwise([block, block], Operand::f32(3.0), double, &[], add);
    assert_eq!(error, Err(OperationError::Fine { result: Format::F64, scale: Format::F32 }));
    let three = elementwise([block, block], Operand::f32(4.0), double, &[], add).unwrap();
    assert_eq!([three[0].code, three[1].code], [0.5_f64, 1.0].map(f64::to_bits));
    // One word an element: of 0.5 between 1 and 1.125 a word of 0 never goes up.
    let stochastic = Context::new(e4m3, Rules::DEFAULT.with_rounding(Rounding::stochastic(8)));
    let error = elementwise([block, block], Operand::f32(3.0), stochastic, &[1], add);
    assert_eq!(error, Err(OperationError::Words { elements: 2, words: 1 }));
    let words = [0, u32::MAX];
    let found = elementwise([block, block], Operand::f32(3.0), stochastic, &words, add).unwrap();
    // 2/3 lies between 0.625 and 0.6875, 4/3 between 1.25 and 1.375.
    let found = [found[0].code, found[1].code].map(|code| e4m3.to_f32(code));
    assert_eq!(found, [0.625, 1.375]);
    assert_eq!(sum(block, stochastic), Err(OperationError::Words { elements: 1, words: 0 }));
    assert!(sum(block, stochastic.with_random(0)).is_ok());
}
