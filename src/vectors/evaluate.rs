//! What a function returns for given operands: the one place where a name becomes a call of
//! [`Context`].

use core::cmp::Ordering;

use super::function::{Kind, TestFunction};
use super::operation::Operation;
use crate::error::Error;
use crate::math::elementary::Unsupported;
use crate::math::{Context, IntInvalid, Operand};
use crate::round::{Flags, Flush, Operands, Overflow, Profile, Rounded, Rounding, Rules, Tininess};

/// What a name leaves open. `None` is what the profile says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// Which neighbour of an inexact number is its result.
    pub rounding: Option<Rounding>,
    /// What becomes of results out of range.
    pub overflow: Option<Overflow>,
    /// When underflow is detected.
    pub tininess: Option<Tininess>,
    /// What becomes of results below the smallest normal value.
    pub flush: Option<Flush>,
    /// How subnormal operands are read.
    pub operands: Option<Operands>,
    /// Whether rounding to an integer raises inexact.
    pub exact: bool,
    /// What an invalid conversion to an integer returns.
    pub int_invalid: IntInvalid,
    /// All other rules.
    pub profile: Profile,
}

impl Default for Settings {
    /// Those of Berkeley TestFloat on x86-64: to nearest even, tininess after rounding, inexact
    /// not raised, the integers of the 8086; NaN by [`Profile::Ieee`].
    fn default() -> Self {
        Self {
            rounding: None,
            overflow: None,
            tininess: None,
            flush: None,
            operands: None,
            exact: false,
            int_invalid: IntInvalid::X86,
            profile: Profile::Ieee,
        }
    }
}

impl Settings {
    /// The rules of a profile with what is set in place of theirs.
    ///
    /// ```
    /// use exmy::round::{Operands, Rounding, Rules};
    /// use exmy::vectors::evaluate::Settings;
    ///
    /// let settings = Settings { operands: Some(Operands::Zero), ..Settings::default() };
    /// let rules = settings.rules(Rules::DEFAULT.with_rounding(Rounding::TowardZero));
    /// assert_eq!((rules.rounding, rules.operands), (Rounding::TowardZero, Operands::Zero));
    /// ```
    pub fn rules(&self, rules: Rules) -> Rules {
        Rules {
            rounding: self.rounding.unwrap_or(rules.rounding),
            overflow: self.overflow.unwrap_or(rules.overflow),
            tininess: self.tininess.unwrap_or(rules.tininess),
            flush: self.flush.unwrap_or(rules.flush),
            operands: self.operands.unwrap_or(rules.operands),
            ..rules
        }
    }
}

/// One line: what was computed from what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Operand words; those beyond the function's number are 0.
    pub operands: [u128; 3],
    /// The random integer of a stochastic mode, in the top bits.
    pub random: u32,
    /// The result word.
    pub result: u128,
    /// The flags.
    pub flags: u8,
}

/// A result: a word of the function's result, and the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The code, the integer in two's complement, or 0 or 1.
    pub word: u128,
    /// What happened on the way.
    pub flags: Flags,
}

/// A [`TestFunction`] with its rounding, overflow and other [`Settings`], ready to compute cases.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator {
    function: TestFunction,
    context: Context,
    exact: bool,
    settings: Settings,
}

impl TestFunction {
    /// This function under given settings.
    ///
    /// # Errors
    /// If the name fixes one rounding mode and the settings another, or an elementary function
    /// does not reach as far as the operand's format.
    pub fn evaluator(&self, settings: &Settings) -> Result<Evaluator, Error> {
        if let (Some(fixed), Some(asked)) = (self.rounding(), settings.rounding)
            && fixed != asked
        {
            return Err(Error::new(format!(
                "{self} fixes the mode {fixed}, {asked} was asked for"
            ))
            .hint("leave the mode away, or its suffix in the name"));
        }
        let rules = match (self.result(), self.operands()[0]) {
            (Kind::Format(to), Kind::Format(from)) if self.operation() == Operation::Convert => {
                settings.profile.conversion(from, to)
            }
            (Kind::Format(format), _) | (_, Kind::Format(format)) => settings.profile.rules(format),
            _ => Rules::DEFAULT,
        };
        let to = match (self.result(), self.operands()[0]) {
            (Kind::Format(to), _) | (_, Kind::Format(to)) => to,
            _ => unreachable!("a function has a format"),
        };
        let rules = settings.rules(rules);
        let rules = rules.with_rounding(self.rounding().unwrap_or(rules.rounding));
        if let (Operation::Elementary(elementary), Kind::Format(from)) =
            (self.operation(), self.operands()[0])
        {
            elementary.supports(from).map_err(Error::from_cause)?;
        }
        Ok(Evaluator {
            function: *self,
            context: Context::new(to, rules),
            exact: self.exact().unwrap_or(settings.exact),
            settings: *settings,
        })
    }
}

impl Evaluator {
    /// The function.
    pub fn function(&self) -> &TestFunction {
        &self.function
    }

    /// The result's format and the rules; of a function without a format as result, the operand's.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What the name left open.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether rounding to an integer raises inexact.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Bits of the random integer that the rounding mode needs, 0 if none.
    pub fn random_bits(&self) -> u32 {
        match self.context.rules.rounding {
            Rounding::Stochastic { bits, .. } => bits.into(),
            _ => 0,
        }
    }

