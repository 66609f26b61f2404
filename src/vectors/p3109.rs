//! What of P3109 is here: every operation of the IEEE P3109 Interim Report 4.0 (Annex G), the call that
//! is it, and the tests that hold it.
//!
//! The report defines every operation as correctly rounded. An implementation that is not so declares κ,
//! by how many values its results may differ (clause 4.4); here κ is 0 for all. [`kappa`] answers for a
//! specialization that is written as the report writes it (clause 4.6 recommends that users can ask).
//!
//! ```
//! use exmy::vectors::p3109::kappa;
//!
//! assert_eq!(kappa("Exp<Binary8p3se, Binary8p4se, (NearestTiesToEven, SatFinite)>")?, 0);
//! assert!(kappa("Exp<Binary8p3se, (NearestTiesToEven, SatFinite)>").is_err()); // two formats are needed
//! # Ok::<(), exmy::error::Error>(())
//! ```

use crate::block::operations::{Block, elementwise};
use crate::error::Error;
use crate::format::Format;
use crate::math::elementary::Function;
use crate::math::{Context, Operand};
use crate::round::{Overflow, Profile, Rounding, StochasticVariant};

/// What an operation is applied to, which decides what its angle brackets hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signature {
    /// `<f>`: of a format, or of one operand with a result that is none of a format.
    Format,
    /// `<fx, fy>`: a truth about two operands.
    Truth,
    /// `<f..., fr, ρ>`: of so many operands, rounded into a format.
    Rounded(usize),
    /// `<B, fs, fx, fr, ρ>`: of a block's values.
    FromBlock,
    /// `<B, fx, fs, fr, ρ>` and, with a rule for the scale, `<B, fx, fs, fr, ρs, ρ>`.
    ToBlock,
    /// `<B, (fs, fx)..., fs, fr, ρ>`: of so many blocks, a block.
    Blocks(usize),
    /// `<B, fs, fx, fr, ρ>`: of a block, a number.
    Reduction,
    /// `<B, fsx, fx, fsy, fy, fr, ρ>`.
    Dot,
    /// `<(fs, fx)..., fr, ρ>`: of so many scaled operands, a number.
    Scaled(usize),
}

/// An operation of the report.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The report's name.
    pub name: &'static str,
    /// Its group in Annex G: A, KA, M, B, KB, C, KC or E; "5.5" for scaled operations.
    pub group: &'static str,
    /// What its angle brackets hold.
    pub signature: Signature,
    /// The call that is it.
    pub call: &'static str,
    /// Where it is tested: folders and files of `tests`.
    pub tests: &'static str,
}

const fn row(
    group: &'static str,
    name: &'static str,
    signature: Signature,
    call: &'static str,
    tests: &'static str,
) -> Row {
    Row { name, group, signature, call, tests }
}

use Signature::{Blocks, Dot, FromBlock, Reduction, Rounded, Scaled, ToBlock, Truth};

const PAIRS: &str = "arithmetic/pairs, arithmetic/tables";
const TRIPLES: &str = "arithmetic/triples, arithmetic/tables";
const TABLES: &str = "arithmetic/tables";
const UNARY: &str = "arithmetic/unary, arithmetic/tables";
const ELEMENTARY: &str = "elementary/small, elementary/sixteen, elementary/special";
const BLOCKS: &str = "blocks_rules/operations";
const FORMATS: &str = "formats/p3109";

