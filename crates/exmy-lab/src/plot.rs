//! Numbers to a picture: figures as self-contained SVG text.
//!
//! A [`Figure`] is a column of [`Panel`]s that share one horizontal axis; a panel is a vertical
//! [`Axis`] and marks on it. The picture is made for curves that nearly coincide, as those of training runs
//! in different number formats do. Series are named beside their ends, in the order in which they end, with
//! colour and dash pattern.
//!
//! What it promises:
//! - the same input gives the same bytes, on every machine (no platform mathematics, no maps with
//!   random order, fixed decimals), so a figure can be compared and committed;
//! - it stands alone: no fonts, scripts or links; it fills the width it is given, enlarges its text
//!   on narrow screens, follows the reader's dark mode and describes itself to screen readers;
//! - nothing is dropped silently: a point that has no place (NaN, infinity) breaks its line and is
//!   marked, and a series without any is still named;
//! - different names read differently: a name that is too long takes several lines, and where even
//!   these are too few, it loses what it shares with others; the number of a note stays;
//! - bands that would hide each other are numbers: above four in a panel, each range stands behind its name;
//! - its size is bounded: at most four points of a series are kept per unit of width (of 720).
//!
//! ```
//! use exmy_lab::plot::{Axis, Figure, Panel, Series};
//!
//! let loss = [5.5, 4.1, 3.0, 2.4, 2.1, 2.0];
//! let steps = (0..6).map(|i| f64::from(i) * 100.0);
//! let svg = Figure::new("Training loss")
//!     .x(Axis::linear("step"))
//!     .panel(
//!         Panel::new(Axis::linear("loss (nats/byte)"))
//!             .line(Series::new("f32", steps.zip(loss)))
//!             .rule(1.9, "entropy of the text"),
//!     )
//!     .to_svg();
//! assert!(svg.starts_with("<svg") && svg.contains("entropy of the text"));
//! ```

#[doc(hidden)]
pub mod axis;
#[doc(hidden)]
pub mod bars;
mod crowd;
mod csv;
mod draw;
mod frame;
#[doc(hidden)]
pub mod heat;
#[doc(hidden)]
pub mod labels;
mod legend;
#[doc(hidden)]
pub mod number;
mod panel;
#[doc(hidden)]
pub mod path;
#[doc(hidden)]
pub mod series;
#[doc(hidden)]
pub mod style;
#[doc(hidden)]
pub mod svg;

pub use axis::Axis;
pub use bars::Intervals;
pub use heat::Heat;
pub use labels::distinguish;
pub use series::{Band, Series, smooth};

use std::{string::String, vec::Vec};

/// A picture: a title above stacked panels that share their horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    title: String,
    subtitle: String,
    x: Axis,
    panels: Vec<Panel>,
    tokens: Option<u64>,
    order: Vec<String>,
}

impl Figure {
    /// An empty figure; the title says what is drawn, not what it shows.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            x: Axis::linear(""),
            panels: Vec::new(),
            tokens: None,
            order: Vec::new(),
        }
    }

    /// The title.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// A second, quieter line: the conditions under which the numbers were made.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// The horizontal axis of all panels. Fitted to the data without margin.
    #[must_use]
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// How many tokens a unit of the horizontal axis is, for pages that show either.
    #[must_use]
    pub fn tokens(mut self, count: u64) -> Self {
        self.tokens = Some(count);
        self
    }

    /// Names in the order in which colours are given to them, so that a name has the same one in every
    /// picture of a page. Those that are not among them follow.
    #[must_use]
    pub fn order(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.order = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a panel below the others.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The picture as an SVG document, which is also valid inside an HTML page.
    ///
    /// The view box is 720 units wide and as high as needed. Series are numbered by the first
    /// appearance of their name; the first eight differ in hue, the first 64 in hue or dashes.
    pub fn to_svg(&self) -> String {
        draw::figure(self)
    }

    /// What the picture shows as comma-separated values: a row for each place of the horizontal axis, a
    /// column for each line of each panel, and two for a band or an interval. Lines of more than `most`
    /// points have about as many, evenly chosen, the last one among them. Values have six significant digits.
    pub fn to_csv(&self, most: usize) -> String {
        csv::table(self, most)
    }
}

/// One vertical axis and what is drawn on it.
///
/// Marks are drawn in the order in which they were added, later ones on top; grids lie below all
/// others, then bands, faint lines and bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    y: Axis,
    marks: Vec<Mark>,
    share: f64,
    settled: bool,
}

