use exmy_lab::plot::number::{decade, decimal, exp10, log10, short};

#[test]
fn logarithm_agrees_with_the_decimal_exponent() {
    for k in -307..=308 {
        let error = log10(decimal(1, k)) - f64::from(k);
        assert!(error.abs() <= 1e-13, "10^{k}: off by {error}");
        assert_eq!(decade(decimal(1, k)), k);
        assert_eq!(decade(f64::from_bits(decimal(1, k).to_bits() - 1)), k - 1);
    }
    assert_eq!(log10(1.0), 0.0);
    // log10 of the smallest subnormal, 2^-1074: -323.30621534311580955...
    assert!((log10(f64::from_bits(1)) + 323.306_215_343_115_8).abs() < 1e-12);
    assert!((log10(2.5) - 0.397_940_008_672_037_6).abs() < 1e-15);
    assert!((exp10(0.5) - 3.162_277_660_168_379_5).abs() < 1e-12);
}

#[test]
fn running_text_is_short() {
    let cases = [
        (1.912_34, "1.912"),
        (600.0, "600"),
        (0.25, "0.25"),
        (12_345.6, "12\u{202f}346"),
        (0.0, "0"),
        (3.2e-9, "3.200e-9"),
        (-2.5, "-2.5"),
    ];
    for (value, text) in cases {
        assert_eq!(short(value), text);
    }
}
