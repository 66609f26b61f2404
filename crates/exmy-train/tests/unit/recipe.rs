mod bump;
mod clip;
mod hot;
mod mask;
mod old;
mod plan;
mod rule;
mod state;
mod table;
mod tensor_format;

use exmy_train::recipe::rule::Rule;
use exmy_train::recipe::{NAMED, Recipe};

fn rules(text: &str) -> Vec<String> {
    text.parse::<Recipe>().unwrap().rules().iter().map(Rule::to_string).collect()
}

#[test]
fn every_name_parses_and_prints_itself() {
    for name in NAMED {
        let recipe: Recipe = name.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.to_string(), name);
    }
}

/// Bundles are built as values: what they build is what its text says.
#[test]
fn every_rule_of_a_bundle_reads_back() {
    let more = [
        "nv-nvfp4+scale-order=v1+4over6=all+weight-block=1x16-same+rht-signs=fresh",
        "nv-mxfp4+sr=all+sr-bits=4b+rht=all+rht-size=8+first=2+last=3+only=gk_proj/o_proj",
        "chon+hcp=d-full+protect=v_proj/post-qk+late=80%+late-scope=forward+high=f32",
        "mxpaper-mix+bump=code+round=floor+w=fp32+fwd-only+no-ln-q=code+ln-bias-grad=on",
        "mxpaper-e5m2-e4m3+bump+block=16+ln-affine=mx",
        "bitred-e5m3+scale=tensor-pow2+bias=-7+clip=inner+overflow=inf+underflow=clamp",
        "bitred-e8m0+mask=weights/attention/embedding+accum=bf16",
        "msamp-o1+window=1",
    ];
    for name in NAMED.into_iter().chain(more) {
        let recipe: Recipe = name.parse().unwrap_or_else(|error| panic!("{error}"));
        for rule in recipe.rules() {
            assert_eq!(rule.to_string().parse().as_ref(), Ok(rule), "{name}: {rule}");
        }
    }
    // A tensor is f32 already, by whatever name.
    assert_eq!(rules("float32+weight=F32"), ["weight=f32"]);
}

#[test]
fn other_spellings_print_the_one_form() {
    let text = |text: &str| {
        let recipe: Recipe = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.to_string().parse(), Ok(recipe.clone()));
        recipe.to_string()
    };
    assert_eq!(text("float8_e4m3fn"), "e4m3");
    assert_eq!(text("e4m3@rne"), "e4m3");
    assert_eq!(text("e2m1/16:ue4m3+tensor"), "nvfp4");
    assert_eq!(text("e2m1/8:ue4m3+tensor@te+out=bf16"), "e2m1/8:ue4m3+tensor@te+out=bf16");
    assert_eq!(text("F8_E4M3@rtz+out=bfloat16"), "e4m3@rtz+out=bf16");
    assert_eq!(text("f32+out=bf16"), "f32+out=bf16");
    assert_eq!(text("bf16+out=e4m3"), "bf16+out=e4m3");
    assert_eq!(text("none+backward=e2m1/16:ue4m3+tensor"), "f32+grad_input:grad_weight=nvfp4");
    assert_eq!(text("nv-nvfp4+last=2+o_proj=bfloat16"), "nv-nvfp4+last=2+o_proj=bf16");
    assert_eq!(text("mxfp8-e4m3+fwd-only"), "mxfp8-e4m3+fwd-only");
    assert_eq!(text("rht16>nvfp4"), "rht16>nvfp4");
}

