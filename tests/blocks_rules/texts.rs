//! Textual forms of rules, profiles, rotations and the quantizers that hold them.

use exmy::block::hadamard::Hadamard;
use exmy::block::scale::ScaleRule;
use exmy::block::{BlockFormat, BlockProfile};
use exmy::quantizer::Quantizer;
use exmy::round::Rounding;
use proptest::prelude::*;

#[test]
fn canonical() {
    let texts = [
        "mxfp8-e4m3@rceil",
        "mxfp8-e4m3@even@torchao",
        "mxfp6-e2m3@microxcaling-torch",
        "mxfp4@torchao-0.18",
        "mxfp8-e5m2@te",
        "nvfp4@te-2.13",
        "nvfp4@torchao@sr8",
        "nvfp4@4over6",
        "nvfp4-16x16@4over6-mse-448@te",
        "e2m1/16:ue4m3@4over6-mse",
        "e4m3/32:f32@rceil",
        "binary8p3se/32:binary8p1uf@max-abs",
        "rht16>nvfp4",
        "bf16>rht16>nvfp4@sr8",
        "bf16>ht128>none",
        "rht32-seed18446744073709551615-f32>mxfp4",
    ];
    for text in texts {
        let quantizer: Quantizer = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(quantizer.to_string(), text);
    }
    let same = [
        ("mxfp8-e4m3@bump", "mxfp8-e4m3@rceil"),
        ("mxfp8-e4m3@rceil@te", "mxfp8-e4m3@te"),
        ("mxfp8-e4m3@TE@RCEIL", "mxfp8-e4m3@te"),
        ("mxfp4@ocp", "mxfp4"),
        ("nvfp4@4over6-mae-256", "nvfp4@4over6"),
        ("mxfp4@microxcaling@rna", "mxfp4@microxcaling"),
        ("mxfp4@rne@microxcaling", "mxfp4@microxcaling@rne"),
        ("e2m1/16:ue4m3+tensor@nearest@torchao", "nvfp4@torchao"),
        ("BF16>RHT16>NVFP4", "bf16>rht16>nvfp4"),
    ];
    for (text, expected) in same {
        let quantizer: Quantizer = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(quantizer.to_string(), expected, "{text}");
    }
    // Where the default of rounding comes from.
    let rounding = |text: &str| text.parse::<Quantizer>().unwrap().rounding;
    assert_eq!(
        [rounding("mxfp4@microxcaling"), rounding("mxfp4@torchao")],
        [Rounding::TiesToAway, Rounding::TiesToEven]
    );
}

#[test]
fn wrong() {
    let texts = [
        ("mxfp4@torcha", "torchao"),
        ("mxfp4@reciel", "rceil"),
        ("nvfp4@4over6-mes", "4over6-mse"),
        ("mxfp4@rceil@floor", "two scale rules"),
        ("mxfp4@te@torchao", "two block profiles"),
        ("mxfp8-e4m3@floor@te", "it has `rceil`, `nearest`, `4over6`"),
        ("nvfp4@microxcaling", "it has `floor`, `rceil`"),
        ("nvfp4@4over6@te-2.13", "it has `rceil`, `nearest`"),
        ("e4m3/16:ue4m3@4over6", "e2m1"),
        ("e4m3/16:ue4m3+tensor@max-abs", "tensor scale"),
        ("e4m3/16:ue4m3+tensor@ceil", "tensor scale"),
        ("e4m3/16:f32@ceil@torchao", "e8m0"),
        ("e4m3/16:e3m2@even", "NaN"),
        ("e4m3@torchao", "only block formats"),
        ("rht12>nvfp4", "rht"),
        ("rht16-sead3>nvfp4", "seedS"),
        ("ht16-seed3>nvfp4", "rhtN-seedS"),
        ("rht16>bf16>nvfp4", "bf16>rht16>nvfp4"),
        ("rht16>rht16>nvfp4", "one rotation"),
    ];
    for (text, hint) in texts {
        let error = text.parse::<Quantizer>().expect_err(text).to_string();
        assert!(error.contains(hint), "{text:?}: {error}");
    }
    for (text, hint) in
        [("mxfp4@rtz", "scale rule or block profile"), ("mxfp4@te@te", "two block profiles")]
    {
        let error = text.parse::<BlockFormat>().expect_err(text).to_string();
        assert!(error.contains(hint), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn round_trips(
        body in prop::sample::select(vec![
            "mxfp8-e4m3", "mxint8", "mxfp4", "nvfp4", "nvfp4-16x16", "e2m1/16:ue4m3", "e5m2/row:bf16",
            "e2m3/4x8:e8m0", "e2m1/tensor:f32+tensor", "binary6p3sf/8x1:binary8p1uf",
        ]),
        rule in prop::sample::select(ScaleRule::NAMED.to_vec()),
        profile in prop::sample::select(BlockProfile::NAMED.to_vec()),
        rotation in prop::sample::select(vec!["", "rht16>", "ht2-f32>", "rht64-seed5>", "bf16>rht8>"]),
        suffix in prop::sample::select(vec!["", "@rtz", "@sr8b", "@to-nan", "@rna@sat-none"]),
    ) {
        let text = format!("{rotation}{body}@{}@{}{suffix}", rule.0, profile.0);
        if let Ok(quantizer) = text.parse::<Quantizer>() {
            prop_assert_eq!(quantizer.to_string().parse::<Quantizer>(), Ok(quantizer));
        }
    }

    #[test]
    fn nothing_panics(text in "[rht0-9seedf>@a-z-]{0,24}") {
        let _ = text.parse::<Hadamard>();
        let _ = text.parse::<BlockFormat>();
        let _ = text.parse::<Quantizer>();
    }
}
