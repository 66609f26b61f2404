use exmy_train::recipe::mask::apply;

/// Over all bfloat16 codes: powers of two of the same exponent, by arithmetic; specials by hand.
#[test]
fn nothing_but_the_exponent_is_left() {
    for code in 0..=u16::MAX {
        let x = f32::from_bits(u32::from(code) << 16);
        let mut masked = [x];
        apply(0, &mut masked);
        let expected = if x.is_nan() || x.is_infinite() {
            x
        } else if x.abs() < f32::MIN_POSITIVE {
            0.0_f32.copysign(x)
        } else {
            libm::ldexpf(1.0_f32.copysign(x), libm::ilogbf(x))
        };
        let same = masked[0].to_bits() == expected.to_bits();
        assert!(same || masked[0].is_nan() && x.is_nan(), "{x:e}: {:e}", masked[0]);
    }
}

/// Numbers are rounded to bfloat16 first: the last one below 2 becomes 2.
#[test]
fn literals() {
    let below = f32::from_bits(2.0_f32.to_bits() - 1);
    for (bits, x, expected) in [
        (0, core::f32::consts::PI, 2.0),
        (0, 0.1, 0.0625),
        (0, -0.001, -0.000_976_562_5),
        (0, below, 2.0),
        (0, -0.0, -0.0),
        (3, core::f32::consts::PI, 3.0),
        (3, 0.1, 0.093_75),
        (6, -0.001, -65.0 / 65_536.0),
        (7, 1.003, 1.0),
    ] {
        let mut masked = [x];
        apply(bits, &mut masked);
        assert_eq!(masked[0].to_bits(), f32::to_bits(expected), "M = {bits} of {x}");
    }
}
