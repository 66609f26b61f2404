//! `exmy device`: which GPUs there are, and whether they give the bits of the CPU.

use crate::phase::Phase;
use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_cuda::train::verify::files::Compared;
use exmy_cuda::train::{Cuda, verify};
use exmy_cuda::verify::{Extent, library};
use exmy_cuda::{Device, compile};
use exmy_lab::device::{Choice, Place};
use exmy_train::nn::device::Storage as _;
use exmy_train::recipe::Recipe;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// List the GPUs, or compare one with the CPU bit for bit
#[derive(Args)]
#[command(
    after_long_help = "Examples:\n  exmy device\n  exmy device --verify\n  exmy device --verify \
    --device cuda:1\n  exmy device --verify --device cuda:0,cuda:1\n  \
    EXMY_CACHE=kernels exmy device --compile 9.0\n\n\
    --verify compares conversions, block formats and products, every operation of the layers at ragged \
    shapes, forward and backward, then ten steps of each family of models under twelve recipes and, with \
    Hopper's tensor cores, five of theirs, last the files of whole runs, some of which go from one device to \
    the other. With several GPUs it compares runs that they train together. It ends with 1 at the first bit \
    that differs, and says where."
)]
pub(crate) struct Arguments {
    /// Compare a GPU with the CPU: a table, and 1 as the exit code if a bit differs
    #[arg(long)]
    verify: bool,
    /// Compile all kernels for a compute capability into the folder of compiled kernels; needs no GPU
    #[arg(long, value_name = "9.0", conflicts_with = "verify", value_parser = capability)]
    compile: Option<(u32, u32)>,
    /// The GPU that is compared: cuda, cuda:1; or several, as cuda:0,cuda:1, that train runs together
    #[arg(long, value_name = "D", default_value = "cuda", requires = "verify")]
    device: Choice,
}

/// A compute capability: 8.0, 9.0 (or 9.0a, which is what is compiled for it).
fn capability(text: &str) -> Result<(u32, u32), String> {
    let digits = text.strip_suffix('a').filter(|rest| *rest == "9.0").unwrap_or(text);
    let parts = digits.split_once('.').map(|(major, minor)| (major.parse(), minor.parse()));
    match parts {
        Some((Ok(major), Ok(minor))) if (major, minor) >= (8, 0) => Ok((major, minor)),
        _ => Err("a compute capability is two numbers, 8.0 or higher: 8.0, 8.6, 9.0".into()),
    }
}

/// Fills the folder of compiled kernels.
fn fill(capability: (u32, u32)) -> Result<()> {
    let architecture = compile::Architecture::of(capability);
    let compiling = Phase::begin("compiling the kernels", false);
    let (all, new, folder) = compile::fill(architecture)?;
    drop(compiling);
    let (target, folder) = (architecture.name(), printable_path(&folder));
    show::result(&format!("{all} modules for {target} in {folder}, {new} of them compiled now\n"))
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    if let Some(capability) = arguments.compile {
        return fill(capability).map(|()| 0);
    }
    if !arguments.verify {
        return list().map(|()| 0);
    }
    let opening = Phase::begin("opening the GPU", false);
    let place = arguments.device.clone().open(|note| say!("{note}"))?;
    drop(opening);
    let device = match &place {
        Place::Cuda(device) => device,
        Place::Several(devices) => return compare_together(devices),
        _ => {
            return Err(Error::new("the CPU is what is compared with")
                .hint("--device cuda or cuda:1 names a GPU"));
        }
    };
    describe(device)?;
    let compiling = Phase::begin("compiling the kernels", false);
    device.prepare()?;
    drop(compiling);
    // Between its rows.
    let _comparing = Phase::begin("comparing the GPU with the CPU", false);
    compare(device)
}

fn list() -> Result<()> {
    let _looking = Phase::begin("looking for GPUs", false);
    let count = match Device::count() {
        Ok(count) => count,
        // That there is none is what was asked.
        Err(error) => return show::result(&format!("{error}\n")),
    };
    if count == 0 {
        show::result("the NVIDIA driver sees no GPU\n")?;
    }
    for index in 0..count {
        match Device::new(index) {
            Ok(device) => describe(&device)?,
            Err(error) => show::result(&format!("cuda:{index}  {error}\n"))?,
        }
    }
    match compile::version() {
        Ok((major, minor)) => {
            show::result(&format!("kernels are compiled by NVRTC {major}.{minor}\n"))
        }
        Err(error) => show::result(&format!("{error}\n")),
    }
}

fn describe(device: &Device) -> Result<()> {
    let of = device.properties();
    let free = device.free_memory().map_err(Error::from)?;
    let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    show::result(&format!(
        "cuda:{}  {}  compute capability {}.{}, {} processors, {:.1} GiB of which {:.1} are free, \
         driver {}.{}\n",
        of.index,
        of.name,
        of.capability.0,
        of.capability.1,
        of.processors,
        gib(of.memory),
        gib(free),
        of.driver.0,
        of.driver.1
    ))
}

