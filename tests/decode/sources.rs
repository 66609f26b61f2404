//! Numbers of `f64`, `f16` and `bf16` to codes and to the values of a format.

use super::threads::on_all;
use super::{RANDOM, at_every_level, format, named};
use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::round::{Flush, Operands, Overflow, Profile, Rounding, Rules};
use exmy::slice::{Converter, Real, convert_into, decode_plain};

/// Binary64 numbers: every binary32 exponent and some outside, with binary32 significands, what
/// lies next to them, and significands of all ones, of both signs.
pub(super) fn f64s() -> Vec<f64> {
    let mut bits = vec![0, 1, 2, (1 << 52) - 1, 1 << 52, 0x7FE_u64 << 52, 0x7FF << 52];
    bits.extend([0x7FF8 << 48, 0x7FF0_0000_0000_0001, u64::MAX >> 1, (0x7FF << 52) - 1]);
    // All where something ends: binary32, binary16 and the narrow formats, and their subnormals.
    let near_ends = |e: &i32| (-152..-121).contains(e) || (-28..20).contains(e) || *e > 120;
    let within = (-152..131).filter(|e| near_ends(e) || e % 5 == 0).map(|e| (1023 + e) as u64);
    let exponents = within.chain([1, 500, 1300, 2046]);
    for exponent in exponents {
        // Of three bits, of ten, halfway between numbers of four, and of binary32.
        for significand in [0, 0b101, 0b111].map(|s| s << 49).into_iter().chain([
            0x200_u64 << 42,
            0x201 << 42,
            0b0001 << 48,
            0b1111 << 48,
            1 << 28,
            3 << 28,
            1 << 29,
            (1 << 52) - (1 << 29),
            (1 << 52) - (1 << 28),
        ]) {
            for near in [0, 1, (1 << 52) - 1] {
                bits.push(exponent << 52 | (significand + near) & ((1 << 52) - 1));
            }
        }
    }
    bits.iter().flat_map(|bits| [*bits, bits | 1 << 63]).map(f64::from_bits).collect()
}

fn modes() -> Vec<Rounding> {
    let texts = ["sr1", "sr8", "sr16b", "sr19c", "sr32"];
    let stochastic = texts.map(|text| text.parse::<Rounding>().expect("a mode"));
    Rounding::DETERMINISTIC.into_iter().chain(stochastic).collect()
}

/// Codes in the smallest integer that holds them, and values, in place and not.
fn is_plain<S: Real>(converter: &Converter, x: &[S], what: &str) {
    match converter.format().storage_bits() {
        8 => encodes::<S, u8>(converter, x, what),
        16 => encodes::<S, u16>(converter, x, what),
        32 => encodes::<S, u32>(converter, x, what),
        _ => encodes::<S, u64>(converter, x, what),
    }
    let mut plain = x.to_vec();
    converter.fake_quantize_plain(x, &mut plain);
    let mut found = x.to_vec();
    at_every_level(|level| {
        for in_place in [false, true] {
            if in_place {
                found.copy_from_slice(x);
                converter.fake_quantize(&mut found);
            } else {
                converter.fake_quantize_into(x, &mut found);
            }
            let differs = |i: &usize| found[*i].to_code() != plain[*i].to_code();
            if let Some(i) = (0..x.len()).find(differs) {
                let (to, from, x) = (converter.format(), S::FORMAT, x[i].to_code());
                let (found, plain) = (found[i].to_code(), plain[i].to_code());
                panic!("{from} {x:#x} at {i} by {to} {what} {level}: {found:#x}, not {plain:#x}");
            }
        }
    });
}

fn encodes<S: Real, C: Bits>(converter: &Converter, x: &[S], what: &str) {
    let mut plain = vec![C::from_u64(0); x.len()];
    let mut found = plain.clone();
    converter.encode_plain(x, &mut plain);
    at_every_level(|level| {
        converter.encode_into(x, &mut found);
        if let Some(i) = (0..x.len()).find(|i| found[*i] != plain[*i]) {
            let (to, from, x) = (converter.format(), S::FORMAT, x[i].to_code());
            let (found, plain) = (found[i], plain[i]);
            panic!("{from} {x:#x} at {i} to {to} {what} {level}: {found:#x}, not {plain:#x}");
        }
    });
}

fn converter(format: Format, rounding: Rounding, overflow: Overflow) -> Converter<'static> {
    Converter::new(format, Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow))
        .with_random(RANDOM)
        .starting_at(5)
}

/// The rules that concern more than the value, or move what a number is compared with.
#[test]
fn f64_by_rules() {
    let x = f64s();
    for format in [Format::E4M3FN, Format::E5M2, Format::F16, Format::E8M0, Format::E2M1] {
        let mut all: Vec<Rules> = vec![];
        for flush in [Flush::Input, Flush::Candidates, Flush::Output] {
            all.push(Rules::DEFAULT.with_flush(flush));
            all.push(Rules::DEFAULT.with_rounding(Rounding::TowardPositive).with_flush(flush));
        }
        for operands in [Operands::Zero, Operands::PositiveZero, Operands::Away] {
            all.push(Rules::DEFAULT.with_operands(operands));
        }
        all.extend(Profile::ALL.map(|profile| profile.rules(format)));
        for rules in all {
            is_plain(&Converter::new(format, rules), &x, &format!("{rules:?}"));
        }
    }
}