/// All operations that the report lists by name. Those on blocks apply what [`elementwise`] is given; each of
/// the others stands once.
pub const OPERATIONS: &[Row] = &[
    row("A", "Convert", Rounded(1), "Context::convert", "formats/conversions, formats/rounding"),
    row("A", "Negate", Rounded(1), "Context::neg", UNARY),
    row("A", "Abs", Rounded(1), "Context::abs", UNARY),
    row("A", "Add", Rounded(2), "Context::add", PAIRS),
    row("A", "Subtract", Rounded(2), "Context::sub", PAIRS),
    row("A", "Multiply", Rounded(2), "Context::mul", PAIRS),
    row("A", "FMA", Rounded(3), "Context::fma", TRIPLES),
    row("A", "FAA", Rounded(3), "Context::faa", TRIPLES),
    row("A", "Minimum", Rounded(2), "Context::minimum", TABLES),
    row("A", "Maximum", Rounded(2), "Context::maximum", TABLES),
    row("A", "MinimumNumber", Rounded(2), "Context::minimum_number", TABLES),
    row("A", "MaximumNumber", Rounded(2), "Context::maximum_number", TABLES),
    row("A", "MinimumMagnitude", Rounded(2), "Context::minimum_magnitude", TABLES),
    row("A", "MaximumMagnitude", Rounded(2), "Context::maximum_magnitude", TABLES),
    row("A", "MinimumMagnitudeNumber", Rounded(2), "Context::minimum_magnitude_number", TABLES),
    row("A", "MaximumMagnitudeNumber", Rounded(2), "Context::maximum_magnitude_number", TABLES),
    row("A", "MinimumFinite", Rounded(2), "Context::minimum_finite", TABLES),
    row("A", "MaximumFinite", Rounded(2), "Context::maximum_finite", TABLES),
    row("A", "Clamp", Rounded(3), "Context::clamp", TABLES),
    row("A", "CompareLess", Truth, "Operand::compare", TABLES),
    row("A", "CompareLessEqual", Truth, "Operand::compare", TABLES),
    row("A", "CompareEqual", Truth, "Operand::compare", TABLES),
    row("A", "CompareGreater", Truth, "Operand::compare", TABLES),
    row("A", "CompareGreaterEqual", Truth, "Operand::compare", TABLES),
    row("A", "IsZero", Signature::Format, "Operand::is_zero", UNARY),
    row("A", "IsOne", Signature::Format, "Operand::is_one", UNARY),
    row("A", "IsNaN", Signature::Format, "Operand::is_nan", UNARY),
    row("A", "IsInfinite", Signature::Format, "Operand::is_infinite", UNARY),
    row("A", "IsFinite", Signature::Format, "Operand::is_finite", UNARY),
    row("A", "IsSignMinus", Signature::Format, "Operand::is_sign_minus", UNARY),
    row("A", "IsNormal", Signature::Format, "Operand::is_normal", UNARY),
    row("A", "IsSubnormal", Signature::Format, "Operand::is_subnormal", UNARY),
    row("KA", "ConvertFromBlock", FromBlock, "elementwise, convert, result scale 1", BLOCKS),
    row("KA", "ConvertToBlock", ToBlock, "elementwise, convert, block scale 1", BLOCKS),
    row(
        "KA",
        "ConvertToBlockMaxAbsFinite",
        ToBlock,
        "max_abs_finite; matrices: rule max-abs",
        "blocks_rules/operations, blocks_rules/p3109",
    ),
    row("M", "BitwidthOf", Signature::Format, "Format::bits", FORMATS),
    row("M", "PrecisionOf", Signature::Format, "Format::precision", FORMATS),
    row("M", "SignednessOf", Signature::Format, "Format::is_signed", FORMATS),
    row("M", "DomainOf", Signature::Format, "Format::has_infinity", FORMATS),
    row("M", "ExponentBitwidthOf", Signature::Format, "Format::exp_bits", FORMATS),
    row("M", "TrailingSignificandBitwidthOf", Signature::Format, "Format::man_bits", FORMATS),
    row("M", "ExponentBiasOf", Signature::Format, "Format::bias", FORMATS),
    row("M", "MaxFiniteOf", Signature::Format, "Format::max", FORMATS),
    row("M", "MinFiniteOf", Signature::Format, "Format::min", FORMATS),
    row("M", "MinPositiveOf", Signature::Format, "Format::min_positive", FORMATS),
    row("M", "MaxSubnormalOf", Signature::Format, "Format::max_subnormal", FORMATS),
    row("M", "MinNormalOf", Signature::Format, "Format::min_normal", FORMATS),
    row("B", "Divide", Rounded(2), "Context::div", PAIRS),
    row("B", "Sqrt", Rounded(1), "Context::sqrt", UNARY),
    row("B", "Recip", Rounded(1), "Context::recip", UNARY),
    row("B", "RSqrt", Rounded(1), "Context::rsqrt", UNARY),
    row("B", "Exp", Rounded(1), "Context::exp", ELEMENTARY),
    row("B", "Exp2", Rounded(1), "Context::exp2", ELEMENTARY),
    row("B", "ExpMinusOne", Rounded(1), "Context::expm1", ELEMENTARY),
    row("B", "Log", Rounded(1), "Context::log", ELEMENTARY),
    row("B", "Log2", Rounded(1), "Context::log2", ELEMENTARY),
    row("B", "LogOnePlus", Rounded(1), "Context::log1p", ELEMENTARY),
    row("B", "Softplus", Rounded(1), "Context::softplus", ELEMENTARY),
    row("B", "NextGreaterThan", Signature::Format, "Context::next_up", UNARY),
    row("B", "NextLessThan", Signature::Format, "Context::next_down", UNARY),
    row("B", "CopySign", Rounded(2), "Context::copysign", PAIRS),
    row("B", "TotalOrder", Truth, "Operand::total_cmp", TABLES),
    row("B", "Class", Signature::Format, "Operand::class", UNARY),
    row("C", "Hypot", Rounded(2), "Context::hypot", PAIRS),
    row("C", "ArcTan2", Rounded(2), "Context::atan2", "elementary/pairs, elementary/special"),
    row("C", "ArcTan2Pi", Rounded(2), "Context::atan2_pi", "elementary/pairs, elementary/special"),
    row("C", "Sin", Rounded(1), "Context::sin", ELEMENTARY),
    row("C", "Cos", Rounded(1), "Context::cos", ELEMENTARY),
    row("C", "Tan", Rounded(1), "Context::tan", ELEMENTARY),
    row("C", "ArcSin", Rounded(1), "Context::asin", ELEMENTARY),
    row("C", "ArcCos", Rounded(1), "Context::acos", ELEMENTARY),
    row("C", "ArcTan", Rounded(1), "Context::atan", ELEMENTARY),
    row("C", "Sinh", Rounded(1), "Context::sinh", ELEMENTARY),
    row("C", "Cosh", Rounded(1), "Context::cosh", ELEMENTARY),
    row("C", "Tanh", Rounded(1), "Context::tanh", ELEMENTARY),
    row("C", "ArcSinh", Rounded(1), "Context::asinh", ELEMENTARY),
    row("C", "ArcCosh", Rounded(1), "Context::acosh", ELEMENTARY),
    row("C", "ArcTanh", Rounded(1), "Context::atanh", ELEMENTARY),
    row("C", "SinPi", Rounded(1), "Context::sin_pi", ELEMENTARY),
    row("C", "CosPi", Rounded(1), "Context::cos_pi", ELEMENTARY),
    row("C", "TanPi", Rounded(1), "Context::tan_pi", ELEMENTARY),
    row("C", "ArcSinPi", Rounded(1), "Context::asin_pi", ELEMENTARY),
    row("C", "ArcCosPi", Rounded(1), "Context::acos_pi", ELEMENTARY),
    row("C", "ArcTanPi", Rounded(1), "Context::atan_pi", ELEMENTARY),
    row("E", "BlockReduceAdd", Reduction, "block::operations::sum", BLOCKS),
    row("E", "BlockReduceMultiply", Reduction, "block::operations::product", BLOCKS),
    row("E", "BlockDotProduct", Dot, "block::operations::dot", BLOCKS),
];

