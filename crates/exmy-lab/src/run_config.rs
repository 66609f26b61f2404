//! What a study trains: runs by their contents, which figures ask for and share.
//!
//! A [`RunConfig`] is a complete configuration, and perhaps the run that it branches off from. Its name is
//! made of its contents, so two figures that ask for the same run get one, a repeated study finds what is
//! there, and nobody keeps a list. A [`Setting`] is what all runs of a study have in common: the text they
//! learn, and how large everything is.

use crate::runner::{Run, content_name};
use crate::study_scale::StudyScale;
use exmy::error::{Error, Result};
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A text, as far as the names of runs that learn it depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Its source without folders.
    pub name: String,
    /// [`Dataset::fingerprint`], sixteen digits.
    pub fingerprint: String,
    /// The vocabulary of a text of other tokens than bytes.
    pub vocab: Option<usize>,
}

/// What all runs of a study have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// How large they are.
    pub scale: StudyScale,
    source: Source,
    fingerprint: String,
    /// The vocabulary of a text of other tokens than bytes.
    vocab: Option<usize>,
}

impl Setting {
    /// Reads the text that runs learn; the result has it, too.
    ///
    /// # Errors
    /// If it cannot be read or used.
    pub fn new(scale: StudyScale, source: Source) -> Result<(Self, Dataset)> {
        let source = match source {
            Source::Path(path) => Source::Path(
                std::fs::canonicalize(&path).map_err(|error| Error::io("read", &path, error))?,
            ),
            other => other,
        };
        let data = Dataset::load(&source, &DataOptions::default()).map_err(Error::from_cause)?;
        let fingerprint = format!("{:016x}", data.fingerprint);
        let vocab = (!data.bytes).then_some(data.vocab);
        Ok((Self { scale, source, fingerprint, vocab }, data))
    }

    /// A text that needs no file and, as nothing is trained on it, no reading.
    pub fn unread(scale: StudyScale) -> Self {
        Self { scale, source: Source::default(), fingerprint: String::new(), vocab: None }
    }

    /// That of runs on a text that is not here.
    ///
    /// # Errors
    /// If its name is none of a source.
    pub fn known(scale: StudyScale, text: &Text) -> Result<Self> {
        let source = Source::from_str(&text.name).map_err(Error::from_cause)?;
        Ok(Self { scale, source, fingerprint: text.fingerprint.clone(), vocab: text.vocab })
    }

    /// What the names of runs hold of the text.
    pub fn text(&self) -> Text {
        let name = match &self.source {
            // Where it lies is of no use elsewhere.
            Source::Path(path) => path.file_name().unwrap_or_default().to_string_lossy().into(),
            made => made.to_string(),
        };
        Text { name, fingerprint: self.fingerprint.clone(), vocab: self.vocab }
    }

    /// The text, in words.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// A preset of [`preset`] for the study's text.
    ///
    /// # Panics
    /// If there is no such preset: a study's own mistake, which the test of all plans finds.
    pub fn config(&self, name: &str) -> Config {
        let mut config = match preset(name) {
            Ok(config) => config,
            Err(error) => panic!("a study's configuration: {error}"),
        };
        if let Some(model) = config.model.decoder_mut() {
            model.vocab = self.vocab.unwrap_or(model.vocab);
            config.data.source = self.source.clone();
            config.data.fingerprint.clone_from(&self.fingerprint);
        }
        config
    }
}

/// One run that figures ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// All of it; of a branch, without the path of the run it comes from.
    pub config: Config,
    /// The run it branches off from, and at which step.
    pub parent: Option<(Box<RunConfig>, u64)>,
}

impl RunConfig {
    /// A run from the beginning.
    pub fn new(config: Config) -> Self {
        Self { config, parent: None }
    }

    /// A run that goes on from this one's checkpoint of `step`, which this one must [keep](Self::keeping);
    /// what is to be different is changed in its configuration.
    #[must_use]
    pub fn branch(&self, step: u64) -> Self {
        let mut config = self.config.clone();
        config.record.checkpoint_at.clear();
        Self { config, parent: Some((Box::new(self.clone()), step)) }
    }

    /// The same with checkpoints at these steps.
    #[must_use]
    pub fn keeping(mut self, steps: &[u64]) -> Self {
        self.config.record.checkpoint_at = steps.to_vec();
        self
    }

    /// `RECIPE-HASH`, the hash of the configuration, with the contents of the text in place of its path,
    /// and of the names of the runs it goes back to.
    pub fn name(&self) -> String {
        let parent = self.parent.as_ref().map(|(parent, step)| format!("{}@{step}", parent.name()));
        let recipe = self.config.recipe.to_string();
        content_name((&recipe, 60), &self.config, &parent.unwrap_or_default())
    }

    /// It as a run that can be trained.
    pub fn run(&self) -> Run {
        let parent = self.parent.as_ref().map(|(parent, step)| (parent.name(), *step));
        Run { name: self.name(), config: self.config.clone(), parent }
    }

    /// The run that it goes back to, itself if it is no branch.
    pub fn root(&self) -> &Self {
        self.parent.as_ref().map_or(self, |(parent, _)| parent.root())
    }

    /// Steps that it is trained for itself.
    pub fn steps(&self) -> u64 {
        let before = self.parent.as_ref().map_or(0, |(_, step)| *step);
        self.config.train.steps.saturating_sub(before)
    }

    /// Floating-point operations of its training, `6 N` a token and attention.
    pub fn flops(&self) -> f64 {
        let tokens = self.config.train.batch * self.config.model.context();
        self.config.model.flops_per_token() as f64 * (tokens as u64 * self.steps()) as f64
    }
}
