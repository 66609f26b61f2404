use exmy_lab::studies::mx_instabilities::operands::judge;
use exmy_lab::studies::mx_instabilities::survival::{Ends, Survival};

/// Twenty runs, of which so many diverge, the first at step 100.
fn runs(diverge: u64) -> Ends {
    (0..20).map(|i| if i < diverge { (100 + i, true) } else { (9000, false) }).collect()
}

/// Of twelve in twenty a fall to two is certain at 1 %, one to eight is not.
#[test]
fn weights_that_delay_it_alone_confirm_the_reason() {
    let word = |weights, inputs, gradients| {
        let recipes = [
            ("text", 12),
            ("stochastic weights", weights),
            ("stochastic inputs", inputs),
            ("stochastic gradients", gradients),
        ];
        let recipes = recipes.map(|(name, diverge)| (name.to_owned(), runs(diverge)));
        let (verdict, _) = judge(&Survival { base: "text", recipes: recipes.into() });
        assert!(verdict.reason().contains(&format!("stochastic weights {weights} of 20 (p 0.")));
        verdict.word()
    };
    assert_eq!(word(2, 12, 12), "reproduced");
    assert_eq!(word(2, 2, 12), "reproduced");
    assert_eq!(word(8, 12, 2), "contradicted");
    assert_ne!(word(8, 8, 8), "contradicted");
    assert_ne!(word(8, 8, 8), "reproduced");
}
