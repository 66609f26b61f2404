use exmy_lab::studies::nvfp4_outliers::flushed::{Channels, claims, effective, patched};
use exmy_lab::test_result::verdict;
use exmy_train::recipe::state::RecipeState;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn patched_channels_are_kept() {
    let memory = RecipeState::from_text("hot layers.0.q_proj 40 2 1 3\n").unwrap();
    let hot = patched(&memory);
    let [q, other] = ["layers.0.q_proj", "layers.9.q_proj"].map(|site| site.parse().unwrap());
    assert_eq!(hot[&q], BTreeSet::from([1, 3]));
    let mut seen = Channels::default();
    seen.flushed.insert(q, (10, vec![1, 2, 3, 4]));
    let sites = [q, other];
    assert_eq!(effective(&seen, &sites, &BTreeMap::new()), 0.25);
    assert_eq!(effective(&seen, &sites, &hot), 0.1);
}

#[test]
fn each_verdict_can_be_reached() {
    let (low, high) = ([5.0, 5.1, 4.9], [9.0, 9.2, 9.1]);
    let lower = [8.0, 8.1, 8.2];
    let word = |a: &[f64], w: &[f64], chon: &[f64]| verdict(&claims(a, w, chon)).word();
    assert_eq!(word(&high, &low, &lower), "reproduced");
    assert_eq!(word(&low, &high, &lower), "contradicted");
    assert_eq!(word(&high, &low, &[9.0, 9.3, 9.0]), "not seen at this scale");
}
