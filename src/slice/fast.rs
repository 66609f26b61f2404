//! The fast conversions of binary32 slices, chosen by format, rules and what is written.
//!
//! All of them read the bits of an element and are branch-free. Four bodies share the work:
//!
//! * [`mask`]: rounding toward zero to a format with the exponents of binary32 is an `and`;
//! * [`nearest`]: to nearest even, under the usual policies;
//! * [`stochastic`]: stochastic rounding with few bits, under the same;
//! * [`shift`]: every other mode, stochastic rounding, and every policy, flush and sign rule.
//!
//! They serve *regular* formats: those with zero whose values below the lowest full binade continue
//! that binade's spacing down to it. Their smallest normal value and last place must be normal
//! numbers of binary32, and their significand no longer than its. What overflow, infinity, NaN and
//! zero become is computed by the rounding core ([`Edges`]), so that policies are defined in one
//! place.
//!
//! All else is left to [`grid`](super::grid) or to the definition. That is formats without zero
//! (E8M0), those with a significand field but no subnormal numbers, and those that reach below
//! binary32's normal numbers or beyond its largest. Of the modes it is stochastic rounding of
//! variant C, of 32 bits, or of 31 bits in variant B. It is also the readings of subnormal operands
//! that only PyTorch's and ml_dtypes' conversions to E8M0 and one matrix unit have.

mod edges;
mod nearest;
mod shift;
mod stochastic;

use crate::format::{Format, Specials};
use crate::minifloat::{Bits, CodeSliceMut};
use crate::round::{Flush, Operands, Payload, Rounding, Rules, SignRule, StochasticVariant};
use crate::simd::kernel;

use edges::Edges;
use nearest::{Mask, Nearest};
use shift::Shift;
use stochastic::Dither;

pub(super) const SIGN: u32 = 0x8000_0000;
pub(super) const INFINITY: u32 = 0x7F80_0000;
/// The smallest normal number of binary32.
const NORMAL: u32 = 0x0080_0000;

/// What a kernel does with one element: its bits, and its random word where it takes one.
trait Body: Copy {
    /// What is written.
    type Out: Copy;
    fn apply(self, x: u32, word: u32) -> Self::Out;
}

/// What a kernel writes: a code, or the value of a code.
trait Out: Copy {
    /// Whether it is the value.
    const VALUE: bool;
    /// From a code, or from the bits of the value.
    fn new(bits: u32) -> Self;
}

impl Out for f32 {
    const VALUE: bool = true;
    #[inline(always)]
    fn new(bits: u32) -> Self {
        Self::from_bits(bits)
    }
}

macro_rules! out_codes {
    ($($code:ident)*) => {$(
        impl Out for $code {
            const VALUE: bool = false;
            #[inline(always)]
            fn new(bits: u32) -> Self {
                bits as Self
            }
        }
    )*};
}
out_codes! { u8 u16 u32 }

kernel! {
    fn map<'a, B: Body>(body: B, x: &'a [f32], out: &'a mut [B::Out]) {
        for (x, out) in x.iter().zip(out) {
            *out = body.apply(x.to_bits(), 0);
        }
    }
}

kernel! {
    fn map_random<'a, B: Body>(body: B, words: &'a [u32], x: &'a [f32], out: &'a mut [B::Out]) {
        for ((x, word), out) in x.iter().zip(words).zip(out) {
            *out = body.apply(x.to_bits(), *word);
        }
    }
}

/// The grid of a format's values, in the bits of binary32.
#[derive(Clone, Copy, Debug)]
struct Lattice {
    man_bits: u32,
    /// `23 - M`: places that a normal number's significand loses.
    places: u32,
    /// The smallest normal value `2^emin`, as bits.
    normal: u32,
    /// The difference between the exponent field of a number and that of its code, in place. It is
    /// one less than the exponent field of `normal`, so that the hidden bit adds the first binade.
    rebias: u32,
    /// One unit of the last place of the lowest binade, `2^(emin - M)`.
    unit: f32,
}

