//! The stressed proxy in which MX runs are to diverge: what F4 and D1 intervene in, and F-zeta measures.
//!
//! At the study's own learning rates MX runs of this size do not diverge (AppC has the grid that was
//! searched), so the rate rises linearly to one that is too large.

use super::common::{Proxy, seeds as of_scale, text};
use crate::study::arm::{Arm, Scale, Setting};

/// Seeds of these runs.
pub(super) fn seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
    of_scale(setting, [1, 5, 5, 3])
}

/// The element format of the stressed runs.
pub(super) const FORMAT: &str = "e4m3";

/// Steps at which interventions begin, the earlier one first.
pub(super) fn times(setting: &Setting) -> [u64; 2] {
    setting.scale.pick([[8, 16], [150, 210], [300, 420], [4500, 5080]])
}

/// The stressed proxy without a recipe.
pub(super) fn proxy(setting: &Setting, seed: u64) -> Proxy {
    let canonical = Proxy { seed, ..Proxy::of(setting) };
    if setting.scale == Scale::Full {
        return canonical;
    }
    // A model whose MX runs diverge between steps 230 and 280 of 400, at rates of 0.12 to 0.14.
    let (layers, width, batch) =
        setting.scale.pick([(2, 32, 32), (2, 64, 64), (2, 64, 64), (0, 0, 0)]);
    let steps = setting.scale.pick([24, 400, 800, 0]);
    let more = format!("train.warmup = {steps}\n");
    Proxy { layers, width, batch, steps, lr: 0.2, more, ..canonical }
}

/// The MX run that goes on as it began.
pub(super) fn control(setting: &Setting, seed: u64) -> Arm {
    Proxy {
        recipe: text(FORMAT),
        probes: &["lastbin.gamma", "rho_same", "cos_same"],
        keep: times(setting).to_vec(),
        ..proxy(setting, seed)
    }
    .arm(setting)
}
