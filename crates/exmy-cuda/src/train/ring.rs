//! The ring of the GPUs of one process: numbers go from one to the next by the driver's own copies, over
//! NVLink or PCIe, without the host looking at them.
//!
//! A rank that hands numbers on marks the point of its stream at which they are complete, and goes on. The
//! next one copies them in a stream of its own once that point is reached, while its other stream computes.
//! That stream waits for the copy where it needs the numbers.
//!
//! What is handed on must not change until it is copied. It does not: each sum is written again only after it
//! has been around the ring, and so do the weights, which change after all sums are there. What a copy writes
//! to must not be in use: the stream of copies waits for what the other did before ([`Link::wait_for`]).

use std::sync::mpsc::{Receiver, Sender, channel};

use exmy::error::{Error, Result};
use exmy_train::nn::device::{Slice, SliceMut};
use exmy_train::train::ranks::Link;

use super::Cuda;
use crate::Device;
use crate::backend::Mark;

/// Numbers of another device.
struct Lent {
    device: Device,
    address: u64,
    len: usize,
    /// When they are complete.
    mark: Mark,
}

/// One rank's place in the ring.
pub struct Ring {
    /// Streams that copy.
    copies: Device,
    to: Option<Sender<Lent>>,
    from: Option<Receiver<Lent>>,
    /// Ends when the next rank reads no more.
    read: Receiver<()>,
    /// Held as long as this rank reads what the one before has.
    reads: Option<Sender<()>>,
}

/// A ring of the streams of some devices, in their order.
///
/// # Errors
/// If a device fails.
pub fn ring(devices: &[Cuda]) -> crate::Result<Vec<Ring>> {
    let size = devices.len();
    let (mut to, from): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
    to.rotate_left(1);
    let (reads, mut read): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
    read.rotate_left(1);
    let mut ring = Vec::new();
    let ways = to.into_iter().zip(from).zip(read.into_iter().zip(reads));
    for (rank, ((to, from), (read, reads))) in ways.enumerate() {
        let (here, next) = (devices[rank].device(), devices[(rank + 1) % size].device());
        here.backend().lend_to(next.backend())?;
        let copies = here.stream()?;
        ring.push(Ring { copies, to: Some(to), from: Some(from), read, reads: Some(reads) });
    }
    Ok(ring)
}

fn gone() -> Error {
    Error::new("another GPU of the run has ended")
}

/// What went wrong on a device first, or that a number has no memory.
pub(super) fn failed(device: &Cuda) -> Error {
    use exmy_train::nn::device::Storage;
    device.check().err().unwrap_or_else(|| Error::new("there is no memory for these numbers"))
}

/// Where numbers begin on their device, and the point of its stream at which they are complete.
pub(super) fn marked(device: &Cuda, numbers: &Slice<'_, Cuda>) -> Result<(u64, Mark)> {
    let Some(buffer) = &numbers.memory().buffer else { return Err(failed(device)) };
    let address = buffer.address() + 4 * numbers.start() as u64;
    let mark = device.attempt(|| device.device().mark()).ok_or_else(|| failed(device))?;
    Ok((address, mark))
}

impl Link<Cuda> for Ring {
    fn wait_for(&mut self, device: &Cuda) -> Result<()> {
        let waits = device.attempt(|| self.copies.after(&device.device().mark()?));
        waits.ok_or_else(|| failed(device))
    }

    fn send(&mut self, device: &Cuda, numbers: Slice<'_, Cuda>) -> Result<()> {
        let (address, mark) = marked(device, &numbers)?;
        let lent = Lent { device: device.device().clone(), address, len: numbers.len(), mark };
        self.to.as_ref().and_then(|to| to.send(lent).ok()).ok_or_else(gone)
    }

