use exmy::random::Stream;
use exmy_train::train::data::recall::{Task, answers, text};

/// What precedes an answer in its episode says what it is.
#[test]
fn answers_are_determined() {
    let text = text(3, Stream::new("test"), 20_000);
    let found = answers(&text);
    let of = |task| found.iter().filter(|one| one.task == task).count();
    assert!(of(Task::Recall) > 1000 && of(Task::Induction) > 1000);
    for answer in &found {
        let seen = &text[answer.episode..answer.at];
        let cue = seen[seen.len() - 1];
        let first = seen.iter().position(|&byte| byte == cue).unwrap();
        assert_eq!(seen[first + 1], text[answer.at], "{}", String::from_utf8_lossy(seen));
        assert!(!seen[1..].contains(&b'\n'));
    }
    // The two tasks come alike often.
    let lines = text.split(|&byte| byte == b'\n').skip(1);
    let (recall, all) =
        lines.fold((0, 0), |(a, b), line| (a + usize::from(line.contains(&b'?')), b + 1));
    assert!((0.45..0.55).contains(&(recall as f64 / f64::from(all))), "{recall} of {all}");
}

#[test]
fn a_longer_text_begins_with_the_shorter_one() {
    let stream = Stream::new("test");
    let (short, long) = (text(1, stream, 100), text(1, stream, 1000));
    assert_eq!(short, long[..short.len()]);
    assert_ne!(short, text(2, stream, 100)[..short.len()]);
}
