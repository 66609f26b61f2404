//! E21: the search behind E2 and E5, over rates, depths, planted channels and formats.
//!
//! E2 (in softmax attention) and E5 do not find what the paper reports, in the settings that they judge. Here small
//! models of both kinds are trained over a grid, and each run is read both ways: how far its hot channels settle, and
//! which type of operator NVFP4 hurts most at its last weights. The best of many cells is found by chance, so
//! something counts that holds in all cells of a kind of model and learning rate. Each of the two has controls.
//! Channels planted from the beginning must be found to stay, those planted late to drift and settle. And softmax attention in whose trained weights channels are
//! planted, which changes no bit of what it computes in bfloat16, must rank as in the paper: all operators of a block but
//! o_proj and down_proj read such channels, and of those v_proj writes to the residual stream with the least in between.

use super::claim::Claim;
use super::common::{BF16, Kind, quantized, under};
use super::e02::{most, one, operators, share};
use super::e05::{Sets, claims, distinct, quarters, sets};
use super::frozen;
use super::grid::{self, Cell, FORMATS, Hits, plant};
use super::ranking::Ranking;
use super::show::{at, number, spread};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::mean;
use crate::study::store::Runs;

/// E21.
pub(super) struct Search;

/// What is read of a cell's runs, seed by seed.
struct Found {
    cell: Cell,
    /// How far its hot channels settle.
    settled: Vec<Sets>,
    /// The same where the run goes on with channels planted in its weights; of the control's cells alone.
    replanted: Option<Vec<Sets>>,
    /// The last quarter alone, of the inputs that channels can be planted in.
    stay: Vec<f64>,
    /// What NVFP4 does to the operators at the last weights.
    ranking: Ranking,
    /// The same with channels planted in these weights; of the control's cells alone.
    control: Option<Ranking>,
}

/// Whether sets drift and then stay, by the rule of E5.
fn settle(seeds: &[Sets]) -> bool {
    claims(seeds).iter().all(|claim| claim.holds == Some(true))
}

/// The same by means over seeds and in most of them, without intervals.
fn settle_by_means(seeds: &[Sets]) -> bool {
    let (first, last): (Vec<f64>, Vec<f64>) = seeds.iter().map(|one| quarters(&one.last)).unzip();
    let rises =
        |one: &&Sets| Claim::rising("", std::slice::from_ref(&one.consecutive)).holds == Some(true);
    mean(&first).is_some_and(|first| first < 0.4)
        && mean(&last).is_some_and(|last| last > 0.7)
        && 2 * seeds.iter().filter(rises).count() > seeds.len()
}

impl Found {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let mut found = Self {
            cell,
            settled: Vec::new(),
            replanted: cell.is_replanted(setting).then(Vec::new),
            stay: Vec::new(),
            ranking: Ranking::new(cell.kind),
            control: cell.is_control().then(|| Ranking::new(cell.kind)),
        };
        for seed in grid::seeds(setting) {
            let arm = cell.arm(setting, seed);
            let run = runs.of(&arm)?;
            // The same inputs whatever a run was trained in.
            let sites = distinct(quantized(&under(&arm.config, FORMATS[1])?)?);
            let lines = run.probe("hot")?;
            found.settled.push(sets(&lines, &sites, "magnitude"));
            if let Some(replanted) = &mut found.replanted {
                let end = grid::steps(setting);
                let times = (end, end / 2, arm.config.record.probe_every);
                let later = frozen::gone_on(runs, &arm, times, "hot", plant)?;
                replanted.push(sets(&[lines.clone(), later].concat(), &sites, "magnitude"));
            }
            let after_norms =
                |site: &String| site.ends_with("q_proj") || site.ends_with("gate_proj");
            let planted: Vec<String> = sites.into_iter().filter(after_norms).collect();
            found.stay.push(quarters(&sets(&lines, &planted, "magnitude").last).1);
            let own = || operators(cell.kind).iter();
            let recipes = || own().map(|operator| one(operator));
            let shares: Vec<f64> = own().map(|operator| share(&arm.config, operator)).collect();
            let per_share = |gaps: Vec<f64>| gaps.iter().zip(&shares).map(|(g, s)| g / s).collect();
            let end = grid::steps(setting);
            found.ranking.seeds.push(per_share(frozen::gaps(runs, &arm, end, BF16, recipes())?));
            if let Some(control) = &mut found.control {
                let gaps = frozen::gaps_of(runs, &arm, end, BF16, recipes(), plant)?;
                control.seeds.push(per_share(gaps));
            }
        }
        Ok(found)
    }
}

type Shows = fn(&Found) -> bool;

/// How many cells show something, and the rates of which all do.
fn count<'a>(cells: impl IntoIterator<Item = &'a Found>, shows: Shows) -> Hits {
    Hits::of(cells.into_iter().map(|one| (one.cell.lr, shows(one))))
}

