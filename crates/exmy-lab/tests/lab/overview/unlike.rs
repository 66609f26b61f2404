use exmy_lab::keys::different;
use exmy_lab::overview::unlike::said;
use exmy_train::train::config::Config;
use exmy_train::train::preset::preset;

#[test]
fn keys_that_differ_are_named() {
    let config = |changes: &str| preset("nano").unwrap().overlaid(changes).unwrap();
    let of = |changes: &[&str]| {
        let configs: Vec<Config> = changes.iter().map(|text| config(text)).collect();
        said(&different(configs.iter())).unwrap_or_default()
    };
    let alike = ["recipe = \"f32\"", "recipe = \"mxfp4\"\nseed = 7\nrecord.keep = 9"];
    assert_eq!(of(&alike), "");
    let rule = "[[at]]\nstep = 3\nthen = \"f32\"";
    assert_eq!(of(&["", rule]), "");
    let other = "data.source = \"recall:3\"\ndata.fingerprint = \"1\"\ntrain.batch = 5";
    assert_eq!(of(&["", other]), "the runs also differ in data.source, train.batch");
    assert_eq!(of(&["", "data.fingerprint = \"1\""]), "the runs also differ in data.fingerprint");
    assert_eq!(
        of(&["", "train.lr = 1e-5\ntrain.lr_min = 1e-6"]),
        "the runs also differ in train.lr"
    );
    // Any two, and whatever only one of them has.
    let both = ["nano", "proxy"].map(|name| preset(name).unwrap());
    let text = said(&different(both.iter())).unwrap();
    assert!(text.contains(", ") && text.ends_with(" more"), "{text}");
}
