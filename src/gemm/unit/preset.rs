//! The matrix units whose arithmetic has been measured, by name.
//!
//! Where a value comes from: NVIDIA's and AMD's from MMA-Sim (arXiv 2511.10909,
//! github.com/microsoft/MMA-Sim) and from Khattak and Mikaitis (arXiv 2512.07004,
//! github.com/north-numerical-computing/MATLAB-tensor-core), Volta's also from Fasi, Higham, Mikaitis and
//! Pranesh (PeerJ Computer Science 7:e330, 2021). Hopper's are those that reproduce every element of
//! the recordings of an H200 in `tests/data/h200`. The repository's `docs/units.md` lists all of them and
//! says what the sources leave open.

use super::input::Input;
use super::parameters::{Nan, Parameters, StepOrder, UnitFlush};
use crate::format::{Format, Sign};
use crate::round::{Flush, Operands, Rounding};

/// A matrix unit by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Preset {
    /// NVIDIA V100. Text: `volta`.
    Volta,
    /// NVIDIA T4. Text: `turing`.
    Turing,
    /// NVIDIA A100, A30, A2. Text: `ampere`.
    Ampere,
    /// NVIDIA L40S and other Ada GPUs. Text: `ada`.
    Ada,
    /// NVIDIA H100 and H200: `wgmma`, and `mma.sync` of operands of 16 bits and more. Text:
    /// `hopper`.
    Hopper,
    /// The same GPUs' `mma.sync` of 8-bit operands, as CUDA 13.0 assembles it. Text: `hopper-mma`.
    HopperMma,
    /// NVIDIA B200 and RTX Blackwell: f16, bf16, tf32, f8f6f4, mxf8f6f4, and mxf4, nvf4 where both
    /// operands are scaled E2M1. Text: `blackwell`.
    Blackwell,
    /// The same with scaled E2M1 operands by the instruction for all 8-, 6- and 4-bit formats. Text:
    /// `blackwell-mxf8f6f4`.
    BlackwellMxf8f6f4,
    /// AMD MI100: exact sums. Text: `cdna1`.
    Cdna1,
    /// AMD MI100 as the first version of MMA-Sim had it: a tree of additions. Text: `cdna1-tree`.
    Cdna1Tree,
    /// AMD MI200. Text: `cdna2`.
    Cdna2,
    /// The same with the first bf16 instructions (without `_1k` in their names). Text: `cdna2-bf16`.
    Cdna2Bf16,
    /// AMD MI300. Text: `cdna3`.
    Cdna3,
    /// Intel AMX, `tdpbf16ps`. Text: `amx`.
    Amx,
    /// The order of summation of this crate's fast product: AMX's on numbers of binary32,
    /// subnormal numbers kept. Text: `fast`.
    Fast,
    /// Fused steps on any formats whose values are binary32 numbers; parameters as Hopper's until others
    /// are named. Scales that are no powers of two need [`StepOrder::Groups`]. Text: `custom`.
    Custom,
}

/// What a unit takes, for messages and help.
pub(super) struct Facts {
    pub(super) preset: Preset,
    pub(super) name: &'static str,
    pub(super) takes: &'static str,
}

const fn facts(preset: Preset, name: &'static str, takes: &'static str) -> Facts {
    Facts { preset, name, takes }
}

