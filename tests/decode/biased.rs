//! Formats with the most unusual biases, whose binades lie at the ends of binary32.

use exmy::format::Format;
use exmy::slice::decode_into;

/// A bias of -127 puts the only binade at `2^128`, so every value is a subnormal one below it.
#[test]
fn a_lowest_binade_beyond_binary32() {
    let decode = |text: &str, code: u16| {
        let format: Format = text.parse().unwrap();
        let mut x = [0.0_f32];
        decode_into(format, &[code], &mut x);
        x[0]
    };
    // e1m1: T / 2 * 2^128.
    assert_eq!(decode("e1m1b-127", 1), f32::from_bits(254 << 23));
    // e0m8: 0x9C / 2^8 * 2^128 = 156 * 2^120.
    assert_eq!(decode("e0m8b-127", 0x9C), 156.0 * f32::from_bits((120 + 127) << 23));
    for text in
        ["e0m2b-127p3109e", "e0m5b-127p3109f", "e0m7b-127", "e1m7b-127", "ue0m13b-127p3109f"]
    {
        let format: Format = text.parse().unwrap();
        let codes: Vec<u16> = format.codes().map(|code| code as u16).collect();
        let mut x = vec![0.0_f32; codes.len()];
        decode_into(format, &codes, &mut x);
        for (code, x) in codes.iter().zip(&x) {
            assert_eq!(x.to_bits(), format.to_f32((*code).into()).to_bits(), "{text} {code:#x}");
        }
    }
}
