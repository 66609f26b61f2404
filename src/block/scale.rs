//! How a block finds its scale.
//!
//! A [`ScaleRule`] turns the elements of a block, for most rules their largest magnitude `amax`, into a
//! code of the scale format. A [`BlockProfile`] says how a library fills in what the rule leaves open.
//!
//! **Powers of two** ([`Floor`](ScaleRule::Floor), [`Ceil`](ScaleRule::Ceil),
//! [`Even`](ScaleRule::Even), [`RCeil`](ScaleRule::RCeil)), in any scale format. With
//! `amax = m 2^e`, `1 <= m < 2`, and the element format's largest value `d 2^emax`, the scale is
//! `2^(e - emax)`, and `floor` stops there; `ceil` doubles it if `m > 1`, `even` if
//! `m >= 2 - 2^-(M+1)`, `rceil` if `m > d`. `e` is the binary exponent, of subnormals too; no
//! logarithm is computed. Elements are `x / scale` rounded once.
//!
//! **[`Nearest`](ScaleRule::Nearest)**: `amax / max` to the nearest value of the scale format, so
//! that the block's largest element becomes about `max`, the element format's largest value. With
//! a tensor scale this is NVFP4's two-level rule (arXiv 2509.25149). Every line is one binary32
//! operation, to nearest even:
//!
//! ```text
//! s_enc  = min((max * scale_max) / amax of the tensor, FLT_MAX); 1 if amax or s_enc is 0
//! s_dec  = 1 / s_enc                             without tensor scale, s_enc = s_dec = 1
//! d      = min(amax * (s_enc * (1 / max)), FLT_MAX)         te-2.13: (amax / max) * s_enc
//! scale  = d to the nearest value of the scale format, ties to even, saturating
//! factor = min(1 / (scale * s_dec), FLT_MAX)
//! code   = clamp(x * factor, -max, max) rounded to the element format; -0 counts as 0
//! image  = (value of code * scale) * s_dec
//! ```
//!
//! and in the order of torchao, where a zero tensor is 0 / 0 and so NaN:
//!
//! ```text
//! s      = amax of the tensor / (max * scale_max)           without tensor scale, s = 1
//! d      = clamp((amax / max) / s, smallest normal scale, scale_max)
//! scale  = d to the nearest value of the scale format, ties to even
//! factor = (1 / s) / scale
//! code   = clamp(x * factor, -max, max) rounded to the element format
//! image  = value of code * (scale * s)
//! ```
//!
//! **[`MaxAbs`](ScaleRule::MaxAbs)** (P3109 Interim Report 4.0, ConvertToBlockMaxAbsFinite): the
//! largest *finite* magnitude itself, to the nearest scale, so that it becomes about 1, not `max`.
//! Elements are `x / scale` rounded once: NaN if either is NaN, 0 if the scale is 0, the sign if
//! the scale is infinite.
//!
//! **[`FourOverSix`]**: the better of two scales, for E2M1.
//!
//! What a block holds, and what its scale then is:
//!
//! * Only zeros: the smallest power; under `nearest` and `max-abs` 0, if the format has it.
//! * Infinity: among powers of two NaN, so the whole block is NaN. Under `nearest` the scale saturates and
//!   infinity becomes `max * scale`; tensor factors are 1. Under `max-abs` infinity becomes `max` or stays,
//!   by the overflow policy.
//! * NaN: a NaN scale, so the whole block is NaN; under `nearest` with a tensor scale, that is NaN and so is
//!   the tensor. Under `max-abs` that element alone is NaN.
//! * An amax far below the tensor's, under `nearest`: 0. Codes saturate, images are 0.
//! * An amax too small for the scale format: the smallest power; under `nearest` and `max-abs` 0, or the
//!   smallest scale where there is no 0.
//! * An amax too large for it: NaN in formats of powers alone, such as E8M0, else the largest power; under
//!   `nearest` and `max-abs` the largest scale.
//!
//! That is the profile `ocp`. The repository's `docs/blocks.md` has tables of the others, and says
//! where the codes of NaN elements are not torchao's.

#![forbid(unsafe_code)]

mod choices;
mod four_over_six;
mod log2;
mod nvfp4;
mod power;
mod profile;
mod rule;

pub use four_over_six::{BlockError, Bound, FourOverSix};
pub use profile::BlockProfile;
pub use rule::ScaleRule;

// For those who compute scales elsewhere.
#[doc(hidden)]
pub use choices::{Above, Choices, Elements, Exponent, Infinity, Order, RoundUp, Smallest, Zeros};
pub(crate) use log2::{floor_log2, near_power};
pub(crate) use nvfp4::TensorFactors;
pub(crate) use power::power_code;

/// Whether a number can be the largest magnitude of a tensor.
pub(crate) const fn is_largest(amax: f32) -> bool {
    amax >= 0.0 && amax.is_finite()
}
