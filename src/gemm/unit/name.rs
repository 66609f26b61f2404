//! The textual form of units: `PRESET[,KEY=VALUE...]:A[,B][+RESULT]`.
//!
//! The right operand is left out where it is as the left one, the result where it is f32, and of
//! the parameters those that are the preset's. `hopper:e4m3`, `hopper:e4m3,e5m2+f16`,
//! `hopper,promote=128:e4m3`, `custom,l=8,f=24,floor=none:e5m3`, `blackwell:nvfp4`.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use super::Unit;
use super::error::UnitError;
use super::input::Input;
use super::parameters::Cut;
use super::parameters::{Beyond, MOST_FRACTION, Nan, Parameters, StepOrder, Underflow, UnitFlush};
use super::preset::{FACTS, Preset};
use crate::format::Format;
use crate::round::{Flush, Operands};
use crate::text::{Short, UnknownName};

const ORDERS: [(&str, StepOrder); 8] = [
    ("fused", StepOrder::Fused),
    ("quarters", StepOrder::Quarters),
    ("late", StepOrder::Late),
    ("halves", StepOrder::Halves),
    ("groups", StepOrder::Groups),
    ("tree", StepOrder::Tree),
    ("fma", StepOrder::Fma),
    ("even-odd", StepOrder::EvenOdd),
];

const CUTS: [(&str, Cut); 4] =
    [("rz", Cut::Truncate), ("rd", Cut::Floor), ("sticky", Cut::Sticky), ("exact", Cut::Exact)];

/// What both `flush` and `subnormals` are at some devices.
const DEVICES: [(&str, (UnitFlush, Operands)); 3] = [
    ("none", (UnitFlush::As(Flush::None), Operands::Exact)),
    ("cdna2", (UnitFlush::As(Flush::Output), Operands::PositiveZero)),
    ("amx", (UnitFlush::Tiny, Operands::Zero)),
];

const PRODUCTS: [(&str, bool); 2] = [("raw", false), ("normal", true)];

const UNDERFLOWS: [(&str, Underflow); 2] =
    [("positive", Underflow::Positive), ("signed", Underflow::Signed)];

const BEYOND: [(&str, Beyond); 2] = [("saturate", Beyond::Saturate), ("wrap", Beyond::Wrap)];

const NANS: [(&str, Nan); 3] = [("ones", Nan::Ones), ("quiet", Nan::Quiet), ("x86", Nan::X86)];

const FRACTIONS: &str =
    "0 to 50, as aligned terms are added in 64 bits; with align=exact no digit is cut";

/// [`KEYS`] as errors list them, after others, with what stands between a key and its value.
macro_rules! key_list {
    ($before:literal, $equals:literal) => {
        concat!(
            $before,
            "order, l, f, product, align, floor, zeros, f2, align2, reach, limit, group, out, overflow, \
             underflow, flush, subnormals, nan, promote, each as KEY",
            $equals,
            "VALUE"
        )
    };
}
pub(super) use key_list;

/// Keys, what each may be, in the order they print in.
pub(super) const KEYS: [(&str, &str); 19] = [
    ("order", "fused, quarters, late, halves, groups, tree, fma or even-odd"),
    ("l", "1 to 256"),
    ("f", FRACTIONS),
    ("product", "raw or normal"),
    ("align", "rz, rd, sticky or exact"),
    ("floor", "a number from -2000 to 2000, or none"),
    ("zeros", "a number from -2000 to 2000, or none"),
    ("f2", FRACTIONS),
    ("align2", "rz, rd or sticky"),
    ("reach", "0 to 2000, or none"),
    ("limit", "a number from -2000 to 2000, or none"),
    ("group", "1 to 256"),
    (
        "out",
        "FORMAT@MODE such as e8m13@rtz, the mode rne, rna, rnz, rtz, rup, rdn, raz, odd, or srN, srNa, srNb \
         or srNc with N from 1 to 32",
    ),
    ("overflow", "saturate or wrap"),
    ("underflow", "positive or signed"),
    (
        "flush",
        "flush-none, flush-input, flush-candidates, flush-output or flush-tiny; or subnormals= along with \
         it: none, cdna2 or amx",
    ),
    ("subnormals", "exact, zero or positive-zero"),
    ("nan", "ones, quiet or x86"),
    ("promote", "1 to 1048576, or none"),
];

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = FACTS.iter().find(|facts| facts.name.eq_ignore_ascii_case(text));
        found.map(|facts| facts.preset).ok_or_else(|| {
            let names = FACTS.iter().map(|facts| facts.name);
            UnknownName::new(
                "matrix unit",
                text,
                names,
                "volta, turing, ampere, ada, hopper, hopper-mma, blackwell, blackwell-mxf8f6f4, cdna1, \
                 cdna1-tree, cdna2, cdna2-bf16, cdna3, amx, fast, custom",
            )
        })
    }
}

