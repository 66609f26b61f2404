//! One process of several that train one run, started by `torchrun`, Slurm or by hand: rank 0 does what the
//! command says, the others take their parts of its steps. The files of a run are those of one device.

use super::{Choice, Place, stands};
use exmy::error::{Error, Result};
use exmy_cuda::Device;
use exmy_train::nn::Cpu;
use exmy_train::train::data::Dataset;
use exmy_train::train::fingerprint::Fingerprint;
use exmy_train::train::probe::Probe;
use exmy_train::train::ranks::seat::seat;
use exmy_train::train::ranks::tcp::Party;
use exmy_train::train::run::{Claim, Folder, Outcome, Watch, train_among};

/// A rank and what it computes on.
#[derive(Debug)]
pub struct Rank {
    party: Party,
    place: Place,
}

/// What tells one build of the program from another.
fn program() -> String {
    let digest = std::env::current_exe().and_then(std::fs::read).map(|file| Fingerprint::of(&file));
    let build = digest.map_or_else(|_| "unknown".to_owned(), |digest| digest.to_string());
    format!("exmy {} (build {build})", env!("CARGO_PKG_VERSION"))
}

impl Rank {
    /// Finds the other processes that the environment speaks of, to compute on `choice`: with `cuda` each on
    /// the GPU of its number on its machine.
    ///
    /// # Errors
    /// If the environment does not say which rank this is, the device cannot be used, or the others do not
    /// come or are started otherwise.
    pub fn gather(choice: &Choice) -> Result<Self> {
        let seat = seat(&|name| std::env::var(name).ok().filter(|text| !text.is_empty()))?;
        let place = match choice {
            Choice::Cpu => Place::Cpu,
            Choice::Cuda(0) => {
                return Err(Error::new("--ranks on GPUs is not there yet"));
            }
            _ => {
                return Err(Error::new("with --ranks each process has one device")
                    .hint("--device cpu, or --device cuda: each its own of the machine's"));
            }
        };
        let party = Party::gather(seat, &program(), || ())?;
        Ok(Self { party, place })
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

    /// Takes part in the runs of rank 0 until there are no more.
    ///
    /// # Errors
    /// If rank 0 has ended, or something went wrong here of which it could not be told.
    pub fn follow(&self) -> Result<bool> {
        let followed =
            self.party.follow(|_| Ok((Cpu::new(), Box::new(self.party.ring()) as Box<_>)));
        match followed {
            Ok(()) => Ok(true),
            // Rank 0 says it.
            Err((_, true)) => Ok(false),
            Err((error, false)) => Err(error),
        }
    }

    /// Trains a claimed run with the others.
    ///
    /// # Errors
    /// As [`train_among`].
    pub(crate) fn train(
        &self,
        folder: &Folder,
        data: &Dataset,
        watch: &mut dyn Watch,
        probes: Vec<Box<dyn Probe>>,
        claim: &Claim,
    ) -> Result<Outcome> {
        let config = folder.config()?;
        let ranks = self.party.begin(&config, Box::new(self.party.ring()))?;
        train_among(Some(ranks), &Cpu::new(), folder, data, watch, probes, claim)
            .map_err(|error| stands(error, folder))
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if self.leads() {
            self.party.dismiss();
        }
    }
}
