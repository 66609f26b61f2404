//! Conversions of every class of format by every mode, policy and rule; codes to values; random words.

use exmy::format::{Format, Specials};
use exmy::random::{Philox, Stream};
use exmy::round::{
    AbsentNan, Flush, NanCode, NanRules, Operands, Overflow, Payload, Rounding, Rules, SignRule,
    StochasticVariant,
};

use super::{Trial, inputs};
use crate::{Converter, Result, decode_into, words_into};

/// Of each class one or more: specials, sign, zero, subnormals, exponents below and beyond those of binary32.
const FORMATS: [&str; 24] = [
    "e4m3fn",
    "e5m2",
    "e2m1",
    "e3m2",
    "e2m3",
    "int8",
    "e8m0",
    "e8m7",
    "e8m3",
    "e5m10",
    "e4m3fnuz",
    "e5m2fnuz",
    "ue4m3",
    "ue5m3",
    "e8m23",
    "e3m4",
    "binary8p3se",
    "binary8p4uf",
    "binary8p1se",
    "e8m2",
    "e0m4",
    "e1m2",
    "e10m5",
    "e9m0",
];

/// Those that have payloads, among them one with more bits than binary32's and one without a sign.
const PAYLOAD_FORMATS: [&str; 3] = ["e4m3-ieee", "e4m27", "ue5m3-ieee"];

fn formats(names: &[&str]) -> impl Iterator<Item = Format> {
    names.iter().map(|name| name.parse().expect("a format named above"))
}

fn modes() -> Vec<Rounding> {
    let stochastic = |variant, bits| Rounding::Stochastic { variant, bits };
    let mut modes = Rounding::DETERMINISTIC.to_vec();
    modes.extend([1, 4, 8, 16, 20, 31, 32].map(|bits| stochastic(StochasticVariant::A, bits)));
    modes.extend([1, 8, 30, 31, 32].map(|bits| stochastic(StochasticVariant::B, bits)));
    modes.extend([1, 8, 31, 32].map(|bits| stochastic(StochasticVariant::C, bits)));
    modes
}

/// Rules besides mode and policy.
fn other_rules() -> Vec<Rules> {
    let nan = |nan| Rules::DEFAULT.with_nan(nan);
    let canonical = NanRules::CANONICAL;
    let mut all = vec![
        Rules::DEFAULT.with_sign(SignRule::Magnitude),
        Rules::SATURATING.with_sign(SignRule::Relu),
        nan(canonical.with_code(NanCode::AllOnes)),
        nan(canonical.with_keep_sign(false)),
        nan(canonical.with_absent(AbsentNan::SignedMax)),
        nan(canonical.with_absent(AbsentNan::OppositeZero)),
    ];
    for flush in [Flush::Input, Flush::Candidates, Flush::Output] {
        for rounding in [Rounding::TiesToEven, Rounding::AwayFromZero, Rounding::stochastic(8)] {
            all.push(Rules::DEFAULT.with_flush(flush).with_rounding(rounding));
        }
    }
    for operands in [Operands::Zero, Operands::PositiveZero, Operands::Away] {
        all.push(Rules::DEFAULT.with_operands(operands));
    }
    all
}

/// Rules that keep payloads, with what else decides about NaN.
fn payload_rules() -> Vec<Rules> {
    let quiet = NanRules::CANONICAL.with_payload(Payload::Keep);
    let cut = NanRules::CANONICAL.with_payload(Payload::Truncate);
    let of = |nan| Rules::DEFAULT.with_nan(nan);
    let kinds = [quiet, cut, quiet.with_keep_sign(false), cut.with_code(NanCode::AllOnes)];
    let mut all = kinds.map(of).to_vec();
    all.extend(modes().into_iter().map(|rounding| of(quiet).with_rounding(rounding)));
    all.extend([
        of(quiet).with_sign(SignRule::Relu),
        of(cut).with_operands(Operands::Zero),
        of(quiet).with_flush(Flush::Output).with_overflow(Overflow::Finite),
    ]);
    all
}

/// Rows of a conversion: codes, values, values in bfloat16.
const PLAIN: [&str; 3] =
    ["conversion to codes", "conversion to values", "conversion to values in bfloat16"];
const PAYLOADS: [&str; 3] = ["conversion with payloads of NaN"; 3];

