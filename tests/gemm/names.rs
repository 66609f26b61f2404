//! The textual form of accumulations.

use exmy::gemm::Accumulation;

#[test]
fn names_print_as_they_are_read() {
    for text in [
        "exact",
        "fma",
        "mul-add",
        "pairwise",
        "blocked256",
        "fma:bf16",
        "fma:e8m13@rtz",
        "mul-add:f16@sr8",
        "pairwise:e4m3@rup@to-nan",
        "promote128(fma:e8m13@rtz)",
        "promote64(blocked8):bf16@rtz",
        "te-nvfp4",
        "te-nvfp4-kernel",
        "hopper",
        "ada+f16",
        "hopper,promote=128",
        "fast",
    ] {
        let accumulation: Accumulation = text.parse().unwrap();
        assert_eq!(accumulation.to_string(), text);
    }
    for (text, canonical) in [
        ("FMA:f32", "fma"),
        ("fma:float32@rne", "fma"),
        ("fma:F32@RTZ", "fma:f32@rtz"),
        ("promote128(fma:f32):f32", "promote128(fma)"),
        ("fma:e4m3@sat-finite@rne", "fma:e4m3"),
    ] {
        assert_eq!(text.parse::<Accumulation>().unwrap().to_string(), canonical);
    }
}

#[test]
fn wrong_names_are_answered_with_right_ones() {
    for (text, hint) in [
        ("exatc", "did you mean exact?"),
        ("fam", "did you mean fma"),
        ("pairwize:bf16", "did you mean pairwise?"),
        ("te-nvpf4", "did you mean te-nvfp4"),
        ("", "; possible: exact, fma, mul-add"),
        ("blocked", "a number of elements from 1"),
        ("blocked0", "a number of elements from 1"),
        ("blocked-3", "a number of elements from 1"),
        ("blocked99999999999", "a number of elements from 1"),
        ("promote128", "a sum in parentheses"),
        ("promote128(fma", "a sum in parentheses"),
        ("promote128(promote4(fma))", "a sum in parentheses"),
        ("promote128(exact)", "did you mean"),
        ("promote(fma)", "a number of elements from 1"),
        ("exact:bf16", "no accumulator to choose"),
        ("te-nvfp4:f32", "no accumulator to choose"),
        ("fma:bf61", "bf16"),
        ("fma:bf16@rtx", "did you mean rtz"),
        ("fma:bf16@rtz@rne", "one rounding mode"),
        ("fma:e8m0", "an accumulator has a sign and a zero"),
        ("hoper", "did you mean hopper"),
        ("hopper,f=", "f="),
        ("hopper+f61", "f16"),
        ("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "possible: exact"),
    ] {
        let error = text.parse::<Accumulation>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}
