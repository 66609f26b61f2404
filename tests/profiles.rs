//! Profiles against the tables of the sources they are named after, in literals worked out from
//! those tables, and the list of differences between profiles against asking every operand.

use exmy::format::Format;
use exmy::math::differences::Differences;
use exmy::math::special_cases::SpecialCase;
use exmy::math::{Context, Operand};
use exmy::round::{
    AbsentNan, Flags, Flush, NanCode, NanRules, Operands, Overflow, Profile, Rounding, Rules,
    SignRule,
};

const INF: f32 = f32::INFINITY;
/// The largest binary32 number.
const MAX: f32 = f32::MAX;
/// A quiet NaN of each sign.
const NAN: [u32; 2] = [0x7FC0_0000, 0xFFC0_0000];

fn convert(rules: Rules, to: Format, x: f32) -> u64 {
    Context::new(to, rules).convert(Operand::f32(x)).code
}

/// Expects codes of binary32 numbers, and of NaN of either sign.
#[track_caller]
fn expect(profile: Profile, to: Format, numbers: &[(f32, u64)], nans: [u64; 2]) {
    let rules = profile.conversion(Format::F32, to);
    for (x, code) in numbers {
        let got = convert(rules, to, *x);
        assert_eq!(got, *code, "{profile} to {to} of {x:e}: {got:#x} instead of {code:#x}");
    }
    assert_eq!(NAN.map(|bits| convert(rules, to, f32::from_bits(bits))), nans, "{profile} {to}");
}

/// The number just above a positive one.
fn above(x: f32) -> f32 {
    f32::from_bits(x.to_bits() + 1)
}

/// The number just below a positive one.
fn below(x: f32) -> f32 {
    f32::from_bits(x.to_bits() - 1)
}

/// OFP8 1.0, table 3: saturating conversion clamps overflow and infinity; non-saturating gives NaN
/// in E4M3 and infinity in E5M2. MX 1.0 has no NaN in FP6 and FP4, which saturate in either case.
#[test]
fn ocp() {
    let (e4m3, e5m2) = (Format::E4M3FN, Format::E5M2);
    let e4m3_edges = [(448.0, 0x7E), (464.0, 0x7E), (-464.0, 0xFE)];
    expect(Profile::OcpSat, e4m3, &e4m3_edges, [0x7F, 0xFF]);
    expect(Profile::OcpNonsat, e4m3, &e4m3_edges, [0x7F, 0xFF]);
    for (x, sat, nonsat) in [(above(464.0), 0x7E, 0x7F), (MAX, 0x7E, 0x7F), (INF, 0x7E, 0x7F)] {
        expect(Profile::OcpSat, e4m3, &[(x, sat), (-x, sat | 0x80)], [0x7F, 0xFF]);
        expect(Profile::OcpNonsat, e4m3, &[(x, nonsat), (-x, nonsat | 0x80)], [0x7F, 0xFF]);
    }
    let mid = 61440.0; // (57344 + 65536) / 2; 0x7B is odd, so the tie leaves it
    let sat = [(below(mid), 0x7B), (mid, 0x7B), (-mid, 0xFB), (INF, 0x7B), (-INF, 0xFB)];
    expect(Profile::OcpSat, e5m2, &sat, [0x7E, 0xFE]);
    let nonsat = [(below(mid), 0x7B), (mid, 0x7C), (-mid, 0xFC), (INF, 0x7C), (-INF, 0xFC)];
    expect(Profile::OcpNonsat, e5m2, &nonsat, [0x7E, 0xFE]);
    for (to, max) in [(Format::E3M2, 0x1F), (Format::E2M3, 0x1F), (Format::E2M1, 0x7)] {
        for profile in [Profile::OcpSat, Profile::OcpNonsat] {
            expect(profile, to, &[(1e9, max), (INF, max), (-INF, max + max + 1)], [max, max]);
        }
    }
}

