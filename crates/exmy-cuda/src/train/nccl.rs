//! The ring of GPUs of several processes, by NCCL: numbers go from one to the next as they are. NCCL sends
//! and receives them and adds nothing, so no bit depends on it.
//!
//! Each edge of the ring is a communicator of its own with two members, and each rank has a stream for what
//! it sends and one for what it receives: on one communicator what is received would wait for what is sent.
//!
//! No call waits inside of NCCL, where nobody could end it: communicators do not block. What takes its time
//! is looked at until it is done, or until the communicator is given up because a rank has ended.
//!
//! # Why nobody waits in a circle
//!
//! A transfer is a kernel that stays on the device until the other member has its own there. Meanwhile any
//! call of the driver may wait for it: new memory, a module, a graph. So a kernel may only wait for what
//! comes about whatever the host behind that call does later. Three rules see to that:
//!
//! * Edges are connected when the ring is joined, by one number each, in the order of the edges and one
//!   after the other. NCCL would do so at the first transfer, and there keep the sender's host waiting for
//!   the receiver's.
//! * A rank receives early: as soon as its part comes to a sum, before the sum is on its way. It sends
//!   late: when the next rank has said, host to host, that it receives (`ring_link`). So what is sent never
//!   waits for the receiver's host.
//! * Before a rank receives anything for a part, all that its part before sends is given to NCCL.
//!
//! Part `p` then waits for earlier parts alone. Its receives wait for what the part before sends. The host
//! that is to send that may itself be held up by the driver, for what is on its device. That is of its own
//! part or of earlier ones, which by the third rule have nothing left to be given. The third rule makes a
//! host wait for another: a rank's next part, `p + N`, waits until part `p + 1` has asked for all that it
//! receives, and that is an earlier part. Part 0 waits for nothing. So no circle closes, whichever calls of
//! the driver wait, those in which NCCL begins a kernel among them, and also where streams share a queue of
//! the device.
//!
//! At the end of a step the sums over all parts are at rank 0. All that was sent in that step is in them,
//! and rank 0's weights, with which they were made: nothing is on its way when weights and sums change.

#![allow(unsafe_code)]

mod library;
mod ring_link;

pub use library::{edges, is_wanted, version};
pub use ring_link::RingLink;

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use exmy::error::{Error, Result};
use exmy_train::train::ranks::Wire;

use crate::Device;
use library::{Communicator, FLOAT32, IN_PROGRESS, Nccl, NcclConfig, OLDEST, Status, id_of, nccl};

/// Blocks of threads that a transfer may take from the kernels beside it. They wait on the device for numbers
/// that come later, so they are few; four fill a good part of NVLink.
const BLOCKS: c_int = 4;

