//! All 2^16 operands of binary16 and bfloat16, every function of one operand: by the screen, the
//! nearest modes where it decides at all, the others where no value of the format is too close; of
//! the rest one operand in 64, and everything in the long run, by the oracle. And other targets.

use exmy::format::Format;
use exmy::math::elementary::Function;
use exmy::math::{Context, Operand};
use exmy::random::{Philox, Stream};
use exmy::round::{Flags, Overflow, Rounding, Rules};

use crate::common::{Meaning, Model};
use crate::screen::{self, Screen};
use crate::{number, oracle, special};

fn sweep(format: Format, one_in: u64) {
    let model = Model::of(format);
    let screen = Screen::new(&model);
    let (mut screened, mut nearest, mut asked) = (0_u64, 0_u64, 0_u64);
    for function in Function::ALL.into_iter().filter(|function| function.operands() == 1) {
        for code in format.codes() {
            let Some((negative, num)) = number(&model, code) else { continue };
            if special::is_rational(function, negative, num) {
                continue;
            }
            let x = Operand::new(format, code);
            let apply = |mode| {
                let ctx = Context::new(format, Rules::DEFAULT.with_rounding(mode));
                let rounded = ctx.apply(function, x).unwrap();
                assert!(rounded.flags.contains(Flags::INEXACT), "{function} of {code:#x}");
                rounded.code
            };
            let y = screen::unary(function, screen::to_f64(negative, num));
            let minus = y.is_sign_negative();
            if let Some(place) = screen.screened(y) {
                screened += 1;
                for mode in Rounding::DETERMINISTIC {
                    let expected = screen.code(minus, place, mode);
                    assert_eq!(apply(mode), expected, "{function} of {code:#x} by {mode}");
                }
                continue;
            }
            if let Some(magnitude) = screen.nearest(y) {
                nearest += 1;
                let expected = screen.signed(minus, magnitude);
                for mode in [Rounding::TiesToEven, Rounding::TiesToAway, Rounding::TiesToZero] {
                    assert_eq!(apply(mode), expected, "{function} of {code:#x} by {mode}");
                }
                if code % one_in != 0 {
                    continue;
                }
            }
            asked += 1;
            let (sign, result) = oracle::unary(function, negative, num);
            for mode in Rounding::DETERMINISTIC {
                let meaning = Meaning::Finite(sign, result);
                let expected = model.encode(meaning, mode, Overflow::None, 0);
                assert_eq!(apply(mode), expected, "{function} of {code:#x} by {mode}, asked");
            }
        }
    }
    println!("{format}: {screened} screened, {nearest} nearest only, {asked} asked");
    assert!(screened > 200_000 && nearest > 10_000 && asked > 500);
}

/// Minutes: `cargo test --release --test elementary sixteen -- --ignored`
#[test]
#[ignore = "minutes; the command is above"]
fn all_operands_with_the_oracle_where_the_screen_is_blind() {
    sweep(Format::F16, 1);
    sweep(Format::BF16, 1);
}

/// Any operand of 16 bits into any target, by deterministic and stochastic modes.
fn random_cases(seed: u64, count: u64) {
    let sources = [
        Format::F16,
        Format::BF16,
        Format::ieee(7, 8).unwrap(),
        Format::ieee(3, 12).unwrap(),
        Format::p3109(16, 9, false, true).unwrap(),
        Format::p3109(16, 15, true, false).unwrap(),
        Format::p3109(14, 6, true, true).unwrap(),
    ];
    let targets = [
        Format::F32,
        Format::F16,
        Format::TF32,
        Format::E4M3FN,
        Format::E5M2,
        Format::p3109(8, 1, true, true).unwrap(),
        Format::p3109(16, 11, true, true).unwrap(),
        Format::E8M0,
    ];
    let models: Vec<_> =
        targets.iter().map(|format| (format.bits() <= 19).then(|| Model::of(*format))).collect();
    let sources: Vec<_> = sources.iter().map(|format| (*format, Model::of(*format))).collect();
    let random = Philox::new(seed, Stream::new("elementary"));
    let mut compared = 0;
    for i in 0..count {
        let draw = |n: u64, below: u64| random.below(8 * i + n, below);
        let function = Function::ALL[draw(0, 25) as usize];
        let (source, source_model) = &sources[draw(1, sources.len() as u64) as usize];
        let code = draw(2, 1 << source.bits());
        let Some((negative, num)) = number(source_model, code) else { continue };
        if special::is_rational(function, negative, num) {
            continue;
        }
        let (sign, result) = oracle::unary(function, negative, num);
        let word = random.word(8 * i + 3);
        for (target, target_model) in targets.iter().zip(&models) {
            for mode in [
                Rounding::TiesToEven,
                Rounding::TowardPositive,
                Rounding::ToOdd,
                Rounding::stochastic(8),
            ] {
                let rules = Rules::DEFAULT.with_rounding(mode);
                let ctx = Context::new(*target, rules).with_random(word);
                let ours = ctx.apply(function, Operand::new(*source, code)).unwrap().code;
                let expected = match target_model {
                    Some(model) => {
                        model.encode(Meaning::Finite(sign, result), mode, Overflow::None, word)
                    }
                    // binary32 has too many values for a list: by the fields of the number.
                    None if mode == Rounding::TiesToEven => nearest([8, 23], sign, result),
                    None => continue,
                };
                assert_eq!(
                    ours, expected,
                    "{function} of {source} {code:#x} to {target} by {mode} with {word:#x}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > count, "only {compared} compared");
}

/// The code of an interchange format, by its bits of exponent and fraction, nearest to a number that is
/// neither a value nor a middle, by halving.
pub(crate) fn nearest([exponent, places]: [u32; 2], negative: bool, x: crate::common::Num) -> u64 {
    let last = 2 - (1 << (exponent - 1)) - places as i32;
    let value = |code: u64| {
        let (field, fraction) = ((code >> places) as i32, code & ((1 << places) - 1));
        let hidden = if field > 0 { 1 << places } else { 0 };
        crate::common::Num::new(2 * u128::from(fraction + hidden), last + field.max(1) - 2)
    };
    // The last code whose value is below x; middles are odd multiples of half a unit.
    let (mut low, mut high) = (0, ((1 << exponent) - 1) << places);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if value(middle) < x { low = middle } else { high = middle }
    }
    let mut half = value(low);
    half.integer += 1;
    let code = if half < x { low + 1 } else { low };
    code | u64::from(negative) << (exponent + places)
}

#[test]
fn random_operands_into_other_formats() {
    random_cases(1, 3000);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn all_operands_of_f16() {
        sweep(Format::F16, 64);
    }

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn all_operands_of_bf16() {
        sweep(Format::BF16, 64);
    }
}