/// ONNX operator Cast, versions 19 to 25: the tables `saturate=1`, `saturate=0`, and of E8M0
/// "saturate + up" and "non-saturate + nearest".
#[test]
fn onnx() {
    use Profile::{Onnx, OnnxNosat};
    let [e4m3, e4m3fnuz] = [Format::E4M3FN, Format::E4M3FNUZ];
    let [e5m2, e5m2fnuz] = [Format::E5M2, Format::E5M2FNUZ];
    let rows = |zero, inf, minus_inf, large, minus_large| {
        [(-0.0, zero), (INF, inf), (-INF, minus_inf), (MAX, large), (-MAX, minus_large)]
    };
    expect(Onnx, e4m3, &rows(0x80, 0x7E, 0xFE, 0x7E, 0xFE), [0x7F, 0xFF]);
    expect(Onnx, e4m3fnuz, &rows(0, 0x80, 0x80, 0x7F, 0xFF), [0x80; 2]);
    expect(Onnx, e5m2, &rows(0x80, 0x7B, 0xFB, 0x7B, 0xFB), [0x7E, 0xFE]);
    expect(Onnx, e5m2fnuz, &rows(0, 0x80, 0x80, 0x7F, 0xFF), [0x80; 2]);
    expect(OnnxNosat, e4m3, &rows(0x80, 0x7F, 0xFF, 0x7F, 0xFF), [0x7F, 0xFF]);
    expect(OnnxNosat, e4m3fnuz, &rows(0, 0x80, 0x80, 0x80, 0x80), [0x80; 2]);
    expect(OnnxNosat, e5m2, &rows(0x80, 0x7C, 0xFC, 0x7C, 0xFC), [0x7E, 0xFE]);
    expect(OnnxNosat, e5m2fnuz, &rows(0, 0x80, 0x80, 0x80, 0x80), [0x80; 2]);
    let scale = Format::E8M0;
    let up = [(0.0, 0), (1.0, 0x7F), (above(1.0), 0x80), (1e-45, 0), (MAX, 0xFE), (INF, 0xFE)];
    expect(Onnx, scale, &up, [0xFF; 2]);
    let nearest = [(0.0, 0xFF), (below(1.5), 0x7F), (1.5, 0x80), (3.0, 0x81), (INF, 0xFF)];
    expect(OnnxNosat, scale, &nearest, [0xFF; 2]);
    let last = f32::from_bits(0x7F40_0000); // 1.5 x 2^127
    expect(OnnxNosat, scale, &[(below(last), 0xFE), (last, 0xFF)], [0xFF; 2]);
    let down = Onnx.rules(scale).with_rounding(Rounding::TowardZero);
    assert_eq!([1.0, 1.99, 2.0].map(|x| convert(down, scale, x)), [0x7F, 0x7F, 0x80]);
}

/// The thresholds of ml_dtypes 0.6.0: the last number that stays, the first that overflows, and
/// what it becomes. The recordings in `tests/data/libraries` have the rest.
#[test]
fn ml_dtypes() {
    let cases = [
        (Format::E4M3FN, 464.0, above(464.0), 0x7E, 0x7F, [0x7F, 0xFF]),
        (Format::E5M2, below(61440.0), 61440.0, 0x7B, 0x7C, [0x7E, 0xFE]),
        (Format::E4M3FNUZ, below(248.0), 248.0, 0x7F, 0x80, [0x80; 2]),
        (Format::E5M2FNUZ, below(61440.0), 61440.0, 0x7F, 0x80, [0x80; 2]),
        (Format::E4M3B11FNUZ, below(31.0), 31.0, 0x7F, 0x80, [0x80; 2]),
        (Format::E4M3_IEEE, below(248.0), 248.0, 0x77, 0x78, [0x7C, 0xFC]),
        (Format::E3M4, below(15.75), 15.75, 0x6F, 0x70, [0x78, 0xF8]),
        // Finite formats clamp; NaN becomes the zero of the other sign.
        (Format::E3M2, 30.0, MAX, 0x1F, 0x1F, [0x20, 0]),
        (Format::E2M3, 7.75, INF, 0x1F, 0x1F, [0x20, 0]),
        (Format::E2M1, 7.0, 1e9, 0x7, 0x7, [0x8, 0]),
    ];
    for (to, stays, over, max, beyond, nans) in cases {
        expect(Profile::MlDtypes, to, &[(stays, max), (over, beyond)], nans);
        // The conversions of other modes overflow alike.
        let rules = Profile::MlDtypes.rules(to).with_rounding(Rounding::TowardZero);
        assert_eq!(convert(rules, to, MAX), beyond, "{to}");
    }
    let scale = [
        (0.0, 0xFF),
        (-1.0, 0xFF),
        (1.5, 0x80),
        (3.0, 0x81),
        (0.75, 0x7F),
        (f32::from_bits(0x40_0000), 0),      // 2^-127
        (f32::from_bits(0x40_0001), 1),      // just above it, not yet 1.5 x 2^-127
        (f32::from_bits(1), 0),              // clamps
        (f32::from_bits(0x7F40_0000), 0xFF), // 1.5 x 2^127
        (INF, 0xFF),
    ];
    expect(Profile::MlDtypes, Format::E8M0, &scale, [0xFF; 2]);
}

