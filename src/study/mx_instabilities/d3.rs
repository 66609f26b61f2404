//! D3: the search behind F2a's second part, for a learning rate at which MX costs more with SwiGLU than with GELU.
//!
//! F2a finds that MX costs something, and whether it costs more with SwiGLU does not settle at its two rates. Here both are trained in the
//! cells of [D2](super::d2), and [differences](crate::study::differences) of what MX adds to the logarithm of the final loss are read rate by rate. The control is a
//! gap that is wider by construction: that of SwiGLU in E2M1, which has fewer bits, beside that of GELU in E4M3.

use super::common::{Fate, Proxy, STILL, later, proxy_fate, seeds, text};
use super::d1::changing;
use super::d2::{self, Cell, fixed};
use super::draw::number;
use crate::error::Result;
use crate::study::arm::{Arm, Setting};
use crate::study::differences::{self, Beside, Found, minus};
use crate::study::finding::{Figure, Findings};
use crate::study::statistics::mean;
use crate::study::store::Runs;

/// D3.
pub(super) struct Search;

/// The learning rates.
fn rates(setting: &Setting) -> Vec<f64> {
    setting.scale.pick([
        vec![1e-2],
        vec![3e-3, 1e-2, 3e-2, 1e-1, 3e-1],
        vec![3e-3, 1e-2, 3e-2, 1e-1, 3e-1],
        vec![1e-5, 5e-5, 1e-4, 5e-4, 1e-3],
    ])
}

/// The cells of D2, once for both formats.
fn cells(setting: &Setting) -> Vec<Cell> {
    let of = |lr| d2::cells(setting, lr).into_iter().filter(|cell| cell.format == "e2m1");
    rates(setting).into_iter().flat_map(of).collect()
}

/// What is trained of each cell: activation functions and recipes.
fn kinds() -> [(&'static str, String); 5] {
    [
        ("gelu", STILL.into()),
        ("gelu", text("e4m3")),
        ("swiglu", STILL.into()),
        ("swiglu", text("e4m3")),
        ("swiglu", text("e2m1")),
    ]
}

/// The runs of a kind by seed. Those with GELU in MX are among D2's.
fn arms_of(
    setting: &Setting,
    cell: Cell,
    (activation, recipe): &(&'static str, String),
) -> Vec<Arm> {
    let of = |seed| {
        let proxy = cell.proxy(setting, seed);
        let proxy = Proxy { recipe: recipe.clone(), activation, ..proxy };
        changing(setting, &proxy, fixed(setting), 0)
    };
    seeds(setting, [1, 8, 8, 3]).map(of).collect()
}

/// What MX adds to the logarithm of the final loss, by seed. As in F2a that is the mean of the last tenth and at most the loss before
/// training: a run that diverged has learnt nothing, and no difference is infinite.
fn gap(mx: &[f64], plain: &[f64]) -> Vec<f64> {
    mx.iter().zip(plain).map(|(mx, plain)| libm::log(mx / plain)).collect()
}

/// The differences of final losses, in the order of [`kinds`]: what is searched for, the control, and what stands beside.
fn differences_of([gelu, gelu_mx, swiglu, swiglu_mx, coarse]: &[Vec<f64>; 5]) -> [Vec<f64>; 3] {
    let own = gap(gelu_mx, gelu);
    let gated = gap(swiglu_mx, swiglu);
    [minus(&gated, &own), minus(&gap(coarse, swiglu), &own), gated]
}

/// The differences of a cell.
fn found(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Found> {
    let (mut losses, mut lost) = (<[Vec<f64>; 5]>::default(), Vec::new());
    for (kind, losses) in kinds().iter().zip(&mut losses) {
        let arms = arms_of(setting, cell, kind);
        let fates: Vec<Fate> =
            arms.iter().map(|arm| proxy_fate(runs, arm)).collect::<Result<_>>()?;
        *losses = fates.iter().map(|fate| fate.tail).collect();
        lost.push(fates.iter().filter(|fate| fate.diverged()).count().to_string());
    }
    let [searched, control, beside] = differences_of(&losses);
    let of = |values: &[f64]| mean(values).map_or("-".to_owned(), number);
    let [gelu, _, swiglu, ..] = &losses;
    let words =
        vec![cell.layers.to_string(), cell.gain.to_string(), of(gelu), of(swiglu), lost.join(", ")];
    Ok(Found { lr: cell.lr, words, searched, control, beside })
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "D3"
    }

    fn title(&self) -> &'static str {
        "what MX costs with SwiGLU and with GELU: the search"
    }

    fn source(&self) -> &'static str {
        "a question of our own, behind F2a (Fig. 2a)"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which MX costs more with SwiGLU than with GELU, over two depths and gains that begin at 1 and inside the \
         last bin, in runs of 300 steps at five rates in two decades (at medium). What MX costs is the logarithm of the final loss in E4M3, gains of norms in blocks, \
         less that in f32 whose betas stay 0, as in F2a; a diverged run counts at most as its loss before training. Reproduced if at a rate the \
         interval of the paired difference of both costs lies above 0, of the means over cells of each seed, at 99 % as there are five. The \
         control tells that a wider gap would be seen: that of SwiGLU in E2M1 must be seen above that of GELU in E4M3 so."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if later(setting).is_some() {
            return Vec::new();
        }
        let kinds = kinds();
        let of = |cell| kinds.iter().flat_map(move |kind| arms_of(setting, cell, kind));
        cells(setting).into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(findings) = later(setting) {
            return Ok(findings);
        }
        let found: Vec<Found> = cells(setting)
            .into_iter()
            .map(|cell| found(setting, runs, cell))
            .collect::<Result<_>>()?;
        Ok(search(setting).find(&found))
    }
}

