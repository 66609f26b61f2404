//! How far the gradient of a recipe is from that of f32, at the same weights and for the same batch.
//!
//! With `g` the recipe's gradient and `h` the shadow one, of all parameters together and before
//! clipping: `rho_same = |g - h| / |h|`, a lower bound of the multiplicative bias `zeta` in `g = (1 +
//! zeta) h`, and `cos_same = <g, h> / (|g| |h|)` ("Characterization and Mitigation of Training
//! Instabilities in Microscaling Formats", arXiv 2506.20752, whose code adds 1e-12 to denominators:
//! to the square of |h|, and to the product of the norms). The shadow gradient takes a forward and a
//! backward pass in f32 wherever it is measured, about another step. Sums in f64, from the first
//! parameter to the last.

use super::{Needs, Probe, Seen};

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

fn rho(g: &[f32], h: &[f32]) -> f64 {
    let [_, h, difference, _] = sums(g, h);
    (difference / (h + LITTLE)).sqrt()
}

fn cosine(g: &[f32], h: &[f32]) -> f64 {
    let [g, h, _, product] = sums(g, h);
    product / (g.sqrt() * h.sqrt() + LITTLE)
}

/// One of the two.
pub(super) struct Same {
    pub(super) cosine: bool,
}

impl Probe for Same {
    fn name(&self) -> &str {
        if self.cosine { "cos_same" } else { "rho_same" }
    }

    fn needs(&self) -> Needs {
        Needs { shadow: true, ..Needs::default() }
    }

    fn measure(&mut self, seen: &Seen<'_>) -> Option<f64> {
        let shadow = seen.shadow?;
        Some(if self.cosine { cosine(seen.grads, shadow) } else { rho(seen.grads, shadow) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // g = (3, 4), h = (4, 3): |g - h| = sqrt 2, |h| = 5, <g, h> = 24.
        let (g, h) = ([3.0, 4.0], [4.0, 3.0]);
        assert!((rho(&g, &h) - 2.0_f64.sqrt() / 5.0).abs() < 1e-12);
        assert!((cosine(&g, &h) - 24.0 / 25.0).abs() < 1e-12);
        // Twice the gradient is off by all of it, in its direction; the opposite one by twice.
        assert!((rho(&[8.0, 6.0], &h) - 1.0).abs() < 1e-12);
        assert!((cosine(&[8.0, 6.0], &h) - 1.0).abs() < 1e-12);
        assert!((rho(&[-4.0, -3.0], &h) - 2.0).abs() < 1e-12);
        assert!((cosine(&[-4.0, -3.0], &h) + 1.0).abs() < 1e-12);
        assert_eq!([rho(&[0.0; 2], &[0.0; 2]), cosine(&[0.0; 2], &[0.0; 2])], [0.0; 2]);
    }
}
