//! What probes measured over the run, a line for each grid point.

use crate::finding::Part;
use crate::grid::GridPoint;
use crate::measure::{Pick, Probed, Results};
use crate::plot::{self, Axis, Panel};
use crate::series;
use exmy::error::Result;

/// A panel.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// What its axis is called.
    pub(crate) label: &'static str,
    pub(crate) probed: Probed,
    /// Levels that its grid points have.
    pub(crate) pick: Pick,
    /// A line that shows what is usual, where it lies and what it is.
    pub(crate) rule: Option<(Usual, &'static str)>,
}

/// Where that lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usual {
    Of(f64),
    /// As another probe says of the first run.
    Probed(Probed),
}

/// A panel of all grid points.
pub(crate) const fn shown(label: &'static str, probed: Probed) -> Shown {
    Shown { label, probed, pick: &[], rule: None }
}

/// One picture, its panels below each other.
pub(super) fn draw(
    results: &Results<'_>,
    title: &str,
    under: &str,
    panels: &[Shown],
) -> Result<Vec<Part>> {
    let mut figure = plot::Figure::new(title).subtitle(under).x(Axis::linear("step"));
    for shown in panels {
        let mut panel = Panel::new(Axis::linear(shown.label));
        let own = |point: &&GridPoint| shown.pick.iter().all(|name| point.has(name));
        let mut first = None;
        for point in results.points.iter().filter(own) {
            let picked = point.0.iter().filter(|(_, level)| !shown.pick.contains(&level.name));
            let name = GridPoint(picked.copied().collect()).words(&[]);
            panel = series::draw(panel, &name, &results.series(point, shown.probed)?);
            first = first.or(Some(point));
        }
        panel = match (shown.rule, first) {
            (Some((Usual::Of(y), name)), _) => panel.rule(y, name),
            (Some((Usual::Probed(probed), name)), Some(point)) => {
                let found = results.series(point, probed)?;
                match found.first() {
                    Some(run) => panel.rule(probed.of(run), name),
                    None => panel,
                }
            }
            _ => panel,
        };
        figure = figure.panel(panel);
    }
    Ok(vec![Part::Picture(figure)])
}