/// NaN codes that depend on the source, as ml_dtypes 0.6.0 with NumPy 2.4 and PyTorch 2.15 on the
/// CPU gave them.
#[test]
fn nan_by_source() {
    let cases = [
        (Profile::MlDtypes, "e4m3fnuz", 0x80, "e2m1", 0x0),
        (Profile::MlDtypes, "e4m3fnuz", 0x80, "e4m3", 0xFF),
        (Profile::MlDtypes, "e5m2fnuz", 0x80, "f32", 0xFFC0_0000),
        (Profile::MlDtypes, "e4m3b11fnuz", 0x80, "bf16", 0xFFC0),
        (Profile::MlDtypes, "bf16", 0x7F81, "f32", 0x7F81_0000),
        (Profile::MlDtypes, "bf16", 0x7F81, "f16", 0x7E00),
        (Profile::MlDtypes, "f16", 0x7C01, "f32", 0x7F80_2000),
        (Profile::MlDtypes, "f16", 0xFC01, "e5m2", 0xFE),
        (Profile::Torch, "e5m2", 0xFD, "bf16", 0x7FC0),
        (Profile::Torch, "e4m3", 0xFF, "bf16", 0x7FC0),
        (Profile::Torch, "f16", 0xFC01, "bf16", 0x7FC0),
        (Profile::Torch, "bf16", 0x7F81, "f16", 0x7E08),
        (Profile::Torch, "bf16", 0x7F81, "f32", 0x7F81_0000),
        (Profile::Torch, "f32", 0xFFC0_0000, "bf16", 0x7FC0),
    ];
    for (profile, from, code, to, expected) in cases {
        let [from, to]: [Format; 2] = [from, to].map(|name| name.parse().unwrap());
        let seen = Context::new(to, profile.conversion(from, to)).convert(Operand::new(from, code));
        assert_eq!(seen.code, expected, "{profile} {from} {code:#x} {to}");
    }
}

/// PyTorch: what changed in 2.13, and what E8M0 does with signs and zeros.
#[test]
fn torch() {
    for (profile, over) in [(Profile::Torch, 0x7E), (Profile::TorchNosat, 0x7F)] {
        let edges = [(464.0, 0x7E), (above(464.0), over), (INF, over), (-INF, over | 0x80)];
        expect(profile, Format::E4M3FN, &edges, [0x7F, 0xFF]);
        expect(profile, Format::E5M2, &[(61440.0, 0x7C), (INF, 0x7C)], [0x7F, 0xFF]);
        expect(profile, Format::E4M3FNUZ, &[(248.0, 0x80), (-1e-9, 0)], [0x80; 2]);
        let scale = [(0.0, 0), (-0.0, 0), (-1.0, 0x7F), (-1.5, 0x80), (INF, 0xFF)];
        expect(profile, Format::E8M0, &scale, [0xFF; 2]);
    }
    // A negative binary16 NaN.
    let nan = |profile: Profile, to: Format| {
        let rules = profile.conversion(Format::F16, to);
        Context::new(to, rules).convert(Operand::new(Format::F16, 0xFE01)).code
    };
    assert_eq!(nan(Profile::Torch, Format::E4M3FN), 0xFF);
    assert_eq!(nan(Profile::TorchNosat, Format::E4M3FN), 0x7F);
    assert_eq!(nan(Profile::Torch, Format::F32), 0xFFC0_2000);
    assert_eq!(nan(Profile::TorchNosat, Format::F32), 0x7FFF_FFFF);
}

