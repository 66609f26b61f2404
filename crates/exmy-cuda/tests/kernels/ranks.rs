//! One run on several devices of a process: the bytes of one, and the end of all where one fails.

use exmy_cuda::train::{Cuda, nccl, ring, verify};
use exmy_cuda::{Device, Emulation, Error};
use exmy_train::nn::device::Cpu;
use exmy_train::train::config::Config;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Job, Outcome, Watch, load_data, lock, train_on};
use exmy_train::train::together::train_together;

struct Silent;

impl Watch for Silent {
    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        true
    }

    fn phase(&mut self, _: &str) {}
}

/// A tied head, five parts of a step, memory of windows.
fn config() -> Config {
    let mut config = verify::runs::config(verify::runs::FAMILIES[1], "msamp-o1").unwrap();
    config = config.overlaid("[train]\nbatch = 5\naccumulate = 5").unwrap();
    config.train = config.train.with_steps(4);
    config.record.checkpoint_every = 1;
    config.record.eval_every = 0;
    load_data(&mut config).unwrap();
    config
}

/// Devices of their own, one of which may fail after so many launches.
fn devices(count: usize, fails: Option<(usize, u64, Error)>) -> Option<Vec<Cuda>> {
    let one = |rank: usize| {
        let fails =
            fails.clone().filter(|fails| fails.0 == rank).map(|(_, after, why)| (after, why));
        let emulation = Emulation { fails, memory: 1 << 34, ..Emulation::default() };
        let device = Device::emulated_with(env!("CARGO_TARGET_TMPDIR"), emulation)?;
        Some(Cuda::new(device.unwrap()))
    };
    (0..count).map(one).collect()
}

fn train(devices: &[Cuda], folder: &Folder) -> exmy::error::Result<Outcome> {
    let mut config = config();
    let data = load_data(&mut config)?;
    if !folder.config_file().exists() {
        folder.create(&config)?;
    }
    let lock = lock(folder)?.unwrap();
    let links = ring(devices).unwrap().into_iter().map(|link| Box::new(link) as _).collect();
    train_together((devices, links), 1, Job::new(folder, &data, &mut Silent, &lock))
}

/// Where NCCL is, as under `EXMY_NCCL`, it names rings; else the error says where it was looked for.
#[test]
fn nccl_is_there_or_what_was_tried_is_said() {
    match nccl::version() {
        Ok(version) => {
            assert!(version > 20_000, "{version}");
            let names = nccl::edges(2).unwrap();
            assert!(names[0] != names[1], "{names:?}");
            let hexadecimal = |name: &String| name.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(names.iter().all(|name| name.len() == 256 && hexadecimal(name)), "{names:?}");
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("looked for") && text.contains("EXMY_NCCL"), "{text}");
        }
    }
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn several_devices_write_the_bytes_of_the_cpu() {
        let Some(two) = devices(2, None) else { return };
        let place = tempfile::tempdir().unwrap();
        let compared = verify::files::compare_together(&two, place.path(), &mut |_| ()).unwrap();
        assert!(compared.iter().all(|run| run.first.is_none()), "{compared:#?}");
        assert!(compared.len() == 4 && compared.iter().all(|run| run.files >= 5), "{compared:#?}");
    }

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn a_device_that_fails_ends_all_and_the_checkpoint_stands() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| Folder::new(place.path().join(name));
        let mut config = config();
        let data = load_data(&mut config).unwrap();
        let whole = folder("whole");
        whole.create(&config).unwrap();
        let held = lock(&whole).unwrap().unwrap();
        train_on(&Cpu::new(), Job::new(&whole, &data, &mut Silent, &held)).unwrap();
        drop(held);
        let same = |name: &str| {
            for file in
                ["metrics.jsonl", "model.safetensors", "checkpoints/step-00000004.safetensors"]
            {
                let [a, b] =
                    [&whole, &folder(name)].map(|run| std::fs::read(run.path().join(file)));
                assert!(a.unwrap() == b.unwrap(), "{name}: {file}");
            }
        };
        if devices(1, None).is_none() {
            return;
        }
        let lost = Error::Lost { device: "emulated".into(), reason: "gone".into() };
        // In the second or third step.
        for (rank, launches) in [(0, 3000), (1, 2000)] {
            let run = folder(&format!("lost-{rank}"));
            let two = devices(2, Some((rank, launches, lost.clone()))).unwrap();
            let error = train(&two, &run).unwrap_err().to_string();
            assert!(error.contains(&lost.to_string()), "{error}");
            assert_eq!(error.contains("rank 1: "), rank == 1, "{error}");
            assert_eq!(two[rank].take_failure(), Some(lost.clone()));
            let done = run.checkpoints().read_dir().unwrap().count();
            assert!((1..4).contains(&done), "{done}");
            train(&devices(2, None).unwrap(), &run).unwrap();
            same(&format!("lost-{rank}"));
        }
    }
}
