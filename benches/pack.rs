//! Packing of codes, elements a second, next to a copy of the same bytes: codes of up to 8 bits in
//! bytes, wider ones in integers of 16 bits; one thread, then all.
//!
//! `cargo bench --bench pack --features parallel [-- PART-OF-A-NAME]`; `EXMY_SIMD=avx2` measures
//! another level. The first row of every table copies whole bytes; the second, where there is one,
//! as many as the operation reads and writes.

mod common;

use std::hint::black_box;

use common::{SIZES, Table};
use exmy::pack::{self, Code, Layout, ScaleLayout, ggml};
use exmy::parallel::{threads, with_threads};
use exmy::random::{Philox, Stream};

fn codes<C: Code>(width: u32, count: usize) -> Vec<C> {
    let random = Philox::new(0, Stream::new("bench"));
    let mask = ((1_u32 << width) - 1) as u16;
    // Words of 256 blocks, repeated: no packer is faster for some codes than for others.
    let some: Vec<C> = (0..256)
        .flat_map(|block| random.block(block))
        .filter_map(|word| C::try_from(word as u16 & mask).ok())
        .collect();
    some.iter().copied().cycle().take(count).collect()
}

/// A row that moves as many bytes as packing to `width` bits, or with `back` unpacking, does.
fn same_bytes<'a>(table: &mut Table<'a>, n: usize, width: usize, each: usize, back: bool) {
    let (read, write) = if back { (width, each) } else { (each, width) };
    let (from, mut to) = (vec![1_u8; n * read / 8], vec![0_u8; n * write / 8]);
    table.row(&format!("copy of {read} bits in, {write} out, for {width}"), move || {
        let (from, to) = (black_box(&from), black_box(&mut to));
        let both = from.len().min(to.len());
        to[..both].copy_from_slice(&from[..both]);
        // What only one side has is read, or written.
        let words = from[both..].as_chunks::<64>().0;
        let all = words.iter().fold([0_u8; 64], |mut all, word| {
            all.iter_mut().zip(word).for_each(|(all, byte)| *all |= byte);
            all
        });
        black_box(all);
        to[both..].fill(1);
    });
}

/// Prints a table and the last row as a part of the one before.
fn print(table: Table<'_>) {
    if let [.., copy, speed] = table.print()[..] {
        println!("\n{:.2} of the copy of the same bytes", speed / copy);
    }
}

/// One table a direction and width, since each moves other bytes.
fn stream<C: Code>(width: u32, n: usize, threads: &str) {
    let (bits, each) = (width as usize, C::BITS as usize);
    let input: Vec<C> = codes(width, n);
    let packed = pack::pack(&input, width).expect("codes of the width");

    let mut bytes = packed.clone();
    let title = format!("codes of {width} bits in {each}, {threads}: pack");
    let mut table = Table::new(&title, n, each / 8, each / 8);
    same_bytes(&mut table, n, bits, each, false);
    table.row(&format!("pack {width}"), || {
        pack::pack_into(black_box(&input), width, black_box(&mut bytes)).expect("they fit");
    });
    print(table);

    let mut out = input.clone();
    let title = format!("codes of {width} bits in {each}, {threads}: unpack");
    let mut table = Table::new(&title, n, each / 8, each / 8);
    same_bytes(&mut table, n, bits, each, true);
    table.row(&format!("unpack {width}"), || {
        pack::unpack_into(black_box(&packed), width, black_box(&mut out)).expect("they fit");
    });
    print(table);
}

fn containers(n: usize, threads: &str) {
    let (fp4, fp6) = (codes::<u8>(4, n), codes::<u8>(6, n));
    let title = format!("containers, {threads}");
    let mut table = Table::new(&title, n, 1, 1);
    for layout in Layout::ALL {
        let mut bytes = layout.pack(&fp6, 6).expect("codes of 6 bits");
        let (packed, mut out) = (bytes.clone(), fp6.clone());
        let fp6 = &fp6;
        table.row(&format!("pack 6 as {layout}"), move || {
            layout.pack_into(black_box(fp6), 6, black_box(&mut bytes)).expect("they fit");
        });
        table.row(&format!("unpack 6 from {layout}"), move || {
            layout.unpack_into(black_box(&packed), 6, black_box(&mut out)).expect("they fit");
        });
    }
    let scales = vec![0x7F; n / 32];
    let mut bytes = ggml::pack(&fp4, &scales).expect("whole blocks");
    let (packed, mut out, mut back) = (bytes.clone(), fp4.clone(), scales.clone());
    table.row("pack 4 as ggml-mxfp4", move || {
        ggml::pack_into(black_box(&fp4), &scales, black_box(&mut bytes)).expect("they fit");
    });
    table.row("unpack 4 from ggml-mxfp4", move || {
        ggml::unpack_into(black_box(&packed), black_box(&mut out), &mut back).expect("they fit");
    });
    table.print();
}

fn scales(n: usize, threads: &str) {
    let (rows, cols) = (n / 64, 64);
    let input = codes::<u8>(8, n);
    let mut tiles = ScaleLayout::Tiled.pack(&input, rows, cols).expect("a matrix");
    let (packed, mut out) = (tiles.clone(), input.clone());
    let mut table = Table::new(&format!("scales, {threads}"), n, 1, 1);
    table.row("scales to 128x4", || {
        let (input, tiles) = (black_box(&input), black_box(&mut tiles));
        ScaleLayout::Tiled.pack_into(input, rows, cols, tiles).expect("they fit");
    });
    table.row("scales from 128x4", || {
        let (packed, out) = (black_box(&packed), black_box(&mut out));
        ScaleLayout::Tiled.unpack_into(packed, rows, cols, out).expect("they fit");
    });
    table.print();
}

fn tables(threads: &str) {
    for n in SIZES {
        for width in [4, 6, 3, 7] {
            stream::<u8>(width, n, threads);
        }
        for width in [4, 9, 12] {
            stream::<u16>(width, n, threads);
        }
        containers(n, threads);
        scales(n, threads);
    }
}

fn main() {
    with_threads(1, || tables("1 thread")).expect("a thread");
    if threads() > 1 {
        tables(&format!("{} threads", threads()));
    }
}
