use exmy_lab::plot::svg::{escape, tenths};

#[test]
fn coordinates_are_short() {
    let cases = [
        (0.0, "0"),
        (-0.0, "0"),
        (-0.04, "0"),
        (-0.06, "-.1"),
        (12.34, "12.3"),
        (12.96, "13"),
        (719.95, "720"),
        (f64::NAN, "0"),
        (-1e300, "-1000000"),
    ];
    for (value, text) in cases {
        assert_eq!(tenths(value), text, "{value}");
    }
}

#[test]
fn no_text_can_end_its_element() {
    assert_eq!(escape("a<b>&\"c'\u{1}\n√"), "a&lt;b&gt;&amp;&quot;c&#39;\\u{1} √");
    assert_eq!(escape("\u{202e}x\u{1b}"), "\\u{202e}x\\u{1b}");
}