/// A unit without its operands: a preset and the parameters that are set apart from it.
///
/// ```
/// use exmy::format::Format;
/// use exmy::gemm::unit::Model;
///
/// let model: Model = "hopper,promote=128".parse()?;
/// let unit = model.unit(Format::E4M3FN, Format::E5M2, Format::F32)?;
/// assert_eq!(unit.to_string(), "hopper,promote=128:e4m3,e5m2");
/// # Ok::<(), exmy::gemm::unit::UnitError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    preset: Preset,
    settings: String,
}

/// Some parameters, on which settings are tried.
const SCRATCH: Parameters = Parameters::fused(16, 25, Format::F32);

/// What a setting sets.
fn key_of(setting: &str) -> &str {
    setting.split_once('=').map_or(setting, |(key, _)| key)
}

impl From<Preset> for Model {
    fn from(preset: Preset) -> Self {
        Self { preset, settings: String::new() }
    }
}

impl Model {
    /// The preset.
    pub const fn preset(&self) -> Preset {
        self.preset
    }

    /// The unit for certain operands.
    ///
    /// # Errors
    /// If it does not take them, or a parameter is impossible with them.
    pub fn unit(
        &self,
        a: impl Into<Input>,
        b: impl Into<Input>,
        result: Format,
    ) -> Result<Unit, UnitError> {
        let unit = Unit::unchecked(self.preset, a.into(), b.into(), result)?;
        let mut parameters = *unit.parameters();
        self.apply(&mut parameters)?;
        unit.with_parameters(parameters)
    }

    /// Whether it rounds by random words; no preset does by itself.
    pub fn is_stochastic(&self) -> bool {
        let mut scratch = SCRATCH;
        self.apply(&mut scratch).is_ok() && scratch.rounding.is_stochastic()
    }

    /// The settings, a `flush=` first: its words for both sides leave the other one to `subnormals=`,
    /// wherever that stands.
    fn apply(&self, parameters: &mut Parameters) -> Result<(), UnitError> {
        let settings = || self.settings.split(',').filter(|setting| !setting.is_empty());
        let is_flush = |setting: &&str| key_of(setting).eq_ignore_ascii_case("flush");
        let mut ordered = settings().filter(is_flush).chain(settings().filter(|s| !is_flush(s)));
        ordered.try_for_each(|setting| parameters.set(setting))
    }
}

impl FromStr for Model {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Some((model, _)) = text.split_once(':') {
            let (given, model) = (Short::new(text), Short::new(model));
            return Err(UnitError::WithOperands { given, model });
        }
        let (name, settings) = text.split_once(',').unwrap_or((text, ""));
        let preset: Preset = name.parse().map_err(UnitError::Unknown)?;
        let mut scratch = SCRATCH;
        let all = || settings.split(',').filter(|_| !settings.is_empty());
        for (at, setting) in all().enumerate() {
            scratch.set(setting)?;
            let key = key_of(setting);
            if all().take(at).any(|before| key_of(before).eq_ignore_ascii_case(key)) {
                return Err(UnitError::Twice(Short::new(key)));
            }
        }
        Ok(Self { preset, settings: settings.into() })
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.settings.is_empty() { "" } else { "," };
        write!(f, "{}{comma}{}", self.preset, self.settings)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.preset())?;
        let usual = self.preset().parameters(self.a(), self.b(), self.result());
        for (key, _) in KEYS {
            let value = self.parameters().get(key);
            if usual.is_none_or(|usual| usual.get(key).as_str() != value.as_str()) {
                write!(f, ",{key}={value}")?;
            }
        }
        write!(f, ":{}", self.formats())
    }
}

