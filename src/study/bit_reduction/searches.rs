//! BR-16, BR-17, BR-19, BR-21 to BR-23 and BR-26: the searches behind BR-5, BR-10, BR-14, BR-6, BR-8 (twice) and BR-1, which are not
//! seen at the rates that those train at.
//!
//! Each reads [differences](crate::study::differences) over the rates of its [grid](super::grid), paired by seed: of final losses, of
//! spikes, and of runs that fail.

use super::common::{Fate, vocab};
use super::grid::{
    self, BF16, Cell, E8M1, E8M3, E8M5, E8M7, FP8, Grid, HEAD, MXFP4, NEAREST, STOCHASTIC, TF32,
};
use crate::error::Result;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::differences::{self, Beside, Found, less, minus};
use crate::study::finding::{Figure, Findings};
use crate::study::store::Runs;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// BR-16: whether FP8 costs anything.
    Fp8,
    /// BR-17: whether noisy text widens its gap.
    Noise,
    /// BR-19: whether truncation is worse than rounding to nearest.
    Roundings,
    /// BR-21: whether fewer mantissa bits cost more where the rate is stressed.
    Bits,
    /// BR-22: whether one mantissa bit brings more spikes than seven.
    Spikes,
    /// BR-26: whether five do, which is what BR-8 asks.
    FiveBits,
    /// BR-23: whether bfloat16 fails where TF32 does not.
    Failures,
}

fn spikes(fate: &Fate) -> f64 {
    fate.verdict.spikes_per_thousand(fate.steps)
}

impl Search {
    fn grid(self) -> Grid {
        match self {
            Self::Fp8 | Self::Noise => Grid::Fp8,
            Self::Roundings | Self::Bits | Self::Spikes | Self::FiveBits | Self::Failures => {
                Grid::Cut
            }
        }
    }

    /// The formats that are read.
    const fn recipes(self) -> [&'static str; 4] {
        match self {
            Self::Fp8 | Self::Noise => [BF16, FP8, HEAD, MXFP4],
            Self::Roundings => [E8M7, E8M1, NEAREST, STOCHASTIC],
            Self::Bits | Self::Spikes => [E8M7, E8M3, E8M1, MXFP4],
            Self::FiveBits => [E8M7, E8M5, E8M1, MXFP4],
            Self::Failures => [TF32, BF16, E8M3, MXFP4],
        }
    }

    /// The learning rates. At none of the grid's bfloat16 fails, so four more go on until it does: at 9 weight decay
    /// alone takes nine tenths of the weights in a step.
    fn rates(self, setting: &Setting) -> Vec<f64> {
        let mut rates = self.grid().rates(setting);
        if self == Self::Failures && setting.scale == Scale::Medium {
            rates.extend([1.0, 4.0, 6.0, 9.0]);
        }
        rates
    }

    /// The cells. Losses of stressed runs scatter, and spikes and failing runs are few: they have twice the grid's seeds.
    fn cells(self, setting: &Setting) -> Vec<Cell> {
        let mut cells = self.grid().cells_at(setting, &self.rates(setting));
        if matches!(self, Self::Bits | Self::Spikes | Self::FiveBits | Self::Failures) {
            cells.iter_mut().for_each(|cell| cell.seeds *= 2);
        }
        cells
    }

