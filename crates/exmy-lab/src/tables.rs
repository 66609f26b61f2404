//! The studies as tables, one file a paper.

pub(super) mod bit_reduction;
pub(super) mod mx_instabilities;
pub(super) mod nvfp4_outliers;

#[cfg(test)]
mod tests {
    use super::{bit_reduction, mx_instabilities, nvfp4_outliers};
    use crate::figure::Judged;
    use crate::finding::Figure as _;
    use crate::measure::Results;
    use crate::run_config::{Scale, Setting};

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
}
