//! Conversion of slices: every fast body against the rounding core, element by element, at every
//! SIMD level of the machine.

#![cfg(feature = "std")]

mod encode;
mod fake_quantize;
mod large;
mod random;
mod stochastic;
mod structured;
mod view;

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::minifloat::Bits;
use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};
use exmy::slice::Converter;

const RANDOM: Philox = Philox::new(3, Stream::new("bulk"));

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

fn format(text: &str) -> Format {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The named formats of up to 32 bits.
fn named() -> Vec<Format> {
    let mut formats: Vec<Format> = exmy::format::NAMED.iter().map(|(_, format)| *format).collect();
    formats.retain(|format| format.bits() <= 32);
    formats
}

/// These and shapes that no name has: all kinds of zero, sign, bias and missing fields.
fn formats() -> Vec<Format> {
    let texts = [
        "e8m3",
        "e8m4",
        "e8m5",
        "e8m6",
        "e8m13",
        "e5m23",
        "e1m6",
        "e0m5",
        "e7m0",
        "e6m0",
        "e4m3b20-ieee",
        "e2m1b-100",
        "e8m3b135",
        "e8m7b120",
        "e6m9-nosub",
        "binary8p3se",
        "binary8p4sf",
        "binary8p1se",
        "binary8p4uf",
        "binary8p1uf",
        "ue5m3",
        "int4",
        "int12",
    ];
    named().into_iter().chain(texts.map(format)).collect()
}

/// Every exponent with a few significands, what lies around every edge of the format, and `some`
/// random numbers; both signs of each.
fn inputs(format: Format, some: u64) -> Vec<f32> {
    let mut bits: Vec<u32> = vec![];
    for exponent in 0..=255_u32 {
        for significand in [0, 1, 0x3F_FFFF, 0x40_0000, 0x40_0001, 0x7F_FFFF, 0x12_3456] {
            bits.push(exponent << 23 | significand);
        }
    }
    let mut around = |x: f32| {
        let x = x.to_bits() & 0x7FFF_FFFF;
        bits.extend((x.saturating_sub(1)..=(x + 1).min(0x7FFF_FFFF)).collect::<Vec<_>>());
    };
    let (max, min) = (format.max().to_f32(), format.min_positive().to_f32());
    let normal = format.min_normal().map_or(min, |normal| normal.to_f32());
    for k in 0..48 {
        around(max * (0.875 + k as f32 / 128.0));
        around(min * (k as f32 / 4.0));
        around(normal * (0.75 + k as f32 / 64.0));
    }
    let random = Philox::new(2, Stream::new("inputs"));
    bits.extend((0..some).map(|i| random.word(i) & 0x7FFF_FFFF));
    bits.iter().flat_map(|b| [f32::from_bits(*b), f32::from_bits(*b | 1 << 31)]).collect()
}

/// The codes that the rounding core gives, one call an element; element `i` has word `first + i`.
fn expected(converter: &Converter, x: &[f32], first: u64) -> Vec<u64> {
    let context = Context::new(converter.format(), converter.rules());
    let stochastic = converter.rules().rounding.is_stochastic();
    let word = |i: usize| if stochastic { RANDOM.word(first + i as u64) } else { 0 };
    let code = |(i, x): (usize, &f32)| context.with_random(word(i)).convert(Operand::f32(*x)).code;
    x.iter().enumerate().map(code).collect()
}

/// Codes in integers of each width that holds them, and values, at each level, are the core's.
fn check(converter: Converter, x: &[f32]) {
    let codes = expected(&converter, x, 0);
    let format = converter.format();
    // The values of codes of up to 16 bits once, not once an element.
    let table: Vec<u32> = match format.bits() {
        bits @ 0..=12 => (0..1 << bits).map(|code| format.to_f32(code).to_bits()).collect(),
        _ => vec![],
    };
    let value = |code: u64| match table.get(code as usize) {
        Some(value) => *value,
        None => format.to_f32(code).to_bits(),
    };
    let mut values = vec![0.0; x.len()];
    for level in levels() {
        with_level(level, || converter.fake_quantize_into(x, &mut values));
        for ((x, code), found) in x.iter().zip(&codes).zip(&values) {
            if value(*code) != found.to_bits() {
                fail(&converter, level, *x, value(*code).into(), found.to_bits().into());
            }
        }
        match format.bits() {
            0..=8 => check_codes::<u8>(&converter, level, x, &codes),
            9..=16 => check_codes::<u16>(&converter, level, x, &codes),
            _ => check_codes::<u32>(&converter, level, x, &codes),
        }
    }
}

fn check_codes<C: Bits>(converter: &Converter, level: Level, x: &[f32], codes: &[u64]) {
    let mut found = vec![C::from_u64(0); x.len()];
    with_level(level, || converter.encode_into(x, &mut found));
    for ((x, code), found) in x.iter().zip(codes).zip(&found) {
        if *code != found.to_u64() {
            fail(converter, level, *x, *code, found.to_u64());
        }
    }
}

fn fail(converter: &Converter, level: Level, x: f32, expected: u64, found: u64) -> ! {
    let (format, rules) = (converter.format(), converter.rules());
    let bits = x.to_bits();
    panic!("{format}, {level}, {x:e} ({bits:#x}): {found:#x} instead of {expected:#x}; {rules:?}");
}

/// Divides work between the machine's cores; tests of a release build take minutes otherwise.
fn spread<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) =
                    items.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    work(item);
                }
            });
        }
    });
}
