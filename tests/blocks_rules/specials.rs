//! Zero, infinity, NaN and extremes: the table of each profile, and the edge cases of NVFP4 one by
//! one.

use exmy::block::BlockFormat;
use exmy::format::Format;

use super::bits;
use super::rules::{power, quantize};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// The scale code of a block that holds `amax`, a zero and a one-third of it.
fn scale(text: &str, amax: f32) -> u32 {
    let third = if amax.is_finite() { amax / 3.0 } else { 1.0 };
    quantize(text, &[0.0, -amax, third], 3).scales[0]
}

const MX: [&str; 5] = ["mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4"];

/// Scale codes of `amax` 0, infinity and NaN for the five MX formats.
#[test]
fn zero_infinity_nan() {
    let nan = [0xFF; 5];
    let rows: [(&str, [u32; 5]); 15] = [
        ("floor", nan),
        ("ceil", nan),
        ("even", nan),
        ("rceil", nan),
        ("floor@microxcaling", nan),
        ("rceil@microxcaling-torch", nan),
        ("floor@torchao", nan),
        ("even@torchao", nan),
        ("rceil@torchao", nan),
        // 255 - emax: recorded from torchao 0.18.0.
        ("floor@torchao-0.18", [0xF7, 0xF0, 0xFB, 0xFD, 0xFD]),
        ("ceil@torchao-0.18", [0xF7, 0xF0, 0xFB, 0xFD, 0xFD]),
        ("even@torchao-0.18", [0xF7, 0xF0, 0xFB, 0xFD, 0xFD]),
        ("rceil@torchao-0.18", [0xFE; 5]),
        ("rceil@te", [0xFE; 5]),
        ("rceil@te-2.13", [0xFE; 5]),
    ];
    for (suffix, infinite) in rows {
        for (name, infinite) in MX.into_iter().zip(infinite) {
            let text = format!("{name}@{suffix}");
            assert_eq!(scale(&text, INF), infinite, "{text}");
            assert_eq!(scale(&text, NAN), 0xFF, "{text}");
            assert_eq!(scale(&text, 0.0), 0, "{text}");
            assert_eq!(scale(&text, f32::from_bits(1)), 0, "{text}");
            let image = quantize(&text, &[NAN, 1.0], 2).dequantize();
            assert_eq!(bits(&image), [0x7FC0_0000; 2], "{text}");
        }
    }
}

/// What an infinity leaves of its block where the scale is not NaN: the largest value.
#[test]
fn infinite_blocks() {
    let image = |text: &str| quantize(text, &[-INF, 1.0, power(127)], 3).dequantize();
    assert_eq!(image("mxfp4@torchao-0.18"), [-6.0 * power(126), 0.0, 2.0 * power(126)]);
    // 2^127 / 2^127 is 1; infinity saturates at 6, and 6 x 2^127 is infinite.
    assert_eq!(image("mxfp4@te"), [-INF, 0.0, power(127)]);
    assert!(image("mxfp4").iter().all(|x| x.is_nan()));
}

/// `d 2^(emax-127) (1 + 2^-23)`: the product with `1 / max` underflows and loses the last bit, so
/// the shortcut stays at 2^-127 where the exact rule goes on.
#[test]
fn the_shortcut_underflows() {
    let max = [448.0, 57344.0, 28.0, 7.5, 6.0_f32];
    for (name, max) in MX.into_iter().zip(max) {
        let amax = f32::from_bits((max * power(-127)).to_bits() + 1);
        assert_eq!(scale(&format!("{name}@rceil"), amax), 1, "{name}");
        for profile in ["torchao", "te", "te-2.13"] {
            assert_eq!(scale(&format!("{name}@rceil@{profile}"), amax), 0, "{name} {profile}");
        }
        // One binade up the product is normal and all agree.
        for profile in ["ocp", "torchao", "te"] {
            let text = format!("{name}@rceil@{profile}");
            assert_eq!(scale(&text, 2.0 * amax), 2, "{text}");
            assert_eq!(scale(&text, max * power(-126)), 1, "{text}");
        }
        // 0.18's logarithm is one too low just above 2^s for most s; here s is 100.
        let amax = f32::from_bits((max * power(100)).to_bits() + 2);
        assert_eq!(scale(&format!("{name}@rceil"), amax), 127 + 101, "{name}");
        assert_eq!(scale(&format!("{name}@rceil@torchao-0.18"), amax), 127 + 100, "{name}");
    }
}

