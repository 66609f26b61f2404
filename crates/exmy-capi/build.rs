//! The name that the shared library gives itself on Linux, as cargo-c does: `libexmy_capi.so.0.1`.
//!
//! A program that is linked with the library asks for it by this name, not by the path it was found at. Of a
//! version that is not compatible the name is another, so both can be installed.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let part = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
        let series = match (part("MAJOR").as_str(), part("MINOR").as_str()) {
            ("0", "0") => format!("0.0.{}", part("PATCH")),
            ("0", minor) => format!("0.{minor}"),
            (major, _) => major.to_owned(),
        };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libexmy_capi.so.{series}");
    }
}
