//! What `verify` compares on a GPU, on the emulated device.

use exmy_cuda::verify::{Extent, library};

use super::device;

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn the_emulated_device_has_the_bits_of_the_library() {
        let Some(device) = device() else { return };
        let rows = library(&device, Extent::Small, |_| ()).unwrap();
        let table: Vec<String> = rows.iter().map(ToString::to_string).collect();
        println!("{}", table.join("\n"));
        assert!(rows.iter().all(|row| row.first.is_none()), "\n{}", table.join("\n"));
        // Nothing is left out, and no list of cases has become empty. Of tensor cores this shows what is
        // around them: they are the library's model here.
        let missing = rows.iter().filter(|row| row.missing.is_some()).count();
        assert_eq!((rows.len(), missing), (17, 0), "\n{}", table.join("\n"));
        assert!(rows.iter().all(|row| row.cases >= 3 && row.numbers > 1000));
        assert!(rows.iter().map(|row| row.cases).sum::<usize>() > 10_000);
    }
}
