//! The reader of recorded tiles: what it takes, and that damage is an error and no panic.

use crate::Random;
use exmy::format::Format;
use exmy::vectors::tiles::{TileOperands, Tiles, TilesRequest, model_of};

/// A file of 2 tiles of 2 x 1 x 3, of operands in e5m2 and results in f32.
fn file() -> Vec<u8> {
    let mut bytes = b"EXMYTILE".to_vec();
    for word in [1_u32, 77, 2, 1, 3, 4, 4, 5, 5, 2] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(64, 0);
    bytes.extend([0, 3]);
    bytes.resize(80, 0);
    // A: 1 2 3 and 4 0.5 1 by rows, twice; B: 1 1 2, twice.
    for _ in 0..2 {
        bytes.extend([0x3C, 0x40, 0x42, 0x44, 0x38, 0x3C]);
    }
    for _ in 0..2 {
        bytes.extend([0x3C, 0x3C, 0x40]);
    }
    let words = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    bytes.extend(words(&[0.0, 1.0, -1.0, 0.0]));
    bytes.extend(words(&[9.0, 7.5, 8.0, 6.5]));
    bytes
}

#[test]
fn a_file_is_read_and_judged() {
    let tiles = Tiles::parse(file()).unwrap();
    assert_eq!((tiles.shape(), tiles.count(), tiles.results()), ([2, 1, 3], 2, 4));
    assert_eq!(tiles.formats(), [Format::E5M2, Format::E5M2, Format::F32, Format::F32]);
    assert_eq!((tiles.operation(), tiles.kind(0), tiles.kind(1)), (77, 0, 3));
    assert_eq!(tiles.tile(1)[0], [0x3C, 0x40, 0x42, 0x44, 0x38, 0x3C]);
    let verdict = tiles.verify(&"hopper".parse().unwrap()).unwrap();
    assert_eq!((verdict.mismatches, verdict.to_string()), (0, "4 elements, 0 mismatches".into()));
    let mut wrong = file();
    let last = wrong.len() - 1;
    wrong[last] ^= 0x80;
    let verdict = Tiles::parse(wrong).unwrap().verify(&"hopper".parse().unwrap()).unwrap();
    let text = verdict.to_string();
    assert_eq!(verdict.mismatches, 1);
    for part in [
        "4 elements, 1 mismatches\nhopper:e5m2\ntile 1 (cancellation), row 1, column 0\n",
        "recorded 0xc0d00000 = -6.5\n",
        "align to 2^2, 13 fraction bits, truncated; unit 2^-11\n",
        "a0*b0",
        "result 0x40d00000 = 6.5",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    // On a narrow terminal no line is longer than its longest number makes it.
    let narrow = format!("{verdict:30}");
    assert!(narrow.lines().all(|line| line.len() <= 48), "{narrow}");
    assert_eq!(Tiles::read(&file()[..]).unwrap().results(), 4);
}

/// Results that are filled in are those of the file, whatever stood there; nothing else changes.
#[test]
fn results_are_filled_in() {
    let mut empty = file();
    let start = empty.len() - 16;
    empty[start..].fill(0xAA);
    let filled = Tiles::parse(empty).unwrap().with_results(&"hopper".parse().unwrap()).unwrap();
    assert_eq!(filled.as_bytes(), file());
    // Of tf32 a whole binary32 word is stored: 1 * 2 + 3 in one tile.
    let mut words = b"EXMYTILE".to_vec();
    for word in [1_u32, 0, 1, 1, 1, 2, 2, 5, 5, 1] {
        words.extend(word.to_le_bytes());
    }
    words.resize(80, 0);
    words.extend([1.0_f32, 2.0, 3.0, -1.0].iter().flat_map(|x| x.to_le_bytes()));
    let filled = Tiles::parse(words).unwrap().with_results(&"hopper".parse().unwrap()).unwrap();
    assert_eq!(filled.as_bytes()[92..], 5.0_f32.to_le_bytes());
    let wrong = Tiles::parse(file()).unwrap().with_results(&"volta".parse().unwrap());
    assert!(wrong.unwrap_err().to_string().contains("volta does not multiply"));
}

/// The whole table of dot products worked out by hand: 1 and 2^-20 cut whole, 1 - 1, an infinity, a subnormal
/// number, 1.5 * 2^-13 cut to 2^-13, and 2 + 2^-13 rounded to 14 bits.
#[test]
fn coverage_counts_what_happens() {
    let tile = |a: [u64; 2], b: [u64; 2], c: f32| TileOperands {
        a: a.to_vec(),
        b: b.to_vec(),
        c: vec![c.to_bits().into()],
        ..TileOperands::default()
    };
    // In e5m2: 1 is 0x3C, -1 0xBC, 1.5 0x3E, 2^-10 0x14, 2^-13 0x08, infinity 0x7C, the least subnormal 0x01.
    let tiles = [
        tile([0x3C, 0x14], [0x3C, 0x14], 0.0),
        tile([0x3C, 0xBC], [0x3C, 0x3C], 0.0),
        tile([0x7C, 0x3C], [0x3C, 0x00], 2.0),
        tile([0x01, 0x00], [0x3C, 0x3C], 0.0),
        tile([0x3C, 0x3E], [0x3C, 0x08], 0.0),
        tile([0x3C, 0x3C], [0x3C, 0x3C], 1.0 / 8192.0),
    ];
    let tiles = Tiles::with_operands("e5m2".parse().unwrap(), [1, 1, 2], &tiles).unwrap();
    let coverage = tiles.coverage(&"hopper:e5m2".parse().unwrap()).unwrap();
    // Zero, subnormal, the smallest normal number, normal, the largest, infinite, NaN, negative.
    let classes = [
        ("a is", [1, 1, 0, 9, 0, 1, 0, 1]),
        ("b is", [1, 0, 0, 11, 0, 0, 0, 0]),
        ("c is", [4, 0, 0, 2, 0, 0, 0, 0]),
        ("result is", [1, 0, 0, 4, 0, 1, 0, 0]),
    ];
    for (of, counts) in classes {
        let found = coverage.rows().iter().filter(|row| row.0 == of).map(|row| row.2);
        assert_eq!(found.collect::<Vec<_>>(), counts, "{of}\n{coverage}");
    }
    let others =
        coverage.rows().iter().filter(|row| !classes.map(|class| class.0).contains(&row.0));
    let expected = [
        ("all", "dot products", 6),
        ("step", "with a term of which bits are cut", 1),
        ("step", "with a term that is cut whole", 1),
        ("step", "with a sum that cancels to zero", 1),
        ("step", "aligned to the least exponent", 0),
        ("sum", "rounded", 1),
        ("sum", "too large for the result", 0),
        ("sum", "rounded to a subnormal number", 0),
        ("sum", "rounded to the smallest normal number", 0),
        ("step", "decided by an infinity or a NaN", 1),
    ];
    assert_eq!(others.copied().collect::<Vec<_>>(), expected);
    // In bf16: 2^-70 is 0x1C80 and 2^64 0x5F80. 2^-140 lies below the least exponent, 2^128 beyond binary32.
    let tiles = [tile([0x1C80, 0], [0x1C80, 0], 0.0), tile([0x5F80, 0], [0x5F80, 0], 0.0)];
    let tiles = Tiles::with_operands("bf16".parse().unwrap(), [1, 1, 2], &tiles).unwrap();
    let coverage = tiles.coverage(&"hopper:bf16".parse().unwrap()).unwrap();
    for row in
        [("step", "aligned to the least exponent", 1), ("sum", "too large for the result", 1)]
    {
        assert!(coverage.rows().contains(&row), "no {row:?} in\n{coverage}");
    }
}

#[test]
fn wrong_files_are_answered() {
    let with = |offset: usize, bytes: &[u8]| {
        let mut file = file();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        file
    };
    for (file, part) in [
        (Vec::new(), "0 bytes are less than the 64"),
        (b"EXMY".to_vec(), "4 bytes"),
        (file()[..63].to_vec(), "63 bytes"),
        (b"EXMYCONV and more".to_vec(), "begins with \"EXMYCONV\" instead of \"EXMYTILE\""),
        (with(8, &[3]), "version 3 of the format; this reads versions 1 to 2"),
        (with(28, &[99]), "matrix A has format 99; known are 0 (f16)"),
        (with(40, &[12]), "matrix D has format 12"),
        (with(16, &[0]), "2 tiles of 0 x 1 x 3: nothing"),
        (with(44, &[0]), "0 tiles"),
        (with(50, &[7]), "byte 50 is 0x07"),
        (with(70, &[1]), "byte 70 is 0x01"),
        (file()[..100].to_vec(), "asks for 130 bytes, but the file ends after 100"),
        (with(16, &[0xFF; 12]), "the file ends after 130"),
        ([file(), vec![0]].concat(), "asks for 130 bytes, but the file is longer"),
    ] {
        let error = Tiles::parse(file.clone()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        let error = Tiles::read(&file[..]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let tiles = Tiles::parse(file()).unwrap();
    let error = tiles.verify(&"volta".parse().unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("volta does not multiply e5m2 by e5m2 into f32; it takes f16"),
        "{error}"
    );
    // C in f16 takes two bytes less an element.
    let mut mixed = with(36, &[0]);
    mixed.truncate(130 - 8);
    let error = Tiles::parse(mixed).unwrap().verify(&"hopper".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("C is f16 and D is f32"), "{error}");
}

/// A file of version 2 by hand: two products of NVFP4 with a scale each, and two of E4M3.
fn scaled() -> Vec<u8> {
    let mut bytes = b"EXMYTILE".to_vec();
    let text = b"e2m1/1:ue4m3,e4m3+bf16";
    for word in [2_u32, 5, 1, 1, 2, text.len() as u32, 0, 0, 0, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(64, 0);
    bytes.extend(text);
    bytes.resize(96, 0);
    bytes.push(18);
    bytes.resize(112, 0);
    bytes.extend([0x2, 0x4, 0x38, 0x40]); // 1 2 with the scales 1 2
    bytes.extend([0x38, 0x40]); // 1 2
    bytes.extend([0x80, 0x3F, 0x20, 0x41]); // 1 and 1 * 1 + 2 * 2 * 2 + 1 = 10
    bytes
}

#[test]
fn version_2_has_any_format_and_scales() {
    let tiles = Tiles::parse(scaled()).unwrap();
    assert_eq!(tiles.to_string(), "1 tiles of 1 x 1 x 2, A e2m1/1:ue4m3, B e4m3, C bf16, D bf16");
    assert_eq!((tiles.kind(0), tiles.operation(), tiles.shape()), (18, 5, [1, 1, 2]));
    assert_eq!(tiles.tile(0), [vec![2, 4], vec![0x38, 0x40], vec![0x3F80], vec![0x4120]]);
    assert_eq!(tiles.scales(0), [vec![0x38, 0x40], vec![]]);
    assert_eq!(tiles.inputs().map(|x| x.to_string()), ["e2m1/1:ue4m3", "e4m3"]);
    assert_eq!(Tiles::read(&scaled()[..]).unwrap().as_bytes(), scaled());
    // Both sides scaled, for a unit that takes them; written, filled in, and read again.
    let tile = TileOperands {
        a: vec![0x2, 0x4],
        a_scales: vec![0x38],
        b: vec![0x2, 0x4],
        b_scales: vec![0x40],
        c: vec![0x3F80_0000],
        kind: 1,
        ..TileOperands::default()
    };
    let made =
        Tiles::with_operands("nvfp4".parse().unwrap(), [1, 1, 2], std::slice::from_ref(&tile))
            .unwrap();
    let blackwell = "blackwell".parse().unwrap();
    let made = Tiles::parse(made.with_results(&blackwell).unwrap().as_bytes().to_vec()).unwrap();
    assert_eq!(made.tile(0)[3], [0x4130_0000], "(1 + 4) * 2 + 1");
    assert_eq!(made.verify(&blackwell).unwrap().mismatches, 0);
    let less = TileOperands { b_scales: vec![], ..tile };
    let error = Tiles::with_operands("nvfp4".parse().unwrap(), [1, 1, 2], &[less]).unwrap_err();
    assert_eq!(error.to_string(), "0 codes of the scales of B, where 1 are needed");
    let with = |offset: usize, bytes: &[u8]| {
        let mut file = scaled();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        file
    };
    for (file, part) in [
        (with(28, &[0]), "0 bytes"),
        (with(28, &[0, 0, 0, 9]), "a text has 1 to 256 bytes"),
        (with(64, b"q"), "\"q2m1/1:ue4m3,e4m3+bf16\""),
        (with(36, &[1]), "byte 36"),
        (with(90, &[1]), "byte 90"),
        (with(98, &[1]), "byte 98"),
        (scaled()[..70].to_vec(), "asks for 86 bytes, but the file ends after 70"),
        (scaled()[..121].to_vec(), "asks for 122 bytes"),
    ] {
        for error in [
            Tiles::parse(file.clone()).unwrap_err().to_string(),
            Tiles::read(&file[..]).unwrap_err().to_string(),
        ] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
}

/// Drawn tiles are a function of seed and number, and tell a unit from one that keeps a bit less, or rounds
/// otherwise, or has another bound.
#[test]
fn drawn_tiles_tell_units_apart() {
    let drawn = |unit: &str, count| {
        let request = TilesRequest { count, ..TilesRequest::default() };
        Tiles::drawn(&unit.parse().unwrap(), &request).unwrap()
    };
    for (unit, others) in [
        ("hopper:e4m3", &["hopper,f=12", "hopper,f=14", "hopper,l=16", "hopper,out=f32@rtz"][..]),
        ("hopper:bf16", &["hopper,floor=-132", "hopper,f=24", "hopper,out=f32@rne"]),
        ("blackwell:nvfp4", &["blackwell,f=34", "blackwell,group=8", "blackwell,l=32"]),
        (
            "blackwell:mxfp8-e4m3,mxfp4",
            &["blackwell,f=24", "blackwell,f=26", "blackwell,floor=-134", "blackwell,floor=-132"],
        ),
        (
            "custom,flush=flush-output,subnormals=zero:mxfp8-e4m3",
            &["custom,flush=flush-output", "custom,subnormals=zero", "custom"],
        ),
        (
            "custom,out=f32@rne,flush=flush-output:bf16",
            &[
                "custom,out=f32@rne,flush=flush-input",
                "custom,out=f32@rne,flush=flush-tiny",
                "custom,out=f32@rne,flush=flush-candidates",
            ],
        ),
        ("cdna3:e4m3fnuz", &["cdna3,align2=rz", "cdna3,reach=none", "cdna3,f=23"]),
        ("amx:bf16", &["amx,flush=none", "amx,nan=quiet", "amx,subnormals=positive-zero"]),
        ("cdna2:bf16", &["cdna2,subnormals=zero", "cdna2,subnormals=exact"]),
        ("cdna2:f16", &["cdna2,subnormals=zero"]),
        (
            "custom,f=50,l=8,out=f64@rne:f32+f64",
            &["custom,f=49,l=8,out=f64@rne", "custom,f=50,l=8,out=f64@rtz"],
        ),
        ("cdna1:bf16", &["cdna1,underflow=positive", "cdna1-tree"]),
        ("custom,l=8,f=9,floor=none:int8,e3m4+f16", &["custom,l=8,f=8", "custom,l=4,f=9"]),
    ] {
        let tiles = drawn(unit, 32);
        let model = unit.split(':').next().unwrap();
        assert_eq!(tiles.verify(&model.parse().unwrap()).unwrap().mismatches, 0, "{unit}");
        for other in others {
            let verdict = tiles.verify(&other.parse().unwrap()).unwrap();
            assert!(verdict.mismatches > 0, "{unit} is not told from {other}");
        }
        let fewer = drawn(unit, 5);
        assert_eq!((fewer.tile(4), fewer.scales(4)), (tiles.tile(4), tiles.scales(4)), "{unit}");
    }
    let huge = TilesRequest { shape: Some([u32::MAX; 3]), count: u32::MAX, seed: 1 };
    let error = Tiles::drawn(&"volta:f16".parse().unwrap(), &huge).unwrap_err();
    assert!(error.to_string().contains("such tiles cannot be made"), "{error}");
}

/// What lies at the small end is there: steps aligned to the least exponent, where products or scales get
/// below it, and results that are subnormal or the smallest normal number.
#[test]
fn drawn_tiles_reach_the_small_end() {
    let lifted = ("step", "aligned to the least exponent");
    let results = [("result is", "subnormal"), ("result is", "the smallest normal number")];
    let rounded = [
        ("sum", "rounded to a subnormal number"),
        ("sum", "rounded to the smallest normal number"),
    ];
    let mut flushed = rounded;
    flushed[0].1 = "that is flushed";
    for (unit, rows) in [
        ("custom,l=32,f=25:mxfp8-e4m3", &[&[lifted][..], &results, &rounded].concat()[..]),
        ("custom:mxfp4", &[&[lifted][..], &results].concat()),
        ("custom:e5m2,mxfp8-e4m3", &[&[lifted][..], &results].concat()),
        ("blackwell:mxfp4", &[&[lifted][..], &results].concat()),
        ("hopper:bf16", &[&[lifted][..], &results].concat()),
        ("hopper:e4m3", &results),
        ("blackwell:nvfp4", &results),
        ("custom,out=e5m2@rne:e4m3", &rounded),
        ("custom,out=int30b-10@rne:e5m2+f16", &results),
        ("custom,flush=flush-output:mxfp8-e4m3", &flushed),
    ] {
        let unit = unit.parse().unwrap();
        let tiles = Tiles::drawn(&unit, &TilesRequest::default()).unwrap();
        let coverage = tiles.coverage(&unit).unwrap();
        for (of, what) in rows {
            let found = coverage.rows().iter().find(|row| (row.0, row.1) == (*of, *what));
            assert!(found.is_some_and(|row| row.2 >= 5), "{unit}: {of} {what}\n{coverage}");
        }
    }
}

/// What was written for a unit yesterday is written today: FNV-1a of whole files.
#[test]
fn drawn_tiles_keep_their_bytes() {
    for (unit, hash) in [
        ("hopper:e4m3", 0x8884_EF71_79F3_3A5C),
        ("hopper-mma:e4m3,e5m2+f16", 0xD4F5_BA57_215A_3705),
        ("blackwell:nvfp4", 0x6D71_7903_6B7B_F7B7),
        ("cdna3:bf16", 0x05EC_6982_E925_D808),
        ("amx:bf16", 0xFF2F_AB8D_F2C1_D10F),
        ("custom,l=8,f=9,out=int24b-14@rne:mxfp8-e4m3,mxfp4", 0x1F13_C7F8_1457_50D5_u64),
    ] {
        let request = TilesRequest { count: 21, ..TilesRequest::default() };
        let tiles = Tiles::drawn(&unit.parse().unwrap(), &request).unwrap();
        let found = tiles.as_bytes().iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        assert_eq!(found, hash, "{unit} {found:#x}");
    }
}

/// Random damage: an error or a verdict, and no panic.
#[test]
fn damage_never_panics() {
    let mut random = Random(9);
    for _ in 0..3000 {
        let mut file = if random.below(2) == 0 { file() } else { scaled() };
        for _ in 0..1 + random.below(4) {
            let at = random.below(file.len() as u64) as usize;
            file[at] = random.word() as u8;
        }
        if random.below(4) == 0 {
            file.truncate(random.below(file.len() as u64) as usize);
        }
        if let Ok(tiles) = Tiles::parse(file) {
            for model in ["hopper", "volta", "cdna3", "fast", "custom"] {
                let _verdict =
                    tiles.verify(&model.parse().unwrap()).map(|verdict| verdict.to_string());
            }
        }
    }
}

#[test]
fn names_say_the_model() {
    for (name, model) in [
        ("wgmma_m64n8k32_f32_e4m3_e4m3.tiles", Some("hopper")),
        ("some/where/mma_m16n8k32_f16_e4m3_e5m2.tiles", Some("hopper-mma")),
        ("mma_m16n8k16_f32_bf16_bf16_extreme.tiles", Some("hopper")),
        ("cublas_m64n64k512_f32_e4m3_e4m3_promote128.tiles", Some("hopper,promote=128")),
        ("cublas_m64n64k512_f32_e4m3_e4m3_promote64_second.tiles", Some("hopper,promote=64")),
        ("cublas_m64n64k512_f32_e4m3_e4m3_fast", Some("hopper")),
        ("ampere_x.tiles", Some("ampere")),
        ("blackwell-mxf8f6f4_x.tiles", Some("blackwell-mxf8f6f4")),
        ("custom,l=8,f=24_x.tiles", Some("custom,l=8,f=24")),
        ("amx.tiles", Some("amx")),
        ("mystery_x.tiles", None),
        ("", None),
    ] {
        assert_eq!(model_of(name).map(|model| model.to_string()).as_deref(), model, "{name}");
    }
}