    fn receive(&mut self, device: &Cuda, to: SliceMut<'_, Cuda>) -> Result<()> {
        let lent = self.from.as_ref().and_then(|from| from.recv().ok()).ok_or_else(gone)?;
        assert_eq!(lent.len, to.len(), "all ranks name the same ranges in the same order");
        let (start, memory) = (to.start(), to.into_memory());
        let Some(buffer) = &memory.buffer else { return Err(failed(device)) };
        let address = buffer.address() + 4 * start as u64;
        let copied = device.attempt(|| {
            self.copies.after(&lent.mark)?;
            let (here, there) = (self.copies.backend(), lent.device.backend());
            here.copy_from(there, address, lent.address, 4 * lent.len)?;
            device.device().after(&self.copies.mark()?)
        });
        copied.ok_or_else(|| failed(device))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Who waits for this rank ends; who it reads from may free its memory once it reads no more.
        (self.to, self.from) = (None, None);
        drop(self.copies.synchronize());
        self.reads = None;
        // Nothing is ever sent: this ends with the other end, before which no memory here may be freed.
        let _ = self.read.recv();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::recorded::Record;
    use crate::train::verify;
    use exmy_train::nn::device::{MatrixMut, Storage as _};
    use exmy_train::train::record::Metrics;
    use exmy_train::train::run::{Folder, Job, Watch, load_data, lock};
    use exmy_train::train::together::train_together;

    struct Silent;

    impl Watch for Silent {
        fn step(&mut self, _: &Metrics, _: u64) -> bool {
            true
        }

        fn phase(&mut self, _: &str) {}
    }

    /// Everything that two and three devices copy in a run is in order with what their other streams do.
    #[test]
    fn copies_come_after_what_the_memory_was_used_for() {
        for size in [2, 3] {
            let record = Record::default();
            let devices: Vec<Cuda> = (0..size).map(|_| Cuda::new(record.device())).collect();
            let place = tempfile::tempdir().unwrap();
            let mut config = verify::runs::config(verify::runs::FAMILIES[1], "f32").unwrap();
            config = config.overlaid("[train]\nbatch = 5\naccumulate = 5").unwrap();
            config.train = config.train.with_steps(3);
            let data = load_data(&mut config).unwrap();
            let folder = Folder::new(place.path().join("run"));
            folder.create(&config).unwrap();
            let lock = lock(&folder).unwrap().unwrap();
            let links = ring(&devices).unwrap().into_iter().map(|link| Box::new(link) as _);
            let places = (&devices[..], links.collect());
            train_together(places, 1, Job::new(&folder, &data, &mut Silent, &lock)).unwrap();
            assert_eq!(record.races(), [""; 0], "{size} devices");
        }
    }

    /// A copy waits for what it must and for nothing else: it overlaps with what was asked meanwhile.
    #[test]
    fn copies_wait_for_nothing_else() {
        let record = Record::default();
        let devices = [(); 2].map(|()| Cuda::new(record.device()));
        let mut links = ring(&devices).unwrap();
        let [mut sums, mut other] = [(); 2].map(|()| devices[1].buffer(vec![0.0; 8]));
        let fill = |x: &mut exmy_train::nn::device::Buffer<Cuda>| {
            devices[1].fill(MatrixMut::new(x.all_mut(), 1, 8), 0.0);
        };
        fill(&mut sums);
        links[1].wait_for(&devices[1]).unwrap();
        fill(&mut other);
        let sent = devices[0].buffer(vec![1.0; 8]);
        links[0].send(&devices[0], sent.all()).unwrap();
        links[1].receive(&devices[1], sums.all_mut()).unwrap();
        assert_eq!(record.races(), [""; 0]);
        // Were the copy behind the second fill, it might as well write there.
        links[0].send(&devices[0], sent.all()).unwrap();
        links[1].receive(&devices[1], other.all_mut()).unwrap();
        assert_eq!(record.races().len(), 1, "{:?}", record.races());
        let [first, second] = <[Ring; 2]>::try_from(links).ok().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(first));
            drop(second);
        });
    }
}
