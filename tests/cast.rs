//! Slices of typed numbers and of codes are the same memory, and no stray bit becomes a number.

use exmy::format::Format;
use exmy::minifloat::*;
use exmy::slice::cast::{self, BytesError, StrayBits};

#[test]
fn every_code_is_lent_and_returned() {
    let codes: Vec<u8> = (0..=u8::MAX).collect();
    let numbers: &[E4M3] = cast::from_bits(&codes).unwrap();
    assert_eq!((numbers.as_ptr().cast(), numbers.len()), (codes.as_ptr(), 256));
    for (number, &code) in numbers.iter().zip(&codes) {
        assert_eq!(number.to_bits(), code);
    }
    let back = cast::as_bits(numbers);
    assert_eq!((back.as_ptr(), back), (codes.as_ptr(), &codes[..]));
    assert_eq!(cast::as_bytes(numbers), codes);
    let wide = [F16::from_f32(1.5), F16::from_f32(-2.0)];
    assert_eq!(cast::as_bits(&wide), [0x3E00, 0xC000]);
    let bytes: Vec<u8> = wide.iter().flat_map(|x| x.to_ne_bytes()).collect();
    assert_eq!(cast::as_bytes(&wide), bytes);
    assert_eq!(cast::from_bytes(cast::as_bytes(&wide)), Ok(&wide[..]));
    assert_eq!(cast::from_bits::<ExMy<5, 10>>(&[]), Ok(&[][..]));
    assert_eq!(cast::as_bytes::<ExMy<5, 10>>(&[]), [0_u8; 0]);
}

#[test]
fn stray_bits_are_refused() {
    for code in 0..=u8::MAX {
        let mut codes = [0, 0x0F, code];
        let fits = code < 16; // E2M1 has four bits
        let stray = StrayBits { index: 2, bits: code.into(), format: Format::E2M1 };
        let numbers = cast::from_bits::<ExMy<2, 1, Finite>>(&codes);
        assert_eq!(numbers.map(<[E2M1]>::len), if fits { Ok(3) } else { Err(stray) });
        let numbers = cast::from_bytes::<ExMy<2, 1, Finite>>(&codes);
        let expected = if fits { Ok(3) } else { Err(BytesError::StrayBits(stray)) };
        assert_eq!(numbers.map(<[E2M1]>::len), expected);
        assert_eq!(cast::from_bits_mut::<ExMy<2, 1, Finite>>(&mut codes).is_ok(), fits);
        // UE4M3 has seven bits, UE5M3 eight.
        assert_eq!(cast::from_bits::<Ue4m3Format>(&[code]).is_ok(), code < 128);
        assert!(cast::from_bits::<Ue5m3Format>(&[code]).is_ok());
    }
    assert!(cast::from_bits::<ExMy<8, 10>>(&[(1 << 19) - 1]).is_ok());
    let error = cast::from_bits::<ExMy<8, 10>>(&[0, 1 << 19]).unwrap_err();
    assert_eq!(error.to_string(), "code 1 is 0x80000, more than the 19 bits of tf32");
}

#[test]
fn writing_goes_through() {
    let mut codes = [0_u8; 4];
    let numbers: &mut [E2M1] = cast::from_bits_mut(&mut codes).unwrap();
    numbers[1] = E2M1::from_f32(-3.0);
    numbers[3] = E2M1::MAX;
    assert_eq!(codes, [0, 0xD, 0, 7]);
    let mut numbers = [F16::from_f32(1.0); 2];
    cast::as_bits_mut(&mut numbers)[1] = 0xC000;
    assert_eq!(numbers.map(F16::to_f32), [1.0, -2.0]);
}

#[test]
fn bytes_must_divide_and_be_aligned() {
    let words = [0x3E00_u16, 0xC000, 0];
    let bytes = cast::as_bytes(cast::from_bits::<ExMy<5, 10>>(&words).unwrap());
    let read = |bytes| cast::from_bytes::<ExMy<5, 10>>(bytes).map(<[F16]>::len);
    assert_eq!((read(bytes), read(&bytes[2..]), read(&bytes[..0])), (Ok(3), Ok(2), Ok(0)));
    assert_eq!(read(&bytes[..5]), Err(BytesError::Length { bytes: 5, each: 2 }));
    assert_eq!(read(&bytes[1..5]), Err(BytesError::Alignment { align: 2 }));
    let message = read(&bytes[1..5]).unwrap_err().to_string();
    assert!(message.contains("multiple of 2"), "{message}");
}
