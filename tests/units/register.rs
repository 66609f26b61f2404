//! Sums in fixed point: int8 into int32, and floating-point operands into a narrow register, against
//! integers.

use crate::Random;
use exmy::format::Format;
use exmy::gemm::unit::Unit;

/// The dot product of integers in a register of `bits`, in steps of `step`.
fn integers(a: &[i64], b: &[i64], start: i64, step: usize, bits: u32, wrap: bool) -> i64 {
    let most = (1_i64 << (bits - 1)) - 1;
    let held = |sum: i64| match wrap {
        true => (sum + most + 1).rem_euclid(1 << bits) - most - 1,
        false => sum.clamp(-most - 1, most),
    };
    a.chunks(step).zip(b.chunks(step)).fold(held(start), |sum, (a, b)| {
        held(sum + a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>())
    })
}

#[test]
fn int8_into_registers_is_integer_arithmetic() {
    let mut random = Random(5);
    let (mut beyond, mut inside) = (0, 0);
    for (bits, step, wrap) in [
        (32, 16, false),
        (32, 4, true),
        (18, 4, false),
        (18, 4, true),
        (20, 200, true),
        (17, 1, false),
    ] {
        let overflow = if wrap { "wrap" } else { "saturate" };
        let register = format!("int{bits}b-{}", bits - 2);
        let unit: Unit =
            format!("custom,l={step},overflow={overflow}:int8b-6+{register}").parse().unwrap();
        assert_eq!(unit.parameters().output, register.parse::<Format>().unwrap());
        for _ in 0..300 {
            let k = 1 + random.below(100) as usize;
            let all: Vec<i64> = (0..2 * k).map(|_| i64::from(random.word() as i8)).collect();
            let (a, b) = all.split_at(k);
            let codes = |x: &[i64]| x.iter().map(|x| (*x as u64) & 0xFF).collect::<Vec<_>>();
            let start = random.word() as i64 >> (64 - bits);
            let rows = unit.rows(&codes(a), &[], k).unwrap();
            let columns = unit.columns(&codes(b), &[], k).unwrap();
            let mask = (1_u64 << bits) - 1;
            let expected = integers(a, b, start, step, bits, wrap) as u64 & mask;
            assert_eq!(
                unit.dot(&rows.row(0), &columns.row(0), start as u64 & mask),
                expected,
                "{unit}"
            );
            let mut sums = [start as u64 & mask];
            unit.multiply(&rows, &columns, &mut sums);
            assert_eq!(sums, [expected]);
            let whole = integers(a, b, start, k, 62, false);
            *(if whole == integers(a, b, start, step, bits, wrap) {
                &mut inside
            } else {
                &mut beyond
            }) += 1;
        }
    }
    assert!(beyond > 200 && inside > 300, "{beyond} {inside}");
}

#[test]
fn terms_are_cut_at_the_last_place() {
    // 24 bits with 8 behind the point: 1.125^2 = 1.265625 = 324 / 256; -2^-9 * 1 is cut away or down.
    let dot = |unit: &str, a: &[u64], b: &[u64], c: f32| {
        let unit: Unit = unit.parse().unwrap();
        let (rows, columns) = (unit.rows(a, &[], a.len()), unit.columns(b, &[], b.len()));
        let (rows, columns) = (rows.unwrap(), columns.unwrap());
        let code = unit.dot(&rows.row(0), &columns.row(0), c.to_bits().into());
        let explained = unit.explain(&rows.row(0), &columns.row(0), c.to_bits().into());
        assert_eq!(explained.code, code);
        (f32::from_bits(code as u32), explained.to_string())
    };
    let unit = "custom,l=4,out=int24b14@rne";
    assert_eq!("int24b14".parse::<Format>().unwrap().lsb(), -36);
    let unit = unit.replace("b14", "b-14");
    assert_eq!("int24b-14".parse::<Format>().unwrap().lsb(), -8);
    let (one, nine_eighths, least) = (0x38, 0x39, 0x81); // 1, 1.125, -2^-9
    let (a, b) = ([nine_eighths, least], [nine_eighths, one]);
    assert_eq!(dot(&format!("{unit}:e4m3"), &a, &b, 0.0).0, 324.0 / 256.0);
    assert_eq!(dot(&format!("{unit},align=rd:e4m3"), &a, &b, 0.0).0, 323.0 / 256.0);
    // 448^2 is 200704, beyond 2^15: the end, or what is left of it.
    let (large, c) = ([0x7E], 0.5);
    let (end, text) = dot(&format!("{unit}:e4m3"), &large, &large, c);
    assert_eq!(end, 32768.0 - 1.0 / 256.0);
    assert!(text.contains("beyond the register's ends: 8388607"), "{text}");
    let wrapped = (200_704.5_f32 + 32768.0).rem_euclid(65536.0) - 32768.0;
    assert_eq!(dot(&format!("{unit},overflow=wrap:e4m3"), &large, &large, c).0, wrapped);
    // Scales move a term far beyond any register, and below it.
    let unit: Unit = format!("{unit}:mxfp8-e4m3").parse().unwrap();
    for (scale, sum) in [(0xFE, 32768.0 - 1.0 / 256.0), (0x00, 0.0), (0x7F, 2.0)] {
        let rows = unit.rows(&[0x38, 0x38], &[scale], 2).unwrap();
        let columns = unit.columns(&[0x38, 0x38], &[0x7F], 2).unwrap();
        let code = unit.dot(&rows.row(0), &columns.row(0), 0);
        assert_eq!(f32::from_bits(code as u32), sum, "{scale:#x}");
    }
    let nan = unit.rows(&[0x7F, 0x38], &[0x7F], 2).unwrap();
    let columns = unit.columns(&[0x38, 0x38], &[0x7F], 2).unwrap();
    assert!(f32::from_bits(unit.dot(&nan.row(0), &columns.row(0), 0) as u32).is_nan());
}

#[test]
fn impossible_registers_are_answered() {
    for (text, part) in [
        ("custom:e4m3+int32b-30", "operands with NaN"),
        ("custom,out=int32b-30@rtz,align=sticky:int8", "align=rz or rd"),
        ("custom,out=int32b-30@rtz,promote=8:int8", "no promote="),
        ("custom,out=int32b-30@rtz,order=tree,l=4:int8", "have order=fused"),
        ("custom,out=int32b-30@rtz:e2m1/16:ue4m3", "powers of two"),
        ("custom,out=f32@rne:int8+int32", "out= must be"),
        ("custom,overflow=clip:int8", "saturate or wrap"),
        ("hopper:int8+int32", "does not multiply"),
        // MX's int32 ends at 2, and a product of integers is beyond that.
        ("custom,out=int32@rtz:int8b-6", "are intWb(2-W), as int32b-30@rtz"),
        ("custom,out=INT8@rne:int8b-6", "int8b-6@rtz"),
    ] {
        let error = text.parse::<Unit>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: no {part:?} in {error}");
    }
    for text in ["custom,out=int32b-30@rtz,overflow=wrap:int8b-6", "custom,out=int32b0@rtz:int8b-6"]
    {
        assert_eq!(text.parse::<Unit>().unwrap().to_string(), text);
    }
}
