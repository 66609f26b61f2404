//! How ranks find each other: rank 0 waits for all others at an address that they know. Each says which rank
//! it is, how many there are, and which program it runs. If these go together, each learns where the next
//! rank of the ring listens, connects there, and says once more who it is.
//!
//! Whoever else comes is let go, and keeps nobody waiting. A rank that goes away meanwhile may come again.

use super::address::{Door, Visit, connected, left};
use super::{Line, Ring, SILENCE, read, tell};
use exmy::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// How long ranks look for each other at the beginning.
const GATHERING: Duration = Duration::from_secs(300);
/// How often rank 0 looks who has come, and whether all are still there.
const LOOK: Duration = Duration::from_millis(10);
const ROUND: Duration = Duration::from_secs(1);

/// The place of a process among those that train together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Its number among those of its machine.
    pub local: usize,
    /// Where rank 0 listens, as `host:port`; of one alone it may be empty.
    pub address: String,
}

/// What a rank says of itself, to rank 0 and to the next one of the ring.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Hello {
    rank: usize,
    size: usize,
    /// The program and its version.
    program: String,
    /// The port at which it waits for the rank before it in the ring; `None` on the ring itself.
    port: Option<u16>,
}

/// What rank 0 answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// Where the next rank of the ring listens; `None` is where rank 0 does.
    Next(Option<SocketAddr>),
    Refused(String),
}

/// A rank that rank 0 has found.
struct Found {
    stream: TcpStream,
    from: IpAddr,
    port: u16,
}

impl Found {
    /// Whether it is still there. It says nothing before it is answered.
    fn is_there(&self) -> bool {
        let peeked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let waits = peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).is_ok() && waits
    }
}

/// The processes that train together, found.
#[derive(Debug)]
pub struct Party {
    /// This one's place.
    pub seat: Seat,
    /// Of rank 0 to each of the others in their order; of another to rank 0.
    pub(super) lines: Vec<std::sync::Arc<Line>>,
    pub(super) ring: Ring,
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
        let (rank, size) = (seat.rank, seat.size);
        if size < 2 {
            return Err(Error::new("one process is no party of ranks"));
        }
        let (mut door, next, streams) = if rank == 0 {
            lead(&seat, program, until)?
        } else {
            let (door, next, stream) = join(&seat, program, until)?;
            (door, next, vec![stream])
        };
        // All are there: what is missing now does not come.
        let until = Instant::now() + SILENCE;
        let before = (rank + size - 1) % size;
        let unclosed = |error| Error::new("the ring of ranks does not close").because(error);
        let to = connected(&next, until).map_err(unclosed)?;
        let own = Hello { rank, size, program: program.to_owned(), port: None };
        tell(&to, &own).map_err(unclosed)?;
        let expected = Hello { rank: before, ..own };
        let from = loop {
            let mut visits = door.visits::<Hello>()?.into_iter();
            if let Some(visit) = visits.find(|visit| visit.hello == expected) {
                break visit.stream;
            }
            if Instant::now() > until {
                return Err(unclosed(Error::new(format!("rank {before} did not come"))));
            }
            thread::sleep(LOOK);
        };
        let next = Line::new(to, (rank + 1) % size, ended.clone())?;
        let ring = Ring { next, before: Line::new(from, before, ended.clone())? };
        let others = if rank == 0 { 1.. } else { 0.. };
        let lines = others.zip(streams);
        let lines = lines.map(|(rank, stream)| Line::new(stream, rank, ended.clone()));
        Ok(Self { lines: lines.collect::<Result<_>>()?, ring, seat })
    }
}

