//! Sizes, names and words against what was counted by hand.

use exmy_train::nn::decoder::config::check::LARGEST;
use exmy_train::nn::decoder::config::{Config, InitScheme, Mlp, Norm, Position};

fn nano() -> Config {
    Config {
        vocab: 256,
        context: 64,
        layers: 4,
        d_model: 128,
        heads: 4,
        kv_heads: 4,
        hidden: 512,
        norm: Norm::LayerNorm,
        norm_bias: false,
        norm_eps: 1e-5,
        position: Position::Learned,
        mlp: Mlp::Gelu,
        tied: true,
        init: InitScheme::Gpt2,
        ..Config::default()
    }
}

/// Counted by hand: 256*128 + 64*128 + 4*(2*128 + 4*128*128 + 2*128*512) + 128, and the linear
/// operators 4*(4*128*128 + 2*128*512) + 256*128.
#[test]
fn sizes_by_hand() {
    let config = nano();
    assert_eq!(config.layout().len(), 828_544);
    assert_eq!(config.linear_parameters(), 819_200);
    assert_eq!(config.flops_per_token(), 6 * (819_200 + 4 * 128 * 65));
    // TinyLlama's 120M configuration: 12 layers, d 768, 12 heads of which one key head.
    let llama = Config {
        vocab: 32_000,
        context: 2048,
        layers: 12,
        d_model: 768,
        heads: 12,
        kv_heads: 1,
        hidden: 2048,
        norm: Norm::RmsNorm,
        position: Position::Rope { base: 10_000.0 },
        mlp: Mlp::Swiglu,
        tied: false,
        init: InitScheme::TinyLlama,
        ..config
    };
    assert_eq!(llama.validate(), Ok(()));
    let block = 768 * (768 + 2 * 64) + 768 * 768 + 3 * 768 * 2048 + 2 * 768;
    assert_eq!(llama.layout().len(), 2 * 32_000 * 768 + 12 * block + 768);
}

#[test]
fn groups_are_adjacent_and_named_as_llama() {
    let config = Config { mlp: Mlp::Swiglu, norm_bias: true, kv_heads: 2, ..nano() };
    let layout = config.layout();
    let range = |name: &str| layout.find(name).map(|entry| entry.range.clone()).unwrap();
    let pairs = [
        ("self_attn.q_proj.weight", "self_attn.k_proj.weight"),
        ("self_attn.k_proj.weight", "self_attn.v_proj.weight"),
        ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
        ("input_layernorm.weight", "input_layernorm.bias"),
    ];
    for layer in 0..4 {
        for (first, second) in pairs {
            let [first, second] = [first, second].map(|n| format!("model.layers.{layer}.{n}"));
            assert_eq!(range(&first).end, range(&second).start, "{first}");
        }
    }
    assert_eq!(layout.find("model.layers.1.self_attn.k_proj.weight").unwrap().shape, [64, 128]);
    assert_eq!(layout.find("lm_head.weight"), None);
    let mut end = 0;
    for entry in &layout {
        assert_eq!(entry.range.start, end, "{}", entry.name);
        assert_eq!(entry.range.len(), entry.shape.iter().product::<usize>());
        end = entry.range.end;
    }
}

#[test]
fn wrong_sizes_are_answered_with_what_would_work() {
    let answer = |config: Config| config.validate().unwrap_err().to_string();
    assert_eq!(
        answer(Config { heads: 5, ..nano() }),
        "model: heads is 5; it must be a divisor of d_model = 128: 1, 2, 4, 8, 16, 32, 64, 128"
    );
    assert_eq!(
        answer(Config { kv_heads: 3, ..nano() }),
        "model: kv_heads is 3; it must be a divisor of heads = 4: 1, 2, 4"
    );
    let rope = Position::Rope { base: 10_000.0 };
    let odd = answer(Config { d_model: 12, position: rope, ..nano() });
    assert!(odd.contains("12 / 4 = 3"), "{odd}");
    assert!(answer(Config { context: 0, ..nano() }).contains("context is 0"));
    assert!(answer(Config { norm_eps: f64::NAN, ..nano() }).contains("norm_eps"));
    let norm = Config { norm: Norm::RmsNorm, norm_bias: true, ..nano() };
    assert!(answer(norm).contains("norm_bias is true"));
    let huge = Config { layers: LARGEST, d_model: LARGEST, hidden: LARGEST, ..nano() };
    assert!(answer(huge).contains("2^40"));
}

#[test]
fn text_form_reads_back() {
    let config = Config { position: Position::Rope { base: 500_000.0 }, ..nano() };
    let text = toml::to_string(&config).unwrap();
    assert!(text.contains("position = \"rope:500000\"\n"), "{text}");
    assert!(text.contains("norm = \"layer-norm\"\n"), "{text}");
    assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
    let error = toml::from_str::<Config>(&format!("{text}head = 3\n")).unwrap_err();
    assert!(error.to_string().contains("unknown field `head`"), "{error}");
    let error = "alibi".parse::<Position>().unwrap_err().to_string();
    assert!(error.contains("`alibi`") && error.contains("rope:BASE"), "{error}");
}
