//! What the figures of this study share: the models and how they are trained.
//!
//! Most figures read one set of runs, [`main`]: both kinds of attention, trained alike, with the probes that
//! any figure asks of them. Ablations of recipes that need more runs are [`short`].

use crate::arm::{Arm, Setting};
use crate::store::Trained;
use exmy::error::{Error, Result};
use exmy_train::nn::site::{Operand, Product, Site};
use exmy_train::recipe::Plan;
use exmy_train::train::checkpoint;
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset};
use exmy_train::train::trainer::Trainer;

/// The baseline: operands and outputs of linear operators in bfloat16.
pub(super) const BF16: &str = "bf16+out=bf16";

/// The inputs that linear operators do not share: one operator of each.
pub(super) const INPUTS: [&str; 4] = ["q_proj", "o_proj", "gate_proj", "down_proj"];

/// How tokens are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Gated linear attention.
    Gla,
    /// Softmax attention.
    Sa,
}

impl Kind {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Gla, Self::Sa];

    /// What pictures call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gla => "GLA",
            Self::Sa => "SA",
        }
    }

    /// The preset and what is changed of its model.
    fn model(self, setting: &Setting) -> (&'static str, &'static str) {
        let tiny = "model.layers = 2\nmodel.d_model = 64\nmodel.hidden = 192\nmodel.heads = 2\n\
                    model.kv_heads = 2\nmodel.context = 64\nmodel.sink = true\n";
        let sink = "model.sink = true\n";
        match self {
            Self::Gla => {
                setting.scale.pick([("gla-nano", sink), ("gla-micro", sink), ("gla-1.3b", "")])
            }
            Self::Sa => {
                setting.scale.pick([("sa-micro", tiny), ("sa-micro", sink), ("qwen3-1.7b", "")])
            }
        }
    }
}

/// Steps of the runs that most figures read; 60 G tokens in batches of 4 M are 14 305.
pub(super) fn steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 1500, 14_305])
}

/// Steps of the ablations.
pub(super) fn short_steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 600, 14_305])
}

/// The seeds of paired runs.
pub(super) fn seeds(setting: &Setting, most: u64) -> Vec<u64> {
    (1..=setting.scale.pick([1, most, 1])).collect()
}

/// A run from the beginning at a rate.
fn arm(setting: &Setting, kind: Kind, recipe: &str, seed: u64, (steps, lr): (u64, f64)) -> Arm {
    let (preset, model) = kind.model(setting);
    let batch = setting.scale.pick([2, 4, 2048]);
    let accumulate = setting.scale.pick([1, 1, 256]);
    let changes = format!(
        "{model}recipe = \"{recipe}\"\nseed = {seed}\ntrain.steps = {steps}\ntrain.warmup = {}\n\
         train.batch = {batch}\ntrain.accumulate = {accumulate}\ntrain.lr = {lr:?}\ntrain.lr_min = {:?}\n\
         train.schedule = \"wsd\"\nrecord.eval_every = 0\nrecord.checkpoint_every = 0\nrecord.keep = 1\n\
         record.eval_windows = {}",
        steps / 20,
        lr / 10.0,
        setting.scale.pick([4, 64, 256]),
    );
    Arm::new(setting.config(preset, &changes))
}

/// The same with some keys changed, as TOML.
///
/// # Panics
/// If there is no such key: a study's own mistake, which the test of all plans finds.
pub(super) fn changed(mut arm: Arm, changes: &str) -> Arm {
    let made = arm.config.overlaid(changes).and_then(|config| config.validate().map(|()| config));
    arm.config = match made {
        Ok(config) => config,
        Err(error) => panic!("a study's configuration {changes:?}: {error}"),
    };
    arm
}

/// Which probes a run of [`main`] has: what figures ask of it, of three seeds.
fn probes(kind: Kind, recipe: &str, seed: u64) -> &'static str {
    match (kind, recipe, seed) {
        (Kind::Gla, BF16, ..=3) => r#"["kurtosis", "spikes", "channels", "gates", "swiglu"]"#,
        (Kind::Gla, "nv-nvfp4", ..=3) => {
            r#"["kurtosis", "spikes", "hot", "rounding", "channels", "gates"]"#
        }
        (Kind::Gla, "chon", ..=3) => r#"["rounding"]"#,
        (Kind::Sa, BF16, ..=3) => r#"["kurtosis", "spikes", "channels", "attention", "swiglu"]"#,
        (Kind::Sa, "nv-nvfp4", ..=3) => r#"["kurtosis", "spikes", "hot"]"#,
        _ => "[]",
    }
}

/// A run that several figures read. Those of bfloat16 keep the checkpoint that sensitivities branch off
/// from, those of NVFP4 the ones from which precision is raised.
pub(super) fn main(setting: &Setting, kind: Kind, recipe: &str, seed: u64) -> Arm {
    let steps = steps(setting);
    // Twice the usual rate: outliers grow faster.
    let lr = setting.scale.pick([2e-3, 2e-3, 3e-4]);
    let every = setting.scale.pick([5, 20, 200]);
    let probes = probes(kind, recipe, seed);
    let changes = format!("record.probes = {probes}\nrecord.probe_every = {every}");
    let arm = changed(arm(setting, kind, recipe, seed, (steps, lr)), &changes);
    match recipe {
        BF16 => arm.keeping(&[steps / 2]),
        "nv-nvfp4" if kind == Kind::Gla => {
            arm.keeping(&[steps * 60 / 100, steps * 80 / 100, steps * 95 / 100])
        }
        _ => arm,
    }
}

/// A run of an ablation, without probes.
pub(super) fn short(setting: &Setting, kind: Kind, recipe: &str, seed: u64) -> Arm {
    // Higher rates scatter losses more than recipes do.
    let lr = setting.scale.pick([1e-3, 1e-3, 3e-4]);
    arm(setting, kind, recipe, seed, (short_steps(setting), lr))
}

/// The text of the study.
pub(super) fn data(setting: &Setting) -> Result<Dataset> {
    Dataset::load(setting.source(), &DataOptions::default())
        .map_err(|error| Error::new(error.to_string()))
}

/// A configuration under another recipe.
pub(super) fn under(config: &Config, recipe: &str) -> Result<Config> {
    config.overlaid(&format!("recipe = \"{recipe}\""))
}

/// The names of the operators whose forward inputs a recipe rounds to eight bits or fewer at first.
pub(super) fn quantized(config: &Config) -> Result<Vec<String>> {
    let layout = config.model.layout();
    let plan = Plan::new(&config.recipe, &layout, config.train.steps)
        .map_err(|error| Error::new(error.to_string()))?;
    let few = |site: Site| plan.operand(0, site, Product::Forward, Operand::Input).bits() <= 8;
    let sites = plan.linears().iter().map(|linear| linear.site);
    Ok(sites.filter(|&site| few(site)).map(|site| site.to_string()).collect())
}

/// A complete run as it would go on.
pub(super) fn resumed<'a>(
    run: &Trained,
    config: &'a Config,
    data: &'a Dataset,
) -> Result<Trainer<'a>> {
    let mut trainer = Trainer::new(config, data)?;
    let folder = run.folder.checkpoints();
    let newest = checkpoint::list(&folder)?
        .last()
        .copied()
        .ok_or_else(|| Error::new(format!("{} has no checkpoint", run.folder.path().display())))?;
    let (state, progress) =
        checkpoint::load(&checkpoint::path(&folder, newest), &config.model.layout())?;
    trainer.restore(state, progress);
    Ok(trainer)
}
