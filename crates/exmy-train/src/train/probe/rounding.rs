//! `rounding`: what rounding does to each operand of each product.
//!
//! | part | is |
//! |---|---|
//! | `OPERAND.sqnr_db` | `10 log10(sum x^2 / sum (x - q)^2)`, x before and q after |
//! | `OPERAND.mse` | `mean((x - q)^2)` |
//! | `OPERAND.flushed` | share of all elements that were not zero and are |
//! | `OPERAND.flushed_p95` | the 95th percentile of that share over runs of 16 elements along the reduction |
//! | `OPERAND.saturated` | share of elements beyond what their block, format or clipped range can hold |
//! | `OPERAND.scales_zero`, `.scales_top` | shares of block scales that are zero, or their format's largest |
//! | `OPERAND.scales` | shares of block scales by `floor(log2 scale)`, ascending, without zeros |
//! | `OPERAND.scales_from` | the exponent of the first of these |
//!
//! `OPERAND` stands for a site, a product and an operand: `layers.0.q_proj.forward.input`. The value is the
//! mean of `sqnr_db`. Operands that nothing changes have no parts. A scale that is rounded to zero flushes
//! its block. Saturation and scales do not depend on random bits. `flushed` is the FTZ ratio of arXiv
//! 2602.02047.

use super::moments::{elements, quantile, sorted};
use super::{Key, Of, Probe, Snapshot, Value, Values};
use crate::recipe::{Observer, Rounded};
use exmy::block::{Axis, Statistics};
use exmy::quantizer::{Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::round::Rules;
use exmy::slice::Converter;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct RoundingProbe {
    /// By operand.
    seen: BTreeMap<Key, Vec<(&'static str, Value)>>,
}

/// Elements of a run whose share of flushed ones is reported.
const RUN: usize = 16;

/// The 95th percentile over runs along the reduction of the share of elements that were not zero and are.
pub fn flushed_p95(seen: &Rounded<'_>) -> f64 {
    let (before, after) = match seen.axis {
        Axis::Cols => (seen.before, seen.after),
        Axis::Rows => (seen.before.t(), seen.after.t()),
    };
    let mut shares = Vec::new();
    for i in 0..before.rows() {
        for start in (0..before.cols()).step_by(RUN) {
            let end = (start + RUN).min(before.cols());
            let flushed = (start..end).filter(|&j| before.at(i, j) != 0.0 && after.at(i, j) == 0.0);
            shares.push(flushed.count() as f64 / (end - start) as f64);
        }
    }
    quantile(&sorted(shares), 0.95)
}

/// The lowest exponent of two of scales that are not zero, and shares of all of them from there upwards.
pub fn exponents(scales: &[f64]) -> Option<(f64, Vec<f64>)> {
    let exponent = |scale: &f64| (*scale > 0.0).then(|| libm::ilogb(*scale));
    let found: Vec<i32> = scales.iter().filter_map(exponent).collect();
    let (from, to) = (*found.iter().min()?, *found.iter().max()?);
    let share = |exponent: i32| {
        found.iter().filter(|one| **one == exponent).count() as f64 / scales.len() as f64
    };
    Some((f64::from(from), (from..=to).map(share).collect()))
}

/// What quantizing once more shows.
fn limits(seen: &Rounded<'_>) -> Vec<(&'static str, Value)> {
    let Rounded { quantizer, before, axis, .. } = *seen;
    let random = Philox::new(0, Stream::new("statistics"));
    let share = |found: Statistics| Value::Number(found.saturated as f64 / found.count as f64);
    if let Some(clip) = seen.clip {
        let count = before.rows() * before.cols();
        let beyond = clip.beyond(elements(before)) as f64;
        return vec![("saturated", Value::Number(beyond / count as f64))];
    }
    match quantizer.target {
        Target::Format(format) => {
            let rules = Rules::DEFAULT.with_rounding(quantizer.rounding);
            let cast = Converter::new(format, rules.with_overflow(quantizer.overflow));
            vec![("saturated", share(Statistics::of_cast(before, &cast.with_random(random))))]
        }
        Target::Block(format) => {
            let bare = Quantizer { before: None, rotation: None, ..quantizer };
            let Ok(tensor) = bare.quantize(before, axis, random) else { return Vec::new() };
            let decoded = |code: &u32| format.scale.decode((*code).into()).to_f64();
            let scales: Vec<f64> = tensor.scales().iter().map(decoded).collect();
            let share_of = |value: f64| {
                let found = scales.iter().filter(|scale| **scale == value).count();
                Value::Number(found as f64 / scales.len() as f64)
            };
            let mut parts = vec![
                ("saturated", share(tensor.statistics(before))),
                ("scales_top", share_of(format.scale.max().to_f64())),
                ("scales_zero", share_of(0.0)),
            ];
            if let Some((from, shares)) = exponents(&scales) {
                parts.extend([
                    ("scales_from", Value::Number(from)),
                    ("scales", Value::List(shares)),
                ]);
            }
            parts
        }
        _ => Vec::new(),
    }
}

impl Observer for RoundingProbe {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let (mut signal, mut noise, mut flushed, mut count) = (0.0, 0.0, 0_u64, 0_u64);
        for (x, q) in elements(seen.before).zip(elements(seen.after)) {
            signal += x * x;
            noise += (x - q) * (x - q);
            flushed += u64::from(x != 0.0 && q == 0.0);
            count += 1;
        }
        if count == 0 || seen.quantizer.target == Target::None && noise == 0.0 {
            return;
        }
        let mut parts = vec![
            ("mse", Value::Number(noise / count as f64)),
            ("flushed", Value::Number(flushed as f64 / count as f64)),
            ("flushed_p95", Value::Number(flushed_p95(seen))),
            ("sqnr_db", Value::Number(10.0 * libm::log10(signal / noise))),
        ];
        parts.extend(limits(seen));
        let of = Of::Operator(seen.site, Some(seen.product), Some(seen.operand));
        self.seen.insert(Key::new(of, ""), parts);
    }
}

impl Probe for RoundingProbe {
    fn name(&self) -> &str {
        "rounding"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        let (mut sum, mut count) = (0.0, 0.0);
        for (operand, parts) in std::mem::take(&mut self.seen) {
            for (part, value) in parts {
                let name = Key::new(operand.of().clone(), part);
                match value {
                    Value::Number(value) => {
                        values.part(name, value);
                        if part == "sqnr_db" && value.is_finite() {
                            (sum, count) = (sum + value, count + 1.0);
                        }
                    }
                    Value::List(list) => values.list(name, list),
                }
            }
        }
        values.set(sum / count);
    }
}
