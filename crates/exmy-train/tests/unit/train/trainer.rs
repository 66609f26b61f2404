use exmy_train::train::config::{Config, Decay};
use exmy_train::train::data::Dataset;
use exmy_train::train::preset::preset;
use exmy_train::train::trainer::{Trainer, decay_ranges};
use std::ops::Range;

#[test]
fn matrices_decay_and_norms_do_not() {
    let layout = preset("nano").unwrap().model.layout();
    let ranges = decay_ranges(&layout, Decay::Matrices);
    let covered: usize = ranges.iter().map(|(range, _)| range.len()).sum();
    assert_eq!(covered, layout.len());
    for entry in layout.iter() {
        let within =
            |range: &Range<usize>| range.start <= entry.range.start && entry.range.end <= range.end;
        let (_, decays) = ranges.iter().find(|(range, _)| within(range)).unwrap();
        assert_eq!(*decays, entry.name.ends_with("weight") && !entry.name.contains("norm"));
    }
    assert_eq!(decay_ranges(&layout, Decay::All), [(0..layout.len(), true)]);
}

fn small(settings: &[&str]) -> Config {
    let set = |config: Config, setting: &&str| config.with_setting(setting).unwrap();
    let base = preset("proxy").unwrap();
    let small = ["train.batch=8", "model.width=32", "train.steps=9", "train.lr=0.125"];
    small.iter().chain(settings).fold(base, set)
}

fn data() -> Dataset {
    Dataset::load(&exmy_train::train::data::Source::default(), &Default::default()).unwrap()
}

/// `b = momentum b + g`, `p = p - lr b`, restated from gradients as the trainer reports them.
#[test]
fn descent_follows_its_gradients() {
    let data = data();
    for momentum in [0.0_f32, 0.5] {
        let setting = format!("train.momentum={momentum:?}");
        let config = small(&["train.optimizer=sgd", "train.weight_decay=0.0", &setting]);
        let mut trainer = Trainer::new(&config, &data).unwrap();
        assert_eq!(trainer.state().m.is_empty(), momentum == 0.0);
        assert!(trainer.state().v.is_empty());
        let (mut p, mut b) = (trainer.state().params.to_vec(), vec![0.0; trainer.layout().len()]);
        for _ in 0..3 {
            trainer.step(None);
            for ((p, b), g) in p.iter_mut().zip(&mut b).zip(&*trainer.grads()) {
                *b = momentum * *b + g;
                *p -= 0.125 * *b;
            }
            assert_eq!(trainer.state().params, p, "{momentum}");
        }
    }
}

/// By way of a file, with and without a buffer, and under the divergence; bit for bit.
#[test]
fn descent_resumes() {
    use exmy_train::train::checkpoint;
    let data = data();
    for settings in [
        &["train.optimizer=sgd"][..],
        &["train.optimizer=sgd", "train.momentum=0.9", "model.loss=kl"],
    ] {
        let config = small(settings);
        let mut whole = Trainer::new(&config, &data).unwrap();
        for _ in 0..4 {
            whole.step(None);
        }
        let folder = tempfile::tempdir().unwrap();
        checkpoint::save(folder.path(), whole.layout(), &whole.state(), whole.progress()).unwrap();
        let path = checkpoint::path(folder.path(), 4);
        let (state, progress) = checkpoint::load(&path, whole.layout()).unwrap();
        let mut rest = Trainer::new(&config, &data).unwrap();
        rest.restore(state, progress);
        for _ in 4..7 {
            assert_eq!(whole.step(None), rest.step(None), "{settings:?}");
        }
        assert_eq!(whole.state(), rest.state(), "{settings:?}");
    }
}

/// The z-loss adds to the gradient in proportion, and to the loss that is reported nothing.
#[test]
fn z_loss_is_in_the_gradient_alone() {
    let data = data();
    let run = |z: &str| {
        let base = preset("nano").unwrap().with_setting("train.batch=2").unwrap();
        let config = base.with_setting(&format!("train.z_loss={z}")).unwrap();
        let mut trainer = Trainer::new(&config, &data).unwrap();
        (trainer.step(None).loss, trainer.grads().to_vec())
    };
    let [(a, none), (b, once), (c, twice)] = ["0.0", "0.5", "1.0"].map(run);
    assert!(a == b && b == c);
    let (mut sum, mut error) = (0.0, 0.0_f32);
    for ((none, once), twice) in none.iter().zip(&once).zip(&twice) {
        sum += (once - none).abs();
        error = error.max((twice - none - 2.0 * (once - none)).abs());
    }
    assert!(sum > 1.0 && error < 1e-5, "{sum} {error}");
}
