//! A device that computes nothing and writes down what it is asked, to find races between its streams.
//! Numbers that come back from it are zeros.
//!
//! Things are in order if they are of one stream, if one stream waited for a mark of the other in between,
//! or if the host waited for the first. Two things that touch the same memory, one of which writes, and are
//! not in order are a race. What kernels touch is known of `fill` and `copy` alone.
//!
//! Everything is done as soon as what comes before is, except for transfers of other libraries. Those are
//! done once both ends have begun, and calls may wait for them, as the driver's do: a circle of them hangs
//! here, too.

use std::any::Any;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::{Backend, Boxes, Grid, Mark, Properties};
use crate::module::Module;
use crate::{Device, Result};

/// Devices whose streams may wait for each other.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Shared>);

#[derive(Default)]
struct Shared {
    seen: Mutex<Progress>,
    /// Some transfers are through.
    moved: Condvar,
    ways: Ways,
}

/// How a driver may behave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    /// Each call whose number is a multiple of this waits for all that the device has begun; with 0 none does
    /// but those for memory.
    pub(crate) waits: usize,
    /// Whether all streams of a device share a queue: nothing begins before what was asked earlier has begun.
    pub(crate) one_queue: bool,
}

/// One end of a transfer that has not come to its end.
struct Transfer {
    /// What both ends name alike, and the number of the transfer there.
    edge: usize,
    number: usize,
    receives: bool,
    device: usize,
    stream: usize,
    time: usize,
    /// What it comes after.
    after: Clock,
}

/// How far into each stream something comes after, by the stream's number.
type Clock = Vec<usize>;

#[derive(Default)]
struct Progress {
    /// Where each stream has come to.
    streams: Vec<Clock>,
    /// What the host has waited for.
    done: Clock,
    /// Memory that was handed out so far.
    memory: u64,
    touched: Vec<Touched>,
    /// Where the ends of transfers are in what was touched: the sender's and the receiver's.
    ends: HashMap<(usize, usize), [Option<usize>; 2]>,
    devices: usize,
    /// The device of each stream.
    of: Vec<usize>,
    /// What the queue of each device waits for, where there is only one.
    queues: Vec<Clock>,
    open: Vec<Transfer>,
    calls: usize,
}

struct Touched {
    doing: &'static str,
    memory: Range<u64>,
    writes: bool,
    stream: usize,
    time: usize,
    /// What it comes after, itself with it.
    after: Clock,
    /// The transfer of which it is the receiver's end.
    receives: Option<(usize, usize)>,
}

fn join(clock: &mut Clock, other: &[usize]) {
    clock.resize(clock.len().max(other.len()), 0);
    clock.iter_mut().zip(other).for_each(|(time, &other)| *time = (*time).max(other));
}

impl Progress {
    fn touch(&mut self, doing: &'static str, stream: usize, all: &[(u64, usize, bool)]) {
        let done = self.done.clone();
        let clock = &mut self.streams[stream];
        join(clock, &done);
        join(&mut self.queues[self.of[stream]], clock);
        clock[stream] += 1;
        let clock = clock.clone();
        let time = clock[stream];
        for &(address, bytes, writes) in all {
            let (memory, after) = (address..address + bytes as u64, clock.clone());
            self.touched.push(Touched {
                doing,
                memory,
                writes,
                stream,
                time,
                after,
                receives: None,
            });
        }
    }

    /// What each thing comes after. After a receive comes what is after it and all that its sender's end is
    /// after, which may have been asked for later.
    fn order(&self) -> Vec<Clock> {
        let mut receives = vec![Vec::new(); self.streams.len()];
        for (at, one) in self.touched.iter().enumerate().filter(|(_, one)| one.receives.is_some()) {
            receives[one.stream].push(at);
        }
        let mut found = vec![None; self.touched.len()];
        (0..self.touched.len()).map(|at| self.reach(at, &receives, &mut found)).collect()
    }

    fn reach(&self, at: usize, receives: &[Vec<usize>], found: &mut [Option<Clock>]) -> Clock {
        if let Some(found) = &found[at] {
            return found.clone();
        }
        let one = &self.touched[at];
        let mut clock = one.after.clone();
        let sender = one.receives.and_then(|transfer| self.ends[&transfer][0]);
        if let Some(sender) = sender {
            join(&mut clock, &self.reach(sender, receives, found));
        }
        loop {
            let before = clock.clone();
            for (&until, own) in before.iter().zip(receives) {
                // The last one comes after the others of its stream.
                let first = own.partition_point(|&other| self.touched[other].time <= until);
                let last = own[..first].iter().rev().find(|&&other| other != at);
                if let Some(&last) = last {
                    join(&mut clock, &self.reach(last, receives, found));
                }
            }
            if clock == before {
                found[at] = Some(clock.clone());
                return clock;
            }
        }
    }

