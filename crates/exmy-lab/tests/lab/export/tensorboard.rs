use exmy_lab::export::tensorboard::{CRC32C, masked, varint};

/// The check value of the catalogue, and that of the mask by hand.
#[test]
fn checksums_are_those_of_the_format() {
    assert_eq!(CRC32C.checksum(b"123456789"), 0xe306_9283);
    // 0xe3069283 >> 15 | 0xe3069283 << 17 = 0x2507c60d
    assert_eq!(masked(b"123456789"), 0x2507_c60d_u32.wrapping_add(0xa282_ead8));
}

#[test]
fn numbers_take_seven_bits_a_byte() {
    let of = |number| {
        let mut bytes = Vec::new();
        varint(number, &mut bytes);
        bytes
    };
    assert_eq!(of(127), [127]);
    assert_eq!(of(300), [0xac, 0x02]);
    assert_eq!(of(u64::MAX).len(), 10);
}
