//! What standards, libraries and devices do: each a name for a set of [`Rules`].
//!
//! The rules depend on the target format: "saturate" means something else for E4M3FN, E5M2 and
//! E8M0. Where a source has nothing to say about a format, its rules are those of the nearest
//! format it does speak of. Sources are named at each profile.

use super::{
    AbsentNan, AbsentZero, NanCode, NanRules, Operands, Overflow, Payload, Rounding, Rules,
    SignRule, Standard,
};
use crate::format::{Format, Sign, Specials, low_bits};

/// A named set of [`Rules`].
///
/// ```
/// use exmy::format::Format;
/// use exmy::round::{Overflow, Profile};
///
/// let profile: Profile = "cuda-satfinite".parse()?;
/// assert_eq!(profile.rules(Format::E5M2).overflow, Overflow::Finite);
/// # Ok::<(), exmy::text::UnknownName>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Profile {
    /// IEEE 754-2019: natural overflow, payloads kept and quieted between IEEE-like formats.
    #[default]
    Ieee,
    /// IEEE P3109 Interim Report 4.0 with `SatNone`; the other saturation modes are
    /// [`Overflow::Finite`] and [`Overflow::Propagate`].
    P3109,
    /// OCP OFP8 1.0 and MX 1.0, saturating: the largest value for overflow and infinity.
    OcpSat,
    /// OCP OFP8 1.0, non-saturating: overflow is NaN in E4M3 and infinity in E5M2.
    OcpNonsat,
    /// ml_dtypes 0.6: NaN or infinity for overflow under every mode, finite formats saturate, NaN
    /// into them is the zero of the other sign; E8M0 rounds ties up and has NaN for zero and
    /// negative numbers. The NaN of its FNUZ types counts as negative.
    ///
    /// Its array casts of binary64 numbers pass through binary32 and round twice; here they do
    /// not. To have their bits, convert to `f32` first.
    MlDtypes,
    /// NVIDIA `cvt` without `.satfinite`, and the CUDA header's `__NV_NOSAT`: one NaN with all bits
    /// set and no sign.
    CudaNosat,
    /// NVIDIA `cvt.satfinite` and the CUDA header's `__NV_SATFINITE`: as
    /// [`CudaNosat`](Self::CudaNosat), but overflow and infinity become the largest value; E8M0
    /// ignores the sign and takes only `rtz` and `rup` there (`rup` unless said otherwise).
    CudaSatfinite,
    /// NVIDIA `cvt.satfinite.relu`: negative numbers become +0.
    CudaSatfiniteRelu,
    /// NVIDIA `cvt.rna.tf32.f32` as assembled for Hopper: ties away, a NaN is only truncated.
    CudaTf32Rna,
    /// PyTorch from 2.13 on, as its CPU code of 2.15 does it: overflow and infinity saturate in
    /// E4M3FN, are infinity in E5M2 and NaN in the FNUZ formats. NaN has all bits set and keeps its
    /// sign; E8M0 ignores the sign, rounds ties up, and has NaN for infinity.
    ///
    /// binary64 numbers pass through binary32 there, and are rounded twice; here they are not. The
    /// NaN of its conversions from binary32 to bfloat16 is 0x7FC0 for single numbers, as here, and
    /// 0xFFFF for the elements of a tensor.
    Torch,
    /// PyTorch before 2.13, as its CUDA code of 2.11 does it: as [`Torch`](Self::Torch), but
    /// overflow and infinity are NaN in E4M3FN, and binary16 NaN operands lose their sign.
    TorchNosat,
    /// ONNX Cast (opset 19 to 25) with `saturate=1`, by the operator's tables: infinities become the
    /// largest value, but NaN in FNUZ formats; E8M0 rounds up (`round_mode` up; the others are `rtz`
    /// for down and `rna` for nearest). The reference implementation differs from the tables: it
    /// clamps infinities in FNUZ formats too, and gives E8M0 NaN for infinity.
    Onnx,
    /// ONNX Cast with `saturate=0`, by the operator's tables; E8M0 rounds to nearest, ties up. Its
    /// table has NaN for numbers below 2^-127, which here become 2^-127.
    OnnxNosat,
    /// microxcaling's elements: ties away, clamped, infinities and NaN kept.
    Microxcaling,
    /// IEEE 754 as x86 SSE does it: the first NaN operand is passed on, quieted; a new NaN is
    /// negative.
    X86,
    /// IEEE 754 as RISC-V does it: every NaN result is the canonical one.
    Riscv,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 16] = [
        Self::Ieee,
        Self::P3109,
        Self::OcpSat,
        Self::OcpNonsat,
        Self::MlDtypes,
        Self::CudaNosat,
        Self::CudaSatfinite,
        Self::CudaSatfiniteRelu,
        Self::CudaTf32Rna,
        Self::Torch,
        Self::TorchNosat,
        Self::Onnx,
        Self::OnnxNosat,
        Self::Microxcaling,
        Self::X86,
        Self::Riscv,
    ];

    /// The rules of a conversion from one format to another: those of [`rules`](Self::rules), and
    /// what NaN becomes where that depends on the source too. It does in PyTorch's profiles only:
    /// PyTorch widens each 8-bit format by code of its own. On CUDA it converts binary16 by way of
    /// binary32 with an instruction that drops a NaN's sign and payload.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Profile;
    ///
    /// let negative_nan = [(Format::F16, 0xFE00), (Format::F32, 0xFFC0_0000)];
    /// let codes = negative_nan.map(|(from, code)| {
    ///     let rules = Profile::TorchNosat.conversion(from, Format::E4M3FN);
    ///     Context::new(Format::E4M3FN, rules).convert(Operand::new(from, code)).code
    /// });
    /// assert_eq!(codes, [0x7F, 0xFF]);
    /// ```
    pub const fn conversion(self, from: Format, to: Format) -> Rules {
        let rules = self.rules(to);
        let old = match self {
            Self::MlDtypes
                if is_ieee(to, 8, 23) && (is_ieee(from, 8, 7) || is_ieee(from, 5, 10)) =>
            {
                // ml_dtypes and NumPy shift the bits; a signaling NaN still signals.
                return Rules {
                    nan: NanRules { payload: Payload::Truncate, ..rules.nan },
                    ..rules
                };
            }
            Self::Torch => false,
            Self::TorchNosat => true,
            _ => return rules,
        };
        let to_f16 = is_ieee(to, 5, 10);
        let nan = match from.specials() {
            _ if is_ieee(to, 8, 7) => {
                NanRules { code: NanCode::Quiet, keep_sign: false, ..rules.nan }
            }
            _ if old && is_ieee(from, 5, 10) => {
                NanRules { code: NanCode::AllOnes, keep_sign: false, ..rules.nan }
            }
            _ if !(is_ieee(to, 8, 23) || to_f16 && !old) => return rules,
            // The exponent field of the code is widened by arithmetic, the rest moved up.
            Specials::Fn if from.is_signed() => {
                let top = low_bits(to.exp_bits() + from.man_bits());
                NanRules {
                    code: NanCode::Magnitude(top << (to.man_bits() - from.man_bits())),
                    ..rules.nan
                }
            }
            Specials::Ieee if from.bits() <= 8 && old => {
                NanRules { code: NanCode::AllOnes, ..rules.nan }
            }
            // A shift of the bits, after which a signaling NaN still signals.
            _ if is_ieee(from, 8, 7) && !to_f16 => {
                NanRules { payload: Payload::Truncate, ..rules.nan }
            }
            Specials::Ieee => NanRules { payload: Payload::Keep, ..rules.nan },
            // One constant, 0x7F800001; a second step to binary16 quiets it.
            Specials::Fn | Specials::Fnuz if from.bits() <= 8 && !to_f16 => {
                let top = low_bits(to.exp_bits()) << to.man_bits();
                NanRules { code: NanCode::Magnitude(top | 1), ..rules.nan }
            }
            _ => return rules,
        };
        Rules { nan, ..rules }
    }

    /// The rules of results in the format `to`.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Profile;
    ///
    /// let code = |profile: Profile| {
    ///     Context::new(Format::E4M3FN, profile.rules(Format::E4M3FN)).convert(Operand::f32(1e6)).code
    /// };
    /// assert_eq!([Profile::CudaSatfinite, Profile::MlDtypes].map(code), [0x7E, 0x7F]); // 448 or NaN
    /// ```
    pub const fn rules(self, to: Format) -> Rules {
        let rules = Rules::DEFAULT;
        let nan = rules.nan;
        let unsigned_nan = NanRules { code: NanCode::AllOnes, keep_sign: false, ..nan };
        let scale = is_scale(to);
        match self {
            Self::Ieee => Rules { nan: NanRules { payload: Payload::Keep, ..nan }, ..rules },
            Self::P3109 => Rules { standard: Standard::P3109, ..rules },
            Self::OcpSat => Rules { overflow: Overflow::Finite, ..rules },
            Self::OcpNonsat => Rules { overflow: nonsaturating(to), ..rules },
            Self::MlDtypes => {
                let nan = NanRules {
                    absent: AbsentNan::OppositeZero,
                    made_negative: true,
                    top_bit_is_sign: true,
                    ..nan
                };
                let rules = Rules { overflow: nonsaturating(to), nan, ..rules };
                if scale {
                    Rules { rounding: Rounding::TiesToAway, operands: Operands::Away, ..rules }
                } else {
                    rules
                }
            }
            Self::CudaNosat => {
                let overflow = match to.specials() {
                    // `cvt.rz`, `.rm` and `.rp` follow IEEE 754.
                    Specials::Ieee => Overflow::None,
                    _ => nonsaturating(to),
                };
                Rules { overflow, nan: unsigned_nan, ..rules }
            }
            Self::CudaSatfinite | Self::CudaSatfiniteRelu => {
                let rules = Rules { overflow: Overflow::Finite, nan: unsigned_nan, ..rules };
                if scale {
                    Rules { rounding: Rounding::TowardPositive, sign: SignRule::Magnitude, ..rules }
                } else if matches!(self, Self::CudaSatfiniteRelu) {
                    Rules { sign: SignRule::Relu, ..rules }
                } else {
                    rules
                }
            }
            Self::CudaTf32Rna => {
                let nan = NanRules { payload: Payload::Truncate, code: NanCode::AllOnes, ..nan };
                Rules { rounding: Rounding::TiesToAway, nan, ..rules }
            }
            Self::Torch | Self::TorchNosat => {
                let code = if to.bits() <= 8 { NanCode::AllOnes } else { NanCode::Quiet };
                let nan = NanRules { code, ..nan };
                let overflow = match to.specials() {
                    Specials::Fn if matches!(self, Self::Torch) && !scale => Overflow::Finite,
                    _ => nonsaturating(to),
                };
                let rules = Rules { overflow, nan, ..rules };
                if scale {
                    Rules {
                        rounding: Rounding::TiesToAway,
                        operands: Operands::Away,
                        sign: SignRule::Magnitude,
                        absent_zero: AbsentZero::Smallest,
                        ..rules
                    }
                } else {
                    rules
                }
            }
            Self::Onnx => {
                let rounding = if scale { Rounding::TowardPositive } else { rules.rounding };
                Rules { rounding, overflow: Overflow::Onnx, ..rules }
            }
            Self::OnnxNosat => {
                let rounding = if scale { Rounding::TiesToAway } else { rules.rounding };
                Rules { rounding, overflow: nonsaturating(to), ..rules }
            }
            Self::Microxcaling => {
                Rules { rounding: Rounding::TiesToAway, overflow: Overflow::Propagate, ..rules }
            }
            Self::X86 => {
                let nan = NanRules { payload: Payload::Keep, made_negative: true, ..nan };
                Rules { nan, ..rules }
            }
            Self::Riscv => {
                let code = if to.bits() <= 8 { NanCode::AllOnes } else { NanCode::Quiet };
                Rules { nan: NanRules { code, keep_sign: false, ..nan }, ..rules }
            }
        }
    }
}

/// Overflow that leaves the finite numbers under every mode, where there is somewhere to go.
const fn nonsaturating(to: Format) -> Overflow {
    match to.specials() {
        Specials::Fn | Specials::Fnuz => Overflow::Nan,
        Specials::Ieee => Overflow::Infinity,
        Specials::P3109 { infinite: true } => Overflow::Infinity,
        Specials::P3109 { infinite: false } | Specials::Finite => Overflow::Finite,
    }
}

/// Whether this is the IEEE format of these field widths.
const fn is_ieee(format: Format, exp_bits: u32, man_bits: u32) -> bool {
    matches!(format.specials(), Specials::Ieee)
        && format.exp_bits() == exp_bits
        && format.man_bits() == man_bits
}

/// Whether the format is a scale of powers of two without zero.
const fn is_scale(format: Format) -> bool {
    matches!(format.sign(), Sign::Unsigned) && format.man_bits() == 0 && !format.has_zero()
}
