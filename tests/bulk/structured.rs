//! Inputs laid where rounding decides: values of the format, ties and quarter points, and what lies
//! one and two places from each.

use exmy::format::Format;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding, Rules};
use exmy::slice::Converter;

use super::{RANDOM, check, formats, named, spread};

/// Both signs of: up to `most` neighbouring values, all where there are no more, the points at one
/// and two and three quarters between them and behind the largest, each with two neighbours on
/// either side; every exponent with significands at all kinds of edges; infinity and NaN.
fn structured(format: Format, most: usize) -> Vec<f32> {
    let half = 1_u64 << (format.bits() - 1);
    let step = half.div_ceil(most as u64).max(1);
    let mut bits: Vec<u32> = vec![0, 0x7F80_0000, 0x7F80_0001, 0x7FA1_2345, 0x7FC0_0000];
    let mut around = |x: f64| {
        let x = (x as f32).to_bits();
        let near = x.saturating_sub(2)..=x.saturating_add(2);
        bits.extend(near.filter(|near| *near <= 0x7F80_0001));
    };
    // Two codes that follow each other in each step; the upper half holds other numbers only where
    // the format has no sign.
    let codes = (0..2 * half).step_by(step as usize);
    for code in codes {
        let value = |code| format.to_f32(code & (2 * half - 1));
        let (a, b) = (f64::from(value(code)), f64::from(value(code + 1)));
        if !(a.is_finite() && a >= 0.0) {
            continue;
        }
        around(a);
        if b.is_finite() && b > a {
            for quarter in [0.25, 0.5, 0.75] {
                around(a + (b - a) * quarter);
            }
        }
    }
    let max = f64::from(format.max().to_f32());
    if max.is_finite() {
        // Behind the largest number: halves and quarters of a step, whichever bit of it that is.
        let top = f64::from(f32::from_bits(format.max().to_f32().to_bits() & 0x7F80_0000));
        for place in 0..24 {
            let unit = top / f64::from(1 << place);
            around(max + unit);
            around(max + 3.0 * unit);
        }
    }
    for exponent in 0..=255_u32 {
        for place in 0..23 {
            for significand in [1 << place, (1 << place) - 1, 0x7F_FFFF ^ ((1 << place) - 1)] {
                bits.push(exponent << 23 | significand);
            }
        }
    }
    bits.iter().flat_map(|b| [*b, b | 1 << 31]).map(f32::from_bits).collect()
}

fn modes() -> impl Iterator<Item = Rounding> {
    Rounding::DETERMINISTIC.into_iter().chain([Rounding::stochastic(8)])
}

fn converter(format: Format, rounding: Rounding, overflow: Overflow) -> Converter<'static> {
    Converter::new(format, Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow))
        .with_random(RANDOM)
}

/// The points are where they should be: of E4M3FN, whose smallest number is 2^-9, whose step is 2^-3
/// from 1 on and 32 up to 448, the largest.
#[test]
fn ties_are_among_the_inputs() {
    let x = structured(Format::E4M3FN, 1 << 20);
    for point in [0.000_976_562_5, 1.0625, 1.03125, 1.09375, 432.0, 448.0, 464.0, 480.0_f32] {
        for near in [point, point.next_up(), point.next_down().next_down()] {
            assert!(x.contains(&near) && x.contains(&-near), "{near:e}");
        }
    }
}

/// Such inputs in every run.
#[test]
fn ties_and_edges() {
    spread(&formats(), |format| {
        let all = structured(*format, 256);
        for (i, rounding) in modes().enumerate() {
            for (k, overflow) in Overflow::ALL.into_iter().enumerate() {
                // Another part for each mode and policy.
                let part: Vec<f32> = all.iter().copied().skip((i + k) % 11).step_by(11).collect();
                check(converter(*format, rounding, overflow), &part);
            }
        }
    });
}

/// A number close to where the format's values meet: its exponent from a little below the smallest
/// value to a little above the largest, as many random places as the significand and one more have,
/// and behind them a tail that is zero, all ones, next to these, or random.
fn close(format: Format, word: u32) -> f32 {
    let (low, high) = (format.emin() - format.man_bits() as i32 - 3, format.emax() + 2);
    let (low, high) = (low.clamp(-127, 127), high.clamp(-127, 128));
    let exponent = (low + (word >> 8 & 0xFFF) as i32 % (high - low + 1) + 127) as u32;
    let places = 22_u32.saturating_sub(format.man_bits());
    let below = (1_u32 << places) - 1;
    let noise = word.wrapping_mul(0x9E37_79B9);
    let tail = match word >> 4 & 7 {
        0 => 0,
        1 => 1,
        2 => below,
        3 => below.wrapping_sub(1),
        4 => 2,
        _ => noise,
    };
    let fraction = (noise << 3 & 0x007F_FFFF & !below) | tail & below;
    f32::from_bits((word & 1) << 31 | exponent << 23 | fraction)
}

/// Ten million inputs of every named format, mode and `sr8`: the structured ones with every policy,
/// then numbers close to where values meet, whose policy changes from chunk to chunk, and one
/// in eight random bits.
/// `cargo test --release --test bulk -- --ignored ten_million`. A quarter of an hour on two cores.
#[test]
#[ignore = "takes a quarter of an hour; see the comment"]
fn ten_million_inputs_of_every_format_and_mode() {
    const ALL: u64 = 10_000_000;
    const CHUNK: usize = 1 << 16;
    // `EXMY_FORMATS=e4m3,e2m1` takes a part.
    let only = std::env::var("EXMY_FORMATS").ok();
    let taken: Option<Vec<Format>> =
        only.map(|names| names.split(',').map(super::format).collect());
    for format in taken.unwrap_or_else(named) {
        let points = structured(format, 1 << 18);
        let modes: Vec<Rounding> = modes().collect();
        spread(&modes, |mode| {
            for overflow in Overflow::ALL {
                for x in points.chunks(CHUNK) {
                    check(converter(format, *mode, overflow), x);
                }
            }
            let random = Philox::new(4, Stream::new("ten million"));
            let mut first = points.len() as u64;
            for overflow in Overflow::ALL.into_iter().cycle() {
                if first >= ALL {
                    break;
                }
                let chunk = first..(first + CHUNK as u64).min(ALL);
                first = chunk.end;
                let x: Vec<f32> = chunk
                    .map(|i| match random.word(i) {
                        word if word >> 29 == 0 => f32::from_bits(word << 3 | word & 7),
                        word => close(format, word),
                    })
                    .collect();
                check(converter(format, *mode, overflow), &x);
            }
        });
        println!("{format}: {} structured inputs", points.len());
    }
}
