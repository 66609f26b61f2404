//! Codes to numbers, codes to codes, and numbers of other types than `f32` to codes: elements a
//! second, next to a copy of the same bytes and to other crates.
//!
//! `cargo bench --bench decode --features half,parallel [-- PART-OF-A-NAME]`; `EXMY_SIMD=avx2`
//! measures another level.

mod common;

use std::hint::black_box;

use common::{Aligned, SIZES, Table, normal};
use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::quantizer::Cast;
use exmy::round::Rules;
use exmy::slice::{Converter, Real, decode_into};

fn format(text: &str) -> Format {
    text.parse().expect("a format")
}

fn codes<C: Bits>(text: &str, n: usize) -> Aligned<C> {
    let mut codes = Aligned::new(C::from_u64(0), n);
    Converter::from(Cast::new(format(text))).encode_into(&normal(n), &mut codes);
    codes
}

fn decode<'a, C: Bits + 'a, T: Real + Default + 'a>(
    table: &mut Table<'a>,
    text: &'static str,
    n: usize,
) {
    let (format, codes) = (format(text), codes::<C>(text, n));
    let mut out = Aligned::new(T::default(), n);
    table.row(text, move || decode_into(format, black_box(&codes), black_box(&mut out)));
}

fn encode<'a, S: Real + 'a, C: Bits + 'a>(
    table: &mut Table<'a>,
    text: &'static str,
    x: Aligned<S>,
) {
    let converter = Converter::from(Cast::new(format(text)));
    let mut codes = Aligned::new(C::from_u64(0), x.len());
    let name = format!("{} to {text}", S::FORMAT);
    table.row(&name, move || converter.encode_into(black_box(&x), black_box(&mut codes)));
}

fn recode<'a, C: Bits + 'a, D: Bits + 'a>(
    table: &mut Table<'a>,
    from: &'static str,
    to: &str,
    n: usize,
) {
    let converter = Converter::from(Cast::new(format(to)));
    let (from_format, codes) = (format(from), codes::<C>(from, n));
    let mut out = Aligned::new(D::from_u64(0), n);
    table.row(&format!("{from} to {to}"), move || {
        converter.recode_into(from_format, black_box(&codes), black_box(&mut out));
    });
}

fn of<S: Real>(x: &[f32]) -> Aligned<S> {
    let mut out = Aligned::new(S::from_code(0), x.len());
    let codes: Vec<u32> = x.iter().map(|x| x.to_bits()).collect();
    decode_into(Format::F32, &codes, &mut out);
    out
}

fn tables(threads: &str) {
    for n in SIZES {
        let mut table = Table::new(&format!("codes of one byte to f32, {threads}"), n, 1, 4);
        for text in ["e4m3", "e5m2", "e2m1", "e3m2", "int8", "e8m0", "e4m3fnuz"] {
            decode::<u8, f32>(&mut table, text, n);
        }
        let theirs: Vec<float8::F8E4M3> =
            codes::<u8>("e4m3", n).iter().copied().map(float8::F8E4M3::from_bits).collect();
        let mut out = Aligned::new(0.0_f32, n);
        table.row("float8 F8E4M3::to_f32, each", move || {
            for (out, x) in black_box(&mut out).iter_mut().zip(black_box(&theirs)) {
                *out = x.to_f32();
            }
        });
        table.print();

        let mut table = Table::new(&format!("codes of two bytes to f32, {threads}"), n, 2, 4);
        for text in ["bf16", "f16", "e8m3", "dlfloat16"] {
            decode::<u16, f32>(&mut table, text, n);
        }
        #[cfg(feature = "half")]
        {
            use half::slice::HalfFloatSliceExt as _;
            let f16s = of::<half::f16>(&normal(n));
            let bf16s = of::<half::bf16>(&normal(n));
            let mut out = Aligned::new(0.0, n);
            table.row("half, bf16", move || {
                black_box(&bf16s).convert_to_f32_slice(black_box(&mut out));
            });
            let mut out = Aligned::new(0.0, n);
            table.row("half, f16", move || {
                black_box(&f16s).convert_to_f32_slice(black_box(&mut out));
            });
        }
        table.print();

        let mut table = Table::new(&format!("codes of one byte to others, {threads}"), n, 1, 1);
        recode::<u8, u8>(&mut table, "e4m3", "e5m2", n);
        recode::<u8, u8>(&mut table, "e2m1", "e4m3", n);
        table.print();
        let mut table = Table::new(&format!("codes of one byte to two, {threads}"), n, 1, 2);
        recode::<u8, u16>(&mut table, "e4m3", "bf16", n);
        recode::<u8, u16>(&mut table, "e4m3", "f16", n);
        table.print();

        let mut table = Table::new(&format!("two bytes to one, {threads}"), n, 2, 1);
        recode::<u16, u8>(&mut table, "bf16", "e4m3", n);
        recode::<u16, u8>(&mut table, "f16", "e4m3", n);
        table.print();

        let mut table = Table::new(&format!("f32 to two bytes, {threads}"), n, 4, 2);
        encode::<f32, u16>(&mut table, "bf16", normal(n));
        encode::<f32, u16>(&mut table, "f16", normal(n));
        #[cfg(feature = "half")]
        {
            use half::slice::HalfFloatSliceExt as _;
            let (x, mut out) = (normal(n), Aligned::new(half::bf16::ZERO, n));
            table.row("half, bf16", move || {
                black_box(&mut out).convert_from_f32_slice(black_box(&x));
            });
            let (x, mut out) = (normal(n), Aligned::new(half::f16::ZERO, n));
            table.row("half, f16", move || {
                black_box(&mut out).convert_from_f32_slice(black_box(&x));
            });
        }
        table.print();

        let mut table = Table::new(&format!("f64 to codes of one byte, {threads}"), n, 8, 1);
        for text in ["e4m3", "e5m2", "e2m1"] {
            encode::<f64, u8>(&mut table, text, of(&normal(n)));
        }
        table.print();
        let mut table = Table::new(&format!("f64 to f64, {threads}"), n, 8, 8);
        for text in ["e4m3", "bf16"] {
            let converter = Converter::from(Cast::new(format(text)));
            let (x, mut out) = (of::<f64>(&normal(n)), Aligned::new(0.0, n));
            table.row(text, move || {
                converter.fake_quantize_into(black_box(&x), black_box(&mut out));
            });
        }
        table.print();
    }
}

