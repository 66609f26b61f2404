//! The interventions of F4: what a run goes on in, and the null beside which they stand.

use super::common::{F32, STILL, text};

/// The intervention that changes nothing but the last bits.
pub(super) const NULL: &str = "nothing";

/// Names and recipes of the nine of the study, of which `control` goes on as it began, and of `fp32_still`: f32 whose betas
/// stay 0, as they do in MX.
fn recipes(format: &str) -> [(&'static str, String); 10] {
    let mx = text(format);
    let with = |word: &str| format!("{mx}+{word}");
    [
        ("control", mx.clone()),
        ("fp32", F32.into()),
        ("fp32_still", STILL.into()),
        ("bump", with("bump")),
        // Norms out of it: neither their gains nor their steps are rounded.
        ("no_ln_q", format!("mxpaper-{format}+gelu=fp32+no-ln-q")),
        ("bf16_act", with("bf16-act")),
        ("bf16_act_all", with("bf16-act-all")),
        ("fwd_only", with("fwd-only")),
        ("no_gelu_q", with("no-gelu-q")),
        ("bf16_weight", with("bf16-weight")),
    ]
}

/// A rate that is larger by 2^-22 of it.
fn raised(lr: f64) -> f64 {
    lr * (1.0 + libm::exp2(-22.0))
}

/// Names, and what becomes of the configuration: all recipes, and `nothing`: the same recipe at the raised rate, which
/// tells what chance does once so small a change has grown: the least that is to be expected of any change.
pub(super) fn interventions(format: &str, lr: f64) -> Vec<(&'static str, String)> {
    let change = |(name, recipe): (_, String)| (name, format!("recipe = {recipe:?}"));
    let mut all: Vec<_> = recipes(format).into_iter().map(change).collect();
    let lr = raised(lr);
    all.insert(1, (NULL, format!("train.lr = {lr:?}\ntrain.lr_min = {lr:?}")));
    all
}