/// The product of the number above `127/64 2^k` with the binary32 number nearest 64/127 rounds
/// to `2^k`: of `int8` alone the shortcut is too low where nothing underflows.
#[test]
fn the_shortcut_with_int8() {
    let max = 127.0_f32 / 64.0;
    for k in [-120, -1, 0, 100] {
        let edge = (max * power(k)).to_bits();
        let [at, above, further] = [0, 1, 2].map(|ulps| f32::from_bits(edge + ulps));
        let of = |profile: &str| {
            [at, above, further].map(|amax| scale(&format!("mxint8@rceil{profile}"), amax) as i32)
        };
        assert_eq!(of(""), [127 + k, 128 + k, 128 + k]);
        for profile in ["@torchao", "@te", "@te-2.13"] {
            assert_eq!(of(profile), [127 + k, 127 + k, 128 + k], "{profile} {k}");
        }
        for (name, max) in MX.into_iter().zip([448.0, 57344.0, 28.0, 7.5, 6.0_f32]) {
            let above = f32::from_bits((max * power(k.max(-60))).to_bits() + 1);
            let found = scale(&format!("{name}@rceil@torchao"), above) as i32;
            assert_eq!(found, 128 + k.max(-60), "{name}");
        }
    }
}

/// torchao reads exponent fields: its `even` carries a number near 2^128 to infinity, which main then
/// refuses.
#[test]
fn carries_past_binary32() {
    for (name, m, emax) in [("mxfp8-e4m3", 3, 8), ("mxfp8-e5m2", 2, 15), ("mxfp4", 1, 2)] {
        let threshold = (2.0 - power(-m - 1)) * power(127);
        let below = f32::from_bits(threshold.to_bits() - 1);
        for profile in ["ocp", "torchao", "torchao-0.18"] {
            let code = scale(&format!("{name}@even@{profile}"), below);
            assert_eq!(code, 254 - emax, "{name} {profile}");
        }
        for (profile, code) in [("ocp", 255 - emax), ("torchao", 255), ("torchao-0.18", 255 - emax)]
        {
            assert_eq!(
                scale(&format!("{name}@even@{profile}"), threshold),
                code,
                "{name} {profile}"
            );
        }
    }
    // Of an element format with emax 0, `ceil` alone leaves the range of E8M0.
    assert_eq!(scale("mxint8@ceil", 1.5 * power(127)), 255);
    assert_eq!(scale("mxint8@rceil@te", f32::MAX), 254);
    assert_eq!(scale("mxint8@ceil", power(127)), 254);
}

/// What code 0 divides by: 2^-127, in 0.18 twice that or 1.
#[test]
fn the_smallest_scale() {
    let x = [3.0 * power(-127), -1.5 * power(-127), 0.5 * power(-127)];
    let values = |text: &str| -> Vec<f32> {
        let found = quantize(text, &x, 3);
        assert_eq!(found.scales, [0], "{text}");
        found.codes.iter().map(|code| Format::E2M1.to_f32(u64::from(*code))).collect()
    };
    for text in ["mxfp4", "mxfp4@torchao", "mxfp4@rceil@torchao", "mxfp4@te", "mxfp4@microxcaling"]
    {
        assert_eq!(values(text), [3.0, -1.5, 0.5], "{text}");
    }
    // Halved, with 0.75 a tie that goes to 1, and 0.25 one that goes to 0.
    assert_eq!(values("mxfp4@torchao-0.18"), [1.5, -1.0, 0.0]);
    for text in ["mxfp4@rceil@torchao-0.18", "mxfp4@te-2.13"] {
        assert_eq!(bits(&values(text)), [0, 0x8000_0000, 0], "{text}");
    }
}

