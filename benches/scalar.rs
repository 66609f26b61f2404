//! One operation on typed scalars, next to the same operation of other crates, in nanoseconds.
//!
//! `cargo bench --bench scalar`; `cargo bench --bench scalar -- 'add/'` for one operation. Each
//! figure is a loop over 4096 operands from one buffer into another, divided by 4096; operands are
//! uniformly random finite codes, or binary32 and binary64 numbers drawn from the values of these
//! and the gaps between them. Compilers may turn such loops into vector code, of every crate alike.
//!
//! Right answers, as `tests/minifloat/peers.rs` counts them: every crate's `add`, `sub`, `mul` and
//! `div` (but microfloat's `add` of E4M3FN); `from_f64` of float8, minifloat and APFloat only -
//! half's errs next to every midpoint of f16, microfloat's at most of them; `fma` of APFloat only,
//! as the others round twice. exp of the others is that of `f32` rounded again, of ours correctly
//! rounded.

use std::hint::black_box;
use std::time::{Duration, Instant};

use exmy::minifloat::{
    Bf16, Binary8p3se, Binary8p3seFormat, Bits, E2M1, E4M3, E5M2, E8M3, ExMy, F16, Finite,
    FloatFormat, Fn as WithNan, Minifloat, Yes,
};
use exmy::random::{Philox, Stream};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

minifloat::minifloat!(struct TheirE8M3(u16): 8, 3);

const N: usize = 4096;

/// The fastest of some repetitions of a loop over all operands, in nanoseconds an element: what
/// else runs on the machine can only add.
fn time(mut pass: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    let mut repetitions = 0;
    while repetitions < 20 || start.elapsed() < Duration::from_millis(60) {
        let begin = Instant::now();
        for _ in 0..4 {
            pass();
        }
        best = best.min(begin.elapsed().as_secs_f64());
        repetitions += 1;
    }
    best / 4.0 / N as f64 * 1e9
}

fn one<T: Copy, U: Copy>(x: &[T], f: impl Fn(T) -> U) -> f64 {
    let mut out: Vec<U> = x.iter().map(|&x| f(x)).collect();
    time(|| {
        for (out, &x) in out.iter_mut().zip(black_box(x)) {
            *out = f(x);
        }
        black_box(&mut out);
    })
}

fn two<T: Copy, U: Copy>(x: &[T], y: &[T], f: impl Fn(T, T) -> U) -> f64 {
    let mut out: Vec<U> = x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect();
    time(|| {
        let (x, y) = (black_box(x), black_box(y));
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = f(x, y);
        }
        black_box(&mut out);
    })
}

fn three<T: Copy, U: Copy>(x: &[T], y: &[T], z: &[T], f: impl Fn(T, T, T) -> U) -> f64 {
    let mut out: Vec<U> = x.iter().zip(y).zip(z).map(|((&x, &y), &z)| f(x, y, z)).collect();
    time(|| {
        let (x, y, z) = (black_box(x), black_box(y), black_box(z));
        for (((out, &x), &y), &z) in out.iter_mut().zip(x).zip(y).zip(z) {
            *out = f(x, y, z);
        }
        black_box(&mut out);
    })
}