/// Rank 0 finds all others: where it listens, where the next one does, and the way to each.
fn lead(seat: &Seat, program: &str, until: Instant) -> Result<(Door, String, Vec<TcpStream>)> {
    let Seat { size, address, .. } = seat;
    let mut door = Door::open(address, true)
        .map_err(|error| Error::new(format!("rank 0 at {address}")).because(error))?;
    let mut found = BTreeMap::new();
    let mut round = Instant::now();
    while found.len() + 1 < *size {
        for Visit { hello, stream, from } in door.visits::<Hello>()? {
            // Who comes for the ring comes too early, from a party that is no more.
            let Some(port) = hello.port else { continue };
            if found.get(&hello.rank).is_some_and(|other: &Found| !other.is_there()) {
                found.remove(&hello.rank);
            }
            if let Some(why) = refusal(&hello, program, (*size, found.contains_key(&hello.rank))) {
                let all = found.values().map(|other| &other.stream).chain([&stream]);
                all.for_each(|other| drop(tell(other, &Answer::Refused(why.clone()))));
                return Err(Error::new(why).hint("start one program on all, each rank once"));
            }
            found.insert(hello.rank, Found { stream, from, port });
        }
        if round.elapsed() > ROUND || found.len() + 1 == *size {
            found.retain(|_, other| other.is_there());
            round = Instant::now();
        }
        if Instant::now() > until {
            let missing = (1..*size).find(|rank| !found.contains_key(rank)).unwrap_or(1);
            let waited = format!("rank {missing} of {size} did not come to {address}");
            return Err(Error::new(waited)
                .hint("all ranks need one MASTER_ADDR and MASTER_PORT, and a way to them"));
        }
        if found.len() + 1 < *size {
            thread::sleep(LOOK);
        }
    }
    let lost = |error| Error::new("a rank was lost while all gathered").because(error);
    let others: Vec<Found> = found.into_values().collect();
    for (i, Found { stream, .. }) in others.iter().enumerate() {
        // Who is on this machine may be known here by an address that means another machine elsewhere.
        let own = stream.local_addr().map_err(lost)?.ip().to_canonical();
        let place = |next: &Found| {
            let ip = if next.from.is_loopback() { own } else { next.from };
            SocketAddr::new(ip, next.port)
        };
        tell(stream, &Answer::Next(others.get(i + 1).map(place)))?;
    }
    let first = SocketAddr::new(others[0].from, others[0].port).to_string();
    Ok((door, first, others.into_iter().map(|other| other.stream).collect()))
}

/// Why somebody cannot be a rank of this party.
fn refusal(hello: &Hello, program: &str, (size, is_there): (usize, bool)) -> Option<String> {
    let Hello { rank, size: theirs, program: other, .. } = hello;
    if other != program {
        Some(format!("rank {rank} runs {other}, rank 0 {program}"))
    } else if *theirs != size {
        Some(format!("rank {rank} counts {theirs} ranks, rank 0 {size}"))
    } else if *rank >= size {
        Some(format!("there is a rank {rank}; {size} ranks are numbered from 0 to {}", size - 1))
    } else if *rank == 0 || is_there {
        Some(format!("two processes are rank {rank} of {size}"))
    } else {
        None
    }
}

/// Another rank finds rank 0: where it listens, where the next one does, and the way to rank 0.
fn join(seat: &Seat, program: &str, until: Instant) -> Result<(Door, String, TcpStream)> {
    let Seat { rank, size, address, .. } = seat;
    let mut stream = connected(address, until)?;
    let at = format!("rank 0 at {address}");
    let failed = |error: Error| Error::new(at.clone()).because(error);
    let door = Door::open(address, false)?;
    let (program, port) = (program.to_owned(), Some(door.port()));
    tell(&stream, &Hello { rank: *rank, size: *size, program, port }).map_err(failed)?;
    stream
        .set_read_timeout(Some(left(until)))
        .map_err(|error| Error::new(at.clone()).because(error))?;
    match told(&mut stream).map_err(failed)? {
        Answer::Next(next) => {
            Ok((door, next.map_or_else(|| address.clone(), |next| next.to_string()), stream))
        }
        Answer::Refused(why) => Err(Error::new(why)),
    }
}

/// What rank 0 answers.
fn told(stream: &mut TcpStream) -> Result<Answer> {
    const MOST: u64 = 1 << 12;
    let (_, text) = read(stream, MOST).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            Error::new("it has ended before all ranks were there")
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Error::new(format!("not all ranks came within {} seconds", GATHERING.as_secs()))
        }
        _ => Error::new("who listens there is no rank of exmy").because(error),
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new("who listens there is no rank of exmy").because(error))
}