    fn races(&self) -> Vec<String> {
        let order = self.order();
        let is_before = |one: &Touched, after: &Clock| {
            after.get(one.stream).is_some_and(|&time| time >= one.time)
        };
        let mut races = Vec::new();
        for (at, one) in self.touched.iter().enumerate() {
            for (before, other) in self.touched[..at].iter().enumerate() {
                let meets = other.memory.start < one.memory.end
                    && one.memory.start < other.memory.end
                    && (one.writes || other.writes);
                if meets && !is_before(other, &order[at]) && !is_before(one, &order[before]) {
                    let [(own, stream), (first, of)] =
                        [one, other].map(|one| (one.doing, one.stream));
                    races.push(format!("{own} (stream {stream}), {first} (stream {of})"));
                }
            }
        }
        races
    }

    fn wait(&mut self, stream: usize) {
        let clock = self.streams[stream].clone();
        join(&mut self.done, &clock);
    }

    fn stream(&mut self, device: usize) -> usize {
        let stream = self.streams.len();
        self.streams.push(vec![0; stream + 1]);
        self.of.push(device);
        stream
    }

    /// Whether transfers are open up to a point.
    fn is_open(&self, until: &Clock) -> bool {
        self.open.iter().any(|one| until.get(one.stream).is_some_and(|&time| time >= one.time))
    }

    /// Ends transfers of which both ends may begin.
    fn advance(&mut self) {
        let pair = |seen: &Self| {
            let begun: Vec<_> = seen.open.iter().filter(|one| !seen.is_open(&one.after)).collect();
            begun.iter().find_map(|one| {
                let other = |other: &&&Transfer| {
                    (other.edge, other.number) == (one.edge, one.number)
                        && other.receives != one.receives
                };
                begun.iter().find(other).map(|_| (one.edge, one.number))
            })
        };
        while let Some(through) = pair(self) {
            self.open.retain(|one| (one.edge, one.number) != through);
        }
    }
}

impl Record {
    /// Devices whose driver behaves so.
    pub(crate) fn with(ways: Ways) -> Self {
        Self(Arc::new(Shared { ways, ..Shared::default() }))
    }

    fn seen(&self) -> MutexGuard<'_, Progress> {
        self.0.seen.lock().unwrap()
    }

    /// Another device, and a stream of it.
    pub(crate) fn device(&self) -> Device {
        let index = {
            let seen = &mut *self.seen();
            seen.queues.push(Clock::new());
            seen.devices += 1;
            seen.devices - 1
        };
        let properties = Properties {
            name: "recorded".into(),
            index,
            capability: (8, 0),
            memory: 1 << 34,
            processors: 4,
            shared: 99 << 10,
            driver: (0, 0),
        };
        Device::with(Arc::new(Recorded::new(self, Arc::new(properties))))
    }

    /// What was not in order.
    pub(crate) fn races(&self) -> Vec<String> {
        self.seen().races()
    }

    /// A library of others works on the stream of this handle.
    pub(crate) fn touch(&self, doing: &'static str, handle: usize, all: &[(u64, usize, bool)]) {
        self.seen().touch(doing, handle, all);
    }

    /// A library of others begins one end of the transfer of this number over an edge, on the stream of this
    /// handle.
    pub(crate) fn transfer(
        &self,
        (edge, number): (usize, usize),
        receives: bool,
        handle: usize,
        (address, bytes): (u64, usize),
    ) {
        let seen = &mut *self.seen();
        seen.touch(
            if receives { "a receive" } else { "a send" },
            handle,
            &[(address, bytes, receives)],
        );
        let at = seen.touched.len() - 1;
        seen.ends.entry((edge, number)).or_default()[usize::from(receives)] = Some(at);
        seen.touched[at].receives = receives.then_some((edge, number));
        let (device, mut after) = (seen.of[handle], seen.streams[handle].clone());
        let time = after[handle];
        after[handle] -= 1;
        if self.0.ways.one_queue {
            join(&mut after, &seen.queues[device]);
        }
        let stream = handle;
        seen.open.push(Transfer { edge, number, receives, device, stream, time, after });
        seen.advance();
        self.0.moved.notify_all();
    }

    /// Ends the transfers of one end of an edge, as if they had come.
    pub(crate) fn give_up(&self, edge: usize, receives: bool) {
        let seen = &mut *self.seen();
        seen.open.retain(|one| (one.edge, one.receives) != (edge, receives));
        seen.advance();
        self.0.moved.notify_all();
    }

    fn wait_while(&self, condition: impl FnMut(&mut Progress) -> bool) -> MutexGuard<'_, Progress> {
        self.0.moved.wait_while(self.seen(), condition).unwrap()
    }
}