fn search(setting: &Setting) -> differences::Search {
    differences::Search {
        title: "How much more MX costs with SwiGLU, by learning rate",
        names: [
            "the cost of MX E4M3 with SwiGLU less that with GELU",
            "the cost of MX E2M1 with SwiGLU less that of E4M3 with GELU",
            "the cost of MX E4M3 with SwiGLU",
        ],
        legend: ["SwiGLU - GELU", "E2M1 - GELU", "SwiGLU alone"],
        unit: "in ln(loss)",
        least: 0.0,
        asks: Beside::Told,
        rates: rates(setting),
        columns: vec![
            "layers",
            "gains at the start",
            "loss of f32, GELU",
            "loss of f32, SwiGLU",
            "diverged: GELU in f32, E4M3; SwiGLU in f32, E4M3, E2M1",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::arm::Scale;

    /// By hand: E4M3 doubles GELU's loss and quadruples SwiGLU's, which E2M1 makes eight times as large.
    #[test]
    fn costs_are_ratios_of_losses() {
        let found = differences_of(&[1.0, 2.0, 0.5, 2.0, 4.0].map(|loss| vec![loss, 3.0 * loss]));
        let ln2 = libm::log(2.0);
        for (found, expected) in found.iter().zip([ln2, 2.0 * ln2, 2.0 * ln2]) {
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|gap| (gap - expected).abs() < 1e-12), "{found:?} {expected}");
        }
    }

    /// Eight seeds of one cell of each rate; MX multiplies losses by these: GELU's, SwiGLU's, and SwiGLU's in E2M1.
    fn judged(times: impl Fn(f64) -> [f64; 3]) -> &'static str {
        let search = search(&Setting::unread(Scale::Medium));
        let one = |lr: &f64| {
            let [gelu, swiglu, coarse] = times(*lr);
            let of = |loss: f64| (0..8).map(|seed| loss + 0.01 * f64::from(seed % 3)).collect();
            let [searched, control, beside] =
                differences_of(&[1.0, gelu, 1.0, swiglu, coarse].map(of));
            Found { lr: *lr, words: vec![String::new(); 5], searched, control, beside }
        };
        let found: Vec<Found> = search.rates.iter().map(one).collect();
        search.find(&found).verdict.word()
    }

    #[test]
    fn each_part_can_fail() {
        let not = "not seen at this scale";
        assert_eq!(judged(|_| [1.1, 1.3, 2.0]), "reproduced");
        let one = |lr: f64| [1.1, if lr == 3e-2 { 1.3 } else { 1.1 }, 2.0];
        assert_eq!(judged(one), "reproduced", "at one rate");
        assert_eq!(judged(|_| [1.3, 1.3, 2.0]), not, "the same cost");
        assert_eq!(judged(|_| [1.3, 1.1, 2.0]), not, "a search shows no opposite");
        assert_eq!(judged(|_| [1.1, 1.3, 1.0]), not, "the control");
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let names = |arms: Vec<Arm>| {
            let mut names: Vec<String> = arms.iter().map(Arm::name).collect();
            names.sort();
            names.dedup();
            names
        };
        let setting = Setting::unread(Scale::Medium);
        let rates = rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 99.0 * rates[0]);
        let own = names(Search.arms(&setting));
        // Five rates, two depths, two gains; five kinds of run, eight seeds each.
        assert_eq!(own.len(), 5 * 4 * 5 * 8);
        let shared = names(d2::Search.arms(&setting));
        let shared = own.iter().filter(|name| shared.contains(name)).count();
        assert_eq!(shared, 5 * 4 * 3, "GELU in E4M3, three seeds");
        assert!(Search.arms(&Setting::unread(Scale::Small)).is_empty());
        assert!(Search.arms(&Setting::unread(Scale::Smoke)).len() <= 10);
    }
}
