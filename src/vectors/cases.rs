//! Test vectors for any operation on any formats.
//!
//! The operands are chosen as Berkeley TestFloat chooses them: special exponents times special
//! significands, every combination of them for every operand. Each combination comes again with
//! some or all operands replaced by weighted random ones. Conversions also get every value of the
//! target, every midpoint between two, and the source's neighbours of both. Sums, products and quotients
//! get operands that are solved for: exact results a last bit beside a midpoint, and at the thresholds of
//! overflow and underflow. Where there are not more cases than these, or at most [`ALL_TAKEN`], all are
//! taken.
//!
//! A case is a function of its number and the seed alone ([`Cases::operands`]), so a file can be
//! made again, in parts and in any order.
//!
//! ```
//! use exmy::vectors::function::TestFunction;
//! use exmy::vectors::cases::{Cases, Request};
//!
//! let add: TestFunction = "e2m1_add".parse()?;
//! let cases = Cases::new(&add, &Request::default())?;
//! assert_eq!(cases.len(), 256); // all pairs: fewer than the combinations of edges
//! # Ok::<(), exmy::error::Error>(())
//! ```

mod aimed;
mod coverage;
mod edges;
mod head;
mod operands;
mod style;
mod write;

pub use coverage::Coverage;
pub use style::Style;
pub use write::write;

use super::function::{Operation, TestFunction};
use crate::error::Error;
use crate::random::{Philox, Stream};
use aimed::Aim;
use operands::Choice;

/// The most cases that [`Request::exhaustive`] gives, 2^32: a pipe carries some ten million a
/// second.
pub const MAX_EXHAUSTIVE: u128 = 1 << 32;

/// Where there are no more cases than this, 2^16, all are taken: all pairs of 8-bit codes, all
/// operands of 16 bits.
pub const ALL_TAKEN: u128 = 1 << 16;

/// How thorough a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TestLevel {
    /// Few significands and exponents, all combinations, and with each combination one case for
    /// every choice of operands replaced by random ones.
    #[default]
    One,
    /// Walking ones and zeros, runs and more exponents, all combinations, and as many random
    /// cases.
    Two,
}

/// Which cases are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// How thorough.
    pub level: TestLevel,
    /// All operands there are.
    pub exhaustive: bool,
    /// The seed of random operands.
    pub seed: u64,
    /// Just so many cases: some of them, spread evenly, or more random ones.
    pub count: Option<u64>,
}

impl Default for Request {
    fn default() -> Self {
        Self { level: TestLevel::One, exhaustive: false, seed: 1, count: None }
    }
}

/// The operands of all cases.
#[derive(Clone, Debug)]
pub struct Cases {
    request: Request,
    choices: Vec<Choice>,
    /// Which operands of a combination are random, a bit each, one case after the other; empty if
    /// all operands are taken in order.
    masks: Vec<u8>,
    /// Operands are any words, for all are too many to count.
    uniform: bool,
    /// What operands are solved for, and how many cases of the plan, the last ones, have such.
    aim: Option<(Aim, u128)>,
    /// Cases of the plan.
    planned: u128,
    len: u128,
    /// A number prime to `planned`, by which a part of the plan is spread over it.
    stride: u128,
    philox: Philox,
}