    /// The operands as they are read where that is as zeros: a zero in place of each subnormal number. Its
    /// sign is lost, so this is for what a sign of zero does not matter to.
    pub(super) fn read(&self, mut words: [u128; 3]) -> [u128; 3] {
        if matches!(self.context.rules.operands, Operands::Zero | Operands::PositiveZero) {
            for (word, kind) in words.iter_mut().zip(self.function.operands()) {
                let Kind::Format(format) = *kind else { continue };
                if Operand::new(format, *word as u64).is_subnormal() {
                    *word = 0;
                }
            }
        }
        words
    }

    /// The result for operand words; those beyond the number of operands are ignored, as are bits
    /// beyond an operand's width. `random` is the word whose top bits stochastic modes use.
    ///
    /// # Errors
    /// If an elementary function cannot be decided, which is known of no operand; see
    /// [`Unsupported`].
    pub fn evaluate(&self, words: [u128; 3], random: u32) -> Result<Outcome, Unsupported> {
        use Operation as O;
        let context = self.context.with_random(random);
        let operand = |i: usize| match self.function.operands()[i] {
            Kind::Format(format) => Operand::new(format, words[i] as u64),
            // Not reached: what asks for an operand has a format there.
            _ => Operand::new(context.to, words[i] as u64),
        };
        let read = |i| Operand { code: self.read(words)[i] as u64, ..operand(i) };
        let rounded = match self.function.operation() {
            O::Convert => context.convert(operand(0)),
            O::ToInteger => {
                let Kind::Integer { bits, signed } = self.function.result() else {
                    unreachable!("a conversion to an integer has one as result");
                };
                let mode = context.rules.rounding;
                let (exact, invalid) = (self.exact, self.settings.int_invalid);
                let (word, flags) = read(0).to_int_with(bits, signed, mode, random, exact, invalid);
                return Ok(Outcome { word, flags });
            }
            O::FromInteger => {
                let kind = self.function.operands()[0];
                let word = words[0] & kind.mask();
                let sign = 1 << (kind.bits() - 1);
                let negative =
                    matches!(kind, Kind::Integer { signed: true, .. }) && word & sign != 0;
                let magnitude = if negative { (word ^ kind.mask()) + 1 } else { word };
                context.from_int(negative, magnitude)
            }
            O::RoundToInt => context.round_to_integral(operand(0), self.exact),
            O::Add => context.add(operand(0), operand(1)),
            O::Sub => context.sub(operand(0), operand(1)),
            O::Mul => context.mul(operand(0), operand(1)),
            O::MulAdd => context.fma(operand(0), operand(1), operand(2)),
            O::Div => context.div(operand(0), operand(1)),
            O::Rem => context.rem(operand(0), operand(1)),
            O::Sqrt => context.sqrt(operand(0)),
            O::Fmod => context.fmod(operand(0), operand(1)),
            O::Faa => context.faa(operand(0), operand(1), operand(2)),
            O::Recip => context.recip(operand(0)),
            O::Rsqrt => context.rsqrt(operand(0)),
            O::Hypot => context.hypot(operand(0), operand(1)),
            O::Negate => context.neg(operand(0)),
            O::Abs => context.abs(operand(0)),
            O::CopySign => context.copysign(operand(0), operand(1)),
            O::Minimum => context.minimum(operand(0), operand(1)),
            O::Maximum => context.maximum(operand(0), operand(1)),
            O::MinimumNumber => context.minimum_number(operand(0), operand(1)),
            O::MaximumNumber => context.maximum_number(operand(0), operand(1)),
            O::MinimumMagnitude => context.minimum_magnitude(operand(0), operand(1)),
            O::MaximumMagnitude => context.maximum_magnitude(operand(0), operand(1)),
            O::MinimumMagnitudeNumber => context.minimum_magnitude_number(operand(0), operand(1)),
            O::MaximumMagnitudeNumber => context.maximum_magnitude_number(operand(0), operand(1)),
            O::MinimumFinite => context.minimum_finite(operand(0), operand(1)),
            O::MaximumFinite => context.maximum_finite(operand(0), operand(1)),
            O::Clamp => context.clamp(operand(0), operand(1), operand(2)),
            O::NextUp => context.next_up(operand(0)),
            O::NextDown => context.next_down(operand(0)),
            O::ScaleB => context.scalb(operand(0), words[1] as u32 as i32),
            O::LogB => context.logb(operand(0)),
            O::Elementary(function) if function.operands() == 1 => {
                context.apply(function, operand(0))?
            }
            O::Elementary(function) => context.apply2(function, operand(0), operand(1))?,
            O::Eq => return compared(read(0).compare_quiet(read(1)), Ordering::is_eq),
            O::Le => return compared(read(0).compare_signaling(read(1)), Ordering::is_le),
            O::Lt => return compared(read(0).compare_signaling(read(1)), Ordering::is_lt),
            O::EqSignaling => {
                return compared(read(0).compare_signaling(read(1)), Ordering::is_eq);
            }
            O::LeQuiet => return compared(read(0).compare_quiet(read(1)), Ordering::is_le),
            O::LtQuiet => return compared(read(0).compare_quiet(read(1)), Ordering::is_lt),
            O::TotalOrder => {
                let order = operand(0).total_cmp(operand(1), context.rules.standard);
                return Ok(Outcome { word: order.is_le().into(), flags: Flags::NONE });
            }
        };
        let Rounded { code, flags } = rounded;
        Ok(Outcome { word: code.into(), flags })
    }
}

/// A predicate of a comparison, which is false if unordered.
fn compared(
    (order, flags): (Option<Ordering>, Flags),
    holds: fn(Ordering) -> bool,
) -> Result<Outcome, Unsupported> {
    Ok(Outcome { word: order.is_some_and(holds).into(), flags })
}
