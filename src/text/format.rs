//! Names of formats.
//!
//! * a name of the catalog, [`NAMED`]: `e4m3`, `bf16`, `e8m0`, ...;
//! * P3109: `binary{K}p{P}{s|u}{e|f}`;
//! * two's complement: `int{K}`, with `b{BIAS}` where the unit is not `2^(2-K)`;
//! * any other: `[u]e{E}m{M}[b{BIAS}][CLASS][-nosub][-nozero][-onezero]` with the class `-ieee`, `fn`,
//!   `fnuz`, `finite`, `p3109e` or `p3109f`. Without one, unsigned formats are FN and signed ones
//!   IEEE-like, with two exceptions. The shape E4M3 is FN, as OCP has it. The shapes of MX, E3M2, E2M3 and
//!   E2M1, and those with an empty field are *finite*. The hyphen of `-ieee` may be left out. LLVM and
//!   ml_dtypes say `fn` of the MX shapes although those have no NaN, so that word means finite there, and
//!   `fnan` is the one with a NaN.
//!
//! Case does not matter. The names that other projects use are read too, with or without their
//! module (`torch.float8_e4m3fn`); [`ALIASES`] lists them. `E4M3` alone is OCP's
//! format, as is `F8_E4M3` (safetensors, oneDNN); `float8_e4m3` (ml_dtypes) and `Float8E4M3` (LLVM) are the
//! IEEE-like one, `e4m3-ieee`. What earlier versions wrote is read by [`old`](super::old).

use core::fmt;
use core::str::FromStr;

use super::aliases::{ALIASES, Alias, BLOCKS, CLASHES, PREFIXES};
use super::{Short, UnknownName};
use crate::format::{Format, FormatError, NAMED, Sign, Specials};

const FORMS: &str = "a shape such as e8m3 or e5m2, with u (unsigned), fn, fnuz, finite or -ieee (e5m2fnuz, \
                     ue4m3; e4m3 is OCP's, e4m3-ieee the IEEE-like one), a bias (e4m3b11fnuz, \
                     e5m2b-3), -nosub, -nozero or -onezero at the end, binary8p3se, int8, \
                     bf16, f16, tf32, f32, f64";

/// Why a text names no format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParseFormatError {
    /// It is not of any known form.
    Unknown(UnknownName),
    /// Projects mean different formats by it.
    Ambiguous {
        /// The text.
        given: Short,
    },
    /// It describes a format that cannot exist.
    Impossible {
        /// The text.
        given: Short,
        /// Why not.
        reason: FormatError,
    },
    /// Its bias stands behind its class.
    Misplaced {
        /// The text.
        given: Short,
        /// The name it would be.
        meant: Short,
    },
    /// It names a block format, whose elements are numbers of a format.
    Block {
        /// The text.
        given: Short,
        /// The format of the elements.
        element: &'static str,
    },
}

impl fmt::Display for ParseFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Ambiguous { given } => {
                write!(f, "{given:?} names several formats:")?;
                let clashes = CLASHES.iter();
                let meant = clashes.filter(|alias| alias.name.eq_ignore_ascii_case(given.as_str()));
                for (i, Alias { project, canonical, .. }) in meant.enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma} {canonical} ({project})")?;
                }
                Ok(())
            }
            Self::Impossible { given, reason } => {
                write!(f, "{given:?} names no possible format: {reason}")
            }
            Self::Misplaced { given, meant } => write!(
                f,
                "no number format is called {given:?}; did you mean {meant}? The bias stands before the class"
            ),
            Self::Block { given, element } => write!(
                f,
                "{given} is a block format, not a number format; the format of its elements is {element}"
            ),
        }
    }
}

impl core::error::Error for ParseFormatError {}

impl Format {
    /// The canonical name, at most 56 bytes.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Format::ieee(5, 2)?.name().as_str(), "e5m2"); // a named format
    /// assert_eq!(Format::ieee(5, 3)?.name().as_str(), "e5m3");
    /// assert_eq!(Format::p3109(8, 3, true, false)?.name().as_str(), "binary8p3sf");
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    pub fn name(self) -> Short {
        if let Some((name, _)) = NAMED.iter().find(|(_, format)| *format == self) {
            return Short::new(name);
        }
        if let Some(name) = self.p3109_name() {
            return name;
        }
        let (e, m) = (self.exp_bits(), self.man_bits());
        if self.sign() == Sign::TwosComplement {
            let bias = Bias((self.bias() != 0).then_some(self.bias()));
            return Short::of(format_args!("int{}{bias}", m + 1));
        }
        let sign = if self.is_signed() { "" } else { "u" };
        let class = match self.specials() {
            specials if specials == default_class(self.sign(), e, m) && !is_scale_shape(e, m) => "",
            Specials::Ieee => "-ieee",
            Specials::Fn if is_mx_shape(self.sign(), e, m) => "fnan",
            Specials::Fn => "fn",
            Specials::Fnuz => "fnuz",
            Specials::P3109 { infinite: true } => "p3109e",
            Specials::P3109 { infinite: false } => "p3109f",
            Specials::Finite => "finite",
        };
        let usual = Self::builder(self.sign(), e, m).specials(self.specials()).build();
        let usual = usual.is_ok_and(|format| format.bias() == self.bias());
        let bias = Bias((!usual).then_some(self.bias()));
        let nosub = if m > 0 && self.has_zero() && !self.has_subnormals() { "-nosub" } else { "" };
        let zero = match (self.has_zero(), self.has_negative_zero()) {
            (false, _) => "-nozero",
            (true, false) if self.could_have_negative_zero() => "-onezero",
            (true, _) => "",
        };
        Short::of(format_args!("{sign}e{e}m{m}{bias}{class}{nosub}{zero}"))
    }