/// As [`half_through_every_format`], each with every policy:
/// `cargo test --release --test decode -- --ignored every_policy`.
#[cfg(feature = "half")]
#[test]
#[ignore = "takes minutes; see the comment"]
fn half_through_every_format_by_every_policy() {
    let (f16s, bf16s) = halves();
    on_all(&half_formats().collect::<Vec<_>>(), |&format| {
        for rounding in modes() {
            for overflow in Overflow::ALL {
                let converter = converter(format, rounding, overflow);
                is_plain(&converter, &f16s, &format!("{rounding} {overflow}"));
                is_plain(&converter, &bf16s, &format!("{rounding} {overflow}"));
            }
        }
    });
}

#[cfg(feature = "half")]
fn half_formats() -> impl Iterator<Item = Format> {
    named().into_iter().chain(["e8m3", "binary8p3se", "e9m6"].map(format))
}

#[cfg(feature = "half")]
fn halves() -> (Vec<half::f16>, Vec<half::bf16>) {
    let codes = 0..=u16::MAX;
    (codes.clone().map(half::f16::from_bits).collect(), codes.map(half::bf16::from_bits).collect())
}

/// `f32` to the 16-bit types: edges of every exponent, and all numbers near the midpoints of a
/// dozen binades.
#[test]
fn f32_to_sixteen_bits() {
    let mut x = super::f32s();
    for exponent in [0, 1, 101, 102, 103, 112, 113, 114, 127, 142, 143, 254, 255] {
        // Binary16 has 13 bits less, or more of them below 2^-14; bfloat16 has 16 less.
        for top in (0..1024).step_by(7) {
            for low in [0_u32, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF] {
                x.push(f32::from_bits(exponent << 23 | top << 13 | low));
            }
        }
    }
    for format in [Format::F16, Format::BF16] {
        is_plain(&Converter::new(format, Rules::DEFAULT), &x, "to nearest even");
    }
}

/// Between the types of the language, of every one to every other.
#[test]
fn from_type_to_type() {
    fn between<S: Real, T: Real>(x: &[S]) {
        let codes: Vec<u64> = x.iter().map(|x| x.to_code()).collect();
        let mut plain = vec![T::from_code(0); x.len()];
        decode_plain(S::FORMAT, &codes, &mut plain);
        let mut out = plain.clone();
        at_every_level(|level| {
            out.fill(T::from_code(0x77));
            convert_into(x, &mut out);
            for (i, (out, plain)) in out.iter().zip(&plain).enumerate() {
                let (x, out, plain) = (codes[i], out.to_code(), plain.to_code());
                let (from, to) = (S::FORMAT, T::FORMAT);
                assert_eq!(out, plain, "{from} {x:#x} to {to} {level}: {out:#x}, not {plain:#x}");
            }
        });
    }
    fn from<S: Real>(x: &[S]) {
        between::<S, f32>(x);
        between::<S, f64>(x);
        #[cfg(feature = "half")]
        between::<S, half::f16>(x);
        #[cfg(feature = "half")]
        between::<S, half::bf16>(x);
    }
    from(&super::f32s());
    from(&f64s());
    #[cfg(feature = "half")]
    from(&(0..=u16::MAX).map(half::f16::from_bits).collect::<Vec<_>>());
    #[cfg(feature = "half")]
    from(&(0..=u16::MAX).map(half::bf16::from_bits).collect::<Vec<_>>());
}

/// Every length, and what a chunk of 2048 leaves over; random words follow the index.
#[test]
fn lengths() {
    let x: Vec<f64> = f64s().into_iter().cycle().step_by(11).take(4200).collect();
    let random = converter(Format::E4M3FN, Rounding::stochastic(8), Overflow::Finite);
    for len in (0..=130).chain([1024, 2047, 2048, 2049, 4095, 4200]) {
        is_plain(&converter(Format::E5M2, Rounding::TiesToEven, Overflow::None), &x[..len], "rne");
        is_plain(&random, &x[x.len() - len..], "sr8");
    }
}

mod long {
    use super::*;

    /// All numbers of the two types, by every mode; each format and mode meets one policy.
    #[cfg(feature = "half")]
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn half_through_every_format() {
        let (f16s, bf16s) = halves();
        let formats: Vec<_> = half_formats().enumerate().collect();
        on_all(&formats, |&(i, format)| {
            for (k, rounding) in modes().into_iter().enumerate() {
                let overflow = Overflow::ALL[(i + k) % Overflow::ALL.len()];
                let converter = converter(format, rounding, overflow);
                is_plain(&converter, &f16s, &format!("{rounding} {overflow}"));
                is_plain(&converter, &bf16s, &format!("{rounding} {overflow}"));
            }
        });
        for profile in Profile::ALL {
            let converter = Converter::new(Format::E5M2, profile.rules(Format::E5M2));
            is_plain(&converter, &f16s, &format!("{profile:?}"));
            is_plain(&converter, &bf16s, &format!("{profile:?}"));
        }
    }

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn f64_through_every_format_and_mode() {
        let x = f64s();
        let formats = named().into_iter().chain(
            [
                "e8m3",
                "e8m21",
                "e8m22",
                "e9m6",
                "e6m9-nosub",
                "e4m3b140-ieee",
                "binary8p1se",
                "binary8p4uf",
                "int12",
            ]
            .map(format),
        );
        for (i, format) in formats.enumerate() {
            for (k, rounding) in modes().into_iter().enumerate() {
                // All pairs of a mode and a policy, over the formats.
                let overflow = Overflow::ALL[(i + k) % Overflow::ALL.len()];
                is_plain(
                    &converter(format, rounding, overflow),
                    &x,
                    &format!("{rounding} {overflow}"),
                );
            }
        }
    }
}
