//! The short ways of the typed scalar against the definition, code by code.
//!
//! `Format::encode_by` and `math::Context` are the definition and have oracles of their own; here
//! the typed scalar's own paths must give the very same codes, NaN included.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::minifloat::*;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Profile, Rounded, Rounding, Rules};

fn code<F: FloatFormat>(x: Minifloat<F>) -> u64 {
    x.to_bits().to_u64()
}

fn at<F: FloatFormat>(code: u64) -> Minifloat<F> {
    Minifloat::from_bits(F::Bits::from_u64(code))
}

fn narrows_64<F: FloatFormat>(x: f64) {
    for x in [x, -x] {
        let plain = F::FORMAT.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
        assert_eq!(code(Minifloat::<F>::from_f64(x)), plain, "{} {x:e}", F::FORMAT);
    }
}

fn narrows_32<F: FloatFormat>(x: f32) {
    for x in [x, -x] {
        let plain = F::FORMAT.encode_f32(x, Rounding::TiesToEven, Overflow::None, 0).code;
        assert_eq!(code(Minifloat::<F>::from_f32(x)), plain, "{} {x:e}", F::FORMAT);
    }
}

/// Every `step`-th value of the format, the midpoint above it, and the wider format's neighbours of
/// both; then the ends of the wider formats.
fn conversions<F: FloatFormat>(step: usize) {
    let format = F::FORMAT;
    let bits = |x: f64| x.to_bits();
    for code in format.codes().step_by(step) {
        let x = at::<F>(code);
        let (narrow, wide) = (format.to_f32(code), format.to_f64(code));
        assert_eq!(x.to_f32().to_bits(), narrow.to_bits(), "{format} {code:#x}");
        assert_eq!(bits(x.to_f64()), bits(wide), "{format} {code:#x}");
        assert_eq!(x.is_nan(), wide.is_nan(), "{format} {code:#x}");
        if !format.is_exact_in_f64() || !wide.is_finite() || wide < 0.0 {
            continue;
        }
        assert_eq!(x.is_zero(), wide == 0.0, "{format} {code:#x}");
        let next = format.to_f64(code + 1);
        let midpoint = if next > wide && next.is_finite() {
            wide / 2.0 + next / 2.0
        } else {
            // Past the largest: its own distance from the value below, once more.
            wide + (wide - format.to_f64(code.saturating_sub(1))) / 2.0
        };
        for x in [wide, midpoint] {
            for x in [x.next_down(), x, x.next_up()] {
                narrows_64::<F>(x);
            }
            let x = x as f32;
            for x in [x.next_down(), x, x.next_up()] {
                narrows_32::<F>(x);
            }
        }
    }
    for x in [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, 1.0, 3e38] {
        narrows_64::<F>(x);
        narrows_32::<F>(x as f32);
    }
    narrows_32::<F>(f32::MAX);
    narrows_32::<F>(f32::MIN_POSITIVE);
    narrows_32::<F>(f32::from_bits(1));
}

macro_rules! each {
    ($check:ident($step:expr) $class:ident: $($e:literal [$($m:literal)*])*) => {
        $($($check::<ExMy<$e, $m, $class>>($step);)*)*
    };
}

#[test]
fn conversions_of_all_shapes_of_8_bits() {
    each! { conversions(1) Ieee:
        1 [1 2 3 4 5 6] 2 [1 2 3 4 5] 3 [1 2 3 4] 4 [1 2 3] 5 [1 2] 6 [1]
    }
    macro_rules! each_class {
        ($($class:ident)*) => {$(
            each! { conversions(1) $class:
                0 [2 3 4 5 6 7] 1 [1 2 3 4 5 6] 2 [0 1 2 3 4 5] 3 [0 1 2 3 4] 4 [0 1 2 3] 5 [0 1 2]
                6 [0 1] 7 [0]
            }
        )*};
    }
    each_class!(Fn Fnuz Finite);
    conversions::<E8M0Format>(1);
    conversions::<Int8Format>(1);
    conversions::<Ue4m3Format>(1);
    conversions::<Ue5m3Format>(1);
    conversions::<E4M3B11FnuzFormat>(1);
    conversions::<Binary8p3seFormat>(1);
    conversions::<Binary8p4seFormat>(1);
    conversions::<Binary8p5seFormat>(1);
    conversions::<Binary8p1ufFormat>(1);
    conversions::<Binary4p2sfFormat>(1);
    conversions::<Unsigned5>(1);
}

