use exmy_train::train::config::Config;
use exmy_train::train::preset::{PRESETS, Preset, preset};

/// nanoGPT prints 123.59 M without the 786 432 of its positions; TinyLlama and Llama 2 by their
/// published shapes; OLMo by the study's 2 V d + 12 L d^2 + (4 L + 1) d, and its table's totals;
/// GLA-1.3B's 51.4 M a layer; Qwen3-1.7B's model card says 1.7 G, 1.4 G without embeddings.
#[test]
fn published_models_have_the_published_sizes() {
    let size = |name: &str| preset(name).unwrap().model.layout().len();
    assert_eq!(size("gpt2-124m"), 124_373_760);
    assert_eq!(size("gpt2-124m") - 786_432, 123_587_328);
    assert_eq!(size("llama-7b"), 6_738_415_616);
    assert_eq!(size("olmo-l4"), 19_534_080);
    for (layers, millions) in [(11, 110.5), (16, 266.9), (22, 613.6), (32, 1741.9)] {
        let (l, d) = (layers, 64 * layers);
        let found = size(&format!("olmo-l{layers}"));
        assert_eq!(found, 2 * 32_000 * d + 12 * l * d * d + (4 * l + 1) * d);
        assert!((found as f64 / 1e6 - millions).abs() < 0.1, "{layers}: {found}");
    }
    let layer = 2 * 1024 * 2048
        + 3 * 2048 * 2048
        + 16 * 2048
        + 1024 * 16
        + 1024
        + 512
        + 3 * 2048 * 5632
        + 2 * 2048;
    assert_eq!(layer, 51_435_008);
    assert_eq!(size("gla-1.3b"), 24 * layer + 2 * 32_000 * 2048 + 2048);
    assert_eq!(size("gla-340m"), 374_475_776);
    assert_eq!(size("qwen3-1.7b"), 1_720_574_976);
    assert_eq!(size("proxy-mx"), 4 * (8 * 512 * 512 + 3 * 512));
    for (name, least, most) in [("gla-micro", 880_000, 960_000), ("mini", 2e6 as usize, 3_000_000)]
    {
        assert!((least..most).contains(&size(name)), "{name}: {}", size(name));
    }
}

/// Steps of the study's smallest budget, from its scaling grid.
#[test]
fn olmo_trains_for_its_budget() {
    let steps = |name: &str| preset(name).unwrap().train.steps;
    assert_eq!([steps("olmo-l4"), steps("olmo-l11")], [6509, 1150]);
    assert!(preset("olmo-l04").is_err() && preset("olmo-l41").is_err());
}

#[test]
fn every_preset_is_possible_and_survives_its_toml() {
    for Preset { name, .. } in PRESETS {
        let config = preset(name).unwrap();
        config.validate().unwrap();
        assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config, "{name}");
    }
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest() {
    let error = preset("nanno").unwrap_err().to_string();
    assert_eq!(error, "there is no preset \"nanno\"\n  did you mean nano?");
}

#[test]
fn numbers_out_of_range_are_refused_by_their_keys() {
    let nano = preset("nano").unwrap();
    for setting in [
        "train.steps=0",
        "train.batch=0",
        "train.accumulate=3",
        "record.window=65537",
        "seed=-1",
        "train.beta1=1",
        "train.beta2=-0.1",
        "train.momentum=nan",
        "data.noise=1",
        "data.validation=0",
        "train.lr=inf",
        "train.lr_min=-1",
        "train.eps=nan",
        "train.weight_decay=-1",
        "train.clip=-1",
        "train.z_loss=-1",
    ] {
        let refused = nano.with_setting(setting).and_then(|config| config.validate());
        let (key, error) = (setting.split('=').next().unwrap(), refused.unwrap_err());
        assert!(error.to_string().contains(key), "{setting}: {error}");
    }
    let most = "train.steps=68719476736\ntrain.accumulate=8\nrecord.window=65536\ntrain.beta2=0\n\
                data.noise=0";
    nano.overlaid(most).unwrap().validate().unwrap();
}
