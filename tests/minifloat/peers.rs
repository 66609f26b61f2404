//! Which answers of other crates' scalar types differ from the exact result rounded once: facts
//! next to the figures of `benches/scalar.rs`.
//!
//! Each crate is compared by its own rule for overflow, and any NaN is equal to any NaN; so a
//! difference is a number that is not the nearest one. Binary64 arguments are the midpoints of the
//! format and their neighbours. The operands of `fma` are 200 000 random triples, and
//! `fma` is that of `f32`, rounded again, where the crate has none of its own.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounded, Rules};

/// A type of another crate by its codes.
struct Peer {
    from_f64: fn(f64) -> u64,
    add: fn(u64, u64) -> u64,
    mul: fn(u64, u64) -> u64,
    div: fn(u64, u64) -> u64,
    fma: fn(u64, u64, u64) -> u64,
}

macro_rules! peer {
    ($type:ty, $bits:ty) => {{
        fn at(code: u64) -> $type {
            <$type>::from_bits(code as $bits)
        }
        Peer {
            from_f64: |x| <$type>::from_f64(x).to_bits().into(),
            add: |a, b| (at(a) + at(b)).to_bits().into(),
            mul: |a, b| (at(a) * at(b)).to_bits().into(),
            div: |a, b| (at(a) / at(b)).to_bits().into(),
            fma: |a, b, c| {
                let exact = at(a).to_f32().mul_add(at(b).to_f32(), at(c).to_f32());
                <$type>::from_f32(exact).to_bits().into()
            },
        }
    }};
}

/// Numbers of wrong answers: from_f64, add, mul, div, fma.
fn wrong(format: Format, overflow: Overflow, peer: &Peer) -> [usize; 5] {
    let context = Context::new(format, Rules::DEFAULT.with_overflow(overflow));
    let differs = |ours: Rounded, theirs: u64| {
        let (a, b) = (format.decode(ours.code), format.decode(theirs));
        !(a.is_nan() && b.is_nan()) && a != b
    };
    let mut counts = [0; 5];
    for code in 0..format.max_code() {
        let midpoint = (format.to_f64(code) + format.to_f64(code + 1)) / 2.0;
        for x in [midpoint.next_down(), midpoint, midpoint.next_up()] {
            let ours = context.convert(Operand::f64(x));
            counts[0] += usize::from(differs(ours, (peer.from_f64)(x)));
        }
    }
    let mut pair = |a: u64, b: u64| {
        let (x, y) = (Operand::new(format, a), Operand::new(format, b));
        if !x.value().is_finite() || !y.value().is_finite() {
            return;
        }
        counts[1] += usize::from(differs(context.add(x, y), (peer.add)(a, b)));
        counts[2] += usize::from(differs(context.mul(x, y), (peer.mul)(a, b)));
        if !y.value().is_zero() {
            counts[3] += usize::from(differs(context.div(x, y), (peer.div)(a, b)));
        }
    };
    let random = Philox::new(3, Stream::new("peers"));
    let mask = *format.codes().end();
    let code = |i: u64| u64::from(random.word(i)) & mask;
    if format.bits() <= 8 {
        format.codes().for_each(|a| format.codes().for_each(|b| pair(a, b)));
    } else {
        (0..200_000).for_each(|i| pair(code(2 * i), code(2 * i + 1)));
    }
    for i in 0..200_000 {
        let [a, b, c] = [code(3 * i), code(3 * i + 1), code(3 * i + 2)];
        let [x, y, z] = [a, b, c].map(|code| Operand::new(format, code));
        if [x, y, z].iter().all(|x| x.value().is_finite()) {
            counts[4] += usize::from(differs(context.fma(x, y, z), (peer.fma)(a, b, c)));
        }
    }
    counts
}

#[test]
fn counts() {
    let (natural, saturating) = (Overflow::None, Overflow::Finite);
    let cases = [
        ("half f16", Format::F16, natural, peer!(half::f16, u16), [31743, 0, 0, 0, 2]),
        ("half bf16", Format::BF16, natural, peer!(half::bf16, u16), [16320, 0, 0, 0, 491]),
        ("float8 e4m3", Format::E4M3FN, saturating, peer!(float8::F8E4M3, u8), [0; 5]),
        ("float8 e5m2", Format::E5M2, saturating, peer!(float8::F8E5M2, u8), [0, 0, 0, 0, 199]),
        ("minifloat e4m3", Format::E4M3FN, saturating, peer!(minifloat::F8E4M3FN, u8), [0; 5]),
        ("minifloat e5m2", Format::E5M2, natural, peer!(minifloat::F8E5M2, u8), [0, 0, 0, 0, 236]),
        ("minifloat e2m1", Format::E2M1, natural, peer!(minifloat::F4E2M1FN, u8), [0; 5]),
        ("minifloat f16", Format::F16, natural, peer!(minifloat::F16, u16), [0, 0, 0, 0, 2]),
        ("minifloat bf16", Format::BF16, natural, peer!(minifloat::BF16, u16), [0, 0, 0, 0, 491]),
        (
            "microfloat e4m3",
            Format::E4M3FN,
            natural,
            peer!(microfloat::f8e4m3fn, u8),
            [126, 32, 0, 0, 35],
        ),
        (
            "microfloat e5m2",
            Format::E5M2,
            natural,
            peer!(microfloat::f8e5m2, u8),
            [123, 0, 0, 0, 236],
        ),
        (
            "microfloat e2m1",
            Format::E2M1,
            natural,
            peer!(microfloat::f4e2m1fn, u8),
            [7, 0, 0, 0, 0],
        ),
    ];
    for (name, format, overflow, peer, expected) in cases {
        assert_eq!(wrong(format, overflow, &peer), expected, "{name}");
    }
}

/// exp by way of `f32`, rounded again: how often it is not the nearest f16 or bf16, of all codes.
#[test]
fn exp_by_way_of_f32() {
    let mut wrong = [0; 2];
    for code in 0..=u16::MAX {
        let exp = |x: f32| libm::expf(x);
        let (x, y) = (half::f16::from_bits(code), half::bf16::from_bits(code));
        let theirs = (half::f16::from_f32(exp(x.to_f32())), half::bf16::from_f32(exp(y.to_f32())));
        let ours = (exmy::minifloat::F16::from_bits(code), exmy::minifloat::Bf16::from_bits(code));
        let ours = (ours.0.exp(), ours.1.exp());
        wrong[0] += usize::from(ours.0.to_bits() != theirs.0.to_bits() && !x.is_nan());
        wrong[1] += usize::from(ours.1.to_bits() != theirs.1.to_bits() && !y.is_nan());
    }
    assert_eq!(wrong, [2, 0]);
}
