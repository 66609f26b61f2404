use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::study_scale::StudyScale;

#[test]
fn names_follow_contents() {
    let setting = Setting::unread(StudyScale::Smoke);
    let run = |recipe: &str, seed| {
        let mut config = setting.config("nano");
        (config.recipe, config.seed) = (recipe.parse().unwrap(), seed);
        RunConfig::new(config)
    };
    let one = run("bf16", 1);
    assert!(one.name().starts_with("bf16-"), "{}", one.name());
    assert_eq!(one.name(), run("bf16", 1).name());
    assert_ne!(one.name(), run("bf16", 7).name());
    let kept = one.clone().keeping(&[10]);
    let branch = |step| {
        let mut branch = kept.branch(step);
        branch.config.recipe = "mxfp4".parse().unwrap();
        branch
    };
    assert_ne!(branch(10).name(), branch(20).name());
    assert_ne!(branch(10).name(), run("mxfp4", 1).name());
    assert_eq!(branch(10).root(), &kept);
    assert_eq!(branch(10).steps(), kept.steps() - 10);
    assert!(branch(10).config.record.checkpoint_at.is_empty());
    assert!(one.flops() > 0.0);
}
