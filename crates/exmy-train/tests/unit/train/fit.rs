use exmy_train::train::fit::{Advice, Settings, most, refused, shortage, smaller};
use exmy_train::train::memory::size;
use exmy_train::train::preset::preset;
use exmy_train::train::profile::MemoryNeed;

/// What is kept must fit, and addresses must suffice for the most that a run takes.
#[test]
fn what_cannot_go_well_is_refused() {
    let config = preset("nano").unwrap();
    let paper = MemoryNeed::of_run(&config);
    let said = |available: u64, left| {
        refused(&paper, &config, Some(available), left).map(|error| error.to_string())
    };
    assert_eq!(said(paper.kept(), None), None);
    assert!(said(paper.kept() - 1, None).unwrap().contains("a smaller model, or another machine"));
    let most = most(paper.total());
    assert_eq!(said(most, Some(most)), None);
    let limited = said(most, Some(most - 2)).unwrap();
    assert!(
        limited.contains("(ulimit -v) leaves") && limited.contains("raise the limit"),
        "{limited}"
    );
    assert!(limited.contains("; or --set "), "{limited}");
}

/// What is advised is not refused in turn, also where a little less is left by then.
#[test]
fn advice_is_taken_in() {
    let mut advised = 0;
    for name in ["nano", "micro", "mini"] {
        let config = preset(name).unwrap();
        let paper = MemoryNeed::of_run(&config);
        for left in (1..64).map(|part| most(paper.total()) * part / 64) {
            let said = refused(&paper, &config, None, Some(left)).unwrap().to_string();
            let advice = said.rsplit_once("; or ").unwrap().1;
            if !advice.starts_with("--set ") {
                assert!(advice.starts_with("take a smaller model"), "{said}");
                continue;
            }
            let settings = advice.split_once(" needs ").unwrap().0;
            let words = settings.split(' ').filter(|word| *word != "--set");
            let smaller =
                words.fold(config.clone(), |config, setting| config.with_setting(setting).unwrap());
            let again =
                refused(&MemoryNeed::of_run(&smaller), &smaller, None, Some(left - left / 20));
            assert!(again.is_none(), "{name} {left}: {said}; then {again:?}");
            advised += 1;
        }
    }
    assert!(advised > 50, "{advised}");
}

/// nano: 8 sequences of 64 tokens. What is said is what the numbers on paper say.
#[test]
fn what_would_fit_is_told() {
    let mut config = preset("nano").unwrap();
    config.record.eval_windows = 1;
    let paper = MemoryNeed::of_run(&config);
    assert!(shortage(&config, paper.total()).is_none());
    let fixed = paper.weights + paper.gradients + paper.moments;
    let part = paper.activations / 8;
    assert!(paper.evaluation < part);
    for (activations, parts) in [(8 * part - 1, 2), (4 * part, 2), (4 * part - 1, 4), (part, 8)] {
        let said = shortage(&config, fixed + activations).unwrap().to_string();
        let setting = format!("--set train.accumulate={parts} needs ");
        assert!(said.contains(&setting) && !said.contains("even"), "{activations}: {said}");
        assert!(said.contains(&size(paper.total())) && said.contains("of a step"), "{said}");
    }
    let said = shortage(&config, fixed + part - 1).unwrap().to_string();
    assert!(said.contains("model.context: even --set train.accumulate=8 needs"), "{said}");
    let said = shortage(&config, fixed - 1).unwrap().to_string();
    assert!(said.contains("a smaller model, or another machine"), "{said}");
    // Evaluations of 64 windows take more than a step of one.
    config.record.eval_windows = 64;
    config.train.batch = 1;
    let paper = MemoryNeed::of_run(&config);
    assert!(paper.evaluation > paper.activations);
    let said = shortage(&config, fixed + paper.evaluation / 3).unwrap().to_string();
    assert!(said.contains("an evaluation; there") && said.contains("eval_windows="), "{said}");
}

/// After a run that did not fit: what fits on paper, else more parts than it had.
#[test]
fn what_failed_is_made_smaller() {
    let mut config = preset("nano").unwrap();
    config.record.eval_windows = 1;
    let total = MemoryNeed::of_run(&config).total();
    let halved = Settings { accumulate: Some(2), ..Settings::default() };
    assert!(matches!(smaller(&config, total - 1), Advice::Settings(it, Some(_)) if it == halved));
    assert_eq!(smaller(&config, total).to_string(), "--set train.accumulate=2 needs less");
    config.train.accumulate = config.train.batch;
    assert_eq!(smaller(&config, u64::MAX), Advice::SmallerModel(None));
}
