//! The stressed proxy in which MX runs diverge: what F4 and D1 intervene in, and F-zeta measures.
//!
//! At usual learning rates no MX run of this size diverges (AppC has the grid that was searched). Here the
//! rate rises by 5e-4 a step, so that a model of four blocks passes rates near 0.03 to 0.04, some 70 steps
//! in, at which about half of the runs lose what they have learnt, in every format. Whether one does is nearly
//! chance, so there are many seeds, and interventions count by what they cause, too.

use super::common::{Proxy, seeds as of_scale, text};
use crate::study::arm::{Arm, Scale, Setting};

/// Seeds of these runs.
pub(super) fn seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
    of_scale(setting, [1, 10, 20, 3])
}

/// The element format of the stressed runs.
pub(super) fn format(setting: &Setting) -> &'static str {
    setting.scale.pick(["e2m1", "e2m1", "e2m1", "e4m3"])
}

/// Steps at which interventions begin, the earlier one first.
pub(super) fn times(setting: &Setting) -> [u64; 2] {
    setting.scale.pick([[8, 16], [30, 50], [30, 50], [4500, 5080]])
}

/// The stressed proxy without a recipe.
pub(super) fn proxy(setting: &Setting, seed: u64) -> Proxy {
    let canonical = Proxy { seed, ..Proxy::of(setting) };
    if setting.scale == Scale::Full {
        return canonical;
    }
    let (layers, width, batch) = match setting.scale {
        Scale::Smoke => (2, 32, 32),
        _ => (4, 64, 64),
    };
    let steps = setting.scale.pick([24, 160, 160, 0]);
    let lr = 5e-4 * steps as f64;
    let more = format!("train.warmup = {steps}\n");
    Proxy { layers, width, batch, steps, lr, every: 5, more, ..canonical }
}

/// The MX run that goes on as it began.
pub(super) fn control(setting: &Setting, seed: u64) -> Arm {
    Proxy {
        recipe: text(format(setting)),
        probes: &["lastbin.gamma", "rho_same", "cos_same"],
        keep: times(setting).to_vec(),
        ..proxy(setting, seed)
    }
    .arm(setting)
}
