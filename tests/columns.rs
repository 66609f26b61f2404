//! Recorded conversions of hardware and libraries: every column this crate knows, digests over
//! whole blocks of inputs, files that are none, and the command that reads them.

#![cfg(feature = "std")]

use exmy::format::Format;
use exmy::round::{Profile, Rounding};
use exmy::text::UnknownName;
use exmy::vectors::RecordingError;
use exmy::vectors::columns::{BLOCK, Columns, ColumnsError, Conversion, Table, digest, mix64};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn go_on(_: usize) -> bool {
    true
}

/// Folder and file, rows, columns of results.
const FILES: [(&str, usize, usize); 6] = [
    ("h200/conv_f32.cols", 4226, 29),
    ("h200/conv_f16.cols", 1114, 6),
    ("h200/conv_f8.cols", 256, 7),
    ("libraries/conv_f32.cols", 2824, 17),
    ("libraries/conv_f16.cols", 1811, 17),
    ("libraries/conv_f8.cols", 256, 5),
];

#[test]
fn every_recorded_conversion_is_reproduced() {
    for (name, rows, count) in FILES {
        let columns = Columns::read(fs::File::open(data(name)).unwrap()).unwrap();
        assert_eq!((columns.rows(), columns.results().len()), (rows, count), "{name}");
        for column in columns.results() {
            let verdict = columns.verify(column, &go_on).unwrap().unwrap();
            assert!(verdict.conversion.is_some(), "{name}: {} is not known", column.name());
            assert_eq!((verdict.rows, verdict.mismatches), (rows, 0), "{name}\n{verdict}");
        }
    }
}

/// The selections must still hold what makes conventions differ, or the test above shows little.
#[test]
fn the_recordings_tell_the_profiles_apart() {
    let path = data("h200/conv_f32.cols");
    let columns = Columns::parse(fs::read(path).unwrap()).unwrap();
    let inputs: Vec<u64> = columns.inputs().unwrap().collect();
    for column in columns.results() {
        let conversion = Conversion::find(columns.table(), column.name()).unwrap();
        let recorded: Vec<u64> = columns.elements(column).collect();
        let distinct = recorded.iter().collect::<BTreeSet<_>>().len() as u128;
        let relu = matches!(conversion.profile, Profile::CudaSatfiniteRelu);
        let signed = conversion.to.is_signed() && !relu;
        if conversion.to.bits() <= 8 && !relu {
            // All values, and NaN or infinity where they can come out.
            assert!(distinct + 8 >= conversion.to.code_count(), "{}: {distinct}", column.name());
        }
        let differs = |other: Conversion| {
            inputs.iter().zip(&recorded).any(|(x, word)| other.apply(*x) != *word)
        };
        // Without negative results there is no telling which way they would be rounded.
        let seen = |mode| match mode {
            Rounding::TowardNegative if !signed => Rounding::TowardZero,
            Rounding::TowardPositive if !signed => Rounding::AwayFromZero,
            mode => mode,
        };
        let own = seen(conversion.context().rules.rounding);
        for mode in Rounding::DETERMINISTIC.into_iter().filter(|mode| seen(*mode) != own) {
            let other = Conversion { rounding: Some(mode), ..conversion };
            assert!(differs(other), "{} would also be right with {mode}", column.name());
        }
        let rival = match conversion.profile {
            Profile::TorchNosat => Profile::CudaSatfinite,
            _ => Profile::MlDtypes,
        };
        let other = Conversion { profile: rival, ..conversion };
        assert!(differs(other), "{} is also {rival}'s convention", column.name());
    }
}

#[test]
fn digests_of_whole_blocks_are_reproduced() {
    let text = fs::read_to_string(data("h200/digests.txt")).unwrap();
    let wanted: Vec<(&str, u32, u64)> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [name, block, digest] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            (name, block.parse().unwrap(), u64::from_str_radix(digest, 16).unwrap())
        })
        .collect();
    assert_eq!(wanted.len(), 290);
    exmy::parallel::for_each(wanted, |_, (name, block, recorded)| {
        let conversion = Conversion::find(Table::F32Digest, name).unwrap();
        assert_eq!(digest(&conversion, block), recorded, "{name}, block {block}");
    });
}

