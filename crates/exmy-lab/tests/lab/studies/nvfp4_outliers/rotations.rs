use exmy_lab::studies::nvfp4_outliers::rotations::{Activations, claims, decibel};
use exmy_lab::test_result::verdict;

#[test]
fn each_verdict_can_be_reached() {
    let (low, high) = ([18.0, 18.1, 17.9], [20.0, 20.2, 19.9]);
    let word = |a: &[f64], b: &[f64]| verdict(&claims(a, b)).word();
    assert_eq!(word(&low, &high), "reproduced");
    assert_eq!(word(&high, &low), "contradicted");
    assert_eq!(word(&low, &[18.5, 17.9, 18.0]), "not seen at this scale");
}

/// About 20 dB an operand, as NVFP4 has of normal values, is 17 dB of their product.
#[test]
fn normal_values_have_the_usual_noise() {
    let found =
        decibel(1, Activations::Normal, &"nv-nvfp4+last=0+rht=none".parse().unwrap()).unwrap();
    assert!((16.0..19.0).contains(&found), "{found}");
}
