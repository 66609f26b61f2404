//! Files that are whole or absent, whatever happens to their writer.

use exmy::safetensors::whole::{PARTIAL, WholeFile, remove_abandoned, remove_partial, write_whole};
use std::fs;
use std::io::Write;

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write_whole(&path, b"old").unwrap();
    let mut file = WholeFile::create(&path).unwrap();
    file.file().write_all(b"ne").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Two writers of one file, with the same process number: each file is whole when it stands.
#[test]
fn writers_do_not_share_a_partial_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut first = WholeFile::create(&path).unwrap();
    first.file().write_all(b"first").unwrap();
    let mut second = WholeFile::create(&path).unwrap();
    second.file().write_all(b"second").unwrap();
    first.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    second.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
#[cfg(unix)]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::create_dir(place("far")).unwrap();
    symlink("far/a", place("link")).unwrap();
    symlink("link", place("again")).unwrap();
    // Nothing is there yet, then something is.
    for text in ["first", "second"] {
        write_whole(&place("again"), text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(place("far/a")).unwrap(), text);
        assert!(fs::symlink_metadata(place("link")).unwrap().is_symlink());
    }
    for mode in [0o600, 0o640, 0o444] {
        fs::set_permissions(place("far/a"), fs::Permissions::from_mode(mode)).unwrap();
        write_whole(&place("link"), b"third").unwrap();
        assert_eq!(fs::metadata(place("far/a")).unwrap().permissions().mode() & 0o777, mode);
    }
    fs::write(place("plain"), "").unwrap();
    let usual = fs::metadata(place("plain")).unwrap().permissions();
    write_whole(&place("new"), b"").unwrap();
    assert_eq!(fs::metadata(place("new")).unwrap().permissions(), usual);
    symlink("circle", place("circle")).unwrap();
    assert!(write_whole(&place("circle"), b"").is_err());
    assert_eq!(fs::read_dir(place("far")).unwrap().count(), 1);
}

#[test]
fn the_longest_names_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("\u{e9}".repeat(127));
    write_whole(&path, b"x").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"x");
}

#[test]
fn only_what_nobody_writes_is_abandoned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let left = folder.path().join(".partial-a-4294967295");
    let others = [".partial-a-b-1", ".partial-a-", ".partial-b-1", "a-1"];
    for name in others {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    fs::write(&left, b"left").unwrap();
    let file = WholeFile::create(&path).unwrap();
    remove_abandoned(&path);
    let partial = |name: &str| name.starts_with(".partial-a-") && !others.contains(&name);
    let names = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
    let names: Vec<_> = names.filter(|name| partial(&name.to_string_lossy())).collect();
    assert!(!left.exists() && names.len() == 1, "{names:?}"); // that of `file`
    assert!(others.iter().all(|name| folder.path().join(name).exists()));
    file.finish().unwrap();
}

/// A pipe of such a name is nobody's leftover, and opening it would wait forever.
#[test]
#[cfg(unix)]
fn a_pipe_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join(".partial-a-1");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = folder.path().join("a");
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        remove_abandoned(&path);
        done.send(()).unwrap();
    });
    wait.recv_timeout(std::time::Duration::from_secs(20)).expect("it hangs");
    assert!(pipe.exists());
}

#[test]
fn leftovers_are_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(format!("{PARTIAL}x")), b"").unwrap();
    fs::write(folder.path().join("x"), b"").unwrap();
    remove_partial(folder.path()).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name(), "x");
}