exmy::define_format! { struct Low(u8): e4m3, bias 140 }
exmy::define_format! { struct High(u8): e4m3, bias -130 }
exmy::define_format! { struct Lowest(u16): e5m4, bias 1070, specials Fn }
exmy::define_format! { struct Highest(u16): e4m6, bias -1015 }
exmy::define_format! { struct Unsigned5(u8): binary5p3ue }
exmy::define_format! { struct Unsigned(u8): ue5m3, bias 130, specials Fn }

#[test]
fn conversions_of_wider_shapes() {
    each! { conversions(1) Ieee: 5 [10] 8 [3 7] }
    each! { conversions(5) Ieee:
        1 [14] 2 [13] 3 [12] 4 [11] 6 [9] 7 [8] 8 [4 5 6] 9 [6] 10 [5] 11 [4] 12 [3] 13 [2] 14 [1]
    }
    each! { conversions(7) Fn: 0 [15] 1 [14] 4 [11] 5 [10] 8 [7] 9 [6] 11 [4] 15 [0] }
    each! { conversions(7) Fnuz: 0 [15] 4 [11] 5 [10] 8 [7] 11 [4] 15 [0] }
    each! { conversions(7) Finite: 0 [15] 4 [11] 5 [10] 8 [7] 10 [5] 11 [4] 15 [0] }
    each! { conversions(9) Ieee: 8 [10] }
    each! { conversions(201) Ieee: 8 [13] }
    each! { conversions(1 << 17) Ieee: 8 [23] }
    each! { conversions(1 << 48) Ieee: 11 [52] }
    conversions::<Low>(1);
    conversions::<High>(1);
    conversions::<Lowest>(1);
    conversions::<Highest>(1);
    conversions::<Unsigned>(1);
}

/// The definition's context, found without the type: P3109's tables for its formats, one NaN.
fn context(format: Format) -> Context {
    let p3109 = format.to_string().starts_with("binary");
    let rules = if p3109 { Profile::P3109.rules(format) } else { Rules::DEFAULT };
    let nan = rules.nan.with_keep_sign(false);
    Context::new(format, rules.with_nan(nan))
}

