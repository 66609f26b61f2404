use exmy_lab::store::cut_short;
use std::fs;

#[test]
fn probes_that_end_early_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probes.jsonl");
    let of = |text: &str, due: Option<u64>| {
        fs::write(&path, text).unwrap();
        cut_short(&path, due).unwrap()
    };
    let line = |step: u64| {
        format!("{{\"step\":{step},\"probe\":\"norms\",\"value\":1.0,\"parts\":{{}}}}\n")
    };
    let two = line(5) + &line(10);
    assert_eq!(of(&two, Some(10)), None);
    assert_eq!(of(&two, None), None, "a run that diverged");
    assert!(of(&two, Some(15)).unwrap().contains("ends at step 10, and probes were due at 15"));
    assert!(of(&two[..two.len() - 5], Some(10)).unwrap().contains("within a line"));
    assert!(of("none\n", Some(10)).unwrap().contains("none of a probe"));
    assert!(of("", Some(10)).unwrap().contains("is empty") && of("", None).is_none());
    let nowhere = folder.path().join("nowhere");
    assert!(cut_short(&nowhere, None).unwrap().unwrap().contains("missing"));
}
