//! BR-6: loss and sharpness by mantissa bits, at the usual and at ten times the learning rate.

use crate::error::Result;
use crate::plot::{self, Axis, Panel, Series};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::store::Runs;

/// BR-6.
pub(super) struct Ordering;

const BITS: [u32; 7] = [7, 6, 5, 4, 3, 2, 1];
const RATES: [(f64, &str); 2] = [(1e-3, "1x"), (1e-2, "10x")];

impl Ordering {
    fn arm(setting: &Setting, bits: u32, lr: f64, seed: u64) -> Arm {
        let steps = setting.scale.pick([20, 600, 600, 20_000]);
        let preset = setting.scale.pick(["nano", "deep", "micro", "llama-120m"]);
        let every = steps / 20;
        let changes = format!(
            "recipe = \"bitred-e8m{bits}\"\nseed = {seed}\ntrain.lr = {lr:?}\ntrain.lr_min = {:?}\n\
             train.steps = {steps}\ntrain.warmup = {}\nrecord.probes = [\"phi\"]\nrecord.probe_every = {every}",
            lr / 10.0,
            steps / 20
        );
        Arm::new(setting.config(preset, &changes))
    }

    fn seeds(setting: &Setting) -> u64 {
        setting.scale.pick([1, 3, 3, 3])
    }
}

impl Figure for Ordering {
    fn id(&self) -> &'static str {
        "BR-6"
    }

    fn title(&self) -> &'static str {
        "loss and sharpness by mantissa bits"
    }

    fn source(&self) -> &'static str {
        "v1 Fig. 6, v2 Fig. 7: Llama 120M in E8M3, E8M4 and E8M5"
    }

    fn claim(&self) -> &'static str {
        "Each mantissa bit less costs loss."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for (lr, _) in RATES {
            for bits in BITS {
                arms.extend(
                    (1..=Self::seeds(setting)).map(|seed| Self::arm(setting, bits, lr, seed)),
                );
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut parts = Vec::new();
        let mut table = Table::new("mean training loss of the last tenth", &["bits", "1x", "10x"]);
        let mut panel = Panel::new(Axis::linear("loss"));
        for bits in BITS {
            let mut row = vec![format!("e8m{bits}")];
            for (lr, _) in RATES {
                let trained = runs.of(&Self::arm(setting, bits, lr, 1))?;
                row.push(format!("{:.4}", trained.tail_loss()));
                panel = panel.line(Series::new(format!("e8m{bits}"), trained.losses()));
            }
            table.row(row);
        }
        parts.push(Part::Picture(plot::Figure::new("loss").x(Axis::linear("step")).panel(panel)));
        parts.push(Part::Table(table));
        Ok(Findings { verdict: Verdict::NotSeen("to be judged".into()), parts })
    }
}
