//! The formats people name: OCP FP8/FP6/FP4 and scales, AMD's FNUZ, IEEE interchange formats.

use super::{Format, FormatBuilder, Sign, Specials};

/// A constant of the catalog; a wrong one fails to compile.
const fn built(builder: FormatBuilder) -> Format {
    match builder.build() {
        Ok(format) => format,
        Err(_) => panic!("a format of the catalog cannot be built"),
    }
}

const fn signed(exp_bits: u32, man_bits: u32, specials: Specials) -> Format {
    built(Format::builder(Sign::Magnitude, exp_bits, man_bits).specials(specials))
}

const fn unsigned(exp_bits: u32, man_bits: u32) -> FormatBuilder {
    Format::builder(Sign::Unsigned, exp_bits, man_bits).specials(Specials::Fn)
}

impl Format {
    /// OCP OFP8 E5M2: bias 15, IEEE specials.
    ///
    /// Largest 57344 (0x7B), smallest normal 2^-14, subnormal 2^-16.
    pub const E5M2: Self = signed(5, 2, Specials::Ieee);
    /// OCP OFP8 E4M3, `float8_e4m3fn`: bias 7, NaN at all ones.
    ///
    /// Largest 448 (0x7E), smallest normal 2^-6, subnormal 2^-9.
    pub const E4M3FN: Self = signed(4, 3, Specials::Fn);
    /// OCP OFP8 E4M3 by its short name: [`E4M3FN`](Self::E4M3FN), the format of
    /// [`minifloat::E4M3`](crate::minifloat::E4M3). Its text is `e4m3`.
    pub const E4M3: Self = Self::E4M3FN;
    /// The IEEE-like E4M3 of ml_dtypes and LLVM, whose text is `e4m3-ieee`. Not OCP's.
    ///
    /// Largest 240 (0x77), smallest normal 2^-6, subnormal 2^-9.
    pub const E4M3_IEEE: Self = signed(4, 3, Specials::Ieee);
    /// The IEEE-like E3M4 of ml_dtypes and LLVM.
    ///
    /// Largest 15.5 (0x6F), smallest normal 0.25, subnormal 2^-6.
    pub const E3M4: Self = signed(3, 4, Specials::Ieee);
    /// AMD CDNA3 fp8 (arXiv 2206.02915): bias 8, one NaN, one zero.
    ///
    /// Largest 240 (0x7F), smallest normal 2^-7, subnormal 2^-10.
    pub const E4M3FNUZ: Self = signed(4, 3, Specials::Fnuz);
    /// AMD CDNA3 bf8 (arXiv 2206.02915): bias 16, one NaN, one zero.
    ///
    /// Largest 57344 (0x7F), smallest normal 2^-15, subnormal 2^-17.
    pub const E5M2FNUZ: Self = signed(5, 2, Specials::Fnuz);
    /// E4M3FNUZ with bias 11 (ml_dtypes, LLVM).
    ///
    /// Largest 30 (0x7F), smallest normal 2^-10, subnormal 2^-13.
    pub const E4M3B11FNUZ: Self =
        built(Self::builder(Sign::Magnitude, 4, 3).specials(Specials::Fnuz).bias(11));
    /// OCP MX FP6 E3M2: all codes finite.
    ///
    /// Largest 28 (0x1F), smallest normal 0.25, subnormal 2^-4.
    pub const E3M2: Self = signed(3, 2, Specials::Finite);
    /// OCP MX FP6 E2M3: all codes finite.
    ///
    /// Largest 7.5 (0x1F), smallest normal 1, subnormal 2^-3.
    pub const E2M3: Self = signed(2, 3, Specials::Finite);
    /// OCP MX FP4 E2M1, also NVFP4's element: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    ///
    /// Largest 6 (0x7), smallest normal 1, subnormal 0.5.
    pub const E2M1: Self = signed(2, 1, Specials::Finite);
    /// FP4 with powers of two only (oneDNN `f4_e3m0`): 0, 0.25 ... 16 and their negatives.
    ///
    /// Largest 16 (0x7), smallest 0.25.
    pub const E3M0: Self = signed(3, 0, Specials::Finite);
    /// OCP MX INT8: two's complement in units of 2^-6. Code 0x80 is -2; rounding under a
    /// saturating policy never produces it.
    ///
    /// Largest 1.984375 (0x7F), smallest 2^-6.
    pub const INT8: Self = built(Self::builder(Sign::TwosComplement, 0, 7));
    /// OCP MX scale E8M0: powers of two from 2^-127 (code 0) to 2^127, NaN at 0xFF, no zero.
    ///
    /// Largest 2^127 (0xFE), smallest 2^-127.
    pub const E8M0: Self = built(unsigned(8, 0).zero(false).subnormals(false));
    /// NVFP4 block scale: E4M3FN without its sign bit.
    ///
    /// Largest 448 (0x7E), smallest normal 2^-6, subnormal 2^-9.
    pub const UE4M3: Self = built(unsigned(4, 3));
    /// Unsigned E5M3 (PTX ISA): 8 bits, NaN at 0xFF.
    ///
    /// Largest 114688 (0xFE), smallest normal 2^-14, subnormal 2^-17.
    pub const UE5M3: Self = built(unsigned(5, 3));
    /// IEEE 754 binary16.
    ///
    /// Largest 65504 (0x7BFF), smallest normal 2^-14, subnormal 2^-24.
    pub const F16: Self = signed(5, 10, Specials::Ieee);
    /// bfloat16: the upper half of binary32.
    ///
    /// Largest 255 * 2^120 (0x7F7F), smallest normal 2^-126, subnormal 2^-133.
    pub const BF16: Self = signed(8, 7, Specials::Ieee);
    /// NVIDIA TF32. A code has 19 bits; in a 32-bit word it lies in the top ones.
    ///
    /// Largest 2047 * 2^117 (0x3FBFF), smallest normal 2^-126, subnormal 2^-136.
    pub const TF32: Self = signed(8, 10, Specials::Ieee);
    /// IBM's DLFloat16 (Agrawal et al., ARITH 2019): no subnormals, one code for NaN and infinity,
    /// one zero. Its hardware rounds to nearest, ties up.
    ///
    /// Largest 511 * 2^24 (0x7FFE), smallest 513 * 2^-40.
    pub const DLFLOAT16: Self = built(
        Self::builder(Sign::Magnitude, 6, 9)
            .specials(Specials::Fn)
            .subnormals(false)
            .negative_zero(false),
    );
    /// IEEE 754 binary32.
    ///
    /// Largest 16777215 * 2^104 (0x7F7FFFFF), smallest normal 2^-126, subnormal 2^-149.
    pub const F32: Self = signed(8, 23, Specials::Ieee);
    /// IEEE 754 binary64.
    ///
    /// Largest 9007199254740991 * 2^971 (0x7FEFFFFFFFFFFFFF), smallest normal 2^-1022, subnormal 2^-1074.
    pub const F64: Self = signed(11, 52, Specials::Ieee);
}

/// The formats with a name of their own, and their canonical names.
pub const NAMED: [(&str, Format); 21] = [
    ("e5m2", Format::E5M2),
    ("e4m3", Format::E4M3FN),
    ("e4m3-ieee", Format::E4M3_IEEE),
    ("e3m4", Format::E3M4),
    ("e4m3fnuz", Format::E4M3FNUZ),
    ("e5m2fnuz", Format::E5M2FNUZ),
    ("e4m3b11fnuz", Format::E4M3B11FNUZ),
    ("e3m2", Format::E3M2),
    ("e2m3", Format::E2M3),
    ("e2m1", Format::E2M1),
    ("e3m0", Format::E3M0),
    ("int8", Format::INT8),
    ("e8m0", Format::E8M0),
    ("ue4m3", Format::UE4M3),
    ("ue5m3", Format::UE5M3),
    ("f16", Format::F16),
    ("bf16", Format::BF16),
    ("tf32", Format::TF32),
    ("dlfloat16", Format::DLFLOAT16),
    ("f32", Format::F32),
    ("f64", Format::F64),
];
