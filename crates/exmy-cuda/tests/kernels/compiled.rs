//! Every module compiles for the architectures that it names.

use exmy_cuda::compile::{Architecture, compile, version};
use exmy_cuda::{Error, module};

#[test]
fn modules_name_their_kernels() {
    for module in module::ALL {
        let exported: Vec<_> =
            module.source.lines().filter_map(|line| line.strip_prefix("EXPORT(")).collect();
        let exported: Vec<_> = exported.iter().map(|line| line.trim_end_matches(')')).collect();
        assert_eq!(exported, module.kernels, "{}", module.name);
    }
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn all_kernels_compile() {
        // One library for the whole test, from where scripts/nvrtc.sh puts it.
        match version() {
            Ok((major, minor)) => println!("NVRTC {major}.{minor}"),
            Err(Error::NoCompiler { .. }) => {
                return crate::skipped("no NVRTC: scripts/nvrtc.sh fetches it");
            }
            Err(error) => panic!("{error}"),
        }
        let ampere = Architecture { capability: (8, 0), exact: false };
        let hopper = Architecture { capability: (9, 0), exact: true };
        for module in module::ALL {
            for architecture in [ampere, hopper] {
                if architecture.capability < module.needs {
                    continue;
                }
                let code = compile(module, architecture).unwrap_or_else(|error| panic!("{error}"));
                assert!(
                    code.starts_with(b"\x7fELF"),
                    "{} for {}",
                    module.name,
                    architecture.name()
                );
                for kernel in module.kernels {
                    let named = code.windows(kernel.len()).any(|bytes| bytes == kernel.as_bytes());
                    assert!(named, "{kernel} is not in {}", module.name);
                }
            }
        }
    }
}
