use exmy_lab::run_name::{DIGITS, NoHash, RunName};

#[test]
fn names_are_read_as_they_are_written() {
    for text in ["bf16+out=bf16-6a5db4c0086d1fa7", "a/runs/f32-lr1e-3-s1-0123456789abcdef"] {
        let name: RunName = text.parse().unwrap();
        assert_eq!((name.hash.len(), name.to_string().as_str()), (DIGITS, text));
    }
    let short = "f32-0123456789abcde";
    for text in ["", "f32", "f32-s1", "-0123456789abcdef", short, "f32-0123456789abcdeg"] {
        assert_eq!(text.parse::<RunName>(), Err(NoHash), "{text}");
    }
}
