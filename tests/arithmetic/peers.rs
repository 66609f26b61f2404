//! Second opinions: LLVM's APFloat in Rust (crate `rustc_apfloat`), `minifloat` and `microfloat`.

use exmy::format::{Format, Specials};
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Overflow, Profile, Rounded, Rounding, Rules};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, Round, Status, StatusAnd};

use crate::common::Meaning;
use crate::oracle::{Grid, Random};
use crate::threads::on_all;

const ROUNDS: [(Rounding, Round); 5] = [
    (Rounding::TiesToEven, Round::NearestTiesToEven),
    (Rounding::TiesToAway, Round::NearestTiesToAway),
    (Rounding::TowardZero, Round::TowardZero),
    (Rounding::TowardPositive, Round::TowardPositive),
    (Rounding::TowardNegative, Round::TowardNegative),
];

/// APFloat's status as this crate's flags.
fn flags(status: Status) -> u8 {
    let bit = |flag: Status, bit: u8| if status.contains(flag) { bit } else { 0 };
    bit(Status::INEXACT, 1)
        | bit(Status::UNDERFLOW, 2)
        | bit(Status::OVERFLOW, 4)
        | bit(Status::DIV_BY_ZERO, 8)
        | bit(Status::INVALID_OP, 16)
}

/// Where they agree: all codes, any NaN being any NaN, and all flags of results that are numbers,
/// but two. APFloat's underflow says that an inexact *result* is below the smallest normal number;
/// and it has no overflow where the mode gives the largest number instead of infinity. Overflow of
/// E4M3FN in directed modes is left out: APFloat cuts -455 down to -448 under `rdn`, and makes NaN
/// of larger numbers under modes that point inward.
fn check<F: Float>(
    grid: &Grid,
    ours: Rounded,
    theirs: &StatusAnd<F>,
    mode: Rounding,
    what: &dyn Fn() -> String,
) {
    let directed = !matches!(mode, Rounding::TiesToEven | Rounding::TiesToAway);
    if grid.format == Format::E4M3FN && ours.flags.contains(Flags::OVERFLOW) && directed {
        return;
    }
    let code = theirs.value.to_bits() as u64;
    let nan = |code| matches!(grid.decode(code), Meaning::Nan(_));
    assert!(ours.code == code || nan(ours.code) && nan(code), "{}: {ours:x?} {code:#x}", what());
    if nan(code) {
        return;
    }
    let result = Operand::new(grid.format, ours.code);
    let small = result.is_subnormal() || result.is_zero();
    let inexact = ours.flags.bits() & 1 != 0;
    let keep = if result.is_finite() { 0b11001 } else { 0b11101 };
    let ours = ours.flags.bits() & keep | u8::from(small && inexact) << 1;
    assert_eq!(ours, flags(theirs.status), "{}: flags of {code:#x}", what());
}

/// All operations on three codes.
fn check_all<F: Float>(grid: &Grid, codes: [u64; 3], fma: bool) {
    let format = grid.format;
    let [a, b, c] = codes.map(|code| Operand::new(format, code));
    let [x, y, z] = codes.map(|code| F::from_bits(code.into()));
    for (mode, round) in ROUNDS {
        let context = Context::new(format, Rules::DEFAULT.with_rounding(mode));
        let what = |name: &'static str| move || format!("{format} {name} {codes:x?} {mode}");
        check(grid, context.add(a, b), &x.add_r(y, round), mode, &what("add"));
        check(grid, context.sub(a, b), &x.sub_r(y, round), mode, &what("sub"));
        check(grid, context.mul(a, b), &x.mul_r(y, round), mode, &what("mul"));
        check(grid, context.div(a, b), &x.div_r(y, round), mode, &what("div"));
        if fma {
            check(grid, context.fma(a, b, c), &x.mul_add_r(y, z, round), mode, &what("fma"));
        }
        let integral = context.round_to_integral(a, true);
        // Nothing underflows on the way to an integer: raised to match, see `check`.
        let theirs = x.round_to_integral(round);
        let zero = theirs.status.contains(Status::INEXACT) && theirs.value.is_zero();
        let raised = if zero { Status::UNDERFLOW } else { Status::OK };
        check(
            grid,
            integral,
            &(theirs.status | raised).and(theirs.value),
            mode,
            &what("to integral"),
        );
    }
    let mode = Rounding::TiesToEven;
    let context = Context::new(format, Rules::DEFAULT);
    let what = |name: &'static str| move || format!("{format} {name} {codes:x?}");
    check(grid, context.fmod(a, b), &x.c_fmod(y), mode, &what("fmod"));
    check(grid, context.rem(a, b), &x.ieee_rem(y), mode, &what("rem"));
}

fn all_pairs<F: Float>(format: Format) {
    let grid = Grid::new(format);
    let firsts: Vec<u64> = format.codes().collect();
    on_all(&firsts, |&a| {
        for b in format.codes() {
            check_all::<F>(&grid, [a, b, a.wrapping_mul(b) >> 3 & 0xFF], true);
        }
    });
}

