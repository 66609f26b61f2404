//! A run's link to its neighbours in the ring: receives are given to NCCL at once, and each is told to the
//! rank before. Sends wait in a queue until the next rank has told its receive. A thread gives them to NCCL
//! in their order, and the one that trains goes on. It waits for the queue only where it comes to receive for
//! its next part.
//!
//! When the link ends, the thread does. What still waits is given up with both edges: its memory may go
//! then.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use exmy::error::{Error, Result};
use exmy_train::nn::device::{Slice, SliceMut};
use exmy_train::train::ranks::{Link, Wire};

use super::super::Cuda;
use super::super::ring::{failed, marked};
use super::{Edge, Remote, abort, gone, locked};
use crate::Device;
use crate::backend::Mark;

/// How often the thread looks whether what it waits for was given up.
const LOOK: Duration = Duration::from_millis(20);

/// What a rank tells the one before it: it receives so many numbers now.
fn ready(len: usize) -> String {
    format!("ready for {len} numbers")
}

/// Numbers to be sent.
struct Parcel {
    address: u64,
    len: usize,
    /// When they are complete.
    mark: Mark,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Parcel>,
    /// How many were given to NCCL.
    given: usize,
    /// The link has ended.
    closed: bool,
    /// The thread has ended, and why until somebody has said it.
    ended: bool,
    failure: Option<Error>,
}

impl Queue {
    fn check(&mut self) -> Result<()> {
        if self.ended { Err(self.failure.take().unwrap_or_else(gone)) } else { Ok(()) }
    }
}

/// Sends in their order, on the way from the thread that trains to the one that gives them to NCCL.
#[derive(Default)]
struct Outbox {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Outbox {
    fn wait_while(
        &self,
        condition: impl FnMut(&mut Queue) -> bool,
    ) -> std::sync::MutexGuard<'_, Queue> {
        let waited = self.changed.wait_while(locked(&self.queue), condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue, and lets all look who wait for that.
    fn change<T>(&self, work: impl FnOnce(&mut Queue) -> T) -> T {
        let done = work(&mut locked(&self.queue));
        self.changed.notify_all();
        done
    }

    /// Gives everything to NCCL once the next rank is ready for it, until the link ends.
    fn empty(&self, to: &Edge, stream: &Device, next: &mut dyn Wire) -> Result<()> {
        loop {
            let queue = self.wait_while(|queue| queue.waiting.is_empty() && !queue.closed);
            let Some(first) = queue.waiting.front().filter(|_| !queue.closed) else {
                return Ok(());
            };
            let (address, len, mark) = (first.address, first.len, first.mark.clone());
            drop(queue);
            let word = loop {
                to.is_there()?;
                if let Some(word) = next.listen(LOOK)? {
                    break word;
                }
                if locked(&self.queue).closed {
                    return Ok(());
                }
            };
            if word != ready(len) {
                return Err(Error::new(format!("the next rank is {word}, and {len} are sent"))
                    .hint("all ranks need one program and one configuration"));
            }
            stream.after(&mark).map_err(Error::from)?;
            // SAFETY: the numbers are a buffer's that outlives the link, and are not written before the next
            // rank has them.
            unsafe { to.transfer("send", stream, (address, len), None)? };
            self.change(|queue| {
                queue.waiting.pop_front();
                queue.given += 1;
            });
        }
    }
}

/// A rank's place in the ring, for one run.
pub struct RingLink {
    remote: Remote,
    before: Box<dyn Wire>,
    outbox: Arc<Outbox>,
    thread: Option<JoinHandle<()>>,
    sent: usize,
    /// How many of those sent come before what is received now.
    first: usize,
}

impl RingLink {
    pub(super) fn new(remote: &Remote, [before, mut next]: [Box<dyn Wire>; 2]) -> Result<Self> {
        let outbox = Arc::new(Outbox::default());
        let (queue, to, stream) = (outbox.clone(), remote.to.clone(), remote.streams[0].clone());
        let work = move || {
            let done = queue.empty(&to, &stream, &mut *next);
            queue.change(|queue| (queue.ended, queue.failure) = (true, done.err()));
        };
        let thread = thread::Builder::new()
            .spawn(work)
            .map_err(|error| Error::new("cannot start threads").because(error))?;
        let (remote, thread) = (remote.clone(), Some(thread));
        Ok(Self { remote, before, outbox, thread, sent: 0, first: 0 })
    }
}

impl Link<Cuda> for RingLink {
    fn turn(&mut self) {
        self.first = self.sent;
    }

    fn wait_for(&mut self, device: &Cuda) -> Result<()> {
        let [_, receives] = &self.remote.streams;
        let waits = device.attempt(|| receives.after(&device.device().mark()?));
        waits.ok_or_else(|| failed(device))
    }

    fn send(&mut self, device: &Cuda, numbers: Slice<'_, Cuda>) -> Result<()> {
        let (address, mark) = marked(device, &numbers)?;
        self.sent += 1;
        self.outbox.change(|queue| {
            queue.waiting.push_back(Parcel { address, len: numbers.len(), mark });
            queue.check()
        })
    }

    fn receive(&mut self, device: &Cuda, to: SliceMut<'_, Cuda>) -> Result<()> {
        let (start, len, memory) = (to.start(), to.len(), to.into_memory());
        let Some(buffer) = &memory.buffer else { return Err(failed(device)) };
        let address = buffer.address() + 4 * start as u64;
        self.outbox.wait_while(|queue| queue.given < self.first && !queue.ended).check()?;
        let [_, stream] = &self.remote.streams;
        // SAFETY: the buffer has as many numbers from there on. What the device was asked to do with them
        // before comes first: the stream waits for it, or all that goes around the ring came after it.
        unsafe { self.remote.from.transfer("receive", stream, (address, len), None)? };
        self.before.tell(&ready(len))?;
        let waits = device.attempt(|| device.device().after(&stream.mark()?));
        waits.ok_or_else(|| failed(device))
    }

    fn check(&self) -> Result<()> {
        locked(&self.outbox.queue).check()?;
        // What is given up ends on the device, too, as if it had come.
        [&self.remote.to, &self.remote.from].into_iter().try_for_each(|edge| edge.is_there())
    }
}

impl Drop for RingLink {
    fn drop(&mut self) {
        self.outbox.change(|queue| queue.closed = true);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        if !locked(&self.outbox.queue).waiting.is_empty() {
            abort(&[self.remote.to.clone(), self.remote.from.clone()]);
        }
    }
}