/// Zeros: signed, positive where the number was a zero, or all positive.
#[test]
fn signs_of_zero() {
    let x = [1.0, -0.0, -1e-3, 0.0];
    let codes = |text: &str| quantize(text, &x, 4).codes;
    for text in ["mxfp4", "mxfp4@torchao", "mxfp4@te", "nvfp4@torchao"] {
        assert_eq!(codes(text)[1..], [8, 8, 0], "{text}");
    }
    for text in ["nvfp4", "nvfp4@te", "nvfp4@te-2.13", "nvfp4@4over6", "mxfp4@microxcaling-torch"] {
        assert_eq!(codes(text)[1..], [0, 8, 0], "{text}");
    }
    assert_eq!(codes("mxfp4@microxcaling")[1..], [0, 0, 0]);
}

/// A quotient of microxcaling's PyTorch code is a binary32 number: -2^-150 is a tie that goes to zero,
/// and `torch.sign(-0.0)` is 0. Beside 2^100 the scale of e4m3 is 2^92.
#[test]
fn quotients_that_underflow() {
    let above = f32::from_bits(power(-58).to_bits() + 1);
    let x = [power(100), -1e-35, -power(-58), -above, -power(-40), -0.0, 1e-35];
    for flush in ["", "-flush"] {
        for rounding in ["", "@rne", "@rtz"] {
            let text = format!("mxfp8-e4m3@microxcaling-torch{flush}{rounding}");
            let found = quantize(&text, &x, 7);
            assert_eq!(found.scales, [127 + 92], "{text}");
            assert_eq!(found.codes, [0x78, 0, 0, 0x80, 0x80, 0, 0], "{text}");
            let zeros = [0, 0, 0x8000_0000, 0x8000_0000, 0, 0];
            assert_eq!(bits(&found.dequantize())[1..], zeros, "{text}");
        }
    }
    // Modes that it lacks round the exact quotient, once.
    let code = |text: &str| quantize(text, &x, 7).codes;
    assert_eq!(code("mxfp8-e4m3@microxcaling-torch@rup")[1..], [0x80, 0x80, 0x80, 0x80, 0, 1]);
    // Exact quotients keep their signs.
    assert_eq!(code("mxfp8-e4m3")[1..], [0x80, 0x80, 0x80, 0x80, 0x80, 0]);
}

/// torchao 0.18 divides the finite elements of a block with a NaN by infinity under `floor`, `ceil` and
/// `even`, so that they get the codes of zeros (`to_mx`, recorded: 00 and 80 beside 7f), and its
/// conversions to 6 and 4 bits make 0e, 0c and 3 of NaN. Here all are NaN, in formats without NaN
/// the largest; what is read is NaN either way.
#[test]
fn codes_under_nan_scales() {
    let x = [NAN, 1.0, -1.0, 0.0, -0.0, INF, -INF];
    for (name, code) in MX.into_iter().zip([0x7F, 0x7E, 0x1F, 0x1F, 7]) {
        for rule in ["floor", "ceil", "even", "rceil"] {
            let text = format!("{name}@{rule}@torchao-0.18");
            let found = quantize(&text, &x, 7);
            assert_eq!(found.scales, [0xFF], "{text}");
            assert_eq!(found.codes, [code; 7], "{text}");
            assert_eq!(bits(&found.dequantize()), [0x7FC0_0000; 7], "{text}");
        }
    }
}

