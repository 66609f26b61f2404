//! What `exmy study --save-curves` writes, and that nothing is lost by it.

use exmy::error::Result;
use exmy::shown::printable_path;
use exmy_lab::amounts::counted;
use exmy_lab::curves::Curves;
use exmy_lab::finding::Experiment;
use exmy_lab::report;
use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::store::Store;
use exmy_lab::studies::Paper;
use exmy_lab::thin::{Thinned, thin};
use std::collections::BTreeSet;
use std::path::Path;

/// The file of curves that a study writes.
pub(super) struct Saving<'a> {
    paper: &'a Paper,
    path: &'a Path,
    /// The figures of `--curves`, and those that are drawn.
    figures: Vec<&'static dyn Experiment>,
    /// What `--curves` has.
    ids: Vec<String>,
    runs: BTreeSet<String>,
}

impl<'a> Saving<'a> {
    pub(super) fn new(
        paper: &'a Paper,
        path: &'a Path,
        drawn: &[&'static dyn Experiment],
        curves: Option<&Curves>,
    ) -> Self {
        let ids = curves.map_or_else(Vec::new, |curves| curves.figures().to_vec());
        let runs = curves.map_or_else(BTreeSet::new, |curves| curves.names().cloned().collect());
        let of = |id: &String| paper.figures.iter().copied().find(|figure| figure.id() == id);
        let mut figures: Vec<&'static dyn Experiment> = ids.iter().filter_map(of).collect();
        let is_new = |figure: &&&dyn Experiment| !ids.iter().any(|id| id == figure.id());
        figures.extend(drawn.iter().filter(is_new).copied());
        Self { paper, path, figures, ids, runs }
    }

    /// Refuses, before anything is trained, to write a file by which another is lost.
    ///
    /// # Errors
    /// As [`Curves::check`].
    pub(super) fn check(&self, setting: &Setting, store: &Store) -> Result<()> {
        let planned = report::runs(&self.figures, setting, store)?;
        let planned: BTreeSet<String> = planned.iter().map(RunConfig::name).collect();
        let is_figure = |id: &str| {
            self.figures.iter().any(|figure| figure.id() == id)
                || self.ids.iter().any(|own| own == id)
        };
        let is_written =
            |name: &str| planned.contains(name) || self.runs.contains(name) || is_figure(name);
        Curves::check(self.paper.name, self.path, is_written)
    }

    /// Writes the curves of all complete runs; the result says which figures are not in the file. What
    /// another process has written there since stays.
    ///
    /// # Errors
    /// If a run cannot be read, or the file not be read or written.
    pub(super) fn write(
        &self,
        (setting, store): (&Setting, &Store),
        quiet: bool,
    ) -> Result<Vec<String>> {
        let standing = self.path.exists().then(|| Curves::read(self.paper.name, self.path));
        let standing = standing.transpose()?;
        let thinned = thin(self.paper, &self.figures, (setting, store), standing.as_ref())?;
        let (file, mut said) = (printable_path(self.path), self.lacks(&thinned));
        if thinned.curves.is_empty() && thinned.curves.figures().is_empty() {
            said.push(format!("{file} is not written: there is nothing to draw"));
            return Ok(said);
        }
        thinned.curves.write(self.path)?;
        let bytes = self.path.metadata().map_or(0, |found| found.len());
        let count = counted(thinned.curves.len() as u64, "complete run");
        if !quiet {
            said.push(format!("curves of {count}: {file}, {bytes} bytes"));
        }
        Ok(said)
    }

    /// Which figures are not in the file, and why.
    fn lacks(&self, thinned: &Thinned) -> Vec<String> {
        let file = printable_path(self.path);
        let needs = "it needs more than losses, gradient norms and values of probes";
        let out = thinned.left_out.iter().map(|id| format!("{id} is not in {file}: {needs}"));
        let is_lost = |id: &&String| {
            let is_out = thinned.left_out.contains(&id.as_str());
            !is_out && !thinned.curves.figures().contains(id)
        };
        let lost = self.ids.iter().filter(is_lost).map(|id| {
            format!("{id} is no longer in {file}: its runs are others now; those it had stay")
        });
        out.chain(lost).collect()
    }
}
