//! The ring of GPUs of several processes, by NCCL: numbers go from one to the next as they are. NCCL sends
//! and receives them and adds nothing, so no bit depends on it.
//!
//! Each edge of the ring is a communicator of its own with two members, and each rank has a stream for what
//! it sends and one for what it receives: on one communicator what is received would wait for what is sent.
//!
//! No call waits inside of NCCL, where nobody could end it: communicators do not block. What takes its time
//! is looked at until it is done, or until the communicator is given up because a rank has ended.

#![allow(unsafe_code)]

mod library;

pub use library::{edges, is_off, version};

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use exmy::error::{Error, Result};
use exmy_train::nn::device::{Slice, SliceMut};
use exmy_train::train::ranks::Link;

use super::Cuda;
use super::ring::failed;
use crate::Device;
use library::{Communicator, Config, FLOAT32, IN_PROGRESS, Nccl, OLDEST, Status, id_of, nccl};

/// Blocks of threads that a transfer may take from the kernels beside it. They wait on the device for numbers
/// that come later, so they are few; four fill a good part of NVLink.
const BLOCKS: c_int = 4;

/// How long ranks that have found each other may take to join a ring.
const JOINING: Duration = Duration::from_secs(120);
/// How often what is in progress is looked at.
const LOOK: Duration = Duration::from_micros(100);

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone() -> Error {
    Error::new("another rank has ended")
}

/// A communicator of two, until it is given up. The lock is held for single calls alone, none of which waits.
struct Edge {
    nccl: &'static Nccl,
    communicator: Mutex<Option<usize>>,
}

impl Edge {
    /// Joins an edge, which `held` may give up from the first moment on.
    fn join(
        nccl: &'static Nccl,
        (name, is_receiver): (&str, bool),
        held: &Edges,
        patience: Duration,
    ) -> Result<Arc<Self>> {
        let id = id_of(name).ok_or_else(|| Error::new("rank 0 names no ring of NCCL"))?;
        let mut communicator = ptr::null_mut();
        let undefined = c_int::MIN;
        let mut config = Config {
            size: size_of::<Config>(),
            magic: 0xCAFE_BEEF,
            version: OLDEST.unsigned_abs(),
            blocking: 0,
            cluster: undefined,
            least: undefined,
            most: BLOCKS,
            network: ptr::null(),
            split_share: undefined,
        };
        // SAFETY: this device's context is current; the configuration and the handle are variables of their
        // types.
        let status =
            unsafe { (nccl.join)(&mut communicator, 2, id, c_int::from(is_receiver), &mut config) };
        let held_back = (!communicator.is_null()).then_some(communicator as usize);
        let edge = Arc::new(Self { nccl, communicator: Mutex::new(held_back) });
        held.hold(&edge)?;
        edge.settle("join a ring", status, Some(Instant::now() + patience))?;
        Ok(edge)
    }

    /// Asks something of the communicator, if it was not given up, and waits until that is done.
    fn ask(&self, doing: &str, work: impl FnOnce(&Nccl, Communicator) -> Status) -> Result<()> {
        let status = self.with(work)?;
        self.settle(doing, status, None)
    }

    fn with<T>(&self, work: impl FnOnce(&Nccl, Communicator) -> T) -> Result<T> {
        let held = locked(&self.communicator);
        let communicator = held.ok_or_else(gone)?;
        Ok(work(self.nccl, communicator as Communicator))
    }

    /// Waits until what was begun is done.
    fn settle(&self, doing: &str, begun: Status, until: Option<Instant>) -> Result<()> {
        let mut status = begun;
        while status == IN_PROGRESS {
            if until.is_some_and(|until| Instant::now() > until) {
                self.abort();
                return Err(Error::new(format!("NCCL does not come to {doing}")).hint(
                    "NCCL_SOCKET_IFNAME names the network between machines, NCCL_DEBUG=INFO says more; \
                     EXMY_NCCL=tcp does without, slowly",
                ));
            }
            thread::sleep(LOOK);
            // SAFETY: the handle is a communicator's, and the answer is written to a variable of its type.
            let asked = self.with(|nccl, edge| unsafe { (nccl.state)(edge, &mut status) })?;
            self.nccl.check(doing, asked)?;
        }
        self.nccl.check(doing, status)
    }

    /// Ends what waits on the device for the other member.
    fn abort(&self) {
        if let Some(communicator) = locked(&self.communicator).take() {
            // SAFETY: the handle is a communicator's, and is not used again: no call is under way while this
            // holds the lock. What fails then has ended.
            unsafe { (self.nccl.abort)(communicator as Communicator) };
        }
    }
}

/// The edges of a rank, given up when another rank ends.
#[derive(Clone, Default)]
pub struct Edges {
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    all: Vec<Arc<Edge>>,
    given_up: bool,
}

