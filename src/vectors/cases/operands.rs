//! Operands worth testing with: special exponents times special significands, and weighted random
//! ones, after Berkeley TestFloat 3's classes.

use super::TestLevel;
use crate::format::{Format, Sign, low_bits};
use crate::random::Philox;
use crate::vectors::function::Kind;

/// What an operand is chosen from.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    kind: Kind,
    edges: Vec<u128>,
    /// Exponent fields and significand patterns of random operands.
    fields: Vec<u64>,
    patterns: Vec<u64>,
}

impl Choice {
    pub(super) fn new(kind: Kind, level: TestLevel) -> Self {
        let mut choice = Self { kind, edges: Vec::new(), fields: Vec::new(), patterns: Vec::new() };
        match split(kind) {
            Some(format) => {
                let signs: &[u64] =
                    if format.is_signed() { &[0, 1 << format.magnitude_bits()] } else { &[0] };
                for field in fields(format, level) {
                    for pattern in patterns(format.man_bits(), level) {
                        let magnitude = field << format.man_bits() | pattern;
                        choice.edges.extend(signs.iter().map(|sign| u128::from(sign | magnitude)));
                    }
                }
                let max = format.max_code();
                let ends = [
                    Some(0),
                    Some(format.min_positive_code()),
                    format.min_normal_code(),
                    Some(max),
                    Some(max.saturating_sub(1)),
                    // The first code that is no number, if there is one.
                    Some((max + 1) & format.magnitude_mask()),
                    format.one_code(),
                    format.nan_code(),
                    format.infinity_code(false),
                ];
                for code in ends.into_iter().flatten() {
                    choice.edges.extend(signs.iter().map(|sign| u128::from(sign | code)));
                }
                choice.fields = fields(format, TestLevel::Two);
                choice.patterns = patterns(format.man_bits(), TestLevel::Two);
            }
            None => choice.edges = integers(kind.bits(), level),
        }
        choice.sort();
        choice
    }

    /// More edges.
    pub(super) fn add(&mut self, more: Vec<u128>) {
        self.edges.extend(more);
        self.sort();
    }

