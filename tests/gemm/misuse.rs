//! Wrong calls get an error with both shapes and what would do.

use exmy::block::{Axis, BlockFormat};
use exmy::format::Format;
use exmy::gemm::{Operand, Spec, gemm, gemm_batched, gemm_codes, gemm_into};
use exmy::quantizer::Cast;
use exmy::slice::{View, ViewMut};

use crate::{numbers, quantize};

fn spec(text: &str) -> Spec {
    Spec::parse(text).unwrap()
}

#[test]
fn inner_sizes() {
    let x = [1.0; 12];
    let error = |a: (usize, usize), b: (usize, usize)| {
        gemm(View::new(&x, a.0, a.1), View::new(&x, b.0, b.1), &spec("exact"))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error((2, 3), (4, 3)),
        "(2 x 3) times (4 x 3): the left operand has 3 columns and the right one 4 rows, which must be \
         as many; a right operand stored N x K enters transposed"
    );
    assert!(error((3, 2), (3, 4)).ends_with("a left operand stored K x M enters transposed"));
    assert!(error((2, 3), (4, 1)).ends_with("which must be as many"));
}

#[test]
fn blocks_across_the_sum() {
    let x = numbers(64 * 64, 1);
    let good = quantize(&x, 64, 64, Axis::Cols, BlockFormat::MXFP8_E4M3);
    let bad = quantize(&x, 64, 64, Axis::Rows, BlockFormat::MXFP8_E4M3);
    let square = quantize(&x, 64, 64, Axis::Rows, BlockFormat::NVFP4_16X16);
    let right = Operand::from(&bad);
    assert!(gemm(&good, right, &spec("exact")).is_ok());
    // Square tiles serve both axes, whatever axis they were made for.
    assert!(gemm(&square, right, &spec("exact")).is_ok());
    let error = gemm(&bad, right, &spec("exact")).unwrap_err().to_string();
    assert_eq!(
        error,
        "(64 x 64) times (64 x 64): the left operand is mxfp8-e4m3 in blocks of 32 x 1, but the sum \
         runs along its columns, where a scale must not change within a block of the other axis: \
         quantize it with Axis::Cols, or anew with requantize(Axis::Cols, ..)"
    );
    // The axis to quantize along is the tensor's own, not that of its transpose.
    let error = gemm(&good, right.t(), &spec("fma")).unwrap_err().to_string();
    assert!(error.contains("the right operand") && error.contains("Axis::Cols"), "{error}");
}

#[test]
fn what_a_spec_asks_for_and_is_not_there() {
    let x = [1.0; 4];
    let x = View::new(&x, 2, 2);
    let error = |spec: &Spec| gemm(x, x, spec).unwrap_err().to_string();
    assert!(error(&spec("fma:bf16@sr8")).contains("needs random words"));
    assert!(
        error(&spec("exact").with_rounding("sr8".parse().unwrap())).contains("needs random words")
    );
    assert!(error(&spec("fma").with_beta(2.0)).contains("gemm_into reads the one it writes"));
    assert!(error(&spec("exact").with_output(Format::F64)).contains("gemm_codes returns them"));
    let narrow = gemm_codes::<u8>(x, x, &spec("exact").with_output(Cast::new(Format::BF16)));
    assert!(narrow.unwrap_err().to_string().contains("bf16 have 16 bits, their codes here 8"));
    let mut c = [0.0; 6];
    let error = gemm_into(x, x, &spec("exact"), ViewMut::new(&mut c, 2, 3)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "(2 x 2) times (2 x 2): the product has 2 rows and 2 columns, C has 2 and 3"
    );
}

#[test]
fn batches() {
    let x = [1.0; 6];
    let (a, b) = (Operand::from(View::new(&x, 2, 3)), Operand::from(View::new(&x, 3, 2)));
    let error = gemm_batched(&[a; 3], &[b; 2], &spec("exact")).unwrap_err().to_string();
    let shapes = "3 left operands, of 2 x 3, and 2 right ones, of 3 x 2: ";
    assert!(error.starts_with(shapes), "{error}");
    let error = gemm_batched(&[a, a, b], &[b], &spec("exact")).unwrap_err().to_string();
    assert!(error.starts_with("product 2 of the batch: (3 x 2) times (3 x 2)"), "{error}");
}

/// Matrices without elements take no memory, whatever their sizes.
#[test]
fn sizes_without_memory() {
    let view = |rows, cols| View::new(&[0.0_f32; 0], rows, cols);
    for name in ["fast", "exact", "fma", "pairwise"] {
        let error = gemm(view(1 << 40, 0), view(0, 1 << 40), &spec(name)).unwrap_err().to_string();
        assert_eq!(
            error,
            "(1099511627776 x 0) times (0 x 1099511627776): the product would have 1099511627776 x \
             1099511627776 results, more than fit a memory: multiply some rows at a time"
        );
        for (m, k, n) in [(0, usize::MAX, 0), (usize::MAX, 0, 0), (0, 0, usize::MAX)] {
            assert_eq!(gemm(view(m, k), view(k, n), &spec(name)), Ok(vec![]), "{name}");
        }
    }
}