pub(super) const FACTS: [Facts; 16] = [
    facts(Preset::Volta, "volta", "f16, into f32 or f16"),
    facts(Preset::Turing, "turing", "f16, into f32 or f16"),
    facts(Preset::Ampere, "ampere", "f16 into f32 or f16; bf16, tf32 into f32; f64 into f64"),
    facts(Preset::Ada, "ada", "f16, e4m3, e5m2 into f32 or f16; bf16, tf32 into f32; f64 into f64"),
    facts(
        Preset::Hopper,
        "hopper",
        "f16, e4m3, e5m2 into f32 or f16; bf16, tf32 into f32; f64 into f64",
    ),
    facts(Preset::HopperMma, "hopper-mma", "e4m3, e5m2, into f32 or f16"),
    facts(
        Preset::Blackwell,
        "blackwell",
        "f16, e4m3, e5m2, e3m2, e2m3, e2m1 into f32 or f16; bf16, tf32 into f32; f64 into f64; \
         the formats of 8, 6 and 4 bits with scales /32:e8m0 into f32; e2m1 with scales /32:e8m0, \
         /16:e8m0, /16:ue4m3 or /32:ue4m3 on both sides into f32",
    ),
    facts(
        Preset::BlackwellMxf8f6f4,
        "blackwell-mxf8f6f4",
        "e4m3, e5m2, e3m2, e2m3, e2m1 with scales /32:e8m0 on both sides, into f32",
    ),
    facts(Preset::Cdna1, "cdna1", "f16, bf16, f32, into f32"),
    facts(Preset::Cdna1Tree, "cdna1-tree", "f16, bf16, into f32"),
    facts(Preset::Cdna2, "cdna2", "f16, bf16, f32 into f32; f64 into f64"),
    facts(Preset::Cdna2Bf16, "cdna2-bf16", "bf16, into f32"),
    facts(
        Preset::Cdna3,
        "cdna3",
        "f16, bf16, tf32 (xf32), e4m3fnuz, e5m2fnuz, f32 into f32; f64 into f64",
    ),
    facts(Preset::Amx, "amx", "bf16, into f32"),
    facts(
        Preset::Fast,
        "fast",
        "any formats whose values are binary32 numbers, with block scales or without, into f32",
    ),
    facts(
        Preset::Custom,
        "custom",
        "any formats whose values are binary32 numbers, with block scales that are such or without, into \
         any signed format with infinities whose values are binary64 numbers, or a fixed-point one such as \
         int32",
    ),
];

/// What an element type can do on Blackwell's common instruction.
const NARROW: [Format; 5] =
    [Format::E4M3FN, Format::E5M2, Format::E3M2, Format::E2M3, Format::E2M1];

/// The view that fp8 accumulation of Ada and Hopper has of binary32: 13 fraction bits.
const E8M13: Format = match Format::ieee(8, 13) {
    Ok(format) => format,
    Err(_) => unreachable!(),
};

impl Preset {
    /// All presets.
    pub const ALL: [Self; 16] = {
        let mut all = [Self::Volta; 16];
        let mut i = 0;
        while i < 16 {
            all[i] = FACTS[i].preset;
            i += 1;
        }
        all
    };

