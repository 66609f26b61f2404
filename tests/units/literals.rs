//! Results worked out by hand for each architecture, some of them published.

use crate::{dot, dot_scaled, unit};

const fn two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// Fasi, Higham, Mikaitis, Pranesh (PeerJ CS 7:e330): a larger addend can give a smaller sum,
/// because alignment cuts more.
#[test]
fn sums_are_not_monotonic() {
    let tiny = [two(-12); 4];
    // Beside 1 the last place is 2^-23, and each 2^-24 is cut off; below 1 it is 2^-24.
    assert_eq!(dot("volta:f16", &tiny, &tiny, 1.0), 1.0);
    assert_eq!(dot("volta:f16", &tiny, &tiny, 1.0 - two(-24)), 1.0 + two(-23));
    // Ampere keeps one place more, so that both come through here, and Hopper two.
    assert_eq!(dot("ampere:f16", &tiny, &tiny, 1.0), 1.0 + two(-22));
    let tinier = [[two(-12); 4], [two(-13); 4]];
    assert_eq!(dot("turing:f16", &tinier[0], &tinier[1], 1.0), 1.0);
    assert_eq!(dot("ampere:f16", &tinier[0], &tinier[1], 1.0), 1.0);
    assert_eq!(dot("hopper:f16", &tinier[0], &tinier[1], 1.0), 1.0 + two(-23));
}

/// One product in the manner of FTTN (arXiv 2403.00232), whose GEMM gives 0 on V100, A100 and MI250X
/// and two other numbers on MI100 and H100: a large product that cancels, and something small.
#[test]
fn one_product_tells_five_devices_apart() {
    let small = 63.96875;
    let (a, b) = ([two(15), small, -two(15), 0.0], [two(15), 1.0, two(15), 0.0]);
    let on = |unit: &str| dot(unit, &a, &b, 0.0);
    // Last places beside 2^30: 2^7, 2^6, 2^5.
    assert_eq!([on("volta:f16"), on("ampere:f16"), on("hopper:f16")], [0.0, 0.0, 32.0]);
    // binary32 near 2^30 has the last place 2^7.
    assert_eq!(on("cdna2:f16"), 0.0);
    assert_eq!(on("cdna1:f16"), small);
    // A tree of additions on MI100 could not give anything but 0, which FTTN did not see there.
    assert_eq!(on("cdna1-tree:f16"), 0.0);
}

/// DeepSeek-V3 (arXiv 2412.19437): 14 bits of an 8-bit sum are kept on Hopper.
#[test]
fn fourteen_bits_of_eight_bit_sums() {
    for unit in ["hopper:e5m2", "ada:e5m2"] {
        let sum = |small: i32| dot(unit, &[1.0, two(small)], &[1.0, two(-6)], 0.0);
        assert_eq!([sum(-7), sum(-8)], [1.0 + two(-13), 1.0], "{unit}");
    }
    assert_eq!(dot("blackwell:e5m2", &[1.0, two(-8)], &[1.0, two(-6)], 0.0), 1.0 + two(-14));
    // An addend of 24 bits loses ten of them on entry.
    assert_eq!(dot("hopper:e4m3", &[0.0], &[0.0], 1.0 + two(-13) + two(-23)), 1.0 + two(-13));
    // A long sum of ones stands still at 2^19, where the last place is 2^6: each one is cut off.
    let ones = [1.0; 256];
    assert_eq!(dot("hopper:e4m3", &ones, &ones, two(19)), two(19));
    assert_eq!(dot("hopper,promote=128:e4m3", &ones, &ones, two(19)), two(19) + 256.0);
}

