//! How far the gradient of a recipe is from that of f32.
//!
//! With `g` the recipe's gradient and `h` that of f32, both before clipping:
//!
//! | probe | is |
//! |---|---|
//! | `rho` | `|g - h| / |h|`, a lower bound of the norm of `zeta` in `g = (1 + zeta) h` |
//! | `cos` | `<g, h> / (|g| |h|)` |
//! | `eps` | `mean(g) - mean(h)`; part `bound`: `|g| + |h|`, which `|g - h|` cannot exceed |
//!
//! `_same`: `h` is of the same batch at the same weights. `_traj`: `h` is of the same step of a twin that
//! trains in f32 from the beginning. The value is of all parameters together, the parts of each tensor.
//!
//! Source: arXiv 2506.20752. Its code measures `_traj` and keeps the square of rho (`2 / rho^2` is its
//! `rhs_2_over_sigma2`). As there, 1e-12 is added to the square of `|h|` and to the product of the norms,
//! so a tensor whose `|h|` is near 1e-6 has a smaller rho.
//!
//! The twin trains betas of norms even where the recipe gives them no gradient, as `mxpaper` does. For
//! these tensors rho is 1.

use super::{Needs, Probe, Snapshot, Values};
use crate::nn::loss::mean;

/// What the study's code adds to denominators.
const LITTLE: f64 = 1e-12;

/// Squares of the norms of `g`, `h` and `g - h`, and the product of `g` and `h`.
fn sums(g: &[f32], h: &[f32]) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for (&g, &h) in g.iter().zip(h) {
        let (g, h) = (f64::from(g), f64::from(h));
        for (sum, term) in sums.iter_mut().zip([g * g, h * h, (g - h) * (g - h), g * h]) {
            *sum += term;
        }
    }
    sums
}

pub fn rho(g: &[f32], h: &[f32]) -> f64 {
    let [_, h, difference, _] = sums(g, h);
    (difference / (h + LITTLE)).sqrt()
}

pub fn cosine(g: &[f32], h: &[f32]) -> f64 {
    let [g, h, _, product] = sums(g, h);
    product / (g.sqrt() * h.sqrt() + LITTLE)
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rho,
    Cos,
    Eps,
}

/// One of the six.
pub(super) struct Bias {
    pub(super) by: By,
    pub(super) twin: bool,
}

impl Bias {
    fn figure(&self, g: &[f32], h: &[f32]) -> f64 {
        match self.by {
            By::Rho => rho(g, h),
            By::Cos => cosine(g, h),
            By::Eps => mean(g) - mean(h),
        }
    }
}

impl Probe for Bias {
    fn name(&self) -> &str {
        match (self.by, self.twin) {
            (By::Rho, false) => "rho_same",
            (By::Cos, false) => "cos_same",
            (By::Eps, false) => "eps_same",
            (By::Rho, true) => "rho_traj",
            (By::Cos, true) => "cos_traj",
            (By::Eps, true) => "eps_traj",
        }
    }

    fn needs(&self) -> Needs {
        Needs { shadow: !self.twin, twin: self.twin, ..Needs::default() }
    }

    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values) {
        let Some(other) = (if self.twin { seen.twin } else { seen.shadow }) else { return };
        values.set(self.figure(seen.grads, other));
        for entry in seen.layout.iter() {
            let range = entry.range.clone();
            values
                .part(entry.name.as_str(), self.figure(&seen.grads[range.clone()], &other[range]));
        }
        if self.by == By::Eps {
            let [g, h, ..] = sums(seen.grads, other);
            values.part("bound", g.sqrt() + h.sqrt());
        }
    }
}