/// microxcaling's options: blocks of subnormal numbers, and the one number below a tie that goes up.
#[test]
fn microxcaling_options() {
    let x = [1.5 * power(-127), power(-129)];
    let image = |text: &str, x: &[f32]| quantize(text, x, x.len()).dequantize();
    assert_eq!(image("mxfp4@microxcaling", &x), [1.5 * power(-127), 0.5 * power(-127)]);
    assert_eq!(image("mxfp4@microxcaling-flush", &x), [0.0, 0.0]);
    assert_eq!(image("mxfp4@microxcaling-flush", &[power(-126), 0.0]), [power(-126), 0.0]);
    // 0.5 - 2^-25 of the smallest number, 0.5: PyTorch's sum with 0.5 is 1.
    let below = f32::from_bits(0.25_f32.to_bits() - 1);
    for (text, small) in [
        ("mxfp4", 0.0),
        ("mxfp4@microxcaling", 0.0),
        ("mxfp4@microxcaling-torch", 0.5),
        ("mxfp4@microxcaling-torch@rne", 0.5),
        ("mxfp4@microxcaling-torch@rtz", 0.0),
    ] {
        assert_eq!(image(text, &[4.0, below]), [4.0, small], "{text}");
        let further = f32::from_bits(below.to_bits() - 1);
        assert_eq!(image(text, &[4.0, further]), [4.0, 0.0], "{text}");
    }
    // Just below 2^k the logarithm is k for 250 of the 254 powers from 2^-126 to 2^127, so the scale
    // is one too high.
    let exceptions: Vec<i32> = (-126..=127)
        .filter(|k| {
            let below = f32::from_bits(power(*k).to_bits() - 1);
            let exact = scale("int8/32:e8m0", below);
            let torch = scale("int8/32:e8m0@microxcaling-torch", below);
            assert!(torch == exact || torch == exact + 1);
            torch == exact
        })
        .collect();
    assert_eq!(exceptions, [-1, 0, 1, 2]);
    // It takes the elements with it: 0.99999994 alone is 1 - 2^-4 of e4m3 exactly, and rounds to 1
    // under the higher exponent all the same.
    assert_eq!(scale("mxfp8-e4m3@microxcaling-torch", f32::from_bits(power(3).to_bits() - 1)), 122);
    assert_eq!(scale("mxfp8-e4m3@microxcaling", f32::from_bits(power(3).to_bits() - 1)), 121);
}

/// Zero is the smallest normal number where a logarithm of it would be taken (`_shared_exponents` of
/// `mx/mx_ops.py`), and has the exponent field 0 in C++ (`mx/cpp/funcs.cpp`, `shared_exp.cuh`): `2^-126`
/// and `2^-127`, less emax. At or below `2^-127` both are clamped to it, which leaves emax 0.
#[test]
fn microxcaling_zero_blocks() {
    for rule in ["floor", "rceil"] {
        for flush in ["", "-flush"] {
            assert_eq!(scale(&format!("mxint8@{rule}@microxcaling{flush}"), 0.0), 0);
            assert_eq!(scale(&format!("mxint8@{rule}@microxcaling-torch{flush}"), 0.0), 1);
            assert_eq!(scale(&format!("mxfp4@{rule}@microxcaling-torch{flush}"), 0.0), 0);
        }
    }
}

/// Where torchao 0.18.0 computes with NaN, its E2M1 conversion (`_f32_to_floatx_unpacked`) makes 1.5 with
/// the NaN's sign of it, which for 0 / 0 is the machine's; here the code is 7 on all of them. Scales
/// are the same. Under a NaN scale no value shows it. Under a finite one, only where `1 / s` is
/// infinite, `amax <= 2688 * 2^-128`, for zeros.
#[test]
fn torchao_with_nan_elements() {
    let of = |x: [f32; 2]| {
        let tensor = quantize("nvfp4@torchao-0.18", &x, 2);
        let values = tensor.dequantize();
        (tensor.scales[0], [tensor.codes[0], tensor.codes[1]], values)
    };
    let (scale, codes, values) = of([0.0, 0.0]);
    assert_eq!((scale, codes), (0x7F, [7, 7])); // torchao: codes 3 or B
    assert!(values.iter().all(|x| x.is_nan()));
    let amax = 7e-36;
    let (scale, codes, values) = of([amax, 0.0]);
    assert_eq!((scale, codes), (0x7E, [7, 7])); // torchao: codes 7 and 3 or B
    assert_eq!(values, [6.0 * (448.0 * (amax / 2688.0)); 2]);
    // Above, zeros are zeros.
    assert_eq!(of([9e-36, 0.0]).1, [7, 0]);
}

