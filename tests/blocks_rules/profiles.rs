//! Profiles against digests of what the libraries make of the same blocks.
//!
//! The blocks have every exponent of binary32 and, of each, the significands around every threshold
//! of a rule; their elements run down from `amax` in steps, with ties and numbers just below powers
//! of two among them. A digest is FNV-1a over bytes: scale codes, element codes, or the bits of
//! images with every NaN as 0x7FC00000.

use exmy::block::{Axis, BlockFormat, PlainBlocks};
use exmy::quantizer::Quantizer;
use exmy::slice::View;

use super::RANDOM;

/// Fractions of `amax`: 0, both sides of thresholds (1.5, 1.75, 1.875, 2 - 2^-(M+1)), and as far from a
/// power of two as a binary32 logarithm loses it, on either side.
const FRACTIONS: [u32; 27] = [
    0, 1, 2, 21, 22, 23, 0x1F_FFFF, 0x20_0000, 0x20_0001, 0x3F_FFFF, 0x40_0000, 0x40_0001,
    0x5F_FFFF, 0x60_0000, 0x60_0001, 0x6F_FFFF, 0x70_0000, 0x70_0001, 0x77_FFFF, 0x78_0000,
    0x78_0001, 0x7F_FFD3, 0x7F_FFD4, 0x7F_FFE9, 0x7F_FFEA, 0x7F_FFFE, 0x7F_FFFF,
];

/// Blocks of 32; element 0 has the largest magnitude, odd elements are negative.
fn blocks() -> Vec<f32> {
    let amax =
        (0..255_u32).flat_map(|field| FRACTIONS.map(|fraction| i64::from(field << 23 | fraction)));
    let below = |bits: i64| {
        (0..32).map(move |i: i64| {
            let magnitude = match i {
                0..16 => bits - i * 0x0022_3457,
                16..24 => (bits & 0xFFF8_0000) - (i - 16) * 0x0048_0000,
                _ => {
                    let places = [1, 4, 6, 7, 9, 18, 32, 33][i as usize - 24];
                    (bits & 0xFF80_0000) - (places << 23) - 1
                }
            };
            f32::from_bits(magnitude.max(0) as u32 | (i as u32 & 1) << 31)
        })
    };
    amax.flat_map(below).collect()
}

/// Blocks of 32 whose element 0 is the largest and whose others run down through the quotients that
/// binary32 rounds to its smallest numbers and to zero.
fn underflowing_blocks() -> Vec<f32> {
    let block = |field: u32| {
        (0..32).map(move |i: u32| {
            let (sign, place) = (u32::from(!i.is_multiple_of(3)), field - 143 - i);
            f32::from_bits(match i {
                0 => field << 23 | (field * 0x1_2345) & 0x7F_FFFF,
                _ => sign << 31 | place << 23 | [0, 1, 0x7F_FFFF, 0x40_0000][i as usize % 4],
            })
        })
    };
    (190..255).flat_map(block).collect()
}

