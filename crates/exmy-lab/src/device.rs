//! Where runs are trained and models are evaluated: on the processor, or on an NVIDIA GPU by exmy-cuda. The
//! files of a run are the same bytes either way, but for `timing.jsonl`.

mod rank;

pub use rank::{Rank, Seated};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::device_slots::{DeviceSlots, MOST};
use exmy::error::{Error, Result};
use exmy::parallel;
use exmy::shown::printable_path;
use exmy_cuda::train::Cuda;
use exmy_cuda::{Device, Error as Failure};
use exmy_train::inference::InferenceDevice;
use exmy_train::nn::{Cpu, decoder};
use exmy_train::recipe::Recipe;
use exmy_train::train::checkpoint;
use exmy_train::train::config::Config;
use exmy_train::train::device::TrainingDevice as _;
use exmy_train::train::fit::{self, Advice};
use exmy_train::train::memory::{self, size};
use exmy_train::train::ranks;
use exmy_train::train::run::{Folder, Job, Outcome};
use exmy_train::train::together::train_together;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The processor.
    #[default]
    Cpu,
    /// The GPU of this number.
    Cuda(usize),
    /// The first GPU, or the processor where that one cannot be used.
    Auto,
    /// Several GPUs, by their numbers, for one run at a time.
    Several(Vec<usize>),
    /// The processor as so many devices.
    Cpus(usize),
}

/// What `--device` takes.
const DEVICES: &str = "a device is cpu, cuda, cuda:1 (a GPU by its number) or auto; several GPUs that \
                       train one run are separated by commas, as cuda:0,cuda:1";

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(',') {
            let all = text.split(',').map(str::parse).collect::<Result<Vec<Self>, _>>()?;
            if all.iter().all(|one| *one == Self::Cpu) {
                return Ok(Self::Cpus(all.len()));
            }
            let number = |one: &Self| if let Self::Cuda(index) = one { Some(*index) } else { None };
            let numbers: Option<Vec<usize>> = all.iter().map(number).collect();
            let Some(numbers) = numbers else {
                return Err(format!("one run is trained on GPUs or on the processor; {DEVICES}"));
            };
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            return match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                Some(pair) => Err(format!("cuda:{} is there twice; {DEVICES}", pair[0])),
                None => Ok(Self::Several(numbers)),
            };
        }
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "auto" => Ok(Self::Auto),
            _ => text
                .strip_prefix("cuda:")
                .and_then(number)
                .map_or_else(|| Err(DEVICES.to_owned()), |index| Ok(Self::Cuda(index))),
        }
    }
}

/// A number of digits alone.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A device that computes.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU.
    Cuda(Device),
    /// Several GPUs that train one run.
    Several(Vec<Device>),
    /// The processor as so many devices, each with a share of the threads.
    Cpus(usize),
    /// Rank 0 of several processes that train one run, each on the processor or on a GPU.
    Party(Arc<Rank>),
}

impl Choice {
    /// Looks for the device. `note` gets one line on why [`Auto`](Self::Auto) is the processor, if it is: no
    /// driver, no GPU, one that is too old, or neither a compiler of its kernels nor compiled ones.
    ///
    /// # Errors
    /// If there is no such GPU, or no driver.
    pub fn open(self, note: impl FnOnce(String)) -> Result<Place> {
        match self {
            Self::Cpu => Ok(Place::Cpu),
            Self::Cuda(index) => open(index).map(Place::Cuda),
            Self::Several(numbers) => {
                numbers.into_iter().map(open).collect::<Result<_>>().map(Place::Several)
            }
            Self::Cpus(count) => Ok(Place::Cpus(count)),
            Self::Auto => {
                let usable = |device: Device| device.can_be_used().map(|()| device);
                let found = Device::new(0).and_then(usable).map(Place::Cuda);
                Ok(found.unwrap_or_else(|error| {
                    note(format!("note: --device auto is the processor: {error}"));
                    Place::Cpu
                }))
            }
        }
    }
}

/// The GPU of a number.
fn open(index: usize) -> Result<Device> {
    Device::new(index).map_err(|error| {
        Error::from(error).hint("--device cpu is the processor, with the same bits")
    })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => return f.write_str("cpu"),
            Self::Cpus(count) => return write!(f, "cpu, as {count} devices"),
            Self::Party(rank) => {
                return write!(f, "{}, rank 0 of {}", rank.place(), rank.size());
            }
            Self::Cuda(_) | Self::Several(_) => {}
        }
        for (i, device) in self.gpus().iter().enumerate() {
            let (properties, comma) = (device.properties(), if i > 0 { ", " } else { "" });
            write!(f, "{comma}cuda:{} {}", properties.index, properties.name)?;
        }
        Ok(())
    }
}

impl Place {
    /// Refuses a run that the device cannot do: for want of memory, or of tensor cores. The processor's
    /// memory is looked at elsewhere.
    ///
    /// # Errors
    /// With what would work.
    pub fn refuse(&self, config: &Config) -> Result<()> {
        match self {
            Self::Several(devices) => ranks::divides(config, devices.len())?,
            Self::Cpus(count) => ranks::divides(config, *count)?,
            Self::Party(rank) => ranks::divides(config, rank.size())?,
            Self::Cpu | Self::Cuda(_) => {}
        }
        self.gpus().iter().try_for_each(|device| Self::refuse_on(device, config))
    }

