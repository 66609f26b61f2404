//! The rules of scales against formulas in exact rational arithmetic: numbers are integers times
//! `2^-200`, in `i128` or big integers, so that nothing rounds but where the rule says so.

use exmy::block::{Axis, BlockFormat, PlainBlocks};
use exmy::format::Format;
use exmy::quantizer::{Quantizer, Target};
use exmy::slice::View;
use num_bigint::BigInt;

use super::{RANDOM, uniform};

pub(super) fn quantize(text: &str, x: &[f32], cols: usize) -> PlainBlocks {
    let quantizer: Quantizer = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let Target::Block(format) = quantizer.target else { panic!("{text} has no blocks") };
    let x = View::new(x, x.len() / cols, cols);
    PlainBlocks::quantize(x, Axis::Cols, format, (quantizer.rounding, quantizer.overflow, RANDOM))
}

pub(super) fn power(k: i32) -> f32 {
    if k < -126 { f32::from_bits(1 << (k + 149)) } else { f32::from_bits(((k + 127) as u32) << 23) }
}

/// `2^k`, normal, in binary64.
fn power64(k: i32) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

/// A binary32 magnitude times `2^149`.
fn integer(x: f32) -> BigInt {
    let bits = x.to_bits() & 0x7FFF_FFFF;
    let (field, fraction) = (bits >> 23, bits & 0x7F_FFFF);
    if field == 0 {
        BigInt::from(fraction)
    } else {
        BigInt::from(fraction | 0x80_0000) << (field - 1)
    }
}

/// Name, numerator and denominator of d, emax, M.
const ELEMENTS: [(&str, (u32, u32), i32, i32); 9] = [
    ("e4m3", (7, 4), 8, 3),
    ("e5m2", (7, 4), 15, 2),
    ("e3m2", (7, 4), 4, 2),
    ("e2m3", (15, 8), 2, 3),
    ("e2m1", (3, 2), 2, 1),
    ("int8", (127, 64), 0, 6),
    ("e3m0", (1, 1), 4, 0),
    ("e4m3fnuz", (15, 8), 7, 3),
    ("binary8p3se", (3, 2), 15, 2),
];

/// Name, smallest and largest power of two, and whether what is above is NaN.
const SCALES: [(&str, i32, i32, bool); 7] = [
    ("e8m0", -127, 127, true),
    ("ue4m3", -9, 8, false),
    ("ue5m3", -17, 16, false),
    ("bf16", -133, 127, false),
    ("f32", -149, 127, false),
    ("e5m2", -16, 15, false),
    ("binary8p1uf", -127, 126, true),
];

/// Magnitudes with every exponent, around every threshold `m` could be compared with.
fn magnitudes() -> Vec<f32> {
    let mut all = vec![f32::from_bits(1), f32::from_bits(2), f32::from_bits(3), f32::MAX];
    for k in -149..=127 {
        for eighths in 8..16_u32 {
            // eighths / 8 * 2^k, where it is a number, and its neighbours.
            let x = f64::from(eighths) / 8.0 * power64(k);
            let near = [x as f32].into_iter().filter(|y| f64::from(*y) == x);
            all.extend(
                near.flat_map(|y| [y.to_bits() - 1, y.to_bits(), y.to_bits() + 1])
                    .map(f32::from_bits),
            );
        }
        let sixteenths = (31.0 / 16.0 * power64(k)) as f32;
        all.extend(
            [sixteenths.to_bits().saturating_sub(1), sixteenths.to_bits()].map(f32::from_bits),
        );
        let sixty_fourths = (127.0 / 64.0 * power64(k)) as f32;
        all.extend([sixty_fourths.to_bits(), sixty_fourths.to_bits() + 1].map(f32::from_bits));
    }
    all.retain(|x| x.is_finite() && *x > 0.0);
    all
}

