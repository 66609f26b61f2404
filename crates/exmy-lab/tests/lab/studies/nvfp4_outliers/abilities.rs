use exmy_lab::studies::nvfp4_outliers::abilities::claims;
use exmy_lab::test_result::verdict;

#[test]
fn each_verdict_can_be_reached() {
    let word = |lost: [f64; 3]| {
        let bf16 = [vec![90.0; 3], vec![95.0; 3]];
        let chon = [lost.map(|x| 90.0 - x).into(), lost.map(|x| 95.0 - x).into()];
        verdict(&claims("SA", &bf16, &chon)).word()
    };
    assert_eq!(word([0.1, 0.2, 0.0]), "reproduced");
    assert_eq!(word([8.0, 8.1, 8.3]), "contradicted");
    assert_eq!(word([0.0, 4.0, 1.0]), "not seen at this scale");
}
