//! What makes a configuration a model, and what to answer where it makes none.

use std::fmt;

use crate::nn::hadamard;

use super::{Config, Mixer, Norm, NormPlace, Position, Scaling};

/// Why a [`Config`] is no model: the key, what it holds, what would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    key: &'static str,
    found: String,
    works: String,
}

impl ConfigError {
    pub(crate) fn new(
        key: &'static str,
        found: impl fmt::Display,
        works: impl Into<String>,
    ) -> Self {
        Self { key, found: found.to_string(), works: works.into() }
    }

    /// The key that is wrong.
    pub fn key(&self) -> &'static str {
        self.key
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model: {} is {}; it must be {}", self.key, self.found, self.works)
    }
}

impl std::error::Error for ConfigError {}

/// No size of a model that a person means exceeds this; products of two sizes then fit a `usize`.
pub const LARGEST: usize = 1 << 24;

/// Refuses a size that is none.
pub(crate) fn size(key: &'static str, size: usize) -> Result<(), ConfigError> {
    match size {
        1..=LARGEST => Ok(()),
        _ => Err(ConfigError::new(key, size, format!("from 1 to {LARGEST}"))),
    }
}

impl Config {
    /// Whether these sizes make a model.
    ///
    /// # Errors
    /// Names the first key that does not fit, what it holds and what would work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        size("vocab", self.vocab)?;
        size("context", self.context)?;
        size("layers", self.layers)?;
        size("d_model", self.d_model)?;
        size("heads", self.heads)?;
        size("kv_heads", self.kv_heads)?;
        size("hidden", self.hidden)?;
        if self.rotate_down.is_some() && !hadamard::is_known(self.hidden) {
            return Err(ConfigError::new("hidden", self.hidden, hadamard::ORDERS));
        }
        // Where no layer attends by softmax its heads are not looked at.
        if self.mixer.any(Mixer::Attention, self.layers) {
            self.validate_attention()?;
        }
        if self.mixer.any(Mixer::Gla, self.layers) {
            self.validate_gla()?;
        }
        self.validate_norms()?;
        let tables = (self.vocab + self.context) as u128 * self.d_model as u128;
        let used = |mixer: &Mixer| self.mixer.any(*mixer, self.layers);
        let mixers = [Mixer::Attention, Mixer::Gla].into_iter().filter(used);
        let block = mixers.map(|mixer| self.block_weights(mixer) as u128).max().unwrap_or(0);
        let all = block * self.layers as u128 + 2 * tables;
        if all > 1 << 40 {
            let works = "fewer: the model would have more than 2^40 parameters";
            return Err(ConfigError::new("layers", self.layers, works));
        }
        Ok(())
    }

    fn validate_attention(&self) -> Result<(), ConfigError> {
        if self.head_dim > 0 {
            size("head_dim", self.head_dim)?;
            if self.heads.saturating_mul(self.head_dim) > LARGEST {
                let works = format!("at most {}, with {} heads", LARGEST / self.heads, self.heads);
                return Err(ConfigError::new("head_dim", self.head_dim, works));
            }
        } else if !self.d_model.is_multiple_of(self.heads) {
            let works = divisors(self.d_model);
            let works = format!("a divisor of d_model = {}: {works}", self.d_model);
            return Err(ConfigError::new("heads", self.heads, works));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let works = format!("a divisor of heads = {}: {}", self.heads, divisors(self.heads));
            return Err(ConfigError::new("kv_heads", self.kv_heads, works));
        }
        if let Position::Rope { base } = self.position {
            if !(base >= 1.0 && base.is_finite()) {
                let works = "learned, none, or rope with a finite base of at least 1";
                return Err(ConfigError::new("position", self.position, works));
            }
            if !self.head_dim.is_multiple_of(2) {
                let works = "even for position = \"rope\"";
                return Err(ConfigError::new("head_dim", self.head_dim, works));
            }
            if !self.head_dim().is_multiple_of(2) {
                let works = format!(
                    "such that d_model / heads is even for position = \"rope\" \
                     (it is {} / {} = {})",
                    self.d_model,
                    self.heads,
                    self.head_dim()
                );
                return Err(ConfigError::new("heads", self.heads, works));
            }
        }
        self.validate_scaling()
    }

    fn validate_scaling(&self) -> Result<(), ConfigError> {
        let wrong = |key, found: f64, works: &str| Err(ConfigError::new(key, found, works));
        let (Scaling::Linear { factor } | Scaling::Llama3 { factor, .. }) = self.rope_scaling
        else {
            return Ok(());
        };
        if !matches!(self.position, Position::Rope { .. }) {
            let works = "rope with rope_scaling";
            return Err(ConfigError::new("position", self.position, works));
        }
        if !(factor >= 1.0 && factor.is_finite()) {
            return wrong("rope_scaling.factor", factor, "finite and at least 1");
        }
        if let Scaling::Llama3 { low, high, context, .. } = self.rope_scaling {
            if !(low > 0.0 && low.is_finite()) {
                return wrong("rope_scaling.low", low, "finite and above 0");
            }
            if !(high > low && high.is_finite()) {
                return wrong("rope_scaling.high", high, "finite and above rope_scaling.low");
            }
            if !(context >= 1.0 && context.is_finite()) {
                return wrong("rope_scaling.context", context, "finite and at least 1");
            }
        }
        Ok(())
    }

    fn validate_gla(&self) -> Result<(), ConfigError> {
        let gla = &self.gla;
        size("gla.heads", gla.heads)?;
        size("gla.gate_rank", gla.gate_rank)?;
        let widths = [("gla.expand_k", gla.expand_k), ("gla.expand_v", gla.expand_v)];
        for (key, part) in widths {
            let width = self.d_model as f64 * part;
            let whole = (1.0..=LARGEST as f64).contains(&width) && width as usize as f64 == width;
            if !(whole && (width as usize).is_multiple_of(gla.heads)) {
                let works = format!(
                    "such that its product with d_model = {} is a whole number of equal heads \
                     (gla.heads = {})",
                    self.d_model, gla.heads
                );
                return Err(ConfigError::new(key, part, works));
            }
        }
        if !(gla.gate_tau > 0.0 && gla.gate_tau.is_finite()) {
            return Err(ConfigError::new("gla.gate_tau", gla.gate_tau, "above 0 and finite"));
        }
        if !(gla.gate_min <= 0.0 && gla.gate_min.is_finite()) {
            let works = "a finite logarithm below 0, or 0 for none";
            return Err(ConfigError::new("gla.gate_min", gla.gate_min, works));
        }
        Ok(())
    }

    fn validate_norms(&self) -> Result<(), ConfigError> {
        if !(self.norm_eps > 0.0 && self.norm_eps < 1.0) {
            return Err(ConfigError::new("norm_eps", self.norm_eps, "above 0 and below 1"));
        }
        if self.norm == Norm::RmsNorm && self.norm_bias {
            return Err(ConfigError::new("norm_bias", true, "false with norm = \"rms-norm\""));
        }
        if self.norm_bias && !self.norm_affine {
            return Err(ConfigError::new("norm_bias", true, "false with norm_affine = false"));
        }
        if !self.gain_init.is_finite() {
            return Err(ConfigError::new("gain_init", self.gain_init, "finite"));
        }
        if !(self.gain_spread >= 0.0 && self.gain_spread.is_finite()) {
            return Err(ConfigError::new("gain_spread", self.gain_spread, "at least 0"));
        }
        if self.hot_channels > self.d_model || (self.hot_channels > 0 && !self.norm_affine) {
            let works = "at most d_model, and 0 with norm_affine = false";
            return Err(ConfigError::new("hot_channels", self.hot_channels, works));
        }
        if self.hot_channels > 0 && self.norm_place == NormPlace::After {
            let works = "0 with norm_place = \"after\", where no linear operator reads a norm";
            return Err(ConfigError::new("hot_channels", self.hot_channels, works));
        }
        if !(self.hot_scale > 0.0 && self.hot_scale.is_finite()) {
            return Err(ConfigError::new("hot_scale", self.hot_scale, "above 0 and finite"));
        }
        Ok(())
    }
}

/// The divisors of a size, for the person who must choose one.
fn divisors(size: usize) -> String {
    let all: Vec<_> = (1..=size.min(1 << 12)).filter(|n| size.is_multiple_of(*n)).collect();
    all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}
