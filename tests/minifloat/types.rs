//! The types are the run-time formats of their names: constants, classes, order and negatives of all codes.

use std::cmp::Ordering;
use std::num::FpCategory;

use exmy::format::{Format, Sign};
use exmy::minifloat::*;
use num_traits::Bounded;

/// What a typed scalar says of itself and of a code, so that what is checked is compiled once and not for
/// each of the types.
struct Typed {
    format: Format,
    min: u64,
    max: f64,
    min_positive: f64,
    epsilon: Option<f64>,
    min_normal: Option<f64>,
    total_cmp: fn(u64, u64) -> Ordering,
    says: fn(u64) -> Says,
}

struct Says {
    value: f64,
    is_finite: bool,
    is_nan: bool,
    is_infinite: bool,
    is_zero: bool,
    class: FpCategory,
}

fn at<F: FloatFormat>(code: u64) -> Minifloat<F> {
    Minifloat::from_bits(F::Bits::from_u64(code))
}

fn bits<F: FloatFormat>(x: Minifloat<F>) -> u64 {
    x.to_bits().to_u64()
}

fn agrees<F: FloatFormat>(name: &str) {
    let format: Format = name.parse().unwrap();
    assert_eq!(Minifloat::<F>::FORMAT, format, "{name}");
    assert_eq!(F::Bits::WIDTH, format.storage_bits(), "{name}");
    assert_eq!(size_of::<Minifloat<F>>() * 8, F::Bits::WIDTH as usize);
    assert_eq!(bits(Minifloat::<F>::MAX), format.max_code(), "{name}");
    assert_eq!(Minifloat::<F>::NAN.map(bits), format.nan_code(), "{name}");
    assert_eq!(Minifloat::<F>::INFINITY.map(bits), format.infinity_code(false), "{name}");
    if format.bits() > 16 {
        return;
    }
    assert_eq!(bits(Minifloat::<F>::MIN), bits(Minifloat::<F>::min_value()), "{name}");
    let typed = Typed {
        format,
        min: bits(Minifloat::<F>::MIN),
        max: Minifloat::<F>::MAX.to_f64(),
        min_positive: Minifloat::<F>::MIN_POSITIVE.to_f64(),
        epsilon: Minifloat::<F>::EPSILON.map(Minifloat::to_f64),
        min_normal: Minifloat::<F>::MIN_NORMAL.map(Minifloat::to_f64),
        total_cmp: |a, b| at::<F>(a).total_cmp(&at(b)),
        says: |code| {
            let x = at::<F>(code);
            Says {
                value: x.to_f64(),
                is_finite: x.is_finite(),
                is_nan: x.is_nan(),
                is_infinite: x.is_infinite(),
                is_zero: x.is_zero(),
                class: x.classify(),
            }
        },
    };
    typed.agrees(name);
}

impl Typed {
    fn agrees(&self, name: &str) {
        let Self { format, .. } = *self;
        let value = |code: u64| (self.says)(code).value;
        let finite = || format.codes().filter(|&code| (self.says)(code).is_finite);
        let above = |bound: f64| finite().filter(move |&code| value(code) > bound);
        let order = |a: &u64, b: &u64| (self.total_cmp)(*a, *b);
        assert_eq!(self.min, finite().min_by(order).unwrap(), "{name}");
        assert_eq!(self.max, value(finite().max_by(order).unwrap()), "{name}");
        assert_eq!(self.min_positive, value(above(0.0).min_by(order).unwrap()), "{name}");
        // Epsilon by its definition: the next number after 1, less 1, if that is a number.
        let next = above(1.0).min_by(order).map(value);
        let epsilon = next
            .filter(|_| finite().any(|code| value(code) == 1.0))
            .and_then(|next| finite().map(value).find(|x| *x == next - 1.0));
        assert_eq!(self.epsilon, epsilon, "{name}");
        for code in format.codes() {
            let x = (self.says)(code);
            assert_eq!(x.value.to_bits(), format.to_f64(code).to_bits(), "{name} {code:#x}");
            assert_eq!(x.is_nan, x.value.is_nan());
            assert_eq!(x.is_infinite, x.value.is_infinite());
            assert_eq!(x.is_zero, x.value == 0.0);
            if x.is_finite && !x.is_zero {
                let integer = format.sign() == Sign::TwosComplement;
                let normal = integer || self.min_normal.is_some_and(|n| x.value.abs() >= n);
                assert_eq!(x.class == FpCategory::Normal, normal, "{name} {code:#x}");
            }
        }
    }
}

