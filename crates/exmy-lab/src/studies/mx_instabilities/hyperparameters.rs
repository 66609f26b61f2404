//! How the study's language models are trained, and what of that is kept here.

use super::grids::{LANGUAGE, MODELS};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::{Grid, GridPoint, Set};
use crate::measure::Results;
use crate::run_config::Setting;
use crate::scale::Scale;
use exmy::error::Result;
use exmy_train::train::config::Config;

/// The smallest language model of a scale.
fn smallest(setting: &Setting) -> Option<Config> {
    let grid = Grid { seeds: [1; 3], sets: &[LANGUAGE, Set::Recipe("bf16")], ..MODELS };
    grid.runs_of(setting, &GridPoint::default()).pop().map(|planned| planned.config)
}

/// The study's configuration and this one.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let full = Setting::unread(Scale::Paper);
    let none = || Findings::of(Verdict::Shown("no language model".into()), Vec::new());
    let (Some(paper), Some(here)) = (smallest(&full), smallest(results.setting)) else {
        return Ok(none());
    };
    let mut table = Table::new(
        "the smallest language model of the study, and of this scale",
        &["", "study", "here"],
    );
    let (Some(a), Some(b)) = (paper.model.decoder(), here.model.decoder()) else {
        return Ok(none());
    };
    let mut row = |name: &str, study: String, ours: String| table.row([name.into(), study, ours]);
    row("layers", a.layers.to_string(), b.layers.to_string());
    row("width", a.d_model.to_string(), b.d_model.to_string());
    row("heads", a.heads.to_string(), b.heads.to_string());
    row("context, tokens", a.context.to_string(), b.context.to_string());
    row("vocabulary", a.vocab.to_string(), b.vocab.to_string());
    let size = |config: &Config| config.model.layout().len().to_string();
    row("parameters", size(&paper), size(&here));
    let (p, h) = (&paper.train, &here.train);
    row("steps", p.steps.to_string(), h.steps.to_string());
    row("sequences a step", p.batch.to_string(), h.batch.to_string());
    row("peak learning rate", format!("{:e}", p.lr), format!("{:e}", h.lr));
    row("last learning rate", format!("{:e}", p.lr_min), format!("{:e}", h.lr_min));
    row("schedule", p.schedule.to_string(), h.schedule.to_string());
    row("warm-up, steps", p.warmup.to_string(), h.warmup.to_string());
    let betas = |beta1: f64, beta2: f64| format!("{beta1}, {beta2}");
    row("betas of AdamW", betas(p.beta1, p.beta2), betas(h.beta1, h.beta2));
    row("epsilon", format!("{:e}", p.eps), format!("{:e}", h.eps));
    row("weight decay", p.weight_decay.to_string(), h.weight_decay.to_string());
    row("gradient clipping", p.clip.to_string(), h.clip.to_string());
    let text = "Both: pre-norm blocks, layer norms without bias, norms over all of a token's queries and \
                keys, rotary positions, GELU of four times the width, untied head, truncated normal start. \
                The study's grid has widths of 64 channels a layer from 256 to 2560, budgets of 2e17 to \
                4.8e19 operations, and 2 to 200 tokens a parameter.";
    let parts = vec![Part::Table(table), Part::Text(text.into())];
    Ok(Findings::of(Verdict::Shown("see the table".into()), parts))
}
