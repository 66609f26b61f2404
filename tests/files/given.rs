//! Files that others name: nothing without an end is read, and nothing but plain files is opened.

use exmy::safetensors::given::{SETTINGS, check, lines, read, text};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

#[test]
fn nothing_is_read_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    let sparse = File::create(&path).unwrap();
    sparse.set_len(64 << 30).unwrap();
    let refused = |result: io::Result<Vec<u8>>, part: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(read(&path, SETTINGS), "more than 67108864 bytes");
    refused(lines(&path), "a line of more than 16777216 bytes");
    fs::write(&path, [&[b'x'; 100][..], b"\n\xff"].concat()).unwrap();
    assert_eq!(lines(&path).unwrap().len(), 102);
    refused(text(&path, SETTINGS).map(String::into_bytes), "no text");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    for path in [&path, &link, Path::new("/dev/zero")] {
        for error in [check(path).unwrap_err(), lines(path).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("no plain file"), "{error}");
        }
    }
    check(&folder.path().join("nothing")).unwrap();
}