/// What a kind's cells show, and whether all of one rate do. Planted channels are there from the beginning and
/// cannot drift.
fn shown(found: &[Found], kind: Kind, settling: bool) -> (bool, String) {
    let of = |one: &&Found| one.cell.kind == kind && !(settling && one.cell.planted);
    let cells = || found.iter().filter(of);
    let (what, shows, by_means): (_, Shows, Shows) = match settling {
        true => (
            "hot channels drift and settle",
            |one| settle(&one.settled),
            |one| settle_by_means(&one.settled),
        ),
        false => (
            "operators rank as in the paper",
            |one| one.ranking.holds(),
            |one| one.ranking.by_means(),
        ),
    };
    let (hits, loose) = (count(cells(), shows), count(cells(), by_means));
    let text = format!(
        "{}: {what} in {} of {} cells, {}, and by means over seeds alone in {}, {}",
        kind.name(),
        hits.hits,
        hits.cells,
        hits.words(),
        loose.hits,
        loose.words()
    );
    (hits.any(), text)
}

/// Settling may be of either kind, as E5 has it of GLA and the paper of both; the ranking that E2 does not find is
/// that of SA. Nothing is the opposite of a search that finds nothing.
fn judge(found: &[Found]) -> Verdict {
    let settle = Kind::ALL.map(|kind| shown(found, kind, true));
    let rank = Kind::ALL.map(|kind| shown(found, kind, false));
    let holds = settle.iter().any(|one| one.0)
        && Kind::ALL.iter().zip(&rank).any(|(kind, one)| *kind == Kind::Sa && one.0);
    let texts: Vec<&str> = settle.iter().chain(&rank).map(|one| one.1.as_str()).collect();
    Verdict::of(holds, false, texts.join("; "))
}

/// What planted channels do: the last quarter's agreement with and without, over cells and by seed.
fn control(found: &[Found]) -> (bool, String) {
    let of = |planted: bool| -> Vec<f64> {
        let own: Vec<&Found> = found.iter().filter(|one| one.cell.planted == planted).collect();
        let seeds = own.iter().map(|one| one.stay.len()).min().unwrap_or(0);
        let mean_of = |seed: usize| mean(&own.iter().map(|one| one.stay[seed]).collect::<Vec<_>>());
        (0..seeds).filter_map(mean_of).collect()
    };
    let claims = [
        Claim::below(("without", &of(false)), ("with planted channels", &of(true)), ""),
        Claim::above("with planted channels", &of(true), 0.7, ""),
    ];
    let fires = claims.iter().all(|claim| claim.holds == Some(true));
    let texts = claims.map(|claim| claim.text).join("; ");
    let word = finding::fires(fires);
    (
        fires,
        format!(
            "the control of settling {word}: agreement with the final set after norms, {texts}"
        ),
    )
}

/// Whether channels that are planted once a run has ended, and that go on being trained, are found to drift and settle: before them others
/// were hot, and they stay.
fn control_of_drift(found: &[Found]) -> (bool, String) {
    let cells: Vec<&Vec<Sets>> = found.iter().filter_map(|one| one.replanted.as_ref()).collect();
    let hits = cells.iter().filter(|seeds| settle(seeds)).count();
    let fires = hits > 0 && hits == cells.len();
    let of_seeds = cells.iter().flat_map(|seeds| seeds.iter().map(|one| quarters(&one.last)));
    let (first, last): (Vec<f64>, Vec<f64>) = of_seeds.unzip();
    let text = format!(
        "the control of drift {}: where channels are planted after the run, which then goes on for half as long at its full rate, agreement is {} in the \
         first quarter and {} in the last, and they drift and settle in {hits} of {} cells",
        finding::fires(fires),
        spread(&first),
        spread(&last),
        cells.len(),
    );
    (fires, text)
}

