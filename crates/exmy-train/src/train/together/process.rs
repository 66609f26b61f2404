//! Runs of a party of processes: rank 0 tells the others of each, and they serve until it says goodbye.

use crate::nn::device::Device;
use crate::train::config::Config;
use crate::train::device::TrainingDevice;
use crate::train::ranks::tcp::Party;
use crate::train::ranks::{Link, Message, Ranks, divides, heard, out_of_turn, text_of};
use crate::train::run::load_data_of_rank_0;
use exmy::error::Result;

impl Party {
    /// Lets the others take part in a run, of which this is rank 0.
    ///
    /// # Errors
    /// If its steps have fewer parts than there are ranks, or a rank has ended.
    pub fn begin<D: Device>(&self, config: &Config, link: Box<dyn Link<D>>) -> Result<Ranks<D>> {
        divides(config, self.seat.size)?;
        let mut ranks = Ranks::lead(link, self.wires());
        // If one is gone, the run ends for those that hear of it when `ranks` is dropped.
        ranks.tell_all(&Message::Run(config.to_toml()))?;
        Ok(ranks)
    }

    /// Takes part in every run that rank 0 begins, until it says goodbye: with its exit code and what went
    /// wrong, if something did, here or elsewhere. `stops` says whether this process was asked to end, `make`
    /// gives the device and its place in the ring.
    ///
    /// # Errors
    /// That rank 0 has ended without a goodbye, or what went wrong before that.
    pub fn follow<D: TrainingDevice>(
        &self,
        stops: &dyn Fn() -> bool,
        mut make: impl FnMut(&Config) -> Result<(D, Box<dyn Link<D>>)>,
    ) -> Result<(u8, Option<String>)> {
        loop {
            let mut wire = self.wires().remove(0);
            let text = match heard(wire.hear()?)? {
                Message::Run(text) => text,
                // What a run that never began left.
                Message::End => continue,
                Message::Bye { code, why } => return Ok((code, why)),
                _ => return Err(out_of_turn(0)),
            };
            let mut begun = || -> Result<_> {
                let mut config = Config::from_toml(&text)?;
                let data = load_data_of_rank_0(&mut config)?;
                let (device, link) = make(&config)?;
                Ok((config, data, device, link))
            };
            let (config, data, device, link) = match begun() {
                Ok(begun) => begun,
                Err(error) => {
                    // If rank 0 is gone, what went wrong here is said here.
                    let _ = wire.tell(&text_of(&Message::Failed(error.to_string()))?);
                    return self.parting().ok_or(error);
                }
            };
            let ranks = Ranks::member((self.seat.rank, self.seat.size), link, wire);
            // What goes wrong there rank 0 is told, if it is there.
            if let Err(error) = device.serve(&config, &data, ranks, stops) {
                return self.parting().ok_or_else(|| self.lost_lead().unwrap_or(error));
            }
        }
    }

    /// Takes no part any more and waits for the goodbye of rank 0, which finds out what went wrong first;
    /// `None` if it ends without one.
    fn parting(&self) -> Option<(u8, Option<String>)> {
        self.leave_ring();
        let mut wire = self.wires().remove(0);
        while let Ok(text) = wire.hear() {
            if let Ok(Message::Bye { code, why }) = heard(text) {
                return Some((code, why));
            }
        }
        None
    }

    /// Says goodbye to the others, which are to end with the same exit code, and say what went wrong.
    pub fn dismiss(&self, code: u8, why: Option<&str>) {
        if let Ok(text) = text_of(&Message::Bye { code, why: why.map(str::to_owned) }) {
            // Whoever is gone needs no telling.
            self.wires().iter_mut().for_each(|wire| drop(wire.tell(&text)));
        }
    }
}
