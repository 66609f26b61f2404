use exmy_train::train::probe::{Line, Lines, Values, read};
use std::fs;

fn line(step: u64, probe: &str) -> Line {
    let mut values = Values::default();
    values.set(0.5 + step as f64);
    values.part("layers.0.q_proj", 0.1);
    values.list("hot", vec![3.0, 17.0]);
    Line { step, probe: probe.into(), values }
}

#[test]
fn lines_read_back_and_are_cut_at_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probes.jsonl");
    assert_eq!(read(&path).unwrap(), []);
    let (mut lines, none) = Lines::open(&path, None).unwrap();
    assert!(none.is_empty());
    let all: Vec<Line> =
        [0, 5, 10].into_iter().flat_map(|step| [line(step, "a"), line(step, "b")]).collect();
    all.iter().for_each(|line| lines.push(line).unwrap());
    lines.sync().unwrap();
    assert_eq!(read(&path).unwrap(), all);
    // A torn line goes, and with it what a checkpoint does not reach.
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 2]).unwrap();
    let (_, after) = Lines::open(&path, Some(9)).unwrap();
    assert_eq!(read(&path).unwrap(), all[..4]);
    assert_eq!(after.iter().filter(|&&byte| byte == b'\n').count(), 1);
    drop(Lines::open(&path, None).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn what_is_not_finite_is_not_recorded() {
    let mut values = Values::default();
    values.set(f64::NAN);
    values.part("a", f64::INFINITY);
    values.list("b", vec![1.0, f64::NAN]);
    assert!(values.is_empty());
    values.set(1.0);
    values.list("channels", vec![3.0, 173.0, 0.0]);
    values.list("magnitudes", vec![3.0, 0.5]);
    let text = serde_json::to_string(&Line { step: 2, probe: "sharpness".into(), values }).unwrap();
    assert_eq!(
        text,
        r#"{"step":2,"probe":"sharpness","value":1.0,"parts":{"channels":[3,173,0],"magnitudes":[3.0,0.5]}}"#
    );
}
