//! The short ways of the typed scalar against the definition, code by code.
//!
//! `Format::encode_by` and `math::Context` are the definition and have oracles of their own; here
//! the typed scalar's own paths must give the very same codes, NaN included.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::minifloat::*;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Profile, Rounded, Rounding, Rules};
use std::cmp::Ordering;

fn code<F: FloatFormat>(x: Minifloat<F>) -> u64 {
    x.to_bits().to_u64()
}

fn at<F: FloatFormat>(code: u64) -> Minifloat<F> {
    Minifloat::from_bits(F::Bits::from_u64(code))
}

/// A typed scalar by functions of codes, so that what is checked is compiled once and not for each of
/// some two hundred types.
struct Typed {
    format: Format,
    from_f32: fn(f32) -> u64,
    from_f64: fn(f64) -> u64,
    to_f32: fn(u64) -> f32,
    to_f64: fn(u64) -> f64,
    is_nan: fn(u64) -> bool,
    is_zero: fn(u64) -> bool,
}

impl Typed {
    const fn new<F: FloatFormat>() -> Self {
        Self {
            format: F::FORMAT,
            from_f32: |x| code(Minifloat::<F>::from_f32(x)),
            from_f64: |x| code(Minifloat::<F>::from_f64(x)),
            to_f32: |code| at::<F>(code).to_f32(),
            to_f64: |code| at::<F>(code).to_f64(),
            is_nan: |code| at::<F>(code).is_nan(),
            is_zero: |code| at::<F>(code).is_zero(),
        }
    }

    fn narrows_64(&self, x: f64) {
        for x in [x, -x] {
            let plain = self.format.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
            assert_eq!((self.from_f64)(x), plain, "{} {x:e}", self.format);
        }
    }

    fn narrows_32(&self, x: f32) {
        for x in [x, -x] {
            let plain = self.format.encode_f32(x, Rounding::TiesToEven, Overflow::None, 0).code;
            assert_eq!((self.from_f32)(x), plain, "{} {x:e}", self.format);
        }
    }

    /// Every `step`-th value of the format, the midpoint above it, and the wider format's neighbours of
    /// both; then the ends of the wider formats.
    fn conversions(&self, step: usize) {
        let format = self.format;
        let bits = |x: f64| x.to_bits();
        for code in format.codes().step_by(step) {
            let (narrow, wide) = (format.to_f32(code), format.to_f64(code));
            assert_eq!((self.to_f32)(code).to_bits(), narrow.to_bits(), "{format} {code:#x}");
            assert_eq!(bits((self.to_f64)(code)), bits(wide), "{format} {code:#x}");
            assert_eq!((self.is_nan)(code), wide.is_nan(), "{format} {code:#x}");
            if !format.is_exact_in_f64() || !wide.is_finite() || wide < 0.0 {
                continue;
            }
            assert_eq!((self.is_zero)(code), wide == 0.0, "{format} {code:#x}");
            let next = format.to_f64(code + 1);
            let midpoint = if next > wide && next.is_finite() {
                wide / 2.0 + next / 2.0
            } else {
                // Past the largest: its own distance from the value below, once more.
                wide + (wide - format.to_f64(code.saturating_sub(1))) / 2.0
            };
            for x in [wide, midpoint] {
                for x in [x.next_down(), x, x.next_up()] {
                    self.narrows_64(x);
                }
                let x = x as f32;
                for x in [x.next_down(), x, x.next_up()] {
                    self.narrows_32(x);
                }
            }
        }
        for x in [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, 1.0, 3e38] {
            self.narrows_64(x);
            self.narrows_32(x as f32);
        }
        self.narrows_32(f32::MAX);
        self.narrows_32(f32::MIN_POSITIVE);
        self.narrows_32(f32::from_bits(1));
    }
}

