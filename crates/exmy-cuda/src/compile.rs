//! Kernels to machine code, by NVRTC, NVIDIA's compiler as a library.
//!
//! The library is looked for when it is first needed: under the path in `EXMY_NVRTC`, else by the names that
//! the CUDA toolkits 11 to 13 give it. It needs no GPU.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use crate::module::{HEADERS, Module};
use crate::{Error, Result};

/// What keeps the bits: no contraction of `a * b + c`, subnormal numbers kept, division and root rounded
/// once.
pub const OPTIONS: [&str; 6] = [
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--std=c++17",
    "--restrict",
];

/// An architecture to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Compute capability.
    pub capability: (u32, u32),
    /// Whether the code uses what this architecture alone has, as `wgmma`.
    pub exact: bool,
}

impl Architecture {
    /// As the compiler names it: `sm_90a`.
    pub fn name(self) -> String {
        let (major, minor) = self.capability;
        format!("sm_{major}{minor}{}", if self.exact { "a" } else { "" })
    }
}

type Program = *mut std::ffi::c_void;
type Status = c_int;

/// The functions of NVRTC that are used.
struct Nvrtc {
    version: (u32, u32),
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    code_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    code: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    /// Keeps the functions where they are.
    _library: Library,
}

fn names() -> Vec<String> {
    if let Some(path) = std::env::var_os("EXMY_NVRTC") {
        return vec![path.to_string_lossy().into_owned()];
    }
    let names: &[&str] = if cfg!(windows) {
        &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
    } else {
        &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn open(name: &str) -> Option<Nvrtc> {
    // SAFETY: the library of that name is NVIDIA's, whose initialization has no conditions; the functions
    // have the types of its header `nvrtc.h`.
    unsafe {
        let library = Library::new(name).ok()?;
        macro_rules! get {
            ($symbol:literal) => {
                *library.get(concat!($symbol, "\0").as_bytes()).ok()?
            };
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status = get!("nvrtcVersion");
        let (mut major, mut minor) = (0, 0);
        if version(&mut major, &mut minor) != 0 {
            return None;
        }
        Some(Nvrtc {
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            create: get!("nvrtcCreateProgram"),
            compile: get!("nvrtcCompileProgram"),
            log_size: get!("nvrtcGetProgramLogSize"),
            log: get!("nvrtcGetProgramLog"),
            code_size: get!("nvrtcGetCUBINSize"),
            code: get!("nvrtcGetCUBIN"),
            destroy: get!("nvrtcDestroyProgram"),
            _library: library,
        })
    }
}

fn nvrtc() -> Result<&'static Nvrtc> {
    static FOUND: OnceLock<Option<Nvrtc>> = OnceLock::new();
    let found = FOUND.get_or_init(|| names().iter().find_map(|name| open(name)));
    found.as_ref().ok_or_else(|| Error::NoCompiler { tried: names() })
}

/// The compiler's version, as (13, 0).
///
/// # Errors
/// [`Error::NoCompiler`].
pub fn version() -> Result<(u32, u32)> {
    Ok(nvrtc()?.version)
}

/// Machine code of a module for an architecture.
///
/// # Errors
/// [`Error::NoCompiler`] or [`Error::Compile`].
pub fn compile(module: &'static Module, architecture: Architecture) -> Result<Vec<u8>> {
    let nvrtc = nvrtc()?;
    let failed = |log: String| Error::Compile {
        module: module.name,
        architecture: architecture.name(),
        log,
    };
    let text = |text: &str| CString::new(text).map_err(|_| failed("a source holds NUL".into()));
    let (source, name) = (text(module.source)?, text(module.name)?);
    let headers = HEADERS.iter().map(|(_, source)| text(source)).collect::<Result<Vec<_>>>()?;
    let included = HEADERS.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>>>()?;
    let mut options = vec![text(&format!("--gpu-architecture={}", architecture.name()))?];
    for option in OPTIONS {
        options.push(text(option)?);
    }
    let pointers = |of: &[CString]| of.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
    let mut program: Program = ptr::null_mut();
    // SAFETY: all pointers are to texts that end with NUL and live until the program is destroyed below; the
    // buffers have the sizes that the library asks for.
    unsafe {
        let (headers, included) = (pointers(&headers), pointers(&included));
        let count = headers.len() as c_int;
        let status = (nvrtc.create)(
            &mut program,
            source.as_ptr(),
            name.as_ptr(),
            count,
            headers.as_ptr(),
            included.as_ptr(),
        );
        if status != 0 {
            return Err(failed(format!("nvrtcCreateProgram returned {status}")));
        }
        let options = pointers(&options);
        let status = (nvrtc.compile)(program, options.len() as c_int, options.as_ptr());
        let found = if status == 0 {
            let mut size = 0;
            (nvrtc.code_size)(program, &mut size);
            let mut code = vec![0_u8; size];
            match (nvrtc.code)(program, code.as_mut_ptr().cast()) {
                0 if size > 0 => Ok(code),
                status => Err(failed(format!("nvrtcGetCUBIN returned {status}, {size} bytes"))),
            }
        } else {
            let mut size = 0;
            (nvrtc.log_size)(program, &mut size);
            let mut log = vec![0_u8; size.max(1)];
            (nvrtc.log)(program, log.as_mut_ptr().cast());
            let log =
                CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().into_owned());
            Err(failed(log.unwrap_or_default()))
        };
        (nvrtc.destroy)(&mut program);
        found
    }
}
