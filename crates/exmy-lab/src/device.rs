//! Where runs are trained: on the processor, or on an NVIDIA GPU by exmy-cuda. The files of a run are the
//! same bytes either way, but for `timing.jsonl`.

use std::fmt;
use std::str::FromStr;

use crate::turns::{MOST, Turns};
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_cuda::train::Cuda;
use exmy_cuda::{Device, Error as Failure};
use exmy_train::recipe::Recipe;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::fit;
use exmy_train::train::memory::size;
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
    /// The first GPU, or the processor where there is none.
    Auto,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "auto" => Ok(Self::Auto),
            _ => text.strip_prefix("cuda:").and_then(|index| index.parse().ok()).map_or_else(
                || Err("a device is cpu, cuda, cuda:1 (a GPU by its number) or auto".to_owned()),
                |index| Ok(Self::Cuda(index)),
            ),
        }
    }
}

/// A device that runs are trained on.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU.
    Cuda(Device),
}

impl Choice {
    /// Looks for the device.
    ///
    /// # Errors
    /// If there is no such GPU, or no driver.
    pub fn open(self) -> Result<Place> {
        let cuda = |index| Device::new(index).map(Place::Cuda);
        match self {
            Self::Cpu => Ok(Place::Cpu),
            Self::Cuda(index) => cuda(index).map_err(|error| {
                Error::from(error).hint("--device cpu trains on the processor, to the same bits")
            }),
            Self::Auto => Ok(cuda(0).unwrap_or_default()),
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
                on(&format!("{what} are the processor's work, to which numbers go and come back; steps are slow"))
            }),
        }
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

/// What went wrong on a device, with what can be done.
fn explained(failure: &Failure, free: u64, folder: &Folder) -> Error {
    let error = Error::from(failure.clone());
    match (failure, folder.config()) {
        (Failure::Memory { .. }, Ok(config)) => {
            let smaller = fit::smaller(&config, free);
            error.hint(format!("{smaller}; what was trained so far is kept"))
        }
        (Failure::Kernel { .. } | Failure::Lost { .. } | Failure::Driver { .. }, _) => {
            let path = printable_path(folder.path());
            error.hint(format!(
                "the last checkpoint of {path} stands: exmy train --resume goes on from it, with --device cuda \
                 or on the processor, to the same bits"
            ))
        }
        _ => error,
    }
}

/// Why a GPU cannot do a recipe of tensor cores, if it has others or none.
fn without_cores(name: &str, capability: (u32, u32), recipe: &Recipe) -> Option<Error> {
    let cores = recipe.cores().filter(|_| capability != (9, 0))?;
    let (major, minor) = capability;
    Some(Error::new(format!(
        "{recipe}: sums={cores} needs the tensor cores of compute capability 9.0, and {name} is {major}.{minor}; \
         without that word products are summed in the order fast, on any GPU"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy_train::train::preset::preset;

    #[test]
    fn other_tensor_cores_are_refused_in_one_line() {
        let recipe: Recipe = "mxfp8-e4m3+sums=hopper:bf16".parse().unwrap();
        for capability in [(8, 0), (8, 9), (10, 0)] {
            let error = without_cores("NVIDIA A100", capability, &recipe).unwrap().to_string();
            assert!(error.contains("hopper:bf16") && error.contains("the order fast"), "{error}");
            assert!(!error.contains('\n'));
        }
        assert!(without_cores("NVIDIA H100", (9, 0), &recipe).is_none());
        assert!(without_cores("NVIDIA A100", (8, 0), &"mxfp8-e4m3".parse().unwrap()).is_none());
    }

    #[test]
    fn failures_say_how_to_go_on() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().join("run"));
        let mut config = preset("gpt2-124m").unwrap();
        config.train.batch = 64;
        config.train.accumulate = 1;
        folder.create(&config).unwrap();
        let said = |failure: Failure, free: u64| explained(&failure, free, &folder).to_string();
        let kernel = Failure::Kernel { name: "gla".into(), reason: "illegal address".into() };
        let lost = Failure::Lost { device: "NVIDIA H100".into(), reason: "unspecified".into() };
        for (failure, word) in [(kernel, "gla"), (lost, "does not answer")] {
            let text = said(failure, 0);
            assert!(text.contains(word) && text.contains("exmy train --resume"), "{text}");
        }
        let full = |free| Failure::Memory { asked: 1 << 30, free: 1 << 20, total: free };
        // As many parts as fit, the smallest number of them; twice as many where it should have fitted.
        let text = said(full(20 << 30), 20 << 30);
        let parts = |text: &str| -> usize {
            let rest = text.split("train.accumulate=").nth(1).unwrap();
            rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        let least = parts(&text);
        assert!(least > 1 && text.contains("is kept"), "{text}");
        let needs = |accumulate| {
            let mut config = config.clone();
            config.train.accumulate = accumulate;
            fit::shortage(&config, 20 << 30).is_some()
        };
        let fewer = (1..least).filter(|parts| config.train.batch.is_multiple_of(*parts));
        assert!(!needs(least) && fewer.into_iter().all(needs), "{text}");
        assert_eq!(parts(&said(full(1 << 40), 1 << 40)), 2);
        // What a checkpoint does not help against says what does.
        let none = Failure::NoCompiler { tried: vec!["libnvrtc.so".into()] };
        assert!(
            !said(none.clone(), 0).contains("--resume") && said(none, 0).contains("EXMY_NVRTC")
        );
    }

    #[test]
    fn slow_work_is_said_in_a_line() {
        let said = |recipe: &str| Place::Cpu.slow(&recipe.parse().unwrap());
        assert!(said("mxfp8-e4m3+sums=hopper:bf16").unwrap().contains("hopper:bf16"));
        assert_eq!(said("mxfp8-e4m3+sums=fma:bf16"), None);
        let host = |recipe: &str| recipe.parse::<Recipe>().unwrap().on_host();
        assert_eq!(host("mxfp8-e4m3+sums=fma:bf16"), Some("sums of other orders"));
        assert!(host("mxfp8-e4m3@by-position").is_some() && host("nv-nvfp4").is_none());
        assert_eq!(host("mxfp8-e4m3+sums=hopper:bf16"), None);
    }
}