/// A narrower scale than E8M0, as microxcaling's `scale_bits = 5`: powers beyond 2^15 are NaN, those
/// below 2^-15 are 2^-15.
#[test]
fn five_bits_of_scale() {
    use exmy::format::Sign;
    let scale = Format::builder(Sign::Unsigned, 5, 0)
        .specials(exmy::format::Specials::Fn)
        .zero(false)
        .subnormals(false)
        .build()
        .unwrap();
    assert_eq!((scale.emin(), scale.emax()), (-15, 15));
    let format = BlockFormat { scale, ..BlockFormat::MXFP4 };
    let value = |amax: f32| {
        use exmy::block::{Axis, PlainBlocks};
        use exmy::round::{Overflow, Rounding};
        let x = [amax];
        let x = exmy::slice::View::new(&x, 1, 1);
        let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
        let found =
            PlainBlocks::quantize(x, Axis::Cols, format, (rounding, overflow, super::RANDOM));
        scale.to_f32(u64::from(found.scales[0]))
    };
    assert_eq!(
        [value(power(17)), value(power(-13)), value(power(-30))],
        [power(15), power(-15), power(-15)]
    );
    assert!(value(power(18)).is_nan());
}

/// arXiv 2509.25149 and Transformer Engine, case by case; see also `tests/blocks/nvfp4.rs`.
mod nvfp4 {
    use super::*;

    /// All zeros: factor 1, scales 0. torchao divides 0 by 0.
    #[test]
    fn zero_tensor() {
        for text in ["nvfp4", "nvfp4@te", "nvfp4@te-2.13", "nvfp4@4over6"] {
            let found = quantize(text, &[0.0; 32], 32);
            assert_eq!(
                (found.scales.as_slice(), found.tensor_scale),
                (&[0, 0][..], Some(1.0)),
                "{text}"
            );
            assert_eq!(found.codes, [0; 32]);
            assert_eq!(bits(&found.dequantize()), [0; 32]);
        }
        let found = quantize("nvfp4@torchao", &[0.0; 32], 32);
        assert_eq!((found.scales.as_slice(), found.tensor_scale), (&[0x7F, 0x7F][..], Some(0.0)));
        assert!(found.dequantize().iter().all(|x| x.is_nan()));
    }

    /// A block of zeros beside another: scale 0; torchao does not go below 2^-6.
    #[test]
    fn zero_block() {
        let mut x = [0.0; 32];
        x[..16].fill(1.0);
        for (text, code) in [("nvfp4", 0), ("nvfp4@te-2.13", 0), ("nvfp4@torchao", 8)] {
            let found = quantize(text, &x, 32);
            assert_eq!((found.scales[1], &found.codes[16..]), (code, &[0; 16][..]), "{text}");
            assert_eq!(found.dequantize()[16..], [0.0; 16]);
        }
    }

    /// A block below 2.18e-6 of the tensor: codes saturate and decode to 0; in torchao they are 0.
    #[test]
    fn tiny_block() {
        let mut x = [1.0; 32];
        x[16..].fill(-1e-7);
        let found = quantize("nvfp4", &x, 32);
        assert_eq!((found.scales[1], found.codes[20]), (0, 0xF));
        assert_eq!(found.dequantize()[16..], [0.0; 16]);
        let found = quantize("nvfp4@torchao", &x, 32);
        assert_eq!((found.scales[1], found.codes[20], found.dequantize()[20]), (8, 8, 0.0));
        // At the threshold, 2^-10 is half of the smallest scale and a tie to 0.
        let threshold = 6.0 / 2688.0 / 1024.0;
        x[16..].fill(threshold * 1.0001);
        assert_eq!(quantize("nvfp4", &x, 32).scales[1], 1);
        x[16..].fill(threshold * 0.9999);
        assert_eq!(quantize("nvfp4", &x, 32).scales[1], 0);
    }

