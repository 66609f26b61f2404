use exmy_train::recipe::rule::Rule;

#[test]
fn every_rule_reads_back() {
    for text in [
        "all=mxfp4",
        "grad_output=mxfp8-e5m2",
        "last2:o_proj:weight=bf16",
        "from80%:last15%:forward=bf16",
        "from200:first1:layers2-5:blocks:layer7:q_proj:k_proj:grad_weight:input=nvfp4@sr8",
        "forward:output=bf16",
        "forward:output=e4m3",
        "forward:output=e4m3@sat-finite",
        "norm_gamma:tensor=mxfp8-e4m3",
        "q:k:gradient=bf16",
        "norm=bf16@rna",
        "norm:activation=f32",
        "norm:activation:bias:gradient=f32",
        "sums=fma:bf16",
        "last1:o_proj:grad_weight:sums=mul-add:e8m9@rtz",
        "from80%:sums=f32",
        "norm_tail:tensor=bf16@rna",
        "hcp=s-o2-b",
        "post-qk=bf16",
        "o_proj:hcp=off",
    ] {
        let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(rule.to_string(), text);
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let back: Rule = "backward=f32".parse().unwrap();
    assert_eq!(back.to_string(), "grad_input:grad_weight=f32");
}

#[test]
fn wrong_words_are_answered() {
    let message = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
    assert!(message("o_porj=bf16").contains("o_proj"));
    assert!(message("fprop=bf16").contains("last2:o_proj:weight=bf16"));
    assert!(message("weight:q=bf16").contains("one of these"));
    assert!(message("o_proj:norm=bf16").contains("no operator"));
    assert!(message("norm=e4m3").contains("bf16@rna"));
    assert!(message("gradient=bf16").contains("grad_output"));
    assert!(message("weight=bf61").contains("bf16"));
    assert!(message("layers5-2=bf16").contains("layers"));
}
