use exmy_lab::studies::mx_instabilities::operands::{judge, judge_pairs};
use exmy_lab::studies::mx_instabilities::survival::{Ends, Survival};

/// Twenty runs, of which so many diverge, the first at step 100.
fn runs(diverge: u64) -> Ends {
    (0..20).map(|i| if i < diverge { (100 + i, true) } else { (9000, false) }).collect()
}

/// Of twelve in twenty a fall to two is certain at 1 %, one to eight is not. One delay is enough.
#[test]
fn what_is_rounded_stochastically_and_diverges_later_is_seen() {
    let word = |first, second| {
        let recipes = [("text", 12), ("first", first), ("second", second)];
        let recipes = recipes.map(|(name, diverge)| (name.to_owned(), runs(diverge)));
        let survival = Survival { base: "text", recipes: recipes.into() };
        let (verdict, power) = judge(&survival, &["first", "second"]);
        assert!(verdict.reason().contains("12 of 20 runs diverge; with one change"));
        assert!(verdict.reason().contains(&format!("first {first} of 20 (p 0.")));
        assert!(power > 0.9, "{power}");
        verdict.word()
    };
    assert_eq!(word(2, 12), "reproduced");
    assert_eq!(word(12, 2), "reproduced");
    assert_eq!(word(8, 8), "not seen at this scale");
    assert_eq!(word(12, 12), "not seen at this scale");
}

/// Both pairs are asked for: of twelve in twenty without noise to two with it is certain, to eight is not.
#[test]
fn each_recipe_with_noise_must_diverge_later_than_the_one_without() {
    let pairs = [["noise", "none"], ["half", "nearest"]];
    let judged = |noise, half, still| {
        let recipes = [("noise", noise), ("none", 12), ("half", half), ("nearest", still)];
        let recipes = recipes.map(|(name, diverge)| (name.to_owned(), runs(diverge)));
        judge_pairs(&recipes, &pairs)
    };
    let (verdict, power) = judged(2, 2, 12);
    assert!(power > 0.9, "{power}");
    assert!(verdict.reason().contains("noise 2 of 20, none 12 of 20 (p of no delay 0.0"));
    assert_eq!(verdict.word(), "reproduced");
    assert_eq!(judged(2, 8, 12).0.word(), "not seen at this scale");
    assert_eq!(judged(8, 2, 12).0.word(), "not seen at this scale");
    // Of twelve to none p is 0.00002, of twenty to none 4e-12, and neither is told as 0.
    let (verdict, _) = judged(0, 0, 20);
    assert_eq!(verdict.reason().matches("(p of no delay under 0.0001)").count(), 2, "{verdict:?}");
    // Where few diverge without noise, none with it says little.
    assert!(judged(2, 0, 3).1 < 0.5);
}