/// How long ranks that have found each other may take to join a ring.
const JOINING: Duration = Duration::from_secs(120);
/// How long what is in progress is looked at without a pause, so that a short wait costs none.
const SOON: Duration = Duration::from_micros(200);
/// How often it is looked at from then on.
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
    is_receiver: bool,
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
        let mut config = NcclConfig {
            size: size_of::<NcclConfig>(),
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
        let edge = Arc::new(Self { nccl, is_receiver, communicator: Mutex::new(held_back) });
        held.hold(&edge)?;
        edge.settle("join a ring", status, Some(Instant::now() + patience))?;
        Ok(edge)
    }

    /// Sends one number, or receives it, and waits until it is there: later transfers find the edge connected
    /// and their kernel loaded.
    fn connect(&self, stream: &Device, patience: Duration) -> Result<()> {
        let (doing, until) = ("connect two ranks", Some(Instant::now() + patience));
        let number = stream.zeros::<f32>(1).map_err(Error::from)?;
        // SAFETY: the stream's buffer has one number, and lives until it is through.
        unsafe { self.transfer(doing, stream, (number.address(), 1), until)? };
        while !stream.backend().is_done().map_err(Error::from)? {
            self.is_there()?;
            self.wait(doing, until)?;
        }
        self.is_there()
    }

    /// Gives NCCL a transfer on a stream: so many numbers from an address on. Waits until NCCL has it, which
    /// is before the numbers have gone.
    ///
    /// # Safety
    /// The stream's device has these numbers, and as long as the communicator was not given up and the
    /// transfer is not through, nobody else writes there, nor reads what is received.
    unsafe fn transfer(
        &self,
        doing: &str,
        stream: &Device,
        (address, len): (u64, usize),
        until: Option<Instant>,
    ) -> Result<()> {
        // Makes the context of this device the thread's.
        let stream = stream.backend().handle().map_err(Error::from)? as *mut c_void;
        // SAFETY: the context is current, and the numbers are there, as the caller promises.
        let begun = self.with(|nccl, edge| unsafe {
            match self.is_receiver {
                true => (nccl.receive)(address as *mut c_void, len, FLOAT32, 0, edge, stream),
                false => (nccl.send)(address as *const c_void, len, FLOAT32, 1, edge, stream),
            }
        })?;
        self.settle(doing, begun, until)
    }

    /// Whether it was not given up.
    fn is_there(&self) -> Result<()> {
        self.with(|_, _| ())
    }

    fn with<T>(&self, work: impl FnOnce(&Nccl, Communicator) -> T) -> Result<T> {
        let held = locked(&self.communicator);
        let communicator = held.ok_or_else(gone)?;
        Ok(work(self.nccl, communicator as Communicator))
    }

    /// Waits until what was begun is done.
    fn settle(&self, doing: &str, begun: Status, until: Option<Instant>) -> Result<()> {
        let (mut status, start) = (begun, Instant::now());
        while status == IN_PROGRESS {
            match start.elapsed() < SOON {
                true => thread::yield_now(),
                false => self.wait(doing, until)?,
            }
            // SAFETY: the handle is a communicator's, and the answer is written to a variable of its type.
            let asked = self.with(|nccl, edge| unsafe { (nccl.state)(edge, &mut status) })?;
            self.nccl.check(doing, asked)?;
        }
        self.nccl.check(doing, status)
    }

    /// Waits for a moment, unless it is too late.
    fn wait(&self, doing: &str, until: Option<Instant>) -> Result<()> {
        if until.is_some_and(|until| Instant::now() > until) {
            self.abort();
            return Err(Error::new(format!("NCCL does not come to {doing}")).hint(
                "NCCL_SOCKET_IFNAME names the network between machines, NCCL_DEBUG=INFO says more; \
                 EXMY_NCCL=tcp does without, slowly",
            ));
        }
        thread::sleep(LOOK);
        Ok(())
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
    /// When it returns all are given up, by whomever: the process may end, and NCCL does nothing any more.
    pub fn abort(&self) {
        let all = {
            let held = &mut *locked(&self.held);
            held.given_up = true;
            held.all.clone()
        };
        abort(&all);
    }
}

/// Gives up edges at once: each waits for what the device has begun, which may wait for another edge.
fn abort(edges: &[Arc<Edge>]) {
    thread::scope(|scope| {
        for edge in edges {
            if thread::Builder::new().spawn_scoped(scope, || edge.abort()).is_err() {
                edge.abort();
            }
        }
    });
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
        // In the order of the edges, and nothing on the device before the edge before is connected, so that
        // nobody waits in a circle.
        let mut ends = [(rank, false), (before, true)];
        ends.sort_unstable();
        let mut found = [None, None];
        for (edge, is_receiver) in ends {
            let joined = Edge::join(nccl, (&names[edge], is_receiver), held, JOINING)?;
            let end = usize::from(is_receiver);
            joined.connect(&streams[end], JOINING)?;
            found[end] = Some(joined);
        }
        match found {
            [Some(to), Some(from)] => Ok(Self { to, from, streams }),
            _ => unreachable!("each rank has two edges"),
        }
    }

    /// The link of one run's numbers, with wires to the ranks before and behind this one that carry no other
    /// words meanwhile.
    ///
    /// # Errors
    /// If a thread cannot begin.
    pub fn link(&self, beside: [Box<dyn Wire>; 2]) -> Result<RingLink> {
        RingLink::new(self, beside)
    }
}

#[cfg(test)]
mod tests;