/// Every number's negative, where the format is signed.
fn negates<F: FloatFormat<Signed = Yes>>() {
    let min = bits(Minifloat::<F>::MIN);
    negates_by(F::FORMAT, min, |code| bits(-at::<F>(code)), |code| bits(at::<F>(code).abs()));
}

fn negates_by(format: Format, min: u64, neg: fn(u64) -> u64, abs: fn(u64) -> u64) {
    let value = |code| format.to_f64(code);
    for code in format.codes() {
        let x = value(code);
        let least = format.sign() == Sign::TwosComplement && code == min;
        if x.is_nan() {
            assert!(value(neg(code)).is_nan() && value(abs(code)).is_nan());
            let alone = format.nan_code() == Some(code) && !format.nan_has_sign();
            assert_eq!(neg(code) == code, alone, "{format} {code:#x}");
        } else if least {
            assert_eq!([neg(code), abs(code)], [format.max_code(); 2], "{format}");
        } else {
            assert_eq!(value(neg(code)), -x, "{format} {code:#x}");
            assert_eq!(value(abs(code)), x.abs(), "{format} {code:#x}");
            let zero = x == 0.0 && !format.has_negative_zero();
            assert_eq!(neg(code) == code, zero, "{format} {code:#x}");
        }
        assert_eq!(neg(neg(code)) == code, !least, "{format} {code:#x}");
    }
}

macro_rules! agree {
    ($($name:literal: $e:literal $m:literal $class:ident;)*) => {
        $(
            agrees::<ExMy<$e, $m, $class>>($name);
            if $e + $m < 16 {
                negates::<ExMy<$e, $m, $class>>();
            }
        )*
    };
}

#[test]
fn types_are_the_formats() {
    agree! {
        "e5m2": 5 2 Ieee; "e4m3-ieee": 4 3 Ieee; "e3m4": 3 4 Ieee; "e1m6": 1 6 Ieee; "e6m1": 6 1 Ieee;
        "e4m3": 4 3 Fn; "e2m1fnan": 2 1 Fn; "e7m0fn": 7 0 Fn; "e0m7fn": 0 7 Fn;
        "e4m3fnuz": 4 3 Fnuz; "e5m2fnuz": 5 2 Fnuz; "e1m0fnuz": 1 0 Fnuz;
        "e3m2": 3 2 Finite; "e2m3": 2 3 Finite; "e2m1": 2 1 Finite; "e3m0": 3 0 Finite;
        "e0m1": 0 1 Finite; "e5m10": 5 10 Ieee; "e8m7": 8 7 Ieee; "e8m3": 8 3 Ieee;
        "e9m6": 9 6 Ieee; "e10m0": 10 0 Finite; "e11m4": 11 4 Ieee; "e6m9fn": 6 9 Fn;
        "tf32": 8 10 Ieee; "e8m13": 8 13 Ieee; "f32": 8 23 Ieee; "f64": 11 52 Ieee;
    }
    agrees::<E8M0Format>("e8m0");
    agrees::<Ue4m3Format>("ue4m3");
    agrees::<Ue5m3Format>("ue5m3");
    agrees::<Int8Format>("int8");
    negates::<Int8Format>();
    agrees::<E4M3B11FnuzFormat>("e4m3b11fnuz");
    agrees::<Binary8p3seFormat>("binary8p3se");
    agrees::<Binary8p4seFormat>("binary8p4se");
    agrees::<Binary8p5seFormat>("binary8p5se");
    agrees::<Binary8p1ufFormat>("binary8p1uf");
    agrees::<Binary4p2sfFormat>("binary4p2sf");
    negates::<Binary8p3seFormat>();
}

exmy::define_format! {
    /// Every option of the macro.
    pub(crate) struct Custom(u16): e6m9, bias 29, specials Fn
}
exmy::define_format! { struct Scale(u8): ue5m3, specials Fn }

#[test]
fn declared_formats() {
    agrees::<Custom>("e6m9b29fn");
    agrees::<Scale>("ue5m3");
}