/// Something drawn in a panel.
#[derive(Clone, Debug, PartialEq)]
enum Mark {
    Line(Series),
    Faint(Series),
    Points(Series),
    Band(Band),
    Bars(Series),
    Intervals(Intervals),
    Heat(Heat),
    Rule { value: f64, label: String },
}

impl Panel {
    /// An empty panel; the label of its axis stands above it.
    pub fn new(y: Axis) -> Self {
        Self { y, marks: Vec::new(), share: 1.0, settled: false }
    }

    /// Joins the points of a series.
    #[must_use]
    pub fn line(self, series: Series) -> Self {
        self.mark(Mark::Line(series))
    }

    /// Joins the points by a thin, pale line without label: the raw values under a smoothed
    /// line of the same name.
    #[must_use]
    pub fn faint(self, series: Series) -> Self {
        self.mark(Mark::Faint(series))
    }

    /// Draws each point of a series: disc, square, diamond or triangle by the series' number.
    #[must_use]
    pub fn points(self, series: Series) -> Self {
        self.mark(Mark::Points(series))
    }

    /// Shades the region between two curves.
    #[must_use]
    pub fn band(self, band: Band) -> Self {
        self.mark(Mark::Band(band))
    }

    /// Draws each point of a series as a bar from 0, on a logarithmic axis from the bottom. On a
    /// [category axis](Axis::categories) the bars of several series stand side by side.
    #[must_use]
    pub fn bars(self, series: Series) -> Self {
        self.mark(Mark::Bars(series))
    }

    /// Draws values as points with their intervals as capped lines; on a category axis side by side
    /// with those of other series, and on the bars of the same name.
    #[must_use]
    pub fn intervals(self, intervals: Intervals) -> Self {
        self.mark(Mark::Intervals(intervals))
    }

    /// Draws a grid of cells coloured by value, below all other marks, and the scale of colours above
    /// the panel. Several grids of a panel share the colours of the first.
    #[must_use]
    pub fn heat(self, heat: Heat) -> Self {
        self.mark(Mark::Heat(heat))
    }

    /// A dotted horizontal line for reference. A fitted axis includes it; a value without a
    /// place on the axis is not drawn.
    #[must_use]
    pub fn rule(self, value: f64, label: impl Into<String>) -> Self {
        self.mark(Mark::Rule { value, label: label.into() })
    }

    /// The height of this panel relative to the others; 1 unless said otherwise.
    ///
    /// # Panics
    /// Unless `share` is positive and finite.
    #[must_use]
    pub fn height_share(mut self, share: f64) -> Self {
        assert!(share > 0.0 && share.is_finite(), "a panel cannot have a height share of {share}");
        self.share = share;
        self
    }

    /// Fits the vertical axis to where curves end up: to the last nine tenths of the horizontal axis, without
    /// the few most extreme values there. What lies outside leaves the panel at its edge.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.settled = true;
        self
    }

    fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }
}

impl Mark {
    /// The name and remark by which a legend lists it.
    fn entry(&self) -> Option<(&str, &str)> {
        match self {
            Self::Line(series) | Self::Points(series) | Self::Bars(series) => {
                Some((&series.name, &series.note))
            }
            Self::Band(band) => Some((&band.name, "")),
            Self::Intervals(intervals) => Some((&intervals.name, "")),
            Self::Faint(_) | Self::Heat(_) | Self::Rule { .. } => None,
        }
    }

    /// The name that decides its colour.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Faint(series) => Some(&series.name),
            _ => self.entry().map(|(name, _)| name),
        }
    }

    /// Calls `each` with every `(x, y)` that an axis should include; a rule has no x.
    fn for_each_point(&self, mut each: impl FnMut(Option<f64>, f64)) {
        match self {
            Self::Line(s) | Self::Faint(s) | Self::Points(s) | Self::Bars(s) => {
                s.points.iter().for_each(|&(x, y)| each(Some(x), y));
            }
            Self::Band(band) => band.points.iter().for_each(|&(x, low, high)| {
                each(Some(x), low);
                each(Some(x), high);
            }),
            Self::Intervals(intervals) => {
                for &(x, low, value, high) in &intervals.points {
                    [low, value, high].into_iter().for_each(|y| each(Some(x), y));
                }
            }
            Self::Heat(heat) => heat.x.iter().zip(&heat.y).for_each(|(x, y)| each(Some(*x), *y)),
            Self::Rule { value, .. } => each(None, *value),
        }
    }
}
