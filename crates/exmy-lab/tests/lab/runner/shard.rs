use exmy_lab::runner::shard::Shard;

fn choose(given: Option<&str>, environment: &[(&str, &str)]) -> Result<String, String> {
    let find = |name: &str| {
        let found = environment.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Shard::choose(given, find).map(|s| s.to_string()).map_err(|e| e.to_string())
}

#[test]
fn options_and_environments() {
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(choose(None, &[]), ok("0/1"));
    assert_eq!(choose(Some("3/4"), &[("JOB_COMPLETION_INDEX", "1")]), ok("3/4"));
    assert_eq!(choose(Some("/4"), &[("JOB_COMPLETION_INDEX", "1")]), ok("1/4"));
    let slurm = [
        ("SLURM_ARRAY_TASK_ID", "7"),
        ("SLURM_ARRAY_TASK_MIN", "1"),
        ("SLURM_ARRAY_TASK_STEP", "3"),
        ("SLURM_ARRAY_TASK_COUNT", "4"),
    ];
    assert_eq!(choose(None, &slurm), ok("2/4"));
    assert_eq!(choose(Some("/9"), &slurm), ok("2/9"));
}

#[test]
fn mistakes_are_answered() {
    for text in ["4/4", "1", "a/2", "1/0", "/0", "/", "-1/2"] {
        let error = choose(Some(text), &[("JOB_COMPLETION_INDEX", "0")]).unwrap_err();
        assert!(error.contains(text) && error.contains("I/N"), "{error}");
    }
    assert!(choose(Some("/4"), &[]).unwrap_err().contains("neither is set"));
    let index = [("JOB_COMPLETION_INDEX", "5")];
    assert!(choose(None, &index).unwrap_err().contains("--shard /N"));
    assert!(choose(Some("/4"), &index).unwrap_err().contains("part 5 of 4"));
    assert!(choose(None, &[("SLURM_ARRAY_TASK_ID", "x")]).unwrap_err().contains("no number"));
}
