//! NCCL's library, loaded at run time: the functions that are used, with the types of its header `nccl.h`. It
//! is looked for when it is first needed, under the path in `EXMY_NCCL`, else by the name that NVIDIA's
//! packages give it. With `tcp` there numbers go without it.
//!
//! Not by the feature `nccl` of cudarc 0.19: that panics where the library or one of its functions is
//! missing, and takes no path.

#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;

use exmy::error::{Error, Result};

pub(super) type Status = c_int;
pub(super) type Communicator = *mut c_void;

/// `ncclSuccess`, and `ncclInProgress`: what was begun is not done, and another call says when it is.
pub(super) const DONE: Status = 0;
pub(super) const IN_PROGRESS: Status = 7;

/// `ncclFloat32`.
pub(super) const FLOAT32: c_int = 7;

/// The version of [`NcclConfig`], and the oldest that is taken.
pub(super) const OLDEST: c_int = 21_801;

/// What the members of a communicator have in common, as NCCL makes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [c_char; 128]);

/// `ncclConfig_t` as of NCCL 2.18, which later versions take by its size and version.
#[repr(C)]
pub(super) struct NcclConfig {
    pub(super) size: usize,
    pub(super) magic: u32,
    pub(super) version: u32,
    pub(super) blocking: c_int,
    pub(super) cluster: c_int,
    pub(super) least: c_int,
    pub(super) most: c_int,
    pub(super) network: *const c_char,
    pub(super) split_share: c_int,
}

/// Sends so many numbers of a kind to a member, or receives them, on a stream.
type Send =
    unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Communicator, *mut c_void) -> Status;
type Receive =
    unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Communicator, *mut c_void) -> Status;

/// The functions of NCCL that are used.
pub(super) struct Nccl {
    pub(super) version: unsafe extern "C" fn(*mut c_int) -> Status,
    pub(super) unique: unsafe extern "C" fn(*mut UniqueId) -> Status,
    pub(super) join:
        unsafe extern "C" fn(*mut Communicator, c_int, UniqueId, c_int, *mut NcclConfig) -> Status,
    /// How far the last call came that was in progress.
    pub(super) state: unsafe extern "C" fn(Communicator, *mut Status) -> Status,
    pub(super) send: Send,
    pub(super) receive: Receive,
    pub(super) abort: unsafe extern "C" fn(Communicator) -> Status,
    pub(super) text: unsafe extern "C" fn(Status) -> *const c_char,
    /// Keeps the functions where they are.
    pub(super) _library: Option<Library>,
}

/// Where a value of `EXMY_NCCL` lets the library be looked for; nowhere if numbers are not to go by it.
pub(super) fn asked(value: Option<&OsStr>) -> Option<Vec<String>> {
    match value.map(OsStr::to_string_lossy).as_deref() {
        Some("tcp") => None,
        None | Some("" | "nccl") => Some(usual()),
        Some(path) => Some(vec![path.to_owned()]),
    }
}

fn usual() -> Vec<String> {
    ["libnccl.so.2", "libnccl.so"].map(str::to_owned).to_vec()
}

fn wanted() -> Option<Vec<String>> {
    asked(std::env::var_os("EXMY_NCCL").as_deref())
}

fn names() -> Vec<String> {
    wanted().unwrap_or_else(usual)
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
            join: get!("ncclCommInitRankConfig"),
            state: get!("ncclCommGetAsyncError"),
            send: get!("ncclSend"),
            receive: get!("ncclRecv"),
            abort: get!("ncclCommAbort"),
            text: get!("ncclGetErrorString"),
            _library: Some(library),
        })
    }
}

/// The library, if there is one.
pub(super) fn nccl() -> Result<&'static Nccl> {
    static FOUND: OnceLock<Option<Nccl>> = OnceLock::new();
    let found = FOUND.get_or_init(|| names().iter().find_map(|name| open(name)));
    found.as_ref().ok_or_else(|| {
        Error::new(format!("NCCL is not there: looked for {}", names().join(", "))).hint(
            "EXMY_NCCL names its library, of NVIDIA's package or PyPI's nvidia-nccl; EXMY_NCCL=tcp does \
             without, slowly; the GPUs of one machine need neither: --device cuda:0,cuda:1",
        )
    })
}

/// NCCL's version, as 22704.
///
/// # Errors
/// If it is not there, or too old.
pub fn version() -> Result<i32> {
    let (nccl, mut version) = (nccl()?, 0);
    // SAFETY: the number is written to a variable of its type.
    nccl.check("say its version", unsafe { (nccl.version)(&mut version) })?;
    if version < OLDEST {
        return Err(Error::new(format!("NCCL {version} is too old, and {OLDEST} the oldest"))
            .hint("EXMY_NCCL names another library, of NVIDIA's package or PyPI's nvidia-nccl"));
    }
    Ok(version)
}

/// Whether numbers are to go by NCCL, and not by way of the host.
pub fn is_wanted() -> bool {
    wanted().is_some()
}

impl Nccl {
    pub(super) fn check(&self, doing: &str, status: Status) -> Result<()> {
        if status == DONE {
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

/// What [`edges`] named.
pub(super) fn id_of(name: &str) -> Option<UniqueId> {
    let mut id = UniqueId([0; 128]);
    (name.len() == 256 && name.is_ascii()).then_some(())?;
    for (byte, digits) in id.0.iter_mut().zip(name.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()? as c_char;
    }
    Some(id)
}
