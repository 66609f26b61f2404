//! Axes: from values to positions, and where the ticks go.
//!
//! Ticks stand at 1, 2 or 5 times a power of ten (Heckbert, "Nice numbers for graph labels",
//! Graphics Gems, 1990), held as an integer and an exponent so that a label is exact and never
//! reads `0.30000000000000004`.

use super::number::{
    decade, decimal, exp10, floor, log10, plain_label, power_label, power_of_ten, short,
};
use std::{format, string::String, vec::Vec};

/// How one direction of a figure is labelled and scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) label: String,
    pub(super) log: bool,
    pub range: Option<(f64, f64)>,
    pub(super) include: Vec<f64>,
    names: Vec<String>,
    whole: bool,
}

impl Axis {
    /// A linear axis; the label names the quantity and its unit, as in `loss (nats/byte)`.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            log: false,
            range: None,
            include: Vec::new(),
            names: Vec::new(),
            whole: false,
        }
    }

    /// A linear axis of counts, as of bits or layers: ticks stand at whole numbers alone.
    pub fn whole(label: impl Into<String>) -> Self {
        Self { whole: true, ..Self::linear(label) }
    }

    /// A logarithmic axis. Values that are not positive have no place on it and are marked as
    /// missing, like NaN.
    pub fn log(label: impl Into<String>) -> Self {
        Self { log: true, ..Self::linear(label) }
    }

    /// An axis of categories, which have the values 0, 1, 2, ... in the order of their names; the first
    /// stands at the left or at the bottom. Of many categories only some are labelled.
    pub fn categories(
        label: impl Into<String>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let last = names.len().max(1) as f64 - 0.5;
        Self { range: Some((-0.5, last)), names, ..Self::linear(label) }
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Whether it has categories.
    pub fn is_categorical(&self) -> bool {
        !self.names.is_empty()
    }

    /// What a place is called: its category, or its value to four digits.
    pub fn name(&self, value: f64) -> String {
        let near = floor(value + 0.5);
        let index = if near >= 0.0 { near as usize } else { usize::MAX };
        self.names.get(index).cloned().unwrap_or_else(|| short(value))
    }

    /// About `target` ticks with labels, at most that many of categories.
    pub fn ticks(&self, scale: &Scale, target: usize) -> Ticks {
        if self.whole {
            return linear_ticks(scale.low, scale.high, target.max(2), 1.0);
        }
        if !self.is_categorical() {
            return scale.ticks(target);
        }
        let stride = self.names.len().div_ceil(target.max(1));
        let tick = |(i, name): (usize, &String)| Tick {
            value: i as f64,
            label: i.is_multiple_of(stride).then(|| name.clone()),
        };
        let ticks = self.names.iter().enumerate().map(tick);
        Ticks { ticks: ticks.filter(|tick| scale.contains(tick.value)).collect(), factor: 0 }
    }

    /// Shows exactly `low..=high` and clips what lies outside, instead of fitting the data.
    ///
    /// # Panics
    /// Unless both are finite and `low < high`, and `low > 0` on a logarithmic axis.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        assert!(
            low.is_finite() && high.is_finite() && low < high && (low > 0.0 || !self.log),
            "axis `{}`: cannot show {low}..={high}",
            self.label
        );
        self.range = Some((low, high));
        self
    }

    /// Makes sure that a fitted range contains `value`, for example 0 for a difference.
    #[must_use]
    pub fn include(mut self, value: f64) -> Self {
        self.include.push(value);
        self
    }

    /// The range to draw for these data: fixed, or fitted and then widened by these shares of its
    /// width below and above.
    pub fn fit(&self, data: impl Iterator<Item = f64>, margin: [f64; 2]) -> Scale {
        let (low, high) = self.range.unwrap_or_else(|| {
            let mut bounds: Option<(f64, f64)> = None;
            for value in data.chain(self.include.iter().copied()).filter(|&v| shows(v, self.log)) {
                let (low, high) = bounds.unwrap_or((value, value));
                bounds = Some((
                    if value < low { value } else { low },
                    if value > high { value } else { high },
                ));
            }
            match bounds {
                None if self.log => (1.0, 10.0),
                None => (0.0, 1.0),
                Some((low, high)) if self.log => widen_log(low, high, margin),
                Some((low, high)) => widen_linear(low, high, margin),
            }
        });
        Scale { low, high, log: self.log }
    }
}

