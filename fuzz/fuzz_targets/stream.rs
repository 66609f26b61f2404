//! The dense stream against its definition, at every level: any codes, any width, any offset, and
//! bytes of any length.
//!
//! `cargo +nightly fuzz run stream` in the repository's root.

#![no_main]

use exmy::pack::{self, Code, PackError};
use exmy::simd::{Level, with_level};
use libfuzzer_sys::fuzz_target;

/// Packs what fits, by the definition too, and brings it back.
fn both_ways<C: Code + PartialEq + std::fmt::Debug>(codes: &[C], width: u32, offset: usize) {
    let codes = &codes[offset.min(codes.len())..];
    let Some(len) = (1..=16).contains(&width).then(|| pack::packed_len(codes.len(), width)) else {
        assert!(pack::pack(codes, width).is_err());
        return;
    };
    let len = len.expect("the codes are in memory");
    let mut buffer = vec![0xA5; offset + len + 70];
    let result = pack::pack_into(codes, width, &mut buffer[offset..offset + len]);
    assert!(buffer[..offset].iter().chain(&buffer[offset + len..]).all(|byte| *byte == 0xA5));
    let bytes = &buffer[offset..offset + len];
    let wide = codes.iter().position(|&code| Into::<u16>::into(code) as u32 >> width != 0);
    if let Some(index) = wide {
        let code = codes[index].into();
        assert_eq!(result, Err(PackError::CodeTooWide { index, code, width }));
        assert!(bytes.iter().all(|byte| *byte == 0));
        return;
    }
    assert_eq!(result, Ok(()));
    let mut plain = vec![0; len];
    pack::pack_plain(codes, width, &mut plain);
    assert_eq!(bytes, plain);
    match pack::unpack::<C>(bytes, width, codes.len()) {
        Ok(back) => assert_eq!(back, codes),
        Err(error) => assert_eq!(error, PackError::Width { width, most: C::BITS }),
    }
}

/// Unpacks bytes that nobody packed.
fn unpacks(bytes: &[u8], width: u32, count: usize) {
    let fits = (1..=16).contains(&width) && pack::packed_len(count, width) == Some(bytes.len());
    let codes = pack::unpack::<u16>(bytes, width, count);
    assert_eq!(codes.is_ok(), fits);
    if let Ok(codes) = codes {
        let mut plain = vec![0_u16; count];
        pack::unpack_plain(bytes, width, &mut plain);
        assert_eq!(codes, plain);
        if width <= 8 {
            let narrow = pack::unpack::<u8>(bytes, width, count).expect("as before");
            assert!(narrow.iter().copied().map(u16::from).eq(plain));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let [level, width, offset, count, low, high, rest @ ..] = data else { return };
    let levels: Vec<_> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    let width = u32::from(width % 18);
    let offset = usize::from(offset % 67);
    with_level(levels[usize::from(*level) % levels.len()], || {
        // Repeated, so that short inputs reach the bodies for many codes.
        let repeated = rest.repeat(1 + usize::from(count % 8));
        both_ways(&repeated, width, offset);
        let pairs: Vec<u16> =
            repeated.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        both_ways(&pairs, width, offset);
        // The same with only the bits that fit.
        if let Some(mask) = 1_u32.checked_shl(width).map(|power| (power - 1) as u16) {
            let fit: Vec<u16> = pairs.iter().map(|code| code & mask).collect();
            both_ways(&fit, width, offset);
            let fit: Vec<u8> = repeated.iter().map(|code| code & mask as u8).collect();
            both_ways(&fit, width, offset);
        }
        unpacks(rest, width, usize::from(u16::from_le_bytes([*low, *high])));
        if width != 0 {
            unpacks(rest, width, rest.len() * 8 / width as usize);
        }
    });
});
