use exmy_lab::scale::Scale;

#[test]
fn scales_have_words() {
    for scale in Scale::ALL {
        assert_eq!(scale.name().parse::<Scale>().unwrap(), scale);
    }
    assert!("tiny".parse::<Scale>().unwrap_err().to_string().contains("smoke, small"));
    assert_eq!(Scale::Small.pick([1, 2, 3]), 2);
}
