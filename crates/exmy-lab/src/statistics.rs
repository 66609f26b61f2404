//! How sure a comparison of runs is: intervals, exact tests, ranks.
//!
//! Runs of number formats are few and paired: the same seed gives the same initial weights and
//! batches, so what counts is the difference within a pair. An ordering is claimed only where
//! the [interval](paired_interval) of the paired difference excludes 0. Shares of diverged runs are
//! compared by [Wilson's interval](wilson) and [Fisher's test](fisher), signs by the
//! [sign test](sign_test), trends by [Mann and Kendall's](mann_kendall). How well one number
//! foretells another's outcome is the [area under its ROC curve](roc).
//!
//! All of it is f64 in a written order, with `libm`: the same bits everywhere. What cannot be
//! computed (too few values, values that are no finite numbers) is `None`, never a number that
//! looks like a result.

#[doc(hidden)]
pub mod counts;
#[doc(hidden)]
pub mod distribution;
#[doc(hidden)]
pub mod intervals;
#[doc(hidden)]
pub mod power;
#[doc(hidden)]
pub mod ranks;
mod survival;

pub use counts::{Signs, coins, fisher, sign_test, wilson};
pub use distribution::{incomplete_beta, normal_quantile, normal_tail, t_quantile, t_tail};
pub use intervals::{Interval, mean, mean_interval, median, paired_interval, sd};
pub use power::{fisher_power, interval_power, log_rank_power};
pub use ranks::{Roc, Trend, jaccard, mann_kendall, midranks, roc, spearman};
pub use survival::{LogRank, kaplan_meier, log_rank, log_rank_trend};