/// The definition of a digest, without runs and without vectors.
#[test]
fn a_digest_is_the_sum_over_every_input() {
    // SplitMix64 from seed 0 begins so (Vigna, splitmix64.c); its first state is the increment.
    assert_eq!(mix64(0x9E37_79B9_7F4A_7C15), 0xE220_A839_7B1D_CDAF);
    // Zero and subnormals; infinity and signaling NaN; negative quiet NaN.
    for (name, block) in [("tf32_rna", 510), ("torch_float8_e8m0fnu", 0), ("f16_rm", 1023)] {
        let conversion = Conversion::find(Table::F32, name).unwrap();
        let first = u64::from(block) * BLOCK;
        let plain = (first..first + BLOCK)
            .map(|x| mix64(x << 32 | conversion.apply(x)))
            .fold(0, u64::wrapping_add);
        use exmy::simd::{Level, with_level};
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let fast = with_level(level, || digest(&conversion, block));
            assert_eq!(fast, plain, "{name}, block {block}, {level}");
        }
    }
}

/// Every conversion has a name that the command line understands, and no two names the same rules
/// by mistake.
#[test]
fn conversions_are_what_a_user_can_ask_for() {
    let mut seen = BTreeMap::new();
    for table in [Table::F32, Table::F16, Table::F8] {
        for name in Conversion::names(table) {
            let conversion = Conversion::find(table, name).unwrap();
            let text = conversion.to_string();
            let options: BTreeMap<&str, &str> = {
                let words: Vec<&str> = text.split(' ').collect();
                words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
            };
            assert_eq!(options["--from"].parse(), Ok(conversion.from), "{text}");
            assert_eq!(options["--to"].parse(), Ok(conversion.to), "{text}");
            assert_eq!(options["--profile"].parse(), Ok(conversion.profile), "{text}");
            let rounding: Result<Option<Rounding>, UnknownName> =
                options.get("--round").map(|mode| mode.parse()).transpose();
            assert_eq!(rounding, Ok(conversion.rounding), "{text}");
            if let Some(other) = seen.insert((table as u8, text.clone()), name) {
                panic!("{other} and {name} are both {text}");
            }
        }
    }
    assert_eq!(
        Conversion::find(Table::F32, "e8m0_rz_sat_hdr").unwrap().to_string(),
        "--from f32 --to e8m0 --profile cuda-satfinite --round rtz"
    );
    assert_eq!(Conversion::find(Table::F8, "tf32_rn"), None);
    assert_eq!(Conversion::find(Table::F32, "e4m3_rn"), None);
    // Names in files do not follow those of formats.
    let to = |name| Conversion::find(Table::F32, name).map(|found| found.to);
    assert_eq!(to("e4m3_rn_satfinite"), Some(Format::E4M3));
    assert_eq!(to("ml_dtypes_float8_e4m3"), Some(Format::E4M3_IEEE));
    // TF32 lies in the top of its word.
    let tf32 = Conversion::find(Table::F32, "tf32_rz").unwrap();
    assert_eq!(tf32.apply(0x3F80_3FFF), 0x3F80_2000);
    assert_eq!(tf32.code(0x3F80_2000), 0x1FC01);
    assert_eq!(tf32.to, Format::TF32);
}