/// CUDA: what `tests/data/h200` does not name a mode for, and FP6 and FP4 without saturation.
#[test]
fn cuda() {
    let scale = [(1.0, 0x7F), (above(1.0), 0x80), (-1.25, 0x80), (0.0, 0), (INF, 0xFE)];
    expect(Profile::CudaSatfinite, Format::E8M0, &scale, [0xFF; 2]);
    let fp4 = [(-0.0, 0x8), (5.0, 0x6), (1e9, 0x7), (-INF, 0xF)];
    expect(Profile::CudaSatfinite, Format::E2M1, &fp4, [0x7, 0x7]);
    expect(Profile::CudaNosat, Format::E2M1, &fp4, [0x7, 0x7]);
    expect(Profile::CudaSatfiniteRelu, Format::E2M1, &[(-0.0, 0), (-3.0, 0), (3.0, 0x5)], [0x7; 2]);
    expect(Profile::CudaSatfinite, Format::F16, &[(MAX, 0x7BFF), (INF, 0x7BFF)], [0x7FFF; 2]);
    expect(Profile::CudaNosat, Format::UE5M3, &[(118784.0, 0xFE), (MAX, 0xFF)], [0xFF; 2]);
}

/// P3109 4.0, 4.7.5: what `SatNone` does by mode, and negative results without a sign.
#[test]
fn p3109() {
    let p4se = Format::p3109(8, 4, true, true).unwrap();
    let p4sf = Format::p3109(8, 4, true, false).unwrap();
    let rules = |to| Profile::P3109.rules(to);
    expect(Profile::P3109, p4se, &[(232.0, 0x7E), (above(232.0), 0x7F), (-INF, 0xFF)], [0x80; 2]);
    expect(Profile::P3109, p4sf, &[(248.0, 0x7F), (INF, 0x7F), (-INF, 0xFF)], [0x80; 2]);
    let over = |to, mode, x| convert(rules(to).with_rounding(mode), to, x);
    assert_eq!(over(p4se, Rounding::TowardZero, 1e9), 0x7E);
    assert_eq!(over(p4se, Rounding::TowardNegative, 1e9), 0x7E);
    assert_eq!(over(p4se, Rounding::TowardNegative, -1e9), 0xFF);
    assert_eq!(over(p4se, Rounding::ToOdd, 1e9), 0x7F); // the largest code, 0x7E, is even
    let unsigned = Format::p3109(8, 4, false, true).unwrap();
    assert_eq!(over(unsigned, Rounding::ToOdd, 1e9), 0xFD); // odd here
    let negative = |mode, overflow| {
        convert(rules(unsigned).with_rounding(mode).with_overflow(overflow), unsigned, -1.0)
    };
    let nan = 0xFF;
    assert_eq!(negative(Rounding::TiesToEven, Overflow::None), nan);
    assert_eq!(negative(Rounding::TowardNegative, Overflow::None), nan);
    assert_eq!(negative(Rounding::TowardZero, Overflow::None), 0);
    assert_eq!(negative(Rounding::TowardPositive, Overflow::None), 0);
    for mode in Rounding::DETERMINISTIC {
        assert_eq!(negative(mode, Overflow::Finite), 0, "{mode}");
        assert_eq!(negative(mode, Overflow::Propagate), 0, "{mode}");
    }
    assert_eq!(over(unsigned, Rounding::TowardZero, -INF), nan);
    assert_eq!(convert(rules(unsigned).with_overflow(Overflow::Finite), unsigned, -INF), 0);
}

/// microxcaling's `_quantize_elemwise_core` with `round="nearest"`: half away from zero, clamped;
/// `allow_denorm=False` takes inputs below the smallest normal value for zero.
#[test]
fn microxcaling() {
    let to = Format::E4M3FN;
    let cases = [(1.0625, 0x39), (-1.0625, 0xB9), (464.0, 0x7E), (1e9, 0x7E)];
    expect(Profile::Microxcaling, to, &cases, [0x7F, 0xFF]);
    expect(Profile::Microxcaling, Format::E5M2, &[(1e9, 0x7B), (INF, 0x7C)], [0x7E, 0xFE]);
    let flushing = Profile::Microxcaling.rules(to).with_flush(Flush::Input);
    let normal = 0.015625; // 2^-6, code 0x08
    assert_eq!([normal, below(normal)].map(|x| convert(flushing, to, x)), [0x08, 0]);
    assert_eq!(convert(flushing, to, -below(normal)), 0x80);
}

