//! New seeds of what BR-15's ramps seem to show: that in MXFP4, which breaks at a third of the rate of all others,
//! sharpness rises before the loss does.
//!
//! What one looks for in many pictures one finds in some. So MXFP4 is trained again on seeds that nobody has looked at, on a
//! ramp to a rate at which it breaks and E8M7 does not, with sharpness measured more often.

use super::common::{Spec, all, fate, vocab, with_seeds};
use super::lead;
use super::ordering::mean_values;
use super::verge::{self, Verge};
use crate::error::Result;
use crate::plot::{self, Axis, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::Part;
use crate::study::store::Runs;

/// Names and recipes; the second is what the first is drawn beside.
const FORMATS: [(&str, &str); 2] = [("MXFP4", "mxfp4"), ("E8M7", "bitred-e8m7")];
const MODELS: [&str; 2] = ["nano", "deep"];
/// The rate of the last step.
const END: f64 = 0.12;
/// Those that no other figure has.
const SEEDS: std::ops::RangeInclusive<u64> = 21..=32;

fn of(setting: &Setting, model: &'static str, recipe: &str) -> Vec<Arm> {
    let more = "train.clip = 0.0\nrecord.probes = [\"phi\"]\nrecord.probe_every = 4\n".to_owned();
    let seed = |seed| {
        let spec = Spec::new(model, recipe, seed, 300);
        Spec { lr: END, warmup: 1.0, more: more.clone(), ..spec }.arm(setting)
    };
    SEEDS.map(seed).collect()
}

/// None but where the study's own search is trained.
pub(super) fn arms(setting: &Setting) -> Vec<Arm> {
    if setting.scale != Scale::Medium {
        return Vec::new();
    }
    let formats = |model| FORMATS.iter().flat_map(move |(_, recipe)| of(setting, model, recipe));
    MODELS.into_iter().flat_map(formats).collect()
}

/// What the new seeds show, in words and pictures.
pub(super) fn find(setting: &Setting, runs: &Runs<'_>) -> Result<Option<(String, Vec<Part>)>> {
    if arms(setting).is_empty() {
        return Ok(None);
    }
    let (mut parts, mut verges, mut risen) =
        (Vec::new(), vec![Vec::new(); SEEDS.count()], Vec::new());
    let mut broken = [0; 2];
    for model in MODELS {
        let mut losses =
            Panel::new(Axis::linear("smoothed training loss, nats/token")).height_share(1.4);
        let mut sharpness = Panel::new(Axis::log("sharpness phi, %"));
        let mut both = Vec::new();
        for (i, (name, recipe)) in FORMATS.iter().enumerate() {
            let arms = of(setting, model, recipe);
            let trained = all(runs, &arms)?;
            for ((run, arm), verges) in trained.iter().zip(&arms).zip(&mut verges) {
                let Some(step) = fate(run, vocab(arm)).verdict.diverged else { continue };
                broken[i] += 1;
                if i == 0 {
                    let verge: Verge = verge::read(run, step)?;
                    verges.push(verge);
                }
            }
            losses = with_seeds(losses, name, &trained);
            sharpness = sharpness.line(Series::new(*name, mean_values(&trained, "phi")?));
            both.push(trained);
        }
        risen.push(lead::compare(&both[1], &both[0])?);
        parts.push(Part::Picture(
            plot::Figure::new(format!("{model}, new seeds: the rate rises to {END} at the end"))
                .subtitle("no clipping; mean and range over seeds")
                .x(Axis::linear("step"))
                .panel(losses)
                .panel(sharpness),
        ));
    }
    let (found, words) = verge::judge(&verges);
    let (first, leads) = lead::judge(&risen);
    let word = match (found.is_some_and(|found| found.low > 0.0), first) {
        (true, true) => "is found again",
        (true, false) => "is found again as a trend of each run, and not beside E8M7",
        (false, true) => {
            "is found again beside E8M7, by BR-6's rule, and not as a trend of each run"
        }
        (false, false) => "is not found again",
    };
    let short =
        format!("not judged: that sharpness rises before the loss in MXFP4 {word} on new seeds");
    let text = format!(
        "New seeds ({} of each model, ramps to {END}): of {} runs {} break in MXFP4 and {} in E8M7. In MXFP4 {words}. Held to \
         E8M7 as BR-6 does: {leads}. That sharpness rises before the loss {word}; both were asked.",
        SEEDS.count(),
        SEEDS.count() * MODELS.len(),
        broken[0],
        broken[1]
    );
    parts.insert(0, Part::Text(text));
    Ok(Some((short, parts)))
}