/// A file with the columns given: name, element size, elements.
fn file(version: u32, table: u32, rows: u32, columns: &[(&str, u32, &[u64])]) -> Vec<u8> {
    let mut bytes = b"EXMYCONV".to_vec();
    for word in [version, table, rows, columns.len() as u32, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for (name, size, _) in columns {
        let mut descriptor = name.as_bytes().to_vec();
        descriptor.resize(28, 0);
        descriptor.extend(size.to_le_bytes());
        bytes.extend(descriptor);
    }
    for (_, size, elements) in columns {
        for element in *elements {
            bytes.extend(&element.to_le_bytes()[..*size as usize]);
        }
    }
    bytes
}

const X: (&str, u32, &[u64]) = ("x", 4, &[0x3F80_0000, 0x43F0_0000, 0xFFC0_0000]);
const E4M3: (&str, u32, &[u64]) = ("e4m3_rn_satfinite", 1, &[0x38, 0x7E, 0x7F]);

#[test]
fn mismatches_are_shown_decoded() {
    let wrong = ("e4m3_nosat_hdr", 1, &[0x38, 0x7E, 0xFF][..]);
    let other = ("somebody_else", 2, &[1, 2, 3][..]);
    let bytes = file(1, 1, 3, &[X, E4M3, wrong, other]);
    let columns = Columns::parse(bytes).unwrap();
    let verdicts: Vec<String> = columns
        .results()
        .iter()
        .map(|column| columns.verify(column, &go_on).unwrap().unwrap().to_string())
        .collect();
    assert_eq!(verdicts[0], "e4m3_rn_satfinite: 3 rows, 0 mismatches");
    assert_eq!(
        verdicts[1],
        "e4m3_nosat_hdr: 3 rows, 2 mismatches\n  \
         row 1: x 0x43f00000 = 480.0: recorded 0x7e = 448.0, computed 0x7f = NaN\n  \
         row 2: x 0xffc00000 = NaN: recorded 0xff = NaN, computed 0x7f = NaN\n  \
         computed with --from f32 --to e4m3 --profile cuda-nosat"
    );
    assert_eq!(verdicts[2], "somebody_else: skipped, no conversion is known by this name");
    // Only the first five are listed.
    let many = [0_u64; 8];
    let bytes = file(1, 1, 8, &[("x", 4, &many), ("e4m3_rn_satfinite", 1, &[1; 8])]);
    let columns = Columns::parse(bytes).unwrap();
    let verdict = columns.verify(&columns.results()[0], &go_on).unwrap().unwrap();
    assert_eq!((verdict.mismatches, verdict.first.len()), (8, 5));
    assert!(verdict.to_string().contains("\n  and 3 more\n"), "{verdict}");
    // Whoever asks to stop gets no verdict.
    assert_eq!(columns.verify(&columns.results()[0], &|_| false), Ok(None));
}

#[test]
fn a_wrong_digest_is_found_in_its_block() {
    let right = digest(&Conversion::find(Table::F32, "e2m1_rn_hdr").unwrap(), 0);
    let bytes = file(1, 4, 2, &[("e2m1_rn_hdr", 8, &[right, 7])]);
    let columns = Columns::parse(bytes).unwrap();
    let rows = std::sync::atomic::AtomicUsize::new(0);
    let count = |more| {
        rows.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
        true
    };
    let verdict = columns.verify(&columns.results()[0], &count).unwrap().unwrap();
    assert_eq!((verdict.rows, verdict.mismatches, rows.into_inner()), (2, 1, 2));
    assert_eq!((verdict.first[0].row, verdict.first[0].x), (1, 0x40_0000));
    let text = verdict.to_string();
    assert!(
        text.contains("row 1, x 0x00400000 to 0x007fffff: recorded 0000000000000007"),
        "{text}"
    );
    assert_eq!(columns.verify(&columns.results()[0], &|_| false), Ok(None));
}

/// What is wrong with `bytes`, by both ways of reading them.
fn wrong(bytes: &[u8]) -> ColumnsError {
    let error = Columns::parse(bytes.to_vec()).unwrap_err();
    let read = Columns::read(bytes).unwrap_err();
    assert_eq!(read.kind(), std::io::ErrorKind::InvalidData);
    let inner = read.into_inner().unwrap().downcast::<ColumnsError>().unwrap();
    match (&error, &*inner) {
        // Of a longer file the reader takes one byte too many and no more.
        (
            ColumnsError::Recording(RecordingError::Length { expected: a, .. }),
            ColumnsError::Recording(RecordingError::Length { expected: b, .. }),
        ) => assert_eq!(a, b),
        (error, inner) => assert_eq!(error, inner),
    }
    error
}

#[test]
fn malformed_files_are_refused() {
    let good = file(1, 1, 3, &[X, E4M3]);
    assert!(Columns::parse(good.clone()).is_ok());
    for len in 0..good.len() {
        let error = wrong(&good[..len]);
        let short = match len {
            0..32 => error == RecordingError::NoHeader { found: len, expected: 32 }.into(),
            32..96 => error == RecordingError::Length { expected: 96, found: len }.into(),
            _ => {
                error == RecordingError::Length { expected: good.len() as u128, found: len }.into()
            }
        };
        assert!(short, "{len}: {error}");
    }
    let mut longer = good.clone();
    longer.extend([0; 5]);
    let error = wrong(&longer);
    assert!(error.to_string().contains("asks for 111 bytes, but the file is longer"), "{error}");

    let mut magic = good.clone();
    magic[4..8].copy_from_slice(b"TILE");
    assert_eq!(
        wrong(&magic),
        RecordingError::Magic { found: *b"EXMYTILE", expected: *b"EXMYCONV" }.into()
    );
    assert!(wrong(&magic).to_string().contains("\"EXMYTILE\" instead of \"EXMYCONV\""));
    assert_eq!(
        wrong(&file(2, 1, 3, &[X, E4M3])),
        RecordingError::Version { found: 2, newest: 1 }.into()
    );
    assert_eq!(wrong(&file(1, 9, 3, &[X, E4M3])), ColumnsError::Table(9));
    assert_eq!(wrong(&file(1, 1, 3, &[])), ColumnsError::Empty { rows: 3, columns: 0 });
    assert_eq!(wrong(&file(1, 1, 3, &[X])), ColumnsError::Empty { rows: 3, columns: 1 });
    assert_eq!(wrong(&file(1, 4, 3, &[])), ColumnsError::Empty { rows: 3, columns: 0 });
    assert_eq!(wrong(&file(1, 1, 0, &[X, E4M3])), ColumnsError::Empty { rows: 0, columns: 2 });
    assert_eq!(wrong(&file(1, 4, 1025, &[E4M3])), ColumnsError::Blocks(1025));

    // Counts that no file can keep; nothing of that size is allocated.
    let mut counts = good.clone();
    counts[16..24].fill(0xFF);
    let expected = 32 + 32 * u128::from(u32::MAX);
    assert_eq!(wrong(&counts), RecordingError::Length { expected, found: good.len() }.into());
    let rows = file(1, 1, u32::MAX, &[X, E4M3]);
    let expected = 96 + 5 * u128::from(u32::MAX);
    assert_eq!(wrong(&rows), RecordingError::Length { expected, found: good.len() }.into());

    let size = |column: &str, found, expected| ColumnsError::ElementBytes {
        column: column.into(),
        found,
        expected,
    };
    let x8 = ("x", 8, X.2);
    assert_eq!(wrong(&file(1, 1, 3, &[x8, E4M3])), size("x", 8, Some(4)));
    assert_eq!(wrong(&file(1, 2, 3, &[X, E4M3])), size("x", 4, Some(2)));
    let three = (E4M3.0, 3, E4M3.2);
    assert_eq!(wrong(&file(1, 1, 3, &[X, three])), size(E4M3.0, 3, None));
    assert_eq!(wrong(&file(1, 4, 3, &[E4M3])), size(E4M3.0, 1, Some(8)));
    let no_input = ColumnsError::NoInput { found: "y".into() };
    assert_eq!(wrong(&file(1, 1, 3, &[("y", 4, X.2), E4M3])), no_input);
    assert_eq!(wrong(&file(1, 1, 3, &[X, E4M3, E4M3])), ColumnsError::Twice(E4M3.0.into()));
    for name in ["", "a b", "tab\t", "a\0b", "\u{e9}"] {
        let error = wrong(&file(1, 1, 3, &[X, (name, 1, E4M3.2)]));
        assert_eq!(error, ColumnsError::Name { column: 1 }, "{name:?}");
    }
    // A known name whose codes do not have that size is found when it is verified.
    let wide = Columns::parse(file(1, 1, 3, &[X, (E4M3.0, 2, E4M3.2)])).unwrap();
    let error = wide.verify(&wide.results()[0], &go_on).unwrap_err();
    assert_eq!(error, size(E4M3.0, 2, Some(1)));
    assert!(error.to_string().contains("elements of 2 bytes instead of 1"), "{error}");
}