impl Cases {
    /// The cases of a request.
    ///
    /// # Errors
    /// If all of more than [`MAX_EXHAUSTIVE`] cases are asked for.
    pub fn new(function: &TestFunction, request: &Request) -> Result<Self, Error> {
        let kinds = function.operands();
        let bits: u32 = kinds.iter().map(|kind| kind.bits()).sum();
        // Of more bits than this nobody takes all.
        let all = if bits < 100 { 1_u128 << bits } else { u128::MAX };
        let mut choices: Vec<_> =
            kinds.iter().map(|kind| Choice::new(*kind, request.level)).collect();
        match function.operation() {
            Operation::Convert | Operation::ToInteger | Operation::FromInteger => {
                choices[0].add(edges::of_conversion(kinds[0], function.result()));
            }
            Operation::RoundToInt => choices[0].add(edges::of_integers(kinds[0])),
            _ => {}
        }
        let masks: Vec<u8> = match request.level {
            TestLevel::One => (0..1 << kinds.len()).collect(),
            TestLevel::Two => vec![0, (1 << kinds.len()) - 1],
        };
        let combinations: u128 = choices.iter().map(|choice| choice.edges() as u128).product();
        let aimed = match request.level {
            TestLevel::One => 1 << 13,
            TestLevel::Two => 1 << 17,
        };
        let aim = Aim::new(function, request.seed).map(|aim| (aim, aimed));
        let planned = combinations * masks.len() as u128;
        let planned = planned + aim.as_ref().map_or(0, |(_, count)| *count);
        let exhaustive = request.exhaustive || all <= planned.max(ALL_TAKEN);
        if request.exhaustive && all > MAX_EXHAUSTIVE && request.count.is_none() {
            return Err(Error::new(format!(
                "{function} has 2^{bits} cases, too many to write down"
            ))
            .hint(format!(
                "at most 2^32 can be; the classes of operands without --exhaustive give {planned}, \
                 and --count takes so many of all"
            )));
        }
        let (planned, masks, aim) =
            if exhaustive { (all, Vec::new(), None) } else { (planned, masks, aim) };
        let len = request.count.map_or(planned, u128::from);
        Ok(Self {
            request: *request,
            choices,
            masks,
            aim,
            uniform: exhaustive && bits > 64,
            planned,
            len,
            stride: if len < planned { stride(planned) } else { 1 },
            philox: Philox::new(request.seed, Stream::new("vectors")),
        })
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How many there are.
    pub fn len(&self) -> u128 {
        self.len
    }

    /// Whether these are all operands that there are.
    pub(super) fn are_all(&self) -> bool {
        self.masks.is_empty() && !self.uniform && self.len >= self.planned
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The operands of case `index`; those beyond the function's number are 0.
    pub fn operands(&self, index: u128) -> [u128; 3] {
        let mut words = [0; 3];
        let block = |i: usize| (index as u64).wrapping_mul(4).wrapping_add(i as u64);
        if self.uniform {
            for (i, choice) in self.choices.iter().enumerate() {
                words[i] = choice.uniform(&self.philox, block(i));
            }
            return words;
        }
        let beyond = index >= self.planned;
        let mut rest = if beyond { 0 } else { index * self.stride % self.planned };
        if let Some((aim, count)) = &self.aim
            && !beyond
            && let Some(at) = rest.checked_sub(self.planned - count)
        {
            return aim.operands(at as u64);
        }
        let mask = match self.masks.len() as u128 {
            0 => 0,
            count => {
                let mask = self.masks[(rest % count) as usize];
                rest /= count;
                mask
            }
        };
        // The last operand changes fastest.
        for (i, choice) in self.choices.iter().enumerate().rev() {
            let random = beyond || mask >> i & 1 == 1;
            words[i] = if self.masks.is_empty() && !beyond {
                let word = rest & choice.kind().mask();
                rest >>= choice.kind().bits();
                word
            } else {
                let edge = choice.edge((rest % choice.edges() as u128) as usize);
                rest /= choice.edges() as u128;
                if random { choice.random(&self.philox, block(i)) } else { edge }
            };
        }
        words
    }
}

/// A number near `len / 1.618...` and prime to it, so that its multiples spread evenly over all
/// remainders.
fn stride(len: u128) -> u128 {
    fn common(a: u128, b: u128) -> u128 {
        if b == 0 { a } else { common(b, a % b) }
    }
    // Plans of more than 2^64 cases are not walked, so that products stay below 2^128.
    let guess = ((len.min(u64::MAX.into()) * 0x9E37_79B9_7F4A_7C15) >> 64).max(1);
    (guess..).find(|stride| common(*stride, len) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn cases(name: &str, request: Request) -> Cases {
        Cases::new(&name.parse().unwrap(), &request).unwrap()
    }

    #[test]
    fn exhaustive_is_every_word_once() {
        let all = cases("e2m1,e3m2_mul_to_f16", Request { exhaustive: true, ..Request::default() });
        assert_eq!(all.len(), 1 << 10);
        let seen: HashSet<_> = (0..all.len()).map(|i| all.operands(i)).collect();
        assert_eq!(seen.len(), 1 << 10);
        assert!(seen.iter().all(|[a, b, _]| *a < 16 && *b < 64));
        let too_many: TestFunction = "f32_add".parse().unwrap();
        let request = Request { exhaustive: true, ..Request::default() };
        let error = Cases::new(&too_many, &request).unwrap_err().to_string();
        assert!(error.contains("2^64") && error.contains("--count"), "{error}");
    }

    #[test]
    fn a_count_spreads_over_the_plan_and_beyond() {
        let whole = cases("f16_add", Request::default());
        let some = cases("f16_add", Request { count: Some(500), ..Request::default() });
        assert_eq!(some.len(), 500);
        let places: HashSet<_> =
            (0..500).map(|i| i * some.stride % some.planned * 20 / whole.len()).collect();
        assert_eq!(places.len(), 20, "every twentieth of the plan is visited");
        let distinct: HashSet<_> =
            (0..whole.len()).map(|i| i * some.stride % some.planned).collect();
        assert_eq!(distinct.len() as u128, whole.len());
        let wide = Request { exhaustive: true, count: Some(9), ..Request::default() };
        let wide = cases("f64_mulAdd", wide);
        assert!((0..9).all(|i| wide.operands(i).iter().all(|word| word >> 48 != 0)));
        let more = cases("e2m1_sqrt", Request { count: Some(100), ..Request::default() });
        assert_eq!((more.planned, more.len()), (16, 100));
        assert!((0..100).all(|i| more.operands(i)[0] < 16));
    }

    #[test]
    fn the_seed_changes_the_random_operands_alone() {
        let [one, two] =
            [1, 2].map(|seed| cases("f32_mulAdd", Request { seed, ..Request::default() }));
        let mut changed = 0;
        for i in 0..800 {
            let (a, b) = (one.operands(i), two.operands(i));
            changed += u32::from(a != b);
            assert!(i % 8 != 0 || a == b, "the first of eight has edges only");
        }
        assert!(changed > 600, "{changed}");
        assert_eq!(one.operands(77), cases("f32_mulAdd", Request::default()).operands(77));
    }
}
