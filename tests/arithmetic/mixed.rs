//! Operands and results of different formats: named ones at random, and formats nobody named.

use exmy::format::{Format, FormatBuilder, NAMED, Sign, Specials};
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rounded, Rounding, Rules, Standard, Tininess};
use proptest::prelude::*;

use crate::common::Meaning;
use crate::oracle::{self, Finite, Grid, Random, Real};
use crate::pairs::is_signaling;
use crate::threads::on_all;

/// One operation's result in a format other than its operands', in all deterministic modes.
fn check(grid: &Grid, rules: Rules, exact: &Real, what: &str, ours: impl Fn(&Context) -> Rounded) {
    // P3109 has one zero: numbers that cancel have no sign.
    let exact = &match exact {
        Real::Finite(x) if rules.standard == Standard::P3109 => {
            Real::Finite(Finite { cancelled: false, ..x.clone() })
        }
        other => other.clone(),
    };
    let place = match exact {
        Real::Finite(x) => Some(grid.place(x)),
        _ => None,
    };
    for mode in Rounding::DETERMINISTIC {
        let rules = rules.with_rounding(mode);
        let (code, flags) = grid.expected(exact, place, mode, rules.overflow, 0, rules.tininess);
        let rounded = ours(&Context::new(grid.format, rules));
        let ours = rounded.flags.bits() & 7;
        assert!(
            rounded.code == code && flags.is_none_or(|flags| flags == ours),
            "{:?} {what} {mode} {:?}: {:#x} {ours:#x}, expected {code:#x} {flags:x?} of {exact:?}",
            grid.format,
            rules.overflow,
            rounded.code,
        );
    }
}

/// Every operation on three operands of any formats.
fn check_all(from: [&Grid; 3], codes: [u64; 3], to: &Grid, rules: Rules) {
    let p3109 = rules.standard == Standard::P3109;
    let operands = [0, 1, 2].map(|i| Operand::new(from[i].format, codes[i]));
    let values = [0, 1, 2].map(|i| from[i].decode(codes[i]));
    let ([a, b, c], [x, y, z]) = (operands, values);
    let signaling = (0..2).any(|i| is_signaling(from[i], codes[i]));
    let what = |name: &str| {
        let [a, b, c] = operands.map(|x| format!("{} {:#x}", x.format, x.code));
        format!("{name} {a}, {b}, {c}")
    };
    check(to, rules, &oracle::sum(&[x]), &what("convert"), |context| context.convert(a));
    check(to, rules, &oracle::add(x, y), &what("add"), |context| context.add(a, b));
    check(to, rules, &oracle::sub(x, y), &what("sub"), |context| context.sub(a, b));
    check(to, rules, &oracle::mul(x, y), &what("mul"), |context| context.mul(a, b));
    check(to, rules, &oracle::div(x, y, p3109), &what("div"), |context| context.div(a, b));
    check(to, rules, &oracle::fma(x, y, z), &what("fma"), |context| context.fma(a, b, c));
    check(to, rules, &oracle::sum(&[x, y, z]), &what("faa"), |context| context.faa(a, b, c));
    check(to, rules, &oracle::sqrt(x), &what("sqrt"), |context| context.sqrt(a));
    check(to, rules, &oracle::recip(x, p3109), &what("recip"), |context| context.recip(a));
    check(to, rules, &oracle::rsqrt(x, p3109), &what("rsqrt"), |context| context.rsqrt(a));
    check(to, rules, &oracle::rem(x, y, true), &what("rem"), |context| context.rem(a, b));
    check(to, rules, &oracle::rem(x, y, false), &what("fmod"), |context| context.fmod(a, b));
    if !signaling {
        check(to, rules, &oracle::hypot(x, y, p3109), &what("hypot"), |context| {
            context.hypot(a, b)
        });
    }
    if !matches!(x, Meaning::Nan(_)) && !matches!(y, Meaning::Nan(_)) {
        let order = a.compare(b).unwrap();
        let exact = match oracle::sub(x, y) {
            Real::Finite(difference) if difference.is_zero() => std::cmp::Ordering::Equal,
            Real::Finite(difference) if difference.negative => std::cmp::Ordering::Less,
            Real::Infinite(true) => std::cmp::Ordering::Less,
            Real::Nan(_) => std::cmp::Ordering::Equal, // infinities of one sign
            _ => std::cmp::Ordering::Greater,
        };
        assert_eq!(order, exact, "{}", what("compare"));
    }
}

fn any_rules(random: &mut Random) -> Rules {
    let standard = [Standard::Ieee754, Standard::P3109][random.below(2) as usize];
    let tininess = [Tininess::After, Tininess::Before][random.below(2) as usize];
    let overflow = Overflow::ALL[random.below(6) as usize];
    Rules::DEFAULT.with_standard(standard).with_tininess(tininess).with_overflow(overflow)
}

#[test]
fn operands_and_results_of_any_named_formats() {
    let grids: Vec<Grid> = NAMED.iter().map(|(_, format)| Grid::new(*format)).collect();
    let seeds: Vec<u64> = (0..16).collect();
    on_all(&seeds, |seed| {
        let mut random = Random(*seed);
        for _ in 0..1500 {
            let mut grid = || &grids[random.below(grids.len() as u64) as usize];
            let (from, to) = ([grid(), grid(), grid()], grid());
            let codes = from.map(|grid| random.next() >> (64 - grid.format.bits()));
            check_all(from, codes, to, any_rules(&mut random));
        }
    });
}

/// Any format the builder accepts, with up to 16 exponent bits and 10 of significand, and now and
/// then 52.
fn any_format() -> impl Strategy<Value = Format> {
    let class = prop_oneof![
        Just(Specials::Ieee),
        Just(Specials::Fn),
        Just(Specials::Fnuz),
        Just(Specials::P3109 { infinite: true }),
        Just(Specials::P3109 { infinite: false }),
        Just(Specials::Finite),
    ];
    let man_bits = prop_oneof![9 => 0..=10_u32, 1 => 11..=47_u32];
    let bias = prop_oneof![3 => Just(None), 1 => (-100..100).prop_map(Some)];
    let parts = (any::<bool>(), 0..=16_u32, man_bits, class, bias, 0..3, 0..8);
    parts.prop_filter_map("no such format", |(signed, e, m, class, bias, low, declined)| {
        let sign = if signed { Sign::Magnitude } else { Sign::Unsigned };
        let builder: FormatBuilder =
            Format::builder(sign, e, m).specials(class).zero(low != 2).subnormals(low == 0);
        let builder = if declined == 0 { builder.negative_zero(false) } else { builder };
        bias.map_or(builder, |bias| builder.bias(bias)).build().ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2500) })]

    #[test]
    fn formats_of_any_shape(
        from in [any_format(), any_format(), any_format()],
        to in any_format(),
        same in any::<bool>(),
        words in any::<[u64; 3]>(),
        seed in any::<u64>(),
    ) {
        // Of one format half of the time, or most pairs are out of each other's range.
        let from = if same { [to; 3] } else { from };
        let grids = from.map(Grid::new);
        let codes = [0, 1, 2].map(|i| words[i].checked_shr(64 - from[i].bits()).unwrap_or(0));
        check_all(
            [&grids[0], &grids[1], &grids[2]],
            codes,
            &Grid::new(to),
            any_rules(&mut Random(seed)),
        );
    }
}