/// Three ways to flush, on E4M3FN around its smallest normal value 2^-6 (0x08); one place below it
/// lie subnormals 2^-9 apart.
#[test]
fn flushing() {
    let to = Format::E4M3FN;
    let normal = 0.015625_f32;
    let inputs = [normal, below(normal), 0.5 * normal, below(0.5 * normal), 0.001, -0.5 * normal];
    let codes = |flush| {
        let rules = Rules::DEFAULT.with_flush(flush);
        inputs.map(|x| convert(rules, to, x))
    };
    assert_eq!(codes(Flush::None), [0x08, 0x08, 0x04, 0x04, 0x01, 0x84]);
    assert_eq!(codes(Flush::Input), [0x08, 0, 0, 0, 0, 0x80]);
    // Halfway between 0 and the smallest normal value the even code is 0.
    assert_eq!(codes(Flush::Candidates), [0x08, 0x08, 0, 0, 0, 0x80]);
    assert_eq!(codes(Flush::Output), [0x08, 0x08, 0, 0, 0, 0x80]);
    let candidates = Rules::DEFAULT.with_flush(Flush::Candidates);
    assert_eq!(convert(candidates, to, above(0.5 * normal)), 0x08);
    let up = candidates.with_rounding(Rounding::TowardPositive);
    assert_eq!([1e-9, -1e-9].map(|x| convert(up, to, x)), [0x08, 0x80]);
    // A flushed result is inexact and underflows.
    let rules = Rules::DEFAULT.with_flush(Flush::Output);
    let flags = Context::new(to, rules).convert(Operand::f32(0.5 * normal)).flags;
    assert_eq!(flags, Flags::INEXACT | Flags::UNDERFLOW);
}

/// Subnormal operands as zero, with and without their sign; a code of E5M2 as operand.
#[test]
fn denormals_are_zero() {
    let convert = |operands, code| {
        let rules = Rules::DEFAULT.with_operands(operands);
        Context::new(Format::F16, rules).convert(Operand::new(Format::E5M2, code)).code
    };
    // 0x03 is 3 x 2^-16, 0x04 the smallest normal number, 2^-14.
    assert_eq!(
        [0x03, 0x83, 0x04].map(|code| convert(Operands::Exact, code)),
        [0x300, 0x8300, 0x400]
    );
    assert_eq!([0x03, 0x83, 0x04].map(|code| convert(Operands::Zero, code)), [0, 0x8000, 0x400]);
    let positive = [0x03, 0x83, 0x84].map(|code| convert(Operands::PositiveZero, code));
    assert_eq!(positive, [0, 0, 0x8400]);
}

/// NaN: the canonical codes that IEEE 754 leaves open, payloads, and formats without NaN.
#[test]
fn nan() {
    let signaling = Operand::new(Format::F32, 0xFF80_2001);
    let convert = |profile: Profile, to: Format| {
        Context::new(to, profile.conversion(Format::F32, to)).convert(signaling)
    };
    let code = |profile, to| convert(profile, to).code;
    // The top ten bits of the payload are 0b0000000001, and the quiet bit.
    assert_eq!(code(Profile::Ieee, Format::F16), 0xFE01);
    assert_eq!(code(Profile::X86, Format::F16), 0xFE01);
    assert_eq!(code(Profile::Riscv, Format::F16), 0x7E00);
    assert_eq!(code(Profile::Riscv, Format::E5M2), 0x7F);
    assert_eq!(code(Profile::CudaNosat, Format::F16), 0x7FFF);
    assert_eq!(code(Profile::CudaNosat, Format::E5M2), 0x7F);
    assert_eq!(code(Profile::MlDtypes, Format::E5M2), 0xFE);
    // Masking leaves an infinity of a NaN whose payload lies in the bits that are lost.
    let masked = Profile::CudaTf32Rna.rules(Format::TF32);
    let masked = Context::new(Format::TF32, masked);
    let nans = [0x7F80_0001, 0xFF80_1FFF, 0xFF80_2001, 0x7FFF_FFFF];
    let codes = nans.map(|nan| masked.convert(Operand::new(Format::F32, nan)).code << 13);
    assert_eq!(codes, [0x7F80_0000, 0xFF80_0000, 0xFF80_2000, 0x7FFF_E000]);
    assert!(convert(Profile::Ieee, Format::F16).flags.contains(Flags::INVALID));
    // Without NaN: the largest value, the signed one, or the zero of the other sign.
    let absent = |absent| {
        let nan = NanRules::CANONICAL.with_absent(absent);
        let context = Context::new(Format::E2M1, Rules::DEFAULT.with_nan(nan));
        NAN.map(|bits| context.convert(Operand::new(Format::F32, u64::from(bits))).code)
    };
    assert_eq!(absent(AbsentNan::Max), [0x7, 0x7]);
    assert_eq!(absent(AbsentNan::SignedMax), [0x7, 0xF]);
    assert_eq!(absent(AbsentNan::OppositeZero), [0x8, 0x0]);
    // A canonical NaN of one's own; what is no NaN is not taken for one.
    let own = |magnitude| {
        let nan = NanRules::CANONICAL.with_code(NanCode::Magnitude(magnitude));
        let context = Context::new(Format::E5M2, Rules::DEFAULT.with_nan(nan));
        NAN.map(|bits| context.convert(Operand::new(Format::F32, u64::from(bits))).code)
    };
    assert_eq!(own(0x7D), [0x7D, 0xFD]);
    assert_eq!(own(0x7C), [0x7E, 0xFE]);
}

