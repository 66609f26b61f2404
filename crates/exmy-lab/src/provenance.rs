//! How a page was made: what of it is not the same on every machine.

use crate::page::Page;
use exmy::safetensors::given;
use exmy_train::train::run::Folder;

/// Where and how a page was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The command that makes the page.
    pub command: String,
    /// The machine, in words.
    pub machine: String,
}

impl Provenance {
    /// Adds the section that says it, the last one of a page: `more` behind the version, and what was `made`.
    pub(crate) fn section(&self, page: &mut Page, more: &str, made: &[String]) {
        page.heading("provenance", "How this was made", "");
        page.text(&format!("exmy {}{more}.", env!("CARGO_PKG_VERSION")));
        page.text(&self.machine);
        made.iter().for_each(|made| page.text(made));
        page.folded("the command", &self.command);
    }
}

/// Seconds of training in the records of some runs, over all their processes.
pub fn seconds(runs: impl Iterator<Item = Folder>) -> f64 {
    let of_run = |run: Folder| -> f64 {
        let text = given::lines(&run.timing_file()).unwrap_or_default();
        // Seconds count from the beginning of each process.
        let (mut total, mut last) = (0.0, 0.0);
        for line in text.split(|&byte| byte == b'\n') {
            let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
            let now = value.and_then(|value| value["train_seconds"].as_f64()).unwrap_or(last);
            if now < last {
                total += last;
            }
            last = now;
        }
        total + last
    };
    runs.map(of_run).sum()
}
