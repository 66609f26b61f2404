//! Bands that nobody can distinguish: above a few of them they cover each other and every line. Then the
//! range of each at its end stands behind its name, as `[low, high]`, and only the lines are drawn.

use super::{Band, Mark, Panel};
use std::{format, string::String};

/// Bands of a panel in which each is still seen.
const MOST: usize = 4;

/// The range of a band at its end, with the sign and the digits that a note's number has.
fn range(band: &Band, note: &str) -> Option<String> {
    let (_, low, high) = *band.points.last()?;
    let number = note.split(' ').next().unwrap_or_default();
    let digits = number.split_once('.').map_or(2, |(_, digits)| digits.len());
    Some(match number.starts_with(['+', '-']) {
        true => format!("[{low:+.digits$}, {high:+.digits$}]"),
        false => format!("[{low:.digits$}, {high:.digits$}]"),
    })
}

/// The panel as it is drawn.
pub(super) fn uncrowded(panel: &Panel) -> Panel {
    let bands = panel.marks.iter().filter_map(|mark| match mark {
        Mark::Band(band) => Some(band),
        _ => None,
    });
    let mut panel = panel.clone();
    let bands: Vec<Band> = bands.cloned().collect();
    if bands.len() <= MOST {
        return panel;
    }
    let has_line = |name: &str| {
        panel.marks.iter().any(|mark| matches!(mark, Mark::Line(series) if series.name == name))
    };
    // A band without a line is what there is to see.
    if !bands.iter().all(|band| has_line(&band.name)) {
        return panel;
    }
    panel.marks.retain(|mark| !matches!(mark, Mark::Band(_)));
    for mark in &mut panel.marks {
        let Mark::Line(series) = mark else { continue };
        let band = bands.iter().find(|band| band.name == series.name);
        if let Some(range) = band.and_then(|band| range(band, &series.note)) {
            series.note = format!("{} {range}", series.note).trim_start().to_owned();
        }
    }
    panel.y.label += " [range at the end]";
    panel
}
