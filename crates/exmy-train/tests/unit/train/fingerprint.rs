use exmy_train::train::fingerprint::Fingerprint;

/// The vectors of the RFC's appendix.
#[test]
fn published_vectors() {
    assert_eq!(Fingerprint::of(b"").to_string(), "cbf29ce484222325");
    assert_eq!(Fingerprint::of(b"a").to_string(), "af63dc4c8601ec8c");
    assert_eq!(Fingerprint::of(b"foobar").to_string(), "85944171f73967e8");
}