impl Lattice {
    fn new(format: Format) -> Option<Self> {
        let (man_bits, emin) = (format.man_bits(), format.emin());
        let regular = format.has_zero()
            && (format.has_subnormals() || man_bits == 0)
            && format.is_exact_in_f32()
            && man_bits <= 23
            && (-126..=127).contains(&emin);
        let unit = emin - man_bits as i32;
        // Down there a unit is no normal number, but nothing is multiplied by it either.
        let has_unit = unit >= -126 || emin == -126;
        if !(regular && has_unit) {
            return None;
        }
        let normal = ((emin + 127) as u32) << 23;
        Some(Self {
            man_bits,
            places: 23 - man_bits,
            normal,
            rebias: normal - NORMAL,
            unit: f32::from_bits(((unit.max(-126) + 127) as u32) << 23),
        })
    }
}

/// A format and its rules prepared for the kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fast {
    nearest: Option<nearest::Params>,
    dither: Option<stochastic::Params>,
    mask: Option<nearest::MaskParams>,
    shift: shift::Params,
    /// Whether NaN keeps a payload, which the kernels do not do.
    pub(super) patches_nan: bool,
}

impl Fast {
    /// `None` if the format is not regular or a rule is not served; see the [module](self).
    pub(super) fn new(to: Format, rules: Rules) -> Option<Self> {
        let lattice = Lattice::new(to)?;
        let served = matches!(rules.operands, Operands::Exact | Operands::Zero)
            && (rules.flush == Flush::None || to.has_subnormals())
            && match rules.rounding {
                Rounding::Stochastic { variant, bits } => match variant {
                    StochasticVariant::A => bits <= 31,
                    StochasticVariant::B => bits <= 30,
                    StochasticVariant::C => false,
                },
                _ => true,
            };
        if !served {
            return None;
        }
        let edges = Edges::new(to, rules);
        let plain = rules.flush == Flush::None
            && rules.operands == Operands::Exact
            && rules.sign == SignRule::Keep;
        let clamp = if plain { edges.clamp(to, &lattice) } else { None };
        let nearest = nearest::Params::new(&lattice, rules.rounding, clamp);
        // The others have no case for a single zero.
        let clamp = clamp.filter(|clamp| !clamp.one_zero);
        let mask = nearest::MaskParams::new(to, &lattice, rules.rounding, &edges);
        Some(Self {
            nearest,
            dither: stochastic::Params::new(&lattice, rules.rounding, clamp),
            mask: mask.filter(|_| plain),
            shift: shift::Params::new(to, lattice, rules, edges, clamp),
            patches_nan: rules.nan.payload != Payload::Drop && to.specials() == Specials::Ieee,
        })
    }

    /// Whether the work is so little that memory decides, however it is written to.
    pub(super) fn is_light(&self) -> bool {
        self.mask.is_some() || self.nearest.is_some()
    }

    /// The codes; `words` are the random words of the elements, if the mode is stochastic. `false`
    /// if codes of this type are not served.
    #[inline]
    pub(super) fn encode<C: Bits>(&self, x: &[f32], words: &[u32], codes: &mut [C]) -> bool {
        match C::codes_mut(codes) {
            CodeSliceMut::U8(codes) => self.write(x, words, codes),
            CodeSliceMut::U16(codes) => self.write(x, words, codes),
            CodeSliceMut::U32(codes) => self.write(x, words, codes),
            CodeSliceMut::U64(_) => return false,
        }
        true
    }

    /// The values.
    #[inline]
    pub(super) fn round(&self, x: &[f32], words: &[u32], out: &mut [f32]) {
        match (self.mask, self.nearest) {
            (Some(mask), _) => map(Mask(mask), x, out),
            (None, Some(nearest)) if nearest.all_normal() && !nearest.one_zero() => {
                map(Nearest::<f32, false, false>::new(nearest), x, out);
            }
            _ => self.write(x, words, out),
        }
    }

    fn write<O: Out>(&self, x: &[f32], words: &[u32], out: &mut [O]) {
        if let Some(nearest) = self.nearest {
            return if nearest.one_zero() {
                map(Nearest::<O, true, true>::new(nearest), x, out);
            } else {
                map(Nearest::<O, true, false>::new(nearest), x, out);
            };
        }
        if let Some(dither) = self.dither {
            return map_random(Dither::<O>::new(dither), words, x, out);
        }
        let shift = self.shift;
        match (shift.is_stochastic(), shift.has_clamp()) {
            (false, true) => map(Shift::<O, false, false>::new(shift), x, out),
            (false, false) => map(Shift::<O, false, true>::new(shift), x, out),
            (true, true) => map_random(Shift::<O, true, false>::new(shift), words, x, out),
            (true, false) => map_random(Shift::<O, true, true>::new(shift), words, x, out),
        }
    }
}