    fn could_have_negative_zero(self) -> bool {
        self.sign() == Sign::Magnitude
            && matches!(self.specials(), Specials::Ieee | Specials::Fn | Specials::Finite)
    }

    fn p3109_name(self) -> Option<Short> {
        let Specials::P3109 { infinite } = self.specials() else { return None };
        let (k, p, signed) = (self.bits(), self.precision(), self.is_signed());
        if Self::p3109(k, p, signed, infinite) != Ok(self) {
            return None;
        }
        let sign = if signed { 's' } else { 'u' };
        let domain = if infinite { 'e' } else { 'f' };
        Some(Short::of(format_args!("binary{k}p{p}{sign}{domain}")))
    }
}

/// The text without a module or name space of those projects that have one.
fn without_prefix(text: &str) -> &str {
    let tail = |prefix: &&str| {
        let head = text.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
    };
    PREFIXES.iter().find_map(tail).unwrap_or(text)
}

/// `b{bias}`, or nothing.
struct Bias(Option<i32>);

impl fmt::Display for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |bias| write!(f, "b{bias}"))
    }
}

/// Shapes whose bare name means the MX element without special values.
fn is_mx_shape(sign: Sign, exp_bits: u32, man_bits: u32) -> bool {
    sign == Sign::Magnitude && matches!((exp_bits, man_bits), (3, 2) | (2, 3) | (2, 1))
}

/// The shape whose bare name, with or without `u`, means the MX scale.
fn is_scale_shape(exp_bits: u32, man_bits: u32) -> bool {
    (exp_bits, man_bits) == (8, 0)
}

fn default_class(sign: Sign, exp_bits: u32, man_bits: u32) -> Specials {
    if sign == Sign::Unsigned || (exp_bits, man_bits) == (4, 3) {
        Specials::Fn
    } else if exp_bits == 0 || man_bits == 0 || is_mx_shape(sign, exp_bits, man_bits) {
        Specials::Finite
    } else {
        Specials::Ieee
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name().as_str())
    }
}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = without_prefix(text);
        let canonical = ALIASES
            .iter()
            .find(|alias| alias.name.eq_ignore_ascii_case(bare))
            .map_or(text, |alias| alias.canonical);
        if let Some((_, format)) =
            NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(canonical))
        {
            return Ok(*format);
        }
        let parsed = NameReader(text).p3109().or_else(|| NameReader(text).gfloat());
        let parsed = parsed.or_else(|| NameReader(text).int());
        match parsed.or_else(|| NameReader(text).shape()) {
            Some(Ok(format)) => Ok(format),
            Some(Err(reason)) => {
                Err(ParseFormatError::Impossible { given: Short::new(text), reason })
            }
            None if CLASHES.iter().any(|alias| alias.name.eq_ignore_ascii_case(text)) => {
                Err(ParseFormatError::Ambiguous { given: Short::new(text) })
            }
            None => {
                if let Some(meant) = bias_before_class(text) {
                    let given = Short::new(text);
                    return Err(ParseFormatError::Misplaced { given, meant });
                }
                let block = BLOCKS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                if let Some((_, element)) = block {
                    return Err(ParseFormatError::Block { given: Short::new(text), element });
                }
                let names = NAMED.iter().map(|(name, _)| *name);
                let names = names.chain(["e8m3", "e8m5", "binary8p3se", "binary8p4se"]);
                let names = names.chain(ALIASES.iter().map(|alias| alias.name));
                Err(ParseFormatError::Unknown(UnknownName::new(
                    "number format",
                    text,
                    names,
                    FORMS,
                )))
            }
        }
    }
}

