//! Runs of a party of processes: rank 0 tells the others of each, and they serve until it says goodbye.

use super::serve;
use crate::nn::device::Device;
use crate::recipe::device::Quantize;
use crate::train::config::Config;
use crate::train::ranks::tcp::Party;
use crate::train::ranks::{Link, Message, Ranks, Wire, divides, heard, out_of_turn, text_of};
use crate::train::run::load_data;
use exmy::error::{Error, Result};

impl Party {
    /// Lets the others take part in a run, of which this is rank 0.
    ///
    /// # Errors
    /// If its steps have fewer parts than there are ranks, or a rank has ended.
    pub fn begin<D: Device>(&self, config: &Config, link: Box<dyn Link<D>>) -> Result<Ranks<D>> {
        divides(config, self.seat.size)?;
        let mut wires = self.wires();
        let text = text_of(&Message::Run(config.to_toml()))?;
        wires.iter_mut().try_for_each(|wire| wire.tell(&text))?;
        Ok(Ranks::lead(link, wires))
    }

    /// Takes part in every run that rank 0 begins, until it says goodbye: with its exit code and what went
    /// wrong, if something did. `stops` says whether this process was asked to end, `make` gives the device
    /// and its place in the ring.
    ///
    /// # Errors
    /// What goes wrong here, or that rank 0 has ended; `true` stands with it if rank 0 was told.
    pub fn follow<D: Quantize>(
        &self,
        stops: &dyn Fn() -> bool,
        mut make: impl FnMut(&Config) -> Result<(D, Box<dyn Link<D>>)>,
    ) -> Result<(u8, Option<String>), (Error, bool)> {
        let untold = |error| (error, false);
        loop {
            let mut wire = self.wires().remove(0);
            let text = match heard(wire.hear().map_err(untold)?).map_err(untold)? {
                Message::Run(text) => text,
                // What a run that never began left.
                Message::End => continue,
                Message::Bye { code, why } => return Ok((code, why)),
                _ => return Err(untold(out_of_turn(0))),
            };
            let mut begun = || {
                let mut config = Config::from_toml(&text)?;
                let data = load_data(&mut config)?;
                let (device, link) = make(&config)?;
                Ok((config, data, device, link))
            };
            let (config, data, device, link) = match begun() {
                Ok(begun) => begun,
                Err(error) => return Err(told(&mut *wire, error)),
            };
            let ranks = Ranks::member((self.seat.rank, self.seat.size), link, wire);
            // Rank 0 is told of what goes wrong from here on, if it is there.
            serve(&device, &config, &data, ranks, stops).map_err(|error| {
                match self.lost_lead() {
                    None => (error, true),
                    Some(gone) => (gone, false),
                }
            })?;
        }
    }

    /// Says goodbye to the others, which are to end with the same exit code, and say what went wrong.
    pub fn dismiss(&self, code: u8, why: Option<&str>) {
        if let Ok(text) = text_of(&Message::Bye { code, why: why.map(str::to_owned) }) {
            // Whoever is gone needs no telling.
            self.wires().iter_mut().for_each(|wire| drop(wire.tell(&text)));
        }
    }
}

/// An error, and whether rank 0 could be told of it.
fn told(wire: &mut dyn Wire, error: Error) -> (Error, bool) {
    let text = text_of(&Message::Failed(error.to_string()));
    let told = text.and_then(|text| wire.tell(&text)).is_ok();
    (error, told)
}
