//! The two grids of runs that BR-16 to BR-26 search: models of the kind of `nano`, five learning rates over two decades
//! and two depths; FP8 on clean text and on noisy text, and cut mantissas with gradients clipped and not.
//!
//! Each reads 200 runs and more; BR-20 trains its own formats in the cells of the second, BR-21 to BR-23 and BR-26 have twice the seeds, and BR-24 and BR-25 measure while they train. MXFP4 stands in every cell: it is what most of
//! their detectors must see.

use super::common::{Fate, Spec, all, fate, seeds, tails, vocab};
use crate::error::Result;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::store::Runs;

/// What FP8 is compared with, as the paper has it.
pub(super) const BF16: &str = "bf16";
/// FP8 as MS-AMP does it.
pub(super) const FP8: &str = "msamp-o1";
/// The same with the head in bfloat16.
pub(super) const HEAD: &str = "msamp-o1+lm_head=bf16";
/// The format of the controls.
pub(super) const MXFP4: &str = "mxfp4";
/// Mantissas of seven bits, what cut ones are compared with.
pub(super) const E8M7: &str = "bitred-e8m7";
/// What bfloat16 is said to fail more often than.
pub(super) const TF32: &str = "tf32";
/// Mantissas of five bits,
pub(super) const E8M5: &str = "bitred-e8m5";
/// of three,
pub(super) const E8M3: &str = "bitred-e8m3";
/// and of one, truncated as the paper does it,
pub(super) const E8M1: &str = "bitred-e8m1";
/// rounded to nearest,
pub(super) const NEAREST: &str = "bitred-e8m1+round=rne";
/// and stochastically.
pub(super) const STOCHASTIC: &str = "bitred-e8m1+round=sr8";

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grid {
    /// Of FP8.
    Fp8,
    /// Of cut mantissas.
    Cut,
}

/// What runs of some seeds have in common that differ in their numbers only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) grid: Grid,
    /// The peak learning rate.
    pub(super) lr: f64,
    pub(super) layers: usize,
    /// The third knob: whether three tenths of the tokens are replaced by random ones (FP8), whether gradients are clipped
    /// at norm 1 (cut mantissas).
    pub(super) third: bool,
    /// How many runs there are of each format, at small and medium.
    pub(super) seeds: u64,
}

/// Steps of every run.
pub(super) fn steps(setting: &Setting) -> u64 {
    setting.scale.pick([20, 200, 200, 20_000])
}

impl Grid {
    /// The learning rates; those of cut mantissas are twice as high, as they are looked at up to where runs break.
    pub(super) fn rates(self, setting: &Setting) -> Vec<f64> {
        let usual = match setting.scale {
            Scale::Smoke => vec![3e-3],
            Scale::Small | Scale::Medium => vec![1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
            Scale::Full => vec![4e-5, 1.2e-4, 4e-4, 1.2e-3, 4e-3],
        };
        match self {
            Self::Fp8 => usual,
            Self::Cut => usual.into_iter().map(|lr| 2.0 * lr).collect(),
        }
    }

    /// The cells, rate by rate.
    pub(super) fn cells(self, setting: &Setting) -> Vec<Cell> {
        self.cells_at(setting, &self.rates(setting))
    }

    /// The cells of some rates.
    pub(super) fn cells_at(self, setting: &Setting, rates: &[f64]) -> Vec<Cell> {
        let depths = setting.scale.pick([vec![2], vec![2, 4], vec![2, 4], vec![12, 24]]);
        let seeds = if self == Self::Fp8 { 5 } else { 4 };
        let mut cells = Vec::new();
        for &lr in rates {
            for &layers in &depths {
                let of = |third| Cell { grid: self, lr, layers, third, seeds };
                cells.extend([false, true].map(of));
            }
        }
        cells
    }
}

/// The runs of cells in some formats; none where the search belongs to a larger scale.
pub(super) fn arms(setting: &Setting, cells: Vec<Cell>, recipes: &[&str]) -> Vec<Arm> {
    if setting.scale == Scale::Small {
        return Vec::new();
    }
    let of = |cell: Cell| {
        let recipes = recipes.iter().filter(move |recipe| cell.has(recipe));
        recipes.flat_map(move |recipe| cell.arms(setting, recipe))
    };
    cells.into_iter().flat_map(of).collect()
}

impl Cell {
    /// Whether it is trained in a recipe: without the head FP8 is trained on clean text alone, as in the paper.
    fn has(self, recipe: &str) -> bool {
        recipe != HEAD || !self.third
    }