    /// The GPUs that compute.
    fn gpus(&self) -> &[Device] {
        match self {
            Self::Cuda(device) => std::slice::from_ref(device),
            Self::Several(devices) => devices,
            Self::Party(rank) => rank.gpus(),
            Self::Cpu | Self::Cpus(_) => &[],
        }
    }

    fn refuse_on(device: &Device, config: &Config) -> Result<()> {
        let of = device.properties();
        without_cores(&of.name, of.capability, &config.recipe).map_or(Ok(()), Err)?;
        let free = device.free_memory().map_err(Error::from)? as u64;
        // Nothing is swapped there: what a run needs on paper must be had.
        let Some(error) = fit::shortage(config, free) else { return Ok(()) };
        // A process alone has all but what the driver takes.
        Err(if free < of.memory as u64 / 10 * 9 {
            error.hint(format!(
                "other processes have a part of the {} of {}",
                size(of.memory as u64),
                of.name
            ))
        } else {
            error
        })
    }

    /// Runs that are done at once: as many as are `asked` for, else so many on a processor, and all small
    /// ones that a GPU holds. Several devices do one run at a time.
    ///
    /// # Errors
    /// If the device cannot do as many as are asked for.
    pub fn at_once(&self, asked: Option<usize>, on_cpu: usize) -> Result<usize> {
        let (most, usual) = match self {
            Self::Cpu => (usize::MAX, on_cpu),
            Self::Cuda(_) => (MOST, MOST),
            Self::Several(_) | Self::Cpus(_) | Self::Party(_) => (1, 1),
        };
        match asked {
            Some(jobs) if jobs > most => Err(Error::new(match most {
                1 => format!("--jobs {jobs}, and several devices do one run at a time"),
                _ => format!("--jobs {jobs}: a GPU does {most} runs at once at most"),
            })
            .hint(match most {
                1 => "for several runs at once start a process for each device, in one folder"
                    .to_owned(),
                _ => format!("--jobs {most}, or a process for each of several GPUs, in one folder"),
            })),
            _ => Ok(asked.unwrap_or(usual)),
        }
    }

    /// What runs share: the memory that is free on a GPU.
    pub(crate) fn slots(&self) -> Result<DeviceSlots> {
        let Self::Cuda(device) = self else { return Ok(DeviceSlots::new(None)) };
        Ok(DeviceSlots::new(Some(device.free_memory().map_err(Error::from)? as u64)))
    }

    /// What of a recipe the device does slowly, in one line, if it does something so.
    pub fn slow(&self, recipe: &Recipe) -> Option<String> {
        let on = |what: &str| format!("{recipe}: {what}");
        match self {
            Self::Party(rank) => rank.place().slow(recipe),
            Self::Cpu | Self::Cpus(_) => recipe.cores().map(|cores| {
                on(&format!(
                    "sums={cores} is the model of a tensor core here, far slower than fast; a GPU of compute \
                     capability 9.0 has the thing itself, with the same bits"
                ))
            }),
            Self::Cuda(_) | Self::Several(_) => recipe.on_host().map(|what| {
                on(&format!(
                    "{what} are the processor's work, to which numbers go and come back; steps are slow"
                ))
            }),
        }
    }

    /// Memory for what is yet to come: the processor's, or a GPU's own; `None` where that cannot be said.
    ///
    /// # Errors
    /// If the device fails.
    pub fn available(&self) -> Result<Option<u64>> {
        match self {
            Self::Cpu | Self::Cpus(_) => Ok(memory::available()),
            Self::Cuda(_) | Self::Several(_) | Self::Party(_) => {
                let free = self.gpus().iter().map(Device::free_memory);
                let free = free.collect::<exmy_cuda::Result<Vec<_>>>().map_err(Error::from)?;
                Ok(free.into_iter().min().map(|free| free as u64))
            }
        }
    }

    /// What measures and generates: the processor, or a stream of a GPU with the kernels for a model under
    /// some recipes.
    ///
    /// # Errors
    /// If the GPU has not the tensor cores that a recipe asks for, kernels cannot be compiled, or there are
    /// several devices.
    pub fn ready_for(
        &self,
        model: &decoder::Config,
        recipes: &[Recipe],
    ) -> Result<Box<dyn InferenceDevice>> {
        let device = match self {
            Self::Cpu => return Ok(Box::new(Cpu::new())),
            Self::Cuda(device) => device,
            Self::Several(_) | Self::Cpus(_) | Self::Party(_) => {
                return Err(Error::new("several devices train; one evaluates and generates")
                    .hint("name one, as --device cuda:1"));
            }
        };
        let of = device.properties();
        for recipe in recipes {
            without_cores(&of.name, of.capability, recipe).map_or(Ok(()), Err)?;
        }
        let cuda = Cuda::new(device.stream().map_err(Error::from)?);
        cuda.ready_for(Some(model), recipes).map_err(Error::from)?;
        Ok(Box::new(cuda))
    }

