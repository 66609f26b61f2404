//! One process of several that train one run, started by `torchrun`, Slurm or by hand: rank 0 does what the
//! command says, the others take their parts of its steps. The files of a run are those of one device.

use super::{Choice, Place, explained, stands};
use exmy::error::{Error, Result};
use exmy_cuda::Device;
use exmy_cuda::train::Cuda;
use exmy_cuda::train::nccl::{self, Edges, Remote};
use exmy_train::nn::Cpu;
use exmy_train::train::device::TrainingDevice as _;
use exmy_train::train::fingerprint::Fingerprint;
use exmy_train::train::ranks::Link;
use exmy_train::train::ranks::seat::seat;
use exmy_train::train::ranks::tcp::Party;
use exmy_train::train::run::{Job, Outcome};

/// A rank and what it computes on.
#[derive(Debug)]
pub struct Rank {
    party: Party,
    place: Place,
    /// The way by NCCL, on GPUs.
    remote: Option<Remote>,
    edges: Edges,
}

/// What the environment makes of a process.
#[derive(Debug)]
pub enum Seated {
    /// The only one, which trains on this.
    Alone(Place),
    /// One of several.
    Among(Rank),
}

/// What tells one build of the program from another.
fn program() -> String {
    let digest = std::env::current_exe().and_then(std::fs::read).map(|file| Fingerprint::of(&file));
    let build = digest.map_or_else(|_| "unknown".to_owned(), |digest| digest.to_string());
    format!("exmy {} (build {build})", env!("CARGO_PKG_VERSION"))
}

impl Rank {
    /// Finds the other processes that the environment speaks of, if there are any, to compute on `choice`:
    /// with `cuda` each on the GPU of its number on its machine.
    ///
    /// # Errors
    /// If the environment does not say which rank this is, the device cannot be used, or the others do not
    /// come or are started otherwise.
    pub fn gather(choice: &Choice) -> Result<Seated> {
        let seat = seat(&|name| std::env::var(name).ok().filter(|text| !text.is_empty()))?;
        let place = match choice {
            Choice::Cpu => Place::Cpu,
            // Where a batch system shows each process its own GPUs, they count from 0 in each.
            Choice::Cuda(0) => {
                let count = Device::count().map_err(Error::from)?.max(1);
                Choice::Cuda(seat.local % count).open(|_| ())?
            }
            _ => {
                return Err(Error::new("with --ranks each process has one device").hint(
                    "--device cpu, or --device cuda: each the GPU of its number on its machine",
                ));
            }
        };
        if seat.size == 1 {
            return Ok(Seated::Alone(place));
        }
        let (edges, is_cuda) = (Edges::default(), matches!(place, Place::Cuda(_)));
        let by_nccl = is_cuda && nccl::is_wanted();
        if by_nccl {
            // Before anybody waits for this one.
            nccl::version()?;
        }
        // Ranks that are started otherwise find no way to each other.
        let what = match (is_cuda, by_nccl) {
            (true, true) => "on GPUs by NCCL",
            (true, false) => "on GPUs",
            (false, _) => "on processors",
        };
        let ended = edges.clone();
        let party = Party::gather(seat, &format!("{} {what}", program()), move || ended.abort())?;
        let Party { seat, .. } = &party;
        let remote = match &place {
            Place::Cuda(device) if by_nccl => {
                let names = if seat.rank == 0 {
                    let names = nccl::edges(seat.size)?;
                    party.hand_out(&names.join(" "))?;
                    names
                } else {
                    party.handed()?.split(' ').map(str::to_owned).collect()
                };
                if names.len() != seat.size {
                    return Err(Error::new("rank 0 names another ring"));
                }
                Some(Remote::join(device, seat.rank, &names, &edges)?)
            }
            _ => None,
        };
        Ok(Seated::Among(Self { party, place, remote, edges }))
    }

    /// The way of numbers on a GPU.
    fn link(&self) -> Result<Box<dyn Link<Cuda>>> {
        Ok(match &self.remote {
            Some(remote) => Box::new(remote.link(self.party.beside())?),
            None => Box::new(self.party.ring()),
        })
    }

    /// Whether this is rank 0.
    pub fn leads(&self) -> bool {
        self.party.seat.rank == 0
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.party.seat.size
    }

    /// What this one computes on.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn gpus(&self) -> &[Device] {
        match &self.place {
            Place::Cuda(device) => std::slice::from_ref(device),
            _ => &[],
        }
    }

    /// Takes part in the runs of rank 0 until there are no more; its exit code. `stops` says whether this
    /// process was asked to end, which rank 0 hears of after the step under way.
    ///
    /// # Errors
    /// What rank 0 says that went wrong, with it or with any rank, else that it has ended.
    pub fn follow(&self, stops: &dyn Fn() -> bool) -> Result<u8> {
        let followed = match &self.place {
            Place::Cuda(device) => self.party.follow(stops, |config| {
                let cuda = Cuda::new(device.stream().map_err(Error::from)?);
                cuda.ready(config).map_err(Error::from)?;
                Ok((cuda, self.link()?))
            }),
            _ => self.party.follow(stops, |_| Ok((Cpu::new(), Box::new(self.party.ring()) as _))),
        };
        match followed? {
            (code, None) => Ok(code),
            (_, Some(why)) => Err(Error::new(format!("rank 0: {why}"))),
        }
    }

    /// Lets the others go, of which this is rank 0: they end with the same exit code, or say what went wrong.
    pub fn dismiss(&self, end: &Result<u8>) {
        match end {
            Ok(code) => self.party.dismiss(*code, None),
            Err(error) => self.party.dismiss(0, Some(&error.to_string())),
        }
    }

    /// Trains a claimed run with the others.
    ///
    /// # Errors
    /// As [`train_among`](exmy_train::train::run::train_among).
    pub(crate) fn train(&self, job: Job<'_>) -> Result<Outcome> {
        let folder = job.folder();
        let config = folder.config()?;
        let Place::Cuda(device) = &self.place else {
            let ranks = self.party.begin(&config, Box::new(self.party.ring()))?;
            return Cpu::new().train(Some(ranks), job).map_err(|error| stands(error, folder));
        };
        let cuda = Cuda::new(device.stream().map_err(Error::from)?);
        let ranks = self.party.begin(&config, self.link()?)?;
        cuda.ready(&config).map_err(Error::from)?;
        cuda.train(Some(ranks), job).map_err(|error| match cuda.take_failure() {
            Some(failure) => {
                let free = device.free_memory().unwrap_or_default();
                explained(&failure, free as u64, folder)
            }
            None => stands(error, folder),
        })
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // Nothing waits there any more, or nobody comes any more. NCCL must be through before the process
        // ends, for then its library goes.
        self.edges.abort();
    }
}
