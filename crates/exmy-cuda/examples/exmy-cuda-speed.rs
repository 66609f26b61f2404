//! Times products and images on a GPU, each as the median of several launches, next to a copy on the device;
//! the kernels of which images consist; how many launches a second several streams begin.
//!
//!     cargo run --release -p exmy-cuda --example exmy-cuda-speed [products|images|kernels|launches]
//!
//! `scripts/gpu-peers.py` times what PyTorch reaches, for the same sizes.

use std::process::ExitCode;
use std::time::Instant;

use exmy::block::Axis;
use exmy::gemm::fast::Scaling;
use exmy::minifloat::Bf16;
use exmy::quantizer::Quantizer;
use exmy::random::{Philox, Stream};
use exmy_cuda::{
    Buffer, Device, Matrix, Order, Result, Scales, View, ViewMut, image_into, multiply, words_into,
};

/// Milliseconds of one of `repeats` launches: the median of five rounds, after one to warm up.
fn median(device: &Device, repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f32> {
    work()?;
    let mut rounds = Vec::new();
    for _ in 0..5 {
        let time = device.time(|| (0..repeats).try_for_each(|_| work()))?;
        rounds.push(time / repeats as f32);
    }
    rounds.sort_by(f32::total_cmp);
    Ok(rounds[2])
}

/// Random numbers between 1/2 and 2 of both signs, made on the device.
fn numbers(device: &Device, count: usize, seed: u64) -> Result<Buffer<f32>> {
    let mut words = device.zeros::<u32>(count.min(1 << 24))?;
    words_into(Philox::new(seed, Stream::new("speed")), 0, &mut words)?;
    let x: Vec<f32> = words
        .to_vec()?
        .into_iter()
        .map(|word| f32::from_bits(word & 0x80FF_FFFF | 0x3F00_0000))
        .collect();
    let all: Vec<f32> = x.iter().copied().cycle().take(count).collect();
    device.upload(&all)
}

fn product(device: &Device, order: Order, (m, k, n): (usize, usize, usize)) -> Result<()> {
    let (a, b) = (numbers(device, m * k, 1)?, numbers(device, n * k, 2)?);
    let mut c = device.zeros::<f32>(m * n)?;
    let flops = 2.0 * (m * k) as f64 * n as f64;
    let repeats = (3e11 / flops).clamp(2.0, 50.0) as usize;
    let none = Scales::default();
    let narrow = |x: &Buffer<f32>| -> Result<Buffer<Bf16>> {
        let mut y = device.zeros::<Bf16>(x.len())?;
        let plain = exmy_cuda::Converter::new(exmy::Format::BF16, exmy::Rules::DEFAULT);
        plain.fake_quantize_bf16(x, &mut y)?;
        Ok(y)
    };
    let with = Scaling::OVERWRITE;
    let mut print = |what: &str, a: Matrix<'_>, b: Matrix<'_>| -> Result<()> {
        let time = median(device, repeats, || {
            multiply(order, a, b, ViewMut::new(&mut c, m, n)?, with, none)
        })?;
        let speed = flops / f64::from(time) / 1e9;
        println!("{order:?} {what:<22} {m} x {k} x {n}: {time:.4} ms, {speed:.1} TFLOP/s");
        Ok(())
    };
    match order {
        Order::HopperE4m3 => {
            let rules = exmy::Rules::SATURATING;
            let encode = |x| exmy_cuda::Converter::new(exmy::Format::E4M3FN, rules).encode::<u8>(x);
            let (a, b) = (encode(&a)?, encode(&b)?);
            print("e4m3 nt", View::new(&a, m, k)?.into(), Matrix::from(View::new(&b, n, k)?).t())
        }
        Order::HopperBf16 => {
            let (a, b) = (narrow(&a)?, narrow(&b)?);
            print("bf16 nt", View::new(&a, m, k)?.into(), Matrix::from(View::new(&b, n, k)?).t())?;
            print("bf16 nn", View::new(&a, m, k)?.into(), View::new(&b, k, n)?.into())
        }
        _ => {
            print("f32 nt", View::new(&a, m, k)?.into(), Matrix::from(View::new(&b, n, k)?).t())?;
            print("f32 nn", View::new(&a, m, k)?.into(), View::new(&b, k, n)?.into())?;
            print("f32 tn", Matrix::from(View::new(&a, k, m)?).t(), View::new(&b, k, n)?.into())?;
            if order == Order::Fast {
                let (a, b) = (narrow(&a)?, narrow(&b)?);
                print(
                    "bf16 nt",
                    View::new(&a, m, k)?.into(),
                    Matrix::from(View::new(&b, n, k)?).t(),
                )?;
            }
            Ok(())
        }
    }
}

fn images(device: &Device) -> Result<()> {
    let (rows, cols) = (16384, 8192);
    let count = rows * cols;
    let x = numbers(device, count, 3)?;
    let mut copy = device.zeros::<f32>(count)?;
    let time = median(device, 10, || copy.copy_from(&x))?;
    let rate = |bytes: usize, time: f32| bytes as f64 / f64::from(time) / 1e6;
    let best = rate(8 * count, time);
    println!("copy of {rows} x {cols} f32: {time:.3} ms, {best:.0} GB/s");
    drop(copy);
    let random = Philox::new(7, Stream::new("speed"));
    let mut narrow = device.zeros::<Bf16>(count)?;
    let mut wide = device.zeros::<f32>(count)?;
    let texts = [
        "mxfp8-e4m3",
        "mxfp4",
        "nvfp4",
        "nvfp4-16x16",
        "bf16>e8m3@rtz",
        "e8m3@rtz",
        "e4m3fn",
        "rht16>mxfp4",
        "rht16>mxfp8-e4m3",
        "bf16>rht16>nvfp4@sr8",
        "mxfp8-e4m3@sr8",
        "mxfp4@sr8",
        "nvfp4@sr8",
        "mxfp8-e4m3@rna",
        "nvfp4@4over6",
    ];
    for text in texts {
        let Ok(quantizer) = text.parse::<Quantizer>() else { continue };
        for axis in [Axis::Cols, Axis::Rows] {
            let view = View::new(&x, rows, cols)?;
            let half = median(device, 5, || {
                image_into(&quantizer, view, axis, random, ViewMut::new(&mut narrow, rows, cols)?)
            })?;
            let full = median(device, 5, || {
                image_into(&quantizer, view, axis, random, ViewMut::new(&mut wide, rows, cols)?)
            })?;
            let (half_rate, full_rate) = (rate(6 * count, half), rate(8 * count, full));
            println!(
                "{text:<22} {axis:?}: bf16 {half:.3} ms, {half_rate:.0} GB/s, {:.2} of a copy; f32 \
                 {full:.3} ms, {full_rate:.0} GB/s, {:.2}",
                half_rate / best,
                full_rate / best
            );
        }
    }
    Ok(())
}

/// The time of each kernel of some images of 16384 x 8192 numbers; launches are waited for.
fn kernels(device: &Device) -> Result<()> {
    let (rows, cols) = (16384, 8192);
    let x = numbers(device, rows * cols, 3)?;
    let mut out = device.zeros::<Bf16>(rows * cols)?;
    let random = Philox::new(7, Stream::new("speed"));
    exmy_cuda::times::begin();
    for text in ["mxfp8-e4m3", "nvfp4", "mxfp8-e4m3@sr8", "nvfp4@sr8", "bf16>rht16>nvfp4@sr8"] {
        let Ok(quantizer) = text.parse::<Quantizer>() else { continue };
        for axis in [Axis::Cols, Axis::Rows] {
            let mut all = |times: usize| -> Result<()> {
                (0..times).try_for_each(|_| {
                    let to = ViewMut::new(&mut out, rows, cols)?;
                    image_into(&quantizer, View::new(&x, rows, cols)?, axis, random, to)
                })
            };
            all(2)?;
            exmy_cuda::times::table();
            all(10)?;
            println!("{text} {axis:?}, 10 images in bf16\n{}", exmy_cuda::times::table());
        }
    }
    Ok(())
}

/// How many launches of a kernel that does next to nothing so many streams begin together, each fed by a
/// thread.
fn launches(device: &Device, streams: usize) -> Result<f64> {
    const EACH: usize = 200_000;
    let random = Philox::new(7, Stream::new("speed"));
    let work = |count: usize, stream: &Device| -> Result<()> {
        let mut words = stream.zeros::<u32>(4)?;
        (0..count).try_for_each(|_| words_into(random, 0, &mut words))?;
        words.to_vec().map(drop)
    };
    let streams: Vec<_> = (0..streams).map(|_| device.stream()).collect::<Result<_>>()?;
    streams.iter().try_for_each(|stream| work(1000, stream))?;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            streams.iter().map(|stream| scope.spawn(|| work(EACH, stream))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok((EACH * streams.len()) as f64 / begun.elapsed().as_secs_f64())
}

fn run() -> Result<()> {
    let device = Device::new(0)?;
    println!("{}", device.properties().name);
    let wanted = std::env::args().nth(1);
    let wants = |what| wanted.as_deref().is_none_or(|wanted| wanted == what);
    if wants("products") {
        products(&device)?;
    }
    if wants("images") {
        images(&device)?;
    }
    if wants("launches") {
        for streams in [1, 2, 4, 8, 16] {
            let millions = launches(&device, streams)? / 1e6;
            println!("{streams} streams: {millions:.2} million launches a second");
        }
    }
    // Last, as launches are waited for from then on.
    if wants("kernels") {
        kernels(&device)?;
    }
    Ok(())
}

fn products(device: &Device) -> Result<()> {
    for size in [
        (512, 512, 512),
        (2048, 512, 2048),
        (2048, 2048, 2048),
        (4096, 4096, 4096),
        (8192, 8192, 8192),
    ] {
        for order in [Order::Fast, Order::F32, Order::HopperBf16, Order::HopperE4m3] {
            if size.0 == 8192 && order == Order::F32 {
                continue;
            }
            match product(device, order, size) {
                Err(exmy_cuda::Error::Architecture { needed, .. }) => {
                    println!("{order:?}: {needed}")
                }
                other => other?,
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
