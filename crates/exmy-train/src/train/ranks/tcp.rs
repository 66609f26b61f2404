//! Ranks that are processes, on one machine or several: wires and links of TCP between those that found each
//! other. Numbers are trusted as they come: the network is to be one's own.
//!
//! Each end writes a beat every few seconds. A connection that ends, or on which nothing came for
//! [`SILENCE`], counts as a rank that has ended, so nobody waits for it for ever.

#[doc(hidden)]
pub mod address;
mod gather;

pub use gather::{Party, Seat};

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::host::put;
use super::{Link, Wire};
use crate::nn::device::{Device, Slice, SliceMut};
use exmy::error::{Error, Result};

/// How long nothing may come before a rank counts as gone.
pub const SILENCE: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(5);

/// What a frame holds: a beat, words, or numbers.
const BEATS: u8 = 0;
const WORDS: u8 = 1;
const NUMBERS: u8 = 2;
/// Bytes of a frame at most: those of a model's weights in one piece.
const MOST: u64 = 1 << 36;

/// A connection to another process.
#[derive(Debug)]
pub struct Line {
    stream: Arc<Mutex<TcpStream>>,
    from: Mutex<Receiver<(u8, Vec<u8>)>>,
    /// Why it ended.
    end: Arc<Mutex<Option<String>>>,
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(stream: &Mutex<TcpStream>, kind: u8, bytes: &[u8]) -> std::io::Result<()> {
    let mut stream = locked(stream);
    let mut head = [kind; HEAD];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    stream.write_all(&head)?;
    stream.write_all(bytes)
}

/// Bytes of a frame before what it holds: its kind and length.
const HEAD: usize = 9;

/// What the first bytes of a frame say.
struct Frame {
    kind: u8,
    len: u64,
}

/// Reads the first bytes of a frame of at most so many.
fn header(head: &[u8; HEAD], most: u64) -> std::io::Result<Frame> {
    let [kind, len @ ..] = *head;
    let len = u64::from_le_bytes(len);
    match kind <= NUMBERS && len <= most {
        true => Ok(Frame { kind, len }),
        false => Err(std::io::Error::new(ErrorKind::InvalidData, "this is not exmy's")),
    }
}

/// The next frame, of at most so many bytes.
fn read(stream: &mut TcpStream, most: u64) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head)?;
    let Frame { kind, len } = header(&head, most)?;
    let mut bytes = Vec::new();
    let got = stream.take(len).read_to_end(&mut bytes)?;
    if got as u64 == len { Ok((kind, bytes)) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Takes what comes until the connection ends, and says why it did.
fn listen(mut stream: TcpStream, to: &Sender<(u8, Vec<u8>)>, rank: usize) -> String {
    loop {
        match read(&mut stream, MOST) {
            Ok((BEATS, _)) => {}
            Ok(frame) => {
                if to.send(frame).is_err() {
                    return "this rank has ended".into();
                }
            }
            Err(error) => {
                return match error.kind() {
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                        format!("rank {rank} has ended")
                    }
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        format!("nothing came from rank {rank} for {} seconds", SILENCE.as_secs())
                    }
                    _ => format!("the connection to rank {rank} broke: {error}"),
                };
            }
        }
    }
}