/// Results in binary16 are to nearest even; those in binary32 toward zero.
#[test]
fn roundings_of_results() {
    let with = |unit: &str, c: f64, x: f64| dot(unit, &[x], &[1.0], c);
    for unit in ["volta:f16+f16", "ampere:f16+f16", "hopper:f16+f16"] {
        assert_eq!([with(unit, 2048.0, 1.0), with(unit, 2048.0, 3.0)], [2048.0, 2052.0], "{unit}");
        assert_eq!(with(unit, 65504.0, 15.0), 65504.0, "{unit}");
        assert_eq!(with(unit, 65504.0, 16.0), f64::INFINITY, "{unit}");
    }
    // 1 + 2^-24 + 2^-25 and its negative.
    for (unit, sign) in [("hopper:bf16", 1.0), ("hopper:bf16", -1.0)] {
        let rounded = dot(unit, &[two(-12), two(-13)], &[sign * two(-12); 2], sign);
        assert_eq!(rounded, sign, "{unit}");
    }
    // What reaches 2^128 is infinite, what is cut below it is not.
    let big = dot("hopper:bf16", &[two(64), two(64)], &[two(63), two(63)], 0.0);
    assert_eq!(big, f64::INFINITY);
    let largest = f64::from(f32::MAX);
    assert_eq!(dot("hopper:bf16", &[two(64)], &[two(63 - 23)], largest), f64::INFINITY);
    assert_eq!(dot("hopper:bf16", &[two(64)], &[two(63 - 24)], largest), largest);
    // An infinite sum may become finite again within a step, for nothing overflows early.
    let back = dot("hopper:bf16", &[two(127), -two(127), 1.0], &[two(127), two(127), 1.0], 0.0);
    assert_eq!(back, 0.0);
    assert_eq!(dot("hopper:bf16", &[two(127), -two(127)], &[two(127), two(127)], 1.0), 0.0);
}

#[test]
fn cdna3_cuts_toward_minus_infinity() {
    let below_one = 1.0 - two(-24);
    // The addend is cut to 24 places below the larger exponent, and toward -inf.
    assert_eq!(dot("cdna3:f16", &[1.0], &[1.0], -two(-30)), below_one);
    assert_eq!(dot("cdna3,align2=rz:f16", &[1.0], &[1.0], -two(-30)), 1.0);
    // Products are cut toward zero.
    assert_eq!(dot("cdna3:f16", &[1.0, -two(-15)], &[1.0, two(-15)], 0.0), 1.0);
    // Products of odd index have their own alignment; what is left is cut where they meet.
    let (a, b) = ([1.0, -two(-15)], [1.0, two(-15)]);
    assert_eq!(dot("cdna3:e5m2fnuz", &a, &b, 0.0), below_one);
    assert_eq!(dot("cdna3,align2=rz:e5m2fnuz", &a, &b, 0.0), 1.0);
    // An addend more than 25 binades below does not count with 8-bit operands.
    let with = |unit: &str, c: f64| dot(unit, &[1.0], &[1.0], c);
    assert_eq!(
        [with("cdna3:e4m3fnuz", -two(-25)), with("cdna3:e4m3fnuz", -two(-26))],
        [below_one, 1.0]
    );
    assert_eq!(with("cdna3,reach=none:e4m3fnuz", -two(-26)), below_one);
    // A sum keeps 31 places beside a larger addend: 2^-31 beside 1, and it decides a tie.
    let small = [two(-12), two(-14)];
    assert_eq!(dot("cdna3:f16", &small, &[two(-12), two(-14)], 1.0), 1.0 + two(-23));
    // Single products of 2^128 are infinite, of both signs NaN.
    let wide = |a: &[f64], b: &[f64]| dot("cdna3:bf16", a, b, 0.0);
    assert_eq!(wide(&[two(64), -two(64)], &[two(64), two(63)]), f64::INFINITY);
    assert!(wide(&[two(64), -two(64)], &[two(64), two(64)]).is_nan());
    assert_eq!(dot("cdna3,limit=none:bf16", &[two(64), -two(64)], &[two(64), two(64)], 0.0), 0.0);
}

