//! Which kernel computes which part, and why, at the levels that have instructions for bfloat16.

use exmy::gemm::fast::{KernelReport, Packed, Scaling, multiply};
use exmy::simd::{Level, with_level};
use exmy::slice::{View, ViewMut};

use super::oracle::expected;

const SIDE: usize = 64;
const DEPTH: usize = 512;

/// Those levels, as far as this machine has them.
fn levels() -> impl Iterator<Item = Level> {
    [Level::Avx512Bf16, Level::Amx].into_iter().filter(|level| level.is_available())
}

/// Parts that these instructions computed.
fn pairs(report: &KernelReport) -> u64 {
    match report.level {
        Level::Amx => assert_eq!(report.dots, 0),
        _ => assert_eq!(report.amx, 0),
    }
    report.amx + report.dots
}

/// The report of a product of ones of 64 x 64 sums over 512 positions, eight parts, some of whose
/// elements are others: (row or column, position, number).
fn report(level: Level, a: &[(usize, usize, f32)], b: &[(usize, usize, f32)]) -> KernelReport {
    let matrix = |numbers: &[(usize, usize, f32)]| {
        let mut x = vec![1.0_f32; SIDE * DEPTH];
        numbers.iter().for_each(|(lane, k, number)| x[lane * DEPTH + k] = *number);
        x
    };
    let (a, b) = (matrix(a), matrix(b));
    let (a, b) = (View::new(&a, SIDE, DEPTH).into(), View::new(&b, SIDE, DEPTH).t().into());
    let mut c = vec![0.0; SIDE * SIDE];
    let report = with_level(level, || {
        let (a, b) = (Packed::left(&a), Packed::right(&b));
        multiply(&a, &b, ViewMut::new(&mut c, SIDE, SIDE), Scaling::OVERWRITE).unwrap()
    });
    let expected = expected(&a, &b);
    assert!(c.iter().zip(expected).all(|(x, y)| x.to_bits() == y.to_bits()));
    assert_eq!(report.parts(), 8);
    report
}

#[test]
fn one_number_demotes_its_parts_alone() {
    for level in levels() {
        assert_eq!(pairs(&report(level, &[], &[])), 8);
        // Row 40 is in the second panel, position 300 in the second slab: two parts, one a column panel.
        // A number of the first row is no other.
        for (lane, k) in [(40, 300), (0, 0)] {
            let wide = report(level, &[(lane, k, 1.0 + f32::EPSILON)], &[]);
            assert_eq!((pairs(&wide), wide.wide, wide.vectors()), (6, 2, 2));
            let wide = report(level, &[], &[(lane, k, 1.0 + f32::EPSILON)]);
            assert_eq!((pairs(&wide), wide.wide, wide.vectors()), (6, 2, 2));
        }
        let subnormal = report(level, &[], &[(3, 7, 1e-39_f32)]);
        assert_eq!((pairs(&subnormal), subnormal.wide), (6, 2)); // more bits than bfloat16 has
        let subnormal = report(level, &[], &[(3, 7, f32::from_bits(0x0040_0000))]);
        assert_eq!((pairs(&subnormal), subnormal.subnormal), (6, 2));
        for x in [f32::INFINITY, f32::NAN] {
            let special = report(level, &[(1, 511, x)], &[(63, 256, x)]);
            // Panel 0 of rows with both, and panel 1 of columns with both: three of the four parts.
            assert_eq!((pairs(&special), special.non_finite), (5, 3));
        }
        assert_eq!(pairs(&report(level, &[(0, 0, -0.0)], &[(0, 0, 0.0)])), 8);
        assert_eq!(
            report(level, &[(40, 300, f32::NAN)], &[]).to_string(),
            format!("8 parts: 6 by {level}, 2 by avx512 (infinity or NaN)")
        );
    }
}

/// 2^-126 is the least that partial sums may be multiples of.
#[test]
fn products_may_be_as_small_as_normal_numbers() {
    for level in levels() {
        let two = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
        let at = |x, y| report(level, &[(0, 0, x)], &[(0, 0, y)]);
        let fits = at(two(-63), two(-63));
        assert_eq!((pairs(&fits), fits.tiny), (8, 0));
        let below = at(two(-63), two(-64));
        assert_eq!((pairs(&below), below.tiny), (7, 1));
        // The last stored bit counts: 1.5 2^-63 is a multiple of 2^-64.
        assert_eq!(at(1.5 * two(-63), two(-63)).tiny, 1);
        assert_eq!(at(1.5 * two(-62), two(-63)).tiny, 0);
        // Of a slab the least number and the last bit of any count together.
        assert_eq!(report(level, &[(0, 0, two(-63)), (5, 9, 1.5)], &[(0, 0, two(-63))]).tiny, 1);
        // Zero is a multiple of everything.
        assert_eq!(report(level, &[(0, 0, 0.0)], &[(0, 0, two(-126))]).tiny, 0);
    }
}

