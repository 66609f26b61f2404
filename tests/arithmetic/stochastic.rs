//! Stochastic modes of arithmetic: all random integers of up to 4 bits, three of wider ones.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rounded, Rounding, StochasticVariant, Tininess};

use crate::oracle::{self, Grid, Random, Real, is_p3109};
use crate::pairs::rules;
use crate::threads::on_all;

const VARIANTS: [StochasticVariant; 3] =
    [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C];

/// One result under every variant: all R of 1 to 4 bits if `all`, and 0, the largest and a random
/// one of more bits.
fn check(
    grid: &Grid,
    exact: &Real,
    random: &mut Random,
    all: bool,
    ours: impl Fn(&Context) -> Rounded,
) {
    let place = match exact {
        Real::Finite(x) => Some(grid.place(x)),
        _ => return,
    };
    let wide = [5, 8, 13, 16, 24, 31, 32][random.below(7) as usize];
    let narrow: &[u8] = if all { &[1, 2, 3, 4] } else { &[3] };
    for variant in VARIANTS {
        for &bits in narrow.iter().chain([&wide]) {
            let mode = Rounding::Stochastic { variant, bits };
            let any = random.next() as u32;
            let words = match bits {
                0..=4 => (0..1_u32 << bits).map(|r| r << (32 - bits)).collect(),
                _ => vec![0, u32::MAX, any],
            };
            for word in words {
                let tininess = Tininess::After;
                let expected =
                    grid.outcome(exact, place, (mode, Overflow::None, tininess), word, 0);
                let rules = rules(grid.format, mode, Overflow::None, tininess);
                let rounded = ours(&Context::new(grid.format, rules).with_random(word));
                let ours = (rounded.code, rounded.flags.bits());
                assert!(
                    ours == expected,
                    "{} {mode} {word:#x}: {ours:x?}, expected {expected:x?} of {exact:?}",
                    grid.format
                );
            }
        }
    }
}

#[test]
fn random_operands_of_wider_formats() {
    let mut formats = oracle::formats(8, 8..=8);
    formats.extend([Format::F16, Format::BF16, Format::TF32, Format::F32, Format::F64]);
    on_all(&formats, |&format| {
        let (grid, p3109) = (Grid::new(format), is_p3109(format));
        let mut random = Random(u64::from(format.bits()) << 8);
        let wide = format.bits() > 8;
        for _ in 0..if wide { 2000 } else { 300 } {
            let codes = [(); 3].map(|()| random.next() >> (64 - format.bits()));
            // Near each other every other time, so that results are of one size.
            let near = codes[0] ^ random.below(1 << (format.man_bits() + 2).min(format.bits()));
            let codes = [codes[0], if random.below(2) == 0 { near } else { codes[1] }, codes[2]];
            let [x, y, z] = codes.map(|code| grid.decode(code));
            let [p, q, r] = codes.map(|code| Operand::new(format, code));
            let random = &mut random;
            check(&grid, &oracle::add(x, y), random, false, |c| c.add(p, q));
            check(&grid, &oracle::mul(x, y), random, false, |c| c.mul(p, q));
            check(&grid, &oracle::div(x, y, p3109), random, false, |c| c.div(p, q));
            check(&grid, &oracle::fma(x, y, z), random, false, |c| c.fma(p, q, r));
            check(&grid, &oracle::sum(&[x, y, z]), random, false, |c| c.faa(p, q, r));
            check(&grid, &oracle::sqrt(x), random, false, |c| c.sqrt(p));
            check(&grid, &oracle::rsqrt(x, p3109), random, false, |c| c.rsqrt(p));
            if [p, q].iter().all(|x| !x.is_nan()) {
                check(&grid, &oracle::hypot(x, y, p3109), random, false, |c| c.hypot(p, q));
            }
        }
    });
}

mod long {
    use super::*;

    /// All pairs of the named formats of up to 6 bits and of P3109's with 3 to 5 (with one third
    /// operand a pair), all R of sr1 to sr4, all variants.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn every_random_integer_of_few_bits() {
        let formats = oracle::formats(6, 3..=5);
        on_all(&formats, |&format| {
            let (grid, p3109) = (Grid::new(format), is_p3109(format));
            let mut random = Random(format.bits().into());
            let operand = |code| Operand::new(format, code);
            for a in format.codes() {
                for b in format.codes() {
                    let (x, y) = (grid.decode(a), grid.decode(b));
                    let (p, q) = (operand(a), operand(b));
                    check(&grid, &oracle::add(x, y), &mut random, true, |c| c.add(p, q));
                    check(&grid, &oracle::sub(x, y), &mut random, true, |c| c.sub(p, q));
                    check(&grid, &oracle::mul(x, y), &mut random, true, |c| c.mul(p, q));
                    check(&grid, &oracle::div(x, y, p3109), &mut random, true, |c| c.div(p, q));
                    // Remainders of one format's numbers are its numbers, where it has them.
                    let exact = oracle::rem(x, y, true);
                    check(&grid, &exact, &mut random, true, |c| c.rem(p, q));
                    if !p.is_nan() && !q.is_nan() {
                        let exact = oracle::hypot(x, y, p3109);
                        check(&grid, &exact, &mut random, true, |c| c.hypot(p, q));
                    }
                    // A third operand that changes with the others.
                    let third = (3 * a + 5 * b + 1) & *format.codes().end();
                    let (z, r) = (grid.decode(third), operand(third));
                    check(&grid, &oracle::fma(x, y, z), &mut random, true, |c| c.fma(p, q, r));
                    check(&grid, &oracle::sum(&[x, y, z]), &mut random, true, |c| c.faa(p, q, r));
                }
                let (x, p) = (grid.decode(a), operand(a));
                check(&grid, &oracle::sqrt(x), &mut random, true, |c| c.sqrt(p));
                check(&grid, &oracle::rsqrt(x, p3109), &mut random, true, |c| c.rsqrt(p));
                check(&grid, &oracle::sum(&[x]), &mut random, true, |c| c.convert(p));
            }
        });
    }
}
