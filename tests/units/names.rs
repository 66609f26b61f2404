//! Texts of units: what parses, what prints, and what a wrong one is answered with.

use exmy::View;
use exmy::block::BlockFormat;
use exmy::format::Format;
use exmy::gemm::unit::{Input, Model, Preset, StepOrder, Unit, UnitError};
use exmy::gemm::{Accumulation, Operand, Spec, gemm};
use exmy::round::Rounding;

#[test]
fn texts_round_trip() {
    for (text, printed) in [
        ("volta:f16", "volta:f16"),
        ("VOLTA:F16,f16+F32", "volta:f16"),
        ("ada:float8_e4m3fn,e5m2+f16", "ada:e4m3,e5m2+f16"),
        ("hopper,f=13:e4m3", "hopper:e4m3"),
        ("hopper,promote=128,f=14:e4m3", "hopper,f=14,promote=128:e4m3"),
        ("hopper,floor=none,out=f32@rne:bf16", "hopper,floor=none,out=f32@rne:bf16"),
        ("blackwell:nvfp4", "blackwell:e2m1/16:ue4m3"),
        ("blackwell:mxfp8-e4m3,mxfp4", "blackwell:e4m3/32:e8m0,e2m1/32:e8m0"),
        ("blackwell:e2m1/16:ue4m3+tensor", "blackwell:e2m1/16:ue4m3"),
        ("cdna3,align2=rz,reach=none:e4m3fnuz", "cdna3,align2=rz,reach=none:e4m3fnuz"),
        (
            "custom,l=3,align=sticky,zeros=-126,nan=quiet:e3m4,e5m6+f16",
            "custom,l=3,align=sticky,zeros=-126,nan=quiet:e3m4,e5m6+f16",
        ),
        ("custom,order=late,limit=100,f2=30:f16", "custom,order=late,f2=30,limit=100:f16"),
        ("fast:mxint8,nvfp4", "fast:int8/32:e8m0,e2m1/16:ue4m3"),
        ("amx,flush=none:bf16", "amx,flush=flush-none,subnormals=exact:bf16"),
        ("amx,flush=flush-tiny,subnormals=zero:bf16", "amx:bf16"),
        ("hopper,flush=cdna2:e4m3", "hopper,flush=flush-output,subnormals=positive-zero:e4m3"),
        ("cdna2,SUBNORMALS=Exact:f16", "cdna2,subnormals=exact:f16"),
        ("fast,flush=amx,subnormals=exact:bf16", "fast,flush=flush-tiny:bf16"),
        ("fast,subnormals=exact,flush=amx:bf16", "fast,flush=flush-tiny:bf16"),
        ("custom,order=groups,group=16,l=64:nvfp4", "custom,order=groups,l=64:e2m1/16:ue4m3"),
    ] {
        let unit: Unit = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(unit.to_string(), printed);
        assert_eq!(printed.parse::<Unit>(), Ok(unit));
    }
    for preset in Preset::ALL {
        assert_eq!(preset.to_string().parse(), Ok(preset));
        assert_eq!(Model::from(preset).to_string(), preset.name());
    }
}

/// Each preset's list of operands says what it takes, and takes nothing else.
#[test]
fn presets_take_what_they_say() {
    let formats = [
        Format::F16,
        Format::BF16,
        Format::TF32,
        Format::E4M3FN,
        Format::E5M2,
        Format::E3M2,
        Format::E2M3,
        Format::E2M1,
        Format::E4M3FNUZ,
        Format::E5M2FNUZ,
        Format::F32,
        Format::F64,
        Format::INT8,
        Format::E3M4,
    ];
    for preset in
        Preset::ALL.into_iter().filter(|preset| !matches!(preset, Preset::Fast | Preset::Custom))
    {
        for format in formats {
            for result in [Format::F32, Format::F16, Format::F64] {
                let taken = Unit::new(preset, format, format, result).is_ok();
                // "f16, e4m3 into f32 or f16; bf16 into f32": the part that names the format.
                let name = format.to_string();
                let said = preset.takes().split("; ").any(|part| {
                    let (operands, results) = part.split_once("into").unwrap_or((part, ""));
                    let named = |text: &str, name: &str| {
                        text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name)
                    };
                    !operands.contains("scales")
                        && named(operands, &name)
                        && named(results, &result.to_string())
                });
                assert_eq!(taken, said, "{preset} {format} into {result}: {}", preset.takes());
            }
        }
    }
}

