//! Links and wires between the threads of a process, by way of the host's memory: for ranks on the CPU, and
//! for any device that has no shorter way.

use super::{Link, Wire};
use crate::nn::device::{Device, Matrix, MatrixMut, Slice, SliceMut};
use exmy::error::{Error, Result};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A link that copies numbers to the host, hands them to another thread, and copies them to its device.
#[derive(Debug)]
pub struct Staged {
    to: Sender<Vec<f32>>,
    from: Receiver<Vec<f32>>,
}

/// What a rank says when one beside it is gone.
fn gone() -> Error {
    Error::new("another rank has ended")
}

/// A ring of links for so many ranks, in their order.
pub fn rings(size: usize) -> Vec<Staged> {
    let (mut to, from): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
    // Rank r sends into what rank r + 1 receives from.
    to.rotate_left(1);
    to.into_iter().zip(from).map(|(to, from)| Staged { to, from }).collect()
}

impl<D: Device<Real = f32>> Link<D> for Staged {
    fn send(&mut self, device: &D, numbers: Slice<'_, D>) -> Result<()> {
        self.to.send(device.read(numbers).into_owned()).map_err(|_| gone())
    }

    fn receive(&mut self, device: &D, to: SliceMut<'_, D>) -> Result<()> {
        let numbers = self.from.recv().map_err(|_| gone())?;
        put(device, numbers, to)
    }
}

/// Writes numbers of the host to a range on a device.
pub(super) fn put<D: Device<Real = f32>>(
    device: &D,
    numbers: Vec<f32>,
    to: SliceMut<'_, D>,
) -> Result<()> {
    let len = to.len();
    if numbers.len() != len {
        let found = numbers.len();
        return Err(Error::new(format!("the rank before sends {found} numbers in place of {len}"))
            .hint("all ranks need one program and one configuration"));
    }
    let numbers = device.buffer(numbers);
    device.copy(Matrix::new(numbers.all(), 1, len), MatrixMut::new(to, 1, len));
    Ok(())
}

/// A wire between two threads.
#[derive(Debug)]
pub struct Channel {
    to: Sender<String>,
    from: Receiver<String>,
    /// The rank at its other end.
    other: usize,
}

/// Both ends of a wire, rank 0's and that of another rank.
pub fn channels(rank: usize) -> [Channel; 2] {
    let ((to_one, from_two), (to_two, from_one)) = (channel(), channel());
    let there = Channel { to: to_two, from: from_two, other: 0 };
    [Channel { to: to_one, from: from_one, other: rank }, there]
}

impl Channel {
    fn gone(&self) -> Error {
        Error::new(format!("rank {} has ended", self.other))
    }
}

impl Wire for Channel {
    fn tell(&mut self, message: &str) -> Result<()> {
        self.to.send(message.to_owned()).map_err(|_| self.gone())
    }

    fn hear(&mut self) -> Result<String> {
        self.from.recv().map_err(|_| self.gone())
    }

    fn listen(&mut self, patience: Duration) -> Result<Option<String>> {
        match self.from.recv_timeout(patience) {
            Ok(text) => Ok(Some(text)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
        }
    }
}
