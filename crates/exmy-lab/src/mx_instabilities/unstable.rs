//! The stressed proxies in which MX runs diverge: what F4 intervenes in, and F-zeta measures.
//!
//! At usual learning rates no MX run of this size diverges (AppC has the grid that was searched). There are
//! three settings at larger ones, in the order in which they were tried, and all are reported. On the long
//! ramp of the rate, to 0.2, every MX run diverges, at rates of 0.12 to 0.14. On the short one, to 0.08, about half of
//! them do, some 70 steps in. In f32 runs diverge on both as well, so that neither tells what MX does. The steady
//! rate was chosen after the search and some runs by hand, of which more were lost in E2M1 than in f32 whose
//! betas stay still; its seeds are others than those. There nearly all runs of all formats explode once the
//! rate has risen, and what differs is which of them recover.

use super::common::{Proxy, text};
use crate::arm::{Arm, Scale, Setting};
use std::ops::Range;

/// A proxy whose rate rises from 0 over its warm-up to where runs lose what they have learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stress {
    /// What it is called.
    pub(super) name: &'static str,
    /// The element format of its MX runs.
    pub(super) format: &'static str,
    /// Steps at which interventions begin, the earlier one first.
    pub(super) times: [u64; 2],
    /// The first seed, and how many there are at each scale.
    seeds: (u64, [u64; 3]),
    layers: usize,
    batch: usize,
    steps: u64,
    warmup: u64,
    lr: f64,
    /// Steps between measurements.
    every: u64,
}

const LONG: Stress = Stress {
    name: "long ramp",
    format: "e4m3",
    times: [150, 210],
    seeds: (1, [1, 5, 3]),
    layers: 2,
    batch: 64,
    steps: 400,
    warmup: 400,
    lr: 0.2,
    every: 20,
};

const SHORT: Stress = Stress {
    name: "short ramp",
    format: "e2m1",
    times: [30, 50],
    seeds: (1, [1, 10, 3]),
    layers: 4,
    steps: 160,
    warmup: 160,
    lr: 0.08,
    every: 5,
    ..LONG
};

const STEADY: Stress = Stress {
    name: "steady rate",
    format: "e2m1",
    times: [30, 45],
    seeds: (21, [1, 24, 3]),
    layers: 4,
    steps: 300,
    warmup: 60,
    lr: 0.06,
    every: 5,
    ..LONG
};

const SMOKE: Stress = Stress {
    name: "smoke",
    times: [8, 16],
    layers: 2,
    batch: 32,
    steps: 24,
    warmup: 24,
    lr: 0.012,
    ..SHORT
};

/// The study's own unstable run, which needs no larger rate.
const FULL: Stress =
    Stress { name: "the study's own", format: "e4m3", times: [4500, 5080], ..SHORT };

/// The one that tells what MX does.
pub(super) fn judged(setting: &Setting) -> Stress {
    setting.scale.pick([SMOKE, STEADY, FULL])
}

/// Those of a scale, the judged one first.
pub(super) fn settings(setting: &Setting) -> Vec<Stress> {
    match setting.scale {
        Scale::Smoke => vec![SMOKE],
        Scale::Small => vec![STEADY, SHORT, LONG],
        Scale::Paper => vec![FULL],
    }
}

impl Stress {
    pub(super) fn seeds(&self, setting: &Setting) -> Range<u64> {
        let (first, counts) = self.seeds;
        first..first + setting.scale.pick(counts)
    }

    /// `steady rate: E2M1, 4 blocks, rate 0.06 from step 60 on`.
    pub(super) fn words(&self, setting: &Setting) -> String {
        let Self { name, layers, steps, warmup, lr, .. } = *self;
        let format = self.format.to_uppercase();
        if setting.scale == Scale::Paper {
            return format!("{name}: {format}");
        }
        let rate = match warmup < steps {
            true => format!("rate {lr} from step {warmup} on"),
            false => format!("rate rising to {lr} in {steps} steps"),
        };
        format!("{name}: {format}, {layers} blocks, {rate}")
    }

    /// Its proxy, without a recipe.
    pub(super) fn proxy(&self, setting: &Setting, seed: u64) -> Proxy {
        let canonical = Proxy { seed, ..Proxy::of(setting) };
        if setting.scale == Scale::Paper {
            return canonical;
        }
        let Self { layers, batch, steps, warmup, lr, every, .. } = *self;
        let more = format!("train.warmup = {warmup}\n");
        let width = if setting.scale == Scale::Smoke { 32 } else { 64 };
        Proxy { layers, width, batch, steps, lr, every, more, ..canonical }
    }

    /// Its learning rate.
    pub(super) fn lr(&self, setting: &Setting) -> f64 {
        self.proxy(setting, 1).lr
    }

    /// The MX run that goes on as it began.
    pub(super) fn control(&self, setting: &Setting, seed: u64) -> Arm {
        Proxy {
            recipe: text(self.format),
            probes: &["lastbin.gamma", "rho_same", "cos_same"],
            keep: self.times.to_vec(),
            ..self.proxy(setting, seed)
        }
        .arm(setting)
    }
}
