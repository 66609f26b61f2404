//! `manifest.json`: what a folder of runs, or of a page, is.
//!
//! No clock, host or path from outside stands in it, so it has the same bytes whoever writes it.

use crate::study_scale::StudyScale;
use exmy_train::train::config::share_name;
use exmy_train::train::run::Summary;
use serde::{Deserialize, Serialize};

/// The version of the keys. Version 1 has other [names of formats](exmy::text::old).
pub(super) const VERSION: u32 = 2;

/// Which command made a folder, and what it says of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// `exmy train`: recipes side by side.
    Train {
        /// What the data are, in words.
        data: String,
        /// Nats per token of the text's own source on the validation text, where it is known.
        reference: Option<f64>,
    },
    /// `exmy sweep`: a grid.
    Sweep,
    /// `exmy study`.
    Study {
        /// Its name.
        study: String,
        /// How large it is.
        scale: StudyScale,
    },
}

/// One run of a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its folder, seen from that of the manifest.
    pub folder: String,
    /// The values of the keys.
    pub values: Vec<String>,
    /// Its result, once it is complete and results were collected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<Summary>,
}

/// What `report.html` beside the manifest shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The study.
    pub study: String,
    /// Its scale; not known of a page of an early version.
    pub scale: Option<StudyScale>,
    /// The figures.
    pub figures: Vec<String>,
}

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) version: u32,
    /// What made the folder.
    #[serde(flatten)]
    pub kind: Kind,
    /// In what the runs differ by plan: the recipe first, the seed last.
    pub keys: Vec<String>,
    /// The runs in order; what others are compared with first.
    pub runs: Vec<Entry>,
    /// The study's page that lies there, if one does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub page: Option<Page>,
}

impl Manifest {
    /// Of some runs without results.
    pub fn new(kind: Kind, keys: Vec<String>, runs: Vec<Entry>) -> Self {
        Self { version: VERSION, kind, keys, runs, page: None }
    }

    /// Gives today's names to the formats in it.
    pub(super) fn modernize(&mut self) {
        self.version = VERSION;
        for entry in &mut self.runs {
            for (_, recipe) in
                self.keys.iter().zip(&mut entry.values).filter(|(key, _)| *key == "recipe")
            {
                *recipe = share_name(recipe);
            }
            entry.result = entry.result.take().map(Summary::modern);
        }
    }

    /// Names of the runs, for tables: the values of all keys but the seed.
    pub(super) fn labels(&self) -> (Vec<&str>, Vec<Vec<String>>) {
        let is_label = |key: &&String| *key != "seed";
        let header = self.keys.iter().filter(is_label).map(String::as_str).collect();
        let of = |entry: &Entry| {
            let values = self.keys.iter().zip(&entry.values).filter(|(key, _)| is_label(key));
            values.map(|(_, value)| value.clone()).collect()
        };
        (header, self.runs.iter().map(of).collect())
    }

    /// The name of a run in a picture, which it shares with those that differ in the seed alone: its recipe,
    /// and the other keys with their values.
    pub(super) fn title(&self, entry: &Entry) -> String {
        let word = |(key, value): (&String, &String)| match key.as_str() {
            "recipe" => value.clone(),
            key => format!("{key} {value}"),
        };
        let is_label = |(key, _): &(&String, &String)| *key != "seed";
        self.keys.iter().zip(&entry.values).filter(is_label).map(word).collect::<Vec<_>>().join(" ")
    }
}