#[test]
fn wrong_texts_are_answered() {
    for (text, parts) in [
        ("hoper:f16", &["hopper"][..]),
        ("hopper", &["\"hopper\" names no operands", "MODEL:A"]),
        ("hopper:f61", &["f16"]),
        ("hopper:", &["format"]),
        ("hopper:f16,bf16", &["hopper does not multiply f16 by bf16 into f32; it takes f16, e4m3"]),
        ("volta:bf16", &["it takes f16, into f32 or f16"]),
        ("hopper:nvfp4", &["e2m1/16:ue4m3"]),
        ("blackwell:nvfp4,mxfp4", &["does not multiply"]),
        ("hopper,g=3:f16", &["no parameter of a matrix unit is called \"g\"", "promote"]),
        (
            "hopper,f=51:f16",
            &["f=\"51\" is not possible: 0 to 50, as aligned terms", "align=exact"],
        ),
        ("hopper,l=0:f16", &["1 to 256"]),
        ("hopper,floor=low:f16", &["or none"]),
        ("hopper,out=e8m13:f16", &["FORMAT@MODE"]),
        ("hopper,out=f32@sr:f16", &["rne, rna, rnz, rtz, rup, rdn, raz, odd", "or srN"]),
        ("hopper,out=f64@rne:f16", &["inside that of the result"]),
        ("hopper,order=groups:f16", &["needs block scales"]),
        ("hopper,order=quarters:bf16", &["8-bit formats"]),
        ("hopper,order=tree,l=6,out=f32@rne:bf16", &["a tree adds 1, 2, 4"]),
        ("ampere,order=fused:f64+f64", &["operands whose values are binary32 numbers"]),
        ("fast,order=fused:nvfp4", &["need order=groups"]),
        ("hopper,promote=0:f16", &["1 to 1048576"]),
        ("custom:f64", &["whose values are binary32 numbers", "int32"]),
        ("custom:nvfp4", &["need order=groups"]),
        ("custom,f=13,l=8,F=14:bf16", &["F= is set a second time"]),
        ("custom,flush=none,flush=amx:bf16", &["flush= is set a second time"]),
        ("custom,flush=yes:bf16", &["flush=\"yes\" is not possible: flush-none, flush-input"]),
        ("custom,subnormals=away:bf16", &["is not possible: exact, zero or positive-zero"]),
        // A key that would change nothing is refused.
        ("custom,flush=flush-output:int8b-6+int32b-30", &["a fixed-point result has no subnormal"]),
        ("blackwell:e2m1/row:e8m0", &["do not run along the sum"]),
        ("blackwell:e2m1/16:ue4m4", &["ue4m"]),
        ("", &["matrix unit"]),
    ] {
        let error = text.parse::<Unit>().expect_err(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
    // Modes are listed once, and all of them.
    let error = "hopper,out=f32@sr:f16".parse::<Unit>().unwrap_err().to_string();
    for mode in Rounding::DETERMINISTIC {
        assert!(error.contains(&mode.to_string()), "no {mode} in {error}");
    }
    let error = "custom,l=8:e4m3".parse::<Model>().unwrap_err().to_string();
    assert!(error.contains("without operands: custom,l=8"), "{error}");
    let across = Input::try_from("e2m1/32x1:e8m0".parse::<BlockFormat>().unwrap());
    assert!(across.unwrap_err().to_string().contains("32x1"));
}

#[test]
fn wrong_lengths_are_answered() {
    let unit: Unit = "blackwell:nvfp4".parse().unwrap();
    for (codes, scales, k, part) in [
        (31, 2, 16, "31 codes, where 16 are needed"),
        (32, 1, 32, "1 scales, where 2 are needed"),
        (40, 2, 40, "2 scales, where 3 are needed"),
        (1, 0, 0, "1 codes, where 0 are needed"),
    ] {
        let error = unit.rows(&vec![0; codes], &vec![0; scales], k).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn parameters_can_be_set_in_code() {
    let unit = Unit::new(Preset::Custom, Format::E5M2, Format::E4M3FN, Format::F32).unwrap();
    let mut parameters = *unit.parameters();
    (parameters.products, parameters.fraction) = (7, 20);
    parameters.set("floor=none").unwrap();
    let unit = unit.with_parameters(parameters).unwrap();
    assert_eq!(unit.to_string(), "custom,l=7,f=20,floor=none:e5m2,e4m3");
    assert_eq!(unit.parameters().order, StepOrder::Fused);
}

/// A file that says what docs/units.md says of Hopper's unit of e4m3 is that unit, in a dot product and in a
/// product of matrices: 1 + 2^-14 has 13 bits.
#[test]
fn a_file_is_a_unit_and_an_accumulation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unit.toml");
    let said = "# ours\nl = 32 # products\nf = 13\nfloor = -133\nout = 'e8m13@rtz'\n\na = \"e4m3fn\"\n\
                result=\"f32\"";
    std::fs::write(&path, said).unwrap();
    let path = path.to_str().unwrap();
    let text = "custom,l=32,f=13,out=e8m13@rtz:e4m3";
    assert_eq!(Unit::named(path, None).unwrap().to_string(), text);
    assert_eq!(Unit::named(text, None).unwrap().to_string(), text);
    let other = Unit::named(&format!("{path}:e5m2"), None).unwrap();
    assert_eq!(other, Unit::named(path, Some("e5m2")).unwrap());
    assert_eq!(other.a(), Format::E5M2.into());
    let product = |name: &str| {
        let spec = Spec::from(Accumulation::named(name).unwrap());
        let codes = [0x38_u8, 0x04]; // 1, 2^-7
        let codes =
            |rows, cols| Operand::codes8(Format::E4M3FN, View::new(&codes, rows, cols)).unwrap();
        gemm(codes(1, 2), codes(2, 1), &spec).unwrap()[0]
    };
    let more = 1.0 + 1.0 / 16384.0;
    assert_eq!([product(path), product("hopper"), product("blackwell")], [1.0, 1.0, more]);
    assert_eq!(
        Accumulation::named(&format!("{path}+f16")).unwrap().to_string().split('+').next_back(),
        Some("f16")
    );
    // Some editors write a byte-order mark first.
    std::fs::write(path, format!("\u{FEFF}{said}")).unwrap();
    assert_eq!(Unit::named(path, None).unwrap().to_string(), text);
    for (wrong, part) in [
        (format!("{path}+f99"), "f99"),
        ("nowhere.toml".into(), "cannot open nowhere.toml"),
        ("hoper".into(), "did you mean hopper"),
    ] {
        let error = Accumulation::named(&wrong).unwrap_err().to_string();
        assert!(error.contains(part), "{wrong}: {error}");
    }
}

/// What is wrong with a file is said with the lines to be changed, also where it takes two to be wrong.
#[test]
fn a_file_that_is_no_unit_names_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unit.toml");
    let path = path.to_str().unwrap();
    for (said, part) in [
        ("# ours\n\nq = 1", ": line 3: no key"),
        ("l = 8\nf = 99 # bits\na = 'e4m3'", ": line 2: f=\"99\" is not possible"),
        ("l = 8\nlike = 'hoper'", ": line 2: "),
        ("\u{FEFF}\na = 'e99'", ": line 2: "),
        ("l = 4\na = 'e4m3'\nresult = 'f99'", ": line 3: "),
        ("a = 'e4m3'\nb = 'e99'", ": line 2: "),
        ("l = 4\nresult = 'f32'", ": line 2: b or result without a"),
        ("l = 4\n\nl = 8", ": line 3: l is set a second time, after line 1"),
        ("a = 'int8b-6'\nout = 'int32@rtz'", ": line 2: out=\"int32@rtz\" is not possible: "),
        // Of these lines each works alone, and custom takes what Hopper does not.
        (
            "a = 'int8b-6'\nl = 4\nout = 'int32b-30@rtz'\norder = 'tree'",
            ": lines 3 and 4: sums in fixed point",
        ),
        ("like = 'hopper'\nl = 8\na = 'e3m4'", ": line 1: hopper does not multiply e3m4"),
    ] {
        std::fs::write(path, said).unwrap();
        let error = Unit::named(path, None).unwrap_err();
        assert!(error.to_string().contains(part), "{said}: {error}");
    }
    // Two faults: the first, as far as that can be said. Formats behind the name are judged with the lines,
    // and have colons of their own. The cause is one that a program can read.
    std::fs::write(path, "l = 8\nl2 = 1\na = 'e99'").unwrap();
    let error = Unit::named(path, None).unwrap_err().to_string();
    assert!(error.contains(": line 2: no key of a matrix unit"), "{error}");
    std::fs::write(path, "L = 8\nLike = 'hopper'\nA = 'e4m3'").unwrap();
    assert_eq!(Unit::named(path, None).unwrap(), Unit::named("hopper,l=8:e4m3", None).unwrap());
    std::fs::write(path, "l = 8\nL = 9").unwrap();
    let error = Unit::named(path, None).unwrap_err().to_string();
    assert!(error.contains(": line 2: l is set a second time, after line 1"), "{error}");
    std::fs::write(path, "f = 9\nl = 0\na = 'e99'").unwrap();
    let error = Unit::named(path, None).unwrap_err().to_string();
    assert!(error.contains(": line 3: ") && error.contains("e99"), "{error}");
    std::fs::write(path, "l = 4\nout = 'int32b-30@rtz'\nalign = 'sticky'").unwrap();
    let error = Unit::named(&format!("{path}:e2m1/16:ue4m3"), None).unwrap_err().to_string();
    assert!(error.contains("ue4m3\": sums in fixed point"), "{error}");
    let error = Unit::named(&format!("{path}:int8b-6"), None).unwrap_err();
    assert!(error.to_string().contains(": lines 2 and 3: sums in fixed point"), "{error}");
    let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
    assert!(causes.filter_map(|error| error.downcast_ref::<UnitError>()).next().is_some());
}
