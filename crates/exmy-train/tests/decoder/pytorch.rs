//! The decoder against PyTorch: losses and the gradient of every tensor, as literals.

use super::*;

/// Losses (mean, first token, last token) and the norm of every tensor's gradient, by PyTorch 2
/// (float64, `F.layer_norm` / `F.rms_norm`, `F.scaled_dot_product_attention` with `is_causal` and
/// `enable_gqa`, rotary positions as in Hugging Face's Llama, `F.gelu` / `F.silu`,
/// `F.cross_entropy`, autograd). Parameter i of the arena is ((7919 i) mod 1009 - 504) / 1009, plus 1 for
/// gains. Token i is (3 i² + i) mod 11, target i is (5 i + 2) mod 11.
const GPT_LOSSES: [f64; 3] =
    [3.624_826_131_391_045_3, 5.981_460_894_611_867, 4.654_765_329_432_505_5];
const GPT_GRADIENTS: [(&str, f64); 24] = [
    ("model.embed_tokens.weight", 2.005_948_907_543_76),
    ("model.embed_positions.weight", 0.576_205_290_626_966),
    ("model.layers.0.input_layernorm.weight", 0.151_955_442_075_744),
    ("model.layers.0.input_layernorm.bias", 0.296_737_168_738_852),
    ("model.layers.0.self_attn.q_proj.weight", 0.363_393_842_911_713),
    ("model.layers.0.self_attn.k_proj.weight", 0.380_857_372_529_28),
    ("model.layers.0.self_attn.v_proj.weight", 0.507_680_110_509_842),
    ("model.layers.0.self_attn.o_proj.weight", 0.506_245_475_522_11),
    ("model.layers.0.post_attention_layernorm.weight", 0.076_800_402_234_015_2),
    ("model.layers.0.post_attention_layernorm.bias", 0.106_079_259_945_483),
    ("model.layers.0.mlp.up_proj.weight", 0.449_234_743_017_502),
    ("model.layers.0.mlp.down_proj.weight", 0.737_186_116_920_971),
    ("model.layers.1.input_layernorm.weight", 0.140_940_736_184_341),
    ("model.layers.1.input_layernorm.bias", 0.191_124_007_420_095),
    ("model.layers.1.self_attn.q_proj.weight", 0.243_034_084_222_787),
    ("model.layers.1.self_attn.k_proj.weight", 0.182_443_505_928_538),
    ("model.layers.1.self_attn.v_proj.weight", 0.353_890_246_221_466),
    ("model.layers.1.self_attn.o_proj.weight", 0.388_253_057_195_307),
    ("model.layers.1.post_attention_layernorm.weight", 0.169_841_605_050_398),
    ("model.layers.1.post_attention_layernorm.bias", 0.179_600_839_782_926),
    ("model.layers.1.mlp.up_proj.weight", 0.336_611_213_986_458),
    ("model.layers.1.mlp.down_proj.weight", 0.330_234_264_790_072),
    ("model.norm.weight", 0.592_459_244_309_883),
    ("model.norm.bias", 0.574_434_817_121_809),
];

