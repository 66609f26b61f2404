//! Fewer exponent bits, by clipping the range of bfloat16 values.
//!
//! arXiv 2405.18710 removes an exponent bit by clipping what lies outside the range and keeps the
//! mantissa; clipping only what is too large, or only what is too small, separates the two effects. The
//! paper gives neither the bias nor what clipping makes of a value, so both are choices here.
//!
//! A value is rounded to bfloat16, to nearest even. With E exponent bits, M mantissa bits and exponents
//! from `lo` to `hi`:
//!
//! * outer: above `(2 - 2^-M) 2^hi` it becomes that number, or with `-inf` infinity;
//! * inner: below `2^lo` it becomes 0, with `-subnormal` the nearest multiple of `2^(lo - M)` (ties to
//!   even), with `-clamp` `2^lo`. Zero stays.
//!
//! NaN stays. Text: `clip-e7m7`, with any of `-keep-low -keep-high -biasN` (the bias), `-outer -inner
//! -off` (one side only, or none), `-inf`, `-subnormal -clamp`, `-pow2` (the tensor is multiplied by
//! the largest power of two under which nothing is too large, and divided after).

use std::fmt;
use std::str::FromStr;

use exmy::text::UnknownName;

/// Which exponents remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bias {
    /// `1 - b` to `b` with `b = 2^(E-1) - 1`, as IEEE 754 lays them out.
    Centred,
    /// -126 and the `2^E - 2` above it: the top exponent bit of bfloat16 is 0.
    KeepLow,
    /// 127 and the `2^E - 2` below it.
    KeepHigh,
    /// `1 - bias` and the `2^E - 3` above it.
    Value(i16),
}

impl Bias {
    /// That number; `None` where the exponents would leave binary64: every bfloat16 number is far inside.
    pub fn value(bias: i16) -> Option<Self> {
        (-500..=500).contains(&bias).then_some(Self::Value(bias))
    }
}

/// What becomes of too small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Zero.
    Flush,
    /// The nearest subnormal number.
    Subnormal,
    /// The smallest normal number.
    Clamp,
}

/// A clipped range; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clip {
    /// E, 2 to 8.
    pub exponent_bits: u8,
    /// M, 0 to 7: where the largest number ends and subnormal ones lie.
    pub mantissa_bits: u8,
    /// Which exponents.
    pub bias: Bias,
    /// Whether large numbers are clipped.
    pub outer: bool,
    /// Whether they become infinite.
    pub infinite: bool,
    /// What small numbers become; `None` leaves them.
    pub inner: Option<Inner>,
    /// Whether the tensor is scaled by a power of two meanwhile.
    pub scaled: bool,
}

/// Two to the power of `exponent`, -1022 to 1023.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

impl Clip {
    /// Both sides, centred, to the largest number and to zero.
    pub const fn new(exponent_bits: u8, mantissa_bits: u8) -> Self {
        Self {
            exponent_bits,
            mantissa_bits,
            bias: Bias::Centred,
            outer: true,
            infinite: false,
            inner: Some(Inner::Flush),
            scaled: false,
        }
    }

    /// The lowest and the highest exponent.
    pub const fn exponents(self) -> (i32, i32) {
        let codes = 1_i32 << self.exponent_bits;
        match self.bias {
            Bias::Centred => (2 - codes / 2, codes / 2 - 1),
            Bias::KeepLow => (-126, -126 + codes - 2),
            Bias::KeepHigh => (127 - (codes - 2), 127),
            Bias::Value(bias) => (1 - bias as i32, codes - 2 - bias as i32),
        }
    }

    /// The largest number.
    pub fn max(self) -> f64 {
        (2.0 - power(-i32::from(self.mantissa_bits))) * power(self.exponents().1)
    }

    /// The smallest normal number.
    pub fn min_normal(self) -> f64 {
        power(self.exponents().0)
    }

    /// The smallest subnormal number, whose multiples the subnormal numbers are.
    pub fn min_subnormal(self) -> f64 {
        self.min_normal() * power(-i32::from(self.mantissa_bits))
    }

    /// How many of these values are clipped for their size: those that lie beyond the largest number as
    /// bfloat16 numbers, unless they are left or scaled to lie below it.
    pub fn beyond(self, values: impl Iterator<Item = f64>) -> u64 {
        if !self.outer || self.scaled {
            return 0;
        }
        values.filter(|x| f64::from(bf16(*x as f32).abs()) > self.max()).count() as u64
    }