impl FromStr for Unit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let Some((model, operands)) = text.split_once(':') else {
            let _known: Model = text.parse()?;
            return Err(UnitError::NoOperands(Short::new(text)));
        };
        let model: Model = model.parse()?;
        let Formats { a, b, result } = operands.parse()?;
        model.unit(a, b, result)
    }
}

/// What enters and leaves a unit, as `A[,B][+RESULT]`: `e4m3`, `e4m3,e5m2+f16`, `e2m1/16:ue4m3`. The right
/// operand is left out where it is as the left one, the result where it is f32.
///
/// ```
/// use exmy::gemm::unit::Formats;
///
/// let formats: Formats = "mxfp8-e4m3,mxfp4+bf16".parse()?;
/// assert_eq!(formats.to_string(), "e4m3/32:e8m0,e2m1/32:e8m0+bf16");
/// # Ok::<(), exmy::gemm::unit::UnitError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Formats {
    /// The left operand.
    pub a: Input,
    /// The right operand.
    pub b: Input,
    /// Addend and result.
    pub result: Format,
}

impl fmt::Display for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.a)?;
        if self.b != self.a {
            write!(f, ",{}", self.b)?;
        }
        if self.result != Format::F32 {
            write!(f, "+{}", self.result)?;
        }
        Ok(())
    }
}

impl FromStr for Formats {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (operands, result) = result_of(text)?;
        let (a, b) = operands.split_once(',').unwrap_or((operands, operands));
        Ok(Self { a: a.parse()?, b: b.parse()?, result })
    }
}

/// What stands before `+RESULT`, and the result; a block format's `+tensor` is none.
fn result_of(text: &str) -> Result<(&str, Format), UnitError> {
    match text.rsplit_once('+') {
        Some((rest, word)) if !word.to_ascii_lowercase().starts_with("tensor") => {
            Ok((rest, word.parse().map_err(UnitError::Element)?))
        }
        _ => Ok((text, Format::F32)),
    }
}

/// What `out=int32@rtz` should have been.
const INTEGERS: &str = "intW alone is MX's, in steps of 2^(2-W) from -2 to 2; integers of W bits are \
     intWb(2-W), as int32b-30@rtz, int24b-22@rtz and int8b-6@rtz, and MX's is intWb0@rtz here";

/// Whether a format is an integer without a place for its point: `int32`, with or without a mode behind it.
fn is_bare_integer(text: &str) -> bool {
    let format = text.split('@').next().unwrap_or_default().to_ascii_lowercase();
    format.strip_prefix("int").is_some_and(|bits| bits.parse::<u32>().is_ok())
}

/// The name of a value in a table.
fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> Short {
    Short::new(table.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name))
}

fn optional<T: alloc::string::ToString>(value: Option<T>) -> Short {
    Short::new(&value.map_or("none".into(), |value| value.to_string()))
}

fn number<T: alloc::string::ToString>(value: T) -> Short {
    optional(Some(value))
}

impl Parameters {
    /// A parameter's value as text.
    fn get(&self, key: &str) -> Short {
        match key {
            "order" => name_of(&ORDERS, &self.order),
            "l" => number(self.products),
            "f" => number(self.fraction),
            "product" => name_of(&PRODUCTS, &self.normalize),
            "align" => name_of(&CUTS, &self.cut),
            "floor" => optional(self.floor),
            "zeros" => optional(self.zeros),
            "f2" => number(self.late_fraction),
            "align2" => name_of(&CUTS, &self.late_cut),
            "reach" => optional(self.reach),
            "limit" => optional(self.limit),
            "group" => number(self.group),
            "out" => {
                let output = self.output.to_string();
                let bias = if is_bare_integer(&output) { "b0" } else { "" };
                Short::new(&alloc::format!("{output}{bias}@{}", self.rounding))
            }
            "overflow" => name_of(&BEYOND, &self.beyond),
            "underflow" => name_of(&UNDERFLOWS, &self.underflow),
            "flush" => match self.flush {
                UnitFlush::As(flush) => Short::new(&flush.to_string()),
                UnitFlush::Tiny => Short::new("flush-tiny"),
            },
            "subnormals" => Short::new(&self.operands.to_string()),
            "nan" => name_of(&NANS, &self.nan),
            _ => optional(self.promote),
        }
    }

