//! The kernels without a GPU: all compile by NVRTC, and their bits are right when a C++ compiler translates
//! them. What needs a tool that is not there is skipped with a line that the end of CI counts.

mod blocks;
mod compiled;
mod conversions;
mod failures;
mod layers;
mod models;
mod products;
mod ranks;
mod runtime;
mod verified;

use std::sync::OnceLock;

use exmy_cuda::Device;

/// A check that cannot be made here.
fn skipped(what: &str) {
    use std::io::Write;
    println!("skipped: {what}");
    if let Some(path) = std::env::var_os("EXMY_SKIPPED")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        drop(writeln!(file, "exmy-cuda: skipped: {what}"));
    }
}

/// The emulated device, which all tests share.
fn device() -> Option<Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| Device::emulated(env!("CARGO_TARGET_TMPDIR")));
    if device.is_none() {
        skipped("no C++ compiler");
    }
    device.clone()
}
