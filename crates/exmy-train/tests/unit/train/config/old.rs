use exmy_train::train::config::{Config, VERSION};
use exmy_train::train::preset::preset;
use exmy_train::train::probe::Line;
use exmy_train::train::record::Metrics;

fn config(recipe: &str) -> Config {
    Config { recipe: recipe.parse().unwrap(), ..preset("nano").unwrap() }
}

/// A file that the version before wrote means what it meant.
#[test]
fn the_version_before_had_other_names() {
    let rules = "\n[[at]]\nstep = 10\nthen = \"e4m3\"\n\n[[when]]\nmetric = \"loss\"\nabove = 9.0\n\
                 then = \"+out=e4m3\"\n\n[[when]]\nmetric = \"loss\"\nabove = 8.0\n\
                 then = { rule = [{ operands = [\"weight\"], numbers = \"e4m3\" }] }\n";
    let old = |recipe: &str| {
        let new = config("f32").to_toml();
        let (head, tail) = new.split_once("recipe = \"f32\"").unwrap();
        assert!(head.contains("version = 3"));
        let head = head.replace("version = 3", "version = 2");
        format!("{head}recipe = \"{recipe}\"{tail}")
            .replace("\nat = []\n", "\n")
            .replace("\nwhen = []\n", "\n")
            + rules
    };
    for (text, meant) in [
        ("e4m3", "e4m3-ieee"),
        ("e4m3fn@rtz+dw-out=e4m3", "e4m3@rtz+dw-out=e4m3-ieee"),
        ("mxpaper-e4m3+w=e4m3", "mxpaper-e4m3+w=e4m3"),
    ] {
        let read = Config::from_toml(&old(text)).unwrap();
        assert_eq!((read.recipe.as_str(), read.version), (meant, VERSION));
        let then: Vec<String> = read
            .when
            .iter()
            .map(|when| when.then.change(&read.recipe).unwrap().to_string())
            .collect();
        assert_eq!(then, [format!("{meant}+out=e4m3-ieee"), format!("{meant}+weight=e4m3-ieee")]);
        assert_eq!(read.at[0].then.change(&read.recipe).unwrap().as_str(), "e4m3-ieee");
        assert_eq!(Config::from_toml(&read.to_toml()).unwrap(), read);
        // Laid over another configuration it means the same.
        assert_eq!(config("f32").overlaid(&old(text)).unwrap(), read);
    }
    assert_eq!(Config::from_toml(&config("e4m3").to_toml()).unwrap().recipe.as_str(), "e4m3");
}

/// A probe that had another name is read by it, in lists, rules and records, and is the one of today.
#[test]
fn probes_had_other_names() {
    let text = "[record]\nprobes = [\"phi:5e-4\", \"norms\", \"phi_lbfgsb\"]\n\n[[when]]\n\
                metric = \"phi\"\nabove = 1.0\nthen = \"bf16\"\n";
    let read = config("f32").overlaid(text).unwrap();
    assert_eq!(read.record.probes, ["sharpness:5e-4", "norms", "sharpness_lbfgsb"]);
    assert_eq!(read.when[0].metric, "sharpness");
    assert_eq!(Config::from_toml(&read.to_toml()).unwrap(), read);
    // Whichever name a person writes, the hash is that of the former one.
    let modern = text.replace("phi", "sharpness");
    assert_eq!(config("f32").overlaid(&modern).unwrap(), read);
    let former = read.former_toml();
    assert!(former.contains("\"phi:5e-4\"") && !former.contains("sharpness"), "{former}");
    assert_eq!(Config::from_toml(&former).unwrap(), read);
    let line = r#"{"step":2,"probe":"phi:5e-4","value":1.0}"#;
    assert_eq!(serde_json::from_str::<Line>(line).unwrap().probe, "sharpness:5e-4");
    let line = r#"{"step":2,"tokens":8,"loss":3.0,"phi":1.5,"norms":2.0}"#;
    let read: Metrics = serde_json::from_str(line).unwrap();
    assert_eq!(
        read.probes.into_iter().collect::<Vec<_>>(),
        [("norms".into(), 2.0), ("sharpness".into(), 1.5)]
    );
}

/// The text that was hashed into names of folders is the one that was written then.
#[test]
fn the_former_text_reads_back() {
    for (recipe, was) in [
        ("e4m3", "e4m3fn"),
        ("e4m3-ieee@rtz", "e4m3@rtz"),
        ("mxpaper-e4m3+w=e4m3", "mxpaper-e4m3+w=e4m3"),
    ] {
        let config = config(recipe);
        let text = config.former_toml();
        assert!(text.contains(&format!("version = 2\nrecipe = \"{was}\"\n")), "{text}");
        assert_eq!(Config::from_toml(&text).unwrap(), config);
    }
}
