//! Final losses by the size of blocks.

use crate::finding::Part;
use crate::measure::{Metric, Results};
use crate::plot::{self, Axis, Panel, Series};
use crate::statistics::mean;
use exmy::error::Result;

/// A line for each of the numbers that have blocks, over the variations that are a size of theirs.
pub(crate) fn draw(results: &Results<'_>) -> Result<Vec<Part>> {
    let mut panel = Panel::new(Axis::log("final loss, mean squared error"));
    for numbers in results.levels(results.grid.axis("numbers")) {
        if numbers.name == "f32" {
            continue;
        }
        let mut points = Vec::new();
        for point in results.points.iter().filter(|point| point.has(numbers.name)) {
            let size = point.level("variation").map_or(0.0, |level| level.x);
            if size > 0.0 {
                let losses = results.values(point, Metric::Tail)?;
                points.push((size, mean(&losses).unwrap_or(f64::NAN)));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        panel = panel.line(Series::new(numbers.name, points));
    }
    let picture = plot::Figure::new("Final loss by the size of blocks")
        .subtitle("mean of the seeds")
        .x(Axis::log("elements of a block"))
        .panel(panel);
    Ok(vec![Part::Picture(picture)])
}