/// Compares operation by operation, then run by run; stops at the first table row that differs.
fn compare(device: &Device) -> Result<u8> {
    let mut shown = Ok(());
    let rows = library(device, Extent::Full, |row| {
        if shown.is_ok() {
            shown = show::result(&format!("{row}\n"));
        }
    })?;
    shown?;
    if rows.iter().any(|row| row.first.is_some()) {
        return Ok(1);
    }
    let cuda = Cuda::new(device.clone());
    let found = verify::layers(&cuda, 8);
    cuda.check()?;
    let expected = verify::layers_on_cpu(8);
    if !row("layers, forward and backward", "layers/*.cu", &expected, &found)? {
        return Ok(1);
    }
    match compare_runs(&cuda)? {
        0 => compare_files(&cuda),
        differ => Ok(differ),
    }
}

/// Runs that several GPUs train together; each is compared by itself elsewhere.
fn compare_together(devices: &[Device]) -> Result<u8> {
    devices.iter().try_for_each(describe)?;
    let compiling = Phase::begin("compiling the kernels", false);
    devices.iter().try_for_each(Device::prepare)?;
    drop(compiling);
    let _comparing = Phase::begin("comparing the GPUs with the CPU", false);
    let devices: Vec<Cuda> = devices.iter().cloned().map(Cuda::new).collect();
    let count = devices.len();
    in_a_folder(&format!("files, {count} GPUs"), |folder, seen| {
        verify::files::compare_together(&devices, folder, seen)
    })
}

/// The files of whole runs.
fn compare_files(cuda: &Cuda) -> Result<u8> {
    in_a_folder("a run's files", |folder, seen| verify::files::compare(cuda, folder, seen))
}

/// Compares runs in a folder that is removed.
fn in_a_folder(
    what: &str,
    compare: impl FnOnce(&Path, &mut dyn FnMut(&Compared)) -> Result<Vec<Compared>>,
) -> Result<u8> {
    let folder = std::env::temp_dir().join(format!("exmy-verify-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| Error::io("create", &folder, error))?;
    let mut shown = Ok(());
    let compared = compare(&folder, &mut |run| {
        let Compared { name, files, bytes, first } = run;
        let what = format!("{what}, {name}");
        let mut text = format!("{what:<60} {:<12} {files:>6} files {bytes:>12} bytes    ", "all");
        text += &match first {
            None => "equal\n".to_owned(),
            Some(difference) => format!("DIFFER\nfirst: {difference}\n"),
        };
        if shown.is_ok() {
            shown = show::result(&text);
        }
    });
    // Whatever was found; a folder that stays is in the way of nothing.
    let _ = fs::remove_dir_all(&folder);
    let differs = compared?.iter().any(|run| run.first.is_some());
    shown.map(|()| differs.into())
}

/// Ten steps of each family under each recipe. The processor's half is done by several threads meanwhile.
fn compare_runs(cuda: &Cuda) -> Result<u8> {
    let capability = cuda.device().properties().capability;
    let mut cases = Vec::new();
    for recipe in verify::runs::RECIPES.into_iter().chain(verify::runs::TENSOR_CORES) {
        let needs_cores = recipe.parse::<Recipe>().is_ok_and(|recipe| recipe.cores().is_some());
        if needs_cores && capability != (9, 0) {
            let why = "compute capability 9.0 alone has these tensor cores";
            show::result(&format!("{:<69} not there: {why}\n", format!("training, {recipe}")))?;
            continue;
        }
        for family in verify::runs::FAMILIES {
            let name = format!("{}, {recipe}", family.0);
            cases.push((name, verify::runs::config(family, recipe)?));
        }
    }
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let threads = exmy::parallel::threads();
    std::thread::scope(|scope| {
        let (send, receive): (Vec<_>, Vec<_>) = cases.iter().map(|_| channel()).unzip();
        for _ in 0..threads {
            let (send, cases, next, ended) = (send.clone(), &cases, &next, &ended);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((name, config)) = cases.get(at) else { return };
                    let run = || verify::runs::run_on_cpu(config, name, 10);
                    let done = exmy::parallel::with_threads(1, run)
                        .map_err(|error| Error::new("cannot start threads").because(error))
                        .flatten();
                    // Whoever waited for it may have ended.
                    let _ = send[at].send(done);
                }
            });
        }
        drop(send);
        let compared = || {
            for ((name, config), expected) in cases.iter().zip(receive) {
                let found = verify::run(cuda, config, name, 10)?;
                let expected =
                    expected.recv().map_err(|_| Error::new("a thread ended early"))??;
                if !row(&format!("training, {name}"), "all", &expected, &found)? {
                    return Ok(1);
                }
            }
            Ok(0)
        };
        let code = compared();
        ended.store(true, Ordering::Relaxed);
        code
    })
}

/// A line of the table; whether all bits are equal.
fn row(
    what: &str,
    kernels: &str,
    expected: &[verify::Output],
    found: &[verify::Output],
) -> Result<bool> {
    let numbers: usize = expected.iter().map(|output| output.numbers.len()).sum();
    let wrong = verify::differences(expected, found);
    // As a row of the library's operations.
    let mut text =
        format!("{what:<60} {kernels:<12} {:>6} cases {numbers:>12} numbers  ", expected.len());
    match wrong.first() {
        None => text += "equal\n",
        Some(first) => text += &format!("{} DIFFER\nfirst: {first}\n", wrong.len()),
    }
    show::result(&text)?;
    Ok(wrong.is_empty())
}