#[test]
fn signs() {
    let convert = |sign, x: f32| {
        let rules = Profile::CudaSatfinite.rules(Format::E4M3FN).with_sign(sign);
        convert(rules, Format::E4M3FN, x)
    };
    for (x, keep, magnitude, relu) in
        [(-1.0, 0xB8, 0x38, 0), (-0.0, 0x80, 0, 0), (-INF, 0xFE, 0x7E, 0), (2.0, 0x40, 0x40, 0x40)]
    {
        assert_eq!(convert(SignRule::Keep, x), keep, "{x}");
        assert_eq!(convert(SignRule::Magnitude, x), magnitude, "{x}");
        assert_eq!(convert(SignRule::Relu, x), relu, "{x}");
    }
    assert_eq!(convert(SignRule::Relu, f32::from_bits(NAN[1])), 0x7F);
}

fn lines(from: Format, to: Format, a: Profile, b: Profile) -> Vec<String> {
    let [a, b] = [a, b].map(|profile| profile.conversion(from, to));
    Differences::new(from, to, a, b).unwrap().map(|difference| difference.to_string()).collect()
}

#[test]
fn differences_read_as_a_person_would_write_them() {
    assert_eq!(
        lines(Format::F32, Format::E4M3FN, Profile::TorchNosat, Profile::CudaSatfinite),
        [
            "464.00003 to inf (0x43e80001 to 0x7f800000): NaN (0x7f) | 448 (0x7e)",
            "-464.00003 to -inf (0xc3e80001 to 0xff800000): -NaN (0xff) | -448 (0xfe)",
            "-NaN (0xff800001 to 0xffffffff): -NaN (0xff) | NaN (0x7f)",
        ]
    );
    assert_eq!(
        lines(Format::F64, Format::E2M1, Profile::MlDtypes, Profile::CudaSatfinite),
        [
            "NaN (0x7ff0000000000001 to 0x7fffffffffffffff): -0 (0x8) | 6 (0x7)",
            "-NaN (0xfff0000000000001 to 0xffffffffffffffff): 0 (0x0) | 6 (0x7)",
        ]
    );
    assert_eq!(
        lines(Format::E4M3FN, Format::E2M1, Profile::OcpSat, Profile::Microxcaling),
        [
            // Ties: 0.25, 1.25, 2.5 and 5, of which 0.75, 1.75 and 3.5 agree, whose upper is even.
            "0.25 (0x28): 0 (0x0) | 0.5 (0x1)",
            "1.25 (0x3a): 1 (0x2) | 1.5 (0x3)",
            "2.5 (0x42): 2 (0x4) | 3 (0x5)",
            "5 (0x4a): 4 (0x6) | 6 (0x7)",
            "-0.25 (0xa8): -0 (0x8) | -0.5 (0x9)",
            "-1.25 (0xba): -1 (0xa) | -1.5 (0xb)",
            "-2.5 (0xc2): -2 (0xc) | -3 (0xd)",
            "-5 (0xca): -4 (0xe) | -6 (0xf)",
        ]
    );
    assert!(lines(Format::F32, Format::BF16, Profile::Ieee, Profile::Ieee).is_empty());
    let rules = Rules::DEFAULT;
    let error = Differences::new(Format::F64, Format::F32, rules, rules).unwrap_err().to_string();
    assert!(error.contains("from f64 to f32") && error.contains("20 bits"), "{error}");
}

