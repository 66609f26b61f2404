use exmy_lab::runner::Plan;
use exmy_train::train::preset::preset;

#[test]
fn the_grid_is_spelled_out_recipe_first_and_seed_last() {
    let text = "preset = \"deep\"\n[train]\nbatch = 4\n[grid]\nseed = [1, 2]\nlr = [0.01, 0.1]\n\
                recipe = [\"f32\", \"bf16\"]\n\"train.clip\" = [0.0]\n";
    let plan = Plan::parse(text).unwrap();
    assert_eq!(plan.keys, ["recipe", "lr", "train.clip", "seed"]);
    assert_eq!(plan.runs.len(), 8);
    assert_eq!(plan.values[0], ["f32", "0.01", "0.0", "1"]);
    assert_eq!(plan.values[1], ["f32", "0.01", "0.0", "2"]);
    assert_eq!(plan.values[7], ["bf16", "0.1", "0.0", "2"]);
    let config = &plan.runs[7].config;
    assert_eq!((config.train.lr, config.train.clip, config.seed), (0.1, 0.0, 2));
    // The preset's tenth of the peak.
    assert!((config.train.lr_min - 0.01).abs() < 1e-12);
    assert_eq!((config.train.batch, config.model.layers()), (4, 8));
    // The same in other words.
    let other = text.replace("\"train.clip\"", "train.clip").replace("lr = [0.01, 0.1]\n", "");
    let peaks = plan.runs.iter().zip(&plan.values).filter(|(_, values)| values[1] == "0.1");
    let peaks: Vec<_> = peaks.map(|(run, _)| run.clone()).collect();
    assert_eq!(Plan::parse(&format!("lr = 0.1\n{other}")).unwrap().runs, peaks);
    let short = Plan::parse("steps = 20").unwrap().runs[0].config.train.clone();
    assert_eq!(short, preset("nano").unwrap().train.with_steps(20));
    let again = Plan::parse(text).unwrap();
    assert_eq!(again, plan);
    // As a unit's file, it may begin with a byte-order mark.
    assert_eq!(Plan::parse(&format!("\u{FEFF}{text}")).unwrap(), plan);
    let names: std::collections::HashSet<_> = plan.runs.iter().map(|run| &run.name).collect();
    assert_eq!(names.len(), 8);
    assert!(plan.runs[7].name.starts_with("bf16-"));
}

#[test]
fn mistakes_are_answered() {
    for (text, parts) in [
        ("[grid]\nrecipi = [\"f32\"]", vec!["recipi", "did you mean recipe"]),
        ("[grid]\nrecipe = \"f32\"", vec!["grid.recipe", "list"]),
        ("[grid]\nseed = []", vec!["grid.seed", "list"]),
        ("grid = 3", vec!["[grid]"]),
        ("[grid]\nseed = [1, 1]", vec!["the same", "once"]),
        ("[grid]\nlr = [\"x\"]", vec!["lr = \"x\"", "numbers"]),
        ("steps = 1.5", vec!["steps = 1.5", "whole numbers"]),
        (
            "train.steps = 10",
            vec!["train.warmup = 30", "at most train.steps = 10", "`steps` of a plan"],
        ),
        ("seed = 1\n[grid]\nlr 3", vec!["line 3 is not TOML", "\"lr 3\""]),
        ("[grid]\nsteps = [0]", vec!["train.steps = 0"]),
        ("[grid]\nrecipe = [\"mxpf4\"]", vec!["mxpf4", "mxfp4"]),
        ("preset = \"nanno\"", vec!["nano"]),
        ("[train]\nstep = 3", vec!["train.step"]),
    ] {
        let error = Plan::parse(text).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
}