/// A sum that is not zero but rounds to it: NVIDIA's units give +0, as recorded on Hopper; MMA-Sim
/// rounds AMD's as IEEE 754 has it, where the sign stays.
#[test]
fn signs_of_what_rounds_to_zero() {
    let tiny = |unit: &str| dot(unit, &[-two(-80)], &[two(-80)], 0.0).to_bits();
    for unit in ["cdna1:bf16", "cdna3:bf16", "ampere,floor=none,underflow=signed:bf16"] {
        assert_eq!(tiny(unit), (-0.0_f64).to_bits(), "{unit}");
        // A sum of zero has none, whatever its terms are.
        assert_eq!(dot(unit, &[-1.0, 1.0], &[1.0, 1.0], -0.0).to_bits(), 0, "{unit}");
        assert_eq!(dot(unit, &[-0.0], &[1.0], -0.0).to_bits(), 0, "{unit}");
    }
    for unit in ["ampere,floor=none:bf16", "hopper:bf16", "cdna3,underflow=positive:bf16"] {
        assert_eq!(tiny(unit), 0, "{unit}");
    }
    // Halves of binary16's smallest number, both ways of rounding.
    let half = |unit: &str| dot(unit, &[-two(-12)], &[two(-13)], 0.0).to_bits();
    assert_eq!(half("ampere:f16+f16"), 0);
    assert_eq!(half("ampere,underflow=signed:f16+f16"), (-0.0_f64).to_bits());
}

/// What the lowest alignment exponent of results in binary16 decides: 2^-48, of two numbers 2^-24, is
/// above or below the last place beside 2^-25, and lifts that off its tie or does not.
#[test]
fn alignment_below_binary16() {
    let (a, b) = ([two(-12), two(-24)], [two(-13), two(-24)]);
    let sums = [-133, -24, -23, -21]
        .map(|floor: i32| dot(&format!("hopper,floor={floor}:f16+f16"), &a, &b, 0.0));
    assert_eq!(sums, [two(-24), two(-24), two(-24), 0.0]);
    for unit in ["hopper:f16+f16", "blackwell:f16+f16"] {
        assert_eq!(dot(unit, &a, &b, 0.0), 0.0, "{unit}");
    }
}

#[test]
fn trees_and_chains() {
    // (2^24 + 1) + (1 + 1): the first sum is a tie that goes down.
    let (a, b) = ([two(12), 1.0, 1.0, 1.0], [two(12), 1.0, 1.0, 1.0]);
    assert_eq!(dot("cdna2:f16", &a, &b, 0.0), two(24) + 2.0);
    assert_eq!(dot("cdna1:f16", &a, &b, 0.0), two(24) + 4.0);
    // MI200 takes subnormal operands for zero and gives none.
    assert_eq!(dot("cdna2:f16", &[two(-15)], &[1.0], 0.0), 0.0);
    assert_eq!(dot("cdna1:f16", &[two(-15)], &[1.0], 0.0), two(-15));
    assert_eq!(dot("cdna2:bf16", &[two(-70)], &[two(-60)], 0.0), 0.0);
    assert_eq!(dot("cdna1:bf16", &[two(-70)], &[two(-60)], 0.0), two(-130));
    // Chains: one, or even and odd.
    let (a, b) = ([two(12), 1.0, 0.0, 1.0], [two(12), 1.0, 0.0, 1.0]);
    assert_eq!(dot("cdna3:f32", &a, &b, 0.0), two(24));
    assert_eq!([dot("amx:bf16", &a, &b, 0.0), dot("fast:bf16", &a, &b, 0.0)], [two(24) + 2.0; 2]);
    // 2^-127 is subnormal in binary32.
    assert_eq!(dot("amx:bf16", &[two(-64)], &[two(-63)], 0.0), 0.0);
    assert_eq!(dot("fast:bf16", &[two(-64)], &[two(-63)], 0.0), two(-127));
    // AMX flushes what is below 2^-126 when rounded to 24 bits, though it is nearer to it than to
    // the subnormal number below (measured on a Xeon with AMX).
    let near = |last: i32| {
        let (a, b) = ([two(-63), 0.0, two(-75)], [two(-63), 0.0, -two(last)]);
        (dot("amx:bf16", &a, &b, 0.0), dot("fast:bf16", &a, &b, 0.0))
    };
    assert_eq!([near(-75), near(-76)], [(0.0, two(-126)), (two(-126), two(-126))]);
}

