use exmy_train::recipe::tensor_format::TensorFormat;

#[test]
fn every_text_reads_back() {
    for text in [
        "f32",
        "bf16",
        "mxfp4@sr8",
        "bf16>rht16>nvfp4@sr8",
        "bf16>rht16>nvfp4@fresh",
        "nvfp4@across",
        "bf16@rna>mxfp8-e4m3@microxcaling@joined",
        "e5m2@sr8@shared",
        "e4m3/tensor:e8m0@rceil@window16",
        "f16/tensor:e8m0@rceil>>e4m3/tensor:e8m0@rceil",
        "clip-e7m7",
        "clip-e7m7-outer>>e8m3@rtz",
        "zero",
        "mask0",
        "times1.0877",
        "times0.5>>bf16",
        "mxfp8-e4m3@microxcaling@by-position",
    ] {
        let numbers: TensorFormat = text.parse().unwrap();
        assert_eq!(numbers.to_string(), text);
        assert_eq!(numbers.to_string().parse(), Ok(numbers));
    }
    assert_eq!("none".parse(), Ok(TensorFormat::NONE));
    assert!("f32".parse::<TensorFormat>().unwrap().is_none());
}

#[test]
fn names_of_the_numbers_alone() {
    let format = |text: &str| text.parse::<TensorFormat>().unwrap().format();
    assert_eq!(format("bf16>rht16>nvfp4@sr8"), "nvfp4");
    assert_eq!(format("bf16@rna>mxfp8-e4m3@rceil@microxcaling"), "mxfp8-e4m3");
    assert_eq!((format("f32").as_str(), format("clip-e7m7").as_str()), ("f32", "e7m7"));
    assert_eq!("clip-e7m7".parse::<TensorFormat>().unwrap().bits(), 15);
    assert_eq!((format("times3").as_str(), format("times3>>e5m2").as_str()), ("f32", "e5m2"));
    assert_eq!("times3".parse::<TensorFormat>().unwrap().bits(), 32);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let message = |text: &str| text.parse::<TensorFormat>().unwrap_err().to_string();
    assert!(message("mxfp4@window16").contains("one scale a tensor"));
    assert!(message("e4m3/tensor:e8m0@window0").contains("1 to 255"));
    assert!(message("nvfp4@by-position").contains("MX blocks"));
    assert!(message("nvfp4@fresh").contains("no signs"));
    assert!(message("e8m0").contains("no negative numbers"));
    assert!(message("rht16>bf16>>mxfp4").contains("rotate"));
    assert!(message("mxpf4").contains("mxfp4"));
    for text in ["times", "times0", "times-1", "timesinf", "timesnan", "times1e40>>bf16", "times 2"]
    {
        assert!(message(text).contains("positive number"), "{text}");
    }
}
