//! Matrix units in the one call are the units' own dot products.

use exmy::block::{Axis, BlockFormat};
use exmy::format::Format;
use exmy::gemm::unit::Unit;
use exmy::gemm::{Operand, Spec, gemm, gemm_codes};
use exmy::slice::View;

use crate::{numbers, quantize, random_codes};

#[test]
fn codes_without_scales() {
    let (m, n, k) = (11, 5, 70);
    for (name, x, y) in [
        ("hopper", Format::E4M3FN, Format::E5M2),
        ("hopper,promote=32", Format::E4M3FN, Format::E4M3FN),
        ("ampere", Format::F16, Format::F16),
        ("cdna2", Format::BF16, Format::BF16),
        ("fast", Format::BF16, Format::E4M3FN),
    ] {
        let (a, b) = (random_codes(x, m * k, 1), random_codes(y, n * k, 2));
        let unit: Unit = format!("{name}:{x},{y}").parse().unwrap();
        let wide = |codes: &[u16]| codes.iter().map(|c| u64::from(*c)).collect::<Vec<_>>();
        let rows = unit.rows(&wide(&a), &[], k).unwrap();
        let columns = unit.columns(&wide(&b), &[], k).unwrap();
        let expected: Vec<u32> =
            (0..m * n).map(|e| unit.dot(&rows.row(e / n), &columns.row(e % n), 0) as u32).collect();
        let a = Operand::codes16(x, View::new(&a, m, k)).unwrap();
        let b = Operand::codes16(y, View::new(&b, n, k)).unwrap().t();
        // Random codes bring NaN: it is the unit's own.
        let got: Vec<u32> = gemm_codes(a, b, &Spec::parse(name).unwrap()).unwrap();
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn blocks_their_scales_and_the_tensors() {
    let (m, n, k) = (3, 4, 80);
    let (x, y) = (numbers(m * k, 3), numbers(n * k, 4));
    for (name, p, q) in [
        ("blackwell", BlockFormat::MXFP8_E4M3, BlockFormat::MXFP4),
        ("blackwell", BlockFormat::NVFP4, BlockFormat::NVFP4_16X16),
        ("fast", BlockFormat::NVFP4, BlockFormat::MXFP8_E5M2),
    ] {
        let a = quantize(&x, m, k, Axis::Cols, p);
        let b = quantize(&y, n, k, Axis::Cols, q);
        let input = |f: BlockFormat| exmy::gemm::unit::Input::try_from(f).unwrap();
        let unit: Unit = format!("{name}:{},{}", input(p), input(q)).parse().unwrap();
        let side = |t: &exmy::block::BlockTensor| -> (Vec<u64>, Vec<u64>) {
            let along = t.block().1;
            let places = (0..t.rows()).flat_map(|i| (0..k).step_by(along).map(move |j| (i, j)));
            let code = |(i, j)| u64::from(t.scale_code(i / t.block().0, j / along));
            (t.codes().into_iter().map(u64::from).collect(), places.map(code).collect())
        };
        let ((ac, asc), (bc, bsc)) = (side(&a), side(&b));
        let (rows, columns) =
            (unit.rows(&ac, &asc, k).unwrap(), unit.columns(&bc, &bsc, k).unwrap());
        let scale = a.tensor_scale().unwrap_or(1.0) * b.tensor_scale().unwrap_or(1.0);
        let got = gemm(&a, Operand::from(&b).t(), &Spec::parse(name).unwrap()).unwrap();
        for (e, got) in got.iter().enumerate() {
            let sum = f32::from_bits(unit.dot(&rows.row(e / n), &columns.row(e % n), 0) as u32);
            assert_eq!(*got, scale * sum, "{name} {p} {q}");
        }
    }
}

#[test]
fn what_a_unit_does_not_take_and_empty_sums() {
    let x = [0_u16; 8];
    let a = Operand::codes16(Format::BF16, View::new(&x, 2, 4)).unwrap();
    let error = gemm(a, a.t(), &Spec::parse("volta").unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        "(2 x 4) times (4 x 2): volta does not multiply bf16 by bf16 into f32; it takes f16, into f32 \
         or f16"
    );
    let none = Operand::codes16(Format::F16, View::new(&x, 2, 0)).unwrap();
    assert_eq!(gemm(none, none.t(), &Spec::parse("volta").unwrap()).unwrap(), [0.0; 4]);
}
