//! Arithmetic on blocks, as P3109 defines it (IEEE P3109 Interim Report 4.0, clause 5): a [`Block`] is a
//! scale and elements of one format, whose values are their products.
//!
//! An operation computes with those values exactly and rounds once. [`elementwise`] makes BlockOp of
//! every Op that [`Context`] has (Add, FMA, Exp, ...): results are divided by the result's scale, which
//! is given, and become elements. [`Context::convert`] of a block whose scale is 1 is ConvertToBlock, and
//! with a result scale of 1 ConvertFromBlock. Any operation of single elements with a result scale of 1
//! is a scaled operation (ScaledAdd, ...). [`sum`], [`product`] and [`dot`] are BlockReduceAdd,
//! BlockReduceMultiply and BlockDotProduct. [`max_abs_finite`] finds the scale of
//! ConvertToBlockMaxAbsFinite.
//!
//! ```
//! use exmy::block::operations::{Block, dot, elementwise};
//! use exmy::format::Format;
//! use exmy::math::{Context, Operand};
//! use exmy::round::Profile;
//!
//! let (power, element) = (Format::p3109(8, 1, false, false)?, Format::p3109(8, 4, true, true)?);
//! let one = Operand::new(power, power.one_code().unwrap());
//! let two = Operand::new(power, one.code + 1);
//! let to = Context::new(element, Profile::P3109.rules(element));
//! // 1, 2 and 4 under a scale of 2, and the same under a scale of 1.
//! let codes = [1.0, 2.0, 4.0].map(|x| to.convert(Operand::f32(x)).code);
//! let (x, y) = (Block::new(two, element, &codes), Block::new(one, element, &codes));
//! let sums = elementwise([x, y], one, to, &[], |to, [x, y]| Ok(to.add(x, y)))?;
//! let sums: Vec<f32> = sums.iter().map(|sum| element.to_f32(sum.code)).collect();
//! assert_eq!(sums, [3.0, 6.0, 12.0]);
//! let single = Context::new(Format::F32, Profile::P3109.rules(Format::F32));
//! assert_eq!(f32::from_bits(dot(x, y, single)?.code as u32), 42.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec::Vec;
use core::fmt;

use super::big::Big;
use crate::format::{Format, Sign, Value};
use crate::math::elementary::Unsupported;
use crate::math::{Context, Operand};
use crate::round::{Flags, Overflow, Rounded, Rounding, Rules, Standard};

/// A scale, and elements of one format: the numbers `scale * element`.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    scale: Operand,
    element: Format,
    codes: &'a [u64],
}

impl<'a> Block<'a> {
    /// The scale and the elements' codes; bits above the format's width are ignored.
    pub const fn new(scale: Operand, element: Format, codes: &'a [u64]) -> Self {
        Self { scale, element, codes }
    }

    /// How many elements there are.
    pub const fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The exact values of scale and element, which are to be multiplied.
    fn factors(&self, i: usize) -> [Value; 2] {
        [self.scale.value(), self.element.decode(self.codes[i])]
    }

    /// Whether every product of a scale and an element is a number of binary64.
    fn check(&self) -> Result<(), OperationError> {
        let (a, b) = (self.scale.format, self.element);
        let digits = a.precision() + b.precision();
        let fits = digits <= 53 && a.lsb() + b.lsb() >= -1074 && a.emax() + b.emax() <= 1021;
        if fits { Ok(()) } else { Err(OperationError::Wide { scale: a, element: b }) }
    }

    /// The product of the scale and an element.
    fn operand(&self, i: usize, rules: &Rules) -> Operand {
        let exact = Rules { operands: rules.operands, ..Rules::DEFAULT };
        let element = Operand::new(self.element, self.codes[i]);
        let code = Context::new(Format::F64, exact).mul(self.scale, element).code;
        // Extended reals have one zero.
        let zero = code == 1 << 63 && rules.standard == Standard::P3109;
        Operand::new(Format::F64, if zero { 0 } else { code })
    }
}

