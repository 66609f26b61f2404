//! The studies there are, one file and folder a paper: its figures as a table of values, in the order of its
//! report, and below it the analyses that no claim can say.

mod bit_reduction;
mod mx_instabilities;
mod nvfp4_outliers;

pub use crate::finding::Paper;

/// All of them.
pub const ALL: &[Paper] = &[bit_reduction::PAPER, mx_instabilities::PAPER, nvfp4_outliers::PAPER];

/// The study of that name.
pub fn by_name(name: &str) -> Option<&'static Paper> {
    ALL.iter().find(|paper| paper.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Judged;
    use crate::finding::Figure as _;
    use crate::measure::Results;
    use crate::run_config::Setting;
    use crate::scale::Scale;
    use crate::store::distinct;

    /// A mistake in a name would be found when the runs are read, after days of training.
    #[test]
    fn grid_points_that_claims_and_views_name_are_there() {
        let figures = bit_reduction::CLAIMED.iter().chain(&mx_instabilities::CLAIMED);
        for figure in figures.chain(&nvfp4_outliers::CLAIMED) {
            for scale in Scale::ALL {
                let setting = Setting::unread(scale);
                let results = Results::made(&setting, &figure.grid, &|_, seed, _| seed as f64);
                let Judged::By(claim) = &figure.judged else {
                    panic!("{} has no claim", figure.id)
                };
                if results.points.is_empty() {
                    continue;
                }
                assert!(claim.verdict(&results).is_ok(), "{} at {scale}", figure.id);
                for view in figure.views {
                    assert_eq!(view.draw(&results).map_or(0, |parts| parts.len()).min(1), 1);
                }
                let asks = figure.criterion();
                assert!(asks.starts_with("Reproduced where ") && asks.ends_with('.'), "{asks}");
            }
        }
    }

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
