//! A device that computes nothing and writes down what it is asked, to find races between its streams.
//! Numbers that come back from it are zeros.
//!
//! Things are in order if they are of one stream, if one stream waited for a mark of the other in between, or
//! if the host waited for the first. Two things that touch the same memory, one of which writes, and are not
//! in order are a race. What kernels touch is known of `fill` and `copy` alone.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::{Backend, Boxes, Grid, Mark, Properties};
use crate::module::Module;
use crate::{Device, Result};

/// Devices whose streams may wait for each other.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Seen>>);

/// How far into each stream something comes after, by the stream's number.
type Clock = Vec<usize>;

#[derive(Default)]
struct Seen {
    /// Where each stream has come to.
    streams: Vec<Clock>,
    /// What the host has waited for.
    done: Clock,
    /// Memory that was handed out so far.
    memory: u64,
    touched: Vec<Touched>,
    races: Vec<String>,
}

struct Touched {
    doing: &'static str,
    memory: Range<u64>,
    writes: bool,
    stream: usize,
    time: usize,
}

fn join(clock: &mut Clock, other: &[usize]) {
    clock.resize(clock.len().max(other.len()), 0);
    clock.iter_mut().zip(other).for_each(|(time, &other)| *time = (*time).max(other));
}

impl Seen {
    fn touch(&mut self, doing: &'static str, stream: usize, all: &[(u64, usize, bool)]) {
        let done = self.done.clone();
        let clock = &mut self.streams[stream];
        join(clock, &done);
        clock[stream] += 1;
        let clock = clock.clone();
        let time = clock[stream];
        for &(address, bytes, writes) in all {
            let memory = address..address + bytes as u64;
            let before =
                |other: &Touched| clock.get(other.stream).is_some_and(|&time| time >= other.time);
            for other in &self.touched {
                let meets = other.memory.start < memory.end && memory.start < other.memory.end;
                if meets && (writes || other.writes) && !before(other) {
                    let (first, own) = (other.doing, other.stream);
                    self.races.push(format!("{doing} (stream {stream}), {first} (stream {own})"));
                }
            }
            // What comes after this write comes after all that it comes after.
            self.touched.retain(|other| {
                let covers = memory.start <= other.memory.start && other.memory.end <= memory.end;
                !(writes && covers && before(other))
            });
            self.touched.push(Touched { doing, memory, writes, stream, time });
        }
    }

    fn wait(&mut self, stream: usize) {
        let clock = self.streams[stream].clone();
        join(&mut self.done, &clock);
    }

    fn stream(&mut self) -> usize {
        let stream = self.streams.len();
        self.streams.push(vec![0; stream + 1]);
        stream
    }
}

impl Record {
    /// Another device, and a stream of it.
    pub(crate) fn device(&self) -> Device {
        let properties = Properties {
            name: "recorded".into(),
            index: 0,
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
        self.0.lock().unwrap().races.clone()
    }

    /// A library of others works on the stream of this handle.
    pub(crate) fn touch(&self, doing: &'static str, handle: usize, all: &[(u64, usize, bool)]) {
        self.0.lock().unwrap().touch(doing, handle, all);
    }
}

struct Recorded {
    record: Record,
    properties: Arc<Properties>,
    stream: usize,
}

impl Recorded {
    fn new(record: &Record, properties: Arc<Properties>) -> Self {
        let stream = record.0.lock().unwrap().stream();
        Self { record: record.clone(), properties, stream }
    }

    fn touch(&self, doing: &'static str, all: &[(u64, usize, bool)]) -> Result<()> {
        self.record.touch(doing, self.stream, all);
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.record.0.lock().unwrap().wait(self.stream);
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
        Ok(Arc::new(self.record.0.lock().unwrap().streams[self.stream].clone()))
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        let streams = &mut self.record.0.lock().unwrap().streams;
        join(&mut streams[self.stream], mark.downcast_ref::<Clock>().unwrap());
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
            let memory = &mut self.record.0.lock().unwrap().memory;
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
