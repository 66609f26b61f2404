use exmy_train::train::digest::Digest;

/// Values of the reference implementation (`xxhsum -H1`, and Python's `xxhash.xxh64`) for every branch: less
/// than 4 bytes, than 8, than a stripe, and more than one.
#[test]
fn published_values() {
    for (text, seed, expected) in VALUES {
        assert_eq!(Digest::of(text.as_bytes(), seed), expected, "{text:?} {seed}");
    }
}

const VALUES: [(&str, u64, u64); 9] = [
    ("", 0, 0xEF46_DB37_51D8_E999),
    ("", 1, 0xD5AF_BA13_36A3_BE4B),
    ("a", 0, 0xD24E_C4F1_A98C_6E5B),
    ("abc", 0, 0x44BC_2CF5_AD77_0999),
    ("abcdefg", 0x9E37_79B1_85EB_CA87, 0xC4FB_8435_31F7_31B4),
    ("Nobody inspects the spammish re", 0, 0xC1A0_E0AE_86E1_D78C),
    ("Nobody inspects the spammish repetition", 0, 0xFBCE_A83C_8A37_8BF1),
    (ISHMAEL, 0, 0x02A2_E854_70D6_FD96),
    (ISHMAEL, 2_654_435_761, 0xCA56_6A8D_7CC0_4A49),
];
const ISHMAEL: &str = "Call me Ishmael. Some years ago--never mind how long precisely-";

#[test]
fn pieces_make_the_whole() {
    let bytes: Vec<u8> = (0..300_u32).map(|i| (i * i % 251) as u8).collect();
    let whole = Digest::of(&bytes, 7);
    for width in [1, 3, 31, 32, 33, 64, 100, 299] {
        let mut digest = Digest::new(7);
        bytes.chunks(width).for_each(|piece| digest.feed(piece));
        assert_eq!(digest.finish(), whole, "{width}");
    }
}
