use exmy_train::nn::stopwatch::{Direction, Laps, Part, lap};
use exmy_train::nn::{decoder, model, proxy};
use exmy_train::train::config::Config;
use exmy_train::train::preset::preset;
use exmy_train::train::profile::{MemoryNeed, StepProfile};
use std::time::Duration;

#[test]
fn parts_and_the_rest_make_the_whole() {
    let model = preset("nano").unwrap().model;
    let profile = StepProfile::of(&model, 8, 2, || drop(lap(Part::Norm(Direction::Forward))));
    assert_eq!((profile.laps.len(), profile.laps[0].count), (1, 2));
    let text = StepProfile {
        time: Duration::from_millis(10),
        laps: vec![Laps { time: Duration::from_millis(4), ..profile.laps[0] }],
        ..profile
    }
    .to_string();
    let shares: Vec<_> = text.lines().skip(1).take(3).map(|line| line[59..].trim()).collect();
    assert_eq!(shares, ["40.0", "60.0", "100.0"], "{text}");
    assert!(text.contains("norm             forward                     1.0      2.000"), "{text}");
}

/// Two layers, d 4, by hand. A block keeps of a token 4 * 4 of the stream and the norms' outputs,
/// 2 * 2 statistics, q|k|v 12, a logarithm for each of 2 heads, 4 of the attention, 8 + 8 of the
/// MLP: 54; the rest is 4 + 4 + 2 of the last norm, 10 logits, the token and its target: 22.
#[test]
fn memory_by_hand() {
    let model = model::Config::from(decoder::Config {
        vocab: 10,
        context: 3,
        layers: 2,
        d_model: 4,
        heads: 2,
        kv_heads: 2,
        hidden: 8,
        ..*preset("gpt-nano").unwrap().model.decoder().unwrap()
    });
    let bytes = 4 * model.layout().len() as u64;
    let (activations, evaluation) = (4 * 5 * 3 * 130, 4 * 9 * 3 * 76);
    let expected = MemoryNeed {
        weights: bytes,
        gradients: bytes,
        moments: 2 * bytes,
        activations,
        evaluation,
    };
    let paper = MemoryNeed::of(&model, 5, 9);
    assert_eq!((paper, paper.total()), (expected, 4 * bytes + evaluation));
}

/// One block of width 6 with the exact GELU, by hand: 2 * 6 * 24 weights, 3 * 6 of norm and bias,
/// a teacher of 2 * 6 * 6; of a row 6 + 6 + 2 + 24 + 24 and then output and target.
#[test]
fn memory_of_the_proxy_by_hand() {
    let model = proxy::Config { layers: 1, width: 6, ..proxy::Config::default() };
    let paper = MemoryNeed::of(&model.into(), 10, 0);
    let (gradients, activations) = (4 * 306, 4 * 10 * 74);
    let weights = 4 * (306 + 72);
    let moments = 2 * gradients;
    assert_eq!(paper, MemoryNeed { weights, gradients, moments, activations, evaluation: 0 });
}

/// AdamW keeps two numbers a parameter, momentum one, descent alone none. `nano` has two tables of 256 x 64,
/// two blocks of 10 240 + 33 792 + 128 and a norm of 64.
#[test]
fn moments_are_those_of_the_optimizer() {
    let moments = |settings: &[&str]| {
        let set = |config: Config, setting: &&str| config.with_setting(setting).unwrap();
        let config = settings.iter().fold(preset("nano").unwrap(), set);
        let paper = MemoryNeed::of_run(&config);
        assert_eq!(paper.gradients, 4 * 121_152);
        paper.moments
    };
    assert_eq!(moments(&[]), 2 * 4 * 121_152);
    assert_eq!(moments(&["train.optimizer=sgd", "train.momentum=0.9"]), 4 * 121_152);
    assert_eq!(moments(&["train.optimizer=sgd"]), 0);
}
