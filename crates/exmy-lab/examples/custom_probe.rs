//! A probe and a figure of one's own, in one file: how large tokens become on their way through a network
//! that is trained in few bits.
//!
//! `cargo run --release -p exmy-lab --example custom_probe -- OUT` trains six small runs and writes
//! `OUT/report.html`; a second call finds them and only draws. Names of runs say nothing of a probe of one's
//! own: after a change of `Tokens` name another folder, or remove `OUT/runs`, or the page shows the old
//! values.

use exmy::error::Result;
use exmy::slice::View;

use exmy_lab::finding::{Experiment, Findings, Paper, Part, Table, Verdict};
use exmy_lab::plot::{self, Axis, Panel, Series};
use exmy_lab::report::{self, Provenance};
use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::runner::{Progress, Silent, Train};
use exmy_lab::store::{Runs, Store};
use exmy_lab::study_scale::StudyScale;
use exmy_train::nn::site::Place;
use exmy_train::recipe::{Observer, Recipe};
use exmy_train::train::data::{Dataset, Source};
use exmy_train::train::probe::{Probe, Snapshot, Values};
use exmy_train::train::run::Outcome;
use std::sync::Arc;

/// The largest norm of a token in the residual stream, layer by layer.
#[derive(Default)]
struct Tokens(Vec<(u32, f64)>);

impl Observer for Tokens {
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        if let (Some(layer), Place::Residual, false) = (layer, place, gradient) {
            let at = |i: usize, j: usize| f64::from(values.at(i, j));
            let norm = |i: usize| (0..values.cols()).map(|j| at(i, j) * at(i, j)).sum::<f64>();
            let most = (0..values.rows()).map(norm).fold(0.0, f64::max).sqrt();
            self.0.push((layer, most));
        }
    }
}

impl Probe for Tokens {
    fn name(&self) -> &str {
        "tokens"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        // A block adds to the stream twice; its last word counts.
        for (layer, most) in self.0.drain(..) {
            values.part(format!("layers.{layer}"), most);
            values.set(most);
        }
    }
}

/// Do tokens grow more in fewer bits?
struct Growth;

const RECIPES: [&str; 3] = ["f32", "mxfp8-e4m3", "mxfp4"];

impl Growth {
    fn runs_of(setting: &Setting, recipe: &str) -> Vec<RunConfig> {
        let recipe: Recipe = recipe.parse().expect("a recipe of the list above");
        let config = |seed| {
            let mut config = setting.config("nano");
            config.recipe = recipe.clone();
            config.seed = seed;
            config.train.steps = 100;
            config.record.probe_every = 5;
            RunConfig::new(config)
        };
        (1..=2).map(config).collect()
    }
}

impl Experiment for Growth {
    fn id(&self) -> &'static str {
        "tokens"
    }

    fn title(&self) -> &'static str {
        "norms of tokens by number format"
    }

    fn source(&self) -> &'static str {
        "a question of our own"
    }

    fn claim(&self) -> &'static str {
        "Nothing is claimed; the picture shows it."
    }

    fn runs(&self, setting: &Setting) -> Vec<RunConfig> {
        RECIPES.into_iter().flat_map(|recipe| Self::runs_of(setting, recipe)).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut panel = Panel::new(Axis::linear("largest norm of a token after the last block"));
        let mut table = Table::new("largest norm at the end", &["recipe", "seed 1", "seed 2"]);
        for recipe in RECIPES {
            let mut row = vec![recipe.to_owned()];
            for (seed, run) in Self::runs_of(setting, recipe).iter().enumerate() {
                let values = runs.of(run)?.values("tokens")?;
                row.push(values.last().map_or_else(|| "-".into(), |last| format!("{:.2}", last.1)));
                if seed == 0 {
                    panel = panel.line(Series::new(recipe, values));
                }
            }
            table.row(row);
        }
        let picture =
            plot::Figure::new("How large tokens become").x(Axis::linear("step")).panel(panel);
        let verdict = Verdict::Shown("two seeds".into());
        Ok(Findings::of(verdict, vec![Part::Picture(picture), Part::Table(table)]))
    }
}

/// Prints each run that ends, and never stops.
struct PrintRuns;

impl Progress for PrintRuns {
    fn run(&self, index: usize, _: &Dataset, train: Train<'_>) -> Result<Outcome> {
        let outcome = train(&mut Silent)?;
        println!("run {} is complete", index + 1);
        Ok(outcome)
    }

    fn goes_on(&self) -> bool {
        true
    }
}

fn main() -> Result<()> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "runs/custom-probe".into());
    let study = Paper {
        name: "tokens",
        title: "How large tokens become",
        source: "this example",
        about: "The norm of a token's vector in the residual stream grows with depth and with training.",
        figures: &[&Growth],
    };
    let (setting, data) = Setting::new(StudyScale::Small, Source::default())?;
    let store = Store::new(&out).with_probes(|_| vec![Box::new(Tokens::default())]);
    let runs: Vec<_> = Growth.runs(&setting).iter().map(RunConfig::run).collect();
    store.runner().with_jobs(2).work(&runs, Some(Arc::new(data)), &PrintRuns)?;
    let provenance = Provenance { command: "custom_probe".into(), machine: String::new() };
    let found = report::find(study.figures, &setting, &store, |_| true)?.unwrap_or_default();
    report::make(&study, study.figures, (&setting, &store), &found, out.as_ref(), &provenance)?;
    println!("{out}/report.html");
    Ok(())
}
