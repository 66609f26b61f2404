use exmy_lab::studies::mx_instabilities::operands::judge;
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
