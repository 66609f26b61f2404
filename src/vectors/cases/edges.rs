//! Where conversions change their result: every value of the target and every midpoint between
//! two, up to the one beyond the largest, and the source's neighbours of both.

use crate::format::{Format, Sign, Value};
use crate::round::{Exact, Flags, Overflow, Rounding};
use crate::vectors::function::Kind;

/// Targets up to this width are taken whole; of wider ones the codes with special fields.
const WHOLE: u32 = 16;

/// Source words around the edges of a conversion, of both signs.
pub(super) fn of_conversion(from: Kind, to: Kind) -> Vec<u128> {
    let mut points = Vec::new();
    match to {
        Kind::Format(to) => of_format(to, &mut points),
        Kind::Integer { bits, .. } => integers_and_halves(bits, &mut points),
        Kind::Truth => {}
    }
    neighbours(from, &points)
}

/// Source words around integers and the midpoints between them.
pub(super) fn of_integers(from: Kind) -> Vec<u128> {
    let mut points = Vec::new();
    integers_and_halves(from.bits().max(8), &mut points);
    neighbours(from, &points)
}

/// `integer * 2^exponent`.
type Point = (u128, i32);

fn of_format(to: Format, points: &mut Vec<Point>) {
    let mut add = |code: u64| {
        let Value::Finite { significand, exponent, .. } = to.decode(code) else { return };
        let unit = (u128::from(significand), exponent);
        points.push(unit);
        // The next code is one unit of this one's last place away, past the largest one too. Where
        // code 0 is not a step below code 1, the first step ends at code 1.
        let next = match to.decode(code + 1) {
            Value::Finite { significand, exponent, .. } if code < to.max_code() => {
                (u128::from(significand), exponent)
            }
            _ => (unit.0 + 1, exponent),
        };
        points.push(next);
        points.push(middle(unit, next));
    };
    if to.bits() <= WHOLE {
        (0..=to.max_code()).for_each(&mut add);
    } else {
        let choice = super::operands::Choice::new(Kind::Format(to), super::TestLevel::Two);
        let codes = (0..choice.edges()).map(|i| choice.edge(i) as u64);
        codes.filter(|code| *code <= to.max_code()).for_each(&mut add);
        add(to.max_code());
    }
    if let Value::Finite { significand, exponent, .. } = to.max() {
        points.push((significand.into(), exponent + 1));
    }
    // Below the smallest one: its half, and three quarters and a quarter of it.
    if let Value::Finite { significand, exponent, .. } = to.min_positive() {
        points.extend([1, 2, 3].map(|quarters| (u128::from(significand) * quarters, exponent - 2)));
    }
    // The lowest number of two's complement, and what lies beyond it.
    if matches!(to.sign(), Sign::TwosComplement) {
        let low = 1_u128 << (to.man_bits() + 1);
        points.extend([low, low + 1, low + 2].map(|twice| (twice, to.lsb() - 1)));
    }
}

/// Half of the sum.
fn middle(a: Point, b: Point) -> Point {
    let exponent = a.1.min(b.1);
    let aligned = |point: Point| point.0 << (point.1 - exponent).min(64);
    (aligned(a) + aligned(b), exponent - 1)
}

/// Multiples of a half near 0 and near powers of two.
fn integers_and_halves(bits: u32, points: &mut Vec<Point>) {
    points.extend((0..=130).map(|halves| (halves, -1)));
    for place in 5..=bits.min(126) {
        let twice = 2_u128 << place;
        points.extend((0..=10).map(|offset| (twice + 5 - offset, -1)));
    }
}

/// The source's words at each point and next to it, of both signs, and those at its own end.
fn neighbours(from: Kind, points: &[Point]) -> Vec<u128> {
    let mut words = Vec::new();
    match from {
        Kind::Format(format) => {
            let sign = match format.sign() {
                Sign::Magnitude => 1 << format.magnitude_bits(),
                Sign::Unsigned => 0,
                // A fixed-point format is narrow enough to be taken whole.
                Sign::TwosComplement => return format.codes().map(u128::from).collect(),
            };
            for (significand, exponent) in points {
                let exact = Exact {
                    negative: false,
                    significand: *significand,
                    exponent: *exponent,
                    sticky: false,
                };
                let below = format.round(exact, Rounding::TowardZero, 0, Overflow::Finite);
                if below.flags.contains(Flags::OVERFLOW) {
                    continue;
                }
                let exactly = below.flags.is_empty();
                let first = below.code.saturating_sub(exactly.into());
                for code in first..=below.code + 1 {
                    words.extend([code, code | sign].map(u128::from));
                }
            }
        }
        Kind::Integer { bits, .. } => {
            for (significand, exponent) in points {
                let whole = match *exponent {
                    places @ 0..128 if places as u32 <= significand.leading_zeros() => {
                        significand << places
                    }
                    places @ -127..0 => significand >> -places,
                    _ => continue,
                };
                if whole >> (bits - 1) <= 1 {
                    let near = [whole.wrapping_sub(1), whole, whole.wrapping_add(1)];
                    words.extend(near);
                    words.extend(near.map(u128::wrapping_neg));
                }
            }
            let mask = from.mask();
            words.iter_mut().for_each(|word| *word &= mask);
        }
        Kind::Truth => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2m1_from_binary32_by_hand() {
        let words = of_conversion(Kind::Format(Format::F32), Kind::Format(Format::E2M1));
        let has = |x: f32| words.contains(&u128::from(x.to_bits()));
        // Values, midpoints, the overflow midpoint 7, the next grid value 8, twice the largest.
        for x in
            [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 0.25, 0.75, 1.25, 2.5, 5.0, 7.0, 8.0, 12.0]
        {
            assert!(has(x) && has(-x), "{x}");
            assert!(has(x.next_up()) && has(-x.next_up()), "above {x}");
            assert!(x == 0.0 || has(x.next_down()), "below {x}");
        }
        assert!(!has(9.0));
    }

    #[test]
    fn integers_around_the_ends_of_a_type() {
        let to = Kind::Integer { bits: 8, signed: true };
        let words = of_conversion(Kind::Format(Format::F16), to);
        for x in [127.0, 127.5, 128.0, -128.0, -128.5, -129.0, 255.5, 256.0, 0.5, 2.5] {
            let code = Format::F16.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
            assert!(words.contains(&code.into()), "{x}");
        }
        let from = Kind::Integer { bits: 32, signed: true };
        let words = of_conversion(from, Kind::Format(Format::F16));
        for x in [2049_i32, 2051, 65504, 65519, 65520, 65521, -65520] {
            assert!(words.contains(&u128::from(x as u32)), "{x}");
        }
    }
}