    /// What differences are called: searched for, the control, beside.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Fp8 => {
                ["FP8 above BF16", "MXFP4 above BF16", "FP8 above FP8 with its head in BF16"]
            }
            Self::Noise => [
                "the gap of FP8 on noisy text less that on clean",
                "that of MXFP4 on noisy text less FP8's on clean",
                "the gap of FP8 on noisy text",
            ],
            Self::Roundings => [
                "E8M1 truncated above to nearest",
                "E8M1 truncated above E8M7",
                "E8M1 truncated above stochastic",
            ],
            Self::Bits => ["E8M1 above E8M7", "MXFP4 above E8M7", "E8M3 above E8M7"],
            Self::Spikes => [
                "spikes of E8M1 beyond those of E8M7",
                "MXFP4's beyond E8M7's",
                "E8M3's beyond E8M7's",
            ],
            Self::FiveBits => [
                "spikes of E8M5 beyond those of E8M7",
                "MXFP4's beyond E8M7's",
                "E8M1's beyond E8M7's",
            ],
            Self::Failures => [
                "failing runs in bfloat16 beyond those in TF32",
                "MXFP4's beyond TF32's",
                "E8M3's beyond TF32's",
            ],
        }
    }

    fn found(self, setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Found> {
        let vocab = cell.arms(setting, MXFP4).first().map_or(1, vocab);
        let gap = |cell: Cell, a: &str, b: &str| -> Result<Vec<f64>> {
            let of = |recipe| cell.losses(setting, runs, recipe);
            Ok(less(&of(a)?, &of(b)?, vocab))
        };
        let more =
            |base: &str, others: [&str; 3], count: fn(&Fate) -> f64| -> Result<[Vec<f64>; 3]> {
                let of = |recipe: &str| -> Result<Vec<f64>> {
                    Ok(cell.fates(setting, runs, recipe)?.iter().map(count).collect())
                };
                let base = of(base)?;
                let less = |recipe| -> Result<Vec<f64>> { Ok(minus(&of(recipe)?, &base)) };
                let [a, b, c] = others.map(less);
                Ok([a?, b?, c?])
            };
        let [searched, control, beside] = match self {
            Self::Fp8 => {
                let head = if cell.third { vec![] } else { gap(cell, FP8, HEAD)? };
                [gap(cell, FP8, BF16)?, gap(cell, MXFP4, BF16)?, head]
            }
            Self::Noise => {
                let clean = gap(cell, FP8, BF16)?;
                let wider = |noisy: &[f64]| minus(noisy, &clean);
                let noisy = gap(cell.other(), FP8, BF16)?;
                [wider(&noisy), wider(&gap(cell.other(), MXFP4, BF16)?), noisy]
            }
            Self::Roundings => {
                let of = |other| gap(cell, E8M1, other);
                [of(NEAREST)?, of(E8M7)?, of(STOCHASTIC)?]
            }
            Self::Bits => [gap(cell, E8M1, E8M7)?, gap(cell, MXFP4, E8M7)?, gap(cell, E8M3, E8M7)?],
            Self::Spikes => more(E8M7, [E8M1, MXFP4, E8M3], spikes)?,
            Self::FiveBits => more(E8M7, [E8M5, MXFP4, E8M1], spikes)?,
            Self::Failures => {
                more(TF32, [BF16, MXFP4, E8M3], |fate| f64::from(u8::from(fate.failed)))?
            }
        };
        let [layers, third] = cell.words();
        let words = if self == Self::Noise { vec![layers] } else { vec![layers, third] };
        Ok(Found { lr: cell.lr, words, searched, control, beside })
    }
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        match self {
            Self::Fp8 => "BR-16",
            Self::Noise => "BR-17",
            Self::Roundings => "BR-19",
            Self::Bits => "BR-21",
            Self::Spikes => "BR-22",
            Self::Failures => "BR-23",
            Self::FiveBits => "BR-26",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Fp8 => "what FP8 costs, by learning rate: the search",
            Self::Noise => "FP8 on noisier data: the search",
            Self::Roundings => "truncation and rounding to nearest: the search",
            Self::Bits => "what mantissa bits cost, by learning rate: the search",
            Self::Spikes => "spikes by mantissa bits: the search",
            Self::FiveBits => "spikes in E8M5: the search",
            Self::Failures => "runs that fail in bfloat16 and TF32: the search",
        }
    }

    fn source(&self) -> &'static str {
        match self {
            Self::Fp8 => "a question of this study's own, behind BR-5 (v1 Fig. 5, v2 Fig. 6)",
            Self::Noise => "a question of this study's own, behind BR-10 (v2 Fig. 12)",
            Self::Roundings => {
                "a question of this study's own, behind BR-14 (asked for by reviewers)"
            }
            Self::Bits => "a question of this study's own, behind BR-6 (v2 Fig. 7)",
            Self::Spikes | Self::FiveBits => {
                "a question of this study's own, behind BR-8 (v1 Fig. 8, v2 Fig. 9)"
            }
            Self::Failures => "a question of this study's own, behind BR-1 (v1 and v2 Fig. 1)",
        }
    }

    fn claim(&self) -> &'static str {
        match self {
            Self::Fp8 => {
                "There is a learning rate at which FP8 ends above BF16, over models of two and four layers, on clean and on noisy \
                 text, in runs of 200 steps at five rates (at medium). Reproduced if at a rate the interval of the paired differences \
                 lies above 0, of the means over cells of each seed, at 99 % as there are five. What is saved by a head in BF16 is told \
                 and not judged, as in BR-5. The control: MXFP4 must be seen above BF16 so."
            }
            Self::Noise => {
                "There is a learning rate at which random tokens in the text widen the gap between FP8 and BF16, over models of two \
                 and four layers, in runs of 200 steps at five rates (at medium). Reproduced if at a rate the intervals of the change of \
                 paired gaps and of the gap on noisy text lie above 0, of the means over cells of each seed, at 99 % as there are five. \
                 The control tells that a wider gap would be seen: that of MXFP4 on noisy text must be seen wider than that of FP8 on clean text."
            }
            Self::Roundings => {
                "There is a learning rate at which E8M1 ends higher truncated than rounded to nearest, over models of two and four \
                 layers, with gradients clipped and not, in runs of 200 steps at five rates (at medium). Reproduced if at a rate the interval \
                 of the paired differences lies above 0, of the means over cells of each seed, at 99 % as there are five. The control: \
                 truncated E8M1 must be seen above E8M7 so, the whole damage of which a part is searched for."
            }
            Self::Bits => {
                "There is a learning rate at which E8M1 ends above E8M7, over models of two and four layers, with gradients clipped and \
                 not, in runs of 200 steps at five rates (at medium) of which the lowest is twice the usual one. Reproduced if at a rate the interval of the paired \
                 differences lies above 0, of the means over cells of each seed, at 99 % as there are five; the rates at which it lies below are told. What \
                 E8M3 costs is told and not judged. The control: MXFP4 must be seen above E8M7 so."
            }
            Self::Spikes => {
                "There is a learning rate at which E8M1 has more spikes than E8M7, over models of two and four layers, with gradients clipped \
                 and not, in runs of 200 steps at five rates (at medium). Reproduced if at a rate the interval of the paired differences lies above \
                 0, of the means over cells of each seed, at 99 % as there are five. A spike is as in BR-8. What E8M3 has is told and not judged. The control: \
                 MXFP4, whose losses are rough, must be seen to have more than E8M7 so."
            }
            Self::FiveBits => {
                "There is a learning rate at which E8M5 has more spikes than E8M7, the two formats of BR-8, over models of two and four layers, with \
                 gradients clipped and not, in runs of 200 steps at five rates (at medium). Reproduced if at a rate the interval of the paired differences \
                 lies above 0, of the means over cells of each seed, at 99 % as there are five. A spike is as in BR-8. What E8M1 has is told and \
                 not judged: that is BR-22. The control: MXFP4, whose losses are rough, must be seen to have more than E8M7 so."
            }
            Self::Failures => {
                "There is a learning rate at which more runs fail in bfloat16 than in TF32, over models of two and four layers, with gradients \
                 clipped and not, in runs of 200 steps at nine rates (at medium), of which the last were raised until bfloat16 fails. Reproduced if at a rate the interval of the paired \
                 differences of failing shares lies above 0, of the means over cells of each seed, at 99.4 % as there are nine. A run fails as in BR-1. What E8M3 does is told and not \
                 judged. The control: MXFP4 must be seen to fail more often than TF32 so."
            }
        }
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        grid::arms(setting, self.cells(setting), &self.recipes())
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        // The gaps of noisy text are beside those of clean text.
        let cells = self.cells(setting).into_iter();
        let cells = cells.filter(|cell| *self != Self::Noise || !cell.third);
        let found: Vec<Found> =
            cells.map(|cell| self.found(setting, runs, cell)).collect::<Result<_>>()?;
        let (title, columns, legend) = match self {
            Self::Fp8 => (
                "What FP8 costs, by learning rate",
                vec!["layers", "noisy text"],
                ["FP8 - BF16", "MXFP4 - BF16", "FP8 - head BF16"],
            ),
            Self::Noise => (
                "How much wider noise makes the gap of FP8",
                vec!["layers"],
                ["noisy - clean", "MXFP4 - clean FP8", "noisy alone"],
            ),
            Self::Roundings => (
                "What truncation costs in E8M1, by learning rate",
                vec!["layers", "clipped"],
                ["cut - nearest", "cut - E8M7", "cut - stochastic"],
            ),
            Self::Bits => (
                "Losses by mantissa bits and learning rate",
                vec!["layers", "clipped"],
                ["E8M1 - E8M7", "MXFP4 - E8M7", "E8M3 - E8M7"],
            ),
            Self::Spikes => (
                "Spikes by mantissa bits and learning rate",
                vec!["layers", "clipped"],
                ["E8M1 - E8M7", "MXFP4 - E8M7", "E8M3 - E8M7"],
            ),
            Self::FiveBits => (
                "Spikes of E8M5 by learning rate",
                vec!["layers", "clipped"],
                ["E8M5 - E8M7", "MXFP4 - E8M7", "E8M1 - E8M7"],
            ),
            Self::Failures => (
                "Failing runs by format and learning rate",
                vec!["layers", "clipped"],
                ["bfloat16 - TF32", "MXFP4 - TF32", "E8M3 - TF32"],
            ),
        };
        let search = differences::Search {
            title,
            names: self.names(),
            legend,
            unit: match self {
                Self::Spikes | Self::FiveBits => "spikes per 1000 steps",
                Self::Failures => "of all runs",
                _ => "nats",
            },
            least: 0.0,
            asks: if *self == Self::Noise { Beside::Above } else { Beside::Told },
            rates: self.rates(setting),
            columns,
        };
        Ok(search.find(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of the two formats that are compared, and of all.
    #[test]
    fn the_searches_are_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let count = |search: Search, recipes: &[&str]| {
            let setting = &setting;
            let of = |cell: Cell| recipes.iter().flat_map(move |one| cell.arms(setting, one));
            let cells = search.cells(setting).into_iter();
            let mut names: Vec<String> = cells.flat_map(of).map(|arm| arm.name()).collect();
            names.sort();
            names.dedup();
            names.len()
        };
        assert_eq!(count(Search::Fp8, &[BF16, FP8]), 200);
        assert_eq!(count(Search::Noise, &[BF16, FP8]), 200);
        assert_eq!(count(Search::Roundings, &[E8M1, NEAREST, E8M7]), 240, "a part of the damage");
        assert_eq!(count(Search::Bits, &[E8M1, E8M7]), 320);
        assert_eq!(count(Search::Spikes, &[E8M1, E8M7]), 320);
        assert_eq!(count(Search::FiveBits, &[E8M5, E8M7]), 320);
        assert_eq!(count(Search::Failures, &[BF16, TF32]), 576);
        let all = [Search::Fp8, Search::Noise, Search::Roundings, Search::Failures];
        assert_eq!(all.map(|search| search.arms(&setting).len()), [350, 350, 320, 1152]);
        assert!(Search::Bits.arms(&Setting::unread(Scale::Small)).is_empty());
    }
}
