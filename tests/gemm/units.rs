//! Matrix units in the one call are the units' own dot products.

use exmy::block::{Axis, BlockFormat};
use exmy::format::Format;
use exmy::gemm::unit::Unit;
use exmy::gemm::{Operand, Spec, gemm, gemm_batched, gemm_codes};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
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

/// Output e of a stochastic unit has the words from e * (R + 1) on, R for its sum and one for the output.
#[test]
fn random_words_are_addressed_by_output() {
    let (m, n, k) = (11, 5, 70);
    let (a, b) = (random_codes(Format::E4M3FN, m * k, 1), random_codes(Format::E4M3FN, n * k, 2));
    let wide = |codes: &[u16]| codes.iter().map(|c| u64::from(*c)).collect::<Vec<_>>();
    let left = Operand::codes16(Format::E4M3FN, View::new(&a, m, k)).unwrap();
    let right = Operand::codes16(Format::E4M3FN, View::new(&b, n, k)).unwrap().t();
    let random = Philox::new(5, Stream::new("unit"));
    for (name, roundings) in [
        ("hopper,out=e8m13@sr8", 3),
        ("custom,l=8,f=12,out=e8m9@sr3c", 9),
        ("custom,l=8,out=int40b-24@sr5", 1),
    ] {
        let unit: Unit = format!("{name}:e4m3").parse().unwrap();
        assert_eq!(unit.words(k), roundings, "{name}");
        let (rows, columns) =
            (unit.rows(&wide(&a), &[], k).unwrap(), unit.columns(&wide(&b), &[], k).unwrap());
        let spec = Spec::parse(name).unwrap();
        let error = gemm(left, right, &spec).unwrap_err().to_string();
        assert!(error.contains("needs random words"), "{error}");
        let spec = spec.with_random(random);
        let sum = |e: usize, first: usize| {
            let words: Vec<u32> = (0..roundings)
                .map(|r| random.word((first + e) as u64 * (roundings as u64 + 1) + r as u64))
                .collect();
            unit.dot_with(&rows.row(e / n), &columns.row(e % n), 0, &words)
        };
        let expected: Vec<u32> = (0..m * n).map(|e| sum(e, 0) as u32).collect();
        let got: Vec<u32> = gemm_codes(left, right, &spec).unwrap();
        assert_eq!(got, expected, "{name}");
        // In a batch outputs are counted on.
        let batch = gemm_batched(&[left, left], &[right], &spec).unwrap();
        let second: Vec<u32> = (0..m * n).map(|e| sum(e, m * n) as u32).collect();
        let number = |x: &f32| if x.is_nan() { None } else { Some(x.to_bits()) };
        let numbers =
            |codes: &[u32]| codes.iter().map(|c| number(&f32::from_bits(*c))).collect::<Vec<_>>();
        assert_eq!(
            batch[m * n..].iter().map(number).collect::<Vec<_>>(),
            numbers(&second),
            "{name}"
        );
        assert_ne!(numbers(&expected), numbers(&second), "{name}");
        // A stochastic output takes the word behind those of the sum.
        let mode = Rounding::stochastic(4);
        let spec = spec.with_output(Format::E5M2).with_rounding(mode);
        let got: Vec<u8> = gemm_codes(left, right, &spec).unwrap();
        for (e, got) in got.iter().enumerate() {
            let word = random.word((e * (roundings + 1) + roundings) as u64);
            let sum = f32::from_bits(expected[e]);
            if !sum.is_nan() {
                let code = Format::E5M2.encode_f32(sum, mode, Overflow::None, word).code;
                assert_eq!(u64::from(*got), code, "{name} {e}");
            }
        }
    }
    // Orders of IEEE operations say what does.
    let spec = Spec::parse("fast,out=f32@sr8").unwrap().with_random(random);
    let error = gemm(left, right, &spec).unwrap_err().to_string();
    assert!(error.contains("fused, quarters, late, halves and groups"), "{error}");
    // Empty sums are zero.
    let none = Operand::codes16(Format::E4M3FN, View::new(&a, 2, 0)).unwrap();
    let spec = Spec::parse("hopper,out=e8m13@sr8").unwrap().with_random(random);
    assert_eq!(gemm(none, none.t(), &spec).unwrap(), [0.0; 4]);
}
