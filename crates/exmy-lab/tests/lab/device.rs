use exmy::shown::printable_path;
use exmy_cuda::Error as Failure;
use exmy_lab::device::{Place, explained, other_settings, without_cores};
use exmy_train::recipe::Recipe;
use exmy_train::train::preset::preset;
use exmy_train::train::run::Folder;
use exmy_train::train::{checkpoint, fit};
use std::fs;

#[test]
fn other_tensor_cores_are_refused_in_one_line() {
    let recipe: Recipe = "mxfp8-e4m3+sums=hopper:bf16".parse().unwrap();
    for capability in [(8, 0), (8, 9), (10, 0)] {
        let error = without_cores("NVIDIA A100", capability, &recipe).unwrap().to_string();
        assert!(error.contains("hopper:bf16") && error.contains("the order fast"), "{error}");
        assert!(!error.contains('\n'));
    }
    assert!(without_cores("NVIDIA H100", (9, 0), &recipe).is_none());
    assert!(without_cores("NVIDIA A100", (8, 0), &"mxfp8-e4m3".parse().unwrap()).is_none());
}

#[test]
fn failures_say_how_to_go_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::new(place.path().join("run"));
    let mut config = preset("gpt2-124m").unwrap();
    config.train.batch = 64;
    config.train.accumulate = 1;
    folder.create(&config).unwrap();
    let said = |failure: Failure, free: u64| explained(&failure, free, &folder).to_string();
    let kernel = Failure::Kernel { name: "gla".into(), reason: "illegal address".into() };
    let lost = Failure::Lost { device: "NVIDIA H100".into(), reason: "unspecified".into() };
    let failed = [(kernel, "gla"), (lost, "does not answer")];
    for (failure, word) in failed.clone() {
        let text = said(failure, 0);
        assert!(text.contains(word) && text.contains("no checkpoint yet: begin it anew"), "{text}");
        assert!(!text.contains("stands") && !text.contains("--resume"), "{text}");
    }
    let full = |free| Failure::Memory { asked: 1 << 30, free: 1 << 20, total: free };
    // As many parts as fit, the smallest number of them; twice as many where it should have fitted.
    let text = said(full(20 << 30), 20 << 30);
    let parts = |text: &str| -> usize {
        let rest = text.split("train.accumulate=").nth(1).unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let least = parts(&text);
    assert!(least > 1 && text.contains("in a new run"), "{text}");
    assert!(!text.contains("--branch") && !text.contains("--resume"), "{text}");
    let needs = |accumulate| {
        let mut config = config.clone();
        config.train.accumulate = accumulate;
        fit::shortage(&config, 20 << 30).is_some()
    };
    let fewer = (1..least).filter(|parts| config.train.batch.is_multiple_of(*parts));
    assert!(!needs(least) && fewer.into_iter().all(needs), "{text}");
    assert_eq!(parts(&said(full(1 << 40), 1 << 40)), 2);
    // With a checkpoint a branch takes the setting, which a resume does not.
    fs::create_dir_all(folder.checkpoints()).unwrap();
    for step in [5, 40] {
        fs::write(checkpoint::path(&folder.checkpoints(), step), "").unwrap();
    }
    let branch = format!("exmy train --branch {}@40 ", printable_path(folder.path()));
    let text = said(full(20 << 30), 20 << 30);
    assert!(text.contains(&format!("{branch}--set train.accumulate={least} needs ")), "{text}");
    assert!(other_settings(&folder).contains(&branch));
    // Nothing that a branch could change.
    let text = said(full(1), 1);
    assert!(!text.contains("--branch") && text.contains("checkpoint of step 40"), "{text}");
    for (failure, word) in failed {
        let text = said(failure, 0);
        assert!(text.contains(word) && text.contains("checkpoint of step 40"), "{text}");
        assert!(text.contains("exmy train --resume"), "{text}");
    }
    // What a checkpoint does not help against says what does.
    let none = Failure::NoCompiler { tried: vec!["libnvrtc.so".into()] };
    assert!(!said(none.clone(), 0).contains("--resume") && said(none, 0).contains("EXMY_NVRTC"));
}

#[test]
fn slow_work_is_said_in_a_line() {
    let said = |recipe: &str| Place::Cpu.slow(&recipe.parse().unwrap());
    assert!(said("mxfp8-e4m3+sums=hopper:bf16").unwrap().contains("hopper:bf16"));
    assert_eq!(said("mxfp8-e4m3+sums=fma:bf16"), None);
    let host = |recipe: &str| recipe.parse::<Recipe>().unwrap().on_host();
    assert_eq!(host("mxfp8-e4m3+sums=fma:bf16"), Some("sums of other orders"));
    assert!(host("mxfp8-e4m3@by-position").is_some() && host("nv-nvfp4").is_none());
    assert_eq!(host("mxfp8-e4m3+sums=hopper:bf16"), None);
}