/// What channels planted in trained weights do to the ranking, and whether they do it at some rate in all cells, as is
/// asked of the search.
fn control_of_ranks(found: &[Found]) -> (bool, String) {
    let cells = found.iter().filter(|one| one.control.is_some());
    let hits = count(cells, |one| one.control.as_ref().is_some_and(Ranking::holds));
    let word = finding::fires(hits.any());
    let text = format!(
        "the control of ranks {word}: with channels planted in the trained weights, operators rank so in {} of {} cells, {}",
        hits.hits,
        hits.cells,
        hits.words()
    );
    (hits.any(), text)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "E21"
    }

    fn title(&self) -> &'static str {
        "where channels settle and operators rank: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind E2 and E5 (arXiv 2602.02047, Table 3, Figures 5 and 8)"
    }

    fn claim(&self) -> &'static str {
        "Over five rates of two decades, two depths, planted channels and none, and training in bfloat16 and NVFP4, there is a rate \
         at which, in all cells without planted channels, hot channels drift and settle by the rule of E5 (consecutive sets agree more and more in each seed; 95 % \
         intervals of the Jaccard index with the final set below 0.4 in the first quarter and above 0.7 in the last), and one at which the operators of softmax attention rank as \
         in the paper (v_proj in the highest third, down_proj in the lowest and below it in all seeds) at the last weights. \
         Reproduced if there are both. The \
         controls: of channels planted after norms from the beginning the sets must stay, above 0.7 and above those without; where channels are planted once a run in bfloat16 of two layers at the middle rate has ended, which then goes on for half \
         as long at its full rate, they must be found to drift and settle by the rule above; and models of softmax attention \
         trained in bfloat16, in whose trained weights channels are planted (which changes no bit of their loss in bfloat16), must rank as in the \
         paper, in all cells of a rate and all seeds."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        grid::arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let cells = grid::cells(setting).into_iter();
        let found: Vec<Found> =
            cells.map(|cell| Found::of(setting, runs, cell)).collect::<Result<_>>()?;
        let (stay, settling) = control(&found);
        let (drift, drifting) = control_of_drift(&found);
        let (rank, ranks) = control_of_ranks(&found);
        let verdict = judge(&found);
        let text = format!("{}; {settling}; {drifting}; {ranks}", verdict.reason());
        let verdict =
            if stay && drift && rank { verdict.with(text) } else { Verdict::NotSeen(text) };
        let mut parts: Vec<Part> =
            Kind::ALL.map(|kind| Part::Picture(picture(setting, &found, kind))).into();
        parts.push(Part::Table(table(&found)));
        Ok(Findings { verdict, parts })
    }
}

