use exmy_lab::gather::RecordedRun;
use exmy_lab::overview::answer::{Gap, answer};
use exmy_lab::remaining::Remaining;
use exmy_train::train::preset::preset;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Summary};

/// A complete run.
fn run(recipe: &str, seed: u64, loss: f64) -> RecordedRun {
    let open = going_on(recipe, seed, loss);
    let steps = open.config.train.steps;
    let summary = Summary {
        version: 2,
        recipe: recipe.into(),
        seed,
        lr: open.config.train.lr,
        steps,
        tokens: 9,
        parameters: 9,
        train_loss: Some(loss),
        val_loss: Some(loss),
        val_bits_per_byte: None,
        diverged_at: None,
        reason: None,
        precision: Vec::new(),
        records: None,
    };
    RecordedRun { summary: Some(summary), ..open }
}

/// One that has come to step 10.
fn going_on(recipe: &str, seed: u64, loss: f64) -> RecordedRun {
    let mut config = preset("nano").unwrap();
    (config.recipe, config.seed) = (recipe.parse().unwrap(), seed);
    let line = |step, val_loss| Metrics { step, val_loss: Some(val_loss), ..Metrics::default() };
    RecordedRun {
        name: format!("{recipe} seed {seed}"),
        condition: recipe.into(),
        folder: Folder::new("none"),
        config,
        metrics: vec![line(0, 5.0), line(10, loss)],
        summary: None,
    }
}

fn said(runs: &[RecordedRun]) -> String {
    said_with(runs, &Remaining::default())
}

fn said_with(runs: &[RecordedRun], left: &Remaining) -> String {
    let all = exmy_lab::overview::condition::conditions(runs);
    let rows = exmy_lab::overview::rows(&all);
    let gaps: Vec<_> = all.iter().map(|one| Gap::of(one, &all)).collect();
    for (gap, row) in gaps.iter().zip(&rows) {
        // The table of `exmy train` has the same number.
        if let (Some(gap), Some(other)) = (gap, row.gap) {
            assert!(gap.at.is_some() || gap.percent == other, "{gap:?} {other}");
        }
    }
    answer(&all, &rows, &gaps, left, "nats").join(" ")
}

#[test]
fn the_answer_names_what_is_seen_and_what_is_not() {
    let runs = [
        [("f32", 2.0, 1), ("f32", 4.0, 2), ("f32", 2.0, 3)],
        // 10, 12.5 and 15 %: mean 12.5, deviation 2.5, t(2) 4.303: 6.29 to 18.71.
        [("mxfp4", 2.2, 1), ("mxfp4", 4.5, 2), ("mxfp4", 2.3, 3)],
        // 1, -1 and 0 %.
        [("bf16", 2.02, 1), ("bf16", 3.96, 2), ("bf16", 2.0, 3)],
    ];
    let runs: Vec<RecordedRun> =
        runs.as_flattened().iter().map(|&(name, loss, seed)| run(name, seed, loss)).collect();
    let text = said(&runs);
    let one = "Against f32, the validation loss of mxfp4 ends 12.50 % higher (95 % interval +6.29 to \
               +18.71 %), over 3 seeds.";
    assert!(text.starts_with(one), "{text}");
    let other =
        "Against f32, three seeds do not settle bf16: +0.00 %, anywhere from -2.48 to +2.48 %.";
    assert!(text.ends_with(other), "{text}");
    // What an interval is, is said once. Gaps of 5, 7.5 and 10 %: 7.5, deviation 2.5.
    let more = [("nvfp4", 2.1, 1), ("nvfp4", 4.3, 2), ("nvfp4", 2.2, 3)];
    let more = more.map(|(name, loss, seed)| run(name, seed, loss));
    let text = said(&[runs, more.to_vec()].concat());
    let both = "(95 % interval +6.29 to +18.71 %) and nvfp4 7.50 % higher (+1.29 to +13.71 %), over 3 seeds.";
    assert!(text.contains(both), "{text}");
    let text = said(&[run("f32", 1, 2.0), run("mxfp4", 1, 1.9)]);
    assert!(text.contains("mxfp4 ends 5.00 % lower, of one seed. One seed does not say"), "{text}");
    assert!(!said(&[run("f32", 1, 2.0), run("f32", 2, 2.0)]).contains("Against"));
}

