//! Counts of the images of packed operands, against a scan of the dequantized matrix.

use exmy::block::{Axis, NAMED};
use exmy::format::Format;
use exmy::gemm::fast::{Counts, Packed, Scaling, images_plain, multiply};
use exmy::gemm::{Operand, Why};
use exmy::simd::with_level;
use exmy::slice::{View, ViewMut};

use super::levels;
use super::numbers::{KINDS, Matrix, Random};
use super::oracle::images;

/// The figures of an operand, number by number.
fn scan(of: &Operand<'_>) -> [u64; 7] {
    let images = images(of);
    let count = |is: fn(&f32) -> bool| images.iter().filter(|x| is(x)).count() as u64;
    let amax = images.iter().filter(|x| x.is_finite()).fold(0.0_f32, |most, x| most.max(x.abs()));
    [
        images.len() as u64,
        count(|x| *x == 0.0),
        count(|x| x.is_subnormal()),
        count(|x| x.is_infinite()),
        count(|x| x.is_nan()),
        images_plain(of).1,
        amax.to_bits().into(),
    ]
}

fn fields(counts: Counts) -> [u64; 7] {
    let Counts { count, zeros, subnormals, infinities, nans, overflows, amax, .. } = counts;
    [count, zeros, subnormals, infinities, nans, overflows, amax.to_bits().into()]
}

fn check(of: &Operand<'_>, name: &str) {
    let expected = scan(of);
    for level in levels() {
        with_level(level, || {
            let left = Packed::left(of).counts();
            assert_eq!(fields(left), expected, "{name} {:?} {level}", of.shape());
            assert_eq!(Packed::right(&of.t()).counts(), left, "{name} {:?} {level}", of.shape());
        });
    }
}

#[test]
fn counts_are_those_of_a_scan() {
    let mut random = Random::new(31);
    for shape in [(1, 1), (3, 70), (33, 32), (70, 40), (40, 600), (600, 33)] {
        for kind in KINDS {
            let matrix = Matrix::random(&mut random, kind, shape, Axis::Cols);
            check(&matrix.operand(), &format!("{kind:?}"));
        }
        for name in ["e4m3", "e5m2", "bf16", "f16", "e8m10", "e8m13"] {
            let matrix = Matrix::codes(&mut random, name.parse().unwrap(), shape);
            check(&matrix.operand(), name);
        }
    }
    // Rows of whole blocks of 32 are packed by other code.
    for (name, format) in NAMED {
        for shape in [(5, 64), (40, 320)] {
            let matrix =
                Matrix::blocks(&mut random, format, shape, Axis::Cols, true, shape.0 == 40);
            check(&matrix.operand(), name);
        }
    }
}

#[test]
fn no_numbers_have_no_figures() {
    let none: [f32; 0] = [];
    for (rows, cols) in [(0, 0), (0, 5), (5, 0)] {
        let packed = Packed::left(&View::new(&none, rows, cols).into());
        assert_eq!(packed.counts(), Counts::default());
    }
}

/// Of formats beyond binary32 nothing is packed, and the product says what it takes.
#[test]
fn values_beyond_binary32_are_refused() {
    let (x, codes) = ([1.0_f64; 6], [0x3F80_u16; 6]);
    let wide: Format = "e11m4".parse().unwrap();
    for operand in [
        Operand::f64(View::new(&x, 2, 3)),
        Operand::codes16(wide, View::new(&codes, 2, 3)).unwrap(),
    ] {
        let (left, right) = (Packed::left(&operand), Packed::right(&operand.t()));
        assert_eq!((left.shape(), right.shape()), ((2, 3), (3, 2)));
        assert_eq!(left.counts(), Counts::default());
        let mut c = [7.0; 4];
        let out = ViewMut::new(&mut c, 2, 2);
        let error = multiply(&left, &right, out, Scaling::OVERWRITE).unwrap_err();
        assert!(matches!(error.why, Why::Format { .. }));
        assert_eq!(
            error.to_string(),
            "(2 x 3) times (3 x 2): fast does not take the left operand; it takes any formats whose \
             values are binary32 numbers, with block scales or without, into f32"
        );
        assert_eq!(c, [7.0; 4]);
    }
    // Memory of such an operand serves another one.
    let mut packed = Packed::left(&Operand::f64(View::new(&x, 2, 3)));
    packed.repack(&View::new(&[2.0_f32; 6], 3, 2).into());
    assert_eq!((packed.shape(), packed.counts().amax), ((3, 2), 2.0));
    packed.repack(&Operand::f64(View::new(&x, 2, 3)));
    assert_eq!(packed.counts(), Counts::default());
}