    /// Rounds to bfloat16 and clips.
    pub fn apply(self, values: &mut [f32]) {
        let (max, min, place) = (self.max(), self.min_normal(), self.min_subnormal());
        let mut scale = 0;
        for value in values.iter_mut() {
            *value = bf16(*value);
        }
        if self.scaled {
            let amax = values.iter().filter(|x| x.is_finite()).fold(0.0_f32, |m, x| m.max(x.abs()));
            if amax > 0.0 {
                scale = largest_scale(max, f64::from(amax));
            }
        }
        let (up, down) = (power(scale), power(-scale));
        for value in values.iter_mut().filter(|value| !value.is_nan()) {
            let y = f64::from(value.abs()) * up;
            let clipped = if self.outer && y > max {
                if self.infinite { f64::INFINITY } else { max }
            } else if y > 0.0 && y < min {
                match self.inner {
                    None => y,
                    Some(Inner::Flush) => 0.0,
                    Some(Inner::Clamp) => min,
                    // At most 2^M places: adding and taking away 2^52 rounds to even.
                    Some(Inner::Subnormal) => (y / place + power(52) - power(52)) * place,
                }
            } else {
                y
            };
            *value = ((clipped * down) as f32).copysign(*value);
        }
    }
}

/// The largest `k` with `amax 2^k <= max`.
fn largest_scale(max: f64, amax: f64) -> i32 {
    // Within one of the answer, since quotient and exponents are exact to a factor below 2.
    let mut k = libm::ilogb(max) - libm::ilogb(amax);
    if amax * power(k) > max {
        k -= 1;
    }
    k
}

/// To bfloat16, to nearest even; NaN stays one.
pub fn bf16(x: f32) -> f32 {
    if x.is_nan() {
        return f32::NAN;
    }
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
}

const FORMS: &str = "clip-e7m7 with E of 2 to 8 and M of 0 to 7, then any of -keep-low, -keep-high, \
                     -biasN; -outer, -inner, -off; -inf; -subnormal, -clamp; -pow2";

impl fmt::Display for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clip-e{}m{}", self.exponent_bits, self.mantissa_bits)?;
        match self.bias {
            Bias::Centred => {}
            Bias::KeepLow => f.write_str("-keep-low")?,
            Bias::KeepHigh => f.write_str("-keep-high")?,
            Bias::Value(bias) => write!(f, "-bias{bias}")?,
        }
        match (self.outer, self.inner) {
            (true, Some(_)) => {}
            (true, None) => f.write_str("-outer")?,
            (false, Some(_)) => f.write_str("-inner")?,
            (false, None) => f.write_str("-off")?,
        }
        if self.infinite {
            f.write_str("-inf")?;
        }
        match self.inner {
            Some(Inner::Subnormal) => f.write_str("-subnormal")?,
            Some(Inner::Clamp) => f.write_str("-clamp")?,
            Some(Inner::Flush) | None => {}
        }
        f.write_str(if self.scaled { "-pow2" } else { "" })
    }
}

impl FromStr for Clip {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let unknown = || UnknownName::new("clipped range", text, ["clip-e7m7", "clip-e5m7"], FORMS);
        parse(&text.to_ascii_lowercase()).ok_or_else(unknown)
    }
}

fn parse(text: &str) -> Option<Clip> {
    let (shape, mut rest) = match text.strip_prefix("clip-e")?.split_once('-') {
        Some((shape, rest)) => (shape, rest),
        None => (text.strip_prefix("clip-e")?, ""),
    };
    let (exponent, mantissa) = shape.split_once('m')?;
    let digit = |text: &str| -> Option<u8> {
        (text.len() == 1 && text.as_bytes()[0].is_ascii_digit()).then(|| text.parse().ok())?
    };
    let mut clip = Clip::new(digit(exponent)?, digit(mantissa)?);
    if !(2..=8).contains(&clip.exponent_bits) || clip.mantissa_bits > 7 {
        return None;
    }
    let mut small = None;
    while !rest.is_empty() {
        let known =
            ["keep-low", "keep-high", "outer", "inner", "off", "inf", "subnormal", "clamp", "pow2"];
        let word = known.into_iter().find(|word| {
            rest.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        let length = match word {
            Some("keep-low") => (clip.bias = Bias::KeepLow, 8).1,
            Some("keep-high") => (clip.bias = Bias::KeepHigh, 9).1,
            Some("outer") => (clip.inner = None, 5).1,
            Some("inner") => (clip.outer = false, 5).1,
            Some("off") => ((clip.outer, clip.inner) = (false, None), 3).1,
            Some("inf") => (clip.infinite = true, 3).1,
            Some("subnormal") => (small = Some(Inner::Subnormal), 9).1,
            Some("clamp") => (small = Some(Inner::Clamp), 5).1,
            Some(_) => (clip.scaled = true, 4).1,
            None => {
                let digits = rest.strip_prefix("bias")?;
                let length = digits.find('-').filter(|end| *end > 0).unwrap_or_else(|| {
                    digits[1.min(digits.len())..].find('-').map_or(digits.len(), |end| end + 1)
                });
                clip.bias = Bias::value(digits[..length].parse().ok()?)?;
                4 + length
            }
        };
        rest = rest[length..].strip_prefix('-').unwrap_or(&rest[length..]);
    }
    if small.is_some() && clip.inner.is_some() {
        clip.inner = small;
    }
    Some(clip)
}
