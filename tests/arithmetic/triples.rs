//! fma of all triples of codes: all shapes of up to 5 bits on request, in every run those of up to
//! 4 bits, the named ones, P3109's, and of the others of 5 bits one triple in 23; MX's FP6 too. faa
//! with them, for operands in one order of the first two.

use exmy::format::Format;
use exmy::math::Operand;

use crate::oracle::{self, Grid};
use crate::pairs::{check, is_signaling};
use crate::threads::on_all;

/// Every `step`th triple.
fn triples(format: Format, faa: bool, step: usize) {
    let grid = Grid::new(format);
    let count = 1_u64 << format.bits();
    for triple in (0..count * count * count).step_by(step) {
        let codes = [triple / count / count, triple / count % count, triple % count];
        let [x, y, z] = codes.map(|code| grid.decode(code));
        let [a, b, c] = codes;
        let [p, q, r] = codes.map(|code| Operand::new(format, code));
        let signaling = codes.iter().any(|code| is_signaling(&grid, *code));
        let what = || format!("{a:#x} * {b:#x} + {c:#x}");
        let exact = oracle::fma(x, y, z);
        let raised = oracle::raised(&exact, &[x, y, z], signaling);
        // Zero times infinity is invalid whatever is added.
        let product = oracle::mul(x, y);
        let raised = raised | oracle::raised(&product, &[x, y], false) & 16;
        check(&grid, &exact, raised, &what, |context| context.fma(p, q, r));
        if faa && a <= b {
            let what = || format!("{a:#x} + {b:#x} + {c:#x}");
            let exact = oracle::sum(&[x, y, z]);
            let raised = oracle::raised(&exact, &[x, y, z], signaling);
            check(&grid, &exact, raised, &what, |context| context.faa(p, q, r));
        }
    }
}

#[test]
fn some_triples_of_every_shape_of_five_bits() {
    on_all(&oracle::shapes(5), |format| triples(*format, true, 23));
}

#[test]
fn every_fma_of_the_six_bit_formats() {
    on_all(&[Format::E3M2, Format::E2M3], |format| triples(*format, false, 1));
}

/// All triples of all shapes of up to 5 bits:
///
/// ```text
/// cargo test --release --test arithmetic -- --ignored every_triple_of_every_shape
/// ```
#[test]
#[ignore = "a minute; the command is above"]
fn every_triple_of_every_shape() {
    on_all(&oracle::shapes(5), |format| triples(*format, true, 1));
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn every_triple_of_every_named_or_tiny_format() {
        let mut formats = oracle::formats(5, 3..=5);
        formats.extend(oracle::shapes(4));
        on_all(&formats, |format| triples(*format, true, 1));
    }
}
