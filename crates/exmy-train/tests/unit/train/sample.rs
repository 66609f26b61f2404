use exmy_train::train::preset::preset;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Watch, load_data, train};
use exmy_train::train::sample::{Sampler, Sampling, draw};
use exmy_train::train::start;

const OPTIONS: Sampling = Sampling { temperature: 1.0, top_k: 0, seed: 0 };

#[test]
fn draws_follow_the_probabilities() {
    // Probabilities 0.2, 0.5, 0.3; the likeliest comes first in the cumulative order.
    // ln 0.2, ln 0.5, ln 0.3
    let logits = [-1.609_438, -std::f32::consts::LN_2, -1.203_973];
    let token = |uniform| draw(&logits, OPTIONS, uniform);
    assert_eq!([token(0.0), token(0.49), token(0.51), token(0.79)], [1, 1, 2, 2]);
    assert_eq!([token(0.81), token(0.999)], [0, 0]);
}

#[test]
fn temperature_and_top_k_narrow_the_choice() {
    let logits = [1.0, 3.0, 2.0];
    assert_eq!(draw(&logits, Sampling { temperature: 0.0, ..OPTIONS }, 0.999), 1);
    assert_eq!(draw(&logits, Sampling { top_k: 2, ..OPTIONS }, 0.999), 2);
    assert_eq!(draw(&logits, Sampling { top_k: 1, ..OPTIONS }, 0.999), 1);
}

/// Watches nothing.
struct Unseen;

impl Watch for Unseen {
    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        true
    }

    fn phase(&mut self, _: &str) {}
}

/// The cache gives the text of a sampler that reads all of it for each token: within the context, where the
/// text outgrows it, and after another text. Recipes of which a cache is none go on as before.
#[test]
fn what_is_kept_changes_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let changes = "[model]\nd_model = 32\nheads = 2\nkv_heads = 1\nhidden = 48\ncontext = 17\n\
                   [train]\nbatch = 2\n[record]\neval_windows = 1\neval_every = 0";
    let mut base = preset("nano").unwrap().overlaid(changes).unwrap();
    base.train = base.train.with_steps(1);
    let data = load_data(&mut base).unwrap();
    for (i, (recipe, sink, mixer)) in [
        ("f32", true, "attention"),
        ("mxfp8-e4m3+k:tensor=mxfp4+out=bf16", false, "attention"),
        ("mxfp8-e4m3+decay_gate:tensor=bf16", true, "gla,attention"),
        ("nvfp4", false, "gla"),
        ("e4m3@sr8", false, "attention"),
        ("f32+scores:tensor=bf16", false, "attention"),
    ]
    .into_iter()
    .enumerate()
    {
        let settings = [("recipe", recipe), ("model.mixer", mixer), ("model.gla.heads", "2")];
        let settings = settings.map(|(key, value)| format!("{key}={value}"));
        let settings = settings.into_iter().chain([format!("model.sink={sink}")]);
        let mut config =
            settings.fold(base.clone(), |config, key| config.with_setting(&key).unwrap());
        start::settle(&mut config).unwrap();
        let run = Folder::new(folder.path().join(format!("{i}")));
        run.create(&config).unwrap();
        train(&run, &data, &mut Unseen).unwrap();
        let options = Sampling { temperature: 1.0, top_k: 0, seed: 3 };
        let mut quick = Sampler::open(&run, options).unwrap();
        let mut plain = Sampler::open(&run, options).unwrap().forgetful();
        assert_eq!(quick.keeps(), i < 3, "{recipe}");
        for begin in [&[1, 5, 9][..], &[7]] {
            let mut text = begin.to_vec();
            for _ in 0..20 {
                let token = quick.next_token(&text);
                assert_eq!(token, plain.next_token(&text), "{recipe}, {text:?}");
                text.push(token);
            }
            assert_eq!(quick.next_token(&text[..9]), text[9], "{recipe}");
        }
    }
}
