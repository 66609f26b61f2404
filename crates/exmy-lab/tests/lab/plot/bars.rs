use exmy_lab::plot::bars::listed;
use std::format;
use std::string::String;
use std::vec::Vec;

#[test]
fn lists_end() {
    let values: Vec<String> = (0..30).map(|i| format!("{i}")).collect();
    assert_eq!(listed("a", &values[..2]), "a: 0, 1");
    assert!(listed("a", &values).ends_with("22, 23 and 6 more"));
}
