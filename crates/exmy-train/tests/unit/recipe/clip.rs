use exmy_train::recipe::clip::{Clip, bf16};

fn clip(text: &str) -> Clip {
    let clip: Clip = text.parse().unwrap();
    assert_eq!(clip.to_string(), text);
    clip
}

fn of(text: &str, x: f32) -> f32 {
    let mut values = [x];
    clip(text).apply(&mut values);
    values[0]
}

/// The largest, the smallest normal and the smallest subnormal number with a centred bias, as
/// decimals to four places.
#[test]
fn ranges_with_a_centred_bias() {
    let expected = [
        (7, 1.837e19, 2.168e-19, 1.694e-21),
        (6, 4.278e9, 9.313e-10, 7.276e-12),
        (5, 65280.0, 6.104e-5, 4.768e-7),
        (4, 255.0, 1.5625e-2, 1.221e-4),
    ];
    for (bits, max, normal, subnormal) in expected {
        let clip = Clip::new(bits, 7);
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 4e-4;
        assert!(near(clip.max(), max) && near(clip.min_normal(), normal), "{bits}");
        assert!(near(clip.min_normal() / 128.0, subnormal), "{bits}");
    }
    assert_eq!(clip("clip-e7m7").exponents(), (-62, 63));
    assert_eq!(clip("clip-e7m7-keep-low").exponents(), (-126, 0));
    assert_eq!(clip("clip-e7m7-keep-high").exponents(), (1, 127));
    assert_eq!(clip("clip-e5m7-bias15").exponents(), (-14, 15));
    assert_eq!(clip("clip-e5m7-bias-3-inf").exponents(), (4, 33));
}

#[test]
fn what_is_clipped_for_its_size() {
    // 255.4 is 255 as a bfloat16 number and 255.6 is 256; NaN is no size.
    let values = || [255.0, -255.4, 255.6, -300.0, f64::INFINITY, f64::NAN, 0.0, 1e-9].into_iter();
    assert_eq!(clip("clip-e4m7").beyond(values()), 3);
    assert_eq!(clip("clip-e4m7-inf").beyond(values()), 3);
    assert_eq!(clip("clip-e4m7-outer").beyond(values()), 3);
    assert_eq!(clip("clip-e4m7-inner").beyond(values()), 0);
    assert_eq!(clip("clip-e4m7-pow2").beyond(values()), 0);
    assert_eq!(clip("clip-e5m7").beyond(values()), 1);
}

#[test]
fn each_side_by_hand() {
    assert_eq!(of("clip-e4m7", -300.0), -255.0);
    assert_eq!(of("clip-e4m7-inf", -300.0), f32::NEG_INFINITY);
    assert_eq!(of("clip-e4m7-inner", 300.0), 300.0);
    assert_eq!(of("clip-e4m7", 0.01), 0.0);
    assert_eq!(of("clip-e4m7", -0.01).to_bits(), 0x8000_0000);
    assert_eq!(of("clip-e4m7-outer", 0.0078125), 0.0078125);
    assert_eq!(of("clip-e4m7-clamp", 0.001), 0.015625);
    assert_eq!(of("clip-e4m7-clamp", 0.0), 0.0);
    // 2^-13 is a place; one and a half of it lie between 1 and 2 and go to even.
    assert_eq!(of("clip-e4m7-subnormal", 1.5 / 8192.0), 2.0 / 8192.0);
    assert_eq!(of("clip-e4m7-subnormal", 0.5 / 8192.0), 0.0);
    assert_eq!(of("clip-e4m7-off", 1.003), 1.0);
    assert!(of("clip-e4m7", f32::NAN).is_nan());
    assert_eq!(of("clip-e4m7", f32::INFINITY), 255.0);
}

/// What is inside the range is bfloat16's, whatever the mode; outer touches nothing small and inner
/// nothing large.
#[test]
fn over_all_bfloat16_numbers() {
    for bits in 0..=u16::MAX {
        let x = f32::from_bits(u32::from(bits) << 16);
        if x.is_nan() {
            continue;
        }
        let inside = f64::from(x.abs()) <= clip("clip-e5m7").max();
        let large = f64::from(x.abs()) >= clip("clip-e5m7").min_normal();
        if inside {
            assert_eq!(of("clip-e5m7-outer", x), x);
        }
        if large {
            assert_eq!(of("clip-e5m7-inner", x), x);
        }
    }
}

#[test]
fn a_scale_brings_the_largest_number_below_the_top() {
    let mut values = [300.0, 1.0, -0.001];
    clip("clip-e4m7-pow2").apply(&mut values);
    // 300 / 2 = 150 is below 255; 0.0005 is below 2^-6.
    assert_eq!(values, [300.0, 1.0, -0.0]);
    let mut values = [3.0e-5, 1.0e-6];
    clip("clip-e4m7-pow2").apply(&mut values);
    assert_eq!(values, [bf16(3.0e-5), bf16(1.0e-6)]);
}

#[test]
fn wrong_words_are_answered() {
    for text in ["clip-e9m7", "clip-e7m8", "clip-e7m7-innr", "clip-e7", "clip-e7m7-bias"] {
        let error = text.parse::<Clip>().unwrap_err().to_string();
        assert!(error.contains("-keep-low"), "{error}");
    }
}