struct Recorded {
    record: Record,
    properties: Arc<Properties>,
    stream: usize,
}

impl Recorded {
    fn new(record: &Record, properties: Arc<Properties>) -> Self {
        let stream = record.seen().stream(properties.index);
        Self { record: record.clone(), properties, stream }
    }

    fn touch(&self, doing: &'static str, all: &[(u64, usize, bool)]) -> Result<()> {
        self.called();
        self.record.touch(doing, self.stream, all);
        Ok(())
    }

    /// A call of the driver, which may wait for the device.
    fn called(&self) {
        let call = {
            let seen = &mut *self.record.seen();
            seen.calls += 1;
            seen.calls
        };
        let every = self.record.0.ways.waits;
        if every > 0 && call.is_multiple_of(every) {
            self.settle();
        }
    }

    /// Waits for all that the device has begun.
    fn settle(&self) {
        let device = self.properties.index;
        drop(self.record.wait_while(|seen| seen.open.iter().any(|one| one.device == device)));
    }

    fn wait(&self) -> Result<()> {
        let stream = self.stream;
        self.record.wait_while(|seen| seen.is_open(&seen.streams[stream])).wait(stream);
        Ok(())
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap())
}

impl Backend for Recorded {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn fork(&self) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(Self::new(&self.record, self.properties.clone())))
    }

    fn same_device(&self, other: &dyn Backend) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| Arc::ptr_eq(&self.properties, &other.properties))
    }

    fn wait_for(&self, other: &dyn Backend) -> Result<()> {
        self.after(&other.mark()?)
    }

    fn handle(&self) -> Result<usize> {
        Ok(self.stream)
    }

    fn mark(&self) -> Result<Mark> {
        self.called();
        Ok(Arc::new(self.record.seen().streams[self.stream].clone()))
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        self.called();
        let (seen, mark) = (&mut *self.record.seen(), mark.downcast_ref::<Clock>().unwrap());
        join(&mut seen.streams[self.stream], mark);
        join(&mut seen.queues[self.properties.index], mark);
        Ok(())
    }

    fn lend_to(&self, _: &dyn Backend) -> Result<()> {
        Ok(())
    }

    fn copy_from(&self, _: &dyn Backend, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.touch("a copy between devices", &[(from, bytes, false), (to, bytes, true)])
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let address = {
            self.settle();
            let memory = &mut self.record.seen().memory;
            *memory += 256;
            let address = *memory;
            *memory += bytes.next_multiple_of(256) as u64;
            address
        };
        self.touch("new memory", &[(address, bytes, true)])?;
        Ok(address)
    }

    fn free(&self, address: u64, bytes: usize) {
        self.touch("freed memory", &[(address, bytes, true)]).unwrap();
    }

    fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.touch("an upload", &[(to, from.len(), true)])
    }

    fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        to.fill(0);
        self.touch("a download", &[(from, to.len(), false)])?;
        self.wait()
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.touch("a copy", &[(from, bytes, false), (to, bytes, true)])
    }

    fn fill(&self, to: u64, _: u8, bytes: usize) -> Result<()> {
        self.touch("zeros", &[(to, bytes, true)])
    }

    fn ready(&self, _: &[&'static Module]) -> Result<()> {
        Ok(())
    }

    fn prepare(&self, _: &'static Module, _: &'static str) -> Result<()> {
        Ok(())
    }

    unsafe fn launch(
        &self,
        _: &'static Module,
        name: &'static str,
        _: Grid,
        args: &[&[u8]],
    ) -> Result<()> {
        match (name, args) {
            ("fill", [to, len, _]) => {
                self.touch("a fill", &[(number(to), 4 * number(len) as usize, true)])
            }
            ("copy", [from, to, len]) => {
                self.copy(number(to), number(from), 4 * number(len) as usize)
            }
            _ => self.touch(name, &[]),
        }
    }

    fn tensor_map(&self, _: Boxes) -> Result<[u64; 16]> {
        Ok([0; 16])
    }

    fn synchronize(&self) -> Result<()> {
        self.wait()
    }

    fn is_done(&self) -> Result<bool> {
        let seen = self.record.seen();
        Ok(!seen.is_open(&seen.streams[self.stream]))
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f32> {
        work().map(|()| 0.0)
    }

    fn free_memory(&self) -> Result<usize> {
        Ok(self.properties.memory)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