/// What a call costs that has little to convert: nanoseconds of 32 elements.
fn short() {
    use exmy::minifloat::{E4M3, E5M2};
    println!("\n### 32 elements, nanoseconds\n\n| operation | ns |\n|---|---:|");
    let x = normal(32);
    let time = |name: &str, mut work: Box<dyn FnMut() + '_>| {
        let mut best = f64::INFINITY;
        for _ in 0..200 {
            let start = std::time::Instant::now();
            (0..100).for_each(|_| work());
            best = best.min(start.elapsed().as_nanos() as f64 / 100.0);
        }
        println!("| {name} | {best:.0} |");
    };
    let mut numbers = [E4M3::default(); 32];
    let each = |x: &[f32], out: &mut [E4M3]| {
        x.iter().zip(out).for_each(|(x, out)| *out = E4M3::from_f32(*x));
    };
    time("E4M3::from_f32, each", Box::new(|| each(black_box(&x), black_box(&mut numbers))));
    time("E4M3::from_slice", {
        Box::new(|| E4M3::from_slice(black_box(&x[..]), black_box(&mut numbers[..])))
    });
    let converter = Converter::new(Format::E4M3FN, Rules::SATURATING);
    time(
        "Converter::new",
        Box::new(|| {
            black_box(Converter::from(black_box(Cast::new(Format::E4M3FN))));
        }),
    );
    time("Converter::encode_typed", {
        Box::new(|| converter.encode_typed(black_box(&x[..]), black_box(&mut numbers[..])))
    });
    let mut out = [0.0_f32; 32];
    time(
        "E4M3::to_f32, each",
        Box::new(|| {
            black_box(&numbers)
                .iter()
                .zip(black_box(&mut out))
                .for_each(|(x, out)| *out = x.to_f32());
        }),
    );
    time("E4M3::to_slice", {
        Box::new(|| E4M3::to_slice(black_box(&numbers[..]), black_box(&mut out[..])))
    });
    let codes = exmy::slice::cast::as_bits(&numbers);
    time("decode_into", {
        Box::new(|| decode_into(Format::E4M3FN, black_box(codes), black_box(&mut out[..])))
    });
    let mut others = [E5M2::default(); 32];
    time("E5M2::from_minifloat_slice", {
        Box::new(|| E5M2::from_minifloat_slice(black_box(&numbers), black_box(&mut others)))
    });
}

fn main() {
    short();
    #[cfg(feature = "parallel")]
    exmy::parallel::with_threads(1, || tables("one thread")).expect("a thread");
    #[cfg(feature = "parallel")]
    tables(&format!("{} threads", exmy::parallel::threads()));
    #[cfg(not(feature = "parallel"))]
    tables("one thread");
}
