//! What a column's name means: formats, profile and rounding mode.
//!
//! The names are those of the recordings on an NVIDIA H200 (CUDA 13.0, PyTorch 2.11): `rn`, `rz`,
//! `rm`, `rp` and `rna` are the rounding modifiers of PTX `cvt`, `_satfinite` and `_relu` its
//! modifiers of that name. `_hdr` are the functions of `cuda_fp8.h`, `cuda_fp6.h` and `cuda_fp4.h`,
//! `torch_float8_*` PyTorch's casts. Names of recordings of `ml_dtypes` and of a later PyTorch are
//! read too.

use super::Table;
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::{Profile, Rounding};
use core::fmt;

/// A conversion that a column records.
///
/// Its text is what the command `exmy convert` takes: `--from f32 --to e4m3 --profile
/// cuda-satfinite`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conversion {
    /// The format of the inputs.
    pub from: Format,
    /// The format of the results.
    pub to: Format,
    /// Whose rules.
    pub profile: Profile,
    /// The rounding mode, where it is not the profile's own.
    pub rounding: Option<Rounding>,
}

type NamedColumn = (&'static str, Format, Profile, Option<Rounding>);

/// Columns of tables of f32 and f16 inputs: name, target, profile, rounding mode.
const FROM_FLOAT: [NamedColumn; 46] = {
    use Profile::{
        CudaNosat, CudaSatfinite, CudaSatfiniteRelu, CudaTf32Rna, MlDtypes, Torch, TorchNosat,
    };
    use Rounding::{TowardNegative, TowardPositive, TowardZero};
    [
        ("tf32_rna", Format::TF32, CudaTf32Rna, None),
        ("tf32_rn", Format::TF32, CudaNosat, None),
        ("tf32_rz", Format::TF32, CudaNosat, Some(TowardZero)),
        ("f16_rn", Format::F16, CudaNosat, None),
        ("f16_rz", Format::F16, CudaNosat, Some(TowardZero)),
        ("f16_rm", Format::F16, CudaNosat, Some(TowardNegative)),
        ("f16_rp", Format::F16, CudaNosat, Some(TowardPositive)),
        ("f16_rn_satfinite", Format::F16, CudaSatfinite, None),
        ("bf16_rn", Format::BF16, CudaNosat, None),
        ("bf16_rz", Format::BF16, CudaNosat, Some(TowardZero)),
        ("bf16_rm", Format::BF16, CudaNosat, Some(TowardNegative)),
        ("bf16_rp", Format::BF16, CudaNosat, Some(TowardPositive)),
        ("bf16_rn_satfinite", Format::BF16, CudaSatfinite, None),
        ("e4m3_rn_satfinite", Format::E4M3FN, CudaSatfinite, None),
        ("e5m2_rn_satfinite", Format::E5M2, CudaSatfinite, None),
        ("e4m3_rn_satfinite_relu", Format::E4M3FN, CudaSatfiniteRelu, None),
        ("e5m2_rn_satfinite_relu", Format::E5M2, CudaSatfiniteRelu, None),
        ("e4m3_nosat_hdr", Format::E4M3FN, CudaNosat, None),
        ("e5m2_nosat_hdr", Format::E5M2, CudaNosat, None),
        ("e2m3_rn_hdr", Format::E2M3, CudaSatfinite, None),
        ("e3m2_rn_hdr", Format::E3M2, CudaSatfinite, None),
        ("e2m1_rn_hdr", Format::E2M1, CudaSatfinite, None),
        ("e8m0_rz_sat_hdr", Format::E8M0, CudaSatfinite, Some(TowardZero)),
        ("e8m0_rp_sat_hdr", Format::E8M0, CudaSatfinite, Some(TowardPositive)),
        ("torch_float8_e4m3fn", Format::E4M3FN, TorchNosat, None),
        ("torch_float8_e5m2", Format::E5M2, TorchNosat, None),
        ("torch_float8_e4m3fnuz", Format::E4M3FNUZ, TorchNosat, None),
        ("torch_float8_e5m2fnuz", Format::E5M2FNUZ, TorchNosat, None),
        ("torch_float8_e8m0fnu", Format::E8M0, TorchNosat, None),
        ("torch_2_15_float8_e4m3fn", Format::E4M3FN, Torch, None),
        ("torch_2_15_float8_e5m2", Format::E5M2, Torch, None),
        ("torch_2_15_float8_e4m3fnuz", Format::E4M3FNUZ, Torch, None),
        ("torch_2_15_float8_e5m2fnuz", Format::E5M2FNUZ, Torch, None),
        ("torch_2_15_float8_e8m0fnu", Format::E8M0, Torch, None),
        ("ml_dtypes_float8_e3m4", Format::E3M4, MlDtypes, None),
        ("ml_dtypes_float8_e4m3", Format::E4M3_IEEE, MlDtypes, None),
        ("ml_dtypes_float8_e4m3b11fnuz", Format::E4M3B11FNUZ, MlDtypes, None),
        ("ml_dtypes_float8_e4m3fn", Format::E4M3FN, MlDtypes, None),
        ("ml_dtypes_float8_e4m3fnuz", Format::E4M3FNUZ, MlDtypes, None),
        ("ml_dtypes_float8_e5m2", Format::E5M2, MlDtypes, None),
        ("ml_dtypes_float8_e5m2fnuz", Format::E5M2FNUZ, MlDtypes, None),
        ("ml_dtypes_float8_e8m0fnu", Format::E8M0, MlDtypes, None),
        ("ml_dtypes_float6_e2m3fn", Format::E2M3, MlDtypes, None),
        ("ml_dtypes_float6_e3m2fn", Format::E3M2, MlDtypes, None),
        ("ml_dtypes_float4_e2m1fn", Format::E2M1, MlDtypes, None),
        ("ml_dtypes_bfloat16", Format::BF16, MlDtypes, None),
    ]
};

/// Columns of tables of 8-bit inputs: name, source, target, profile.
const FROM_F8: [(&str, Format, Format, Profile); 12] = {
    use Profile::{CudaNosat, Torch, TorchNosat};
    [
        ("f16_from_e4m3", Format::E4M3FN, Format::F16, CudaNosat),
        ("f16_from_e5m2", Format::E5M2, Format::F16, CudaNosat),
        ("torch_f32_e4m3fn", Format::E4M3FN, Format::F32, TorchNosat),
        ("torch_f32_e5m2", Format::E5M2, Format::F32, TorchNosat),
        ("torch_f32_e4m3fnuz", Format::E4M3FNUZ, Format::F32, TorchNosat),
        ("torch_f32_e5m2fnuz", Format::E5M2FNUZ, Format::F32, TorchNosat),
        ("torch_f32_e8m0fnu", Format::E8M0, Format::F32, TorchNosat),
        ("torch_2_15_f32_e4m3fn", Format::E4M3FN, Format::F32, Torch),
        ("torch_2_15_f32_e5m2", Format::E5M2, Format::F32, Torch),
        ("torch_2_15_f32_e4m3fnuz", Format::E4M3FNUZ, Format::F32, Torch),
        ("torch_2_15_f32_e5m2fnuz", Format::E5M2FNUZ, Format::F32, Torch),
        ("torch_2_15_f32_e8m0fnu", Format::E8M0, Format::F32, Torch),
    ]
};

impl Conversion {
    /// The conversion that a column of this name records in this table; `None` if the name is not
    /// known there.
    pub fn find(table: Table, name: &str) -> Option<Self> {
        let from = match table {
            Table::F32 | Table::F32Digest => Format::F32,
            Table::F16 => Format::F16,
            Table::F8 => {
                let (_, from, to, profile) = *FROM_F8.iter().find(|known| known.0 == name)?;
                return Some(Self { from, to, profile, rounding: None });
            }
        };
        let (_, to, profile, rounding) = *FROM_FLOAT.iter().find(|known| known.0 == name)?;
        Some(Self { from, to, profile, rounding })
    }

    /// The names that are known in a table.
    pub fn names(table: Table) -> impl Iterator<Item = &'static str> {
        let wide = FROM_FLOAT.iter().map(|known| known.0);
        let narrow = FROM_F8.iter().map(|known| known.0);
        let from_f8 = table == Table::F8;
        wide.filter(move |_| !from_f8).chain(narrow.filter(move |_| from_f8))
    }

    /// Formats and rules.
    pub const fn context(&self) -> Context {
        let rules = self.profile.conversion(self.from, self.to);
        Context::new(
            self.to,
            match self.rounding {
                Some(rounding) => rules.with_rounding(rounding),
                None => rules,
            },
        )
    }

    /// The recorded word that belongs to an input: a code, zero-extended, or of TF32 the binary32
    /// word that has the code on top.
    #[inline]
    pub const fn apply(&self, x: u64) -> u64 {
        self.context().convert(Operand::new(self.from, x)).code << self.places_below()
    }

    /// The code in a recorded word; the bits below a left-aligned one are lost.
    pub const fn code(&self, word: u64) -> u64 {
        word >> self.places_below()
    }

    /// Bytes of a recorded word.
    pub const fn word_bytes(&self) -> usize {
        self.to.storage_bits() as usize / 8
    }

    /// TF32 lies in the top of its word, as a binary32 number; every other code at the bottom.
    const fn places_below(&self) -> u32 {
        match (self.to.exp_bits(), self.to.man_bits()) {
            (8, 10) => 13,
            _ => 0,
        }
    }
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, profile, rounding } = self;
        write!(f, "--from {from} --to {to} --profile {profile}")?;
        match rounding {
            Some(rounding) => write!(f, " --round {rounding}"),
            None => Ok(()),
        }
    }
}
