//! Ranks that are processes, on one machine or several: how they find each other, and wires and links of TCP.
//!
//! Rank 0 listens at an address that all know. Each other rank says who it is: its number, how many there
//! are, and which program it runs. If these go together, everybody learns where the next rank of the ring
//! listens. Numbers are trusted as they come: the network is to be one's own.
//!
//! Each end writes a beat every few seconds. A connection that ends, or on which nothing came for
//! [`SILENCE`], counts as a rank that has ended, so nobody waits for it for ever.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::host::put;
use super::{Link, Wire};
use crate::nn::device::{Device, Slice, SliceMut};
use exmy::error::{Error, Result};

/// How long nothing may come before a rank counts as gone.
pub const SILENCE: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(5);
/// How long ranks look for each other at the beginning.
const GATHERING: Duration = Duration::from_secs(300);

/// What a frame holds: a beat, words, or numbers.
const BEATS: u8 = 0;
const WORDS: u8 = 1;
const NUMBERS: u8 = 2;
/// Bytes of a frame at most: those of a model's weights in one piece.
const MOST: u64 = 1 << 36;

/// The place of a process among those that train together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Its number among those of its machine.
    pub local: usize,
    /// Where rank 0 listens, as `host:port`.
    pub address: String,
}

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
    let mut head = [kind; 9];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    stream.write_all(&head)?;
    stream.write_all(bytes)
}

