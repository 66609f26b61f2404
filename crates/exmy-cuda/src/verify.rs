//! The GPU against the CPU, bit for bit.

/// Numbers of every kind: zeros, infinities, NaN, subnormal ones, ends of ranges, ties, and random ones of all
/// magnitudes and of those around 1. `count` of them at least.
pub fn inputs(count: usize) -> Vec<f32> {
    let mut x = vec![
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7F80_0001),
        f32::from_bits(0xFFFF_FFFF),
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x8000_0001),
        f32::from_bits(0x007F_FFFF),
        f32::from_bits(0x0040_0000),
        f32::from_bits(0x0040_0001),
    ];
    // Around every power of two and its half, and the ends of FP4, FP6 and FP8.
    for field in 1..255_u32 {
        let power = field << 23;
        for bits in [power - 1, power, power + 1, power + 0x0040_0000, power + 0x0020_0000] {
            if field % 7 == 0 || (110..146).contains(&field) {
                x.push(f32::from_bits(bits | (field & 1) << 31));
            }
        }
    }
    for end in [
        0.25, 0.75, 1.75, 2.5, 5.0, 6.0, 7.0, 28.0, 30.0, 240.0, 448.0, 464.0, 480.0, 57344.0,
        61440.0,
    ] {
        x.extend([
            end,
            -end,
            f32::from_bits(f32::to_bits(end) + 1),
            f32::from_bits(f32::to_bits(end) - 1),
        ]);
    }
    let random = exmy::random::Philox::new(2, exmy::random::Stream::new("inputs"));
    let mut i = 0;
    while x.len() < count || i < 64 {
        let word = random.word(i);
        // Half of any bits, half between 2^-15 and 2^16.
        let near = (word & 0x807F_FFFF) | (112 + (word >> 23 & 31)) << 23;
        // Half of these with few bits, which are ties of many formats.
        let near = if i % 4 == 3 { near & 0xFFFC_0000 } else { near };
        x.push(f32::from_bits(if i % 2 == 0 { word } else { near }));
        i += 1;
    }
    x
}
