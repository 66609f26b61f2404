use exmy_lab::runner::labels::seeds_in_words;

#[test]
fn seeds_are_all_named() {
    let words = |seeds: &[u64]| seeds_in_words(&seeds.iter().copied().collect());
    assert_eq!(words(&[5]), "seed 5");
    assert_eq!(words(&[2, 1, 2]), "seeds 1 and 2");
    assert_eq!(words(&[1, 2, 3, 4]), "seeds 1 to 4");
    assert_eq!(words(&[1, 3, 7]), "seeds 1, 3 and 7");
    assert_eq!(words(&[0, u64::MAX]), format!("seeds 0 and {}", u64::MAX));
}
