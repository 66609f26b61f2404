use exmy_lab::timing::{Time, of};
use exmy_train::train::run::Folder;
use std::fs;

/// Lines as processes write them: step, seconds since they began, tokens since then.
fn timed(lines: &[(u64, f64, f64)]) -> Time {
    let root = tempfile::tempdir().unwrap();
    let line = |&(step, seconds, tokens): &(u64, f64, f64)| {
        let speed = tokens / seconds;
        format!("{{\"step\":{step},\"train_seconds\":{seconds},\"tokens_per_second\":{speed}}}\n")
    };
    let text: String = lines.iter().map(line).collect();
    fs::write(root.path().join("timing.jsonl"), text).unwrap();
    of(&Folder::new(root.path()), 10)
}

#[test]
fn times_are_those_of_all_processes() {
    let of_both = |seconds, tokens| Time { tokens, seconds };
    // One process; then a second one, which has done fewer steps, and whose clock shows less.
    assert_eq!(timed(&[(100, 2.0, 1000.0), (200, 4.0, 2000.0)]), of_both(4.0, 2000.0));
    let parts = [(100, 2.0, 1000.0), (200, 4.0, 2000.0), (250, 1.0, 500.0)];
    assert_eq!(timed(&parts), of_both(5.0, 2500.0));
    // The second process takes longer than the first, so that its clock shows more: only tokens tell.
    let slow = [(60, 1.0, 600.0), (100, 1.5, 400.0), (200, 4.0, 1400.0)];
    assert_eq!(timed(&slow), of_both(5.0, 2000.0));
    let long = [(20, 1.0, 200.0), (200, 9.0, 1800.0)];
    assert_eq!((timed(&long), timed(&long).speed()), (of_both(10.0, 2000.0), Some(200.0)));
    // A process that went back to step 50 has done more than its last step says.
    let back = [(100, 2.0, 1000.0), (100, 3.0, 1500.0), (200, 5.0, 2500.0)];
    assert_eq!(timed(&back), of_both(5.0, 2500.0));
    // Earlier versions wrote no speed.
    let root = tempfile::tempdir().unwrap();
    let lines = [1.5, 4.0, 0.5, 2.0].map(|now| format!("{{\"train_seconds\":{now}}}\n"));
    fs::write(root.path().join("timing.jsonl"), lines.concat()).unwrap();
    let time = of(&Folder::new(root.path()), 10);
    assert_eq!((time.seconds, time.speed()), (6.0, None));
    assert_eq!(of(&Folder::new(root.path().join("none")), 10), Time::default());
}