/// The operation of that name. `Block` or `Scaled` before one that is rounded makes it one of blocks or of
/// scaled operands.
///
/// ```
/// use exmy::vectors::p3109::{Signature, operation};
///
/// assert_eq!(operation("BlockFMA").unwrap().signature, Signature::Blocks(3));
/// assert!(operation("BlockTotalOrder").is_none());
/// ```
pub fn operation(name: &str) -> Option<Row> {
    let find = |name: &str| OPERATIONS.iter().find(|row| row.name == name).copied();
    let rounded = |prefix: &str| {
        let row = name.strip_prefix(prefix).and_then(find)?;
        let Rounded(operands) = row.signature else { return None };
        Some((row, operands))
    };
    if let Some(row) = find(name) {
        return Some(row);
    }
    if let Some((row, operands)) = rounded("Block") {
        let group = match row.group {
            "A" => "KA",
            "B" => "KB",
            _ => "KC",
        };
        return Some(Row { group, signature: Blocks(operands), tests: BLOCKS, ..row });
    }
    let (row, operands) = rounded("Scaled")?;
    Some(Row { group: "5.5", signature: Scaled(operands), tests: BLOCKS, ..row })
}

/// The formats of a list, with or without parentheses around those of a block.
fn formats(parts: &[&str]) -> Result<Vec<Format>, Error> {
    let parse = |part: &&str| {
        let name = part.trim().trim_matches(['(', ')']).trim().to_ascii_lowercase();
        name.parse::<Format>().map_err(|error| {
            Error::new(format!("{name:?} is no format"))
                .because(error)
                .hint("formats are written as Binary8p3se, binary32, binary16, BFloat16")
        })
    };
    parts.iter().map(parse).collect()
}

