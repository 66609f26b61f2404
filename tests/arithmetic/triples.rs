//! All triples of the formats of up to 5 bits, of fma also for MX's FP6.

use exmy::format::{Format, Sign, Specials};
use exmy::math::Operand;

use crate::oracle::{self, Grid, on_all};
use crate::pairs::check;

/// Five bits of each class of special values.
fn shapes() -> Vec<Format> {
    let classes = [Specials::Ieee, Specials::Fn, Specials::Fnuz, Specials::Finite];
    let shapes = [(2, 2), (3, 1)].into_iter();
    let built = shapes.flat_map(|(e, m)| {
        classes.map(|class| Format::builder(Sign::Magnitude, e, m).specials(class).build().unwrap())
    });
    built.collect()
}

fn all_triples(format: Format, faa: bool) {
    let grid = Grid::new(format);
    let values: Vec<_> = format.codes().map(|code| grid.decode(code)).collect();
    let operand = |code: usize| Operand::new(format, code as u64);
    for (a, x) in values.iter().enumerate() {
        for (b, y) in values.iter().enumerate() {
            for (c, z) in values.iter().enumerate() {
                let fma = || format!("{a:#x} * {b:#x} + {c:#x}");
                let (p, q, r) = (operand(a), operand(b), operand(c));
                check(&grid, &oracle::fma(*x, *y, *z), &fma, |context| context.fma(p, q, r));
                if faa && a <= b {
                    let sum = || format!("{a:#x} + {b:#x} + {c:#x}");
                    check(&grid, &oracle::sum(&[*x, *y, *z]), &sum, |context| context.faa(p, q, r));
                }
            }
        }
    }
}

#[test]
fn every_triple_of_every_tiny_format() {
    let mut formats = oracle::formats(5, 3..=5);
    formats.extend(shapes());
    on_all(&formats, |format| all_triples(*format, true));
}

#[test]
fn every_fma_of_the_six_bit_formats() {
    on_all(&[Format::E3M2, Format::E2M3], |format| all_triples(*format, false));
}
