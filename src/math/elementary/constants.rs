//! The constants of the elementary functions, rounded down to 512 bits, and `2 / pi` to the 1664
//! bits that reduce the arguments of formats with up to 11 exponent bits.
//!
//! The tests recompute every digit with an arbitrary-precision crate.

use super::ball::Constant;
use crate::math::wide::Wide;

/// `ln 2`.
pub(super) static LN_2: Constant = Constant {
    fraction: Wide([
        0x2757_3B29_1169_B825,
        0xED2E_AE35_C138_2144,
        0x5595_52FB_4AFA_1B10,
        0xE7B8_7620_6DEB_AC98,
        0x8A0D_175B_8BAA_FA2B,
        0x40F3_4326_7298_B62D,
        0xC9E3_B398_03F2_F6AF,
        0xB172_17F7_D1CF_79AB,
    ]),
    exponent: 0,
};

/// `1 / ln 2`.
pub(super) static LOG2_E: Constant = Constant {
    fraction: Wide([
        0xC4BF_AF03_53DF_39B3,
        0xEA90_B9E6_0C4A_909F,
        0x24D9_2F75_C16B_E0B3,
        0xDE1C_43F7_5517_6CD6,
        0x8B25_166C_D1A1_3247,
        0xEB57_7AA8_DD69_5A58,
        0xBE87_FED0_691D_3E88,
        0xB8AA_3B29_5C17_F0BB,
    ]),
    exponent: 1,
};

/// `pi`.
pub(super) static PI: Constant = Constant {
    fraction: Wide([
        0x4FE1_356D_6D51_C245,
        0x302B_0A6D_F25F_1437,
        0xEF95_19B3_CD3A_431B,
        0x514A_0879_8E34_04DD,
        0x020B_BEA6_3B13_9B22,
        0x2902_4E08_8A67_CC74,
        0xC4C6_628B_80DC_1CD1,
        0xC90F_DAA2_2168_C234,
    ]),
    exponent: 2,
};

/// `1 / pi`.
pub(super) static INVERSE_PI: Constant = Constant {
    fraction: Wide([
        0xE882_35F5_2EBB_4484,
        0xFE1D_EB1C_B129_A73E,
        0x0649_2EEA_09D1_921C,
        0xB724_6E3A_424D_D2E0,
        0xFE51_63AB_DEBB_C561,
        0xDB62_9599_3C43_9041,
        0xFC27_57D1_F534_DDC0,
        0xA2F9_836E_4E44_1529,
    ]),
    exponent: -1,
};

/// `atan(1/4)`.
pub(super) static ATAN_QUARTER: Constant = Constant {
    fraction: Wide([
        0x0F41_C3AB_0399_8379,
        0x3C2B_C227_071E_4F9A,
        0x05BE_8C5B_A583_1A3E,
        0x92B9_2516_68E5_7653,
        0x7A3A_767C_9449_A765,
        0xAA7F_A903_88B3_836B,
        0x6DC7_9EF5_F7A2_17E5,
        0xFADB_AFC9_6406_EB15,
    ]),
    exponent: -2,
};

/// `atan(1/2)`.
pub(super) static ATAN_HALF: Constant = Constant {
    fraction: Wide([
        0xD6D8_5E36_8622_8DBD,
        0xCEE1_E80E_FD3C_0013,
        0x87C8_12F8_C6A4_6182,
        0xFA9C_5917_892B_516C,
        0xE2CF_16E6_E962_4709,
        0x6E14_1587_261C_DF00,
        0x6FE4_45EC_BC3A_8D03,
        0xED63_382B_0DDA_7B45,
    ]),
    exponent: -1,
};

/// `atan(3/4)`.
pub(super) static ATAN_THREE_QUARTERS: Constant = Constant {
    fraction: Wide([
        0xC8EA_0CA4_5480_F6CE,
        0x9174_2CCC_E782_285A,
        0x5762_206E_D3D0_24B3,
        0xA7F7_B7DB_933C_B84F,
        0x2148_6665_8CC4_EF3A,
        0xE3F0_8689_EEB2_B9E7,
        0x19A8_7F2A_457D_AC9E,
        0xA4BC_7D19_34F7_0924,
    ]),
    exponent: 0,
};

/// The first 1664 bits of `2 / pi` after the binary point, most significant word first.
pub(super) static TWO_OVER_PI: [u64; 26] = [
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_6BAB,
    0xF0CF_BC20_9AF4_361D,
    0xA9E3_9161_5EE6_1B08,
    0x6599_855F_14A0_6840,
    0x8DFF_D880_4D73_2731,
    0x0606_1556_CA73_A8C9,
    0x60E2_7BC0_8C6B_47C4,
    0x19C3_67CD_DCE8_092A,
];
