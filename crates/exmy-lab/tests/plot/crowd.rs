//! Panels with more bands than can be distinguished.

use super::{class, line, names, parse, text};
use exmy_lab::plot::{Axis, Band, Figure, Panel};

/// So many lines with a band each.
fn drawn(count: usize) -> String {
    let mut panel = Panel::new(Axis::linear("difference, %"));
    for i in 0..count {
        let (name, y) = (format!("recipe {i}"), i as f64);
        let band = [(0.0, y - 1.0, y + 1.0), (1.0, y - 0.5, y + 1.25)];
        panel = panel.band(Band::new(&name, band));
        panel = panel.line(line(&name, [y, y]).note(format!("{y:+.2} %")));
    }
    let figure = Figure::new("Crowd").panel(panel);
    // A table loses nothing.
    assert!(figure.to_csv(9).contains("1,-0.5,1.25"), "{}", figure.to_csv(9));
    figure.to_svg()
}

#[test]
fn bands_that_would_hide_each_other_are_numbers() {
    for (count, bands) in [(4, 4), (5, 0), (8, 0)] {
        let svg = drawn(count);
        let document = parse(&svg);
        let all = document.descendants().filter(|node| class(node).starts_with("b "));
        let of_lines = document.descendants().filter(|node| class(node).starts_with("l "));
        assert_eq!(of_lines.filter(|node| node.has_children()).count(), count);
        // The samples of bands in the legend have no title.
        assert_eq!(all.filter(|node| node.has_children()).count(), bands, "{count} lines");
        let said: String = document.descendants().map(text).collect();
        assert_eq!(said.contains("difference, % [range at the end]"), bands == 0);
        let named = names(&document).into_iter().map(|(.., name)| name).collect::<String>();
        assert_eq!(
            named.contains("recipe 1") && named.contains("[+0.50, +2.25]"),
            bands == 0,
            "{named}"
        );
        assert!(named.contains("+1.00 %"), "{named}");
    }
}

/// A picture that is opened alone is as high as it needs to be: one that fits the window has tiny text.
#[test]
fn high_pictures_are_not_squeezed_into_a_window() {
    assert!(drawn(1).contains("style=\"max-width:1080px;height:auto\""));
}
