//! What the figures of the MX study share: its proxies and its language models at each scale, the
//! recipes of its code and of its text, and what became of their runs.

use crate::arm::{Arm, Scale, Setting};
use crate::detect::{self, Curve, Factor, Nats};
use crate::finding::Findings;
use crate::store::{Runs, Trained};
use exmy::error::Result;
use exmy_train::train::config::Config;

/// The recipe in which nothing is rounded.
pub(super) const F32: &str = "f32";

/// Nothing is rounded, and betas of norms stay 0 as they do in every MX recipe of the study's code, whose
/// norms return no gradient for them. Where betas are trained stressed runs diverge at lower rates, in f32
/// and in MX alike, so that this and not [`F32`] differs from MX in numbers alone.
pub(super) const STILL: &str = "f32+norm_beta:gradient=zero";

/// The study's code: gains of norms in bfloat16, the student's activation function exact.
pub(super) fn code(format: &str) -> String {
    format!("mxpaper-{format}+gelu=fp32")
}

/// The study's text: gains of norms in MX blocks, too.
pub(super) fn text(format: &str) -> String {
    format!("mxpaper-{format}+gelu=fp32+ln-affine=mx")
}

/// Seeds 1 to as many as the scale has of these.
pub(super) fn seeds(setting: &Setting, counts: [u64; 3]) -> std::ops::RangeInclusive<u64> {
    1..=setting.scale.pick(counts)
}

/// A student-teacher run. Nothing is clipped, the rate is constant unless `more` says otherwise.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) recipe: String,
    pub(super) activation: &'static str,
    pub(super) norm: bool,
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) batch: usize,
    pub(super) steps: u64,
    pub(super) lr: f64,
    pub(super) seed: u64,
    pub(super) probes: &'static [&'static str],
    /// Steps between measurements.
    pub(super) every: u64,
    /// Mean and deviation of the gains at the start.
    pub(super) gain: (f64, f64),
    /// Steps whose checkpoints stay.
    pub(super) keep: Vec<u64>,
    /// Further keys, as TOML.
    pub(super) more: String,
}

impl Proxy {
    /// The canonical one of a scale, in f32. Full is the study's unstable run.
    pub(super) fn of(setting: &Setting) -> Self {
        let scale = setting.scale;
        let (layers, width, batch) = scale.pick([(2, 32, 32), (4, 64, 128), (4, 512, 2048)]);
        let steps = scale.pick([24, 1200, 9000]);
        Self {
            recipe: F32.into(),
            activation: "gelu",
            norm: true,
            layers,
            width,
            batch,
            steps,
            lr: scale.pick([3e-3, 3e-3, 6e-4]),
            seed: 1,
            probes: &["lastbin.gamma"],
            every: scale.pick([6, 20, 50]),
            gain: (1.0, 0.0),
            keep: Vec::new(),
            more: String::new(),
        }
    }

    /// The run.
    pub(super) fn arm(&self, setting: &Setting) -> Arm {
        let Self { recipe, activation, norm, layers, width, batch, steps, lr, seed, .. } = self;
        let probes = list(self.probes);
        let (init, spread) = self.gain;
        // What a model without norms has no gains for is left out.
        let probes = if *norm { probes } else { "[]".to_owned() };
        // The study's code leaves the student's GELU and ReLU alone, and rounds the steps of SwiGLU's SiLU.
        let recipe = match *activation {
            "swiglu" => recipe.replace("+gelu=fp32", ""),
            _ => recipe.clone(),
        };
        let changes = format!(
            "recipe = {recipe:?}\nseed = {seed}\nmodel.layers = {layers}\nmodel.width = {width}\n\
             model.activation = {activation:?}\nmodel.norm = {norm}\nmodel.gain_init = {init:?}\n\
             model.gain_spread = {spread:?}\nmodel.validation_rows = 512\n\
             train.steps = {steps}\ntrain.batch = {batch}\ntrain.lr = {lr:?}\ntrain.lr_min = {lr:?}\n\
             record.probes = {probes}\nrecord.probe_every = {}\nrecord.eval_every = 0\n\
             record.checkpoint_every = 0\n",
            self.every
        );
        finished(setting.config("proxy-nano", &changes), &self.more).keeping(&self.keep)
    }
}

/// A language model of the study's kind: layer norms without bias, norms of queries and keys, GELU,
/// heads of 64 channels; AdamW with a warm-up of a fifth of the steps and a cosine to a tenth.
#[derive(Clone, Debug)]
pub(super) struct Lm {
    pub(super) recipe: String,
    /// Layers; at full scale the study's model of that many.
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) context: usize,
    pub(super) batch: usize,
    pub(super) steps: u64,
    pub(super) lr: f64,
    pub(super) seed: u64,
    pub(super) probes: &'static [&'static str],
    pub(super) every: u64,
    pub(super) keep: Vec<u64>,
    pub(super) more: String,
}