/// What is wrong with the operands of an operation on blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationError {
    /// Blocks of different lengths.
    Lengths {
        /// That of the first.
        first: usize,
        /// That of another.
        other: usize,
    },
    /// Stochastic rounding needs a random word for each element.
    Words {
        /// How many elements there are.
        elements: usize,
        /// How many words were given.
        words: usize,
    },
    /// A product of scale and element is not always a number of binary64, in which [`elementwise`]
    /// computes.
    Wide {
        /// The format of the scale.
        scale: Format,
        /// The format of the elements.
        element: Format,
    },
    /// The operation is a function without a result for such an operand.
    Function(Unsupported),
    /// Results in this format, divided by scales of this one, need more than 53 bits to be rounded once.
    Fine {
        /// The format of the results.
        result: Format,
        /// The format of the result's scale.
        scale: Format,
    },
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths { first, other } => {
                write!(
                    f,
                    "the first block has {first} elements and another {other}; blocks of one length are \
                     combined"
                )
            }
            Self::Words { elements, words } => write!(
                f,
                "stochastic rounding of {elements} elements needs as many random words; {words} were given"
            ),
            Self::Wide { scale, element } => write!(
                f,
                "products of {scale} and {element} may have more than binary64 holds; use a narrower scale"
            ),
            Self::Function(why) => why.fmt(f),
            Self::Fine { result, scale } => write!(
                f,
                "results in {result} cannot be divided by scales in {scale} and be rounded once; use scales \
                 that are powers of two, or a narrower result"
            ),
        }
    }
}

impl core::error::Error for OperationError {}

/// How exact results are divided by the result's scale and rounded (ωBlockProject).
enum Projection {
    /// By a power of two: as by this context, whose numbers are that much larger.
    Power(Context),
    /// By any other number: results of the first context, rounded to odd with digits to spare, are divided
    /// by it in the second.
    Number(Context, Context, Operand),
    /// By zero, an infinity or NaN, which leave a sign.
    Special(Context, Context, Value),
}

impl Projection {
    fn new(scale: Operand, to: Context) -> Result<Self, OperationError> {
        // Subnormal operands were looked at where the elements were read.
        let own = Context { rules: Rules { operands: Rules::DEFAULT.operands, ..to.rules }, ..to };
        let value = scale.value();
        if let Value::Finite { negative: false, significand, exponent } = value
            && significand.is_power_of_two()
            && let Some(larger) = to.to.times_power(exponent + significand.trailing_zeros() as i32)
        {
            return Ok(Self::Power(Context { to: larger, ..own }));
        }
        let random = match to.rules.rounding {
            Rounding::Stochastic { bits, .. } => u32::from(bits),
            _ => 0,
        };
        // A number rounded to odd lies on the same side of every number with a digit less. Those that
        // decide are the result's with its random digits and a half, times the scale.
        let digits = to.to.precision() + random + 2 + scale.format.precision() + 1;
        let fine = OperationError::Fine { result: to.to, scale: scale.format };
        let man_bits = digits - 1;
        let exp_bits = 16.min(63_u32.saturating_sub(man_bits));
        let wide =
            Format::builder(Sign::Magnitude, exp_bits, man_bits).build().map_err(|_| fine)?;
        let mut rules =
            Rules::DEFAULT.with_rounding(Rounding::ToOdd).with_overflow(Overflow::Propagate);
        rules.standard = to.rules.standard;
        let wide = Context::new(wide, rules);
        Ok(match value {
            Value::Finite { significand, .. } if significand != 0 => Self::Number(wide, own, scale),
            _ => Self::Special(wide, own, value),
        })
    }