#[test]
fn bundles_are_rules() {
    assert_eq!(rules("f32"), [""; 0]);
    assert_eq!(rules("mxfp8-mix"), ["all=mxfp8-e4m3", "grad_output=mxfp8-e5m2"]);
    assert_eq!(rules("bitred-e8m3"), ["all=bf16>e8m3@rtz", "forward:grad_input:output=bf16"]);
    assert_eq!(rules("bitred-e8m7"), rules("bf16+out=bf16"));
    assert_eq!(
        rules("bitred-e8m2+mask=weights+round=sr8"),
        ["all=bf16", "forward:grad_input:output=bf16", "weight=bf16>e8m2@sr8"]
    );
    assert_eq!(rules("bitred-e7m7+bias=keep-low+clip=outer")[0], "all=clip-e7m7-keep-low-outer");
    assert_eq!(rules("bitred-e5m3+scale=tensor-pow2")[0], "all=clip-e5m3-pow2>>e8m3@rtz");
    assert_eq!(rules("bitred-e8m3+scale=tensor-pow2")[0], "all=clip-e8m3-pow2>>e8m3@rtz");
    assert_eq!(rules("bitred-e8m0")[0], "all=mask0");
    assert_eq!(rules("bitred-e8m3+accum=bf16")[2..], ["sums=fma:bf16"]);
    let masks = |text: &str| rules(&format!("bitred-e8m3+mask={text}"));
    let both = ["all=bf16>e8m3@rtz", "forward:grad_input:output=bf16"];
    assert_eq!(
        masks("attention")[1..],
        [
            "forward:grad_input:output=bf16",
            "all=bf16>e8m3@rtz",
            "q:k:tensor=bf16>e8m3@rtz",
            "scores:gradient=bf16>e8m3@rtz",
            "v:probabilities:tensor=bf16>e8m3@rtz",
            "attention:gradient=bf16>e8m3@rtz",
        ]
    );
    assert_eq!(masks("paper"), both);
    assert_eq!(masks("embedding")[2..], [both[0], "embedding:tensor=bf16>e8m3@rtz"]);
    assert_eq!(
        masks("backward/weights/qk")[2..],
        [
            "grad_input:grad_weight=bf16>e8m3@rtz",
            "weight=bf16>e8m3@rtz",
            "q:k:tensor=bf16>e8m3@rtz",
            "scores:gradient=bf16>e8m3@rtz",
        ]
    );
}

/// Rules as values give what they give as text, and are added once.
#[test]
fn rules_are_added_once() {
    for (base, rules) in [
        ("mxfp4", "input=f32"),
        ("chon+last=0", "k:tensor=mxfp8-e4m3+v:tensor=mxfp8-e4m3+sums=fma:bf16"),
        ("f32+q_proj=mxfp4", "layer3:q_proj:weight=bf16@rtz"),
    ] {
        let given: Vec<Rule> = rules.split('+').map(|rule| rule.parse().unwrap()).collect();
        let base: Recipe = base.parse().unwrap();
        let longer = base.clone().with_rules(&given);
        assert_eq!(longer, format!("{base}+{rules}").parse().unwrap());
        assert_eq!(longer.clone().with_rules(&given), longer);
        assert_eq!(base.clone().with_rules(&[]), base);
    }
}

#[test]
fn wrong_names_are_answered() {
    let message = |text: &str| text.parse::<Recipe>().unwrap_err().to_string();
    assert!(message("mxpf8-e4m3").contains("did you mean mxfp8-e4m3"));
    assert!(message("chom").contains("did you mean chon"));
    assert!(message("bitred-e8m9").contains("bitred-e8m0 to bitred-e8m7"));
    assert!(message("bitred-e7m0").contains("bitred-e8m0 to bitred-e8m7"));
    assert!(message("bitred-e8m0+round=rne").contains("trunc"));
    assert!(message("bitred-e8m3+mask=weights/acts").contains("inputs"));
    assert!(message("bitred-e8m3+accum=f16").contains("bf16"));
    assert!(message("f32+sums=exact").contains("fma"));
    assert!(message("f32+weight:sums=fma:bf16").contains("one of these"));
    assert!(message("mxfp8-e4m3@sr8@microxcaling@by-position").contains("random"));
    assert!(message("mxpaper-e4m3+no-ln-q=codes").contains("code"));
    assert!(message("nv-nvfp4+sr-bits=8d").contains("8b"));
    assert!(message("e8m0").contains("no negative numbers"));
    assert!(message("e4m3@sr33").contains("sr33"));
    assert!(message("mxfp4@sr8@sr4").contains("two rounding modes"));
    assert!(message("bf16+out=bf61").contains("bf16"));
    assert!(message("nv-nvfp4+srbits=4").contains("did you mean +sr-bits"));
    assert!(message("nv-nvfp4+sr=grads").contains("did you mean grad"));
    assert!(message("nv-nvfp4+rht-size=12").contains("16, 32"));
    assert!(message("nv-nvfp4+protect=o_porj").contains("o_proj"));
    assert!(message("mxpaper-e4m4").contains("e4m3, e5m2"));
    assert!(message("mxfp4+o_porj=bf16").contains("did you mean o_proj"));
    assert!(message("chon+hcp=s-o2-c").contains("s-o2-b"));
    assert!(message("mxfp4+fwdonly").contains("fwd-only"));
}