/// `(NearestTiesToEven, SatFinite)`.
fn projection(text: &str) -> Result<(Rounding, Overflow), Error> {
    let wrong = || {
        Error::new(format!("{text:?} is no projection"))
            .hint(
            "one is (NearestTiesToEven, SatNone); the others are NearestTiesToAway, TowardZero, \
             TowardPositive, TowardNegative, ToOdd, StochasticA(N) to StochasticC(N), and SatFinite, \
             SatPropagate",
        )
    };
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).ok_or_else(wrong)?;
    let (mode, policy) = inner.rsplit_once(',').ok_or_else(wrong)?;
    let policy = match policy.trim() {
        "SatNone" => Overflow::None,
        "SatFinite" => Overflow::Finite,
        "SatPropagate" => Overflow::Propagate,
        _ => return Err(wrong()),
    };
    let mode = match mode.trim() {
        "NearestTiesToEven" => Rounding::TiesToEven,
        "NearestTiesToAway" => Rounding::TiesToAway,
        "TowardZero" => Rounding::TowardZero,
        "TowardPositive" => Rounding::TowardPositive,
        "TowardNegative" => Rounding::TowardNegative,
        "ToOdd" => Rounding::ToOdd,
        other => {
            let rest = other.strip_prefix("Stochastic").ok_or_else(wrong)?;
            let (variant, bits) = rest.split_at_checked(1).ok_or_else(wrong)?;
            let variant = match variant {
                "A" => StochasticVariant::A,
                "B" => StochasticVariant::B,
                "C" => StochasticVariant::C,
                _ => return Err(wrong()),
            };
            let bits: u8 = bits.trim_matches(['(', ')']).parse().map_err(|_| wrong())?;
            if !(1..=32).contains(&bits) {
                return Err(wrong().hint("random bits are 1 to 32"));
            }
            Rounding::Stochastic { variant, bits }
        }
    };
    Ok((mode, policy))
}

