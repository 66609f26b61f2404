//! Compiled kernels on disk: one file for each module, architecture and compiler, under a name with a hash of
//! everything that its bits depend on. A file is whole or absent, and one that does not load is made
//! anew.
//!
//! The folder is `EXMY_CACHE`, else `exmy` in the user's folder for caches (`XDG_CACHE_HOME`, `~/.cache`,
//! `LOCALAPPDATA`). Where it cannot be written, kernels are compiled at each start.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// FNV-1a of 128 bits (Fowler, Noll, Vo), over parts with their lengths.
pub(crate) fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    let mut hash = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D_u128;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    };
    for part in parts {
        eat(&(part.len() as u64).to_le_bytes());
        eat(part.as_bytes());
    }
    format!("{hash:032x}")
}

/// The folder, if the environment says where.
pub(crate) fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|x| !x.is_empty()).map(PathBuf::from);
    if let Some(own) = variable("EXMY_CACHE") {
        return Some(own);
    }
    let home = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))
    };
    Some(home?.join("exmy"))
}

/// What is stored under a name.
pub(crate) fn load(folder: &Path, name: &str) -> Option<Vec<u8>> {
    fs::read(folder.join(name)).ok().filter(|contents| !contents.is_empty())
}

/// What is stored under a name, else under the first other one that begins in the same way.
pub(crate) fn load_first(folder: &Path, name: &str, beginning: &str) -> Option<Vec<u8>> {
    if let Some(code) = load(folder, name).filter(|_| !name.is_empty()) {
        return Some(code);
    }
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> =
        names.filter(|name| name.starts_with(beginning) && name.ends_with(".cubin")).collect();
    names.sort_unstable();
    names.iter().find_map(|name| load(folder, name))
}

/// Whether the folder takes a file; nothing stays in it.
pub(crate) fn try_out(folder: &Path) -> std::io::Result<()> {
    let name = "try";
    store(folder, name, name.as_bytes())?;
    // Another process that tries it out may have been faster.
    drop(fs::remove_file(folder.join(name)));
    Ok(())
}

/// Stores it, if that is possible: under another name first, so that no one sees half of it.
pub(crate) fn store(folder: &Path, name: &str, contents: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(folder)?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let other = folder.join(format!("{name}.{}.{count}", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&other)?;
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&other, folder.join(name))
    };
    write().inspect_err(|_| drop(fs::remove_file(&other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_hashed_with_their_lengths() {
        // FNV-1a of nothing is its offset basis; a part adds its length of eight bytes.
        assert_eq!(hash([]), "6c62272e07bb014262b821756295c58d");
        assert_ne!(hash(["a", "b"]), hash(["ab", ""]));
        assert_ne!(hash(["a"]), hash(["a", ""]));
    }

    #[test]
    fn what_is_stored_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/yet/there");
        assert_eq!(load(&deep, "x"), None);
        store(&deep, "x", b"code").unwrap();
        store(&deep, "x", b"other").unwrap();
        assert_eq!(load(&deep, "x").unwrap(), b"other");
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 1);
        for name in ["k-1.cubin", "k-2.cubin", "k-0.other", "l-1.cubin"] {
            store(&deep, name, name.as_bytes()).unwrap();
        }
        assert_eq!(load_first(&deep, "k-2.cubin", "k-").unwrap(), b"k-2.cubin");
        assert_eq!(load_first(&deep, "k-3.cubin", "k-").unwrap(), b"k-1.cubin");
        assert_eq!(load_first(&deep, "", "m-"), None);
    }
}