#[test]
fn apfloat_on_all_pairs_of_8_bits() {
    all_pairs::<Float8E5M2>(Format::E5M2);
    all_pairs::<Float8E4M3FN>(Format::E4M3FN);
}

fn at_random<F: Float>(format: Format) {
    let grid = Grid::new(format);
    let seeds: Vec<u64> = (0..8).collect();
    on_all(&seeds, |&seed| {
        let mut random = Random(seed);
        for _ in 0..4000 {
            let any = [(); 3].map(|()| random.next() >> (64 - format.bits()));
            check_all::<F>(&grid, any, true);
            let near = any[0] ^ random.below(4 << format.man_bits());
            check_all::<F>(&grid, [any[0], near, any[2]], true);
        }
    });
}

#[test]
fn apfloat_on_wider_formats() {
    at_random::<Half>(Format::F16);
    at_random::<BFloat>(Format::BF16);
    at_random::<Single>(Format::F32);
    at_random::<Double>(Format::F64);
}

/// All pairs against another crate's operators; any NaN is any NaN.
fn operators<T: Copy>(
    format: Format,
    rules: Rules,
    of: impl Fn(u64) -> T,
    to: impl Fn(T) -> u64,
    operators: [fn(T, T) -> T; 4],
    skip: impl Fn(&str, Operand, Operand) -> bool,
) {
    let context = Context::new(format, rules);
    let grid = Grid::new(format);
    for a in format.codes() {
        for b in format.codes() {
            let (x, y) = (Operand::new(format, a), Operand::new(format, b));
            let ours = [context.add(x, y), context.sub(x, y), context.mul(x, y), context.div(x, y)];
            for ((name, ours), operator) in
                ["+", "-", "*", "/"].into_iter().zip(ours).zip(operators)
            {
                let theirs = to(operator(of(a), of(b)));
                let nan = |code| matches!(grid.decode(code), Meaning::Nan(_));
                let same = ours.code == theirs || nan(ours.code) && nan(theirs);
                assert!(
                    same || skip(name, x, y),
                    "{format} {a:#x} {name} {b:#x}: {:#x}, expected {theirs:#x}",
                    ours.code
                );
            }
        }
    }
}

macro_rules! four {
    ($type:ty) => {
        [|a: $type, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b]
    };
}

/// `minifloat` saturates where there is no infinity, and 0/0 of a format without NaN is its largest
/// value.
#[test]
fn minifloat_on_all_pairs() {
    macro_rules! check {
        ($type:ident, $format:expr) => {
            let format = $format;
            let overflow =
                if format.specials() == Specials::Ieee { Overflow::None } else { Overflow::Finite };
            let rules = Rules::DEFAULT.with_overflow(overflow);
            operators(
                format,
                rules,
                |code| minifloat::$type::from_bits(code as u8),
                |x| x.to_bits().into(),
                four!(minifloat::$type),
                |_, _, _| false,
            );
        };
    }
    check!(F8E5M2, Format::E5M2);
    check!(F8E4M3FN, Format::E4M3FN);
    check!(F8E4M3, Format::E4M3_IEEE);
    check!(F8E3M4, Format::E3M4);
    check!(F8E4M3FNUZ, Format::E4M3FNUZ);
    check!(F8E5M2FNUZ, Format::E5M2FNUZ);
    check!(F8E4M3B11FNUZ, Format::E4M3B11FNUZ);
    check!(F6E3M2FN, Format::E3M2);
    check!(F6E2M3FN, Format::E2M3);
    check!(F4E2M1FN, Format::E2M1);
}

/// `microfloat` follows ml_dtypes, by way of binary32, which does no harm to one operation on
/// these formats. It departs from it where a result is 464, the midpoint of E4M3FN's largest value
/// 448 and the next: ml_dtypes, to even, gives 448 and microfloat 0.1.3 NaN.
#[test]
fn microfloat_on_all_pairs() {
    macro_rules! check {
        ($type:ident, $format:expr) => {
            operators(
                $format,
                Profile::MlDtypes.rules($format),
                |code| microfloat::$type::from_bits(code as u8),
                |x| x.to_bits().into(),
                four!(microfloat::$type),
                |name, a, b| {
                    let (x, y) = (a.format.to_f64(a.code), b.format.to_f64(b.code));
                    let result = match name {
                        "+" => x + y,
                        "-" => x - y,
                        "*" => x * y,
                        _ => x / y,
                    };
                    a.format == Format::E4M3FN && result.abs() == 464.0
                },
            );
        };
    }
    check!(f8e5m2, Format::E5M2);
    check!(f8e4m3fn, Format::E4M3FN);
    check!(f8e4m3, Format::E4M3_IEEE);
    check!(f8e3m4, Format::E3M4);
    check!(f8e4m3fnuz, Format::E4M3FNUZ);
    check!(f8e5m2fnuz, Format::E5M2FNUZ);
    check!(f8e4m3b11fnuz, Format::E4M3B11FNUZ);
    check!(f6e3m2fn, Format::E3M2);
    check!(f6e2m3fn, Format::E2M3);
    check!(f4e2m1fn, Format::E2M1);
}
