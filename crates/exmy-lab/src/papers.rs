//! The studies there are, each with its figures in the order of its report.

use crate::finding::Figure;
use crate::tables::{bit_reduction, mx_instabilities, nvfp4_outliers};

/// A study: what one paper measured.
#[derive(Clone, Copy)]
pub struct Paper {
    /// How the command line calls it.
    pub name: &'static str,
    /// Of its report.
    pub title: &'static str,
    /// The paper.
    pub source: &'static str,
    /// What it is about, and what the report can and cannot say.
    pub about: &'static str,
    /// Its figures.
    pub figures: &'static [&'static dyn Figure],
}

/// All of them.
pub const ALL: &[Paper] = &[bit_reduction::PAPER, mx_instabilities::PAPER, nvfp4_outliers::PAPER];

/// The study of that name.
pub fn by_name(name: &str) -> Option<&'static Paper> {
    ALL.iter().find(|paper| paper.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_config::{Scale, Setting};
    use crate::store::distinct;

    /// Every plan can be trained at every scale: presets, keys, recipes, branches.
    #[test]
    fn every_plan_is_possible_and_every_name_is_taken_once() {
        let mut ids = Vec::new();
        for paper in ALL {
            for figure in paper.figures {
                ids.push(figure.id());
                assert!(!figure.title().is_empty() && !figure.source().is_empty());
                assert!(!figure.claim().is_empty());
                for scale in Scale::ALL {
                    let runs = distinct(&figure.runs(&Setting::unread(scale)));
                    for run in runs {
                        assert!(run.steps() > 0, "{} at {scale}: {}", figure.id(), run.name());
                    }
                }
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