impl Trial<'_> {
    pub(super) fn conversions(&mut self) -> Result<()> {
        let x = inputs(if self.full() { 100_003 } else { 1203 });
        for format in formats(&FORMATS) {
            for rounding in modes() {
                for overflow in [Overflow::None, Overflow::Finite] {
                    let rules = Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow);
                    self.conversion(PLAIN, format, rules, &x)?;
                }
            }
            for overflow in Overflow::ALL {
                self.conversion(PLAIN, format, Rules::DEFAULT.with_overflow(overflow), &x)?;
            }
            for rules in other_rules() {
                self.conversion(PLAIN, format, rules, &x)?;
            }
        }
        // Every other number becomes a NaN, with its own last bits as payload.
        let nan = |(i, x): (usize, &f32)| match i % 2 {
            1 if x.to_bits() & 0x007F_FFFF != 0 => f32::from_bits(x.to_bits() | 0x7F80_0000),
            _ => *x,
        };
        let x: Vec<f32> = x.iter().take(20_001).enumerate().map(nan).collect();
        let all = formats(&FORMATS).chain(formats(&PAYLOAD_FORMATS));
        for format in all.filter(|to| to.specials() == Specials::Ieee) {
            for rules in payload_rules() {
                self.conversion(PAYLOADS, format, rules, &x)?;
            }
        }
        self.decoding()?;
        self.words()
    }

    fn conversion(
        &mut self,
        rows: [&'static str; 3],
        format: Format,
        rules: Rules,
        x: &[f32],
    ) -> Result<()> {
        let device = self.device;
        let random = Philox::new(5, Stream::new("conversions"));
        let here = exmy::Converter::new(format, rules).with_random(random).starting_at(3);
        let there = Converter::new(format, rules).with_random(random).starting_at(3);
        let case = || {
            let Rules { rounding, overflow, .. } = rules;
            let plain = Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow);
            let more = if rules == plain { String::new() } else { format!(" by {rules:?}") };
            format!("{format} {rounding} {overflow}{more} of {} numbers", x.len())
        };
        let input = device.upload(x)?;
        let mut expected = vec![0_u32; x.len()];
        here.encode_into(x, &mut expected);
        let codes = match format.bits() {
            0..=8 => there.encode::<u8>(&input)?.to_vec()?.into_iter().map(u32::from).collect(),
            9..=16 => there.encode::<u16>(&input)?.to_vec()?.into_iter().map(u32::from).collect(),
            _ => there.encode::<u32>(&input)?.to_vec()?,
        };
        self.row(rows[0], "convert.cu").compare(case, &codes, &expected);
        if !format.is_exact_in_f32() {
            return Ok(());
        }
        let mut values = device.zeros(x.len())?;
        there.fake_quantize_into(&input, &mut values)?;
        let mut expected = vec![0.0; x.len()];
        here.fake_quantize_into(x, &mut expected);
        let row = self.row(rows[1], "convert.cu");
        row.compare_f32(case, &values.to_vec()?, &expected, false);
        let mut narrow = device.zeros(x.len())?;
        there.fake_quantize_bf16(&input, &mut narrow)?;
        let narrow: Vec<u16> = narrow.to_vec()?.iter().map(|x| x.to_bits()).collect();
        let expected: Vec<u16> =
            exmy::Converter::new(Format::BF16, Rules::DEFAULT).encode(&expected);
        self.row(rows[2], "convert.cu").compare(case, &narrow, &expected);
        Ok(())
    }

    fn decoding(&mut self) -> Result<()> {
        for format in formats(&FORMATS).filter(|format| format.is_exact_in_f32()) {
            let step = (format.code_count() / 70_000).max(1) as usize;
            let codes: Vec<u32> = format.codes().step_by(step).map(|code| code as u32).collect();
            let mut out = self.device.zeros(codes.len())?;
            decode_into(format, &self.device.upload(&codes)?, &mut out)?;
            let expected: Vec<f32> =
                codes.iter().map(|code| format.to_f32(u64::from(*code))).collect();
            let found = out.to_vec()?;
            let row = self.row("values of codes", "convert.cu");
            row.compare_f32(|| format!("{format}"), &found, &expected, false);
        }
        Ok(())
    }

    fn words(&mut self) -> Result<()> {
        let random = Philox::new(11, Stream::new("words"));
        for first in [0, 3, (1 << 34) - 37, u64::MAX - 5] {
            let mut out = self.device.zeros::<u32>(2000)?;
            words_into(random, first, &mut out)?;
            let mut expected = vec![0; 2000];
            exmy::slice::words_into(random, first, &mut expected);
            let found = out.to_vec()?;
            self.row("random words", "convert.cu").compare(
                || format!("from {first} on"),
                &found,
                &expected,
            );
        }
        Ok(())
    }
}
