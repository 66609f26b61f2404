//! Text that grows by a cache, against transformers' greedy tokens and against passes over whole sequences.

use super::{data, logits, truth};
use exmy_train::generate::Generator;
use exmy_train::nn::Cpu;
use exmy_train::nn::decoder::{Config, Decoder};
use exmy_train::nn::linear::Unquantized;
use exmy_train::published::Published;
use exmy_train::train::sample::Sampling;

const GREEDY: Sampling = Sampling { temperature: 0.0, top_k: 0, seed: 1 };

fn generator(family: &str, recipe: &str) -> Generator {
    let mut model = Published::open(&data(family)).unwrap();
    let weights = model.weights(|_| {}).unwrap();
    let recipe = recipe.parse().unwrap();
    Generator::new(Cpu::new(), *model.config(), weights, &recipe, GREEDY).unwrap()
}

/// What transformers 5.24.0 (`gla`: a model with Flash Linear Attention's recurrence) generates greedily, in
/// f32, from the first eight tokens of each family's record. The likeliest token's logit is 0.0027 or more
/// above the next one's; logits agree within 1e-5.
const TOKENS: [(&str, [u32; 24]); 8] = [
    (
        "gla",
        [
            53, 50, 70, 42, 31, 35, 27, 68, 17, 73, 27, 92, 77, 64, 63, 48, 73, 10, 7, 43, 65, 8,
            60, 19,
        ],
    ),
    (
        "gpt2",
        [
            90, 90, 90, 90, 52, 52, 90, 52, 90, 90, 88, 88, 88, 88, 90, 90, 90, 90, 90, 90, 90, 90,
            90, 90,
        ],
    ),
    (
        "llama",
        [
            5, 11, 93, 5, 51, 23, 59, 75, 28, 28, 28, 28, 28, 28, 28, 2, 17, 59, 41, 41, 17, 17,
            17, 17,
        ],
    ),
    (
        "llama3",
        [
            25, 22, 70, 70, 65, 25, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62,
            62, 62,
        ],
    ),
    (
        "mistral",
        [
            26, 74, 75, 57, 12, 74, 74, 74, 74, 35, 65, 74, 74, 74, 74, 74, 74, 24, 65, 13, 13, 13,
            13, 13,
        ],
    ),
    (
        "olmo2",
        [
            56, 88, 5, 88, 91, 56, 56, 88, 88, 88, 88, 88, 56, 88, 88, 88, 88, 88, 56, 88, 88, 88,
            88, 88,
        ],
    ),
    (
        "qwen2",
        [
            25, 6, 27, 50, 61, 22, 79, 61, 24, 38, 17, 20, 71, 61, 51, 11, 8, 50, 26, 61, 90, 8,
            25, 25,
        ],
    ),
    (
        "qwen3",
        [
            16, 35, 53, 24, 78, 40, 27, 60, 28, 82, 1, 1, 69, 69, 69, 19, 48, 48, 48, 48, 48, 48,
            48, 48,
        ],
    ),
];

#[test]
fn greedy_tokens_are_those_of_others() {
    for (family, expected) in TOKENS {
        let (tokens, _) = truth(&data(family).join("truth.safetensors"));
        let mut generator = generator(family, "f32");
        let mut found = vec![generator.next_token(&tokens[..8]).unwrap()];
        while found.len() < expected.len() {
            found.push(generator.next_token(&found[found.len() - 1..]).unwrap());
        }
        assert_eq!(found, expected, "{family}");
    }
}

/// A prompt, then token by token: the bits of a pass over all of them.
#[test]
fn a_cache_changes_no_bit() {
    for family in ["llama", "gla"] {
        let (tokens, _) = truth(&data(family).join("truth.safetensors"));
        let mut by_one = generator(family, "f32");
        let all = logits(&data(family), &tokens);
        let rows = all.chunks_exact(96).skip(4).zip(&tokens[5..]);
        let mut given: &[u32] = &tokens[..5];
        for (row, next) in rows {
            assert_eq!(by_one.logits(given).unwrap(), row, "{family}, {} tokens", by_one.tokens());
            given = core::slice::from_ref(next);
        }
        assert!(by_one.tokens() > 32, "no two chunks");
    }
    for family in ["gla", "gpt2", "qwen3"] {
        let (tokens, _) = truth(&data(family).join("truth.safetensors"));
        for recipe in ["mxfp8-e4m3", "mxfp4+input=f32", "f32+k:tensor=ht4>mxfp4+v:tensor=mxfp4"] {
            let whole = generator(family, recipe).logits(&tokens[..20]).unwrap();
            let mut parts = generator(family, recipe).keeping(1 << 20);
            for part in [0..7, 7..8, 8..19] {
                parts.logits(&tokens[part]).unwrap();
            }
            let last = parts.logits(&tokens[19..20]).unwrap();
            assert_eq!(parts.tokens(), 20);
            assert!(last == whole, "{family} under {recipe}");
            assert_ne!(last, generator(family, "f32").logits(&tokens[..20]).unwrap());
        }
    }
}

/// A sink has the place in front of the first token, or its place where there is no room for another.
#[test]
fn a_sink_hides_no_token() {
    let config = Config { vocab: 97, context: 7, sink: true, ..Config::default() };
    let (params, recipe) = (config.initialize(2), "f32".parse().unwrap());
    let text: [u32; 7] = [5, 80, 2, 41, 7, 19, 3];
    let mut decoder: Decoder = Decoder::new(config).unwrap();
    let mut whole =
        |tokens: &[u32]| decoder.last_logits(&params, tokens, &mut Unquantized).numbers().to_vec();
    let new = || Generator::new(Cpu::new(), config, params.clone(), &recipe, GREEDY).unwrap();
    let mut by_part = new();
    for (part, left) in [(0..3, 3), (3..4, 2), (4..6, 0)] {
        assert_eq!(by_part.logits(&text[part.clone()]).unwrap(), whole(&text[..part.end]));
        assert_eq!((by_part.tokens(), by_part.remaining()), (part.end, left));
    }
    assert_eq!(new().logits(&text).unwrap(), whole(&text));
}

#[test]
fn what_a_cache_does_not_hold_is_refused() {
    let mut model = Published::open(&data("llama")).unwrap();
    let (weights, config) = (model.weights(|_| {}).unwrap(), *model.config());
    let recipe = "f32+scores:tensor=bf16".parse().unwrap();
    let found = Generator::new(Cpu::new(), config, weights, &recipe, GREEDY);
    let error = found.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("rounds scores"), "{error}");
}
