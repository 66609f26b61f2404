use exmy_train::train::record::{Event, Lines, Metrics, cut_back, read_metrics};
use std::collections::BTreeMap;
use std::fs;

fn metrics(step: u64) -> Metrics {
    Metrics { step, tokens: 8 * step, loss: Some(0.1 + step as f64), ..Metrics::default() }
}

#[test]
fn cut_back_drops_later_and_torn_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut lines = Lines::append(&path).unwrap();
    for step in 0..=4 {
        lines.push(&metrics(step)).unwrap();
    }
    lines.sync().unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    assert_eq!(read_metrics(&path).unwrap().len(), 4);
    cut_back(&path, Some(2)).unwrap();
    let left = read_metrics(&path).unwrap();
    assert_eq!(left, [metrics(0), metrics(1), metrics(2)]);
    assert!(cut_back(&path, Some(3)).unwrap_err().to_string().contains("ends at step 2"));
    cut_back(&path, None).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_line_that_is_missing_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut lines = Lines::append(&path).unwrap();
    for step in [0, 1, 3, 4] {
        lines.push(&metrics(step)).unwrap();
    }
    lines.sync().unwrap();
    let error = cut_back(&path, Some(4)).unwrap_err().to_string();
    assert!(error.contains("lacks step 2, and a checkpoint is of step 4"), "{error}");
    cut_back(&path, Some(1)).unwrap();
    assert_eq!(read_metrics(&path).unwrap().len(), 2);
}

#[test]
fn absent_values_are_absent_keys() {
    let text = serde_json::to_string(&metrics(1)).unwrap();
    assert_eq!(text, r#"{"step":1,"tokens":8,"loss":1.1}"#);
}

/// Rules decide on what is read back, so every value must come back as it was.
#[test]
fn numbers_survive_to_the_last_bit() {
    let random = exmy::random::Philox::new(1, exmy::random::Stream::new("records"));
    for i in 0..20_000 {
        let bits = u64::from(random.word(2 * i)) << 32 | u64::from(random.word(2 * i + 1));
        let value = f64::from_bits(bits);
        if value.is_finite() {
            let probes = BTreeMap::from([("lastbin.gamma".to_owned(), value)]);
            let line = Metrics { loss: Some(value), probes, ..metrics(1) };
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), line, "{text}");
        }
    }
}

#[test]
fn events_say_what_they_are() {
    let event =
        Event::When { rule: 2, metric: "spike".into(), value: Some(2.5), recipe: "bf16".into() };
    let line = Metrics { events: vec![event], ..metrics(3) };
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(
        text,
        r#"{"step":3,"tokens":24,"loss":3.1,"events":["#.to_owned()
            + r#"{"event":"when","rule":2,"metric":"spike","value":2.5,"recipe":"bf16"}]}"#
    );
    assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), line);
}