/// The parts of a list, whose commas inside parentheses separate nothing.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// κ of a specialization: by how many values its results may differ from the defined ones. It is 0 wherever
/// there is an operation.
///
/// # Errors
/// If there is no such operation or format, if the brackets hold something else than it has, or if it is not
/// provided; the message says which.
pub fn kappa(specialization: &str) -> Result<u64, Error> {
    let text = specialization.trim();
    let (name, inner) = text
        .split_once('<')
        .and_then(|(name, rest)| Some((name.trim(), rest.trim().strip_suffix('>')?)))
        .ok_or_else(|| {
            Error::new(format!("{text:?} is no specialization")).hint(
                "one is Add<Binary8p3se, Binary8p4se, binary32, (NearestTiesToEven, SatNone)>",
            )
        })?;
    let row = operation(name).ok_or_else(|| {
        Error::new(format!("P3109 has no operation {name:?}"))
            .hint("exmy conformance p3109 lists all of them")
    })?;
    let mut parts = split(inner);
    let needs = |what: &str| Error::new(format!("{name} is written {name}<{what}>"));
    let rounds = !matches!(row.signature, Signature::Format | Truth);
    let rule = match rounds {
        false => None,
        true => Some(projection(parts.pop().unwrap_or(""))?),
    };
    if matches!(row.signature, ToBlock) && name.ends_with("MaxAbsFinite") {
        let own = parts.pop().ok_or_else(|| needs("B, fx, fs, fr, ρs, ρ"))?;
        projection(own)?;
    }
    if !matches!(row.signature, Signature::Format | Truth | Rounded(_) | Scaled(_)) {
        let size = parts.first().and_then(|size| size.parse::<usize>().ok());
        if size.is_none_or(|size| size == 0) {
            return Err(needs("B, ...").hint("B is how many elements a block has, 1 or more"));
        }
        parts.remove(0);
    }
    let parts: Vec<&str> = parts.iter().flat_map(|part| part.split(',')).collect();
    let formats = formats(&parts)?;
    let wanted = match row.signature {
        Signature::Format => 1,
        Truth => 2,
        Rounded(operands) => operands + 1,
        FromBlock | ToBlock | Reduction => 3,
        Blocks(operands) => 2 * operands + 2,
        Dot => 5,
        Scaled(operands) => 2 * operands + 1,
    };
    if formats.len() != wanted {
        let found = formats.len();
        return Err(Error::new(format!("{name} is of {wanted} formats, not {found}")));
    }
    let context = |to: Format| {
        let (rounding, overflow) = rule.unwrap_or_default();
        Context::new(to, Profile::P3109.rules(to).with_rounding(rounding).with_overflow(overflow))
    };
    let refused = |why: String| Error::new(format!("{text} is not provided: {why}"));
    if let Rounded(_) = row.signature
        && let Some(function) = Function::ALL.into_iter().find(|own| is_call(row.call, *own))
    {
        function.supports(formats[0]).map_err(|why| refused(why.to_string()))?;
    }
    // What cannot be rounded once is refused for blocks of no elements, too.
    let block = |scale: Format, element: Format| Block::new(Operand::new(scale, 3), element, &[]);
    let checked = match (row.signature, &formats[..]) {
        (FromBlock, [fs, fx, fr]) => {
            let one = Operand::f32(1.0);
            elementwise([block(*fs, *fx)], one, context(*fr), &[], |to, [x]| Ok(to.convert(x)))
        }
        (ToBlock, [fx, fs, fr]) => {
            let x = Block::new(Operand::f32(1.0), *fx, &[]);
            elementwise([x], Operand::new(*fs, 3), context(*fr), &[], |to, [x]| Ok(to.convert(x)))
        }
        (Blocks(_), [pairs @ .., fs, fr]) => pairs.chunks(2).try_fold(Vec::new(), |_, pair| {
            let (x, scale) = (block(pair[0], pair[1]), Operand::new(*fs, 3));
            elementwise([x], scale, context(*fr), &[], |to, [x]| Ok(to.convert(x)))
        }),
        (Scaled(_), [pairs @ .., fr]) => pairs.chunks(2).try_fold(Vec::new(), |_, pair| {
            let x = block(pair[0], pair[1]);
            elementwise([x], Operand::f32(1.0), context(*fr), &[], |to, [x]| Ok(to.convert(x)))
        }),
        _ => Ok(Vec::new()),
    };
    checked.map(|_| 0).map_err(|why| refused(why.to_string()))
}

/// Whether a call is that of an elementary function: `Context::exp` of `exp`.
fn is_call(call: &str, function: Function) -> bool {
    call.strip_prefix("Context::").is_some_and(|name| name == function.to_string())
}
