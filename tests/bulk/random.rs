//! Philox against the answers that its authors published, and how its words are addressed.

use exmy::random::{Philox, Stream, philox4x32_10};

/// Known answers published with Random123 (`kat_vectors`, philox4x32 10).
#[test]
fn philox_known_answers() {
    let cases = [
        ([0; 4], [0; 2], [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]),
        ([0xFFFF_FFFF; 4], [0xFFFF_FFFF; 2], [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]),
        (
            [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
            [0xA409_3822, 0x299F_31D0],
            [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
        ),
    ];
    for (counter, key, expected) in cases {
        assert_eq!(philox4x32_10(counter, key), expected);
    }
}

#[test]
fn address_is_block_and_word() {
    let philox = Philox::new(7, Stream::new("test").with(3));
    for i in 0..9 {
        assert_eq!(philox.word(i), philox.block(i / 4)[(i % 4) as usize]);
    }
    assert_eq!(philox.bits(5, 8), philox.word(5) >> 24);
    assert_eq!(philox.bits(5, 0), 0);
}

/// Coordinates are ordered and zero is a coordinate: none of these may coincide.
#[test]
fn streams_differ() {
    let base = Stream::new("a");
    let all = [
        base,
        base.with(0),
        base.with(1),
        base.with(0).with(1),
        base.with(1).with(0),
        Stream::new("b"),
    ];
    for (i, a) in all.iter().enumerate() {
        for b in &all[..i] {
            assert_ne!(a, b);
        }
    }
}

#[test]
fn below_covers_its_range() {
    let philox = Philox::new(1, Stream::new("below"));
    let mut seen = [false; 5];
    for i in 0..100 {
        seen[philox.below(i, 5) as usize] = true;
    }
    assert_eq!(seen, [true; 5]);
}
