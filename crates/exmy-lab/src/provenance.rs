//! How a page was made: what of it is not the same on every machine.

use crate::page::Page;

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
