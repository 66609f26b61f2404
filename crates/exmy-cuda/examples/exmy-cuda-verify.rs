//! Compares a GPU with this processor, bit for bit, and prints a table; ends with 1 if a number differs.
//!
//!     cargo run --release -p exmy-cuda --example exmy-cuda-verify [NUMBER OF THE GPU]

use std::process::ExitCode;
use std::time::Instant;

use exmy_cuda::verify::{Extent, library};
use exmy_cuda::{Device, Result};

fn run() -> Result<bool> {
    let index = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let device = Device::new(index)?;
    let of = device.properties();
    let ((major, minor), driver) = (of.capability, of.driver);
    println!("{} ({major}.{minor}), driver for CUDA {}.{}", of.name, driver.0, driver.1);
    let start = Instant::now();
    device.prepare()?;
    println!("kernels compiled or loaded in {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let rows = library(&device, Extent::Full, |row| println!("{row}"))?;
    println!("compared in {:.1} s", start.elapsed().as_secs_f64());
    Ok(rows.iter().all(|row| row.first.is_none()))
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
