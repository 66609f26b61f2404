//! The ring of the GPUs of one process: numbers go from one to the next by the driver's own copies, over
//! NVLink or PCIe, without the host looking at them.
//!
//! A rank that hands numbers on marks the point of its stream at which they are complete, and goes on. The
//! next one copies them in a stream of its own once that point is reached, while its other stream computes.
//! That stream waits for the copy where it needs the numbers.
//!
//! What is handed on must not change until it is copied. It does not: each sum is written again only after it
//! has been around the ring, and so do the weights, which change after all sums are there.

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
    use exmy_train::nn::device::Device;
    device.check().err().unwrap_or_else(|| Error::new("there is no memory for these numbers"))
}

impl Link<Cuda> for Ring {
    fn send(&mut self, device: &Cuda, numbers: Slice<'_, Cuda>) -> Result<()> {
        let Some(buffer) = &numbers.memory().buffer else { return Err(failed(device)) };
        let address = buffer.address() + 4 * numbers.start() as u64;
        let Some(mark) = device.attempt(|| device.device().mark()) else {
            return Err(failed(device));
        };
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
