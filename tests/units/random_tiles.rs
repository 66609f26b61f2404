//! Tiles with random words: the file by hand, damaged ones, and what is drawn for units that round by words.

use crate::Random;
use exmy::gemm::unit::{Model, Unit};
use exmy::vectors::tiles::{TileOperands, Tiles, TilesRequest};

const MODEL: &str = "custom,l=1,out=e5m2@sr1";

/// 1 + 0.125 and then 0.5 in steps of one product: 1.125 is half way from 1 to 1.25, so the first of two
/// words decides between 1.5 and 1.75.
fn file() -> Vec<u8> {
    let mut bytes = b"EXMYTILE".to_vec();
    for word in [2_u32, 9, 1, 2, 2, 4, 2, 0, 0, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(64, 0);
    bytes.extend(b"e5m2");
    bytes.resize(96, 0);
    bytes.extend([0x3C, 0x38]);
    bytes.extend([0x3C; 4]);
    bytes.extend([0.125_f32; 2].iter().flat_map(|x| x.to_le_bytes()));
    bytes.extend([1_u32 << 31, 0, 0, 1 << 31].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend([1.75_f32, 1.5].iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn model() -> Model {
    MODEL.parse().unwrap()
}

#[test]
fn a_file_with_words_is_read_judged_and_written() {
    let tiles = Tiles::parse(file()).unwrap();
    assert_eq!((tiles.words(), tiles.shape()), (2, [1, 2, 2]));
    assert_eq!(tiles.random_words(0), [1 << 31, 0, 0, 1 << 31]);
    assert_eq!(tiles.tile(0)[3], [1.75_f32, 1.5].map(|x| u64::from(x.to_bits())));
    assert!(tiles.to_string().ends_with(", D f32, 2 random words a result"), "{tiles}");
    assert_eq!(tiles.verify(&model()).unwrap().mismatches, 0);
    assert_eq!(Tiles::read(&file()[..]).unwrap().as_bytes(), file());
    // Made of operands, and filled in: the same bytes but for the recorder's number and the kind.
    let tile = TileOperands {
        a: vec![0x3C, 0x38],
        b: vec![0x3C; 4],
        c: vec![0.125_f32.to_bits().into(); 2],
        words: vec![1 << 31, 0, 0, 1 << 31],
        ..TileOperands::default()
    };
    let made =
        |tiles: &[TileOperands]| Tiles::with_operands("e5m2".parse().unwrap(), [1, 2, 2], tiles);
    let filled = made(std::slice::from_ref(&tile)).unwrap().with_results(&model()).unwrap();
    let mut expected = file();
    expected[12] = 0;
    assert_eq!(filled.as_bytes(), expected);
    // The second tile has as many words as the first, and both as many for each result.
    for (second, part) in [(vec![], "0 random words of a tile, where 4"), (vec![0; 5], "5 random")]
    {
        let error = made(&[tile.clone(), TileOperands { words: second, ..tile.clone() }]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = made(&[TileOperands { words: vec![0; 3], ..tile }]).unwrap_err().to_string();
    assert!(error.contains("3 random words of a tile, where 2 are needed"), "{error}");
}

#[test]
fn a_wrong_bit_and_a_wrong_word_are_found() {
    let mut wrong = file();
    wrong[130] ^= 0x01; // the second result
    let verdict = Tiles::parse(wrong).unwrap().verify(&model()).unwrap();
    let text = verdict.to_string();
    assert_eq!(verdict.mismatches, 1);
    for part in [
        "2 elements, 1 mismatches\n",
        "row 0, column 1\n",
        "random word 0x00000000: 0 of 2\nround sr1 to e5m2: 0x3c = 1\n",
        "random word 0x80000000: 1 of 2\n",
        "result 0x3fc00000 = 1.5",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    // The first word of the second result decides, its second word does not.
    for (byte, mismatches) in [(121, 1), (125, 0)] {
        let mut wrong = file();
        wrong[byte] ^= 0x80;
        assert_eq!(Tiles::parse(wrong).unwrap().verify(&model()).unwrap().mismatches, mismatches);
    }
}

#[test]
fn damaged_words_are_answered() {
    let with = |offset: usize, bytes: &[u8]| {
        let mut file = file();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        file
    };
    let whole = file().len();
    for (file, part) in [
        (with(32, &[3]), "asks for 142 bytes, but the file ends after 134"),
        (with(32, &[1]), "asks for 126 bytes, but the file is longer"),
        (with(32, &[0xFF; 4]), "but the file ends after 134"),
        (file()[..whole - 1].to_vec(), "asks for 134 bytes, but the file ends after 133"),
        (file()[..115].to_vec(), "asks for 134 bytes, but the file ends after 115"),
        (with(36, &[1]), "byte 36 is 0x01"),
        ([with(16, &[0xFF; 12]), vec![0; 9]].concat(), "but the file ends after"),
    ] {
        for error in [
            Tiles::parse(file.clone()).unwrap_err().to_string(),
            Tiles::read(&file[..]).unwrap_err().to_string(),
        ] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
    // All numbers of the header at their ends: no sum of them is beyond 128 bits.
    let mut huge = with(32, &[0xFF; 4]);
    huge[16..28].fill(0xFF);
    huge[44..48].fill(0xFF);
    assert!(Tiles::parse(huge.clone()).is_err() && Tiles::read(&huge[..]).is_err());
    // A whole file of three words a result, for a unit that needs two; and the file for units without words.
    let more = {
        let mut more = with(32, &[3]);
        more.splice(110..110, [0; 8]);
        more
    };
    for (file, model, part) in [
        (more, MODEL, "needs 2 random words for a result of 2 elements, and the file has 3"),
        (file(), "custom,l=1,out=e5m2@rne", "needs 0 random words for a result of 2 elements"),
        (file(), "custom,l=2,out=e5m2@sr1", "needs 1 random words"),
    ] {
        let tiles = Tiles::parse(file).unwrap();
        let model: Model = model.parse().unwrap();
        let unit: Unit = format!("{model}:e5m2").parse().unwrap();
        for error in [
            tiles.verify(&model).unwrap_err(),
            tiles.coverage(&unit).unwrap_err(),
            tiles.clone().with_results(&model).unwrap_err(),
        ] {
            assert!(error.to_string().contains(part), "no {part:?} in {error}");
        }
    }
    let mut random = Random(11);
    for _ in 0..3000 {
        let mut file = file();
        for _ in 0..1 + random.below(4) {
            let at = random.below(file.len() as u64) as usize;
            file[at] = random.word() as u8;
        }
        if let Ok(tiles) = Tiles::parse(file) {
            for model in [MODEL, "hopper", "custom,out=f32@sr8", "custom,out=int20b-10@sr3"] {
                let _verdict = tiles.verify(&model.parse().unwrap());
            }
        }
    }
}

/// Drawn words tell a mode from its neighbours, be there never so many random bits, and the operands are
/// those of the same unit without them.
#[test]
fn drawn_words_tell_modes_apart() {
    let drawn = |unit: &str, count| {
        let request = TilesRequest { count, ..TilesRequest::default() };
        Tiles::drawn(&unit.parse().unwrap(), &request).unwrap()
    };
    for (model, formats, others) in [
        (
            "blackwell,out=e8m13@sr4",
            "e4m3",
            &["e8m13@sr3", "e8m13@sr5", "e8m13@sr4b", "e8m13@sr4c"][..],
        ),
        ("hopper,out=e8m9@sr9", "bf16", &["e8m9@sr8", "e8m9@sr10", "e8m9@sr9b", "e8m8@sr9"]),
        ("custom,l=8,f=30,out=e8m3@sr24", "e5m2", &["e8m3@sr23", "e8m3@sr25", "e8m3@sr24b"]),
        ("custom,out=int30b-14@sr6", "int8+f16", &["int30b-14@sr5", "int30b-14@sr7"]),
        ("custom,order=groups,l=64,f=35,out=e8m9@sr7", "nvfp4", &["e8m9@sr6", "e8m9@sr7b"]),
    ] {
        let unit = format!("{model}:{formats}");
        let tiles = drawn(&unit, 40);
        let [_, _, k] = tiles.shape();
        assert_eq!(tiles.words(), unit.parse::<Unit>().unwrap().words(k));
        assert_eq!(tiles.verify(&model.parse().unwrap()).unwrap().mismatches, 0, "{unit}");
        let (base, _) = model.split_once("out=").unwrap();
        for other in others {
            let verdict = tiles.verify(&format!("{base}out={other}").parse().unwrap()).unwrap();
            assert!(verdict.mismatches > 0, "{unit} is not told from {other}");
        }
        let fewer = drawn(&unit, 5);
        assert_eq!(fewer.random_words(4), tiles.random_words(4), "{unit}");
        let plain = drawn(
            &unit.replace(&unit[unit.find("@sr").unwrap()..unit.find(':').unwrap()], "@rne"),
            3,
        );
        for tile in 0..3 {
            assert_eq!(plain.tile(tile)[..3], tiles.tile(tile)[..3], "{unit}");
        }
        assert!(tiles.coverage(&unit.parse().unwrap()).unwrap().to_string().contains("rounded"));
    }
}

/// A word of a line for each result: elements, addend, random words and result.
#[test]
fn words_stand_before_the_result_for_readmemh() {
    let mut text = Vec::new();
    Tiles::parse(file()).unwrap().write_readmemh("head", &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for line in [
        "// 2 words of 160 bits:",
        "//   [127:96] c: 1 of f32",
        "//   [95:32] random words: 2 of 32 bits",
        "383c_3c3c_3e000000_0000000080000000_3fe00000",
        "383c_3c3c_3e000000_8000000000000000_3fc00000",
    ] {
        assert!(text.lines().any(|other| other == line), "no {line:?} in\n{text}");
    }
}
