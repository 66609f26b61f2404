use exmy_lab::run_config::Setting;
use exmy_lab::studies::ALL;
use exmy_lab::studies::mx_instabilities::causes::judge;
use exmy_lab::studies::mx_instabilities::survival::{Ends, Survival};
use exmy_lab::study_scale::StudyScale;

/// Runs that diverge one after the other from a step on, and so many that never do.
fn runs(diverge: u64, from: u64, never: usize) -> Ends {
    let mut ends: Ends = (0..diverge).map(|i| (from + i, true)).collect();
    ends.resize(diverge as usize + never, (9000, false));
    ends
}

fn of(changed: &[(&str, Ends)]) -> Survival {
    let base = ("text".to_owned(), runs(10, 100, 0).into_iter().chain(runs(20, 200, 0)).collect());
    let changed = changed.iter().map(|(name, ends)| ((*name).to_owned(), ends.clone()));
    Survival { base: "text", recipes: std::iter::once(base).chain(changed).collect() }
}

/// The first look that decides a recipe decides, whatever its later runs say; one that is never decided is
/// judged by all of its runs.
#[test]
fn a_recipe_is_decided_by_its_first_look() {
    // None of its first ten diverges; the others do at once.
    let turned: Ends = runs(0, 0, 10).into_iter().chain(runs(20, 1, 0)).collect();
    let (verdict, _) = judge(&of(&[("stochastic", turned.clone())]));
    assert_eq!(verdict.word(), "contradicted");
    assert!(verdict.reason().contains("stochastic 0 of 10 (p 0.0000)"), "{}", verdict.reason());
    // The other way round no look sees it.
    let late: Ends = runs(20, 1, 0).into_iter().chain(runs(0, 0, 10)).collect();
    let (verdict, _) = judge(&of(&[("stochastic", late)]));
    assert_ne!(verdict.word(), "contradicted");
    assert!(verdict.reason().contains("stochastic 20 of 30 (p 0."), "{}", verdict.reason());
    // A change that keeps the gains out of the last bin.
    let (verdict, _) = judge(&of(&[("gains stay 1", runs(0, 0, 20))]));
    assert!(verdict.reason().contains("gains stay 1 0 of 10"), "{}", verdict.reason());
    assert_eq!(verdict.word(), "reproduced");
    let (verdict, _) = judge(&of(&[("gains stay 1", runs(0, 0, 20)), ("norms in f32", turned)]));
    assert_eq!(verdict.word(), "reproduced", "what holds is not contradicted");
}

/// Those that were decided after twenty seeds got no more.
#[test]
fn recipes_have_the_seeds_of_their_looks() {
    let mut figures = ALL.iter().flat_map(|paper| paper.figures);
    let figure = figures.find(|figure| figure.id() == "F2-11").unwrap();
    let runs = figure.runs(&Setting::unread(StudyScale::Paper));
    assert_eq!(runs.len(), 9 * 30 + 2 * 20);
    let of =
        |part: &str| runs.iter().filter(|run| run.config.recipe.to_string().contains(part)).count();
    assert_eq!((of("sr16"), of("mxpaper-bf16"), of("bump")), (20, 20, 30));
}