type Unary<F> = (&'static str, fn(Minifloat<F>) -> Minifloat<F>, fn(&Context, Operand) -> Rounded);

fn unary<F: FloatFormat>(codes: impl Iterator<Item = u64>) {
    let context = context(F::FORMAT);
    let operations: [Unary<F>; 5] = [
        ("sqrt", Minifloat::sqrt, Context::sqrt),
        ("recip", Minifloat::recip, Context::recip),
        ("rsqrt", Minifloat::rsqrt, Context::rsqrt),
        ("next_up", Minifloat::next_up, Context::next_up),
        ("abs", Minifloat::abs, Context::abs),
    ];
    for x in codes {
        for (name, fast, plain) in operations {
            let expected = plain(&context, Operand::new(F::FORMAT, x)).code;
            assert_eq!(code(fast(at::<F>(x))), expected, "{} {name} {x:#x}", F::FORMAT);
        }
    }
}

type Binary<F> = (
    &'static str,
    fn(Minifloat<F>, Minifloat<F>) -> Minifloat<F>,
    fn(&Context, Operand, Operand) -> Rounded,
);

fn binary<F: FloatFormat>(pairs: impl Iterator<Item = (u64, u64)>) {
    let format = F::FORMAT;
    let context = context(format);
    let operations: [Binary<F>; 5] = [
        ("+", |a, b| a + b, Context::add),
        ("-", |a, b| a - b, Context::sub),
        ("*", |a, b| a * b, Context::mul),
        ("/", |a, b| a / b, Context::div),
        ("%", |a, b| a % b, Context::fmod),
    ];
    for (a, b) in pairs {
        let (x, y) = (at::<F>(a), at::<F>(b));
        let (left, right) = (Operand::new(format, a), Operand::new(format, b));
        for (name, fast, plain) in operations {
            let expected = plain(&context, left, right).code;
            assert_eq!(code(fast(x, y)), expected, "{format} {a:#x} {name} {b:#x}");
        }
        let order = left.compare(right);
        assert_eq!((x.partial_cmp(&y), x == y), (order, order == Some(std::cmp::Ordering::Equal)));
    }
}

fn ternary<F: FloatFormat>(triples: impl Iterator<Item = (u64, u64, u64)>) {
    let format = F::FORMAT;
    let context = context(format);
    for (a, b, c) in triples {
        let [x, y, z] = [a, b, c].map(|code| Operand::new(format, code));
        let expected = context.fma(x, y, z).code;
        let fast = code(at::<F>(a).mul_add(at(b), at(c)));
        assert_eq!(fast, expected, "{format} {a:#x} * {b:#x} + {c:#x}");
    }
}

/// Pseudorandom codes of a format.
fn random<F: FloatFormat>(count: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let random = Philox::new(7, Stream::new("minifloat_fast"));
    let mask = *F::FORMAT.codes().end();
    let word =
        move |i: u64| u64::from(random.word(2 * i)) << 32 | u64::from(random.word(2 * i + 1));
    let code = move |i| word(i) >> 7 & mask;
    (0..count).map(move |i| (code(3 * i), code(3 * i + 1), code(3 * i + 2)))
}

/// Everything that a machine float might do differently: all codes and pairs, and as many triples
/// as there is time for.
fn arithmetic<F: FloatFormat>(_: usize) {
    let codes = F::FORMAT.codes();
    unary::<F>(codes.clone());
    binary::<F>(codes.clone().flat_map(|a| codes.clone().map(move |b| (a, b))));
    if F::FORMAT.bits() <= 6 {
        let pairs = codes.clone().flat_map(|a| codes.clone().map(move |b| (a, b)));
        ternary::<F>(pairs.flat_map(|(a, b)| codes.clone().map(move |c| (a, b, c))));
    } else {
        ternary::<F>(random::<F>(150_000));
    }
}

#[test]
fn arithmetic_of_small_formats() {
    each! { arithmetic(1) Fn: 4 [3] 2 [1 5] 0 [5] 7 [0] }
    each! { arithmetic(1) Ieee: 5 [2] 4 [3] 3 [4] 1 [4] 6 [1] }
    each! { arithmetic(1) Fnuz: 4 [3] 5 [2] 3 [2] }
    each! { arithmetic(1) Finite: 3 [2] 2 [3] 2 [1] 3 [0] 0 [5] }
    arithmetic::<E8M0Format>(1);
    arithmetic::<Int8Format>(1);
    arithmetic::<Ue4m3Format>(1);
    arithmetic::<Ue5m3Format>(1);
    arithmetic::<E4M3B11FnuzFormat>(1);
    arithmetic::<Binary8p3seFormat>(1);
    arithmetic::<Binary8p4seFormat>(1);
    arithmetic::<Binary8p1ufFormat>(1);
    arithmetic::<Binary4p2sfFormat>(1);
    arithmetic::<Unsigned5>(1);
    arithmetic::<Low>(1);
    arithmetic::<High>(1);
}

/// All codes of 16-bit formats, random pairs and triples, and pairs close to each other, whose sums
/// cancel and whose quotients are near one.
fn wide_arithmetic<F: FloatFormat>(count: usize) {
    unary::<F>(F::FORMAT.codes().step_by(if F::FORMAT.bits() > 16 { 997 } else { 1 }));
    binary::<F>(random::<F>(count as u64).map(|(a, b, _)| (a, b)));
    let mask = *F::FORMAT.codes().end();
    binary::<F>(random::<F>(count as u64).map(|(a, b, c)| (a, a ^ b & 0xFF ^ c & 1 << 15 & mask)));
    // Products and quotients around the smallest number, where a wider format may have no more
    // bits to spare than this one.
    let lowest = at::<F>(F::FORMAT.min_positive_code()).to_f64();
    let around = move |c: u64| lowest * (1.0 + (c & 0xFF) as f64 / 32.0);
    let partner = |x: f64| code(Minifloat::<F>::from_f64(x)) & mask;
    binary::<F>(random::<F>(count as u64).flat_map(|(a, b, c)| {
        let x = at::<F>(a).to_f64();
        [(a, partner(around(c) / x) ^ b & 3), (a, partner(x / around(c)) ^ b & 3)]
    }));
    ternary::<F>(random::<F>(count as u64));
    // A product and its negative, nearly.
    ternary::<F>(random::<F>(count as u64).map(|(a, b, c)| {
        let product = -at::<F>(a).to_f64() * at::<F>(b).to_f64();
        let product = code(Minifloat::<F>::from_f64(product));
        (a, b, product.wrapping_add(c & 7).wrapping_sub(3) & mask)
    }));
}

#[test]
fn arithmetic_of_wide_formats() {
    each! { wide_arithmetic(60_000) Ieee: 5 [10] 8 [7 3] }
    each! { wide_arithmetic(20_000) Ieee: 6 [9] 7 [8] 9 [6] 10 [5] 14 [1] 8 [10 13] }
    each! { wide_arithmetic(20_000) Fn: 6 [9] 11 [4] }
    each! { wide_arithmetic(20_000) Fnuz: 5 [10] }
    each! { wide_arithmetic(20_000) Finite: 4 [11] }
    wide_arithmetic::<Lowest>(5_000);
    wide_arithmetic::<Highest>(5_000);
}

/// TF32 products just above half of the smallest number, which binary32 would round to that half:
/// `(2^21 + d) * 2^-158` with `0 < d <= 2^8`.
#[test]
fn products_that_binary32_would_round_twice() {
    let scale = f64::from_bits((1023 - 79) << 52); // 2^-79
    let mut count = 0;
    for a in 1025..2048_u32 {
        let b = (1 << 21) / a + 1;
        if b >= 2048 || a * b - (1 << 21) > 1 << 8 {
            continue;
        }
        let [x, y] = [a, b].map(|n| Tf32::from_f64(f64::from(n) * scale));
        assert_eq!((x * y).to_bits(), 1, "{a} {b}");
        assert_eq!((-x * y).to_bits(), 0x4_0001, "{a} {b}");
        count += 1;
    }
    assert_eq!(count, 160);
}

/// The functions with a short way, for all codes.
fn functions<F: FloatFormat<Elementary = Yes>>(step: usize) {
    let context = context(F::FORMAT);
    for x in F::FORMAT.codes().step_by(step) {
        let operand = Operand::new(F::FORMAT, x);
        let (exp, exp2) = (context.exp(operand).unwrap().code, context.exp2(operand).unwrap().code);
        let found = (code(at::<F>(x).exp()), code(at::<F>(x).exp2()));
        assert_eq!(found, (exp, exp2), "{} exp, exp2 of {x:#x}", F::FORMAT);
    }
}

#[test]
fn functions_of_all_codes() {
    each! { functions(1) Fn: 4 [3] 2 [5] 0 [5] }
    each! { functions(1) Ieee: 5 [2] 4 [3] 3 [4] 5 [10] 8 [3] }
    each! { functions(3) Ieee: 8 [7] 4 [11] }
    each! { functions(1) Fnuz: 4 [3] 5 [2] }
    each! { functions(1) Finite: 3 [2] 2 [3] 2 [1] }
    functions::<E8M0Format>(1);
    functions::<Int8Format>(1);
    functions::<Ue4m3Format>(1);
    functions::<Binary8p3seFormat>(1);
    functions::<Binary8p1ufFormat>(1);
}

/// All 2^32 binary32 inputs; `cargo test --release --test minifloat fast:: -- --ignored all_inputs`.
fn all_inputs<F: FloatFormat>() {
    let format: Format = F::FORMAT;
    let chunk = |high: u32| {
        for low in 0..1 << 24 {
            let x = f32::from_bits(high << 24 | low);
            let plain = format.encode_f32(x, Rounding::TiesToEven, Overflow::None, 0).code;
            assert!(code(Minifloat::<F>::from_f32(x)) == plain, "{format} {:#x}", x.to_bits());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| (0..128).for_each(chunk));
        (128..256).for_each(chunk);
    });
}

#[test]
#[ignore = "a quarter of an hour: cargo test --release --test minifloat fast:: -- --ignored"]
fn all_inputs_of_six_formats() {
    all_inputs::<ExMy<4, 3, Fn>>();
    all_inputs::<ExMy<5, 2>>();
    all_inputs::<ExMy<2, 1, Finite>>();
    all_inputs::<ExMy<5, 10>>();
    all_inputs::<ExMy<8, 7>>();
    all_inputs::<ExMy<8, 3>>();
}

#[test]
#[ignore = "seconds in release mode: cargo test --release --test minifloat fast:: -- --ignored all_pairs"]
fn all_pairs_of_twelve_bits() {
    let codes = || ExMy::<8, 3>::FORMAT.codes();
    binary::<ExMy<8, 3>>(codes().flat_map(|a| codes().map(move |b| (a, b))));
    let codes = || ExMy::<5, 6>::FORMAT.codes();
    binary::<ExMy<5, 6>>(codes().flat_map(|a| codes().map(move |b| (a, b))));
}
