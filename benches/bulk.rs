//! Conversion of slices of `f32`: elements a second, next to a copy of the same bytes and to
//! other crates.
//!
//! `cargo bench --bench bulk --features half,parallel [-- PART-OF-A-NAME]`; `EXMY_SIMD=avx2` measures
//! another level.

mod common;

use std::hint::black_box;

use common::{Aligned, SIZES, Table, normal};
use exmy::minifloat::Bits;
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::slice::{Converter, words_into};

const RANDOM: Philox = Philox::new(1, Stream::new("sr"));

fn converter(text: &str) -> Converter<'static> {
    let (format, rounding) = text.split_once('@').unwrap_or((text, "rne"));
    let cast = Cast::new(format.parse().expect("a format"));
    Converter::from(cast.with_rounding(rounding.parse().expect("a mode"))).with_random(RANDOM)
}

fn encode<'a, C: Bits + 'a>(table: &mut Table<'a>, text: &str, x: &'a [f32]) {
    let converter = converter(text);
    let mut codes = Aligned::new(C::from_u64(0), x.len());
    table.row(text, move || converter.encode_into(black_box(x), black_box(&mut codes)));
}

fn fake<'a>(table: &mut Table<'a>, text: &str, x: &'a [f32]) {
    let converter = converter(text);
    let mut out = Aligned::new(0.0, x.len());
    table.row(text, move || converter.fake_quantize_into(black_box(x), black_box(&mut out)));
}

fn tables(threads: &str) {
    for n in SIZES {
        let x = &*normal(n);
        let mut table = Table::new(&format!("f32 to codes of one byte, {threads}"), n, 4, 1);
        for text in [
            "e4m3", "e5m2", "e4m3fnuz", "e3m2", "e2m3", "e2m1", "int8", "ue4m3", "e4m3@rtz",
            "e4m3@odd", "e4m3@sr8",
        ] {
            encode::<u8>(&mut table, text, x);
        }
        let mut codes = Aligned::new(float8::F8E4M3::from_bits(0), n);
        table.row("float8 F8E4M3::from_f32, each", move || {
            for (code, x) in black_box(&mut codes).iter_mut().zip(black_box(x)) {
                *code = float8::F8E4M3::from_f32(*x);
            }
        });
        table.print();

        let mut table = Table::new(&format!("f32 to codes of two bytes, {threads}"), n, 4, 2);
        for text in ["bf16", "f16", "e8m3", "f16@rtz", "bf16@sr16"] {
            encode::<u16>(&mut table, text, x);
        }
        #[cfg(feature = "half")]
        {
            use half::slice::HalfFloatSliceExt;
            let mut codes = Aligned::new(half::bf16::ZERO, n);
            table.row("half, bf16", move || {
                black_box(&mut codes).convert_from_f32_slice(black_box(x))
            });
            let mut codes = Aligned::new(half::f16::ZERO, n);
            table.row("half, f16", move || {
                black_box(&mut codes).convert_from_f32_slice(black_box(x))
            });
        }
        table.print();

        let mut table = Table::new(&format!("f32 to f32, {threads}"), n, 4, 4);
        for text in [
            "e4m3", "e5m2", "e8m3", "e5m10", "e2m1", "e3m2", "e4m3fnuz", "int8", "ue4m3",
            "e8m3@rtz", "bf16@rtz", "e4m3@rtz", "e4m3@rup", "e4m3@odd", "e4m3@sr8",
        ] {
            fake(&mut table, text, x);
        }
        let mut words = Aligned::new(0, n);
        table.row("random words alone", move || words_into(RANDOM, 0, black_box(&mut words)));
        table.print();
    }
}

fn main() {
    #[cfg(feature = "parallel")]
    exmy::parallel::with_threads(1, || tables("one thread")).expect("a thread");
    #[cfg(feature = "parallel")]
    tables(&format!("{} threads", exmy::parallel::threads()));
    #[cfg(not(feature = "parallel"))]
    tables("one thread");
}
