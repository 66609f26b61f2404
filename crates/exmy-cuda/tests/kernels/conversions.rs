//! Conversions that the device refuses.

use exmy::format::Format;
use exmy::round::{Rounding, Rules};
use exmy_cuda::Converter;

use super::device;

#[test]
fn what_does_not_fit_is_refused() {
    let Some(device) = device() else { return };
    let x = device.upload(&[1.0_f32; 3]).unwrap();
    let said = |error: exmy_cuda::Error| error.to_string();
    let wide = Converter::new(Format::BF16, Rules::DEFAULT).encode::<u8>(&x).unwrap_err();
    assert_eq!(said(wide), "encode: codes of bf16 have 16 bits and do not fit 8");
    let mode = Rules::DEFAULT.with_rounding(Rounding::stochastic(8));
    let dry = Converter::new(Format::E2M1, mode).encode::<u8>(&x).unwrap_err();
    assert_eq!(said(dry), "encode: sr8 rounding needs random words: with_random");
    let mut short = device.zeros::<f32>(2).unwrap();
    let short = Converter::new(Format::E2M1, Rules::DEFAULT).fake_quantize_into(&x, &mut short);
    assert_eq!(said(short.unwrap_err()), "fake_quantize: 3 numbers and room for 2");
    let wide = Converter::new(Format::F64, Rules::DEFAULT).encode::<u32>(&x).unwrap_err();
    assert!(said(wide).contains("do not fit 32"));
}
