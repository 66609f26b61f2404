//! The minimum edge list of conversions for sources of every width: every value and every midpoint
//! of the target, half the smallest, the first value beyond the range and twice it, and the
//! source's neighbours of each; zeros, infinities, NaNs; both signs; every mode and policy.

use crate::common::{Model, Num};
use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rounding, Rules};

/// Codes of a source around the target's edges, found in the source's own order of codes.
fn edges(source: Format, from: &Model, to: &Model) -> Vec<u64> {
    let values = to.magnitudes();
    let mut points = values.to_vec();
    let halved = |x: Num| Num::new(x.integer, x.exponent - 1);
    points.extend(values.windows(2).map(|pair| halved(pair[0].plus(pair[1]))));
    points.extend(values.iter().take(3).map(|value| halved(*value)));
    points.extend(values.iter().rev().take(3).map(|value| value.times(2)));
    let mut codes = vec![0, 1, 2, from.max_code() - 1, from.max_code()];
    for point in points {
        // The last code not above the point.
        let (mut low, mut high) = (0, from.max_code());
        while low < high {
            let middle = high - (high - low) / 2;
            if from.magnitude(middle) <= point { low = middle } else { high = middle - 1 }
        }
        codes.extend([low.saturating_sub(1), low, (low + 1).min(from.max_code())]);
    }
    let sign = 1 << (source.bits() - 1);
    codes.extend(from.infinity(false));
    codes.extend(source.nan_code());
    if source.man_bits() > 1 {
        let infinity = from.infinity(false).unwrap();
        codes.extend([infinity + 1, sign - 1]); // signaling, and all ones
    }
    codes.sort_unstable();
    codes.dedup();
    codes.iter().flat_map(|code| [*code, code | sign]).collect()
}

#[test]
fn edges_of_every_target_from_sources_of_every_width() {
    let targets = [
        Format::E4M3FN,
        Format::E5M2,
        Format::E4M3_IEEE,
        Format::E3M4,
        Format::E4M3FNUZ,
        Format::E5M2FNUZ,
        Format::E3M2,
        Format::E2M3,
        Format::E2M1,
        Format::INT8,
        Format::E8M0,
        Format::UE4M3,
        Format::p3109(8, 4, true, true).unwrap(),
        Format::p3109(8, 3, false, false).unwrap(),
        Format::p3109(8, 1, true, true).unwrap(),
    ];
    let sources = [Format::F64, Format::F32, Format::TF32, Format::F16, Format::BF16, Format::E5M2];
    for source in sources {
        let from = Model::of_any_width(source);
        for to in targets {
            let model = Model::of(to);
            for code in edges(source, &from, &model) {
                let x = from.decode(code);
                for overflow in Overflow::ALL {
                    for mode in Rounding::DETERMINISTIC {
                        let rules = Rules::DEFAULT.with_rounding(mode).with_overflow(overflow);
                        let ours = Context::new(to, rules).convert(Operand::new(source, code)).code;
                        let expected = model.encode(x, mode, overflow, 0);
                        assert_eq!(ours, expected, "{source} {code:#x} to {to} {mode} {overflow}");
                    }
                }
            }
        }
    }
}

/// 16-bit targets of binary64: the neighbours of every midpoint, where going by way of binary32
/// goes wrong on one side of each. (How often crates do, `tests/minifloat/peers.rs` counts.)
#[test]
fn midpoints_of_the_16_bit_formats_from_binary64() {
    for (to, count) in [(Format::F16, 31743), (Format::BF16, 32639)] {
        let model = Model::of(to);
        let mut by_way_of_f32 = 0;
        let midpoints = model.magnitudes().windows(2).take(count);
        for (code, pair) in midpoints.enumerate() {
            let twice = pair[0].plus(pair[1]);
            let midpoint = Num::new(twice.integer, twice.exponent - 1).to_f64();
            let code = code as u64;
            let tie = code + code % 2;
            let rows =
                [(midpoint.next_down(), code), (midpoint, tie), (midpoint.next_up(), code + 1)];
            for (x, expected) in rows {
                let round = |x: f64| to.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
                assert_eq!(round(x), expected, "{to} {x:e}");
                let sign = 1 << 15;
                assert_eq!(round(-x), expected | sign, "{to} -{x:e}");
                by_way_of_f32 += usize::from(round(f64::from(x as f32)) != expected);
            }
        }
        assert_eq!(by_way_of_f32, count, "{to}: each midpoint has one wrong side");
    }
}
