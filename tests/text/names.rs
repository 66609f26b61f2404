//! Names of formats: aliases, traps, every shape back from its name, and what wrong ones are answered.

use exmy::format::{Format, NAMED, Sign, Specials};
use exmy::text::{ALIASES, Alias, CLASHES};

#[test]
fn every_alias_names_a_catalog_format() {
    for Alias { name, canonical, project } in ALIASES {
        let format: Format = name.parse().unwrap();
        assert_eq!(format.to_string(), canonical, "{project}: {name}");
        assert!(NAMED.iter().any(|(name, _)| *name == canonical), "{canonical}");
        for spelling in [name.to_ascii_uppercase(), name.to_ascii_lowercase()] {
            assert_eq!(spelling.parse(), Ok(format));
        }
    }
    assert_eq!("torch.float8_e4m3fn".parse(), Ok(Format::E4M3FN));
    assert_eq!("onnx.TensorProto.BFLOAT16".parse(), Ok(Format::BF16));
    assert_eq!("cutlass::float_ue8m0_t".parse(), Ok(Format::E8M0));
    assert!("torch.".parse::<Format>().is_err());
}

#[test]
fn the_naming_traps() {
    let format = |name: &str| name.parse::<Format>().unwrap();
    assert_eq!(format("E4M3"), Format::E4M3);
    assert_eq!([format("e4m3-ieee"), format("E4M3IEEE")], [Format::E4M3_IEEE; 2]);
    assert_eq!(format("float8_e4m3"), Format::E4M3_IEEE);
    assert_eq!([format("float8_e4m3fn"), format("e4m3fn")], [Format::E4M3; 2]);
    assert_eq!(format("F8_E4M3"), Format::E4M3FN);
    assert_eq!(format("f8E4M3"), Format::E4M3_IEEE);
    assert_eq!(format("e2m1fn"), Format::E2M1);
    assert!(format("e2m1fnan").has_nan() && !format("e2m1fnan").has_infinity());
    assert!(format("e3m2ieee").has_infinity());
    assert_eq!(format("ue4m3fn"), Format::UE4M3);
    assert_eq!(format("e8m3"), Format::ieee(8, 3).unwrap());
    assert_ne!(format("ue8m0fn"), Format::E8M0);
    assert_eq!(format("ue8m0fn-nozero"), Format::E8M0);
    assert_eq!(format("__nv_fp8_e4m3"), Format::E4M3FN);
    assert_eq!(format("CUDA_R_8F_E4M3"), Format::E4M3FN);
    assert_eq!(format("float_e4m3_t"), Format::E4M3FN);
    assert_eq!(format("__hip_fp8_e4m3_fnuz"), Format::E4M3FNUZ);
    assert_eq!(format("float6_e3m2fn"), Format::E3M2);
    assert_eq!(format("p3109_k8p3es"), format("Binary8p3se"));
    assert_ne!(format("binary8p1uf"), Format::E8M0);
    assert_eq!(format("Float8UE5M3"), Format::UE5M3);
    assert_eq!(format("TensorFloat32"), Format::TF32);
    assert_eq!((format("FLOAT6E2M3"), format("FLOAT6E3M2")), (Format::E2M3, Format::E3M2));
    assert_eq!(format("dlfloat16"), format("e6m9b31fn-nosub-onezero"));
    for (name, meanings) in [("fp8", ["e4m3fnuz", "e4m3 "]), ("BF8", ["e5m2fnuz", "e5m2"])] {
        let message = name.parse::<Format>().unwrap_err().to_string();
        assert!(meanings.iter().all(|format| message.contains(format)), "{message}");
    }
    for Alias { canonical, .. } in CLASHES {
        assert!(canonical.parse::<Format>().is_ok(), "{canonical}");
    }
}

/// Every combination of parameters that can be built, up to 6 + 4 field bits.
#[test]
fn canonical_names_round_trip() {
    let specials = Specials::ALL;
    let mut seen = std::collections::HashMap::new();
    for sign in [Sign::Magnitude, Sign::Unsigned, Sign::TwosComplement] {
        for shape in 0..9 * 11 {
            for specials in specials {
                for (option, bias) in (0..8).flat_map(|o| [None, Some(3), Some(-7)].map(|b| (o, b)))
                {
                    let mut builder = Format::builder(sign, shape / 11, shape % 11)
                        .specials(specials)
                        .zero(option & 1 == 0)
                        .subnormals(option & 2 == 0);
                    if option & 4 != 0 {
                        builder = builder.negative_zero(false);
                    }
                    if let Some(bias) = bias {
                        builder = builder.bias(bias);
                    }
                    let Ok(format) = builder.build() else { continue };
                    let name = format.to_string();
                    assert_eq!(name.parse(), Ok(format), "{name}");
                    assert_eq!(*seen.entry(name).or_insert(format), format);
                }
            }
        }
    }
    for (name, format) in NAMED {
        assert_eq!((name.parse(), format.to_string().as_str()), (Ok(format), name));
    }
    assert!(seen.contains_key("binary8p3se") && seen.contains_key("e4m3b-7"));
}

#[test]
fn wrong_names_are_answered() {
    let message = |name: &str| name.parse::<Format>().unwrap_err().to_string();
    let text = message("e4m3fm");
    assert!(text.contains("\"e4m3fm\"") && text.contains("e4m3fn"), "{text}");
    assert!(message("bfloat61").contains("bfloat16"));
    assert!(message("binary8p3sx").contains("binary8p3se"));
    assert!(message("e17m2").contains("at most 16"), "{}", message("e17m2"));
    assert!(message("e5m0ieee").contains("no room"));
    assert!(message("binary2p1sf").contains("P3109"));
    for name in ["e3m2b2147483647", "e3m2b-2147483648", "e3m2b1048577", "e4m3b99999999999fn"] {
        let text = message(name);
        assert!(text.contains("from -1048576 to 1048576 is possible"), "{text}");
    }
    for (name, meant) in [
        ("e4m3fnb9", "e4m3b9"),
        ("E4M3FNUZB11", "e4m3b11fnuz"),
        ("ue5m3finiteb-3-nosub", "ue5m3b-3finite-nosub"),
    ] {
        let text = message(name);
        assert!(text.contains(&format!("did you mean {meant}?")), "{text}");
    }
    for junk in ["b", "e4m3fnb", "fnb3", "b-", "e4m3fnb-", "\u{e9}b3", "bb3", "e4m3fnb9b9"] {
        assert!(junk.parse::<Format>().is_err(), "{junk}");
    }
    assert!(!message("e0m0finite").contains("specials finite"), "{}", message("e0m0finite"));
    assert!(message("e0m0finite").contains("one bit would do"));
    for form in ["-nosub", "-nozero", "-onezero", "b-3"] {
        assert!(message("something").contains(form), "{form}");
    }
    for name in ["", "\u{e9}", "x"] {
        assert!(!message(name).contains("did you mean"), "{}", message(name));
    }
    for (name, element) in [("nvfp4", "e2m1"), ("mxint8", "int8"), ("MXFP8-E4M3", "e4m3")] {
        let text = message(name);
        assert!(text.contains("is a block format") && text.ends_with(element), "{text}");
    }
    for junk in
        ["", "e", "em", "e4", "e4m", "e4m3b", "e4m3fn ", "e04m3", "\u{e9}4m3", "int", "int1"]
    {
        assert!(junk.parse::<Format>().is_err(), "{junk}");
    }
    for big in ["e99999999999m3", "int4000000", "binary9999999p1se", "e5m2b9999999"] {
        assert!(big.parse::<Format>().is_err(), "{big}");
    }
}
