use exmy_train::nn::elementary::{exp, ln, normal, tanh};

/// Largest distance from `exact`, in ULP, over every 2053rd of the 2^32 arguments.
fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> f64 {
    let mut worst = 0.0_f64;
    for bits in (0..=u32::MAX).step_by(2053) {
        let x = f32::from_bits(bits);
        let (got, exact) = (f(x), exact(f64::from(x)));
        let nearest = exact as f32;
        if !nearest.is_finite() {
            assert_eq!(got.is_nan(), nearest.is_nan(), "at {x:e}");
            assert!(got == nearest || got.is_nan(), "{got:e} at {x:e}, not {nearest:e}");
            continue;
        }
        assert_eq!(got.is_sign_negative(), nearest.is_sign_negative(), "sign at {x:e}");
        let binade = nearest.abs().max(f32::MIN_POSITIVE).to_bits() & 0x7F80_0000;
        let ulp = f64::from(f32::from_bits(binade)) * f64::from(f32::EPSILON);
        worst = worst.max((f64::from(got) - exact).abs() / ulp);
    }
    worst
}

#[test]
fn errors_are_as_documented() {
    let errors = [
        ("exp", worst(exp, libm::exp), 1.03),
        ("ln", worst(ln, libm::log), 0.95),
        ("tanh", worst(tanh, libm::tanh), 1.34),
    ];
    for (name, error, bound) in errors {
        // Half an ULP is what correct rounding costs; less would mean nothing was measured.
        assert!((0.49..=bound).contains(&error), "{name}: {error} ULP");
    }
}

#[test]
fn normal_is_as_documented() {
    let (mut cdf_error, mut pdf_error) = (0.0_f64, 0.0_f64);
    for bits in (0..=u32::MAX).step_by(2053) {
        let x = f32::from_bits(bits);
        let exact = f64::from(x);
        let (cdf, pdf) = normal(x);
        if x.is_nan() {
            assert!(cdf.is_nan() && pdf.is_nan());
            continue;
        }
        let exact_cdf = 0.5 * libm::erfc(-exact * core::f64::consts::FRAC_1_SQRT_2);
        let exact_pdf = libm::exp(-0.5 * exact * exact) / core::f64::consts::TAU.sqrt();
        cdf_error = cdf_error.max((f64::from(cdf) - exact_cdf).abs());
        pdf_error = pdf_error.max((f64::from(pdf) - exact_pdf).abs());
    }
    assert!((1e-8..9e-8).contains(&cdf_error), "{cdf_error:e}");
    assert!((1e-8..4.3e-8).contains(&pdf_error), "{pdf_error:e}");
    assert_eq!(normal(0.0).0, 0.5);
    assert_eq!(normal(f32::NEG_INFINITY), (0.0, 0.0));
    assert_eq!(normal(f32::INFINITY), (1.0, 0.0));
}

#[test]
fn values_at_the_edges() {
    assert_eq!((exp(0.0), exp(f32::NEG_INFINITY), exp(-104.0)), (1.0, 0.0, 0.0));
    assert_eq!((exp(88.8), exp(f32::INFINITY)), (f32::INFINITY, f32::INFINITY));
    // e^88.72283 is the last below f32::MAX, e^-103 a subnormal of a few units of 2^-149.
    assert!(exp(88.722_83).is_finite() && exp(88.722_84).is_infinite());
    assert_eq!(exp(-103.0), f32::from_bits(1));
    assert_eq!((ln(1.0), ln(0.0), ln(-0.0)), (0.0, f32::NEG_INFINITY, f32::NEG_INFINITY));
    assert_eq!((ln(f32::INFINITY), ln(f32::from_bits(1))), (f32::INFINITY, -103.278_93));
    assert!(ln(-1.0).is_nan() && ln(f32::NEG_INFINITY).is_nan());
    assert_eq!((tanh(30.0), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
    for f in [exp, ln, tanh] {
        assert!(f(f32::NAN).is_nan());
    }
    assert_eq!(tanh(-0.0).to_bits(), (-0.0_f32).to_bits());
}
