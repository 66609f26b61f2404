//! The ring of GPUs of several processes, by NCCL: numbers go from one to the next as they are. NCCL sends
//! and receives them and adds nothing, so no bit depends on it.
//!
//! Each edge of the ring is a communicator of its own with two members, and each rank has a stream for what
//! it sends and one for what it receives: on one communicator what is received would wait for what is sent.
//!
//! The library is looked for when it is first needed: under the path in `EXMY_NCCL`, else by the name that
//! NVIDIA's packages give it.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libloading::Library;

use exmy::error::{Error, Result};
use exmy_train::nn::device::{Slice, SliceMut};
use exmy_train::train::ranks::Link;

use super::Cuda;
use super::ring::failed;
use crate::Device;

type Status = c_int;
type Communicator = *mut c_void;

/// What the members of a communicator have in common, as NCCL makes it.
#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([c_char; 128]);

/// `ncclConfig_t` as of NCCL 2.18, which later versions take by its size and version.
#[repr(C)]
struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    cluster: c_int,
    least: c_int,
    most: c_int,
    network: *const c_char,
    split_share: c_int,
}

/// Blocks of threads that a transfer may take from the kernels beside it. They wait on the device for numbers
/// that come later, so they are few; four fill a good part of NVLink.
const BLOCKS: c_int = 4;

/// `ncclFloat32`.
const FLOAT32: c_int = 7;

/// The functions of NCCL that are used.
struct Nccl {
    version: unsafe extern "C" fn(*mut c_int) -> Status,
    unique: unsafe extern "C" fn(*mut UniqueId) -> Status,
    join: unsafe extern "C" fn(*mut Communicator, c_int, UniqueId, c_int) -> Status,
    join_as: Option<
        unsafe extern "C" fn(*mut Communicator, c_int, UniqueId, c_int, *mut Config) -> Status,
    >,
    send: unsafe extern "C" fn(
        *const c_void,
        usize,
        c_int,
        c_int,
        Communicator,
        *mut c_void,
    ) -> Status,
    receive:
        unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Communicator, *mut c_void) -> Status,
    abort: unsafe extern "C" fn(Communicator) -> Status,
    text: unsafe extern "C" fn(Status) -> *const c_char,
    /// Keeps the functions where they are.
    _library: Library,
}

fn names() -> Vec<String> {
    match std::env::var_os("EXMY_NCCL").filter(|path| !path.is_empty()) {
        Some(path) => vec![path.to_string_lossy().into_owned()],
        None => ["libnccl.so.2", "libnccl.so"].map(str::to_owned).to_vec(),
    }
}

fn open(name: &str) -> Option<Nccl> {
    // SAFETY: the library of that name is NVIDIA's, whose initialization has no conditions; the functions
    // have the types of its header `nccl.h`.
    unsafe {
        let library = Library::new(name).ok()?;
        macro_rules! get {
            ($symbol:literal) => {
                *library.get(concat!($symbol, "\0").as_bytes()).ok()?
            };
        }
        Some(Nccl {
            version: get!("ncclGetVersion"),
            unique: get!("ncclGetUniqueId"),
            join: get!("ncclCommInitRank"),
            join_as: library.get(b"ncclCommInitRankConfig\0").ok().map(|found| *found),
            send: get!("ncclSend"),
            receive: get!("ncclRecv"),
            abort: get!("ncclCommAbort"),
            text: get!("ncclGetErrorString"),
            _library: library,
        })
    }
}

fn nccl() -> Result<&'static Nccl> {
    static FOUND: OnceLock<Option<Nccl>> = OnceLock::new();
    let found = FOUND.get_or_init(|| names().iter().find_map(|name| open(name)));
    found.as_ref().ok_or_else(|| {
        Error::new(format!("NCCL is not there: looked for {}", names().join(", "))).hint(
            "EXMY_NCCL names its library, of NVIDIA's package or PyPI's nvidia-nccl; EXMY_NCCL=tcp does \
             without, slowly; the GPUs of one machine need none: --device cuda:0,cuda:1",
        )
    })
}

/// NCCL's version, as 22704.
///
/// # Errors
/// If it is not there.
pub fn version() -> Result<i32> {
    let (nccl, mut version) = (nccl()?, 0);
    // SAFETY: the number is written to a variable of its type.
    nccl.check("say its version", unsafe { (nccl.version)(&mut version) })?;
    Ok(version)
}