    /// Trains a claimed run, as [`train_on`](exmy_train::train::run::train_on).
    ///
    /// # Errors
    /// As there, or if the device fails; the last checkpoint stands.
    pub fn train(&self, job: Job<'_>) -> Result<Outcome> {
        if let Self::Party(rank) = self {
            return rank.train(job);
        }
        if let Self::Cpus(count) = self {
            let links = ranks::rings(*count).into_iter().map(|link| Box::new(link) as _).collect();
            let (devices, threads) =
                (vec![Cpu::new(); *count], parallel::threads().div_ceil(*count));
            let devices = (&*devices, links);
            return train_together(devices, threads, job);
        }
        if self.gpus().is_empty() {
            return Cpu::new().train(None, job);
        }
        // Streams of its own, so that small runs share a device.
        let stream = |device: &Device| device.stream().map(Cuda::new);
        let devices = self.gpus().iter().map(stream).collect::<exmy_cuda::Result<Vec<_>>>();
        let folder = job.folder();
        let (devices, config) = (devices.map_err(Error::from)?, folder.config()?);
        devices.iter().try_for_each(|cuda| cuda.ready(&config)).map_err(Error::from)?;
        let trained = match &*devices {
            [cuda] => cuda.train(None, job),
            all => {
                let links = exmy_cuda::train::ring(all).map_err(Error::from)?;
                let links = links.into_iter().map(|link| Box::new(link) as _).collect();
                train_together((all, links), 1, job)
            }
        };
        trained.map_err(|error| {
            let failure = devices.iter().find_map(|cuda| Some((cuda, cuda.take_failure()?)));
            match failure {
                // What the failed run held is free again.
                Some((cuda, failure)) => {
                    let free = cuda.device().free_memory().unwrap_or_default();
                    explained(&failure, free as u64, folder)
                }
                None if devices.len() > 1 => stands(error, folder),
                None => error,
            }
        })
    }
}

/// An error that ended all ranks of a run, with what is left of it.
pub(crate) fn stands(error: Error, folder: &Folder) -> Error {
    match last_checkpoint(folder) {
        Some(step) => error.hint(format!(
            "the checkpoint of step {step} of {} stands: exmy train --resume goes on from it, on any number \
             of devices",
            printable_path(folder.path())
        )),
        None => error,
    }
}

/// What went wrong on a device, with what can be done: with a checkpoint or before there is one.
#[doc(hidden)]
pub fn explained(failure: &Failure, free: u64, folder: &Folder) -> Error {
    let error = Error::from(failure.clone());
    let path = printable_path(folder.path());
    let step = last_checkpoint(folder);
    match (failure, folder.config()) {
        (Failure::Memory { .. }, Ok(config)) => {
            let smaller = fit::smaller(&config, free);
            error.hint(match step {
                Some(step) if matches!(smaller, Advice::Settings(..)) => format!(
                    "exmy train --branch {path}@{step} {smaller} and goes on from the checkpoint of step \
                     {step}; --resume takes no settings"
                ),
                Some(step) => format!("{smaller}; the checkpoint of step {step} of {path} stands"),
                None => format!("{smaller}, in a new run: {path} has no checkpoint yet"),
            })
        }
        (Failure::Kernel { .. } | Failure::Lost { .. } | Failure::Driver { .. }, _) => {
            error.hint(match step {
                Some(step) => format!(
                    "the checkpoint of step {step} of {path} stands: exmy train --resume, or the same \
                     sweep or study again, goes on from it, with --device cuda or on the processor, to \
                     the same bits"
                ),
                None => format!(
                    "{path} has no checkpoint yet: begin it anew, with --device cuda or on the processor, to \
                     the same bits"
                ),
            })
        }
        _ => error,
    }
}

/// The step of a run's last checkpoint, if it has one.
fn last_checkpoint(folder: &Folder) -> Option<u64> {
    checkpoint::list(&folder.checkpoints()).ok()?.last().copied()
}

/// How a run goes on under settings that a refusal names.
pub fn other_settings(folder: &Folder) -> String {
    let path = printable_path(folder.path());
    match last_checkpoint(folder) {
        Some(step) => format!(
            "--resume takes no settings: exmy train --branch {path}@{step} does, and goes on from the \
             checkpoint of step {step}"
        ),
        None => {
            format!("--resume takes no settings, and {path} has no checkpoint: begin a new run")
        }
    }
}

/// Why a GPU cannot do a recipe of tensor cores, if it has others or none.
#[doc(hidden)]
pub fn without_cores(name: &str, capability: (u32, u32), recipe: &Recipe) -> Option<Error> {
    let cores = recipe.cores().filter(|_| capability != (9, 0))?;
    let (major, minor) = capability;
    Some(Error::new(format!(
        "{recipe}: sums={cores} needs the tensor cores of compute capability 9.0, and {name} is \
         {major}.{minor}; without that word products are summed in the order fast, on any GPU"
    )))
}
