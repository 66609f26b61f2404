//! Where ranks listen, and how they reach each other.
//!
//! A rank listens at all addresses of its machine, of both families, because what the name of a machine
//! stands for there need not be what it stands for elsewhere: 127.0.1.1 is typical. Where the address of rank
//! 0 is that of every machine for itself, all ranks are on one, and listen there alone.

use super::{Frame, HEAD, SILENCE, WORDS, header};
use exmy::error::{Error, Result};
use serde::Deserialize;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// How long one address is tried, and how long until all are tried again.
const TRIED: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// Bytes of what somebody says of itself, at most.
const MOST: u64 = 1 << 12;
/// How many may be there who have not said it yet. Of more the first ones go.
pub const CALLERS: usize = 64;

/// Somebody who has connected and not yet said who it is.
struct Caller {
    stream: TcpStream,
    from: IpAddr,
    heard: Vec<u8>,
    since: Instant,
}

/// Where a rank listens, and who has come there.
pub struct Door {
    listeners: Vec<TcpListener>,
    port: u16,
    callers: Vec<Caller>,
}

/// What somebody says of itself, and its connection.
pub struct Visit<T> {
    /// What it says.
    pub hello: T,
    /// The connection.
    pub stream: TcpStream,
    /// Where it comes from.
    pub from: IpAddr,
}

/// The addresses to listen at, where rank 0 is to be found at this host.
pub fn places(host: &str) -> Vec<IpAddr> {
    let (all, own) = (
        [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()],
        [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    );
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) if ip.is_loopback() => vec![ip],
        Err(_) if host == "localhost" => own.to_vec(),
        _ => all.to_vec(),
    }
}

impl Door {
    /// Listens where `address`, at which rank 0 is, says that ranks do; at its port, or at any that is free.
    pub fn open(address: &str, at_its_port: bool) -> Result<Self> {
        let parts =
            address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = parts.ok_or_else(|| Error::new(format!("{address} is no host:port")))?;
        let mut port: u16 = if at_its_port { port } else { 0 };
        let (mut listeners, mut failed) = (Vec::new(), None);
        for place in places(host) {
            match TcpListener::bind((place, port)) {
                Ok(listener) => {
                    port = listener.local_addr().map_err(unheard)?.port();
                    listener.set_nonblocking(true).map_err(unheard)?;
                    listeners.push(listener);
                }
                // The first place may stand for both families, or the machine have one of them alone.
                Err(error) if listeners.is_empty() && is_taken(&error) => {
                    return Err(unheard(error).hint(format!(
                        "another program has port {port}: MASTER_PORT names another one"
                    )));
                }
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        match (listeners.is_empty(), failed) {
            (true, Some(error)) => Err(unheard(error)),
            _ => Ok(Self { listeners, port, callers: Vec::new() }),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many are there who have not said yet what they are.
    pub fn callers(&self) -> usize {
        self.callers.len()
    }

    /// Who has said who it is since the last call. Whoever says something else is let go, and so is who says
    /// nothing for long.
    pub fn visits<T: for<'a> Deserialize<'a>>(&mut self) -> Result<Vec<Visit<T>>> {
        for listener in &self.listeners {
            loop {
                match listener.accept() {
                    Ok((stream, from)) => {
                        // A connection that is lost already is nobody's.
                        if stream.set_nonblocking(true).is_err() {
                            continue;
                        }
                        let (from, since) = (from.ip().to_canonical(), Instant::now());
                        self.callers.push(Caller { stream, from, heard: Vec::new(), since });
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if is_passing(&error) => {}
                    Err(error) => return Err(unheard(error)),
                }
            }
        }
        let mut visits = Vec::new();
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.hello() {
                Ok(Some(hello)) => {
                    let Caller { stream, from, .. } = caller;
                    visits.push(Visit { hello, stream, from });
                }
                Ok(None) if caller.since.elapsed() < SILENCE => self.callers.push(caller),
                _ => {}
            }
        }
        self.callers.drain(..self.callers.len().saturating_sub(CALLERS));
        Ok(visits)
    }
}

fn unheard(error: io::Error) -> Error {
    Error::new("cannot listen for other ranks").because(error)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied)
}

/// Whether a failure is that of one connection.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted)
}

impl Caller {
    /// What it says of itself, once that is whole. Nothing is taken of what it says then.
    fn hello<T: for<'a> Deserialize<'a>>(&mut self) -> io::Result<Option<T>> {
        let mut bytes = [0; 512];
        loop {
            let missing = missing(&self.heard)?;
            if missing == 0 {
                self.stream.set_nonblocking(false)?;
                return Ok(Some(serde_json::from_slice(&self.heard[HEAD..])?));
            }
            let room = missing.min(bytes.len());
            match self.stream.read(&mut bytes[..room]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(got) => self.heard.extend_from_slice(&bytes[..got]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// How many bytes of a frame of words are yet to come; of one that has hardly begun, those of its beginning.
fn missing(heard: &[u8]) -> io::Result<usize> {
    let Some((head, words)) = heard.split_first_chunk::<HEAD>() else {
        return Ok(HEAD - heard.len());
    };
    let Frame { kind, len } = header(head, MOST)?;
    if kind == WORDS { Ok(len as usize - words.len()) } else { Err(ErrorKind::InvalidData.into()) }
}

/// What is left of the time.
pub(super) fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// A connection to `host:port`, where somebody may listen only in a while. A name may stand for several
/// addresses, of which any will do.
pub(super) fn connected(address: &str, until: Instant) -> Result<TcpStream> {
    loop {
        let mut failed = io::Error::from(ErrorKind::NotFound);
        match address.to_socket_addrs() {
            Ok(places) => {
                for place in places {
                    match connected_to(&place, left(until).min(TRIED)) {
                        Ok(stream) => return Ok(stream),
                        Err(error) => failed = error,
                    }
                }
            }
            Err(error) => failed = error,
        }
        if Instant::now() > until {
            return Err(Error::new(format!("nobody listens at {address}")).because(failed));
        }
        thread::sleep(AGAIN);
    }
}

fn connected_to(place: &SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(place, patience)?;
    // Where nobody listens at a port of this machine, a connection may by chance begin and end there.
    match stream.local_addr()? == stream.peer_addr()? {
        true => Err(ErrorKind::ConnectionRefused.into()),
        false => Ok(stream),
    }
}