    /// Infinity: factors 1, its block saturates, others go on; torchao's tensor is NaN.
    #[test]
    fn infinity() {
        let mut x = [1.0; 32];
        x[3] = INF;
        for text in ["nvfp4", "nvfp4@te-2.13"] {
            let found = quantize(text, &x, 32);
            assert_eq!((found.tensor_scale, found.scales[0], found.codes[3]), (Some(1.0), 0x7E, 7));
            assert_eq!(found.dequantize()[31], 6.0 * 0.171875, "{text}");
        }
        // Recorded from torchao 0.18.0: scales NaN and 0x08, the image NaN.
        let found = quantize("nvfp4@torchao", &x, 32);
        assert_eq!(found.scales, [0x7F, 8]);
        assert!(found.dequantize().iter().all(|x| x.is_nan()));
    }

    /// NaN: never lost, and where the element format has none its code is the largest.
    #[test]
    fn nan() {
        let mut x = [1.0; 32];
        x[3] = NAN;
        for text in ["nvfp4", "nvfp4@te", "nvfp4@te-2.13", "nvfp4@torchao", "nvfp4@4over6"] {
            let found = quantize(text, &x, 32);
            assert!(found.dequantize().iter().all(|x| x.to_bits() == 0x7FC0_0000), "{text}");
            assert_eq!(found.codes[3], 7, "{text}");
        }
        // Without a tensor scale it stays in its block.
        let image = quantize("e2m1/16:ue4m3", &x, 32).dequantize();
        assert!((0..32).all(|i| image[i].is_nan() == (i < 16)));
    }

    /// Negative zero is code 0, a negative number that rounds to zero code 8.
    #[test]
    fn negative_zero() {
        let mut x = [1.0; 16];
        (x[1], x[2]) = (-0.0, -0.01);
        assert_eq!(quantize("nvfp4@te", &x, 16).codes[..3], [7, 0, 8]);
        assert_eq!(quantize("nvfp4@torchao", &x, 16).codes[..3], [7, 8, 8]);
    }

    /// An amax so small that 2688 / amax overflows: the factor is the largest number.
    #[test]
    fn tiny_tensor() {
        let mut x = [0.0; 16];
        x[3] = f32::from_bits(1);
        assert_eq!(quantize("nvfp4@te", &x, 16).tensor_scale, Some(1.0 / f32::MAX));
    }

    /// The scale saturates at 448 where rounding of s_enc carries the largest block past it.
    #[test]
    fn scales_saturate() {
        for i in 0..2000_u32 {
            let amax = f32::from_bits(0x3F80_0000 + i * 0x1003);
            for text in ["nvfp4@te", "nvfp4@te-2.13", "nvfp4@torchao"] {
                assert_eq!(quantize(text, &[amax], 1).scales, [0x7E], "{text} {amax:e}");
            }
        }
    }

    /// The two orders of Transformer Engine differ here: 19 or less, see `tests/blocks/nvfp4.rs`.
    #[test]
    fn orders() {
        let mut x = [0.0; 32];
        (x[0], x[16]) = (f32::from_bits(0x3F91_32D9), f32::from_bits(0x3D45_0E26));
        assert_eq!(quantize("nvfp4@te", &x, 32).scales, [0x7E, 0x5A]);
        assert_eq!(quantize("nvfp4@te-2.13", &x, 32).scales, [0x7E, 0x59]);
    }

    /// Power-of-two block scales (`pow_2_scales`): E8M0 rounded up, no tensor scale.
    #[test]
    fn power_of_two_scales() {
        let x = [6.5, 1.0, -3.0, 0.6];
        let found = quantize("e2m1/16:e8m0@rceil", &x, 4);
        assert_eq!(found.scales, [128]);
        assert_eq!(found.dequantize(), [6.0, 1.0, -3.0, 1.0]);
        // In the formats of NVFP4 the same scales, as far as E4M3 has them.
        assert_eq!(quantize("e2m1/16:ue4m3@rceil", &x, 4).dequantize(), [6.0, 1.0, -3.0, 1.0]);
    }
}
