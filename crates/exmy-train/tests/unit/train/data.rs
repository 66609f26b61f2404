mod recall;
mod source;

use exmy_train::train::data::{Tokens, fingerprint, split_point};

/// Against integer arithmetic: nine tenths, rounded down, for every length up to a million
/// and around large multiples of ten, where an error in the product would show.
#[test]
fn a_tenth_is_split_exactly() {
    let large = [1_u64 << 33, 10_000_000_000, 1 << 40].into_iter().flat_map(|n| n - 50..n + 50);
    for n in (0..1_000_000).chain(large) {
        assert_eq!(split_point(n as usize, 0.1) as u64, 9 * n / 10, "{n}");
    }
}

/// Each of these differs from the first in one respect only.
#[test]
fn fingerprints_tell_contents_apart() {
    let bytes = |b: &[u8]| Tokens::Bytes(b.to_vec());
    let all = [
        fingerprint(&bytes(b"ab"), &bytes(b"c"), 256),
        fingerprint(&bytes(b"a"), &bytes(b"bc"), 256),
        fingerprint(&bytes(b"ab"), &bytes(b"d"), 256),
        fingerprint(&bytes(b"ab"), &bytes(b"c"), 320),
        fingerprint(&Tokens::U16(vec![97, 98]), &Tokens::U16(vec![99]), 256),
        fingerprint(&Tokens::U32(vec![97, 98]), &Tokens::U32(vec![99]), 256),
    ];
    // A text that looks like the width between the splits, on either side of it.
    let width = b"\x01\0\0\0\0\0\0\0";
    let moved = [
        fingerprint(&bytes(b"a"), &bytes(&[width, &b"b"[..]].concat()), 256),
        fingerprint(&bytes(&[&b"a"[..], width].concat()), &bytes(b"b"), 256),
    ];
    assert_ne!(moved[0], moved[1]);
    for (i, a) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|b| a != b), "{i}");
    }
}