#[test]
fn each_number_of_seeds_is_said_of_what_has_it() {
    // As of two folders, one of which has a second seed. Gaps of bf16 are 1 and -1 %.
    let runs = [
        [("f32", 2.0, 1), ("f32", 4.0, 2)],
        [("bf16", 2.02, 1), ("bf16", 3.96, 2)],
        [("nvfp4", 2.2, 1), ("mxfp4", 2.4, 1)],
    ];
    let runs: Vec<RecordedRun> =
        runs.as_flattened().iter().map(|&(name, loss, seed)| run(name, seed, loss)).collect();
    let text = said(&runs);
    let words = "Against f32, two seeds do not settle bf16: +0.00 %, anywhere from -12.71 to +12.71 %. \
                 Against f32, the validation loss of mxfp4 ends 20.00 % higher and nvfp4 10.00 % \
                 higher, of one seed. One seed does not say";
    assert!(text.starts_with(words), "{text}");
}

#[test]
fn what_diverged_has_no_gap() {
    let mut lost = run("mxfp4", 1, 1.9);
    let summary = lost.summary.as_mut().unwrap();
    (summary.diverged_at, summary.val_loss) = (Some(10), None);
    let runs = [run("f32", 1, 2.0), lost.clone()];
    assert!(said(&runs).starts_with("Diverged: mxfp4 (step 10)."), "{}", said(&runs));
    // A second seed counts alone, and the base of one that diverged is none.
    let more = [run("f32", 2, 2.0), run("mxfp4", 2, 2.2)];
    let all: Vec<RecordedRun> = runs.iter().chain(&more).cloned().collect();
    assert!(said(&all).contains("mxfp4 ends 10.00 % higher, of one seed"), "{}", said(&all));
    let swapped = [lost.clone(), run("f32", 1, 2.0)];
    assert!(!said(&swapped).contains("Against"), "{}", said(&swapped));
    assert_eq!((lost.losses(), lost.validated().len()), ([None; 2], 0));
    assert_eq!((runs[0].losses(), runs[0].validated().len()), ([Some(2.0); 2], 1));
}

#[test]
fn runs_without_a_validation_say_how_far_they_have_come() {
    let mut stopped = ["f32", "mxfp4"].map(|recipe| going_on(recipe, 1, 2.5));
    for run in &mut stopped {
        run.metrics[1].val_loss = None;
        run.metrics[1].loss = Some(2.5);
    }
    let steps = stopped[0].config.train.steps;
    let words = format!(
        "2 of 2 runs are not complete. Training losses so far, in nats: f32 has come to step 10 of {steps} \
         with 2.5000 and mxfp4 has come to step 10 of {steps} with 2.5000. Nobody is at work on what is not \
         complete."
    );
    assert_eq!(said(&stopped), words);
    assert_eq!(stopped[0].losses(), [Some(2.5), Some(5.0)]);
}

#[test]
fn what_is_planned_and_the_time_left_are_said_first() {
    let runs = [run("f32", 1, 2.0), going_on("mxfp4", 1, 2.2)];
    let mut left = Remaining::unseen(3);
    left.all = Some(150.0);
    let text = said_with(&runs, &left);
    let words = "1 of 2 runs is not complete. 3 more are planned and not begun. All will be done in about 2 \
                 min. At step 10 of ";
    assert!(text.starts_with(words), "{text}");
    let text = said_with(&runs[..1], &Remaining::unseen(1));
    assert!(text.starts_with("1 more is planned and not begun. f32 ends"), "{text}");
}

#[test]
fn runs_that_go_on_have_not_ended() {
    let mut late = going_on("mxfp4", 2, 2.4);
    let (f32, other) = (run("f32", 1, 2.0), run("f32", 2, 2.0));
    let text = said(&[f32.clone(), other.clone(), run("mxfp4", 1, 2.2), late.clone()]);
    let steps = f32.config.train.steps;
    let words = format!(
        "1 of 4 runs is not complete. At step 10 of {steps}, against f32, two seeds do not settle mxfp4: \
         +15.00 %, anywhere from "
    );
    assert!(text.starts_with(&words) && !text.contains("ends"), "{text}");
    // Of one that has not come to a validation nothing is said, and none of the others is moved.
    late.metrics.pop();
    let text = said(&[f32, other, run("mxfp4", 1, 2.2), late]);
    let words = format!(
        "1 of 4 runs is not complete. At step 10 of {steps}, against f32, the validation loss of mxfp4 is \
         10.00 % higher, of one seed."
    );
    assert!(text.starts_with(&words), "{text}");
}
