use exmy_train::train::check::{check_fit, check_run};
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;

/// A run that began before names were looked at goes on; none begins so.
#[test]
fn names_are_asked_of_runs_that_begin() {
    let data = Dataset::load(&Source::default(), &DataOptions::default()).unwrap();
    let mut config = preset("micro").unwrap();
    config.recipe = "f32+layer9=bf16".parse().unwrap();
    check_fit(&config, &data).unwrap();
    let error = check_run(&config, &data).unwrap_err().to_string();
    assert!(error.contains("layer9=bf16 names a block that the model has not"), "{error}");
}