/// The next frame.
fn read(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let len = head[1..].iter().rev().fold(0, |len, &byte| len << 8 | u64::from(byte));
    if head[0] > NUMBERS || len > MOST {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "this is not exmy's"));
    }
    let mut bytes = Vec::new();
    let got = stream.take(len).read_to_end(&mut bytes)?;
    if got as u64 == len { Ok((head[0], bytes)) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Takes what comes until the connection ends, and says why it did.
fn listen(mut stream: TcpStream, to: &Sender<(u8, Vec<u8>)>, rank: usize) -> String {
    loop {
        match read(&mut stream) {
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
}

impl Drop for Line {
    fn drop(&mut self) {
        // Both threads end.
        let _ = locked(&self.stream).shutdown(std::net::Shutdown::Both);
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

impl<D: Device<Real = f32>> Link<D> for Ring {
    fn send(&mut self, device: &D, numbers: Slice<'_, D>) -> Result<()> {
        let numbers = device.read(numbers);
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.next.send(NUMBERS, &bytes)
    }

    fn receive(&mut self, device: &D, to: SliceMut<'_, D>) -> Result<()> {
        let bytes = self.before.frame(NUMBERS)?;
        let (words, _) = bytes.as_chunks::<4>();
        put(device, words.iter().map(|word| f32::from_le_bytes(*word)).collect(), to)
    }
}

/// What a rank says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    rank: usize,
    size: usize,
    /// The program and its version.
    program: String,
    /// The port at which it waits for the rank before it in the ring.
    port: u16,
}

/// What rank 0 answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// Where the next rank of the ring listens.
    Next(SocketAddr),
    Refused(String),
}

/// The processes that train together, found.
#[derive(Debug)]
pub struct Party {
    /// This one's place.
    pub seat: Seat,
    /// Of rank 0 to each of the others in their order; of another to rank 0.
    lines: Vec<Arc<Line>>,
    ring: Ring,
}

fn told<T: for<'a> Deserialize<'a>>(stream: &mut TcpStream) -> Result<T> {
    let broken = || Error::new("who connected is no rank of exmy");
    let (_, text) = read(stream).map_err(|error| broken().because(error))?;
    serde_json::from_slice(&text).map_err(|error| broken().because(error))
}

fn tell<T: Serialize>(stream: &TcpStream, what: &T) -> Result<()> {
    let lost = |error| Error::new("a rank was lost while all gathered").because(error);
    let text = serde_json::to_vec(what).map_err(|error| lost(error.into()))?;
    write(&Mutex::new(stream.try_clone().map_err(lost)?), WORDS, &text).map_err(lost)
}

impl Party {
    /// Waits until all ranks of `seat`'s party are there. `program` tells one build of the program from
    /// another; `ended` is called once a rank is gone.
    ///
    /// # Errors
    /// If a rank does not come, has a number that another has, or runs another program.
    pub fn gather(
        seat: Seat,
        program: &str,
        ended: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self> {
        let until = Instant::now() + GATHERING;
        if seat.rank == 0 {
            Self::lead(seat, program, ended, until)
        } else {
            Self::join(seat, program, ended, until)
        }
    }

    fn lead(
        seat: Seat,
        program: &str,
        ended: impl Fn() + Clone + Send + 'static,
        until: Instant,
    ) -> Result<Self> {
        let Seat { size, address, .. } = &seat;
        let listener = bind(address)?;
        let mut found: Vec<Option<(TcpStream, SocketAddr)>> = (0..*size).map(|_| None).collect();
        while let Some(missing) = found.iter().skip(1).position(Option::is_none) {
            let mut stream = accepted(&listener, until).map_err(|error| {
                let waited = format!("rank {} of {size} did not come to {address}", missing + 1);
                Error::new(waited).because(error)
            })?;
            let Ok(peer) = stream.peer_addr() else { continue };
            // Who is no rank is none of ours.
            let Ok(hello) = told::<Hello>(&mut stream) else { continue };
            let refusal = if hello.program != program {
                let theirs = &hello.program;
                Some(format!("rank {} runs {theirs}, rank 0 {program}", hello.rank))
            } else if hello.size != *size {
                Some(format!("rank {} counts {} ranks, rank 0 {size}", hello.rank, hello.size))
            } else if hello.rank == 0 || hello.rank >= *size || found[hello.rank].is_some() {
                Some(format!("two processes are rank {} of {size}", hello.rank))
            } else {
                None
            };
            if let Some(why) = refusal {
                let _ = tell(&stream, &Answer::Refused(why.clone()));
                for (other, _) in found.iter().flatten() {
                    let _ = tell(other, &Answer::Refused(why.clone()));
                }
                return Err(Error::new(why).hint("start one program on all, each rank once"));
            }
            found[hello.rank] = Some((stream, SocketAddr::new(peer.ip(), hello.port)));
        }
        let others: Vec<(TcpStream, SocketAddr)> = found.into_iter().flatten().collect();
        // What the first of the others sees of this machine is where the last finds it.
        let own = TcpListener::bind((IpAddr::from([0, 0, 0, 0]), 0))
            .or_else(|_| TcpListener::bind("[::]:0"));
        let failed = |error| Error::new("cannot listen for the ring").because(error);
        let own = own.map_err(failed)?;
        let port = own.local_addr().map_err(failed)?.port();
        for (i, (stream, _)) in others.iter().enumerate() {
            let next = match others.get(i + 1) {
                Some((_, next)) => *next,
                None => SocketAddr::new(stream.local_addr().map_err(failed)?.ip(), port),
            };
            tell(stream, &Answer::Next(next))?;
        }
        let Some((_, first)) = others.first() else {
            return Err(Error::new("one process is no party of ranks"));
        };
        let ring = Ring::close(&own, *first, (0, *size), ended.clone(), until)?;
        let lines = (1..).zip(others);
        let lines = lines.map(|(rank, (stream, _))| Line::new(stream, rank, ended.clone()));
        Ok(Self { lines: lines.collect::<Result<_>>()?, ring, seat })
    }

    fn join(
        seat: Seat,
        program: &str,
        ended: impl Fn() + Clone + Send + 'static,
        until: Instant,
    ) -> Result<Self> {
        let Seat { rank, size, address, .. } = &seat;
        let mut stream = connected(address, until)?;
        let failed = |error| Error::new(format!("rank 0 at {address}")).because(error);
        let own = TcpListener::bind((stream.local_addr().map_err(failed)?.ip(), 0));
        let own = own.map_err(failed)?;
        let port = own.local_addr().map_err(failed)?.port();
        tell(&stream, &Hello { rank: *rank, size: *size, program: program.to_owned(), port })?;
        stream.set_read_timeout(Some(left(until))).map_err(failed)?;
        let next = match told(&mut stream) {
            Ok(Answer::Next(next)) => next,
            Ok(Answer::Refused(why)) => return Err(Error::new(why)),
            Err(error) => return Err(Error::new(format!("rank 0 at {address}: {error}"))),
        };
        let ring = Ring::close(&own, next, (*rank, *size), ended.clone(), until)?;
        Ok(Self { lines: vec![Line::new(stream, 0, ended)?], ring, seat })
    }

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

    /// The link over TCP.
    pub fn ring(&self) -> Ring {
        self.ring.clone()
    }
}

impl Ring {
    /// Connects to the next rank and waits for the one before.
    fn close(
        own: &TcpListener,
        next: SocketAddr,
        (rank, size): (usize, usize),
        ended: impl Fn() + Clone + Send + 'static,
        until: Instant,
    ) -> Result<Self> {
        let to = connected(&next.to_string(), until)?;
        let from = accepted(own, until)
            .map_err(|error| Error::new("the ring does not close").because(error))?;
        let next = Line::new(to, (rank + 1) % size, ended.clone())?;
        Ok(Self { next, before: Line::new(from, (rank + size - 1) % size, ended)? })
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// A listener at `host:port`: of that name's address if it is this machine's, else of all.
fn bind(address: &str) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).or_else(|error| {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        match (error.kind(), port) {
            (ErrorKind::AddrInUse | ErrorKind::PermissionDenied, _) | (_, None) => Err(error),
            (_, Some(port)) => TcpListener::bind((IpAddr::from([0, 0, 0, 0]), port)),
        }
    });
    listener.map_err(|error| {
        let what = format!("rank 0 cannot listen at {address}");
        Error::new(what).because(error).hint("MASTER_ADDR and MASTER_PORT name another place")
    })
}

/// The next connection before some time.
fn accepted(listener: &TcpListener, until: Instant) -> std::io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(SILENCE))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() > until {
                    return Err(ErrorKind::TimedOut.into());
                }
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A connection to `host:port`, where somebody may listen only in a while.
fn connected(address: &str, until: Instant) -> Result<TcpStream> {
    loop {
        let found = address.to_socket_addrs();
        let tried = found.and_then(|mut places| {
            let place = places.next().ok_or(ErrorKind::NotFound)?;
            TcpStream::connect_timeout(&place, left(until).min(SILENCE))
        });
        match tried {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > until => {
                return Err(Error::new(format!("nobody listens at {address}")).because(error));
            }
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}
