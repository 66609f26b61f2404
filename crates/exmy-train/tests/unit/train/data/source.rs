use exmy_train::train::data::{DataError, Source};

#[test]
fn text_forms_round_trip() {
    let seed = |seed| Source::Synthetic { seed };
    let cases = [
        ("synthetic", seed(0)),
        ("synthetic:7", seed(7)),
        ("synthetic:18446744073709551615", seed(u64::MAX)),
        ("recall", Source::Recall { seed: 0 }),
        ("recall:3", Source::Recall { seed: 3 }),
        ("./recall:3", Source::Path("./recall:3".into())),
        ("a/b.txt", Source::Path("a/b.txt".into())),
        ("./synthetic", Source::Path("./synthetic".into())),
        ("synthetics", Source::Path("synthetics".into())),
    ];
    for (text, source) in cases {
        assert_eq!(text.parse::<Source>().unwrap(), source);
        assert_eq!(source.to_string(), text);
    }
    assert_eq!(Source::Path("synthetic".into()).to_string(), "./synthetic");
    assert_eq!(Source::Path("synthetic:x".into()).to_string(), "./synthetic:x");
}

#[test]
fn what_is_not_a_source() {
    assert!(matches!("".parse::<Source>(), Err(DataError::NoName)));
    for text in
        ["recall:x", "synthetic:", "synthetic:x", "synthetic:-1", "synthetic:18446744073709551616"]
    {
        assert!(matches!(text.parse::<Source>(), Err(DataError::Seed { .. })), "{text}");
    }
}