    /// The name.
    pub fn name(self) -> &'static str {
        FACTS.iter().find(|facts| facts.preset == self).map_or("", |facts| facts.name)
    }

    /// The operand and result formats that it takes, in words.
    pub fn takes(self) -> &'static str {
        FACTS.iter().find(|facts| facts.preset == self).map_or("", |facts| facts.takes)
    }

    /// The parameters for operands and a result; `None` if the unit does not take them. Those of
    /// [`Custom`](Self::Custom) are a beginning: with some operands only others go together, which
    /// [`Unit::with_parameters`](super::Unit::with_parameters) checks.
    pub fn parameters(self, a: Input, b: Input, result: Format) -> Option<Parameters> {
        let exact = |input: Input| {
            input.format.is_exact_in_f32()
                && input.scale.is_none_or(|scale| scale.format.is_exact_in_f32())
        };
        match self {
            Self::Volta => tensor_core(a, b, result, &VOLTA),
            Self::Turing => tensor_core(a, b, result, &TURING),
            Self::Ampere => tensor_core(a, b, result, &AMPERE),
            Self::Ada => tensor_core(a, b, result, &ADA),
            Self::Hopper => tensor_core(a, b, result, &HOPPER),
            Self::HopperMma => {
                let products = if is_fp8(a, b) { 32 } else { return None };
                let fused =
                    into(Parameters::fused(products, 25, result), result, Some(-133), Some(-21));
                fused.map(|step| Parameters { order: StepOrder::Quarters, ..step })
            }
            Self::Blackwell => blackwell(a, b, result, true),
            Self::BlackwellMxf8f6f4 => {
                if a.scale.is_some() {
                    blackwell(a, b, result, false)
                } else {
                    None
                }
            }
            Self::Cdna1 | Self::Cdna1Tree | Self::Cdna2 | Self::Cdna2Bf16 | Self::Cdna3 => {
                self.cdna(a, b, result)
            }
            Self::Amx => {
                let bf16 = plain(a, b) == Some(Format::BF16) && result == Format::F32;
                let order = Parameters::ieee(StepOrder::EvenOdd, 32, result);
                bf16.then_some(Parameters {
                    flush: UnitFlush::Tiny,
                    operands: Operands::Zero,
                    nan: Nan::X86,
                    ..order
                })
            }
            Self::Fast => {
                let fits = exact(a) && exact(b) && result == Format::F32;
                fits.then_some(Parameters::ieee(StepOrder::EvenOdd, 32, result))
            }
            Self::Custom => {
                let fixed = matches!(result.sign(), Sign::TwosComplement);
                let numbers =
                    result.is_signed() && result.has_infinity() && result.is_exact_in_f64();
                // That of Hopper's results in binary32, below which wider ones have numbers.
                let floor = (fixed || result.is_exact_in_f32()).then_some(-133);
                let step = Parameters { floor, ..Parameters::fused(16, 25, result) };
                (exact(a) && exact(b) && (numbers || fixed)).then_some(step)
            }
        }
    }

    fn cdna(self, a: Input, b: Input, result: Format) -> Option<Parameters> {
        let format = match (is_fnuz(a, b), plain(a, b)) {
            (true, _) => Format::E4M3FNUZ,
            (false, format) => format?,
        };
        if format == Format::F64 {
            let fma = matches!(self, Self::Cdna2 | Self::Cdna3) && result == Format::F64;
            return fma.then_some(Parameters::ieee(StepOrder::Fma, 1, Format::F64));
        }
        if result != Format::F32 {
            return None;
        }
        let ieee = |order, products| Some(Parameters::ieee(order, products, Format::F32));
        let flushed = |products| {
            let tree = Parameters::ieee(StepOrder::Tree, products, Format::F32);
            let flush = UnitFlush::As(Flush::Output);
            Some(Parameters { flush, operands: Operands::PositiveZero, ..tree })
        };
        let exact = |products| {
            let step = Parameters::ieee(StepOrder::Fused, products, Format::F32);
            Some(Parameters { cut: super::Cut::Exact, ..step })
        };
        let late = |order, products, reach| {
            let step = Parameters::ieee(order, products, Format::F32);
            Some(Parameters { limit: Some(128), reach, ..step })
        };
        match (self, format) {
            (Self::Cdna1 | Self::Cdna2 | Self::Cdna3, Format::F32) => ieee(StepOrder::Fma, 1),
            (Self::Cdna1, Format::F16) => exact(4),
            (Self::Cdna1, Format::BF16) => exact(2),
            (Self::Cdna1Tree, Format::F16) => ieee(StepOrder::Tree, 4),
            (Self::Cdna1Tree, Format::BF16) => ieee(StepOrder::Tree, 2),
            (Self::Cdna2, Format::F16 | Format::BF16) => flushed(4),
            (Self::Cdna2Bf16, Format::BF16) => flushed(2),
            (Self::Cdna3, Format::F16 | Format::BF16) => late(StepOrder::Late, 8, None),
            (Self::Cdna3, Format::TF32) => late(StepOrder::Late, 4, None),
            (Self::Cdna3, Format::E4M3FNUZ) => late(StepOrder::Halves, 16, Some(25)),
            _ => None,
        }
    }
}

/// What distinguishes the tensor cores of one architecture from those of another.
struct TensorCore {
    /// Products of a step of f16 and bf16, of tf32, of 8 bits; 0 where there is no such operand.
    products: [u32; 3],
    bf16: bool,
    f64: bool,
    fraction: u32,
    /// Lowest alignment exponents of results in binary32 and binary16.
    floors: [Option<i32>; 2],
    /// Fraction bits of 8-bit operands, and the view of binary32 that their results have.
    narrow: (u32, Format),
}

