//! Ranks that are threads of one process, each with a device.

use crate::train::device::TrainingDevice;
use crate::train::ranks::{Link, Ranks, Wire, channels, divides};
use crate::train::run::{Job, Outcome};
use exmy::error::{Error, Result};
use exmy::parallel;
use std::thread;

/// Trains a claimed run on several devices, rank 0 on this thread and each other on one of its own with
/// `threads` of the processor. `links` are the places of the devices in a ring.
///
/// # Errors
/// As [`train_on`](crate::train::run::train_on), if steps have fewer parts than there are devices, and if a
/// thread cannot begin.
pub fn train_together<D: TrainingDevice>(
    (devices, links): (&[D], Vec<Box<dyn Link<D>>>),
    threads: usize,
    job: Job<'_>,
) -> Result<Outcome> {
    let (config, data, size) = (job.folder.config()?, job.data, devices.len());
    divides(&config, size)?;
    let mut places = devices.iter().zip(links);
    let Some((first, lead)) = places.next() else { return Err(Error::new("no device is named")) };
    thread::scope(|scope| {
        let mut wires: Vec<Box<dyn Wire>> = Vec::new();
        for (rank, (device, link)) in (1..).zip(places) {
            let [here, there] = channels(rank);
            let (ranks, config) = (Ranks::member((rank, size), link, Box::new(there)), &config);
            let work = move || {
                // What goes wrong is told to rank 0, also that there are no threads: the wire is gone then.
                let _ = parallel::with_threads(threads, || {
                    device.serve(config, data, ranks, &|| false)
                });
            };
            wires.push(Box::new(here));
            thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(|error| Error::new("cannot start threads").because(error))?;
        }
        let ranks = (size > 1).then(|| Ranks::lead(lead, wires));
        first.train(ranks, job)
    })
}
