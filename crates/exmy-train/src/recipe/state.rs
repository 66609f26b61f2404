//! What a recipe remembers from step to step: windows of largest magnitudes, and hot channels.
//!
//! Most recipes remember nothing. Two mechanisms do, and a run that is resumed goes on with the same bits
//! only if what they remember is kept with the weights: [`RecipeState::to_text`] and
//! [`RecipeState::from_text`]. An evaluation reads the memory and leaves it alone.
//!
//! **Delayed scaling** (MS-AMP, arXiv 2310.18313, `common/tensor/meta.py`): a tensor's scale is
//! `2^floor(log2(max / amax))` with the largest magnitude of the last N steps. Until N steps are over it is
//! that of the tensor itself. It stays as it was where `amax` is 0 or NaN; where it is infinite, it becomes
//! the reciprocal of what it was, as there.
//!
//! **Hot channels** ([`hot`](super::hot)): the set of an operator, the step of its choice and, where scores
//! are averaged, the average.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::nn::site::{Operand, Site};

/// A window of one operand.
#[derive(Debug, Default, PartialEq)]
pub struct ScaleWindow {
    /// The step whose magnitude came last.
    pub step: u64,
    /// Largest magnitudes, the newest last.
    pub amax: Vec<f32>,
    /// What the tensor is divided by: a power of two.
    pub scale: f32,
}

impl Clone for ScaleWindow {
    fn clone(&self) -> Self {
        Self { amax: self.amax.clone(), ..*self }
    }

    fn clone_from(&mut self, other: &Self) {
        (self.step, self.scale) = (other.step, other.scale);
        self.amax.clear();
        // Until a window is full, it grows.
        self.amax.reserve_exact(other.amax.capacity());
        self.amax.extend_from_slice(&other.amax);
    }
}

/// Hot channels of one operator.
#[derive(Debug, Default, PartialEq)]
pub struct Hot {
    /// The step of the choice.
    pub step: u64,
    /// The channels, ascending.
    pub channels: Vec<u32>,
    /// Averaged scores, or none.
    pub average: Vec<f64>,
}

impl Clone for Hot {
    fn clone(&self) -> Self {
        Self { step: self.step, channels: self.channels.clone(), average: self.average.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.step = other.step;
        self.channels.clone_from(&other.channels);
        self.average.clone_from(&other.average);
    }
}

/// Windows and hot channels; see the [module](self).
#[derive(Debug, Default, PartialEq)]
pub struct RecipeState {
    /// Windows of operands whose scales are delayed.
    pub windows: BTreeMap<(Site, Operand), ScaleWindow>,
    /// Hot channels of operators.
    pub hot: BTreeMap<Site, Hot>,
}

impl Clone for RecipeState {
    fn clone(&self) -> Self {
        Self { windows: self.windows.clone(), hot: self.hot.clone() }
    }