fn shows(value: f64, log: bool) -> bool {
    value.is_finite() && (!log || value > 0.0)
}

/// Adds the margin; a (nearly) constant series is shown in the middle of 10 % of its value.
///
/// Below a relative width of 1e-9 tick labels would need ten digits and positions would show
/// the rounding of f64 rather than the data.
fn widen_linear(low: f64, high: f64, margin: [f64; 2]) -> (f64, f64) {
    let size = if high > -low { high.abs() } else { low.abs() };
    if size < 1e-290 {
        return (-1.0, 1.0);
    }
    let half = high / 2.0 - low / 2.0;
    let pad =
        margin.map(|share| if half < size * 1e-9 { size * 0.05 } else { half * (2.0 * share) });
    ((low - pad[0]).clamp(-f64::MAX, f64::MAX), (high + pad[1]).clamp(-f64::MAX, f64::MAX))
}

/// As [`widen_linear`] in factors: at least a factor of 1.1 is shown.
fn widen_log(low: f64, high: f64, margin: [f64; 2]) -> (f64, f64) {
    let decades = log10(high) - log10(low);
    let pad = margin.map(|share| if decades < 1e-9 { 1.05 } else { exp10(decades * share) });
    let (low, high) = (low / pad[0], high * pad[1]);
    // Among subnormals a tenth of a value may be no value: the range is opened up to normal ones.
    (
        if low > 0.0 { low } else { f64::from_bits(1) },
        if high < 1e-290 { 1e-290 } else { high.clamp(0.0, f64::MAX) },
    )
}

/// A tick: where, and what is written there (`None` for a grid line without text).
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: Option<String>,
}

/// Ticks, and the power of ten that was taken out of all labels (0: none).
#[derive(Clone, Debug, PartialEq)]
pub struct Ticks {
    pub ticks: Vec<Tick>,
    pub factor: i32,
}

/// A fitted axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    pub log: bool,
}

