//! Tensors between operators.
//!
//! | probe | part | is |
//! |---|---|---|
//! | `gates` | `layers.N.min`, `.max` | of the logits z of the decay gate: range |
//! | | `.p001`, `.p999` | their 0.1st and 99.9th percentile |
//! | | `layers.N.closed`, `.open` | shares of decays `sigmoid(z)^(1 / tau)` below 0.01 and above 0.999 |
//! | `logits` | `max` | the largest magnitude of the head's logits, also the value |
//! | | `logsumexp2` | mean square of `ln sum exp` of each token's |
//! | `activations` | `layers.N.PLACE.mean`, `.sd` | mean and deviation |
//!
//! The value of `gates` is the largest magnitude of z, that of `activations` the mean deviation. Their places
//! are `norm_output`, `activation_output` and `residual`.

use super::moments::{Powers, elements, quantile, sorted};
use super::{Key, Of, Probe, Snapshot, Values};
use crate::nn::decoder::Mixer;
use crate::nn::model;
use crate::nn::site::Place;
use crate::recipe::Observer;
use exmy::slice::View;
use std::collections::BTreeMap;

/// `gates`.
pub struct Gates {
    tau: f64,
    seen: Values,
    most: f64,
}

impl Gates {
    pub fn new(model: &model::Config) -> Result<Self, String> {
        let config = model.decoder().filter(|config| config.mixer.any(Mixer::Gla, config.layers));
        let config = config.ok_or("the model has no gated linear attention")?;
        Ok(Self { tau: config.gla.gate_tau, seen: Values::default(), most: f64::NAN })
    }
}

impl Observer for Gates {
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        let (Some(layer), Place::DecayGate, false) = (layer, place, gradient) else { return };
        let z = sorted(elements(values).collect());
        // The decay grows with z: shares are those of z below and above one number.
        let decay = |z: f64| libm::exp(-libm::log1p(libm::exp(-z)) / self.tau);
        let closed = z.partition_point(|&z| decay(z) < 0.01);
        let open = z.len() - z.partition_point(|&z| decay(z) <= 0.999);
        let count = z.len() as f64;
        for (part, value) in [
            ("min", quantile(&z, 0.0)),
            ("max", quantile(&z, 1.0)),
            ("p001", quantile(&z, 0.001)),
            ("p999", quantile(&z, 0.999)),
            ("closed", closed as f64 / count),
            ("open", open as f64 / count),
        ] {
            self.seen.part(Key::new(Of::Layer(layer), part), value);
        }
        self.most = self.most.max(quantile(&z, 0.0).abs()).max(quantile(&z, 1.0).abs());
    }
}

impl Probe for Gates {
    fn name(&self) -> &str {
        "gates"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        *values = std::mem::take(&mut self.seen);
        values.set(std::mem::replace(&mut self.most, f64::NAN));
    }
}

/// `logits`.
#[derive(Default)]
pub struct Logits {
    most: f64,
    squares: f64,
    rows: f64,
}

impl Observer for Logits {
    fn place(&mut self, _: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        if place != Place::Logits || gradient {
            return;
        }
        for i in 0..values.rows() {
            let row = || (0..values.cols()).map(|j| f64::from(values.at(i, j)));
            let most = row().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row().map(|x| libm::exp(x - most)).sum();
            let log = most + libm::log(sum);
            self.squares += log * log;
            self.rows += 1.0;
            self.most = row().fold(self.most, |most, x| most.max(x.abs()));
        }
    }
}

impl Probe for Logits {
    fn name(&self) -> &str {
        "logits"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        let Self { most, squares, rows } = std::mem::take(self);
        if rows > 0.0 {
            values.set(most);
            values.part("max", most);
            values.part("logsumexp2", squares / rows);
        }
    }
}

/// `activations`.
#[derive(Default)]
pub struct Spread {
    seen: BTreeMap<Key, Powers>,
}

impl Observer for Spread {
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        let watched = [Place::NormOutput, Place::ActivationOutput, Place::Residual];
        if !gradient && watched.contains(&place) {
            // Some places of a layer are shown in parts.
            let powers = self.seen.entry(Key::new(Of::Place(layer, place), "")).or_default();
            *powers = powers.and(&Powers::of(elements(values)));
        }
    }
}

impl Probe for Spread {
    fn name(&self) -> &str {
        "activations"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        let (mut sum, mut count) = (0.0, 0.0);
        for (place, powers) in std::mem::take(&mut self.seen) {
            let sd = powers.variance().sqrt();
            values.part(Key::new(place.of().clone(), "mean"), powers.mean());
            values.part(Key::new(place.of().clone(), "sd"), sd);
            (sum, count) = (sum + sd, count + 1.0);
        }
        values.set(sum / count);
    }
}