impl Edges {
    fn hold(&self, edge: &Arc<Edge>) -> Result<()> {
        let held = &mut *locked(&self.held);
        if held.given_up {
            edge.abort();
            return Err(gone());
        }
        held.all.push(edge.clone());
        Ok(())
    }

    /// Gives up all edges, those to come as well: what waits for another rank ends, here or on the device.
    pub fn abort(&self) {
        let all = {
            let held = &mut *locked(&self.held);
            held.given_up = true;
            std::mem::take(&mut held.all)
        };
        // At once: each waits for what the device has begun, which may wait for the other edge.
        thread::scope(|scope| {
            for edge in &all {
                if thread::Builder::new().spawn_scoped(scope, || edge.abort()).is_err() {
                    edge.abort();
                }
            }
        });
    }
}

impl std::fmt::Debug for Edges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Edges")
    }
}

/// A rank's place in a ring of processes.
#[derive(Clone)]
pub struct Remote {
    to: Arc<Edge>,
    from: Arc<Edge>,
    /// Streams on which numbers are sent and received.
    streams: [Device; 2],
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote on {:?}", self.streams[0])
    }
}

impl Remote {
    /// Joins the ring as rank `rank`, with the names of all its edges; waits for the ranks beside it.
    ///
    /// # Errors
    /// If NCCL is not there or fails.
    pub fn join(device: &Device, rank: usize, names: &[String], held: &Edges) -> Result<Self> {
        Self::join_by(nccl()?, device, (rank, names), held)
    }

    fn join_by(
        nccl: &'static Nccl,
        device: &Device,
        (rank, names): (usize, &[String]),
        held: &Edges,
    ) -> Result<Self> {
        let size = names.len();
        let before = (rank + size - 1) % size;
        let streams =
            [device.stream().map_err(Error::from)?, device.stream().map_err(Error::from)?];
        // Makes the context of this device the thread's.
        device.synchronize().map_err(Error::from)?;
        // In the order of the edges, so that nobody waits in a circle.
        let mut ends = [(rank, false), (before, true)];
        ends.sort_unstable();
        let mut found = [None, None];
        for (edge, is_receiver) in ends {
            let joined = Edge::join(nccl, (&names[edge], is_receiver), held, JOINING)?;
            found[usize::from(is_receiver)] = Some(joined);
        }
        match found {
            [Some(to), Some(from)] => Ok(Self { to, from, streams }),
            _ => unreachable!("each rank has two edges"),
        }
    }
}

impl Link<Cuda> for Remote {
    fn wait_for(&mut self, device: &Cuda) -> Result<()> {
        let [_, receives] = &self.streams;
        let waits = device.attempt(|| receives.after(&device.device().mark()?));
        waits.ok_or_else(|| failed(device))
    }

    fn send(&mut self, device: &Cuda, numbers: Slice<'_, Cuda>) -> Result<()> {
        let Some(buffer) = &numbers.memory().buffer else { return Err(failed(device)) };
        let address = buffer.address() + 4 * numbers.start() as u64;
        let [stream, _] = &self.streams;
        let ready = device.attempt(|| {
            stream.after(&device.device().mark()?)?;
            stream.backend().handle()
        });
        let handle = ready.ok_or_else(|| failed(device))?;
        // SAFETY: the context is current, the buffer has as many numbers from there on, and they are not
        // written before the receiver has them.
        self.to.ask("send", |nccl, edge| unsafe {
            let (from, stream) = (address as *const c_void, handle as *mut c_void);
            (nccl.send)(from, numbers.len(), FLOAT32, 1, edge, stream)
        })
    }

    fn receive(&mut self, device: &Cuda, to: SliceMut<'_, Cuda>) -> Result<()> {
        let (start, len, memory) = (to.start(), to.len(), to.into_memory());
        let Some(buffer) = &memory.buffer else { return Err(failed(device)) };
        let address = buffer.address() + 4 * start as u64;
        let [_, stream] = &self.streams;
        let handle = device.attempt(|| stream.backend().handle()).ok_or_else(|| failed(device))?;
        // SAFETY: the context is current and the buffer has as many numbers from there on. What the device
        // was asked to do with them before comes first: the stream waits for it, or all that goes around the
        // ring came after it.
        self.from.ask("receive", |nccl, edge| unsafe {
            let (to, stream) = (address as *mut c_void, handle as *mut c_void);
            (nccl.receive)(to, len, FLOAT32, 0, edge, stream)
        })?;
        let waits = device.attempt(|| device.device().after(&stream.mark()?));
        waits.ok_or_else(|| failed(device))
    }

    fn check(&self) -> Result<()> {
        // What is given up ends on the device, too, as if it had come.
        [&self.to, &self.from].into_iter().try_for_each(|edge| edge.with(|_, _| ()))
    }
}

#[cfg(test)]
mod tests;