impl Scale {
    /// The place of `value`: 0 at the low end, 1 at the high end.
    pub fn unit(&self, value: f64) -> f64 {
        if self.log {
            let low = log10(self.low);
            (log10(value) - low) / (log10(self.high) - low)
        } else {
            // Halves, because `high - low` of two large numbers may overflow.
            (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
        }
    }

    /// Whether a value has a place on this axis, inside the drawn range or not.
    pub(super) fn shows(&self, value: f64) -> bool {
        shows(value, self.log)
    }

    /// Whether a value lies within the drawn range.
    pub(super) fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// About `target` ticks with labels, at least two where there is space for digits; on a logarithmic axis
    /// also silent ones between them. None if the range is too narrow for f64 arithmetic.
    pub fn ticks(&self, target: usize) -> Ticks {
        let labelled = |ticks: &Ticks| ticks.ticks.iter().filter(|t| t.label.is_some()).count();
        let first = self.some_ticks(target.max(2));
        // Steps of 1, 2 and 5 may leave one place alone in a narrow range, from which nobody reads a value.
        let more = (3..12).map(|target| self.some_ticks(target));
        let more = || more.into_iter().find(|ticks| labelled(ticks) > 1);
        if labelled(&first) > 1 { first } else { more().unwrap_or(first) }
    }

    fn some_ticks(&self, target: usize) -> Ticks {
        if !self.log {
            return linear_ticks(self.low, self.high, target, 0.0);
        }
        let decades = log10(self.high) - log10(self.low);
        if decades < 1.0 {
            let even = linear_ticks(self.low, self.high, target, 0.0);
            return self.within_a_decade().filter(|_| !self.is_read_below(&even)).unwrap_or(even);
        }
        let (first, last) = (decade(self.low), decade(self.high));
        let labelled: &[i64] = match target as f64 / decades {
            space if space >= 3.0 => &[1, 2, 5],
            space if space >= 2.0 => &[1, 3],
            _ => &[1],
        };
        let stride = (floor((decades - 1e-9) / target as f64) as i32 + 1).max(1);
        let plain = self.low >= 1e-4 && self.high < 1e6;
        let mut ticks = Vec::new();
        for k in first..=last {
            for n in 1..=9_i64 {
                let value = decimal(n, k);
                if !self.contains(value) || (stride > 1 && n > 1) {
                    continue;
                }
                let text = labelled.contains(&n) && k.rem_euclid(stride) == 0;
                if stride > 5 && !text {
                    continue;
                }
                let label = text.then(|| if plain { plain_label(n, k) } else { power_label(n, k) });
                ticks.push(Tick { value, label });
            }
        }
        Ticks { ticks, factor: 0 }
    }

    /// Whether a label stands in the lower third.
    fn is_read_below(&self, ticks: &Ticks) -> bool {
        ticks.ticks.iter().any(|tick| tick.label.is_some() && self.unit(tick.value) < 1.0 / 3.0)
    }

    /// Ticks at about the same distance on a logarithmic axis of less than a decade, if they leave no third
    /// of it empty: evenly spaced values crowd at its top.
    fn within_a_decade(&self) -> Option<Ticks> {
        let is_plain = self.low >= 1e-3 && self.high < 1e6;
        let decades = if is_plain { decade(self.low)..=decade(self.high) } else { return None };
        let tick = |tenths: i64, k: i32| {
            let (n, k) = if tenths % 10 == 0 { (tenths / 10, k) } else { (tenths, k - 1) };
            Tick { value: decimal(n, k), label: Some(plain_label(n, k)) }
        };
        let all = decades.flat_map(|k| [10, 15, 20, 30, 50, 70].map(|tenths| tick(tenths, k)));
        let ticks = Ticks { ticks: all.filter(|t| self.contains(t.value)).collect(), factor: 0 };
        (ticks.ticks.len() > 1 && self.is_read_below(&ticks)).then_some(ticks)
    }
}

/// About `target` ticks, at least `least` apart.
fn linear_ticks(low: f64, high: f64, target: usize, least: f64) -> Ticks {
    let raw = (high / 2.0 - low / 2.0) / target as f64 * 2.0;
    let raw = if raw < least { least } else { raw };
    if raw < 1e-305 {
        return Ticks { ticks: Vec::new(), factor: 0 };
    }
    let (mut n, mut k) = (1, decade(raw));
    // A step short by rounding alone counts as enough.
    while decimal(n, k) < raw * (1.0 - 1e-9) {
        (n, k) = match n {
            1 => (2, k),
            2 => (5, k),
            _ => (1, k + 1),
        };
    }
    if decimal(n, k) > f64::MAX / 2.0 {
        (n, k) = (5, 307);
    }
    let step = decimal(n, k);
    // One count of slack for the quotient's rounding; `contains` decides.
    let (first, last) = (floor(low / step) as i64 - 1, floor(high / step) as i64 + 1);
    let size = if high > -low { high.abs() } else { low.abs() };
    let exponent = decade(size);
    let factor = if (-4..6).contains(&exponent) { 0 } else { exponent.div_euclid(3) * 3 };
    let ticks = (first..=last)
        .map(|i| (i * n, decimal(i * n, k)))
        .filter(|&(_, value)| low <= value && value <= high)
        .map(|(count, value)| Tick { value, label: Some(plain_label(count, k - factor)) })
        .collect();
    Ticks { ticks, factor }
}

/// An axis label with the power of ten taken out of its ticks.
pub(super) fn with_factor(label: &str, factor: i32) -> String {
    match factor {
        0 => label.into(),
        _ if label.is_empty() => format!("×{}", power_of_ten(factor)),
        _ => format!("{label} ×{}", power_of_ten(factor)),
    }
}
