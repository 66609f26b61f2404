//! What is said of recipes and of options that stand for rules of theirs: alike by all commands.

use super::{eval, model, refused};
use std::path::Path;

/// Rules about blocks and operators that the model has not.
#[test]
fn a_rule_about_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for (recipe, expected) in [
        ("f32+layer2=mxfp4", "names a block that the model has not: its 2 count from 0"),
        ("f32+layers5-7:q_proj=mxfp4", "there are layer0 to layer1"),
        ("mxfp4+g_proj=bf16", "names g_proj, which the model has not"),
        ("mxfp4+layer0:lm_head=bf16", "the head is in none"),
    ] {
        let recipe = format!("f32,{recipe}");
        let error = refused(folder, &["eval", "model", "--data", "text", "--recipe", &recipe]);
        assert!(error.contains(expected), "{recipe}: {error}");
    }
    // Bases are for many models, and options are no rules.
    for recipe in ["f32,chon+last=0", "f32,mxfp4+out=bf16+layers0-9=bf16"] {
        eval(folder, &["model", "--tokens", "9", "--recipe", recipe]);
    }
}

/// `exmy train` and `exmy generate` refuse what `exmy eval` does, in the same words.
#[test]
fn commands_say_the_same_of_a_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for (recipe, expected) in [
        ("mxfp9", "there is no recipe \"mxfp9\"\n  did you mean mxfp4?"),
        ("f32+q_porj=mxfp4", "there is no recipe \"f32+q_porj=mxfp4\"\n  "),
        (
            "f32 mxfp4",
            "\"f32 mxfp4\" is several recipes\n  separate them by commas: --recipe f32,mxfp4",
        ),
        (
            "f32+layer9=mxfp4",
            "recipe f32+layer9=mxfp4: layer9=mxfp4 names a block that the model has not",
        ),
        (
            "mxfp4+g_proj=bf16",
            "recipe mxfp4+g_proj=bf16: g_proj=bf16 names g_proj, which the model has not",
        ),
        ("f32+sums=hopper:bf16+q=ht3>mxfp4", "there is no recipe"),
        (
            "mxfp4+input=rht16>mxfp4",
            "recipe mxfp4+input=rht16>mxfp4: layers.0.q_proj, forward: one operand",
        ),
    ] {
        let found = errors(folder, recipe);
        for error in &found {
            assert!(error.starts_with(&format!("error: {expected}")), "{recipe}: {error}");
        }
    }
    let empty = ["eval", "train"].map(|command| {
        let rest: &[&str] = if command == "eval" { &["model", "--data", "text"] } else { &[] };
        refused(folder, &[&[command], rest, &["--recipe", "f32,"]].concat())
    });
    assert!(empty[0] == empty[1] && empty[0].contains("empty name\n  separate"), "{empty:?}");
}

/// What the three commands say of a recipe.
fn errors(folder: &Path, recipe: &str) -> [String; 3] {
    let out = ["train", "--steps", "1", "--preset", "micro", "--out", "new", "--recipe", recipe];
    let found = [
        refused(folder, &["eval", "model", "--data", "text", "--recipe", recipe]),
        refused(folder, &["generate", "model", "--prompt", "a", "-q", "--recipe", recipe]),
        refused(folder, &out),
    ];
    assert!(!folder.join("new").exists(), "{recipe}");
    found
}

/// A teacher is the proxy's, beside its parameters.
#[test]
fn a_teacher_is_there_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let train = ["train", "-q", "--steps", "1", "--recipe", "mxfp4+teacher=bf16", "--preset"];
    crate::succeed(crate::exmy(&[&train[..], &["proxy-nano"]].concat()).current_dir(folder));
    let error = refused(folder, &[&train[..], &["micro"]].concat());
    assert!(error.contains("which the model has not"), "{error}");
    let plan = "steps = 1\n[grid]\nrecipe = [\"f32\", \"f32+layer9=mxfp4\"]\n";
    std::fs::write(folder.join("plan.toml"), plan).unwrap();
    let error = refused(folder, &["sweep", "plan.toml"]);
    assert!(error.contains("recipe f32+layer9=mxfp4: layer9=mxfp4 names a block"), "{error}");
}