/// Tiles take subnormal sums as zero, those of slabs before as well, and must not get them; dot products,
/// which add those by another instruction, are spared them too.
#[test]
fn small_sums_are_not_handed_on() {
    let two = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    // Products at three positions, of two slabs and a half.
    let sum = |level, products: [(f32, f32); 3]| {
        let (mut a, mut b) = (vec![0.0_f32; 32 * 640], vec![0.0_f32; 32 * 640]);
        for lane in 0..32 {
            for (slab, (x, y)) in products.into_iter().enumerate() {
                (a[lane * 640 + 256 * slab], b[lane * 640 + 256 * slab]) = (x, y);
            }
        }
        let (a, b) = (View::new(&a, 32, 640).into(), View::new(&b, 32, 640).t().into());
        let mut c = vec![0.0; 1024];
        let report = with_level(level, || {
            let (a, b) = (Packed::left(&a), Packed::right(&b));
            multiply(&a, &b, ViewMut::new(&mut c, 32, 32), Scaling::OVERWRITE).unwrap()
        });
        assert!(c.iter().all(|x| x.to_bits() == c[0].to_bits()));
        (c[0], report)
    };
    let (small, zero, least) = ((two(-70), two(-70)), (0.0, 0.0), (two(-63), two(-63)));
    let below = (-two(-63), two(-63));
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        // Nothing is added to 2^-140, or what makes it normal.
        let (x, report) = sum(level, [small, zero, zero]);
        assert_eq!((x.to_bits(), pairs(&report)), (0x200, 0), "{level}");
        assert_eq!(sum(level, [small, least, zero]).0.to_bits(), 0x0080_0200, "{level}");
        // Both normal, their difference is not.
        let (x, report) = sum(level, [(two(-63), two(-63) + two(-70)), below, zero]);
        assert_eq!((x.to_bits(), pairs(&report)), (1 << 16, 0), "{level}");
        // What is left by 2^-133 - 2^-133 is zero, and they may go on from there.
        let (x, report) = sum(level, [(two(-63), two(-70)), (-two(-63), two(-70)), least]);
        assert_eq!(x, two(-126), "{level}");
        assert_eq!((pairs(&report), report.parts()), (u64::from(level > Level::Avx512), 3));
    }
}

#[test]
fn other_levels_have_nothing_for_bfloat16() {
    for level in
        Level::ALL.into_iter().filter(|level| level.is_available() && *level <= Level::Avx512)
    {
        let x = [1.0_f32; 64];
        let report = with_level(level, || {
            let a = Packed::left(&View::new(&x, 1, 64).into());
            let b = Packed::right(&View::new(&x, 64, 1).into());
            multiply(&a, &b, ViewMut::new(&mut [0.0], 1, 1), Scaling::OVERWRITE).unwrap()
        });
        assert_eq!((report.level, report.without_bf16, report.parts()), (level, 1, 1));
        assert_eq!(report.to_string(), format!("1 part: 1 by {level} (not packed for bfloat16)"));
    }
}

/// What was packed at other levels lies in another order, or has nothing for them.
#[test]
fn packed_for_other_levels() {
    let x = View::new(&[1.0_f32; 64], 1, 64);
    let packed =
        |level| with_level(level, || (Packed::left(&x.into()), Packed::right(&x.t().into())));
    let all = || Level::ALL.into_iter().filter(|level| level.is_available());
    let pairs = levels().flat_map(|level| all().map(move |other| (level, other)));
    for (level, other) in pairs.filter(|(level, other)| level != other) {
        let [one, other] = [other, level].map(packed);
        let of = |a: &Packed, b: &Packed| {
            with_level(level, || {
                multiply(a, b, ViewMut::new(&mut [0.0], 1, 1), Scaling::OVERWRITE).unwrap()
            })
        };
        for (a, b) in [(&one.0, &other.1), (&other.0, &one.1), (&one.0, &one.1)] {
            let report = of(a, b);
            assert_eq!((report.without_bf16, report.parts()), (1, 1));
        }
    }
}