fn special(to: Format, a: Profile, b: Profile) -> Vec<String> {
    let [a, b] = [a, b].map(|profile| profile.rules(to));
    SpecialCase::all(to, a, b).filter(SpecialCase::differs).map(|case| case.to_string()).collect()
}

/// IEEE 754-2019, 7.3 and 9.2.1, and the tables of P3109 4.0: division by zero is infinite in the
/// one and NaN in the other, and so is the length of a vector with an infinity and a NaN.
#[test]
fn special_cases_differ_where_the_standards_do() {
    assert_eq!(
        special(Format::E5M2, Profile::Ieee, Profile::P3109),
        [
            "1 / 0: inf (0x7c) | NaN (0x7e)",
            "-1 / 0: -inf (0xfc) | NaN (0x7e)",
            "1 / -0: -inf (0xfc) | NaN (0x7e)",
            "inf / 0: inf (0x7c) | NaN (0x7e)",
            "recip(0): inf (0x7c) | NaN (0x7e)",
            "recip(-0): -inf (0xfc) | NaN (0x7e)",
            "rsqrt(0): inf (0x7c) | NaN (0x7e)",
            "hypot(inf, NaN): inf (0x7c) | NaN (0x7e)",
        ]
    );
    // x86 marks the NaNs it makes with a sign; the one that was there keeps its own.
    let x86 = special(Format::F16, Profile::Riscv, Profile::X86);
    assert!(x86.contains(&"0 / 0: NaN (0x7e00) | -NaN (0xfe00)".to_owned()), "{x86:?}");
    assert!(x86.iter().all(|line| line.ends_with("NaN (0x7e00) | -NaN (0xfe00)")), "{x86:?}");
    assert!(!x86.iter().any(|line| line.starts_with("NaN + 1")), "{x86:?}");
    // Without infinities only those remain that overflow.
    let e4m3 = special(Format::E4M3FN, Profile::OcpSat, Profile::OcpNonsat);
    assert!(e4m3.contains(&"max + max: 448 (0x7e) | NaN (0x7f)".to_owned()), "{e4m3:?}");
    // E8M0 has neither zero nor sign, so few cases occur.
    let scale = Profile::CudaSatfinite.rules(Format::E8M0);
    let texts: Vec<&str> =
        SpecialCase::all(Format::E8M0, scale, scale).map(|case| case.text).collect();
    assert_eq!(texts, ["max + max", "max x max", "1 - 1", "NaN + 1"]);
}

/// Every operand of 16 bits that two profiles treat differently is in exactly one range, and none
/// that they treat alike.
#[test]
fn differences_are_complete() {
    let targets = [
        Format::E4M3FN,
        Format::E5M2,
        Format::E4M3FNUZ,
        Format::E2M1,
        Format::E8M0,
        Format::INT8,
        Format::UE4M3,
        Format::BF16,
    ];
    let sources = [Format::F16, Format::BF16, Format::p3109(12, 5, true, true).unwrap()];
    let mut found = 0;
    for (i, to) in targets.into_iter().enumerate() {
        let from = sources[i % sources.len()];
        let codes = Profile::ALL.map(|profile| -> Vec<u64> {
            let context = Context::new(to, profile.conversion(from, to));
            from.codes().map(|code| context.convert(Operand::new(from, code)).code).collect()
        });
        for (j, a) in Profile::ALL.into_iter().enumerate() {
            // Each with the next two, so that all profiles and most pairs of kinds occur.
            for k in [(j + 1) % codes.len(), (j + 5) % codes.len()] {
                let [rules, other] = [a, Profile::ALL[k]].map(|p| p.conversion(from, to));
                let mut next = 0;
                let same = |codes: [&Vec<u64>; 2], range: std::ops::Range<u64>| {
                    let range = range.start as usize..range.end as usize;
                    codes[0][range.clone()] == codes[1][range]
                };
                for difference in Differences::new(from, to, rules, other).unwrap() {
                    let (first, last) = (difference.first.code, difference.last.code);
                    assert!(next <= first && first <= last);
                    assert!(same([&codes[j], &codes[k]], next..first), "{a} {to} {difference}");
                    for code in first..=last {
                        let pair = (codes[j][code as usize], codes[k][code as usize]);
                        assert_eq!(pair, (difference.a.code, difference.b.code), "{difference}");
                        assert_ne!(pair.0, pair.1);
                    }
                    found += 1;
                    next = last + 1;
                }
                assert!(same([&codes[j], &codes[k]], next..from.code_count() as u64));
            }
        }
    }
    assert!(found > 1000, "only {found} differences");
}