fn digest(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325_u64;
    bytes
        .into_iter()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

fn quantize(text: &str, x: View<'_, f32>) -> PlainBlocks {
    let quantizer: Quantizer = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let exmy::quantizer::Target::Block(format) = quantizer.target else { panic!("{text}") };
    PlainBlocks::quantize(x, Axis::Cols, format, (quantizer.rounding, quantizer.overflow, RANDOM))
}

fn image_digest(image: &[f32]) -> u64 {
    let bits = |x: &f32| if x.is_nan() { 0x7FC0_0000 } else { x.to_bits() };
    digest(image.iter().flat_map(|x| bits(x).to_le_bytes()))
}

/// Element format, rule, digests of scale and element codes: `to_mx` of torchao 0.18.0 with PyTorch
/// 2.15.0 on a CPU.
#[rustfmt::skip]
const TORCHAO_0_18: [(&str, &str, u64, u64); 20] = [
    ("e4m3", "floor", 0x1F78_540B_C88F_960A, 0x175E_AAD7_C062_1622),
    ("e4m3", "ceil", 0x573A_4424_0A47_9E60, 0x0161_E528_CE2F_55EE),
    ("e4m3", "even", 0xC825_06FB_A9F9_C6C2, 0x9534_916C_C027_3832),
    ("e4m3", "rceil", 0xD3B6_4798_5110_D036, 0xABA5_7872_7599_C6C5),
    ("e5m2", "floor", 0xF5BF_47C4_61CF_9D8F, 0xB7DE_6437_0D14_3041),
    ("e5m2", "ceil", 0x998A_9EBB_5683_772F, 0x525C_7360_9DD0_2039),
    ("e5m2", "even", 0x72A7_BACA_0080_F04F, 0x23B4_44FD_CC19_82DD),
    ("e5m2", "rceil", 0xE4D6_962A_AC1F_3747, 0xCD28_C638_C733_514E),
    ("e3m2", "floor", 0x2B5F_0677_8298_B4DA, 0xFD3E_6E6B_A6AE_A344),
    ("e3m2", "ceil", 0x529A_DC8B_2757_8B98, 0x2619_8783_5A33_F2D4),
    ("e3m2", "even", 0x1DAD_B56A_DD42_B20B, 0xE450_990A_D52D_63E5),
    ("e3m2", "rceil", 0xE07E_897B_B0A0_5736, 0xBD7D_D97A_4FFC_475E),
    ("e2m3", "floor", 0xF2F9_0215_AB84_606F, 0x0A38_7C63_B1CD_AA4B),
    ("e2m3", "ceil", 0x8B31_A562_5472_2751, 0xBB61_65E6_7C33_705A),
    ("e2m3", "even", 0x956C_FC40_9BFD_CAE7, 0xB4EA_B3AF_9DB5_D89F),
    ("e2m3", "rceil", 0x2110_374A_D6A1_5FC8, 0xDC43_A222_CD55_BE37),
    ("e2m1", "floor", 0xF2F9_0215_AB84_606F, 0x87CB_68DA_06B6_105F),
    ("e2m1", "ceil", 0x8B31_A562_5472_2751, 0x0839_3F77_8578_9482),
    ("e2m1", "even", 0x6C94_4E2B_9FEA_6B1D, 0xDBB3_8C29_8EAA_8078),
    ("e2m1", "rceil", 0x17C0_A2A1_3A5C_8B7A, 0xD9BB_19F3_179F_9B0F),
];

/// Digests of scale codes by the formulas of torchao's main branch (`mx_tensor.py`, 36027d82), computed
/// with PyTorch 2.15.0.
#[rustfmt::skip]
const TORCHAO: [(&str, &str, u64); 20] = [
    ("e4m3", "floor", 0x1F78_540B_C88F_960A),
    ("e4m3", "ceil", 0x573A_4424_0A47_9E60),
    ("e4m3", "even", 0x7236_6C38_631A_33A2),
    ("e4m3", "rceil", 0xA8DB_B545_5947_E792),
    ("e5m2", "floor", 0xF5BF_47C4_61CF_9D8F),
    ("e5m2", "ceil", 0x998A_9EBB_5683_772F),
    ("e5m2", "even", 0xC830_282E_E3CB_9EA4),
    ("e5m2", "rceil", 0x6FC6_7BA8_729C_C556),
    ("e3m2", "floor", 0x2B5F_0677_8298_B4DA),
    ("e3m2", "ceil", 0x529A_DC8B_2757_8B98),
    ("e3m2", "even", 0x42CD_DFDF_FB91_DACF),
    ("e3m2", "rceil", 0x4500_D3D3_F502_7AFA),
    ("e2m3", "floor", 0xF2F9_0215_AB84_606F),
    ("e2m3", "ceil", 0x8B31_A562_5472_2751),
    ("e2m3", "even", 0x1332_BA7A_DCD7_60A7),
    ("e2m3", "rceil", 0x0753_A0A5_FD16_D280),
    ("e2m1", "floor", 0xF2F9_0215_AB84_606F),
    ("e2m1", "ceil", 0x8B31_A562_5472_2751),
    ("e2m1", "even", 0x2032_1907_7A37_99A9),
    ("e2m1", "rceil", 0x889A_47E3_4255_1772),
];

/// Element format, rounding, flush, digest of images by the formulas of microxcaling's PyTorch path
/// (`mx_ops.py`, `elemwise_ops.py`, 7bc4195), computed with PyTorch 2.15.0. Its images
/// of `int8` have negative zeros, which two's complement has not; they count as positive here.
#[rustfmt::skip]
const MICROXCALING_TORCH: [(&str, &str, bool, u64); 36] = [
    ("e4m3", "rna", false, 0x2BFD_1905_7ABF_D815),
    ("e4m3", "rna", true, 0x0EDA_8C4D_2DAE_D01A),
    ("e4m3", "rne", false, 0xA9E8_374E_44D0_6F95),
    ("e4m3", "rne", true, 0xF05C_8658_3595_9DBA),
    ("e4m3", "rtz", false, 0xEAD6_5B21_6AC4_95CB),
    ("e4m3", "rtz", true, 0x8FF3_6BCB_62AA_F0A2),
    ("e5m2", "rna", false, 0x9037_A940_5FB9_3BF3),
    ("e5m2", "rna", true, 0x7E8D_CA14_0503_6C01),
    ("e5m2", "rne", false, 0x0C99_38D8_A59D_8773),
    ("e5m2", "rne", true, 0x8D37_5181_7903_C1F1),
    ("e5m2", "rtz", false, 0x7447_E43B_725A_BF15),
    ("e5m2", "rtz", true, 0x711C_8612_FF47_73A5),
    ("e3m2", "rna", false, 0x8B8D_EAB0_1DEB_FC61),
    ("e3m2", "rna", true, 0xBE17_99B9_40F7_DF29),
    ("e3m2", "rne", false, 0x8CC7_386A_55A1_28A1),
    ("e3m2", "rne", true, 0xF9FF_196A_2637_D059),
    ("e3m2", "rtz", false, 0x931C_20BA_BA89_2221),
    ("e3m2", "rtz", true, 0x0301_6114_9760_1851),
    ("e2m3", "rna", false, 0x81CD_E11F_F236_D147),
    ("e2m3", "rna", true, 0x6A8A_2C45_AE58_E64F),
    ("e2m3", "rne", false, 0x67E5_A2ED_23DC_E727),
    ("e2m3", "rne", true, 0x6FE9_0B19_7F77_744F),
    ("e2m3", "rtz", false, 0xCC64_2444_46F2_AD83),
    ("e2m3", "rtz", true, 0xA2C0_743D_82FC_95F3),
    ("e2m1", "rna", false, 0xCC65_019D_6579_7B62),
    ("e2m1", "rna", true, 0x77AB_10C3_6561_08A2),
    ("e2m1", "rne", false, 0x9D33_BEC5_834D_B462),
    ("e2m1", "rne", true, 0x4270_890F_D23B_4042),
    ("e2m1", "rtz", false, 0xEC67_63E6_AAB1_07AB),
    ("e2m1", "rtz", true, 0xC95B_CBA7_69FB_350B),
    ("int8", "rna", false, 0x9A92_51A3_47A3_AF58),
    ("int8", "rna", true, 0xF00B_97A6_9C03_94D0),
    ("int8", "rne", false, 0x2974_23F5_6CD7_0928),
    ("int8", "rne", true, 0xD867_61CF_7598_35C0),
    ("int8", "rtz", false, 0xB01C_9F00_C5CF_95BD),
    ("int8", "rtz", true, 0x05DF_E61C_ACF6_AD31),
];

/// The same of blocks whose quotients underflow in binary32: `torch.sign` makes a positive zero of the
/// negative zero that is left of them. Nothing is flushed.
#[rustfmt::skip]
const MICROXCALING_TORCH_UNDERFLOW: [(&str, &str, u64); 18] = [
    ("e4m3", "rna", 0xBE52_4810_C9B1_DFF8),
    ("e4m3", "rne", 0xBE52_4810_C9B1_DFF8),
    ("e4m3", "rtz", 0x7E03_0A5F_E0B2_0B88),
    ("e5m2", "rna", 0x9CBC_7E4C_3E64_7138),
    ("e5m2", "rne", 0x9CBC_7E4C_3E64_7138),
    ("e5m2", "rtz", 0x2BD2_BB3B_A9B8_93D8),
    ("e3m2", "rna", 0x797E_F89E_1EA2_9AB8),
    ("e3m2", "rne", 0x797E_F89E_1EA2_9AB8),
    ("e3m2", "rtz", 0xD86A_BAA3_F071_CB58),
    ("e2m3", "rna", 0xA8B0_080F_EEE8_8178),
    ("e2m3", "rne", 0xA8B0_080F_EEE8_8178),
    ("e2m3", "rtz", 0xC5DD_2387_D3A9_D478),
    ("e2m1", "rna", 0x80D3_7544_FDCC_6D18),
    ("e2m1", "rne", 0x80D3_7544_FDCC_6D18),
    ("e2m1", "rtz", 0x46EB_DFB4_AADC_34D8),
    ("int8", "rna", 0xEE45_4DCF_D61A_9368),
    ("int8", "rne", 0xEE45_4DCF_D61A_9368),
    ("int8", "rtz", 0x068C_40C6_AAAA_1284),
];

/// The same by the integer operations of its C++ path (`mx.cuh`, `quantize.cuh`), computed with numpy.
#[rustfmt::skip]
const MICROXCALING: [(&str, &str, bool, u64); 36] = [
    ("e4m3", "rna", false, 0x7FF2_35BF_7B80_12B5),
    ("e4m3", "rna", true, 0x39D1_7853_30DE_4AF0),
    ("e4m3", "rne", false, 0xB50E_7DFC_25BB_B1F5),
    ("e4m3", "rne", true, 0xB2B5_C17E_C079_DF10),
    ("e4m3", "rtz", false, 0xEFCE_E8E8_A3EE_F89B),
    ("e4m3", "rtz", true, 0xCAF3_2531_9CC3_272A),
    ("e5m2", "rna", false, 0xCC24_FD88_20D4_CFD3),
    ("e5m2", "rna", true, 0x6C6C_A94A_E962_7FB1),
    ("e5m2", "rne", false, 0x11F2_4F20_294A_8913),
    ("e5m2", "rne", true, 0xB4C8_E71A_4CB7_0341),
    ("e5m2", "rtz", false, 0x6421_9CEE_A525_FF85),
    ("e5m2", "rtz", true, 0xD884_CCB8_31B6_1115),
    ("e3m2", "rna", false, 0x8B4C_D583_5352_817B),
    ("e3m2", "rna", true, 0x389B_A255_5382_F013),
    ("e3m2", "rne", false, 0xBB47_E552_D2F8_647B),
    ("e3m2", "rne", true, 0x6489_12E4_0AA6_8AE3),
    ("e3m2", "rtz", false, 0xD616_EA99_6E35_2846),
    ("e3m2", "rtz", true, 0x1B45_4838_BEDA_D776),
    ("e2m3", "rna", false, 0x66C4_887F_F7CC_05CF),
    ("e2m3", "rna", true, 0x71CA_ED1D_1B3C_FB0F),
    ("e2m3", "rne", false, 0xEB89_EF73_2F42_973F),
    ("e2m3", "rne", true, 0xEFBB_E092_70A0_B67F),
    ("e2m3", "rtz", false, 0xF87B_E455_9910_455B),
    ("e2m3", "rtz", true, 0x8CEA_3BBF_5ADA_90D3),
    ("e2m1", "rna", false, 0xF251_C220_DB6E_9802),
    ("e2m1", "rna", true, 0xC1CD_E9C5_9B9D_5EC2),
    ("e2m1", "rne", false, 0xFD60_3B67_D9F4_1582),
    ("e2m1", "rne", true, 0x52C8_1987_9F16_B1E2),
    ("e2m1", "rtz", false, 0x801F_215A_96D2_C6EB),
    ("e2m1", "rtz", true, 0x87F8_BC3D_EF70_AA8B),
    ("int8", "rna", false, 0x7C7D_D6BE_089F_EDE3),
    ("int8", "rna", true, 0xD71A_7834_F2F7_F05F),
    ("int8", "rne", false, 0x8E51_E18A_306D_A5F3),
    ("int8", "rne", true, 0x6E91_5C5A_ED9C_DD4F),
    ("int8", "rtz", false, 0xF528_7E3A_B4FA_8777),
    ("int8", "rtz", true, 0x7B1C_DFE2_0940_0583),
];

#[test]
fn torchao_0_18() {
    let x = blocks();
    let x = View::new(&x, x.len() / 32, 32);
    for (element, rule, scales, codes) in TORCHAO_0_18 {
        let text = format!("{element}/32:e8m0@{rule}@torchao-0.18");
        let found = quantize(&text, x);
        assert_eq!(digest(found.scales.iter().map(|code| *code as u8)), scales, "{text}");
        assert_eq!(digest(found.codes.iter().map(|code| *code as u8)), codes, "{text}");
    }
}

#[test]
fn torchao_main() {
    let x = blocks();
    let x = View::new(&x, x.len() / 32, 32);
    for (element, rule, scales) in TORCHAO {
        let text = format!("{element}/32:e8m0@{rule}@torchao");
        assert_eq!(
            digest(quantize(&text, x).scales.iter().map(|code| *code as u8)),
            scales,
            "{text}"
        );
    }
}

#[test]
fn microxcaling() {
    let x = blocks();
    let x = View::new(&x, x.len() / 32, 32);
    for (name, table) in
        [("microxcaling-torch", MICROXCALING_TORCH), ("microxcaling", MICROXCALING)]
    {
        for (element, rounding, flush, image) in table {
            let flush = if flush { "-flush" } else { "" };
            let text = format!("{element}/32:e8m0@{name}{flush}@{rounding}");
            assert_eq!(image_digest(&quantize(&text, x).dequantize()), image, "{text}");
        }
    }
    // arXiv 2506.20752's bump, block by block.
    let bumped = quantize("e4m3/32:e8m0@bump@microxcaling-torch", x);
    assert_eq!(image_digest(&bumped.dequantize()), 0xD27B_8516_999D_6C55);
}

/// In the definition and in the kernels.
#[test]
fn microxcaling_underflow() {
    let x = underflowing_blocks();
    let x = View::new(&x, x.len() / 32, 32);
    for (element, rounding, image) in MICROXCALING_TORCH_UNDERFLOW {
        for flush in ["", "-flush"] {
            let text = format!("{element}/32:e8m0@microxcaling-torch{flush}@{rounding}");
            let plain = quantize(&text, x);
            assert_eq!(image_digest(&plain.dequantize()), image, "{text}");
            let stored = text.parse::<Quantizer>().unwrap().quantize(x, Axis::Cols, RANDOM);
            let stored = stored.unwrap();
            assert!(stored.codes() == plain.codes, "{text}");
            assert_eq!(image_digest(&stored.dequantize()), image, "{text}");
        }
    }
}

/// A matrix of 32 x 64: any significand, eight binades in a row, rows of five sizes.
fn matrix(seed: u64) -> Vec<f32> {
    let mix = |z: u64| {
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let number = |i: u64| {
        let h = mix((seed * 1_000_003 + i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let field = 121 - (h >> 40 & 7) + i / 64 % 5 * 3;
        f32::from_bits(((h & 1) << 31 | field << 23 | h >> 8 & 0x7F_FFFF) as u32)
    };
    (0..32 * 64).map(number).collect()
}

/// Digests of scale codes and images of twelve matrices. Those of torchao were recorded from 0.18.0
/// (`NVFP4Tensor.to_nvfp4` and `dequantize`), those of Transformer Engine computed by the formulas
/// of `reference_nvfp4.py`, both with PyTorch 2.15.0.
#[rustfmt::skip]
const NVFP4: [(&str, u64, u64); 14] = [
    ("nvfp4@te", 0x4A7C_9DF8_7717_A8A8, 0xF4FF_571A_8B5B_D6F6),
    ("nvfp4@te-2.13", 0x4A7C_9DF8_7717_A8A8, 0xF4FF_571A_8B5B_D6F6),
    ("nvfp4-16x16@te", 0xE4C9_BDF9_45D2_AF85, 0xB006_3EC4_E941_F79E),
    ("nvfp4-16x16@te-2.13", 0xE4C9_BDF9_45D2_AF85, 0xB006_3EC4_E941_F79E),
    ("nvfp4@torchao", 0x4A7C_9DF8_7717_A8A8, 0x8AA5_8BAE_907E_EA93),
    ("e2m1/16:ue4m3@torchao-0.18", 0xF3F9_1D49_F4C0_86AB, 0xFFE1_8E60_84BB_D8D1),
    ("nvfp4@4over6", 0x168B_DC88_AB42_6461, 0x7532_3924_2A53_C4D5),
    ("nvfp4-16x16@4over6", 0xE346_1B20_B929_70A7, 0x4B30_55CC_6F81_0106),
    ("nvfp4@4over6-448", 0xDE58_DEF6_AF24_365E, 0xD102_1B8A_CEED_5892),
    ("nvfp4-16x16@4over6-448@te", 0x2036_C239_9754_9A8B, 0x5579_5C27_FE98_8203),
    ("nvfp4@4over6-mse@te", 0x5698_0C90_C90F_B2F1, 0xA6DB_F189_E751_EC44),
    ("nvfp4-16x16@4over6-mse", 0x3720_8A14_A1A6_9335, 0x5F69_0F5F_C778_C0F7),
    ("nvfp4@4over6-mse-448", 0xB252_0139_3C04_444C, 0x2EF7_DB63_6702_8986),
    ("nvfp4-16x16@4over6-mse-448", 0xF047_C5A6_01EB_88C9, 0xDDCF_E14A_0B44_A499),
];

#[test]
fn nvfp4() {
    for (text, scales, images) in NVFP4 {
        let found: Vec<PlainBlocks> =
            (0..12).map(|seed| quantize(text, View::new(&matrix(seed), 32, 64))).collect();
        let codes = found.iter().flat_map(|found| &found.scales).map(|code| *code as u8);
        assert_eq!(digest(codes), scales, "{text}");
        let image: Vec<f32> = found.iter().flat_map(PlainBlocks::dequantize).collect();
        assert_eq!(image_digest(&image), images, "{text}");
    }
}

/// Four over six does not depend on how a matrix is stored: its sums run along the reduction axis.
#[test]
fn four_over_six_is_relative_to_the_axis() {
    let x = matrix(3);
    let x = View::new(&x, 32, 64);
    for text in ["nvfp4@4over6", "nvfp4-16x16@4over6-mse"] {
        let format: BlockFormat = text.parse().unwrap();
        let (rounding, overflow) =
            (exmy::round::Rounding::TiesToEven, exmy::round::Overflow::Finite);
        let along =
            PlainBlocks::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM)).dequantize();
        let down = PlainBlocks::quantize(x.t(), Axis::Rows, format, (rounding, overflow, RANDOM))
            .dequantize();
        for (i, j) in (0..32).flat_map(|i| (0..64).map(move |j| (i, j))) {
            assert_eq!(along[i * 64 + j].to_bits(), down[j * 32 + i].to_bits(), "{text}");
        }
    }
}
