//! binary32 and binary64 against the machine's own arithmetic, which IEEE 754 defines to the bit.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::Rules;

use crate::oracle::Random;
use crate::threads::on_all;

/// Bit patterns where things happen: around zero, one, the subnormal border, the largest value,
/// with few or many bits set.
fn edges(exp_bits: u32, man_bits: u32) -> Vec<u64> {
    let top = (1_u64 << exp_bits) - 1;
    let bias = top >> 1;
    let m = u64::from(man_bits);
    let fields =
        [0, 1, 2, bias - m - 1, bias - m, bias - 1, bias, bias + 1, bias + m, top - 1, top];
    let all = (1_u64 << man_bits) - 1;
    let trailing = [0, 1, all, all - 1, 1 << (man_bits - 1), all >> 1, 0x155_5555_5555_5555 & all];
    let mut edges = Vec::new();
    for field in fields {
        for trailing in trailing {
            let magnitude = field << man_bits | trailing;
            edges.extend([magnitude, magnitude | 1 << (exp_bits + man_bits)]);
        }
    }
    edges
}

macro_rules! against {
    ($name:ident, $type:ident, $bits:ident, $format:expr) => {
        #[test]
        fn $name() {
            let format = $format;
            let context = Context::new(format, Rules::DEFAULT);
            let edges = edges(format.exp_bits(), format.man_bits());
            let operand = |x: $type| Operand::new(format, x.to_bits().into());
            let check = |ours: exmy::round::Rounded, theirs: $type, what: &dyn Fn() -> String| {
                let ours = $type::from_bits(ours.code as $bits);
                assert!(
                    ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                    "{}: {ours:e}, expected {theirs:e}",
                    what()
                );
            };
            let check_all = |a: $type, b: $type, c: $type| {
                let (x, y, z) = (operand(a), operand(b), operand(c));
                check(context.add(x, y), a + b, &|| format!("{a:e} + {b:e}"));
                check(context.sub(x, y), a - b, &|| format!("{a:e} - {b:e}"));
                check(context.mul(x, y), a * b, &|| format!("{a:e} * {b:e}"));
                check(context.div(x, y), a / b, &|| format!("{a:e} / {b:e}"));
                check(context.recip(x), 1.0 / a, &|| format!("1 / {a:e}"));
                check(context.sqrt(x), a.sqrt(), &|| format!("sqrt {a:e}"));
                check(context.fma(x, y, z), a.mul_add(b, c), &|| format!("{a:e} * {b:e} + {c:e}"));
                check(context.fmod(x, y), a % b, &|| format!("{a:e} % {b:e}"));
                check(context.round_to_integral(x, true), a.round_ties_even(), &|| {
                    format!("{a:e} to an integer")
                });
                assert_eq!(x.compare(y), a.partial_cmp(&b), "{a:e} {b:e}");
                let order = x.total_cmp(y, exmy::round::Standard::Ieee754);
                assert_eq!(order, a.total_cmp(&b), "{a:e} {b:e}");
                check(context.next_up(x), a.next_up(), &|| format!("above {a:e}"));
                check(context.next_down(x), a.next_down(), &|| format!("below {a:e}"));
            };
            let float = |bits: u64| $type::from_bits(bits as $bits);
            let seeds: Vec<u64> = (0..8).collect();
            on_all(&seeds, |&seed| {
                let mut random = Random(seed);
                for (i, a) in edges.iter().enumerate().filter(|(i, _)| *i as u64 % 8 == seed) {
                    for b in &edges {
                        let c = edges[random.below(edges.len() as u64) as usize];
                        check_all(float(*a), float(*b), float(c));
                        let _ = i;
                    }
                }
                for _ in 0..40_000 {
                    let [a, b, c] = [random.next(), random.next(), random.next()];
                    check_all(float(a), float(b), float(c));
                    // Of similar size, and a third number that cancels most of the product.
                    let near = float(a ^ (b & ((4 << format.man_bits()) - 1)));
                    let product = float(a) * near;
                    let shaken = $type::from_bits((-product).to_bits() ^ (c & 7) as $bits);
                    check_all(float(a), near, shaken);
                }
            });
        }
    };
}

against!(binary32_is_the_machines, f32, u32, Format::F32);
against!(binary64_is_the_machines, f64, u64, Format::F64);