    /// Sets one parameter from `KEY=VALUE`.
    ///
    /// ```
    /// use exmy::gemm::unit::Unit;
    ///
    /// let unit: Unit = "ampere:f16".parse()?;
    /// let mut parameters = *unit.parameters();
    /// parameters.set("floor=none")?;
    /// assert_eq!(unit.with_parameters(parameters)?.to_string(), "ampere,floor=none:f16");
    /// assert!(parameters.set("l=0").unwrap_err().to_string().contains("1 to 256"));
    /// # Ok::<(), exmy::gemm::unit::UnitError>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such key, or the value is impossible for it.
    pub fn set(&mut self, setting: &str) -> Result<(), UnitError> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let Some((key, possible)) = KEYS.iter().find(|(name, _)| name.eq_ignore_ascii_case(key))
        else {
            let names = KEYS.iter().map(|(name, _)| *name);
            return Err(UnitError::Unknown(UnknownName::new(
                "parameter of a matrix unit",
                key,
                names,
                key_list!("", "="),
            )));
        };
        let wrong = |possible| UnitError::Value { key, given: Short::new(value), possible };
        if *key == "out" && is_bare_integer(value) {
            return Err(wrong(INTEGERS));
        }
        self.assign(key, value).ok_or(wrong(possible))
    }

    fn assign(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "order" => self.order = named(&ORDERS, value)?,
            "l" => self.products = within(value, 1, 256)? as u32,
            "f" => self.fraction = within(value, 0, MOST_FRACTION.into())? as u32,
            "product" => self.normalize = named(&PRODUCTS, value)?,
            "align" => self.cut = named(&CUTS, value)?,
            "floor" => self.floor = maybe(value, -2000, 2000)?.map(|floor| floor as i32),
            "zeros" => self.zeros = maybe(value, -2000, 2000)?.map(|zeros| zeros as i32),
            "f2" => self.late_fraction = within(value, 0, MOST_FRACTION.into())? as u32,
            "align2" => self.late_cut = named(&CUTS[..3], value)?,
            "reach" => self.reach = maybe(value, 0, 2000)?.map(|reach| reach as u32),
            "limit" => self.limit = maybe(value, -2000, 2000)?.map(|limit| limit as i32),
            "group" => self.group = within(value, 1, 256)? as u32,
            "out" => {
                let (format, rounding) = value.split_once('@')?;
                (self.output, self.rounding) = (format.parse().ok()?, rounding.parse().ok()?);
            }
            "overflow" => self.beyond = named(&BEYOND, value)?,
            "underflow" => self.underflow = named(&UNDERFLOWS, value)?,
            "flush" => match named(&DEVICES, value) {
                Some((flush, operands)) => (self.flush, self.operands) = (flush, operands),
                None if value.eq_ignore_ascii_case("flush-tiny") => self.flush = UnitFlush::Tiny,
                None => self.flush = UnitFlush::As(value.parse().ok()?),
            },
            "subnormals" => {
                let read = value.parse().ok().filter(|read| *read != Operands::Away);
                self.operands = read?;
            }
            "nan" => self.nan = named(&NANS, value)?,
            _ => self.promote = maybe(value, 1, 1 << 20)?.map(|every| every as u32),
        }
        Some(())
    }
}

fn named<T: Copy>(table: &[(&'static str, T)], value: &str) -> Option<T> {
    let found = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    found.map(|(_, value)| *value)
}

fn within(value: &str, least: i64, most: i64) -> Option<i64> {
    value.parse().ok().filter(|number| (least..=most).contains(number))
}

/// A number in bounds, or `none`.
fn maybe(value: &str, least: i64, most: i64) -> Option<Option<i64>> {
    if value.eq_ignore_ascii_case("none") {
        return Some(None);
    }
    within(value, least, most).map(Some)
}
