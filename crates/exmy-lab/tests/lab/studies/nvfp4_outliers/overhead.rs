use exmy_lab::studies::nvfp4_outliers::overhead::overhead;

#[test]
fn patches_cost_twice_the_share_of_channels() {
    let (found, expected) = overhead("gla-1.3b", 5).unwrap();
    // 112 of 2048 channels, 288 of 5632, 16 of 16.
    assert!(
        (found - expected).abs() < 1e-12 && (0.10..0.13).contains(&found),
        "{found} {expected}"
    );
}
