//! The formats as bits, and what cutting bits does to a product.

use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::measure::Results;
use crate::plot::{self, Axis, Panel, Series};
use exmy::error::{Error, Result};
use exmy::format::Format;
use exmy::quantizer::{Axis as Along, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::recipe::Recipe;

/// The formats the paper speaks of, by its names.
const FORMATS: [(&str, &str); 11] = [
    ("FP32", "f32"),
    ("TF32", "tf32"),
    ("BF16", "bf16"),
    ("FP16", "f16"),
    ("FP8 E5M2", "e5m2"),
    ("FP8 E4M3", "e4m3"),
    ("E8M6", "e8m6"),
    ("E8M5", "e8m5"),
    ("E8M4", "e8m4"),
    ("E8M3", "e8m3"),
    ("E7M7", "e7m7"),
];

/// The formats as bits, and their ranges.
pub(crate) fn diagram(_: &Results<'_>) -> Result<Findings> {
    let mut table = Table::new(
        "bits, most significant first, and the range of values",
        &["format", "bits", "largest", "smallest normal", "half a unit in the last place, %"],
    );
    for (name, text) in FORMATS {
        let format: Format = text.parse().map_err(Error::from_cause)?;
        let (e, m) = (format.exp_bits() as usize, format.man_bits() as usize);
        table.row([
            name.into(),
            format!("s {} {}", "e".repeat(e), "m".repeat(m)),
            format!("{:.4e}", format.max().to_f64()),
            format.min_normal().map_or_else(|| "-".into(), |x| format!("{:.4e}", x.to_f64())),
            format!("{:.4}", 100.0 * libm::ldexp(0.5, -(m as i32))),
        ]);
    }
    let verdict = Verdict::Shown("all values follow from the formats' definitions".into());
    Ok(Findings::of(verdict, vec![Part::Table(table)]))
}

/// Bits kept, and for truncation the gain of a product of two masked normal numbers and the rms error that
/// is left when it is taken away: expectations over pairs of normal numbers rounded to bfloat16.
const EXPECTED: [(u32, f64, f64); 6] = [
    (7, 1.0, 0.0),
    (6, 0.9944, 0.0041),
    (5, 0.9832, 0.0093),
    (4, 0.9613, 0.0187),
    (3, 0.9194, 0.0360),
    (2, 0.8422, 0.0655),
];

const ROUNDINGS: [&str; 3] = ["rtz", "rne", "sr8"];

/// `E[p q] / E[p^2]` and the rms of `q - gain p` over that of `p`, for products `p` of numbers of bfloat16
/// and `q` of the same numbers with `bits` mantissa bits.
pub fn gain(bits: u32, rounding: &str, pairs: usize) -> Result<(f64, f64)> {
    let random = Philox::new(2024, Stream::new("masked products"));
    let uniform = |i: u64| random.uniform(i).max(f64::MIN_POSITIVE);
    let normal = |i: u64| {
        let radius = (-2.0 * libm::log(uniform(2 * i))).sqrt();
        (radius * libm::cos(core::f64::consts::TAU * uniform(2 * i + 1))) as f32
    };
    let x: Vec<f32> = (0..2 * pairs as u64).map(normal).collect();
    let image = |text: &str, x: &[f32]| -> Result<Vec<f32>> {
        let quantizer: Quantizer = text.parse().map_err(Error::from_cause)?;
        let mut out = vec![0.0; x.len()];
        let bits = Philox::new(7, Stream::new("masks"));
        quantizer.image_into(
            View::new(x, 1, x.len()),
            Along::Cols,
            bits,
            ViewMut::new(&mut out, 1, x.len()),
        );
        Ok(out)
    };
    let whole = image("bf16", &x)?;
    let masked = image(&format!("e8m{bits}@{rounding}"), &whole)?;
    let products = |x: &[f32]| -> Vec<f64> {
        x.chunks_exact(2).map(|pair| f64::from(pair[0]) * f64::from(pair[1])).collect()
    };
    let (p, q) = (products(&whole), products(&masked));
    let sum = |f: &dyn Fn(f64, f64) -> f64| p.iter().zip(&q).map(|(&p, &q)| f(p, q)).sum::<f64>();
    let squares = sum(&|p, _| p * p);
    let gain = sum(&|p, q| p * q) / squares;
    let rest = sum(&|p, q| (q - gain * p) * (q - gain * p));
    Ok((gain, (rest / squares).sqrt()))
}

/// Of a million products.
const DEVIATION: Requirement = ask(
    "the relative deviation of gain and noise of products of normal numbers from their expectations",
    Is::Under(0.01),
    By::Value,
);

pub(crate) const ASKS: Criterion = Criterion::new(&[DEVIATION], Opposite::None);

/// What cutting bits does to a product.
pub(crate) fn masks(results: &Results<'_>) -> Result<Findings> {
    let pairs = results.setting.scale.pick([100_000, 1_000_000, 1_000_000]);
    let mut table = Table::new(
        format!(
            "gain of a product of two normal numbers, and rms error without it; {pairs} products"
        ),
        &["bits", "rtz gain", "rtz noise", "rne gain", "rne noise", "sr8 gain", "sr8 noise"],
    );
    let mut panel = Panel::new(Axis::linear("gain of a product"));
    let mut gains = [const { Vec::new() }; 3];
    let mut worst = 0.0_f64;
    for (bits, expected_gain, expected_noise) in EXPECTED {
        let mut row = vec![format!("e8m{bits}")];
        for (rounding, gains) in ROUNDINGS.iter().zip(&mut gains) {
            let (gain, noise) = gain(bits, rounding, pairs)?;
            row.extend([format!("{gain:.4}"), format!("{noise:.4}")]);
            gains.push((f64::from(bits), gain));
            if *rounding == "rtz" {
                worst = worst.max((gain / expected_gain - 1.0).abs());
                if expected_noise > 0.0 {
                    worst = worst.max((noise / expected_noise - 1.0).abs());
                }
            }
        }
        table.row(row);
    }
    for (rounding, gains) in ROUNDINGS.iter().zip(gains) {
        panel = panel.line(Series::new(*rounding, gains));
    }
    let picture = plot::Figure::new("Products of shortened numbers by rounding")
        .x(Axis::whole("mantissa bits"))
        .panel(panel);
    // Of fewer products the noise is known to within 5 % only.
    let allowed = if pairs < 1_000_000 { 0.05 } else { DEVIATION.bound() };
    let text = format!(
        "largest deviation from the expectations {:.2} %, of {pairs} products at most {:.0} %",
        100.0 * worst,
        100.0 * allowed
    );
    let verdict = Verdict::of_check(worst < allowed, text);
    let recipe: Recipe = "bitred-e8m3".parse().map_err(Error::from_cause)?;
    let about = format!(
        "In training the recipe is {recipe}: operands to bfloat16, then the mask; sums in f32."
    );
    let parts = vec![Part::Text(about), Part::Picture(picture), Part::Table(table)];
    Ok(Findings::of(verdict, parts))
}
