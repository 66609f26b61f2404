use exmy_lab::overview::chosen::{Chosen, MOST, choose};

fn chosen(having: &[Vec<usize>], count: usize) -> Chosen {
    let all = (0..count).map(|i| (format!("run {i}"), i > 0)).collect();
    Chosen { drawn: choose(having), having: having.to_vec(), all, word: "runs" }
}

#[test]
fn those_are_drawn_that_have_it() {
    let all: Vec<usize> = (0..110).collect();
    let of_all = chosen(std::slice::from_ref(&all), 110);
    assert_eq!(of_all.of(0), (0..36).collect::<Vec<_>>());
    assert_eq!(of_all.remark(0, "loss").unwrap(), "the first 36 of 110 runs");
    let late = chosen(&[vec![109]], 110);
    assert_eq!((late.of(0), late.has(0)), (vec![109], true));
    assert_eq!(late.remark(0, "sharpness").unwrap(), "1 of 110 runs has recorded sharpness");
    let half = chosen(&[(50..110).collect()], 110);
    assert_eq!(half.of(0), (50..86).collect::<Vec<_>>());
    let text = "the first 36 of 60 runs that have recorded sharpness";
    assert_eq!(half.remark(0, "sharpness").unwrap(), text);
    let two = chosen(&[vec![0, 3]], 4);
    assert_eq!(two.remark(0, "val_loss").unwrap(), "run 1 and run 2 have no validation loss yet");
    let done = chosen(&[vec![1]], 2);
    assert_eq!(done.remark(0, "lr").unwrap(), "run 0 has no learning rate");
    assert!(!chosen(&[vec![]], 3).has(0));
    assert_eq!(chosen(&[(0..36).collect()], 36).remark(0, "loss"), None);
}

#[test]
fn every_panel_has_some_and_all_together_no_more_than_differ() {
    let all: Vec<usize> = (0..110).collect();
    // One run has both: it is drawn in both panels.
    let both = chosen(&[all, vec![109]], 110);
    assert_eq!((both.conditions().len(), both.of(1)), (MOST, vec![109]));
    assert_eq!(both.remark(0, "loss").unwrap(), "36 of 110 runs");
    // No run has both.
    let apart = chosen(&[(0..50).collect(), (50..60).collect()], 60);
    assert_eq!((apart.of(0).len(), apart.of(1).len()), (26, 10));
}