    /// The same with noisy text, or clipped gradients.
    pub(super) fn other(self) -> Self {
        Self { third: true, ..self }
    }

    /// Its runs of one recipe, by seed.
    pub(super) fn arms(self, setting: &Setting, recipe: &str) -> Vec<Arm> {
        self.arms_with(setting, recipe, "")
    }

    /// The same with further keys, as TOML.
    pub(super) fn arms_with(self, setting: &Setting, recipe: &str, keys: &str) -> Vec<Arm> {
        let Self { grid, lr, layers, third, seeds: most } = self;
        let steps = steps(setting);
        let preset = setting.scale.pick(["nano", "nano", "nano", "llama-120m"]);
        let (clip, noise) = match grid {
            Grid::Fp8 => (1.0, if third { 0.3 } else { 0.0 }),
            Grid::Cut => (if third { 1.0 } else { 0.0 }, 0.0),
        };
        let more = format!(
            "model.layers = {layers}\ntrain.clip = {clip:?}\ndata.noise = {noise:?}\n{keys}"
        );
        let of = |seed| {
            let spec = Spec { lr, more: more.clone(), ..Spec::new(preset, recipe, seed, steps) };
            spec.arm(setting)
        };
        seeds(setting, [1, most, most, 3]).map(of).collect()
    }

    /// The same with sharpness and the largest logit measured 25 times.
    pub(super) fn watched(self, setting: &Setting, recipe: &str) -> Vec<Arm> {
        let every = (steps(setting) / 25).max(1);
        let keys = format!("record.probes = [\"logits\", \"phi\"]\nrecord.probe_every = {every}\n");
        self.arms_with(setting, recipe, &keys)
    }

    /// The mean training losses of the last tenth of the steps, by seed; infinite where a run diverged.
    pub(super) fn losses(
        self,
        setting: &Setting,
        runs: &Runs<'_>,
        recipe: &str,
    ) -> Result<Vec<f64>> {
        Ok(tails(&all(runs, &self.arms(setting, recipe))?))
    }

    /// What became of its runs of one recipe, by seed.
    pub(super) fn fates(
        self,
        setting: &Setting,
        runs: &Runs<'_>,
        recipe: &str,
    ) -> Result<Vec<Fate>> {
        let arms = self.arms(setting, recipe);
        let of = |arm: &Arm| Ok(fate(&runs.of(arm)?, vocab(arm)));
        arms.iter().map(of).collect()
    }

    /// What tables call it beside its rate: layers, the third knob.
    pub(super) fn words(self) -> [String; 2] {
        [self.layers.to_string(), if self.third { "yes" } else { "no" }.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_searches_are_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let count = |grid: Grid, recipes: &[&str], only_clean: bool| {
            let cells = grid.cells(&setting).into_iter().filter(|cell| !only_clean || !cell.third);
            let setting = &setting;
            let of = |cell: Cell| recipes.iter().flat_map(move |r| cell.arms(setting, r));
            let mut names: Vec<String> = cells.flat_map(of).map(|arm| arm.name()).collect();
            names.sort();
            names.dedup();
            names.len()
        };
        assert_eq!(count(Grid::Fp8, &[BF16, FP8], false), 200, "BR-16 without the head, BR-17");
        assert_eq!(count(Grid::Fp8, &[HEAD], true), 50);
        assert_eq!(count(Grid::Cut, &[E8M7, E8M3, E8M1], false), 240, "BR-18");
        assert_eq!(count(Grid::Cut, &[E8M1, NEAREST, STOCHASTIC], false), 240, "BR-19");
        let all =
            |grid: Grid, recipes: &[&str]| arms(&setting, grid.cells(&setting), recipes).len();
        assert_eq!(all(Grid::Fp8, &[BF16, FP8, HEAD, MXFP4]), 350, "the head on clean text alone");
        let cut = [E8M7, E8M3, E8M1, NEAREST, STOCHASTIC, MXFP4];
        assert_eq!(all(Grid::Cut, &cut), 480);
        for grid in [Grid::Fp8, Grid::Cut] {
            let rates = grid.rates(&setting);
            assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 99.0 * rates[0]);
        }
    }
}
