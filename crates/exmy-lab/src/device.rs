//! Where runs are trained and models are evaluated: on the processor, or on an NVIDIA GPU by exmy-cuda. The
//! files of a run are the same bytes either way, but for `timing.jsonl`.

use std::fmt;
use std::str::FromStr;

use crate::turns::{MOST, Turns};
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_cuda::train::Cuda;
use exmy_cuda::{Device, Error as Failure};
use exmy_train::nn::decoder;
use exmy_train::recipe::Recipe;
use exmy_train::train::checkpoint;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::fit;
use exmy_train::train::memory::{self, size};
use exmy_train::train::probe::Probe;
use exmy_train::train::run::{self, Claim, Folder, Outcome, Watch};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The processor.
    #[default]
    Cpu,
    /// The GPU of this number.
    Cuda(usize),
    /// The first GPU, or the processor where that one cannot be used.
    Auto,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "auto" => Ok(Self::Auto),
            _ => text.strip_prefix("cuda:").and_then(number).map_or_else(
                || Err("a device is cpu, cuda, cuda:1 (a GPU by its number) or auto".to_owned()),
                |index| Ok(Self::Cuda(index)),
            ),
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
            Self::Cuda(index) => Device::new(index).map(Place::Cuda).map_err(|error| {
                Error::from(error).hint("--device cpu is the processor, with the same bits")
            }),
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(device) => {
                let properties = device.properties();
                write!(f, "cuda:{} {}", properties.index, properties.name)
            }
        }
    }
}

impl Place {
    /// Refuses a run that the device cannot do: for want of memory, or of tensor cores. The processor's
    /// memory is looked at elsewhere.
    ///
    /// # Errors
    /// With what would work.
    pub fn refuse(&self, config: &Config) -> Result<()> {
        let Self::Cuda(device) = self else { return Ok(()) };
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

    /// Runs that the device does at once, where the processor does so many: small ones share a GPU.
    pub fn at_once(&self, on_cpu: usize) -> usize {
        if matches!(self, Self::Cpu) { on_cpu } else { MOST }
    }

    /// What runs share: the memory that is free on a GPU.
    pub(crate) fn turns(&self) -> Result<Turns> {
        let Self::Cuda(device) = self else { return Ok(Turns::new(None)) };
        Ok(Turns::new(Some(device.free_memory().map_err(Error::from)? as u64)))
    }

    /// What of a recipe the device does slowly, in one line, if it does something so.
    pub fn slow(&self, recipe: &Recipe) -> Option<String> {
        let on = |what: &str| format!("{recipe}: {what}");
        match self {
            Self::Cpu => recipe.cores().map(|cores| {
                on(&format!(
                    "sums={cores} is the model of a tensor core here, far slower than fast; a GPU of compute \
                     capability 9.0 has the thing itself, with the same bits"
                ))
            }),
            Self::Cuda(_) => recipe.on_host().map(|what| {
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
            Self::Cpu => Ok(memory::available()),
            Self::Cuda(device) => {
                device.free_memory().map(|free| Some(free as u64)).map_err(Error::from)
            }
        }
    }

    /// A stream of a GPU with the kernels for a model under some recipes; `None` for the processor.
    ///
    /// # Errors
    /// If the GPU has not the tensor cores that a recipe asks for, or kernels cannot be compiled.
    pub fn ready_for(&self, model: &decoder::Config, recipes: &[Recipe]) -> Result<Option<Cuda>> {
        let Self::Cuda(device) = self else { return Ok(None) };
        let of = device.properties();
        for recipe in recipes {
            without_cores(&of.name, of.capability, recipe).map_or(Ok(()), Err)?;
        }
        let cuda = Cuda::new(device.stream().map_err(Error::from)?);
        cuda.ready_for(Some(model), recipes).map_err(Error::from)?;
        Ok(Some(cuda))
    }

    /// Trains a claimed run, as [`run::train_claimed`].
    ///
    /// # Errors
    /// As there, or if the device fails; the last checkpoint stands.
    pub fn train(
        &self,
        folder: &Folder,
        data: &Dataset,
        watch: &mut dyn Watch,
        probes: Vec<Box<dyn Probe>>,
        claim: &Claim,
    ) -> Result<Outcome> {
        let Self::Cuda(device) = self else {
            return run::train_claimed(folder, data, watch, probes, claim);
        };
        // A stream of its own, so that small runs share the device.
        let cuda = Cuda::new(device.stream().map_err(Error::from)?);
        cuda.ready(&folder.config()?).map_err(Error::from)?;
        run::train_on(&cuda, folder, data, watch, probes, claim).map_err(|error| {
            match cuda.take_failure() {
                // What the failed run held is free again.
                Some(failure) => {
                    explained(&failure, device.free_memory().unwrap_or_default() as u64, folder)
                }
                None => error,
            }
        })
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
                Some(step) if smaller.starts_with("--set") => format!(
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
