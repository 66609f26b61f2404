//! Names of earlier versions, and today's as those wrote them.

use exmy::format::Format;
use exmy::text::old::{explicit, former, modern};

#[test]
fn only_the_bare_shape_changed_its_meaning() {
    for (old, new) in [
        ("e4m3", "e4m3-ieee"),
        ("E4M3", "E4M3-ieee"),
        ("e4m3b-7", "e4m3b-7-ieee"),
        ("e4m3b8-nosub", "e4m3b8-ieee-nosub"),
        ("e4m3fn", "e4m3"),
        ("e4m3b8fn-nosub", "e4m3b8-nosub"),
        ("bf16>e4m3@sr8", "bf16>e4m3-ieee@sr8"),
        ("e4m3/16:e4m3+tensor", "e4m3-ieee/16:e4m3-ieee+tensor"),
        ("hopper:e4m3,e5m2", "hopper:e4m3-ieee,e5m2"),
    ] {
        assert_eq!(modern(old), new);
        assert_eq!(former(new), old);
    }
    for same in [
        "e4m3fnuz",
        "e4m3b11fnuz",
        "e4m3ieee",
        "e4m3p3109e",
        "ue4m3",
        "e4m3-ieee",
        "mxfp8-e4m3",
        "float8_e4m3",
        "F8_E4M3",
        "Float8E4M3",
        "e14m3",
        "e4m35",
        "",
        "\u{e9}e4m3fnuz\u{e9}",
    ] {
        assert_eq!(modern(same), same);
    }
    assert_eq!(former("e4m3b8-nosub"), "e4m3b8fn-nosub");
}

/// What a name meant, it means in today's; what it is called today reads back from the former name.
#[test]
fn meanings_stay() {
    let parse = |text: &str| text.parse::<Format>().unwrap();
    assert_eq!(parse(&modern("e4m3")), Format::E4M3_IEEE);
    assert_eq!(parse(&modern("e4m3fn")), Format::E4M3FN);
    for format in
        [Format::E4M3FN, Format::E4M3_IEEE, Format::E4M3FNUZ, Format::UE4M3, parse("e1m3-ieee")]
    {
        assert_eq!(parse(&modern(&former(&format.to_string()))), format);
        assert_eq!(parse(&modern(&explicit(&format.to_string()))), format);
    }
}
