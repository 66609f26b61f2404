//! App C: which proxies become unstable by themselves, and which in MX: the grid that was searched.

use super::common::{F32, Fate, Proxy, STILL, proxy_fate, text};
use super::confirm;
use super::draw::number;
use super::judge;
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Heat, Panel, Series};
use crate::statistics::{coins, mean, wilson};
use crate::store::Runs;
use exmy::error::Result;

/// App C.
pub(super) struct Search;

/// Names and recipes; what MX is compared with comes first, as in MX betas of norms are not trained.
fn formats() -> [(&'static str, String); 6] {
    [
        ("f32, betas still", STILL.into()),
        ("f32", F32.into()),
        ("E4M3", text("e4m3")),
        ("E4M3, gradients E5M2", text("mix")),
        ("E2M3", text("e2m3")),
        ("E2M1", text("e2m1")),
    ]
}

/// What runs of one cell of the grid have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    layers: usize,
    width: usize,
    lr: f64,
    gain: f64,
}

fn grid(setting: &Setting) -> Vec<Cell> {
    let scale = setting.scale;
    let layers = scale.pick([vec![2], vec![2, 4, 8], vec![3, 4, 5, 6, 7, 8]]);
    let widths = scale.pick([vec![32], vec![32, 64], vec![256, 384, 512]]);
    let rates = scale.pick([
        vec![1e-2],
        vec![1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
        vec![1e-5, 5e-5, 1e-4, 5e-4, 1e-3],
    ]);
    let gains = scale.pick([vec![0.95], vec![1.0, 0.95], vec![1.0]]);
    let mut cells = Vec::new();
    for &layers in &layers {
        for &width in &widths {
            for &lr in &rates {
                cells.extend(gains.iter().map(|&gain| Cell { layers, width, lr, gain }));
            }
        }
    }
    cells
}

impl Cell {
    fn arm(self, setting: &Setting, recipe: &str) -> Arm {
        let Self { layers, width, lr, gain } = self;
        let steps = setting.scale.pick([10, 300, 7000]);
        let batch = setting.scale.pick([32, 64, 2048]);
        let spread = if gain < 1.0 { 0.02 } else { 0.0 };
        // Without a warm-up runs at too large rates never learn anything that they could lose.
        let more = format!("train.warmup = {}\n", steps / 5);
        let gain = (gain, spread);
        let proxy = Proxy::of(setting);
        // What F-zeta searches the grid for.
        let (probes, every) = match [F32, STILL].contains(&recipe) {
            true => (proxy.probes, steps / 5),
            // Most divergences are within the warm-up: few measurements would be before them.
            false => (&["lastbin.gamma", "rho_same", "cos_same"][..], (steps / 150).max(1)),
        };
        Proxy {
            recipe: recipe.into(),
            layers,
            width,
            batch,
            steps,
            lr,
            gain,
            more,
            probes,
            every,
            ..proxy
        }
        .arm(setting)
    }
}

/// The MX runs of the grid.
pub(super) fn mx(setting: &Setting) -> Vec<Arm> {
    let formats = formats();
    let of = |cell: Cell| formats[2..].iter().map(move |(_, recipe)| cell.arm(setting, recipe));
    grid(setting).into_iter().flat_map(of).collect()
}

/// Ten times the largest rate, everything in E2M1: the detector must fire.
pub(super) fn positive(setting: &Setting) -> Arm {
    let cell = grid(setting)
        .into_iter()
        .max_by(|a, b| (a.lr * a.layers as f64).total_cmp(&(b.lr * b.layers as f64)));
    let cell = cell.unwrap_or(Cell { layers: 2, width: 32, lr: 0.1, gain: 1.0 });
    Cell { lr: 10.0 * cell.lr, ..cell }.arm(setting, &text("e2m1"))
}

/// E4M3 whose gradients are biased by construction: from a run's middle on those of outputs are rounded to E3M2 without any
/// scale, far above most of them, and the loss follows.
pub(super) fn unscaled() -> String {
    format!("{}+from50%:backward:grad_output=e3m2@sr8", text("e4m3"))
}

/// A run of such gradients. F-zeta must see their bias before the loss.
pub(super) fn biased(setting: &Setting) -> Arm {
    let grid = grid(setting);
    let mut rates: Vec<f64> = grid.iter().map(|cell| cell.lr).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let lr = rates[rates.len().saturating_sub(2)];
    let cell = Cell { lr, gain: 1.0, ..grid[0] };
    let mut arm = cell.arm(setting, &unscaled());
    // The loss follows within ten steps, in which the bias must be seen three times.
    arm.config.record.probe_every = arm.config.record.probe_every.min(2);
    arm
}

/// Final losses in E4M3 over those in f32, by rate and depth, of all widths and gains.
fn heat(setting: &Setting, tails: &[Vec<(Cell, f64)>]) -> plot::Figure {
    let ascending = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let rates = ascending(grid(setting).iter().map(|cell| cell.lr).collect());
    let depths = ascending(grid(setting).iter().map(|cell| cell.layers as f64).collect());
    let mut cells = Vec::new();
    for depth in &depths {
        for rate in &rates {
            let here = |cell: &Cell| cell.lr == *rate && cell.layers as f64 == *depth;
            let pairs = tails[0].iter().zip(&tails[2]).filter(|(plain, _)| here(&plain.0));
            let logs: Vec<f64> = pairs.map(|(plain, mx)| libm::log(mx.1 / plain.1)).collect();
            cells.push(mean(&logs).map_or(f64::NAN, libm::exp));
        }
    }
    let names = |values: &[f64]| values.iter().map(|value| format!("{value}")).collect::<Vec<_>>();
    let value = Axis::log("loss in MX E4M3 over loss in f32");
    plot::Figure::new("Where MX E4M3 ends above f32, and where below")
        .subtitle("geometric mean over widths and gains at the start")
        .x(Axis::categories("learning rate", names(&rates)))
        .panel(Panel::new(Axis::categories("layers", names(&depths))).heat(Heat::of_categories(
            value,
            rates.len(),
            cells,
        )))
}

/// Of each cell whether its f32 run diverged, and its MX runs. If formats do not matter, which of a cell's diverged runs
/// is the f32 one is chance: f32 diverges with the share of all, cell by cell, and the number of its divergences
/// has the distribution of such coins together. (The share of several MX runs is above that of one f32 run more often than below by
/// chance alone, so the signs of their differences tell nothing.)
fn judge(cells: &[(bool, Vec<bool>)], runs: usize) -> Verdict {
    let shares: Vec<f64> = cells
        .iter()
        .map(|(f32, mx)| {
            let diverged = mx.iter().filter(|mx| **mx).count() + usize::from(*f32);
            diverged as f64 / (mx.len() + 1) as f64
        })
        .collect();
    let count = cells.iter().filter(|cell| cell.0).count();
    let expected: f64 = shares.iter().sum();
    let chances = coins(&shares);
    let fewer: f64 = chances[..=count].iter().sum();
    let more: f64 = chances[count..].iter().sum();
    let mx: usize = cells.iter().map(|cell| cell.1.iter().filter(|mx| **mx).count()).sum();
    let text = format!(
        "{runs} runs; in {} cells of the grid {mx} runs diverge in MX and {count} in f32 (betas still), of which chance would \
         have {expected:.1} (as few: p {fewer:.2}, as many: p {more:.2})",
        cells.len(),
    );
    Verdict::of(fewer <= 0.05, more <= 0.05, text)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "AppC"
    }

    fn title(&self) -> &'static str {
        "instability by depth, width, rate and format"
    }

    fn source(&self) -> &'static str {
        "Appendix C: sweeps of proxies over depth, width and learning rate in FP32, E4M3 with E5M2 gradients, and \
         E2M3"
    }

    fn claim(&self) -> &'static str {
        "Large rates make deep and wide proxies unstable in FP32 too; MX makes more of them unstable. Counts as \
         reproduced where more runs are lost in MX alone than in f32 alone (sign test, p at most 0.05), on new seeds \
         at a rate between two of the grid's where most runs explode, and by all of several thresholds (at scale full, without these seeds: where f32 diverges in fewer cells of the grid than chance \
         would have it if formats did not matter, p at most 0.05); \
         f32 leaves betas of norms at 0 there, as the study's MX does. The grid is also the search for \
         divergence that F2a and F4 rest on: rates over two decades, depths, widths, formats, and gains that \
         begin inside the last bin. Every rate is reached by a warm-up of a fifth of the steps."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = vec![positive(setting)];
        for cell in grid(setting) {
            arms.extend(formats().iter().map(|(_, recipe)| cell.arm(setting, recipe)));
        }
        arms.extend(confirm::arms(setting));
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "what became of each run, seed 1, and the final loss (mean squared error)",
            &[
                "layers",
                "width",
                "gains",
                "rate",
                "f32, betas still",
                "f32",
                "E4M3",
                "E4M3, gradients E5M2",
                "E2M3",
                "E2M1",
            ],
        );
        let mut cells = Vec::new();
        let mut lost: Vec<Vec<(f64, bool)>> = vec![Vec::new(); formats().len()];
        let mut ratios: Vec<Vec<(Cell, f64)>> = vec![Vec::new(); formats().len()];
        let mut count = 1;
        for cell in grid(setting) {
            let mut row = vec![
                cell.layers.to_string(),
                cell.width.to_string(),
                cell.gain.to_string(),
                format!("{:e}", cell.lr),
            ];
            let (mut plain, mut mx) = (false, Vec::new());
            for (i, (_, recipe)) in formats().iter().enumerate() {
                let fate: Fate = proxy_fate(runs, &cell.arm(setting, recipe))?;
                count += 1;
                ratios[i].push((cell, fate.tail));
                row.push(format!("{}, {}", number(fate.tail), fate.word()));
                lost[i].push((cell.lr, fate.diverged()));
                match i {
                    0 => plain = fate.diverged(),
                    1 => {}
                    _ => mx.push(fate.diverged()),
                }
            }
            cells.push((plain, mx));
            table.row(row);
        }
        let mut panel = Panel::new(Axis::linear("share of diverged runs").range(0.0, 1.0));
        let mut rates: Vec<f64> = grid(setting).iter().map(|cell| cell.lr).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let mut shares = Table::new(
            "diverged runs, of how many, with the 95 % interval of the share (Wilson)",
            &["numbers", "diverged", "runs", "share", "interval"],
        );
        for ((name, _), lost) in formats().iter().zip(&lost) {
            let share = |rate: &f64| {
                let of: Vec<bool> = lost.iter().filter(|l| l.0 == *rate).map(|l| l.1).collect();
                (*rate, of.iter().filter(|d| **d).count() as f64 / of.len() as f64)
            };
            panel = panel.line(Series::new(*name, rates.iter().map(share)));
            let (hits, all) = (lost.iter().filter(|l| l.1).count(), lost.len());
            let interval = wilson(hits as u64, all as u64, 0.95);
            shares.row([
                (*name).into(),
                hits.to_string(),
                all.to_string(),
                format!("{:.2}", hits as f64 / all as f64),
                interval.map_or_else(|| "-".into(), |i| format!("{:.2} to {:.2}", i.low, i.high)),
            ]);
        }
        let picture = plot::Figure::new("Diverged proxies by learning rate and format")
            .subtitle("over all depths, widths and gains at the start; one seed a cell")
            .x(Axis::log("learning rate"))
            .panel(panel);
        let heat = heat(setting, &ratios);
        let positive = proxy_fate(runs, &positive(setting))?;
        let control = format!("E2M1 at ten times the largest rate: {}", positive.word());
        let mut verdicts = vec![judge(&cells, count)];
        let mut parts = Vec::new();
        if let Some((verdict, table)) = confirm::find(setting, runs)? {
            verdicts.insert(0, verdict);
            parts.extend(table);
        }
        let verdict = judge::first_of(&verdicts);
        let verdict = judge::controlled(positive.diverged(), &control, verdict);
        parts.extend([
            Part::Picture(picture),
            Part::Picture(heat),
            Part::Table(shares),
            Part::Table(table),
        ]);
        Ok(Findings { verdict, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_count_cells() {
        let word = |f32: bool, mx: [bool; 2], count: usize| {
            judge(&vec![(f32, mx.to_vec()); count], 0).word()
        };
        // A third each: eight tails in a row have (2/3)^8 = 0.039, seven 0.059; three heads 1/27, two 1/9.
        assert_eq!(word(false, [true, false], 8), "reproduced");
        assert_eq!(word(false, [true, false], 7), "not seen at this scale");
        assert_eq!(word(true, [false, false], 3), "contradicted");
        assert_eq!(word(true, [false, false], 2), "not seen at this scale");
        assert_eq!(word(true, [true, true], 9), "not seen at this scale", "all diverge");
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        use crate::arm::Scale;
        let setting = Setting::unread(Scale::Small);
        assert!(Search.arms(&setting).len() >= 200);
        assert!(mx(&setting).len() >= 200, "for F-zeta");
    }
}