impl Line {
    /// Over a connection to a rank; `ended` is called once it has ended.
    fn new(
        stream: TcpStream,
        rank: usize,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Self>> {
        let broken = |error| Error::new(format!("the connection to rank {rank}")).because(error);
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_read_timeout(Some(SILENCE)).map_err(broken)?;
        stream.set_write_timeout(Some(SILENCE)).map_err(broken)?;
        let (to, from) = channel();
        let end = Arc::new(Mutex::new(None));
        let (reader, why) = (stream.try_clone().map_err(broken)?, end.clone());
        let threads = |error| Error::new("cannot start threads").because(error);
        let hears = move || {
            let reason = listen(reader, &to, rank);
            locked(&why).get_or_insert(reason);
            drop(to);
            ended();
        };
        thread::Builder::new().spawn(hears).map_err(threads)?;
        let stream = Arc::new(Mutex::new(stream));
        let beating = Arc::downgrade(&stream);
        thread::Builder::new().spawn(move || beat(&beating)).map_err(threads)?;
        Ok(Arc::new(Self { stream, from: Mutex::new(from), end }))
    }

    /// Why the connection has ended, if it has or does so in a moment.
    fn end(&self) -> Option<Error> {
        let deadline = Instant::now() + Duration::from_millis(200);
        loop {
            match &*locked(&self.end) {
                Some(why) => return Some(Error::new(why)),
                None if Instant::now() > deadline => return None,
                None => {}
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn gone(&self) -> Error {
        self.end().unwrap_or_else(|| Error::new("another rank has ended"))
    }

    fn send(&self, kind: u8, bytes: &[u8]) -> Result<()> {
        write(&self.stream, kind, bytes).map_err(|_| self.gone())
    }

    /// Waits for a frame of this kind.
    fn frame(&self, kind: u8) -> Result<Vec<u8>> {
        of_kind(locked(&self.from).recv().map_err(|_| self.gone())?, kind)
    }

    /// Ends it, and with it the threads of both ends.
    fn close(&self) {
        let _ = locked(&self.stream).shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close();
    }
}

/// Writes a beat every few seconds as long as the connection is there.
fn beat(stream: &Weak<Mutex<TcpStream>>) {
    while let Some(stream) = stream.upgrade() {
        if write(&stream, BEATS, &[]).is_err() {
            return;
        }
        drop(stream);
        thread::sleep(BEAT);
    }
}

fn of_kind((found, bytes): (u8, Vec<u8>), kind: u8) -> Result<Vec<u8>> {
    if found == kind { Ok(bytes) } else { Err(Error::new("another rank sends something else")) }
}

fn text(words: Vec<u8>) -> Result<String> {
    String::from_utf8(words).map_err(|_| Error::new("another rank sends what is no text"))
}

impl Wire for Arc<Line> {
    fn tell(&mut self, message: &str) -> Result<()> {
        self.send(WORDS, message.as_bytes())
    }

    fn hear(&mut self) -> Result<String> {
        text(self.frame(WORDS)?)
    }

    fn listen(&mut self, patience: Duration) -> Result<Option<String>> {
        match locked(&self.from).recv_timeout(patience) {
            Ok(frame) => text(of_kind(frame, WORDS)?).map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
        }
    }
}

/// The places before and behind one in the ring.
#[derive(Clone, Debug)]
pub struct Ring {
    next: Arc<Line>,
    before: Arc<Line>,
}

impl Line {
    fn send_numbers(&self, numbers: &[f32]) -> Result<()> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.send(NUMBERS, &bytes)
    }

    fn numbers(&self) -> Result<Vec<f32>> {
        let bytes = self.frame(NUMBERS)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }
}

impl<D: Device<Real = f32>> Link<D> for Ring {
    fn send(&mut self, device: &D, numbers: Slice<'_, D>) -> Result<()> {
        self.next.send_numbers(&device.read(numbers))
    }

    fn receive(&mut self, device: &D, to: SliceMut<'_, D>) -> Result<()> {
        put(device, self.before.numbers()?, to)
    }
}

fn tell<T: Serialize>(stream: &TcpStream, what: &T) -> Result<()> {
    let lost = |error| Error::new("a rank was lost while all gathered").because(error);
    let text = serde_json::to_vec(what).map_err(|error| lost(error.into()))?;
    write(&Mutex::new(stream.try_clone().map_err(lost)?), WORDS, &text).map_err(lost)
}

impl Party {
    /// Rank 0 tells all others the same words; to be called before any run, as [`handed`](Self::handed) by
    /// the others.
    ///
    /// # Errors
    /// If one has ended.
    pub fn hand_out(&self, words: &str) -> Result<()> {
        self.wires().iter_mut().try_for_each(|wire| wire.tell(words))
    }

    /// The words that rank 0 hands out.
    ///
    /// # Errors
    /// If it has ended.
    pub fn handed(&self) -> Result<String> {
        self.wires()[0].hear()
    }

    /// Wires as [`Ranks`](super::Ranks) takes them.
    pub fn wires(&self) -> Vec<Box<dyn Wire>> {
        self.lines.iter().map(|line| Box::new(line.clone()) as _).collect()
    }

    /// Of a rank other than 0: why rank 0 has ended, if it has.
    pub(in crate::train) fn lost_lead(&self) -> Option<Error> {
        self.lines[0].end()
    }

    /// Lets those beside this rank see that it takes no part any more, so that they end as well.
    pub(in crate::train) fn leave_ring(&self) {
        self.ring.next.close();
        self.ring.before.close();
    }

    /// Wires to the places before and behind this one in the ring. They share connections with
    /// [`ring`](Self::ring), whose numbers go the other way.
    pub fn beside(&self) -> [Box<dyn Wire>; 2] {
        [&self.ring.before, &self.ring.next].map(|line| Box::new(line.clone()) as _)
    }

    /// The link over TCP.
    pub fn ring(&self) -> Ring {
        self.ring.clone()
    }
}