const LLAMA_LOSSES: [f64; 3] = [2.545_262_287_040_715, 1.408_955_689_940_67, 3.046_121_073_001_44];
const LLAMA_GRADIENTS: [(&str, f64); 21] = [
    ("model.embed_tokens.weight", 1.492_183_324_975_77),
    ("model.layers.0.input_layernorm.weight", 0.292_296_037_980_434),
    ("model.layers.0.self_attn.q_proj.weight", 0.686_237_740_612_91),
    ("model.layers.0.self_attn.k_proj.weight", 0.716_541_833_463_332),
    ("model.layers.0.self_attn.v_proj.weight", 0.638_133_577_193_928),
    ("model.layers.0.self_attn.o_proj.weight", 0.905_187_306_042_566),
    ("model.layers.0.post_attention_layernorm.weight", 0.168_767_729_066_443),
    ("model.layers.0.mlp.gate_proj.weight", 0.345_034_008_821_926),
    ("model.layers.0.mlp.up_proj.weight", 0.327_585_079_575_108),
    ("model.layers.0.mlp.down_proj.weight", 0.437_466_639_790_329),
    ("model.layers.1.input_layernorm.weight", 0.115_965_240_262_855),
    ("model.layers.1.self_attn.q_proj.weight", 0.190_095_267_899_156),
    ("model.layers.1.self_attn.k_proj.weight", 0.206_299_203_540_333),
    ("model.layers.1.self_attn.v_proj.weight", 0.344_758_229_304_632),
    ("model.layers.1.self_attn.o_proj.weight", 0.304_783_798_985_202),
    ("model.layers.1.post_attention_layernorm.weight", 0.136_325_249_963_902),
    ("model.layers.1.mlp.gate_proj.weight", 0.296_688_064_910_046),
    ("model.layers.1.mlp.up_proj.weight", 0.228_101_938_946_637),
    ("model.layers.1.mlp.down_proj.weight", 0.250_937_126_660_306),
    ("model.norm.weight", 0.360_784_994_608_842),
    ("lm_head.weight", 0.960_231_944_726_797),
];

fn like_pytorch(config: Config, losses: [f64; 3], gradients: &[(&str, f64)]) {
    let config = Config {
        vocab: 11,
        context: 8,
        d_model: 12,
        heads: 6,
        kv_heads: if config.mlp == Mlp::Swiglu { 3 } else { 6 },
        hidden: 17,
        position: match config.position {
            Position::Rope { .. } => Position::Rope { base: 10_000.0 },
            other => other,
        },
        ..config
    };
    let mut decoder = Decoder::<Cpu<f64>>::new(config).unwrap();
    let layout = decoder.layout().clone();
    let mut params: Vec<f64> =
        (0..layout.len()).map(|i| ((7919 * i) % 1009) as f64 - 504.0).map(|p| p / 1009.0).collect();
    for entry in layout.iter().filter(|entry| entry.name.ends_with("norm.weight")) {
        params[entry.range.clone()].iter_mut().for_each(|gain| *gain += 1.0);
    }
    let x: Vec<u32> = (0..14).map(|i| (3 * i * i + i) % 11).collect();
    let y: Vec<u32> = (0..14).map(|i| (5 * i + 2) % 11).collect();
    let close = |got: f64, expected: f64, what: &str| {
        assert!((got - expected).abs() < 1e-12 * expected, "{what}: {got} {expected}");
    };

    let mut grads = vec![0.0; params.len()];
    let mean = decoder.forward_backward(&params, &mut grads, &x, &y, 2, &mut Unquantized);
    let mut each = [0.0; 14];
    decoder.losses(&params, &x, &y, 2, &mut Unquantized, &mut each);
    for (got, expected) in [mean, each[0], each[13]].into_iter().zip(losses) {
        close(got, expected, "loss");
    }
    assert_eq!(layout.iter().count(), gradients.len());
    for (entry, (name, norm)) in layout.iter().zip(gradients) {
        assert_eq!(entry.name, *name);
        let gradient = &grads[entry.range.clone()];
        close(dot(gradient, gradient).sqrt(), *norm, name);
    }

    // The same in f32: 2^-24 a rounding, and some hundred of them.
    let mut decoder = Decoder::<Cpu>::new(config).unwrap();
    let params: Vec<f32> = params.iter().map(|p| *p as f32).collect();
    let mut narrow = vec![0.0; params.len()];
    decoder.forward_backward(&params, &mut narrow, &x, &y, 2, &mut Unquantized);
    let error: f64 = narrow.iter().zip(&grads).map(|(n, w)| (f64::from(*n) - w).powi(2)).sum();
    assert!(error.sqrt() < 1e-5 * dot(&grads, &grads).sqrt(), "{:e}", error.sqrt());
}

#[test]
fn gpt_is_pytorchs() {
    like_pytorch(tiny(), GPT_LOSSES, &GPT_GRADIENTS);
}

#[test]
fn llama_is_pytorchs() {
    like_pytorch(tiny_llama(), LLAMA_LOSSES, &LLAMA_GRADIENTS);
}