fn conversions<F: FloatFormat>(step: usize) {
    Typed::new::<F>().conversions(step);
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

type Unary = (&'static str, fn(u64) -> u64, fn(&Context, Operand) -> Rounded);
type Binary = (&'static str, fn(u64, u64) -> u64, fn(&Context, Operand, Operand) -> Rounded);

/// Arithmetic of a typed scalar by functions of codes, for the reason of [`Typed`].
struct Arithmetic {
    format: Format,
    context: Context,
    unary: [Unary; 5],
    binary: [Binary; 5],
    compare: fn(u64, u64) -> (Option<Ordering>, bool),
    mul_add: fn(u64, u64, u64) -> u64,
}

impl Arithmetic {
    fn new<F: FloatFormat>() -> Self {
        Self {
            format: F::FORMAT,
            context: context(F::FORMAT),
            unary: [
                ("sqrt", |x| code(at::<F>(x).sqrt()), Context::sqrt),
                ("recip", |x| code(at::<F>(x).recip()), Context::recip),
                ("rsqrt", |x| code(at::<F>(x).rsqrt()), Context::rsqrt),
                ("next_up", |x| code(at::<F>(x).next_up()), Context::next_up),
                ("abs", |x| code(at::<F>(x).abs()), Context::abs),
            ],
            binary: [
                ("+", |a, b| code(at::<F>(a) + at(b)), Context::add),
                ("-", |a, b| code(at::<F>(a) - at(b)), Context::sub),
                ("*", |a, b| code(at::<F>(a) * at(b)), Context::mul),
                ("/", |a, b| code(at::<F>(a) / at(b)), Context::div),
                ("%", |a, b| code(at::<F>(a) % at(b)), Context::fmod),
            ],
            compare: |a, b| {
                let (a, b) = (at::<F>(a), at(b));
                (a.partial_cmp(&b), a == b)
            },
            mul_add: |a, b, c| code(at::<F>(a).mul_add(at(b), at(c))),
        }
    }

    fn unary(&self, codes: impl Iterator<Item = u64>) {
        for x in codes {
            for (name, fast, plain) in self.unary {
                let expected = plain(&self.context, Operand::new(self.format, x)).code;
                assert_eq!(fast(x), expected, "{} {name} {x:#x}", self.format);
            }
        }
    }

    fn binary(&self, pairs: impl Iterator<Item = (u64, u64)>) {
        let format = self.format;
        for (a, b) in pairs {
            let (left, right) = (Operand::new(format, a), Operand::new(format, b));
            for (name, fast, plain) in self.binary {
                let expected = plain(&self.context, left, right).code;
                assert_eq!(fast(a, b), expected, "{format} {a:#x} {name} {b:#x}");
            }
            let order = left.compare(right);
            assert_eq!((self.compare)(a, b), (order, order == Some(Ordering::Equal)));
        }
    }

    fn ternary(&self, triples: impl Iterator<Item = (u64, u64, u64)>) {
        for (a, b, c) in triples {
            let [x, y, z] = [a, b, c].map(|code| Operand::new(self.format, code));
            let expected = self.context.fma(x, y, z).code;
            assert_eq!(
                (self.mul_add)(a, b, c),
                expected,
                "{} {a:#x} * {b:#x} + {c:#x}",
                self.format
            );
        }
    }

    /// Everything that a machine float might do differently: all codes and pairs, and as many triples
    /// as there is time for.
    fn small(&self) {
        let codes = self.format.codes();
        let pairs = || codes.clone().flat_map(|a| codes.clone().map(move |b| (a, b)));
        self.unary(codes.clone());
        self.binary(pairs());
        if self.format.bits() <= 6 {
            self.ternary(pairs().flat_map(|(a, b)| codes.clone().map(move |c| (a, b, c))));
        } else {
            self.ternary(random(self.format, 150_000));
        }
    }

    /// All codes of 16-bit formats, random pairs and triples, and pairs close to each other, whose sums
    /// cancel and whose quotients are near one.
    fn wide(&self, of: &Typed, count: u64) {
        let Self { format, .. } = *self;
        let random = || random(format, count);
        self.unary(format.codes().step_by(if format.bits() > 16 { 997 } else { 1 }));
        self.binary(random().map(|(a, b, _)| (a, b)));
        let mask = *format.codes().end();
        self.binary(random().map(|(a, b, c)| (a, a ^ b & 0xFF ^ c & 1 << 15 & mask)));
        // Products and quotients around the smallest number, where a wider format may have no more
        // bits to spare than this one.
        let lowest = (of.to_f64)(format.min_positive_code());
        let around = move |c: u64| lowest * (1.0 + (c & 0xFF) as f64 / 32.0);
        let partner = |x: f64| (of.from_f64)(x) & mask;
        self.binary(random().flat_map(|(a, b, c)| {
            let x = (of.to_f64)(a);
            [(a, partner(around(c) / x) ^ b & 3), (a, partner(x / around(c)) ^ b & 3)]
        }));
        self.ternary(random());
        // A product and its negative, nearly.
        self.ternary(random().map(|(a, b, c)| {
            let product = (of.from_f64)(-(of.to_f64)(a) * (of.to_f64)(b));
            (a, b, product.wrapping_add(c & 7).wrapping_sub(3) & mask)
        }));
    }
}

/// Pseudorandom codes of a format.
fn random(format: Format, count: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let random = Philox::new(7, Stream::new("minifloat_fast"));
    let mask = *format.codes().end();
    let word =
        move |i: u64| u64::from(random.word(2 * i)) << 32 | u64::from(random.word(2 * i + 1));
    let code = move |i| word(i) >> 7 & mask;
    (0..count).map(move |i| (code(3 * i), code(3 * i + 1), code(3 * i + 2)))
}

fn arithmetic<F: FloatFormat>(_: usize) {
    Arithmetic::new::<F>().small();
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

fn wide_arithmetic<F: FloatFormat>(count: usize) {
    Arithmetic::new::<F>().wide(&Typed::new::<F>(), count as u64);
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
    let found = |x| (code(at::<F>(x).exp()), code(at::<F>(x).exp2()));
    functions_of(F::FORMAT, step, found);
}

fn functions_of(format: Format, step: usize, found: fn(u64) -> (u64, u64)) {
    let context = context(format);
    for x in format.codes().step_by(step) {
        let operand = Operand::new(format, x);
        let expected = (context.exp(operand).unwrap().code, context.exp2(operand).unwrap().code);
        assert_eq!(found(x), expected, "{format} exp, exp2 of {x:#x}");
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
    Arithmetic::new::<ExMy<8, 3>>().binary(codes().flat_map(|a| codes().map(move |b| (a, b))));
    let codes = || ExMy::<5, 6>::FORMAT.codes();
    Arithmetic::new::<ExMy<5, 6>>().binary(codes().flat_map(|a| codes().map(move |b| (a, b))));
}