#[test]
fn block_scales() {
    // Blackwell, mxf8f6f4: scale exponents are added.
    let mx = |text: &str, a: &[f64], b: &[f64], x: f64, y: f64, c: f64| {
        dot_scaled(&unit(text), a, b, [&[x], &[y]], c)
    };
    assert_eq!(mx("blackwell:mxfp8-e4m3", &[1.5], &[2.0], 32.0, 0.125, 1.0), 13.0);
    // Beside 1 the last place is 2^-25: 2^-26 goes, twice the same stays out too.
    let small = mx("blackwell:mxfp8-e4m3", &[1.0; 2], &[1.0; 2], two(-20), two(-6), 1.0);
    assert_eq!(small, 1.0);
    // The sum of a group is exact before its scales' exponents align it: 36 * 16, times 448 squared.
    let six = [6.0; 16];
    assert_eq!(mx("blackwell:nvfp4", &six, &six, 448.0, 448.0, 0.0), 115_605_504.0);
    // 1/4 at 2^-18 is half a last place beside scales of 2^16, which are those of zeros here.
    let (mut a, mut b) = ([0.0; 32], [0.0; 32]);
    (a[0], b[0]) = (0.5, 0.5);
    let nv = unit("blackwell:nvfp4");
    let scales: [&[f64]; 2] = [&[two(-9), 448.0], &[two(-9), 448.0]];
    assert_eq!(dot_scaled(&nv, &a, &b, scales, 0.0), two(-20));
    (a[16], b[16]) = (1.0, 1.0);
    assert_eq!(dot_scaled(&nv, &a, &b, scales, 0.0), 200_704.0);
    // 4-bit operands with power-of-two scales have an instruction of their own: 2^-26 is beside -32
    // in either, but with 35 places in one step, and with 25 in the first of two.
    let (mut a, b) = ([1.0; 64], [1.0; 64]);
    a[1..32].fill(0.0);
    let scales: [&[f64]; 2] = [&[two(-13), 1.0], &[two(-13), 1.0]];
    let sum = |text: &str| dot_scaled(&unit(text), &a, &b, scales, -32.0);
    assert_eq!([sum("blackwell:mxfp4"), sum("blackwell-mxf8f6f4:mxfp4")], [two(-26), 0.0]);
    // `fast` multiplies each element by its scale in binary32, infinite from 2^128.
    let fast = unit("fast:mxfp8-e4m3");
    assert_eq!(dot_scaled(&fast, &[448.0], &[1.0], [&[two(-7)], &[1.0]], 0.0), 3.5);
    let big = dot_scaled(&fast, &[2.0], &[two(-9)], [&[two(127)], &[1.0]], 0.0);
    assert_eq!(big, f64::INFINITY);
}

/// binary64 on tensor cores and matrix cores is a chain of fused multiply-adds.
#[test]
fn binary64() {
    for unit in
        ["ampere:f64+f64", "hopper:f64+f64", "blackwell:f64+f64", "cdna2:f64+f64", "cdna3:f64+f64"]
    {
        // 1 + 2^-53, a tie that goes down, twice; the exact sum is 1 + 2^-52.
        assert_eq!(dot(unit, &[two(-53); 2], &[1.0; 2], 1.0), 1.0, "{unit}");
        // The product is not rounded: (1 + 2^-30)^2 - 1 - 2^-29.
        let x = 1.0 + two(-30);
        assert_eq!(dot(unit, &[x], &[x], -1.0 - two(-29)), two(-60), "{unit}");
    }
}
