//! `rounding`: what rounding does to each operand of each product.
//!
//! | part | is |
//! |---|---|
//! | `OPERAND.sqnr_db` | `10 log10(sum x^2 / sum (x - q)^2)`, x before and q after |
//! | `OPERAND.mse` | `mean((x - q)^2)` |
//! | `OPERAND.flushed` | share of all elements that were not zero and are |
//! | `OPERAND.flushed_p95` | the 95th percentile of that share over runs of 16 elements along the reduction |
//! | `OPERAND.saturated` | share of elements beyond the largest magnitude of their block, format or clipped range |
//! | `OPERAND.scales_zero`, `.scales_top` | shares of block scales that are zero, or their format's largest |
//! | `OPERAND.scales` | shares of block scales by `floor(log2 scale)`, ascending, without zeros |
//! | `OPERAND.scales_from` | the exponent of the first of these |
//!
//! `OPERAND` stands for a site, a product and an operand: `layers.0.q_proj.forward.input`. The value is the
//! mean of `sqnr_db`. Operands that nothing changes have no parts. Flushing is judged by decoded values: in
//! a block whose scale is rounded to zero all elements are flushed. Saturation and scales are measured by
//! quantizing once more; they do not depend on random bits. `flushed` is the FTZ ratio of arXiv 2602.02047.

use super::moments::{elements, quantile, sorted};
use super::{Key, Of, Probe, Seen, Value, Values};
use crate::recipe::{Observer, Rounded};
use exmy::block::{Axis, Statistics};
use exmy::quantizer::{Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::round::Rules;
use exmy::slice::Converter;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rounding {
    /// By operand.
    seen: BTreeMap<Key, Vec<(&'static str, Value)>>,
}

/// Elements of a run whose share of flushed ones is told.
const RUN: usize = 16;

/// The 95th percentile over runs along the reduction of the share of elements that were not zero and are.
fn flushed_p95(seen: &Rounded<'_>) -> f64 {
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
fn exponents(scales: &[f64]) -> Option<(f64, Vec<f64>)> {
    let exponent = |scale: &f64| (*scale > 0.0).then(|| libm::ilogb(*scale));
    let found: Vec<i32> = scales.iter().filter_map(exponent).collect();
    let (from, to) = (*found.iter().min()?, *found.iter().max()?);
    let share = |exponent: i32| {
        found.iter().filter(|one| **one == exponent).count() as f64 / scales.len() as f64
    };
    Some((f64::from(from), (from..=to).map(share).collect()))
}

/// What quantizing once more tells.
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

impl Observer for Rounding {
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

impl Probe for Rounding {
    fn name(&self) -> &str {
        "rounding"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Seen<'_>, values: &mut Values) {
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

#[cfg(test)]
mod tests {
    use super::super::registry::tests::{measured, operand};
    use super::*;
    use exmy::slice::View;

    /// E2M1 in a block of 16 with the scale that 6 needs: 0.2 becomes 0, 6.9 is beyond 6.
    #[test]
    fn by_hand() {
        let mut before = [0.0_f32; 16];
        before[..5].copy_from_slice(&[6.9, 0.2, -1.25, 3.0, 0.0]);
        let mut after = [0.0_f32; 16];
        after[..5].copy_from_slice(&[6.0, 0.0, -1.0, 3.0, 0.0]);
        let (before, after) = (View::new(&before, 1, 16), View::new(&after, 1, 16));
        let mut probe = Rounding::default();
        probe.operand(&operand("e2m1/16:e8m0@floor", before, after));
        let values = measured(&mut probe);
        let part = |name: &str| {
            values.parts[format!("layers.1.q_proj.forward.input.{name}").as_str()].number().unwrap()
        };
        let noise = 0.9_f64 * 0.9 + 0.2 * 0.2 + 0.25 * 0.25;
        assert!((part("mse") - noise / 16.0).abs() < 1e-6);
        let signal = 6.9_f64 * 6.9 + 0.2 * 0.2 + 1.25 * 1.25 + 9.0;
        assert!((part("sqnr_db") - 10.0 * libm::log10(signal / noise)).abs() < 1e-5);
        assert_eq!((part("flushed"), part("saturated")), (1.0 / 16.0, 1.0 / 16.0));
        assert_eq!((part("scales_zero"), part("scales_top")), (0.0, 0.0));
        // One block, whose scale is 2^0.
        let scales = &values.parts["layers.1.q_proj.forward.input.scales"];
        assert_eq!((part("scales_from"), scales.list().unwrap()), (0.0, &[1.0][..]));
        assert_eq!(values.value.unwrap().to_bits(), part("sqnr_db").to_bits());
        // What a step left does not stay for the next.
        assert!(measured(&mut probe).is_empty());
        // Nothing rounds, nothing is said.
        probe.operand(&operand("f32", before, before));
        assert!(measured(&mut probe).is_empty());
        // A clipped range: 6.9 is beyond 3.5.
        let clip = Some("clip-e2m2".parse().unwrap());
        probe.operand(&Rounded { clip, ..operand("f32", before, after) });
        let part = |values: &Values| {
            values.parts["layers.1.q_proj.forward.input.saturated"].number().unwrap()
        };
        assert_eq!(part(&measured(&mut probe)), 1.0 / 16.0);
        // A format without blocks.
        probe.operand(&operand("e2m1", before, after));
        let values = measured(&mut probe);
        assert_eq!(
            values.parts["layers.1.q_proj.forward.input.saturated"].number(),
            Some(1.0 / 16.0)
        );
    }

    #[test]
    fn scales_by_exponent() {
        // 1.75 is of exponent 0, 0.3 of -2, 2^-9 is the least of E4M3.
        let all = [1.0, 1.75, 0.3, 0.0, 4.0, 1.0, 0.25, 0.0];
        let (from, shares) = exponents(&all).unwrap();
        assert_eq!((from, shares), (-2.0, vec![0.25, 0.0, 0.375, 0.0, 0.125]));
        assert_eq!(exponents(&[1.0 / 512.0]), Some((-9.0, vec![1.0])));
        assert_eq!(exponents(&[0.0, 0.0]), None);
    }

    /// Twenty runs of 16: one loses all, one loses half, the others nothing; the 95th percentile is the
    /// nineteenth.
    #[test]
    fn the_share_that_blocks_lose() {
        let x = [1.0_f32; 320];
        let mut q = x;
        q[..16].fill(0.0);
        q[32..40].fill(0.0);
        let (rows, after) = (View::new(&x, 10, 32), View::new(&q, 10, 32));
        let seen = operand("e2m1", rows, after);
        assert_eq!(flushed_p95(&seen), 0.5);
        // The transposed matrix, reduced down its columns, is the same.
        let (before, after) = (rows.t(), after.t());
        let turned = Rounded { axis: Axis::Rows, before, after, ..seen };
        assert_eq!(flushed_p95(&turned), 0.5);
        let across = Rounded { axis: Axis::Rows, ..seen };
        assert_eq!(flushed_p95(&across), 0.2, "eight columns of ten lose two, eight lose one");
    }
}
