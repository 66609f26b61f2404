//! Kernels to machine code, by NVRTC, NVIDIA's compiler as a library.
//!
//! The library is looked for when it is first needed: under the path in `EXMY_NVRTC`, else by the names that
//! the CUDA toolkits 11 to 13 give it. It needs no GPU, so a folder of compiled kernels can be filled ahead.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::module::{HEADERS, Module};
use crate::{Error, Result, cache};

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
    /// That of a device: what Hopper alone has is asked for by its own name.
    pub fn of(capability: (u32, u32)) -> Self {
        Self { capability, exact: capability == (9, 0) }
    }

    /// Whether a module compiles for it.
    pub fn has(self, module: &Module) -> bool {
        match module.exact {
            true => self.exact && self.capability == module.needs,
            false => self.capability >= module.needs,
        }
    }

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
    /// Compute capabilities that it compiles for: 80 is 8.0.
    known: Vec<c_int>,
    /// Keeps the functions where they are.
    _library: Library,
    _builtins: Option<Library>,
}

fn names() -> Vec<String> {
    if let Some(path) = std::env::var_os("EXMY_NVRTC").filter(|path| !path.is_empty()) {
        return vec![path.to_string_lossy().into_owned()];
    }
    let names: &[&str] = if cfg!(windows) {
        &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
    } else {
        &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The second part of the library, which stands beside it and which it looks for by name: that of PyPI's 13.0
/// does not find it there unless it is loaded already.
fn builtins(name: &str, (major, minor): (c_int, c_int)) -> Option<Library> {
    let folder = Path::new(name).parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let file = folder.join(format!("libnvrtc-builtins.so.{major}.{minor}"));
    // SAFETY: the library is NVIDIA's, whose initialization has no conditions.
    unsafe { Library::new(file).ok() }
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
        let count: unsafe extern "C" fn(*mut c_int) -> Status = get!("nvrtcGetNumSupportedArchs");
        let list: unsafe extern "C" fn(*mut c_int) -> Status = get!("nvrtcGetSupportedArchs");
        let mut known = 0;
        if count(&mut known) != 0 {
            return None;
        }
        let mut known = vec![0; known.unsigned_abs() as usize];
        if list(known.as_mut_ptr()) != 0 {
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
            known,
            _builtins: builtins(name, (major, minor)),
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

/// Refuses a compiler that does not know an architecture. `known` are those without a letter; `sm_90a` came
/// with 12.0, `sm_90` before.
fn suits(version: (u32, u32), known: &[c_int], architecture: Architecture) -> Result<()> {
    let (major, minor) = architecture.capability;
    let number = major.checked_mul(10).and_then(|tens| c_int::try_from(tens + minor).ok());
    let is_known = number.is_some_and(|number| known.contains(&number));
    match is_known && (!architecture.exact || version >= (12, 0)) {
        true => Ok(()),
        false => Err(Error::OldCompiler { found: version, architecture: architecture.name() }),
    }
}

/// The compiler, if it knows an architecture.
fn nvrtc_for(architecture: Architecture) -> Result<&'static Nvrtc> {
    let nvrtc = nvrtc()?;
    suits(nvrtc.version, &nvrtc.known, architecture).map(|()| nvrtc)
}

/// Whether all kernels of an architecture can be had: compiled now, or from the folder.
///
/// # Errors
/// What is wrong with the compiler, if the folder lacks some.
pub(crate) fn possible(architecture: Architecture) -> Result<()> {
    let Err(why) = nvrtc_for(architecture) else { return Ok(()) };
    let is_stored = |folder: &PathBuf| {
        let mut modules = crate::module::ALL.iter().filter(|module| architecture.has(module));
        modules.all(|module| cache::load_first(folder, "", &stored(module, architecture)).is_some())
    };
    if cache::folder().is_some_and(|folder| is_stored(&folder)) { Ok(()) } else { Err(why) }
}

/// Machine code of a module for an architecture.
///
/// # Errors
/// [`Error::NoCompiler`], [`Error::OldCompiler`] or [`Error::Compile`].
pub fn compile(module: &'static Module, architecture: Architecture) -> Result<Vec<u8>> {
    let nvrtc = nvrtc_for(architecture)?;
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

/// What a module's machine code is stored under: everything that its bits depend on, and then the compiler.
/// That of another compiler will do, as every version is to give the same bits.
fn stored(module: &Module, architecture: Architecture) -> String {
    let target = architecture.name();
    let parts = [module.name, module.source, &target]
        .into_iter()
        .chain(OPTIONS)
        .chain(HEADERS.iter().flat_map(|(name, source)| [*name, *source]));
    format!("{}-{target}-{}", module.name.replace(['.', '/'], "-"), cache::hash(parts))
}

/// Machine code, and whether it was compiled now.
type Code = (Vec<u8>, bool);

/// Machine code of a module, from disk unless it is to be made `anew`.
pub(crate) fn code(
    module: &'static Module,
    architecture: Architecture,
    anew: bool,
) -> Result<Code> {
    let (folder, name) = (cache::folder(), stored(module, architecture));
    let own = version().map(|(major, minor)| format!("{name}-nvrtc{major}.{minor}.cubin"));
    if let Some(folder) = folder.as_deref().filter(|_| !anew)
        && let Some(code) = cache::load_first(folder, own.as_deref().unwrap_or_default(), &name)
    {
        return Ok((code, false));
    }
    let own = own?;
    let code = compile(module, architecture)?;
    if let Some(folder) = folder {
        // Without a place on disk it is compiled at every start, which is no error.
        drop(cache::store(&folder, &own, &code));
    }
    Ok((code, true))
}

/// Machine code of several modules, which as many threads compile as there are processors.
pub(crate) fn codes(modules: &[&'static Module], architecture: Architecture) -> Result<Vec<Code>> {
    let slots: Vec<Mutex<Option<Result<Code>>>> =
        modules.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((module, slot)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            modules.get(at).zip(slots.get(at))
        } {
            let made = code(module, architecture, false);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..threads.min(modules.len()) {
            // Where no more threads can be had, this one does the work.
            drop(std::thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let made = slots.into_iter().map(|slot| {
        let made = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.unwrap_or_else(|| Err(Error::unfit("compile", "a thread ended early")))
    });
    made.collect()
}

/// Compiles all kernels for an architecture into the folder of compiled kernels, on any machine: how many
/// modules there are, how many were compiled now, and the folder.
///
/// # Errors
/// [`Error::NoCompiler`], [`Error::OldCompiler`], [`Error::Compile`], or if the environment names no folder.
pub fn fill(architecture: Architecture) -> Result<(usize, usize, PathBuf)> {
    let folder = cache::folder();
    let folder = folder.ok_or_else(|| {
        Error::unfit(
            "compile",
            "the environment names no home and so no folder for kernels; EXMY_CACHE may",
        )
    })?;
    let unwritable = || {
        let folder = exmy::shown::printable_path(&folder);
        Error::unfit("compile", format!("{folder} cannot be written; EXMY_CACHE may name another"))
    };
    // Not to be found out after minutes of compiling.
    cache::try_out(&folder).map_err(|_| unwritable())?;
    nvrtc_for(architecture)?;
    let modules: Vec<&'static Module> =
        crate::module::ALL.iter().copied().filter(|module| architecture.has(module)).collect();
    let made = codes(&modules, architecture)?;
    let lost = modules
        .iter()
        .find(|module| cache::load_first(&folder, "", &stored(module, architecture)).is_none());
    if lost.is_some() {
        return Err(unwritable());
    }
    Ok((modules.len(), made.iter().filter(|(_, new)| *new).count(), folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What 11.8, 12.0 and 12.8 answer, shortened.
    #[test]
    fn an_old_compiler_is_refused() {
        let of = Architecture::of;
        assert_eq!(suits((11, 8), &[80, 86, 89, 90], of((8, 9))), Ok(()));
        assert_eq!(suits((12, 0), &[80, 86, 89, 90], of((9, 0))), Ok(()));
        assert_eq!(suits((12, 8), &[80, 90, 100, 120], of((12, 0))), Ok(()));
        let refused = [((11, 8), (9, 0), "sm_90a"), ((12, 0), (10, 0), "sm_100")];
        for (found, capability, name) in refused {
            let error = suits(found, &[80, 86, 89, 90], of(capability)).unwrap_err();
            assert_eq!(error, Error::OldCompiler { found, architecture: name.into() });
            let text = error.to_string();
            let begin = format!("NVRTC {}.{} does not compile for {name}", found.0, found.1);
            assert!(text.starts_with(&begin) && text.contains("EXMY_NVRTC"), "{text}");
        }
    }
}
