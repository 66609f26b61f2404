//! `te-nvfp4` against its formula in exact and in rounded arithmetic, and a case by hand.

use exmy::block::{Axis, BlockFormat, BlockTensor};
use exmy::format::Format;
use exmy::gemm::{Operand, Spec, gemm};

use crate::{numbers, quantize};

fn amax(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max, x| max.max(x.abs()))
}

#[test]
fn blocks_are_exact_and_only_their_sum_rounds() {
    let (m, n, k) = (3, 8, 96);
    let (x, w) = (numbers(m * k, 1), numbers(n * k, 2));
    for format in [BlockFormat::NVFP4, BlockFormat::NVFP4_16X16] {
        let a = quantize(&x, m, k, Axis::Cols, BlockFormat::NVFP4);
        let b = quantize(&w, n, k, Axis::Cols, format);
        let (p, q) = (amax(&x), amax(&w));
        for (name, alpha) in [
            ("te-nvfp4", (p * q) / 7_225_344.0),
            ("te-nvfp4-kernel", p * q * (1.0 / 7_225_344.0_f64) as f32),
        ] {
            let spec = Spec::parse(name).unwrap().with_amaxes(p, q);
            let got = gemm(&a, Operand::from(&b).t(), &spec).unwrap();
            for (at, got) in got.into_iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let number = |t: &BlockTensor, row: usize, k: usize| {
                    f64::from(Format::E2M1.to_f32(u64::from(t.codes()[row * t.cols() + k])))
                };
                let mut sum = 0.0_f32;
                for first in (0..k).step_by(16) {
                    let block: f64 =
                        (first..first + 16).map(|k| number(&a, i, k) * number(&b, j, k)).sum();
                    let term = a.scale(i, first).to_f64() * b.scale(j, first).to_f64() * block;
                    assert_eq!(f64::from(term as f32), term, "a block's term is a binary32 number");
                    sum += term as f32;
                }
                assert_eq!(got.to_bits(), (alpha * sum).to_bits(), "{name} {format}");
            }
        }
    }
}

/// 16 times 6 x 6 with scales 448 and 2: 576 x 896 = 516096; alpha of amaxes 2688 and 12 is
/// 32256 / 7225344 = 1 / 224.
#[test]
fn by_hand() {
    let tensor = |scale: u8| {
        let (format, codes) = (BlockFormat::NVFP4, vec![0x77; 8]);
        BlockTensor::from_parts(format, Axis::Cols, (1, 16), codes, vec![scale], Some(1.0)).unwrap()
    };
    let (a, b) = (tensor(0x7E), tensor(0x40)); // 448, 2
    let spec = Spec::parse("te-nvfp4").unwrap();
    let b = Operand::from(&b).t();
    assert_eq!(gemm(&a, b, &spec.clone().with_amaxes(2688.0, 12.0)).unwrap(), [2304.0]);
    assert_eq!(gemm(&a, b, &spec.clone()).unwrap(), [516_096.0]); // tensor scales of 1
    assert_eq!(gemm(&a, b, &spec.with_alpha(0.5)).unwrap(), [258_048.0]);
    // A NaN scale is a NaN result.
    let nan = tensor(0x7F);
    assert!(gemm(&nan, b, &Spec::parse("te-nvfp4").unwrap()).unwrap()[0].is_nan());
}

#[test]
fn what_it_does_not_take() {
    let x = numbers(64, 3);
    let a = quantize(&x, 2, 32, Axis::Cols, BlockFormat::NVFP4);
    let wide = quantize(&x, 2, 32, Axis::Cols, BlockFormat::MXFP4);
    let ragged = quantize(&x, 2, 30, Axis::Cols, BlockFormat::NVFP4);
    let spec = Spec::parse("te-nvfp4").unwrap();
    let error = gemm(&a, Operand::from(&wide).t(), &spec).unwrap_err().to_string();
    assert_eq!(
        error,
        "(2 x 32) times (32 x 2): te-nvfp4 does not take the right operand; it takes e2m1 in blocks \
         of 16 along the sum with e4m3 scales: nvfp4, nvfp4-16x16"
    );
    let error = gemm(&ragged, Operand::from(&ragged).t(), &spec).unwrap_err().to_string();
    assert!(error.contains("sums 16 products at a time, and 30 are no multiple"), "{error}");
}
