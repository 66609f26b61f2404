//! Devices that fail while a run trains: the last checkpoint stands, and the run goes on from it elsewhere to
//! the same bytes.

use std::path::Path;

use exmy_cuda::train::{Cuda, verify};
use exmy_cuda::{Device, Emulation, Error};
use exmy_train::nn::device::Cpu;
use exmy_train::recipe::device::Quantize;
use exmy_train::train::config::Config;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Job, Outcome, Watch, load_data, lock, train_on};

struct Silent;

impl Watch for Silent {
    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        true
    }

    fn phase(&mut self, _: &str) {}
}

fn config() -> Config {
    let mut config = verify::runs::config(verify::runs::FAMILIES[3], "mxfp8-e4m3").unwrap();
    config.train = config.train.with_steps(6);
    config.record.checkpoint_every = 1;
    config.record.eval_every = 0;
    load_data(&mut config).unwrap();
    config
}

fn train<D: Quantize>(
    device: &D,
    folder: &Folder,
    config: &Config,
) -> exmy::error::Result<Outcome> {
    let mut config = config.clone();
    let data = load_data(&mut config)?;
    if !folder.config_file().exists() {
        folder.create(&config)?;
    }
    let lock = lock(folder)?.unwrap();
    train_on(device, Job::new(folder, &data, &mut Silent, &lock))
}

fn checkpoints(folder: &Folder) -> usize {
    std::fs::read_dir(folder.checkpoints()).map_or(0, Iterator::count)
}

fn bytes(folder: &Path) -> [Vec<u8>; 2] {
    ["metrics.jsonl", "model.safetensors"].map(|name| std::fs::read(folder.join(name)).unwrap())
}

fn emulated(fails: Option<(u64, Error)>, memory: usize) -> Option<Device> {
    let emulation = Emulation { fails, memory, ..Emulation::default() };
    Device::emulated_with(env!("CARGO_TARGET_TMPDIR"), emulation).map(Result::unwrap)
}

#[test]
fn a_run_goes_on_from_the_last_checkpoint_of_a_lost_device() {
    let config = config();
    let place = tempfile::tempdir().unwrap();
    let folder = |name: &str| Folder::new(place.path().join(name));
    train(&Cpu::new(), &folder("whole"), &config).unwrap();
    let lost = Error::Lost { device: "emulated".into(), reason: "gone".into() };
    let kernel = Error::Kernel { name: "norm_rows".into(), reason: "illegal address".into() };
    for (name, failure) in [("lost", lost), ("kernel", kernel)] {
        let parts = folder(name);
        // Into the third or fourth step: one has some ninety launches.
        let Some(device) = emulated(Some((300, failure.clone())), 1 << 34) else { return };
        let cuda = Cuda::new(device);
        let error = train(&cuda, &parts, &config).unwrap_err().to_string();
        assert!(error.contains(&failure.to_string()), "{error}");
        assert_eq!(cuda.take_failure(), Some(failure));
        let done = checkpoints(&parts);
        assert!(parts.summary().unwrap().is_none() && (1..6).contains(&done), "{name}: {done}");
        // On another device of the same kind for a while, then on the processor.
        let resumed = if name == "lost" {
            train(&Cpu::new(), &parts, &config)
        } else {
            train(&Cuda::new(emulated(None, 1 << 34).unwrap()), &parts, &config)
        };
        assert!(resumed.unwrap().summary.is_some());
        assert!(bytes(parts.path()) == bytes(folder("whole").path()), "{name}");
    }
}

/// What was asked for, what is free, and nothing lost: a run that does not fit is begun again with more
/// memory.
#[test]
fn a_run_goes_on_where_there_is_more_memory() {
    let config = config();
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::new(place.path().join("run"));
    let Some(device) = emulated(None, 300_000) else { return };
    let cuda = Cuda::new(device);
    let error = train(&cuda, &folder, &config).unwrap_err().to_string();
    assert!(error.contains("memory is full") && error.contains("are free"), "{error}");
    let Some(Error::Memory { asked, free, total }) = cuda.take_failure() else { panic!("{error}") };
    assert!(asked > free && free <= total && total == 300_000);
    let more = Cuda::new(emulated(None, 1 << 34).unwrap());
    assert!(train(&more, &folder, &config).unwrap().summary.is_some());
    let whole = Folder::new(place.path().join("whole"));
    train(&Cpu::new(), &whole, &config).unwrap();
    assert!(bytes(folder.path()) == bytes(whole.path()));
}