/// Whether numbers are to go by way of the host, without NCCL.
pub fn is_off() -> bool {
    std::env::var_os("EXMY_NCCL").is_some_and(|way| way == "tcp")
}

impl Nccl {
    fn check(&self, doing: &str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a constant text for every number.
        let text = unsafe { (self.text)(status).as_ref().map(|text| CStr::from_ptr(text)) };
        let why =
            text.map_or_else(|| status.to_string(), |text| text.to_string_lossy().into_owned());
        Err(Error::new(format!("NCCL cannot {doing}: {why}")).hint("NCCL_DEBUG=INFO says more"))
    }
}

/// The names of a ring's edges, by which ranks find each other: edge `r` is from rank `r` to the next.
///
/// # Errors
/// If NCCL is not there or fails.
pub fn edges(size: usize) -> Result<Vec<String>> {
    let nccl = nccl()?;
    let name = |_| {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the name is written to a variable of its type.
        nccl.check("name a ring", unsafe { (nccl.unique)(&mut id) })?;
        Ok(id.0.iter().map(|byte| format!("{:02x}", *byte as u8)).collect())
    };
    (0..size).map(name).collect()
}

fn id_of(name: &str) -> Option<UniqueId> {
    let mut id = UniqueId([0; 128]);
    (name.len() == 256 && name.is_ascii()).then_some(())?;
    for (byte, digits) in id.0.iter_mut().zip(name.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()? as c_char;
    }
    Some(id)
}

/// A communicator of two, until it is given up.
struct Edge {
    communicator: Mutex<Option<usize>>,
}

impl Edge {
    fn join(name: &str, is_receiver: bool) -> Result<Self> {
        let nccl = nccl()?;
        let id = id_of(name).ok_or_else(|| Error::new("rank 0 names no ring of NCCL"))?;
        let mut communicator = ptr::null_mut();
        let undefined = c_int::MIN;
        let mut config = Config {
            size: size_of::<Config>(),
            magic: 0xCAFE_BEEF,
            version: 21_801,
            blocking: undefined,
            cluster: undefined,
            least: undefined,
            most: BLOCKS,
            network: ptr::null(),
            split_share: undefined,
        };
        let own = c_int::from(is_receiver);
        // SAFETY: this device's context is current; the configuration and the handle are variables of their
        // types.
        let status = unsafe {
            match nccl.join_as.filter(|_| version().is_ok_and(|found| found >= 21_801)) {
                Some(join) => join(&mut communicator, 2, id, own, &mut config),
                None => (nccl.join)(&mut communicator, 2, id, own),
            }
        };
        nccl.check("join a ring", status)?;
        Ok(Self { communicator: Mutex::new(Some(communicator as usize)) })
    }

    /// Works with the communicator, if it was not given up.
    fn with(&self, doing: &str, work: impl FnOnce(&Nccl, Communicator) -> Status) -> Result<()> {
        let nccl = nccl()?;
        let held = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(communicator) = *held else { return Err(Error::new("another rank has ended")) };
        nccl.check(doing, work(nccl, communicator as Communicator))
    }

    /// Ends what waits on the device for the other member.
    fn abort(&self) {
        let mut held = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(communicator), Ok(nccl)) = (held.take(), nccl()) {
            // SAFETY: the handle is a communicator's, and is not used again. What fails then has ended.
            unsafe { (nccl.abort)(communicator as Communicator) };
        }
    }
}

/// Both edges of a rank, given up when another rank ends.
#[derive(Clone, Default)]
pub struct Edges {
    all: Arc<Mutex<Vec<Arc<Edge>>>>,
}

impl Edges {
    /// Gives up all edges: what waits on the device for another rank ends.
    pub fn abort(&self) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().for_each(|edge| edge.abort());
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
            let joined = Arc::new(Edge::join(&names[edge], is_receiver)?);
            held.all.lock().unwrap_or_else(PoisonError::into_inner).push(joined.clone());
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
        self.to.with("send", |nccl, edge| unsafe {
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
        self.from.with("receive", |nccl, edge| unsafe {
            let (to, stream) = (address as *mut c_void, handle as *mut c_void);
            (nccl.receive)(to, len, FLOAT32, 0, edge, stream)
        })?;
        let waits = device.attempt(|| device.device().after(&stream.mark()?));
        waits.ok_or_else(|| failed(device))
    }
}