    /// In the memory that is there, where both remember the same things: so it is step after step.
    fn clone_from(&mut self, other: &Self) {
        fn copy<K: Ord + Clone, V: Clone>(to: &mut BTreeMap<K, V>, from: &BTreeMap<K, V>) {
            if !to.keys().eq(from.keys()) {
                to.clone_from(from);
                return;
            }
            to.values_mut().zip(from.values()).for_each(|(to, from)| to.clone_from(from));
        }
        copy(&mut self.windows, &other.windows);
        copy(&mut self.hot, &other.hot);
    }
}

/// The bits that files have of a number: for every NaN those of the one that the library writes. A CPU and a
/// GPU make NaNs of different signs and payloads, and a resume would carry them on.
#[inline]
pub fn stored_bits(x: f32) -> u32 {
    if x.is_nan() { 0x7FC0_0000 } else { x.to_bits() }
}

/// As [`stored_bits`], of an f64.
fn stored_bits_of_f64(x: f64) -> u64 {
    if x.is_nan() { 0x7FF8_0000_0000_0000 } else { x.to_bits() }
}

/// The smallest power of two that is at least `amax / max`, both positive and finite.
fn power_above(amax: f32, max: f32) -> f32 {
    let (amax, max) = (f64::from(amax), f64::from(max));
    let mut k = libm::ilogb(amax) - libm::ilogb(max);
    if amax > libm::ldexp(max, k) {
        k += 1;
    }
    libm::ldexp(1.0, k) as f32
}

/// The scale after one that was `before`.
fn scale(before: f32, amax: f32, max: f32) -> f32 {
    if amax.is_infinite() {
        1.0 / before
    } else if amax > 0.0 {
        power_above(amax, max)
    } else {
        before
    }
}

impl ScaleWindow {
    /// What a tensor of largest magnitude `amax` is divided by at a training step, or (`step` is `None`) at
    /// an evaluation. `amax` is asked for only where it matters.
    pub fn scale(
        &mut self,
        step: Option<u64>,
        amax: impl FnOnce() -> f32,
        max: f32,
        length: usize,
    ) -> f32 {
        if self.amax.is_empty() {
            self.scale = 1.0;
        }
        let warm = self.amax.len() >= length;
        let Some(step) = step else {
            return if warm { self.scale } else { scale(self.scale, amax(), max) };
        };
        // A second pass of the same step, or another product of it, sees the same scale.
        if !self.amax.is_empty() && self.step == step {
            return self.scale;
        }
        let amax = amax();
        self.scale = if warm {
            let largest =
                self.amax.iter().fold(0.0_f32, |a, &b| if b.is_nan() { b } else { a.max(b) });
            scale(self.scale, largest, max)
        } else {
            scale(self.scale, amax, max)
        };
        if warm {
            self.amax.remove(0);
        } else {
            self.amax.reserve_exact(length - self.amax.len());
        }
        self.amax.push(amax);
        self.step = step;
        self.scale
    }
}

impl RecipeState {
    /// The hot channels of each linear operator that has a patch.
    pub fn hot_channels(&self) -> impl Iterator<Item = (Site, &[u32])> {
        self.hot.iter().map(|(site, hot)| (*site, hot.channels.as_slice()))
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.hot.is_empty()
    }

    /// One line for each thing; numbers as their [bits](stored_bits), so that none is lost. Empty if nothing
    /// is remembered.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for ((site, operand), window) in &self.windows {
            let _ = write!(text, "window {site} {operand} {}", window.step);
            for &number in [&window.scale].into_iter().chain(&window.amax) {
                let _ = write!(text, " {:08x}", stored_bits(number));
            }
            text.push('\n');
        }
        for (site, hot) in &self.hot {
            let _ = write!(text, "hot {site} {} {}", hot.step, hot.channels.len());
            for channel in &hot.channels {
                let _ = write!(text, " {channel}");
            }
            for &score in &hot.average {
                let _ = write!(text, " {:016x}", stored_bits_of_f64(score));
            }
            text.push('\n');
        }
        text
    }

    /// Reads [`to_text`](Self::to_text).
    ///
    /// # Errors
    /// The line that is not of that form.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut memory = Self::default();
        for line in text.lines() {
            let read = memory.read(line);
            read.ok_or_else(|| format!("{line:?} is nothing that a recipe remembers"))?;
        }
        Ok(memory)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let float = |word: &str| u32::from_str_radix(word, 16).ok().map(f32::from_bits);
        let mut words = line.split(' ');
        match words.next()? {
            "window" => {
                let (site, operand) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let step = words.next()?.parse().ok()?;
                let scale = float(words.next()?)?;
                let amax = words.map(float).collect::<Option<_>>()?;
                self.windows.insert((site, operand), ScaleWindow { step, amax, scale });
            }
            "hot" => {
                let site = words.next()?.parse().ok()?;
                let step = words.next()?.parse().ok()?;
                let count: usize = words.next()?.parse().ok()?;
                let channel = |word: &str| word.parse().ok();
                let channels =
                    words.by_ref().take(count).map(channel).collect::<Option<Vec<u32>>>()?;
                let score = |word| u64::from_str_radix(word, 16).ok().map(f64::from_bits);
                let average = words.map(score).collect::<Option<_>>()?;
                if channels.len() != count {
                    return None;
                }
                self.hot.insert(site, Hot { step, channels, average });
            }
            _ => return None,
        }
        Some(())
    }
}
