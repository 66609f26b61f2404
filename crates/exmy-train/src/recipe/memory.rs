//! What a recipe remembers from step to step: windows of largest magnitudes, and hot channels.
//!
//! Most recipes remember nothing. Two mechanisms do, and a run that is resumed goes on with the same bits
//! only if what they remember is kept with the weights: [`Memory::to_text`] and
//! [`Memory::from_text`]. An evaluation reads the memory and leaves it alone.
//!
//! **Delayed scaling** (MS-AMP, arXiv 2310.18313, `common/tensor/meta.py`): a tensor's scale is
//! `2^floor(log2(max / amax))` with the largest magnitude of the last N steps. Until N steps are over it is
//! that of the tensor itself. It stays as it was where `amax` is 0 or NaN; where it is infinite, it becomes the
//! reciprocal of what it was, as there.
//!
//! **Hot channels** ([`hot`](super::hot)): the set of an operator, the step of its choice and, where scores
//! are averaged, the average.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::nn::site::{Operand, Site};

/// A window of one operand.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Window {
    /// The step whose magnitude came last.
    step: u64,
    /// Largest magnitudes, the newest last.
    amax: Vec<f32>,
    /// What the tensor is divided by: a power of two.
    scale: f32,
}

impl Clone for Window {
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
pub(super) struct Hot {
    /// The step of the choice.
    pub(super) step: u64,
    /// The channels, ascending.
    pub(super) channels: Vec<u32>,
    /// Averaged scores, or none.
    pub(super) average: Vec<f64>,
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
pub struct Memory {
    pub(super) windows: BTreeMap<(Site, Operand), Window>,
    pub(super) hot: BTreeMap<Site, Hot>,
}

impl Clone for Memory {
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

impl Window {
    /// What a tensor of largest magnitude `amax` is divided by at a training step, or (`step` is `None`) at
    /// an evaluation.
    pub(super) fn scale(&mut self, step: Option<u64>, amax: f32, max: f32, length: usize) -> f32 {
        if self.amax.is_empty() {
            self.scale = 1.0;
        }
        let warm = self.amax.len() >= length;
        let Some(step) = step else {
            return if warm { self.scale } else { scale(self.scale, amax, max) };
        };
        // A second pass of the same step, or another product of it, sees the same scale.
        if !self.amax.is_empty() && self.step == step {
            return self.scale;
        }
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

impl Memory {
    /// The hot channels of each linear operator that has a patch.
    pub fn hot_channels(&self) -> impl Iterator<Item = (Site, &[u32])> {
        self.hot.iter().map(|(site, hot)| (*site, hot.channels.as_slice()))
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.hot.is_empty()
    }

    /// One line for each thing; numbers as their bits, so that none is lost. Empty if nothing is remembered.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for ((site, operand), window) in &self.windows {
            let _ = write!(
                text,
                "window {site} {operand} {} {:08x}",
                window.step,
                window.scale.to_bits()
            );
            for amax in &window.amax {
                let _ = write!(text, " {:08x}", amax.to_bits());
            }
            text.push('\n');
        }
        for (site, hot) in &self.hot {
            let _ = write!(text, "hot {site} {} {}", hot.step, hot.channels.len());
            for channel in &hot.channels {
                let _ = write!(text, " {channel}");
            }
            for score in &hot.average {
                let _ = write!(text, " {:016x}", score.to_bits());
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
                self.windows.insert((site, operand), Window { step, amax, scale });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 448 / amax of 100, 1000, 0, infinity and NaN: the powers 4, 1/4, ... by hand.
    #[test]
    fn a_window_of_one_scales_in_time() {
        let mut window = Window::default();
        let mut at = |step, amax| window.scale(Some(step), amax, 448.0, 1);
        assert_eq!(at(0, 100.0), 0.25);
        // From now on the scale is that of the step before.
        assert_eq!(at(1, 1000.0), 0.25);
        assert_eq!(at(2, 0.0), 4.0);
        assert_eq!(at(3, 448.0), 4.0);
        assert_eq!(at(4, f32::INFINITY), 1.0);
        assert_eq!(at(5, 896.0), 1.0);
        assert_eq!(at(6, f32::NAN), 2.0);
        assert_eq!(at(7, f32::INFINITY), 2.0);
        assert_eq!(at(8, 1.0), 0.5);
        assert_eq!(at(8, 5000.0), 0.5);
    }

    #[test]
    fn a_window_of_three_warms_up_and_forgets() {
        let mut window = Window::default();
        let scales: Vec<f32> = [448.0, 100.0, 3000.0, 1.0, 1.0, 1.0, 1.0]
            .into_iter()
            .enumerate()
            .map(|(step, amax)| window.scale(Some(step as u64), amax, 448.0, 3))
            .collect();
        // In time for three steps; then 3000 rules until it has left.
        assert_eq!(scales, [1.0, 0.25, 8.0, 8.0, 8.0, 8.0, 1.0 / 256.0]);
        assert_eq!(window.scale(None, 5000.0, 448.0, 3), 1.0 / 256.0);
    }

    #[test]
    fn memory_reads_back_bit_for_bit() {
        let mut memory = Memory::default();
        assert_eq!(memory.to_text(), "");
        let site: Site = "layers.3.gate_proj".parse().unwrap();
        let window = Window { step: 9, amax: vec![0.1, f32::MAX], scale: 0.25 };
        memory.windows.insert((site, Operand::Input), window);
        let hot = Hot { step: 100, channels: vec![0, 17], average: vec![0.1, 1e-300] };
        memory.hot.insert("lm_head".parse().unwrap(), hot);
        let text = memory.to_text();
        assert_eq!(Memory::from_text(&text), Ok(memory));
        assert!(Memory::from_text("hot lm_head 3 2 1").is_err());
        assert!(Memory::from_text("cold lm_head").unwrap_err().contains("cold"));
    }
}