/// So are the recipes that a run changes to. A run that began before they were looked at goes on.
#[test]
fn a_change_to_a_rule_about_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let train = |set: &str| {
        ["train", "-q", "--preset", "micro", "--steps", "4", "--out", "run", "--config", set]
            .map(String::from)
    };
    for (rule, expected) in [
        (
            "[[at]]\nstep = 2\nthen = \"+layer9=bf16\"\n",
            "rule 1 of [[at]]: recipe f32+layer9=bf16: layer9",
        ),
        (
            "[[when]]\nmetric = \"loss\"\nabove = 9.0\nthen = \"mxfp4+g_proj=bf16\"\n",
            "rule 1 of [[when]]: recipe mxfp4+g_proj=bf16: g_proj=bf16 names g_proj",
        ),
    ] {
        std::fs::write(folder.join("rules.toml"), rule).unwrap();
        let arguments = train("rules.toml");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let error = refused(folder, &arguments);
        assert!(error.contains(expected), "{error}");
        assert!(!folder.join("run").exists());
    }
}

/// A value that is none is told with the option that it was given to.
#[test]
fn a_wrong_value_is_told_with_its_option() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let evaluate = ["eval", "model", "--data", "text", "--recipe", "f32,f32"];
    let parts = ["eval", "model", "--data", "text"];
    let generate = ["generate", "model", "--prompt", "a"];
    let quantize = ["quantize", "model", "new", "--to", "mxfp4"];
    for (command, option, value) in [
        (&evaluate[..], "--kv", "nonsense"),
        (&evaluate, "--kv", "mxfp4+input=f32"),
        (&evaluate, "--sums", "nonsense"),
        (&evaluate, "--gptq", "nonsense"),
        (&evaluate, "--mse", "nonsense"),
        (&evaluate, "--rotate", "nonsense"),
        (&evaluate, "--rotate-down", "nonsense"),
        (&evaluate, "--smooth", "nonsense"),
        (&evaluate, "--calibrate-tokens", "nonsense"),
        (&evaluate, "--window", "1"),
        (&evaluate, "--stride", "0"),
        (&evaluate, "--tokens", "1"),
        (&evaluate, "--device", "nonsense"),
        (&parts, "--sensitivity", "nonsense"),
        (&generate, "--kv", "nonsense"),
        (&generate, "--sums", "nonsense"),
        (&generate, "--temperature", "nonsense"),
        (&generate, "--top-k", "nonsense"),
        (&generate, "--seed", "nonsense"),
        (&generate, "--tokens", "nonsense"),
        (&quantize[..3], "--to", "nonsense"),
        (&quantize, "--head", "nonsense"),
        (&quantize, "--layout", "nonsense"),
        (&quantize, "--rotate", "nonsense"),
    ] {
        let given = format!("{option}={value}");
        let calibrate: &[&str] = match option {
            "--gptq" | "--smooth" | "--calibrate-tokens" => &["--calibrate", "text"],
            _ => &[],
        };
        let error = refused(folder, &[command, &[&*given], calibrate].concat());
        assert!(error.contains(option) && error.contains(value), "{given}: {error}");
    }
    let few = ["--gptq", "mxfp4", "--calibrate", "text", "--calibrate-tokens", "1"];
    let error = refused(folder, &[&evaluate[..], &few].concat());
    assert!(error.contains("--calibrate-tokens takes two or more"), "{error}");
}

/// What changes the weights needs all of them: by one layer at a time it is refused, by its name.
#[test]
fn methods_need_all_weights_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let evaluate = ["eval", "model", "--data", "text", "--recipe", "f32,f32", "--by-layer"];
    for (option, value) in [
        ("--gptq", "mxfp4"),
        ("--mse", "mxfp4"),
        ("--smooth", "0.5"),
        ("--rotate", "1"),
        ("--rotate-down", "1"),
    ] {
        let calibrate = ["--calibrate", "text", option, value];
        let error = refused(folder, &[&evaluate[..], &calibrate].concat());
        assert!(
            error.contains("'--by-layer' cannot be used with") && error.contains(option),
            "{error}"
        );
    }
}
