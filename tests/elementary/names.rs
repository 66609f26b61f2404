//! Names, and what is answered where there is no result.

use exmy::format::{Format, Sign};
use exmy::math::elementary::{Function, Unsupported};
use exmy::math::{Context, Operand};
use exmy::round::Rules;

#[test]
fn names_round_trip_and_wrong_ones_are_answered() {
    for function in Function::ALL {
        assert_eq!(function.to_string().parse::<Function>().unwrap(), function);
        assert_eq!(function.to_string().to_uppercase().parse::<Function>().unwrap(), function);
    }
    assert_eq!(Function::Log1p.to_string(), "log1p");
    assert_eq!(Function::Atan2Pi.to_string(), "atan2_pi");
    assert_eq!(Function::Expm1.to_string(), "expm1");
    let error = "asinpi".parse::<Function>().unwrap_err();
    assert!(error.nearest().contains(&"asin_pi"), "{error}");
}

#[test]
fn formats_beyond_the_digits_of_pi_are_named() {
    let wide = Format::ieee(12, 3).unwrap();
    let ctx = Context::new(Format::F32, Rules::DEFAULT);
    for function in Function::ALL {
        let limited = matches!(function, Function::Sin | Function::Cos | Function::Tan);
        assert_eq!(function.supports(wide).is_err(), limited, "{function}");
        assert!(function.supports(Format::F64).is_ok());
        assert!(function.supports(Format::ieee(11, 4).unwrap()).is_ok());
    }
    let error = ctx.sin(Operand::new(wide, 0)).unwrap_err();
    assert_eq!(error, Unsupported::Range { function: Function::Sin, format: wide });
    let text = error.to_string();
    assert!(text.contains("sin of e12m3") && text.contains("sin_pi"), "{text}");
    assert!(ctx.sin_pi(Operand::new(wide, 0)).is_ok());
    // The bias counts, not the width.
    let lifted = Format::builder(Sign::Magnitude, 3, 2).bias(-2000).build().unwrap();
    assert!(Function::Tan.supports(lifted).is_err());
}

#[test]
fn the_number_of_operands_is_checked() {
    let ctx = Context::new(Format::F32, Rules::DEFAULT);
    let x = Operand::f32(1.0);
    let error = ctx.apply(Function::Atan2, x).unwrap_err();
    assert_eq!(error.to_string(), "atan2 takes 2 operands, not 1");
    let error = ctx.apply2(Function::Sin, x, x).unwrap_err();
    assert_eq!(error.to_string(), "sin takes 1 operand, not 2");
}