/// The canonical name of a format whose bias was written behind its class, as in `e4m3fnb11`.
fn bias_before_class(text: &str) -> Option<Short> {
    let digits = |tail: &str| tail.bytes().take_while(u8::is_ascii_digit).count();
    // A `b` before a number, unlike that of `-nosub`.
    let (at, len) = text.rmatch_indices(['b', 'B']).find_map(|(at, _)| {
        let tail = &text[at + 1..];
        let sign = usize::from(tail.starts_with('-'));
        let count = digits(&tail[sign..]);
        (count > 0).then_some((at, 1 + sign + count))
    })?;
    let (head, tail) = text.split_at(at);
    let (bias, rest) = tail.split_at(len);
    let letters = ['u', 'U', 'e', 'E', 'm', 'M'];
    let fields = head.trim_start_matches(letters);
    let fields = fields.trim_start_matches(|c: char| c.is_ascii_digit() || letters.contains(&c));
    let (shape, class) = head.split_at(head.len() - fields.len());
    let moved = Short::of(format_args!("{shape}{bias}{class}{rest}"));
    Some(NameReader(moved.as_str()).shape()?.ok()?.name())
}

/// What is left to read. Each form returns `None` where the text is not of that form.
struct NameReader<'a>(&'a str);

type Parsed = Option<Result<Format, FormatError>>;

impl NameReader<'_> {
    /// Consumes `word`, whatever its case.
    fn word(&mut self, word: &str) -> Option<()> {
        let head = self.0.get(..word.len())?;
        head.eq_ignore_ascii_case(word).then(|| self.0 = &self.0[word.len()..])
    }

    /// Consumes a number of one to seven digits without a leading zero.
    fn number(&mut self) -> Option<u32> {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(len);
        if len == 0 || len > 7 || (len > 1 && digits.starts_with('0')) {
            return None;
        }
        self.0 = rest;
        digits.parse().ok()
    }

    /// Consumes `b` and a signed number if they come next.
    fn bias(&mut self) -> Option<Option<i32>> {
        if self.word("b").is_none() {
            return Some(None);
        }
        let negative = self.word("-").is_some();
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(len);
        if len == 0 || (len > 1 && digits.starts_with('0')) {
            return None;
        }
        self.0 = rest;
        // What no `i32` holds is out of range as its largest is.
        let bias = digits.parse().unwrap_or(i32::MAX);
        Some(Some(if negative { -bias } else { bias }))
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn p3109(mut self) -> Parsed {
        self.word("binary")?;
        let k = self.number()?;
        self.word("p")?;
        let p = self.number()?;
        let signed = self.word("s").is_some();
        if !signed {
            self.word("u")?;
        }
        let infinite = self.word("e").is_some();
        if !infinite {
            self.word("f")?;
        }
        self.end()?;
        Some(Format::p3109(k, p, signed, infinite))
    }

    /// gfloat's `p3109_k8p3es`: the letters the other way round.
    fn gfloat(mut self) -> Parsed {
        self.word("p3109_k")?;
        let k = self.number()?;
        self.word("p")?;
        let p = self.number()?;
        let infinite = self.word("e").is_some();
        if !infinite {
            self.word("f")?;
        }
        let signed = self.word("s").is_some();
        if !signed {
            self.word("u")?;
        }
        self.end()?;
        Some(Format::p3109(k, p, signed, infinite))
    }

    fn int(mut self) -> Parsed {
        self.word("int")?;
        let bits = self.number()?;
        let bias = self.bias()?;
        self.end()?;
        let builder = Format::builder(Sign::TwosComplement, 0, bits.saturating_sub(1));
        Some(builder.bias(bias.unwrap_or(0)).build())
    }

    fn shape(mut self) -> Parsed {
        let sign = if self.word("u").is_some() { Sign::Unsigned } else { Sign::Magnitude };
        self.word("e")?;
        let exp_bits = self.number()?;
        self.word("m")?;
        let man_bits = self.number()?;
        let bias = self.bias()?;
        // Longer words first: `fn` begins `fnuz` and `fnan`.
        let classes = [
            ("-ieee", Specials::Ieee),
            ("ieee", Specials::Ieee),
            ("fnuz", Specials::Fnuz),
            ("fnan", Specials::Fn),
            ("fn", Specials::Fn),
            ("finite", Specials::Finite),
            ("p3109e", Specials::P3109 { infinite: true }),
            ("p3109f", Specials::P3109 { infinite: false }),
        ];
        let class = classes.into_iter().find(|(word, _)| self.word(word).is_some());
        let specials = match class {
            None => default_class(sign, exp_bits, man_bits),
            Some(("fn", _)) if is_mx_shape(sign, exp_bits, man_bits) => Specials::Finite,
            Some((_, specials)) => specials,
        };
        let subnormals = self.word("-nosub").is_none();
        let zero = self.word("-nozero").is_none();
        let one_zero = self.word("-onezero").is_some();
        self.end()?;
        let mut builder = Format::builder(sign, exp_bits, man_bits)
            .specials(specials)
            .subnormals(subnormals && zero)
            .zero(zero);
        if let Some(bias) = bias {
            builder = builder.bias(bias);
        }
        if one_zero {
            builder = builder.negative_zero(false);
        }
        Some(builder.build())
    }
}