    /// The element that a result becomes.
    fn project(
        &self,
        word: Option<u32>,
        operation: impl Fn(&Context) -> Result<Rounded, Unsupported>,
    ) -> Result<Rounded, Unsupported> {
        let with = |context: Context| Context { random: word.or(context.random), ..context };
        Ok(match *self {
            Self::Power(to) => operation(&with(to))?,
            Self::Number(wide, to, scale) => {
                let exact = operation(&wide)?;
                let x = Operand::new(wide.to, exact.code);
                let Rounded { code, flags } = with(to).div(x, scale);
                let of_both = [Flags::INVALID, Flags::DIVIDE_BY_ZERO, Flags::INEXACT];
                Rounded { code, flags: flags.union(common(exact.flags, &of_both)) }
            }
            Self::Special(wide, to, scale) => {
                let exact = operation(&wide)?;
                let x = Operand::new(wide.to, exact.code);
                let number = match (x.value(), scale) {
                    (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => f64::NAN,
                    (x, Value::Infinite { negative }) if !x.is_zero() => {
                        if x.is_sign_negative() == negative { 1.0 } else { -1.0 }
                    }
                    _ => 0.0,
                };
                let Rounded { code, flags } = with(to).convert(Operand::f64(number));
                Rounded { code, flags: flags.union(common(exact.flags, &[Flags::INVALID])) }
            }
        })
    }
}

/// Those of some flags that are set.
fn common(set: Flags, of: &[Flags]) -> Flags {
    of.iter().filter(|flag| set.contains(**flag)).fold(Flags::NONE, |all, flag| all.union(*flag))
}

/// BlockOp: `operation` of the values of each place, divided by `scale` and rounded once into the format
/// and by the rules of `to`. The result's scale is `scale`.
///
/// `operation` gets a context whose results are larger or finer than those of `to`, and must return what
/// one of its methods makes of the operands. A zero scale makes zeros of all numbers, an infinite one 1
/// with the result's sign, NaN makes NaN. Stochastic rounding takes `words[i]` for element `i`; otherwise
/// `words` may be empty.
///
/// ```
/// use exmy::block::operations::{Block, elementwise};
/// use exmy::format::Format;
/// use exmy::math::{Context, Operand};
/// use exmy::round::Profile;
///
/// let (scales, e4m3) = (Format::UE4M3, Format::E4M3FN);
/// let to = Context::new(e4m3, Profile::P3109.rules(e4m3));
/// let code = |x| to.convert(Operand::f32(x)).code;
/// // exp(3 * 1) / 1.5 = 13.39, between 13 and 14.
/// let three = Context::new(scales, to.rules).convert(Operand::f32(3.0)).code;
/// let scale = Context::new(scales, to.rules).convert(Operand::f32(1.5)).code;
/// let x = [code(1.0)];
/// let x = Block::new(Operand::new(scales, three), e4m3, &x);
/// let found = elementwise([x], Operand::new(scales, scale), to, &[], |to, [x]| to.exp(x))?;
/// assert_eq!(e4m3.to_f32(found[0].code), 13.0);
/// # Ok::<(), exmy::block::operations::OperationError>(())
/// ```
///
/// # Errors
/// Blocks of different lengths; too few words; formats too wide for one rounding; what `operation` fails
/// with.
pub fn elementwise<const N: usize>(
    blocks: [Block<'_>; N],
    scale: Operand,
    to: Context,
    words: &[u32],
    operation: impl Fn(&Context, [Operand; N]) -> Result<Rounded, Unsupported>,
) -> Result<Vec<Rounded>, OperationError> {
    let elements = blocks.first().map_or(0, Block::len);
    for block in &blocks {
        if block.len() != elements {
            return Err(OperationError::Lengths { first: elements, other: block.len() });
        }
        block.check()?;
    }
    if to.rules.rounding.is_stochastic() && words.len() < elements {
        return Err(OperationError::Words { elements, words: words.len() });
    }
    let projection = Projection::new(scale, to)?;
    let one = |i: usize| -> Result<Rounded, OperationError> {
        let operands = blocks.map(|block| block.operand(i, &to.rules));
        let word = words.get(i).copied();
        let found = projection.project(word, |context| operation(context, operands));
        found.map_err(OperationError::Function)
    };
    (0..elements).map(one).collect()
}

/// What a product of values is, if it is no finite number.
fn special(factors: &[Value]) -> Option<Value> {
    if !factors.iter().any(|x| x.is_nan() || matches!(x, Value::Infinite { .. })) {
        return None;
    }
    let nan = factors.iter().any(|x| x.is_nan() || x.is_zero());
    let negative = factors.iter().filter(|x| x.is_sign_negative()).count() % 2 == 1;
    Some(if nan { Value::Nan { negative: false } } else { Value::Infinite { negative } })
}

/// The exact product of finite values.
fn multiplied(factors: &[Value]) -> Big {
    let mut big = factors.first().map_or(Big::ZERO, |first| Big::from(*first));
    factors.iter().skip(1).for_each(|factor| big.multiply(*factor));
    big
}

/// Rounds an exact number, or what is none.
fn finish(total: Result<Big, Value>, to: Context) -> Rounded {
    match total {
        Ok(big) => to.to.round_by(big.exact(), &to.rules, to.random.unwrap_or(0)),
        Err(Value::Infinite { negative }) => to.to.round_infinity(negative, &to.rules),
        Err(_) => to.convert(Operand::f64(f64::NAN)),
    }
}

/// The exact sum of products, whose factors are given.
fn sum_of<const N: usize>(terms: impl Iterator<Item = [Value; N]>) -> Result<Big, Value> {
    let (mut total, mut infinite) = (Big::ZERO, None);
    for factors in terms {
        match (special(&factors), infinite) {
            (None, _) => {
                if infinite.is_none() {
                    total = total.plus(&multiplied(&factors));
                }
            }
            (Some(Value::Infinite { negative }), None) => infinite = Some(negative),
            (Some(Value::Infinite { negative }), Some(other)) if negative == other => {}
            _ => return Err(Value::Nan { negative: false }),
        }
    }
    infinite.map_or(Ok(total), |negative| Err(Value::Infinite { negative }))
}

/// Whether stochastic rounding has the word that one result needs.
fn check_word(to: &Context) -> Result<(), OperationError> {
    match to.rules.rounding.is_stochastic() && to.random.is_none() {
        true => Err(OperationError::Words { elements: 1, words: 0 }),
        false => Ok(()),
    }
}

/// BlockReduceAdd: the exact sum of a block's values, rounded once. Infinities of both signs give NaN.
///
/// # Errors
/// If stochastic rounding lacks its word ([`Context::with_random`]).
pub fn sum(x: Block<'_>, to: Context) -> Result<Rounded, OperationError> {
    check_word(&to)?;
    Ok(finish(sum_of((0..x.len()).map(|i| x.factors(i))), to))
}

/// BlockReduceMultiply: the exact product of a block's values, rounded once; 1 of none.
///
/// # Errors
/// As [`sum`].
pub fn product(x: Block<'_>, to: Context) -> Result<Rounded, OperationError> {
    check_word(&to)?;
    let one = Value::Finite { negative: false, significand: 1, exponent: 0 };
    let factors: Vec<Value> =
        core::iter::once(one).chain((0..x.len()).flat_map(|i| x.factors(i))).collect();
    Ok(finish(special(&factors).map_or_else(|| Ok(multiplied(&factors)), Err), to))
}

/// BlockDotProduct: the exact sum of the products of two blocks' values, rounded once.
///
/// # Errors
/// As [`sum`], and if the blocks' lengths differ.
pub fn dot(x: Block<'_>, y: Block<'_>, to: Context) -> Result<Rounded, OperationError> {
    check_word(&to)?;
    if x.len() != y.len() {
        return Err(OperationError::Lengths { first: x.len(), other: y.len() });
    }
    let factors = |i| {
        let ([s, x], [t, y]) = (x.factors(i), y.factors(i));
        [s, x, t, y]
    };
    Ok(finish(sum_of((0..x.len()).map(factors)), to))
}

/// The scale of ConvertToBlockMaxAbsFinite: the largest finite magnitude in the format and by the rules of
/// `to`. Without a finite number it is that of infinity, without any number NaN.
///
/// # Errors
/// As [`sum`].
pub fn max_abs_finite(x: &[Operand], to: Context) -> Result<Rounded, OperationError> {
    check_word(&to)?;
    let nan = Operand::f64(f64::NAN);
    let magnitude = |x: &Operand| match x.value() {
        Value::Finite { .. } => 2,
        Value::Infinite { .. } => 1,
        Value::Nan { .. } => 0,
    };
    let kind = x.iter().map(magnitude).max().unwrap_or(0);
    let scale = match kind {
        0 => to.convert(nan),
        1 => to.to.round_infinity(false, &to.rules),
        _ => {
            let finite = x.iter().filter(|x| magnitude(x) == 2);
            let size = |x: &Operand| Big::from(x.value()).magnitude();
            let largest = finite.map(size).reduce(|a, b| if b.exceeds(&a) { b } else { a });
            finish(largest.ok_or(Value::Nan { negative: false }), to)
        }
    };
    Ok(scale)
}