/// Agreement in the last quarter and places, by rate, over cells and seeds without planted channels.
fn picture(setting: &Setting, found: &[Found], kind: Kind) -> plot::Figure {
    let rates = grid::rates(setting);
    let own = |lr: f64| {
        found
            .iter()
            .filter(move |one| one.cell.kind == kind && one.cell.lr == lr && !one.cell.planted)
    };
    let settled = |last: bool| {
        let pick = move |one: &Sets| {
            let (first, end) = quarters(&one.last);
            if last { end } else { first }
        };
        let of = |lr: f64| own(lr).flat_map(|one| one.settled.iter().map(pick)).collect::<Vec<_>>();
        rates.iter().enumerate().filter_map(|(x, lr)| at(x, &of(*lr))).collect::<Vec<_>>()
    };
    let sensitivity = |name: &str| {
        let of = |lr: f64| own(lr).flat_map(|one| one.ranking.operator(name)).collect::<Vec<_>>();
        rates.iter().enumerate().filter_map(|(x, lr)| at(x, &of(*lr))).collect::<Vec<_>>()
    };
    let names = rates.iter().map(|lr| format!("{lr:e}"));
    let top = most(kind);
    plot::Figure::new(format!("{}: hot channels and operators by learning rate", kind.name()))
        .subtitle("no planted channels; mean and 95 % interval over depths, formats and seeds")
        .x(Axis::categories("learning rate", names))
        .panel(
            Panel::new(Axis::linear("Jaccard index with the final set").range(0.0, 1.0))
                .intervals(Intervals::new("first quarter", settled(false)))
                .intervals(Intervals::new("last quarter", settled(true)))
                .rule(0.7, "")
                .rule(0.4, ""),
        )
        .panel(
            Panel::new(Axis::linear("gap, % / share of parameters"))
                .intervals(Intervals::new(top, sensitivity(top)))
                .intervals(Intervals::new("down_proj", sensitivity("down_proj")))
                .rule(0.0, "bfloat16"),
        )
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "cells: agreement of hot channels with the final set and sensitivity at the last weights, mean and range over seeds; \
         top is o_proj (GLA) or v_proj (SA)",
        &[
            "model",
            "rate",
            "layers",
            "planted",
            "trained in",
            "first quarter",
            "last quarter",
            "settles",
            "top",
            "its place",
            "down_proj",
            "its place",
            "ranked",
            "places with channels planted after",
        ],
    );
    for one in found {
        let kind = one.cell.kind;
        let [name, rate, layers, planted, recipe] = one.cell.words();
        let (first, last): (Vec<f64>, Vec<f64>) =
            one.settled.iter().map(|one| quarters(&one.last)).unzip();
        let word = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
        let of = |name: &str| one.ranking.mean(name).map_or_else(|| "-".into(), number);
        let count = operators(kind).len();
        let place = |ranking: &Ranking, name: &str| format!("{} of {count}", ranking.place(name));
        let planted_after = one.control.as_ref().map_or_else(String::new, |control| {
            [most(kind), "down_proj"].map(|name| place(control, name)).join(", ")
        });
        table.row([
            name,
            rate,
            layers,
            planted,
            recipe,
            spread(&first),
            spread(&last),
            word(settle(&one.settled)),
            of(most(kind)),
            place(&one.ranking, most(kind)),
            of("down_proj"),
            place(&one.ranking, "down_proj"),
            word(one.ranking.holds()),
            planted_after,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::of as ranking;
    use super::*;

    /// Sets whose agreement with the final one jumps in the middle, and that change less and less or more and more.
    fn sets_from(first: f64, end: f64, rises: bool) -> Sets {
        let at = |i: u32| if i <= 10 { first } else { end };
        let slope = if rises { 0.01 } else { -0.01 };
        let points = |of: &dyn Fn(u32) -> f64| (1..=20).map(|i| (f64::from(i), of(i))).collect();
        let consecutive = points(&|i| 0.5 + slope * f64::from(i));
        Sets { consecutive, last: points(&at), ..Sets::default() }
    }

    fn found(lr: f64, planted: bool, last: f64, v: f64) -> Found {
        let cell = Cell { kind: Kind::Sa, lr, layers: 2, planted, recipe: BF16 };
        Found {
            cell,
            // Planted channels do not drift.
            settled: vec![sets_from(if planted { 0.6 } else { 0.2 }, last, true); 3],
            stay: vec![last - 0.01, last, last + 0.01],
            replanted: None,
            ranking: ranking(v),
            control: None,
        }
    }

    #[test]
    fn all_cells_of_a_rate_must_show_it() {
        let word = |cells: &[Found]| judge(cells).word();
        let (yes, no) = (|lr| found(lr, false, 0.8, 2.0), |lr| found(lr, true, 0.5, 0.2));
        assert_eq!(word(&[yes(1e-3), yes(1e-3)]), "reproduced");
        let apart = |v: f64| found(1e-3, false, 0.5, v);
        assert_eq!(word(&[yes(1e-3), apart(2.0)]), "not seen at this scale");
        assert_eq!(
            word(&[yes(1e-3), no(1e-3)]),
            "not seen at this scale",
            "a planted cell ranks otherwise"
        );
        assert_eq!(word(&[yes(1e-3), no(1e-2)]), "reproduced");
        // What the control asks of planted channels leaves room for it.
        let both = [yes(1e-3), found(1e-3, true, 0.95, 2.0)];
        assert!(word(&both) == "reproduced" && control(&both).0);
        // One of the two is not enough.
        assert_eq!(word(&[found(1e-3, false, 0.8, 0.2)]), "not seen at this scale");
        assert_eq!(word(&[found(1e-3, false, 0.5, 2.0)]), "not seen at this scale");
    }

    #[test]
    fn means_forgive_one_seed() {
        let mut seeds = vec![sets_from(0.2, 0.8, true); 3];
        assert!(settle(&seeds) && settle_by_means(&seeds));
        seeds[0] = sets_from(0.3, 0.69, false);
        assert!(!settle(&seeds) && settle_by_means(&seeds));
        seeds[1] = sets_from(0.2, 0.5, true);
        assert!(!settle_by_means(&seeds), "0.66 in the last quarter");
        assert!(!settle(&[]) && !settle_by_means(&[]));
    }

    #[test]
    fn the_control_needs_planted_channels_to_stay() {
        let cells = |planted: f64, plain: f64| {
            control(&[found(1e-3, true, planted, 1.0), found(1e-3, false, plain, 1.0)]).0
        };
        assert!(cells(0.9, 0.5));
        assert!(!cells(0.6, 0.5), "they do not stay");
        assert!(!cells(0.9, 0.95), "others stay as well");
    }

    #[test]
    fn the_control_of_drift_needs_all_seeds_of_all_cells() {
        let with = |last: f64| {
            let replanted = Some(vec![sets_from(0.2, 0.9, true), sets_from(0.2, last, true)]);
            Found { replanted, ..found(1e-3, false, 0.5, 1.0) }
        };
        assert!(control_of_drift(&[with(0.9), with(0.9)]).0);
        assert!(!control_of_drift(&[with(0.9), with(0.6)]).0);
        assert!(!control_of_drift(&[found(1e-3, false, 0.8, 1.0)]).0, "nothing was planted");
    }

    #[test]
    fn the_control_of_ranks_needs_all_cells_of_a_rate() {
        let with =
            |lr: f64, v: f64| Found { control: Some(ranking(v)), ..found(lr, false, 0.5, 0.2) };
        assert!(control_of_ranks(&[with(1e-3, 2.0), with(1e-2, 0.2)]).0);
        assert!(!control_of_ranks(&[with(1e-3, 2.0), with(1e-3, 0.2)]).0);
        assert!(!control_of_ranks(&[found(1e-3, false, 0.5, 2.0)]).0, "nothing was planted");
    }
}