/// The tables of `docs/profiles.md`: what each profile makes of the numbers in which they differ.
fn tables() -> String {
    let pair = |bits: u32| (f32::from_bits(bits), f32::from_bits(bits | 0x8000_0000));
    let (nan, minus_nan) = pair(NAN[0]);
    let numbers = |tie: (&'static str, f32), small: (&'static str, f32)| {
        vec![
            tie,
            small,
            ("x > max", MAX),
            ("inf", INF),
            ("-inf", -INF),
            ("-0", -0.0),
            ("NaN", nan),
            ("-NaN", minus_nan),
        ]
    };
    let scale = vec![
        ("1.25", 1.25),
        ("1.5", 1.5),
        ("1.25 x 2^-127", f32::from_bits(0x50_0000)),
        ("x > max", MAX),
        ("inf", INF),
        ("0", 0.0),
        ("-1", -1.0),
        ("NaN", nan),
    ];
    let formats = [
        (Format::E4M3FN, numbers(("1.0625", 1.0625), ("-2^-10", -0.000_976_562_5))),
        (Format::E5M2, numbers(("1.125", 1.125), ("-2^-17", -0.000_007_629_394_5))),
        (Format::E4M3FNUZ, numbers(("1.0625", 1.0625), ("-2^-11", -0.000_488_281_25))),
        (Format::E2M1, numbers(("1.25", 1.25), ("-0.25", -0.25))),
        (Format::E8M0, scale),
        (Format::F16, numbers(("1 + 2^-11", 1.000_488_3), ("-2^-25", -2.980_232_2e-8))),
    ];
    let mut text = String::new();
    for (to, inputs) in formats {
        let header: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        text += &format!("## {to}\n\n| profiles | {} |\n", header.join(" | "));
        text += &format!("|{}\n", "---|".repeat(header.len() + 1));
        // Profiles that agree share the row of the first of them.
        let mut rows: Vec<(String, String)> = Vec::new();
        for profile in Profile::ALL {
            let rules = profile.conversion(Format::F32, to);
            let cells: Vec<String> = inputs.iter().map(|(_, x)| cell(rules, to, *x)).collect();
            let cells = cells.join(" | ");
            match rows.iter_mut().find(|(_, other)| *other == cells) {
                Some((names, _)) => *names += &format!(", `{profile}`"),
                None => rows.push((format!("`{profile}`"), cells)),
            }
        }
        for (names, cells) in rows {
            text += &format!("| {names} | {cells} |\n");
        }
        text.push('\n');
    }
    text
}

/// `448 7e`: value and code of a result.
fn cell(rules: Rules, to: Format, x: f32) -> String {
    let code = convert(rules, to, x);
    let digits = to.bits().div_ceil(4) as usize;
    let value = to.to_f32(code);
    let value = match value.abs() {
        size if size != 0.0 && size.is_finite() && !(1e-3..1e6).contains(&size) => {
            format!("{value:e}")
        }
        _ => format!("{value}"),
    };
    format!("{value} `{code:0digits$x}`")
}

#[test]
fn the_page_of_profiles_is_what_the_code_does() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/profiles.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (text, found) = page.split_at(page.find("## ").unwrap_or(page.len()));
    let wanted = tables();
    if std::env::var_os("EXMY_BLESS").is_some() {
        std::fs::write(&path, format!("{text}{}\n", wanted.trim_end())).unwrap();
        return;
    }
    assert!(
        found.trim_end() == wanted.trim_end(),
        "docs/profiles.md is out of date: EXMY_BLESS=1 cargo test --test profiles writes it anew"
    );
    for profile in Profile::ALL {
        assert!(text.contains(&format!("`{profile}`")), "{profile} has no source on the page");
    }
}