    fn sort(&mut self) {
        let mask = self.kind.mask();
        self.edges.retain(|word| word & !mask == 0);
        self.edges.sort_unstable();
        self.edges.dedup();
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn edges(&self) -> usize {
        self.edges.len()
    }

    pub(super) fn edge(&self, index: usize) -> u128 {
        self.edges[index]
    }

    /// Any word, all equally likely.
    pub(super) fn uniform(&self, philox: &Philox, block: u64) -> u128 {
        let words = philox.block(block).map(u128::from);
        let word = words[0] | words[1] << 32 | words[2] << 64 | words[3] << 96;
        word & self.kind.mask()
    }

    /// A random operand, by the four words of a block: exponents special or near zero or any,
    /// significands a sum of two patterns or any.
    pub(super) fn random(&self, philox: &Philox, block: u64) -> u128 {
        let [how, a, b, c] = philox.block(block).map(u64::from);
        let Some(format) = split(self.kind) else {
            // Any length, so that small numbers are as likely as large ones.
            let word = u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64;
            let word = word | u128::from(philox.block(!block)[0]) << 96;
            let length = 1 + how as u32 % self.kind.bits();
            let word = word & (u128::MAX >> (128 - length));
            return (if how >> 31 == 1 { !word } else { word }) & self.kind.mask();
        };
        let (man_bits, exp_bits) = (format.man_bits(), format.exp_bits());
        let of = |list: &[u64], word: u64| list[((word * list.len() as u64) >> 32) as usize];
        let any = low_bits(exp_bits);
        let field = match how & 7 {
            0..=3 => of(&self.fields, a),
            // Near the exponent of 1, where results are neither lost nor infinite.
            4 | 5 => (format.bias() as u64).wrapping_add(a % 17).wrapping_sub(8) & any,
            _ => a & any,
        };
        let significand = match how >> 3 & 3 {
            0 => c << 32 | b,
            _ => of(&self.patterns, b).wrapping_add(of(&self.patterns, c)),
        };
        let sign = if format.is_signed() { how >> 5 & 1 } else { 0 };
        let code =
            sign << (exp_bits + man_bits) | field << man_bits | significand & low_bits(man_bits);
        u128::from(code)
    }
}

/// The format of a word that has an exponent field and a significand.
fn split(kind: Kind) -> Option<Format> {
    match kind {
        Kind::Format(format) if !matches!(format.sign(), Sign::TwosComplement) => Some(format),
        _ => None,
    }
}

/// Special exponents as fields: the lowest, the highest, those near 0, and those a significand
/// away from it.
fn fields(format: Format, level: TestLevel) -> Vec<u64> {
    let top = low_bits(format.exp_bits()) as i64;
    let (bias, precision) = (i64::from(format.bias()), i64::from(format.precision()));
    let mut fields = vec![0, 1, top - 1, top];
    fields.extend([-precision, -2, -1, 0, 1, 2, precision].map(|exponent| exponent + bias));
    if level == TestLevel::Two {
        fields.extend([2, top - 2]);
        fields.extend([-4, -3, 3, 4].map(|exponent| exponent + bias));
    }
    fields.retain(|field| (0..=top).contains(field));
    fields.sort_unstable();
    fields.dedup();
    fields.into_iter().map(|field| field as u64).collect()
}

/// Special significands: none, the last place, all, all but the last place; at level 2 walking
/// ones, walking zeros, and runs of ones from either end.
fn patterns(bits: u32, level: TestLevel) -> Vec<u64> {
    let all = low_bits(bits);
    let mut patterns = vec![0, 1 & all, all, all & !1];
    if level == TestLevel::Two {
        for place in 0..bits {
            let (one, run) = (1 << place, low_bits(place));
            patterns.extend([one, all & !one, run, all & !run]);
        }
    }
    patterns.sort_unstable();
    patterns.dedup();
    patterns
}

/// Special integers: the ends, powers of two and their neighbours, in both signs.
fn integers(bits: u32, level: TestLevel) -> Vec<u128> {
    let mask = u128::MAX >> (128 - bits);
    let mut words = vec![0, 1, 2, 3, 5, 7, 10, mask >> 1, (mask >> 1) + 1, mask];
    for place in 0..bits {
        let power = 1_u128 << place;
        words.extend([power, power - 1, power + 1]);
        if level == TestLevel::Two {
            words.extend([
                power | power >> 1,
                power | power >> 2,
                power.wrapping_sub(2),
                power ^ mask >> 1,
            ]);
        }
    }
    let negated: Vec<_> = words.iter().map(|word| word.wrapping_neg()).collect();
    words.extend(negated);
    words.iter().map(|word| word & mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_one_of_binary16_is_testfloats() {
        // Of two-operand functions: subnormal, -14, -11, -2 to 2, 11, 15, infinity and NaN.
        let expected = [0, 1, 4, 13, 14, 15, 16, 17, 26, 30, 31];
        assert_eq!(fields(Format::F16, TestLevel::One), expected);
        assert_eq!(patterns(10, TestLevel::One), [0, 1, 0x3FE, 0x3FF]);
        assert_eq!(patterns(10, TestLevel::Two).len(), 36);
        let choice = Choice::new(Kind::Format(Format::F16), TestLevel::One);
        assert_eq!(choice.edges(), 90); // 11 x 4 x 2, and the quiet NaN of both signs
    }

    #[test]
    fn narrow_fields_have_no_patterns_beyond_them() {
        assert_eq!(patterns(0, TestLevel::Two), [0]);
        assert_eq!(patterns(1, TestLevel::Two), [0, 1]);
        assert_eq!(fields(Format::E2M1, TestLevel::Two), [0, 1, 2, 3]);
        for format in [Format::E8M0, Format::E2M1, Format::E5M2, Format::INT8, Format::F64] {
            let choice = Choice::new(Kind::Format(format), TestLevel::Two);
            let philox = Philox::new(3, crate::random::Stream::new("test"));
            let mask = Kind::Format(format).mask();
            assert!((0..1000).all(|i| choice.random(&philox, i) <= mask));
            assert!((0..choice.edges()).all(|i| choice.edge(i) <= mask));
        }
    }

    #[test]
    fn random_operands_reach_everything_of_a_small_format() {
        let choice = Choice::new(Kind::Format(Format::E4M3FN), TestLevel::One);
        let philox = Philox::new(1, crate::random::Stream::new("test"));
        let mut seen = [false; 256];
        (0..20_000).for_each(|i| seen[choice.random(&philox, i) as usize] = true);
        assert!(seen.iter().all(|seen| *seen));
    }
}