/// What is measured of one crate's type.
type Figures = Vec<(&'static str, f64)>;

/// Operands: three buffers of codes and one each of binary32 and binary64 numbers.
struct Operands {
    codes: [Vec<u64>; 3],
    narrow: Vec<f32>,
    wide: Vec<f64>,
}

impl Operands {
    fn of(format: exmy::format::Format) -> Self {
        let random = Philox::new(1, Stream::new("scalar"));
        let mut next = 0;
        let mut finite = || loop {
            next += 1;
            let code = u64::from(random.word(next)) & *format.codes().end();
            if format.decode(code).is_finite() {
                return code;
            }
        };
        let codes = [(); 3].map(|()| (0..N).map(|_| finite()).collect::<Vec<_>>());
        let between = |i: usize| {
            let (a, b) = (format.to_f64(codes[0][i]), format.to_f64(codes[0][i] ^ 1));
            if b.is_finite() { a + (b - a) * random.uniform(i as u64) } else { a }
        };
        let wide: Vec<f64> = (0..N).map(between).collect();
        let narrow = wide.iter().map(|&x| x as f32).collect();
        Self { codes, narrow, wide }
    }
}

/// Measures the operations that a type has, each named or not.
macro_rules! measure {
    ($operands:expr, $wanted:expr, $from_bits:expr; $($name:literal($count:ident): $f:expr),* $(,)?) => {{
        let operands: &Operands = $operands;
        let from_bits = $from_bits;
        let [x, y, z] = [0, 1, 2].map(|i: usize| {
            operands.codes[i].iter().map(|&code| from_bits(code)).collect::<Vec<_>>()
        });
        let wanted: &dyn Fn(&str) -> bool = $wanted;
        let mut figures = Figures::new();
        $(
            if wanted($name) {
                figures.push(($name, measure!(@ $count, operands, x, y, z, $f)));
            }
        )*
        let _ = (&y, &z);
        figures
    }};
    (@ from32, $o:ident, $x:ident, $y:ident, $z:ident, $f:expr) => { one(&$o.narrow, $f) };
    (@ from64, $o:ident, $x:ident, $y:ident, $z:ident, $f:expr) => { one(&$o.wide, $f) };
    (@ one, $o:ident, $x:ident, $y:ident, $z:ident, $f:expr) => { one(&$x, $f) };
    (@ two, $o:ident, $x:ident, $y:ident, $z:ident, $f:expr) => { two(&$x, &$y, $f) };
    (@ three, $o:ident, $x:ident, $y:ident, $z:ident, $f:expr) => { three(&$x, &$y, &$z, $f) };
}

fn ours<F: FloatFormat<Elementary = Yes>>(
    operands: &Operands,
    wanted: &dyn Fn(&str) -> bool,
) -> Figures {
    type M<F> = Minifloat<F>;
    measure!(operands, wanted, |code| M::<F>::from_bits(F::Bits::from_u64(code));
        "from_f32"(from32): M::<F>::from_f32,
        "from_f64"(from64): M::<F>::from_f64,
        "to_f32"(one): M::<F>::to_f32,
        "add"(two): |a: M<F>, b| a + b,
        "sub"(two): |a: M<F>, b| a - b,
        "mul"(two): |a: M<F>, b| a * b,
        "div"(two): |a: M<F>, b| a / b,
        "fma"(three): |a: M<F>, b, c| a.mul_add(b, c),
        "sqrt"(one): M::<F>::sqrt,
        "exp"(one): M::<F>::exp,
    )
}

/// exp as these crates have it: the platform's, in f32.
macro_rules! by_f32_exp {
    ($type:ty) => {
        |x: $type| {
            #[expect(clippy::disallowed_methods, reason = "what the other crate does")]
            let exp = x.to_f32().exp();
            <$type>::from_f32(exp)
        }
    };
}

/// half, float8, minifloat, microfloat: types with `from_f32` and `to_f32`. Where such a type has
/// no operation of its own, its users go by way of `f32`, as its num-traits implementation does.
macro_rules! theirs {
    ($type:ty, $bits:ty) => {
        |operands: &Operands, wanted: &dyn Fn(&str) -> bool| {
            type T = $type;
            measure!(operands, wanted, |code| T::from_bits(code as $bits);
                "from_f32"(from32): |x| T::from_f32(x),
                "from_f64"(from64): |x| T::from_f64(x),
                "to_f32"(one): |x: T| x.to_f32(),
                "add"(two): |a: T, b| a + b,
                "sub"(two): |a: T, b| a - b,
                "mul"(two): |a: T, b| a * b,
                "div"(two): |a: T, b| a / b,
                "fma"(three): |a: T, b: T, c: T| {
                    T::from_f32(a.to_f32().mul_add(b.to_f32(), c.to_f32()))
                },
                "sqrt"(one): |x: T| T::from_f32(x.to_f32().sqrt()),
                "exp"(one): by_f32_exp!(T),
            )
        }
    };
}

/// LLVM's APFloat, whose operands and results stay in its own form.
fn apfloat<T>(operands: &Operands, wanted: &dyn Fn(&str) -> bool) -> Figures
where
    T: Float + FloatConvert<Single>,
    Single: FloatConvert<T>,
    Double: FloatConvert<T>,
{
    measure!(operands, wanted, |code: u64| T::from_bits(code.into());
        "from_f32"(from32): |x: f32| {
            let converted: T = Single::from_bits(x.to_bits().into()).convert(&mut false).value;
            converted
        },
        "from_f64"(from64): |x: f64| {
            let converted: T = Double::from_bits(x.to_bits().into()).convert(&mut false).value;
            converted
        },
        "to_f32"(one): |x: T| {
            let converted: Single = x.convert(&mut false).value;
            f32::from_bits(converted.to_bits() as u32)
        },
        "add"(two): |a: T, b| (a + b).value,
        "sub"(two): |a: T, b| (a - b).value,
        "mul"(two): |a: T, b| (a * b).value,
        "div"(two): |a: T, b| (a / b).value,
        "fma"(three): |a: T, b, c| a.mul_add(b, c).value,
    )
}

const OPERATIONS: [&str; 10] =
    ["from_f32", "from_f64", "to_f32", "add", "sub", "mul", "div", "fma", "sqrt", "exp"];

type Crate = fn(&Operands, &dyn Fn(&str) -> bool) -> Figures;

/// A format and the crates that have it.
type Row = (&'static str, exmy::format::Format, Vec<(&'static str, Crate)>);

