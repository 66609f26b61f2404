//! Models of matrix units, against silicon, against exact arithmetic, and by hand.

#![cfg(feature = "std")]

mod fast;
mod flush;
mod literals;
mod names;
mod oracle;
mod orders;
mod page;
mod random_tiles;
mod recorded;
mod register;
mod specials;
mod stochastic;
mod tiles;

use exmy::format::Format;
use exmy::gemm::unit::{Input, Rows, Unit};
use exmy::round::{Overflow, Rounding};

fn unit(text: &str) -> Unit {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The code of an exact number.
fn code(format: Format, x: f64) -> u64 {
    let code = format.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
    assert_eq!(format.to_f64(code), x, "{x} is no number of {format}");
    code
}

fn rows(unit: &Unit, left: bool, x: &[f64], scales: &[f64]) -> Rows {
    let Input { format, scale } = if left { unit.a() } else { unit.b() };
    let codes: Vec<u64> = x.iter().map(|x| code(format, *x)).collect();
    let scales: Vec<u64> = scales.iter().map(|x| code(scale.expect("scales").format, *x)).collect();
    let made = if left {
        unit.rows(&codes, &scales, x.len())
    } else {
        unit.columns(&codes, &scales, x.len())
    };
    made.unwrap()
}

/// A dot product of exact numbers, by the plain and the fast form.
fn dot_scaled(unit: &Unit, a: &[f64], b: &[f64], scales: [&[f64]; 2], c: f64) -> f64 {
    let (a, b) = (rows(unit, true, a, scales[0]), rows(unit, false, b, scales[1]));
    let c = code(unit.result(), c);
    let plain = unit.dot(&a.row(0), &b.row(0), c);
    let mut fast = [c];
    unit.multiply(&a, &b, &mut fast);
    assert_eq!(fast[0], plain, "{unit}");
    assert_eq!(unit.explain(&a.row(0), &b.row(0), c).code, plain, "{unit}");
    unit.result().to_f64(plain)
}

fn dot(text: &str, a: &[f64], b: &[f64], c: f64) -> f64 {
    dot_scaled(&unit(text), a, b, [&[], &[]], c)
}

/// Random words: SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }
}

/// A finite code with an exponent field near `centre`, within `width`; now and then zero or
/// subnormal.
fn near(random: &mut Random, format: Format, centre: u64, width: u64) -> u64 {
    let fields = (format.max_code() >> format.man_bits()) + 1;
    let low = centre.saturating_sub(width).min(fields - 1);
    let high = (centre + width).min(fields - 1);
    let field = if random.below(12) == 0 { 0 } else { low + random.below(high - low + 1) };
    let trailing = match random.below(10) {
        0 => 0,
        _ => random.below(1 << format.man_bits()),
    };
    let magnitude = (field << format.man_bits() | trailing).min(format.max_code());
    let negative = random.below(2);
    // Where there is no negative zero, that code is NaN.
    let negative = if magnitude == 0 && !format.has_negative_zero() { 0 } else { negative };
    magnitude | negative << (format.bits() - 1)
}