/// The exponent of a power rule, from the inequality that defines it: the smallest `s` such that
/// `amax / 2^s` is small enough.
fn exponent(rule: &str, amax: f32, (num, den): (u32, u32), emax: i32, m: i32) -> i32 {
    let amax = integer(amax);
    // amax < limit * 2^s, or <= where `closed`; limit is n / d.
    let (n, d, closed): (BigInt, u32, bool) = match rule {
        // floor(log2 amax) - emax = s  <=>  amax < 2^(s + emax + 1), s the smallest
        "floor" => (BigInt::from(1) << (emax + 1), 1, false),
        // ceil(log2 amax) - emax = s   <=>  amax <= 2^(s + emax)
        "ceil" => (BigInt::from(1) << emax, 1, true),
        // amax <= max 2^s
        "rceil" => (BigInt::from(num) << emax, den, true),
        // amax + half a place < 2^(s + emax + 1): amax < (2 - 2^-(m+1)) 2^(s + emax)
        "even" => (BigInt::from((1_u64 << (m + 2)) - 1) << emax, 1 << (m + 1), false),
        _ => panic!("{rule}"),
    };
    let fits = |s: i32| {
        // amax 2^-149 d  against  n 2^s
        let (left, right) = (&amax * d, n.clone());
        let shift = s + 149;
        let (left, right) =
            if shift >= 0 { (left, right << shift) } else { (left << -shift, right) };
        if closed { left <= right } else { left < right }
    };
    let (mut low, mut high) = (-400, 200);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

#[test]
fn powers_are_the_inequalities() {
    let amax = magnitudes();
    for rule in ["floor", "ceil", "even", "rceil"] {
        for (element, d, emax, m) in ELEMENTS {
            let exact: Vec<i32> = amax.iter().map(|x| exponent(rule, *x, d, emax, m)).collect();
            for (scale, bottom, top, nan_above) in SCALES {
                let text = format!("{element}/1:{scale}@{rule}");
                let found = quantize(&text, &amax, 1);
                let format: Format = scale.parse().unwrap();
                for ((x, s), code) in amax.iter().zip(&exact).zip(&found.scales) {
                    let value = format.to_f32(u64::from(*code));
                    if *s > top && nan_above {
                        assert!(value.is_nan(), "{text}: amax {x:e}: {value:e}, not NaN");
                    } else {
                        let want = power((*s).clamp(bottom, top));
                        assert_eq!(value, want, "{text}: amax {x:e}, exponent {s}");
                    }
                }
            }
        }
    }
}

/// Elements are `x / 2^s` exactly, rounded once: what the element format makes of the quotient in
/// f64, where it is exact.
#[test]
fn power_elements_are_rounded_once() {
    let x: Vec<f32> = (0..32 * 60)
        .map(|i| {
            uniform(i)
                * power((i / 32 * 4) as i32 - 125)
                * if i % 5 == 0 { 1.0 } else { power(-(i as i32 % 24)) }
        })
        .collect();
    for rule in ["floor", "ceil", "even", "rceil"] {
        for (element, ..) in ELEMENTS {
            for (scale, ..) in SCALES {
                for mode in ["rne", "rup", "sr8"] {
                    let text = format!("{element}/32:{scale}@{rule}@{mode}");
                    let quantizer: Quantizer = text.parse().unwrap();
                    let found = quantize(&text, &x, 32);
                    let formats = [element, scale].map(|name| name.parse::<Format>().unwrap());
                    for (i, (x, code)) in x.iter().zip(&found.codes).enumerate() {
                        let scale = formats[1].to_f64(u64::from(found.scales[i / 32]));
                        let word = RANDOM.word(i as u64);
                        let quotient = f64::from(*x) / scale;
                        let want = formats[0].encode_f64(
                            quotient,
                            quantizer.rounding,
                            quantizer.overflow,
                            word,
                        );
                        assert_eq!(u64::from(*code), want.code, "{text} {i}: {x:e} / {scale:e}");
                    }
                }
            }
        }
    }
}

/// Nothing saturates under `rceil` unless the scale is at its largest, and something would under
/// half of it: the definition of rounding up.
#[test]
fn rceil_is_the_smallest_scale_that_holds_everything() {
    for amax in magnitudes() {
        let found = quantize("e2m1/1:e8m0@rceil", &[amax], 1);
        let scale = Format::E8M0.to_f64(u64::from(found.scales[0]));
        assert!(f64::from(amax) <= 6.0 * scale);
        assert!(f64::from(amax) > 3.0 * scale || found.scales[0] == 0);
    }
}

/// A block quantized by hand under each rule: amax 6.5 of E2M1.
#[test]
fn by_hand() {
    let x = [6.5, -5.0, 1.0, 0.3];
    let image = |rule: &str| quantize(&format!("mxfp4@{rule}"), &x, 4).dequantize();
    // Scale 1: 6.5 saturates, -5 is a tie between 4 and 6 and 4 is even, 0.3 goes to 0.5.
    assert_eq!(image("floor"), [6.0, -4.0, 1.0, 0.5]);
    assert_eq!(image("even"), [6.0, -4.0, 1.0, 0.5]);
    // Scale 2: 3.25 -> 3, -2.5 -> -2, 0.5, and 0.15 -> 0.
    assert_eq!(image("rceil"), [6.0, -4.0, 1.0, 0.0]);
    assert_eq!(image("ceil"), [6.0, -4.0, 1.0, 0.0]);
    // 6.5 / 6 in E8M0 is 1; in E4M3 1.0833 -> 1.125 and 1 / 1.125 is 0.8889: 5.8, -4.4, 0.89, 0.27.
    assert_eq!(image("nearest"), [6.0, -4.0, 1.0, 0.5]);
    let fine = quantize("e2m1/4:ue4m3", &x, 4).dequantize();
    assert_eq!(fine, [6.75, -4.5, 1.125, 0.5625]);
    // The largest magnitude itself is the scale: 6.5, and -5 / 6.5 = -0.77 is nearest 1.
    let own = quantize("e2m1/4:ue4m3@max-abs", &x, 4).dequantize();
    assert_eq!(own, [6.5, -6.5, 0.0, 0.0]);
}

/// Both policies of the two's complement element: symmetric by default, down to -2 without
/// saturation (OCP MX 1.0, 5.3.4, leaves it open).
#[test]
fn mxint8_clamps() {
    let x = [1.0, -1.999, 1.999, -1.9922];
    let codes = |text: &str| quantize(text, &x, 4).codes;
    assert_eq!(codes("mxint8"), [0x40, 0x81, 0x7F, 0x81]);
    assert_eq!(codes("mxint8@sat-none"), [0x40, 0x80, 0x7F, 0x80]);
    assert_eq!(codes("mxint8@rtz@sat-none"), [0x40, 0x81, 0x7F, 0x81]);
    let image = quantize("mxint8@sat-none", &x, 4).dequantize();
    assert_eq!(image, [1.0, -2.0, 127.0 / 64.0, -2.0]);
    // microxcaling's integers are of sign and magnitude and have no -2.
    assert_eq!(codes("mxint8@microxcaling"), [0x40, 0x81, 0x7F, 0x81]);
    // Half away: 0.5 / 64 is a tie.
    let tie = [1.0, 0.5 / 64.0, -0.5 / 64.0, 1.5 / 64.0];
    assert_eq!(quantize("mxint8@microxcaling", &tie, 4).codes, [0x40, 1, 0xFF, 2]);
    assert_eq!(quantize("mxint8", &tie, 4).codes, [0x40, 0, 0, 2]);
}

/// A scale of the caller's own: exact quotients, for scales that are no powers of two either.
#[test]
fn own_scales() {
    use exmy::round::{Overflow, Rounding};
    let format: BlockFormat = "e4m3/8:ue4m3".parse().unwrap();
    let x: Vec<f32> = (0..64).map(|i| uniform(i) * 40.0).collect();
    let mean = |x: &[f32]| x.iter().map(|x| x.abs()).sum::<f32>() / x.len() as f32;
    for (axis, view) in [(Axis::Cols, View::new(&x, 8, 8)), (Axis::Rows, View::new(&x, 8, 8))] {
        let mut seen = Vec::new();
        let found = PlainBlocks::quantize_with(
            view,
            axis,
            format,
            (Rounding::TiesToEven, Overflow::Finite, RANDOM),
            |block| {
                seen.push(block.to_vec());
                mean(block)
            },
        );
        for i in 0..8 {
            let block: Vec<f32> = match axis {
                Axis::Cols => x[i * 8..(i + 1) * 8].to_vec(),
                Axis::Rows => (0..8).map(|j| x[j * 8 + i]).collect(),
            };
            assert_eq!(seen[i], block);
            let scale = Format::UE4M3
                .encode_f32(mean(&block), Rounding::TiesToEven, Overflow::Finite, 0)
                .code;
            assert_eq!(u64::from(found.scales[i]), scale);
            for (j, x) in block.iter().enumerate() {
                let at = if axis == Axis::Cols { i * 8 + j } else { j * 8 + i };
                // A ratio of 24-bit and 4-bit integers is no tie of 4 bits by accident in f64.
                let quotient = f64::from(*x) / Format::UE4M3.to_f64(scale);
                let want =
                    Format::E4M3FN.encode_f64(quotient, Rounding::TiesToEven, Overflow::Finite, 0);
                assert_eq!(u64::from(found.codes[at]), want.code);
            }
        }
    }
    let with = |scale: f32| {
        let x = View::new(&x, 8, 8);
        PlainBlocks::quantize_with(
            x,
            Axis::Cols,
            format,
            (Rounding::TiesToEven, Overflow::Finite, RANDOM),
            |_| scale,
        )
    };
    assert!(with(f32::NAN).dequantize().iter().all(|x| x.is_nan()));
    assert!(with(0.0).dequantize().iter().all(|x| *x == 0.0));
    assert_eq!(with(1e9).scales, [0x7E; 8]);
    let refused = std::panic::catch_unwind(|| {
        let x = View::new(&[1.0_f32; 16], 1, 16);
        let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
        PlainBlocks::quantize_with(
            x,
            Axis::Cols,
            BlockFormat::NVFP4,
            (rounding, overflow, RANDOM),
            |_| 1.0,
        )
    });
    assert!(refused.is_err());
}

/// Four over six by hand. The block has 6 and many fives: under 6 they go to 4 or 6, under 4 the
/// scale is 1.5 and 5 / 1.5 = 3.33 goes to 3, which is 4.5.
#[test]
fn four_over_six_by_hand() {
    let mut x = [5.0_f32; 16];
    x[0] = 6.0;
    let four = quantize("e2m1/16:ue4m3@4over6", &x, 16);
    assert_eq!(Format::UE4M3.to_f32(u64::from(four.scales[0])), 1.5);
    assert_eq!(four.dequantize()[..3], [6.0, 4.5, 4.5]);
    // Numbers of E2M1 themselves have no error under 6.
    let x = [6.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.0, -6.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0];
    let six = quantize("e2m1/16:ue4m3@4over6", &x, 16);
    assert_eq!((six.dequantize(), six.scales[0]), (x.to_vec(), 0x38));
    // Errors 1 + 1 against 2 x 0.5 + 4 x 0.25: equal sums, so 6 stays; squares 2 against 0.75, so 4 wins.
    let x = [6.0, 5.0, 5.0, 2.0, 2.0, 2.0, 2.0];
    let scale = |text: &str| Format::UE4M3.to_f32(u64::from(quantize(text, &x, 7).scales[0]));
    assert_eq!([scale("e2m1/16:ue4m3@4over6"), scale("e2m1/16:ue4m3@4over6-mse")], [1.0, 1.5]);
    // The bound: with 256 the largest block has scale 256 or 384, with 448 it saturates at 448.
    let mut x = [5.0_f32; 16];
    x[0] = 6.0;
    let code = |text: &str| Format::UE4M3.to_f32(u64::from(quantize(text, &x, 16).scales[0]));
    assert_eq!([code("nvfp4@4over6"), code("nvfp4@4over6-448")], [384.0, 448.0]);
}
