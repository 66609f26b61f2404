use exmy_lab::study_scale::StudyScale;

#[test]
fn scales_have_words() {
    for scale in StudyScale::ALL {
        assert_eq!(scale.name().parse::<StudyScale>().unwrap(), scale);
    }
    assert!("tiny".parse::<StudyScale>().unwrap_err().to_string().contains("smoke, small"));
    assert_eq!(StudyScale::Small.pick([1, 2, 3]), 2);
}
