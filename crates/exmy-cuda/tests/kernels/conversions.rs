//! Conversions that the device refuses, and payloads of NaN by hand.

use exmy::format::Format;
use exmy::round::{NanRules, Payload, Rounding, Rules};
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

/// Bits 13 and 0 of a payload in f16, which has the upper ten of 23; bit 22 is the quiet one.
#[test]
fn payloads_of_nan_are_kept_or_cut() {
    let Some(device) = device() else { return };
    let x = [0x7F80_2001, 0xFF80_2001, 0x7F80_0001, 0xFFC0_2000, 0x7F80_0000, 0x3F80_0000];
    let x = device.upload(&x.map(f32::from_bits)).unwrap();
    let of = |payload| {
        let nan = NanRules::CANONICAL.with_payload(payload);
        Converter::new(Format::F16, Rules::DEFAULT.with_nan(nan))
    };
    let codes = |payload| of(payload).encode::<u16>(&x).unwrap().to_vec().unwrap();
    assert_eq!(codes(Payload::Drop), [0x7E00, 0xFE00, 0x7E00, 0xFE00, 0x7C00, 0x3C00]);
    assert_eq!(codes(Payload::Keep), [0x7E01, 0xFE01, 0x7E00, 0xFE01, 0x7C00, 0x3C00]);
    // What is left of the third is an infinity.
    assert_eq!(codes(Payload::Truncate), [0x7C01, 0xFC01, 0x7C00, 0xFE01, 0x7C00, 0x3C00]);
    let mut values = device.zeros::<f32>(6).unwrap();
    of(Payload::Truncate).fake_quantize_into(&x, &mut values).unwrap();
    let bits = values.to_vec().unwrap().into_iter().map(f32::to_bits);
    let expected = [0x7FC0_0000, 0xFFC0_0000, 0x7F80_0000, 0xFFC0_0000, 0x7F80_0000, 0x3F80_0000];
    assert!(bits.eq(expected));
}
