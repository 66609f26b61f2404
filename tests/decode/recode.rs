//! Codes of one format to codes of another.

use super::{RANDOM, at_every_level, format, named, of_up_to_8_bits};
use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::quantizer::Cast;
use exmy::round::{Operands, Overflow, Payload, Profile, Rounding, Rules};
use exmy::slice::Converter;

fn is_plain<C: Bits, D: Bits>(converter: &Converter, from: Format, codes: &[C]) {
    let zero = D::from_u64(0);
    let (mut plain, mut out) = (vec![zero; codes.len()], vec![zero; codes.len()]);
    converter.recode_plain(from, codes, &mut plain);
    at_every_level(|level| {
        for len in [codes.len(), codes.len().min(200)] {
            converter.recode_into(from, &codes[..len], &mut out[..len]);
            if let Some(i) = (0..len).find(|i| out[*i] != plain[*i]) {
                let (to, code, found, plain) = (converter.format(), codes[i], out[i], plain[i]);
                panic!(
                    "{from} to {to} {level}, {len}: {code:#x} at {i} is {found:#x}, not {plain:#x}"
                );
            }
        }
    });
}

fn bytes() -> Vec<u8> {
    (0..600).map(|i| (i * 5 % 256) as u8).collect()
}

/// All pairs of the named formats of up to 8 bits, and of a sample of all others.
#[test]
fn pairs_of_short_formats() {
    let short: Vec<Format> = named().into_iter().filter(|format| format.bits() <= 8).collect();
    let others = of_up_to_8_bits();
    for from in &short {
        for to in &short {
            for overflow in [Overflow::None, Overflow::Finite] {
                let converter = Converter::new(*to, Rules::DEFAULT.with_overflow(overflow));
                is_plain::<u8, u8>(&converter, *from, &bytes());
            }
        }
    }
    for (from, to) in others.iter().step_by(41).zip(others.iter().rev().step_by(37)) {
        is_plain::<u8, u8>(&Converter::from(Cast::new(*to)), *from, &bytes());
    }
}

/// To wider codes, from wider integers, by every mode and profile.
#[test]
fn modes_widths_and_profiles() {
    let wide: Vec<u16> = bytes().iter().map(|code| u16::from(*code) | 0x4200).collect();
    for (from, to) in [("e4m3", "f16"), ("e5m2", "bf16"), ("e8m0", "e9m6"), ("int8", "e4m3")] {
        let (from, to) = (format(from), format(to));
        for rounding in Rounding::DETERMINISTIC.into_iter().chain([Rounding::stochastic(8)]) {
            let cast = Cast::new(to).with_rounding(rounding);
            let converter = Converter::from(cast).with_random(RANDOM).starting_at(3);
            is_plain::<u8, u16>(&converter, from, &bytes());
            is_plain::<u16, u16>(&converter, from, &wide);
            is_plain::<u8, u32>(&converter, from, &bytes());
        }
        for profile in Profile::ALL {
            is_plain::<u8, u64>(&Converter::new(to, profile.rules(to)), from, &bytes());
        }
    }
}

/// All codes of 16 bits; among the rules those that look at more than the value.
#[test]
fn from_sixteen_bits() {
    let codes: Vec<u16> = (0..=u16::MAX).collect();
    let mut rules = vec![Rules::DEFAULT, Rules::DEFAULT.with_rounding(Rounding::TowardPositive)];
    for payload in [Payload::Keep, Payload::Truncate] {
        let mut other = Rules::DEFAULT;
        other.nan.payload = payload;
        rules.push(other);
    }
    rules.push(Rules::DEFAULT.with_operands(Operands::Zero));
    let mut top = Rules::DEFAULT;
    top.nan.top_bit_is_sign = true;
    rules.push(top);
    for from in ["f16", "bf16", "dlfloat16", "e9m6", "binary16p8se"] {
        for to in [Format::E5M2, Format::E2M1, Format::BF16] {
            for rules in &rules {
                is_plain::<u16, u16>(&Converter::new(to, *rules), format(from), &codes);
            }
        }
    }
}

/// From binary64's codes as from its numbers.
#[test]
fn from_sixty_four_bits() {
    let codes: Vec<u64> = super::sources::f64s().iter().map(|x| x.to_bits()).collect();
    for to in ["e4m3", "bf16", "f32", "f64", "e2m1"].map(format) {
        is_plain::<u64, u64>(&Converter::new(to, Rules::DEFAULT), Format::F64, &codes);
    }
}
