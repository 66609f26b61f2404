use exmy_train::train::memory::{addresses, available, ensure, free, had};

#[test]
fn what_linux_says() {
    let info = "MemTotal:       8000000 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
    assert_eq!(free(info), Some(2 << 20));
    let limits =
        "Limit   Soft Limit  Hard Limit  Units\nMax address space     4096  unlimited  bytes\n";
    assert_eq!(addresses(limits), Some(4096));
    assert_eq!(addresses(&limits.replace("4096", "unlimited")), None);
    if cfg!(target_os = "linux") {
        assert!(available().unwrap() > 1 << 20);
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    assert_eq!((had(3 << 20), had(5)), (3 << 20, 5));
    assert!(ensure(1 << 20, "they").is_ok());
    let error = ensure(usize::MAX / 4, "weights").unwrap_err().to_string();
    assert!(error.starts_with("weights need 17179869184.0 GiB"), "{error}");
}