const VOLTA: TensorCore = TensorCore {
    products: [4, 0, 0],
    bf16: false,
    f64: false,
    fraction: 23,
    floors: [None, Some(-19)],
    narrow: (0, Format::F32),
};
const TURING: TensorCore =
    TensorCore { products: [8, 0, 0], fraction: 24, floors: [None; 2], ..VOLTA };
const AMPERE: TensorCore = TensorCore {
    products: [8, 4, 0],
    bf16: true,
    f64: true,
    fraction: 24,
    floors: [Some(-132), Some(-20)],
    narrow: (0, Format::F32),
};
const ADA: TensorCore = TensorCore { products: [8, 4, 16], narrow: (13, E8M13), ..AMPERE };
const HOPPER: TensorCore =
    TensorCore { products: [16, 8, 32], fraction: 25, floors: [Some(-133), Some(-21)], ..ADA };
const BLACKWELL: TensorCore = TensorCore { narrow: (25, Format::F32), ..HOPPER };

/// The format of both operands where it is one, without scales.
fn plain(a: Input, b: Input) -> Option<Format> {
    (a == b && a.scale.is_none()).then_some(a.format)
}

fn both(a: Input, b: Input, formats: &[Format]) -> bool {
    formats.contains(&a.format) && formats.contains(&b.format)
}

fn is_fp8(a: Input, b: Input) -> bool {
    both(a, b, &[Format::E4M3FN, Format::E5M2]) && a.scale.is_none() && b.scale.is_none()
}

fn is_fnuz(a: Input, b: Input) -> bool {
    both(a, b, &[Format::E4M3FNUZ, Format::E5M2FNUZ]) && a.scale.is_none() && b.scale.is_none()
}

/// A fused step with a result in binary32, toward zero, or in binary16, to nearest even.
fn into(
    step: Parameters,
    result: Format,
    single: Option<i32>,
    half: Option<i32>,
) -> Option<Parameters> {
    match result {
        Format::F32 => Some(Parameters { floor: single, ..step }),
        Format::F16 => Some(Parameters {
            floor: half,
            output: Format::F16,
            rounding: Rounding::TiesToEven,
            ..step
        }),
        _ => None,
    }
}

fn tensor_core(a: Input, b: Input, result: Format, core: &TensorCore) -> Option<Parameters> {
    let [wide, tf32, narrow] = core.products;
    let (products, fraction, output) = match plain(a, b) {
        _ if narrow > 0 && is_fp8(a, b) => (narrow, core.narrow.0, core.narrow.1),
        Some(Format::F16) => (wide, core.fraction, Format::F32),
        Some(Format::BF16) if core.bf16 && result == Format::F32 => {
            (wide, core.fraction, Format::F32)
        }
        Some(Format::TF32) if tf32 > 0 && result == Format::F32 => {
            (tf32, core.fraction, Format::F32)
        }
        Some(Format::F64) if core.f64 && result == Format::F64 => {
            return Some(Parameters::ieee(StepOrder::Fma, 1, Format::F64));
        }
        _ => return None,
    };
    into(Parameters::fused(products, fraction, output), result, core.floors[0], core.floors[1])
}

fn blackwell(a: Input, b: Input, result: Format, four: bool) -> Option<Parameters> {
    if !both(a, b, &NARROW) {
        return tensor_core(a, b, result, &BLACKWELL);
    }
    let step = Parameters::fused(32, 25, Format::F32);
    let [single, half] = BLACKWELL.floors;
    let (Some(x), Some(y)) = (a.scale, b.scale) else {
        let unscaled = a.scale.is_none() && b.scale.is_none();
        return if unscaled { into(step, result, single, half) } else { None };
    };
    let common = [x, y].iter().all(|scale| scale.format == Format::E8M0 && scale.block == 32);
    let only_four = both(a, b, &[Format::E2M1]) && x == y;
    let of_four = [Format::E8M0, Format::UE4M3].contains(&x.format) && [16, 32].contains(&x.block);
    match result {
        Format::F32 if four && only_four && of_four => into(
            Parameters { order: StepOrder::Groups, products: 64, fraction: 35, ..step },
            result,
            single,
            half,
        ),
        Format::F32 if common => into(step, result, single, half),
        _ => None,
    }
}