impl Lm {
    /// The smallest of a scale, in bfloat16.
    pub(super) fn of(setting: &Setting) -> Self {
        let scale = setting.scale;
        let (layers, width, context, batch) =
            scale.pick([(1, 64, 32, 2), (2, 64, 64, 8), (4, 256, 512, 512)]);
        Self {
            recipe: "bf16".into(),
            layers,
            width,
            context,
            batch,
            steps: scale.pick([16, 400, 6509]),
            lr: scale.pick([1e-3, 3e-3, 2e-4]),
            seed: 1,
            probes: &[],
            every: scale.pick([8, 20, 50]),
            keep: Vec::new(),
            more: String::new(),
        }
    }

    /// The run.
    pub(super) fn arm(&self, setting: &Setting) -> Arm {
        let Self { recipe, layers, width, context, batch, steps, lr, seed, every, more, .. } = self;
        let preset = match setting.scale {
            Scale::Paper => format!("olmo-l{layers}"),
            _ => "olmo-micro".to_owned(),
        };
        let shape = match setting.scale {
            Scale::Paper => String::new(),
            _ => format!(
                "model.layers = {layers}\nmodel.d_model = {width}\nmodel.hidden = {}\n\
                 model.heads = {heads}\nmodel.kv_heads = {heads}\nmodel.context = {context}\n\
                 train.batch = {batch}\n",
                4 * width,
                heads = (width / 64).max(1),
            ),
        };
        let changes = format!(
            "recipe = {recipe:?}\nseed = {seed}\n{shape}train.steps = {steps}\ntrain.warmup = {}\n\
             train.lr = {lr:?}\ntrain.lr_min = {:?}\ntrain.weight_decay = 0.0\ntrain.eps = 1e-15\n\
             record.probes = {}\nrecord.probe_every = {every}\nrecord.eval_every = 0\n\
             record.eval_windows = {}\nrecord.checkpoint_every = 0\n",
            steps / 5,
            lr / 10.0,
            list(self.probes),
            setting.scale.pick([8, 128, 200])
        );
        finished(setting.config(&preset, &changes), more).keeping(&self.keep)
    }

    /// Parameters, embeddings included, and tokens of the run.
    pub(super) fn size(&self, setting: &Setting) -> (f64, f64) {
        let config = self.arm(setting).config;
        let tokens = config.train.batch * config.model.context();
        (config.model.layout().len() as f64, (tokens as u64 * config.train.steps) as f64)
    }
}

/// The arm of a configuration and further keys, which may change those it has.
///
/// # Panics
/// As [`Setting::config`].
fn finished(config: Config, more: &str) -> Arm {
    let made = config.overlaid(more).and_then(|config| config.validate().map(|()| config));
    match made {
        Ok(config) => Arm::new(config),
        Err(error) => panic!("a study's configuration {more:?}: {error}"),
    }
}

fn list(names: &[&str]) -> String {
    format!("{names:?}")
}

/// A run with what became of it.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) trained: Trained,
    pub(super) losses: Curve,
    pub(super) norms: Curve,
    /// By the rule for its kind of loss.
    pub(super) verdict: detect::Verdict,
    /// The mean of the last tenth, at most the loss before training: a run that diverged has learnt
    /// nothing.
    pub(super) tail: f64,
}

impl Fate {
    fn of(trained: Trained, judge: impl Fn(&Curve, &Curve) -> detect::Verdict) -> Self {
        let (losses, norms) = detect::curves(&trained.metrics);
        let verdict = judge(&losses, &norms);
        let first = losses.first().map_or(f64::NAN, |first| first.1);
        let last = trained.tail_loss();
        let tail = if last.is_finite() { last.min(first) } else { first };
        Self { trained, losses, norms, verdict, tail }
    }

    pub(super) fn diverged(&self) -> bool {
        self.verdict.diverged.is_some()
    }

    /// In words: complete, how many spikes, since when diverged.
    pub(super) fn word(&self) -> String {
        match (self.verdict.diverged, self.verdict.spikes.len()) {
            (Some(step), _) => format!("diverged at {step}"),
            (None, 0) => "smooth".into(),
            (None, 1) => "1 spike".into(),
            (None, count) => format!("{count} spikes"),
        }
    }
}

/// What became of a proxy: losses as multiples of their lowest level.
pub(super) fn proxy_fate(runs: &Runs<'_>, arm: &Arm) -> Result<Fate> {
    let rule = Factor::default();
    Ok(Fate::of(runs.of(arm)?, |losses, norms| rule.judge(losses, norms)))
}

/// What became of a language model: rises in nats.
pub(super) fn lm_fate(runs: &Runs<'_>, arm: &Arm) -> Result<Fate> {
    let rule = Nats::default();
    Ok(Fate::of(runs.of(arm)?, |losses, norms| rule.judge(losses, norms)))
}

/// What a figure says that has no runs at small scale.
pub(super) fn later(setting: &Setting) -> Option<Findings> {
    (setting.scale == Scale::Small).then(Findings::not_run)
}