fn main() {
    // Cargo passes `--bench`; an argument without dashes is a filter on `operation/format`.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let apfloat_8: [Crate; 2] = [apfloat::<Float8E4M3FN>, apfloat::<Float8E5M2>];
    let formats: [Row; 7] = [
        (
            "e4m3",
            E4M3::FORMAT,
            vec![
                ("exmy", ours::<ExMy<4, 3, WithNan>>),
                ("float8", theirs!(float8::F8E4M3, u8)),
                ("minifloat", theirs!(minifloat::F8E4M3FN, u8)),
                ("microfloat", theirs!(microfloat::f8e4m3fn, u8)),
                ("apfloat", apfloat_8[0]),
            ],
        ),
        (
            "e5m2",
            E5M2::FORMAT,
            vec![
                ("exmy", ours::<ExMy<5, 2>>),
                ("float8", theirs!(float8::F8E5M2, u8)),
                ("minifloat", theirs!(minifloat::F8E5M2, u8)),
                ("microfloat", theirs!(microfloat::f8e5m2, u8)),
                ("apfloat", apfloat_8[1]),
            ],
        ),
        (
            "e2m1",
            E2M1::FORMAT,
            vec![
                ("exmy", ours::<ExMy<2, 1, Finite>>),
                ("minifloat", theirs!(minifloat::F4E2M1FN, u8)),
                ("microfloat", theirs!(microfloat::f4e2m1fn, u8)),
            ],
        ),
        (
            "f16",
            F16::FORMAT,
            vec![
                ("exmy", ours::<ExMy<5, 10>>),
                ("half", theirs!(half::f16, u16)),
                ("minifloat", theirs!(minifloat::F16, u16)),
                ("apfloat", apfloat::<Half>),
            ],
        ),
        (
            "bf16",
            Bf16::FORMAT,
            vec![
                ("exmy", ours::<ExMy<8, 7>>),
                ("half", theirs!(half::bf16, u16)),
                ("minifloat", theirs!(minifloat::BF16, u16)),
                ("apfloat", apfloat::<BFloat>),
            ],
        ),
        (
            "e8m3",
            E8M3::FORMAT,
            vec![("exmy", ours::<ExMy<8, 3>>), ("minifloat", theirs!(TheirE8M3, u16))],
        ),
        ("binary8p3se", Binary8p3se::FORMAT, vec![("exmy", ours::<Binary8p3seFormat>)]),
    ];
    println!("nanoseconds an operation, over {N} operands");
    for (name, format, crates) in formats {
        let wanted = |operation: &str| match &filter {
            Some(filter) => format!("{operation}/{name}/").contains(filter.as_str()),
            None => true,
        };
        let operations: Vec<_> = OPERATIONS.into_iter().filter(|name| wanted(name)).collect();
        if operations.is_empty() {
            continue;
        }
        let operands = Operands::of(format);
        print!("\n{name:<12}");
        operations.iter().for_each(|operation| print!("{operation:>10}"));
        println!();
        for (who, measure) in crates {
            print!("{who:<12}");
            let figures = measure(&operands, &wanted);
            for operation in &operations {
                match figures.iter().find(|(name, _)| name == operation) {
                    Some((_, time)) => print!("{time:>10.2}"),
                    None => print!("{:>10}", "-"),
                }
            }
            println!();
        }
    }
}
