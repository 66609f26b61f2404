//! The library as programs in C and C++ meet it. What needs a compiler or another tool that is not there is
//! skipped with a line that the end of CI counts.

mod odd;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Why a check cannot be made here.
fn skipped(what: &str) {
    use std::io::Write;
    println!("skipped: {what}");
    if let Some(path) = std::env::var_os("EXMY_SKIPPED")
        && let Ok(mut file) = fs::OpenOptions::new().append(true).create(true).open(path)
    {
        drop(writeln!(file, "exmy-capi: skipped: {what}"));
    }
}

/// A path inside the crate.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder with the libraries: that of this test, for which they were built.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn is_there(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// What a command printed that has to end well.
fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(status.success(), "{command:?}: {status}\n{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

/// A compiler with the language it is to take.
struct Language {
    compiler: &'static str,
    flags: &'static [&'static str],
}

const LANGUAGES: [Language; 2] = [
    Language { compiler: "cc", flags: &["-std=c11", "-pedantic"] },
    Language { compiler: "c++", flags: &["-x", "c++", "-std=c++17"] },
];

impl Language {
    /// Compiles the program that calls every function, links it to the library in `folder` and runs it.
    fn run(&self, folder: &Path, flags: &[&str], link: &[&str]) {
        let program = folder.join("every");
        let version = concat!("-DEXPECTED_VERSION=\"", env!("CARGO_PKG_VERSION"), "\"");
        let mut command = Command::new(self.compiler);
        command.args(self.flags).args(["-Wall", "-Wextra", "-Werror", "-g", version]).args(flags);
        command.arg("-I").arg(here("include")).arg(here("tests/c/every.c"));
        command.args(["-x", "none"]).args(link).arg("-o").arg(&program);
        succeed(&mut command);
        assert_eq!(succeed(&mut Command::new(&program)), "0 failures\n");
    }
}

/// Runs the program in each language that is there.
fn in_each_language(flags: &[&str], link: &[&str]) {
    for language in LANGUAGES {
        if is_there(language.compiler) {
            language.run(tempfile::tempdir().unwrap().path(), flags, link);
        } else {
            skipped(&format!("no compiler {}", language.compiler));
        }
    }
}

#[test]
fn every_function_does_what_the_header_says() {
    let library = built().join("libexmy_capi.a");
    in_each_language(&[], &[library.to_str().unwrap(), "-lpthread", "-ldl", "-lm"]);
}

#[test]
fn every_function_stays_inside_its_memory() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("main.c"), folder.path().join("main"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut compiled = Command::new("cc");
    compiled.args(flags).arg(&source).arg("-o").arg(&program);
    let fine = |command: &mut Command| command.output().is_ok_and(|out| out.status.success());
    if !fine(&mut compiled) || !fine(&mut Command::new(&program)) {
        return skipped("no compiler cc with sanitizers of addresses and undefined behaviour");
    }
    let library = built().join("libexmy_capi.a");
    in_each_language(&flags, &[library.to_str().unwrap(), "-lpthread", "-ldl", "-lm"]);
}

#[test]
fn an_installed_library_is_found() {
    if !is_there("pkg-config") || !is_there("bash") || !cfg!(target_os = "linux") {
        return skipped("no pkg-config");
    }
    let prefix = tempfile::tempdir().unwrap();
    let script = here("../../scripts/install-capi.sh");
    succeed(Command::new("bash").arg(script).arg(prefix.path()).arg(built()));
    let ask = |questions: &[&str]| {
        let mut asked = Command::new("pkg-config");
        asked.env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig"));
        succeed(asked.args(questions).arg("exmy"))
    };
    assert_eq!(ask(&["--modversion"]).trim_end(), env!("CARGO_PKG_VERSION"));
    let flags = ask(&["--cflags", "--libs"]);
    let lib = prefix.path().join("lib");
    let rpath = format!("-Wl,-rpath,{}", lib.to_str().unwrap());
    let mut link: Vec<&str> = flags.split_whitespace().collect();
    link.extend([rpath.as_str(), "-lm"]);
    in_each_language(&[], &link);
    // Programs ask for the library by the name of its series of versions.
    let (shared, version) = ("libexmy_capi.so", env!("CARGO_PKG_VERSION"));
    let series = format!("{shared}.{}", version.rsplit_once('.').unwrap().0);
    let leads_to = |name: &str| fs::read_link(lib.join(name)).unwrap();
    assert_eq!(leads_to(shared), Path::new(&series));
    assert_eq!(leads_to(&series), Path::new(&format!("{shared}.{version}")));
    if !is_there("readelf") {
        return skipped("no readelf for the name of the shared library");
    }
    let said = succeed(Command::new("readelf").arg("-d").arg(lib.join(shared)));
    assert!(said.contains(&format!("soname: [{series}]")), "{said}");
}

/// Runs the lines with which a page begins, but for what builds the library, with this test's paths in place
/// of the page's. What they printed, and what the page says.
fn first_lines(page: &str, paths: &[(&str, PathBuf)]) -> (String, String) {
    let page = fs::read_to_string(here("../../docs").join(page)).unwrap();
    let block =
        |start| page.split(start).nth(1).and_then(|rest| rest.split("```\n").next()).unwrap();
    let (build, rest) = block("```sh\n").split_once('\n').unwrap();
    assert_eq!(build, "cargo build --release -p exmy-capi");
    let mut script = rest.to_owned();
    for (path, ours) in paths {
        assert!(script.contains(path), "{script}");
        script = script.replace(path, ours.to_str().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let printed = succeed(Command::new("bash").args(["-ec", &script]).current_dir(folder.path()));
    (printed, block("```text\n").to_owned())
}

#[test]
fn the_first_lines_of_the_page_work() {
    if !is_there("cc") || !is_there("bash") {
        return skipped("no compiler cc");
    }
    let paths = [("crates/exmy-capi/include", here("include")), ("target/release", built())];
    let (printed, wanted) = first_lines("c.md", &paths);
    assert_eq!(printed, wanted);
}

/// Words that begin as the exported functions do and stand before an opening parenthesis.
fn functions(text: &str) -> BTreeSet<String> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let calls = text.match_indices("exmy_").filter_map(|(at, _)| {
        let end = text[at..].find(|c: char| !name(c)).map_or(text.len(), |length| at + length);
        let whole = !text[..at].ends_with(name) && text[end..].starts_with('(');
        whole.then(|| text[at..end].to_owned())
    });
    calls.collect()
}

#[test]
fn the_header_has_every_function_and_the_program_calls_it() {
    let header = fs::read_to_string(here("include/exmy.h")).unwrap();
    let code: String = header
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let declared = functions(&code);
    let program = functions(&fs::read_to_string(here("tests/c/every.c")).unwrap());
    assert!(declared.len() > 30, "{declared:?}");
    assert!(declared.is_subset(&program), "{:?}", declared.difference(&program));
    let mut exported = BTreeSet::new();
    for file in fs::read_dir(here("src")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for part in text.split("#[unsafe(no_mangle)]").skip(1) {
            let name = part.split_once("fn ").unwrap().1.split('(').next().unwrap();
            exported.insert(name.to_owned());
        }
    }
    assert_eq!(declared, exported);
    if !is_there("nm") || !cfg!(target_os = "linux") {
        return skipped("no nm for the symbols of the shared library");
    }
    let library = built().join("libexmy_capi.so");
    let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let symbols = symbols.lines().filter_map(|line| line.split(' ').nth(2));
    let symbols = symbols.filter(|name| name.starts_with("exmy_")).map(str::to_owned);
    assert_eq!(symbols.collect::<BTreeSet<_>>(), declared);
}

/// The version of cbindgen that made the header, whose words differ between versions.
const CBINDGEN: &str = "cbindgen 0.29";

#[test]
fn the_header_is_the_one_that_cbindgen_makes() {
    let tool = std::env::var("EXMY_CBINDGEN").unwrap_or("cbindgen".into());
    let version = Command::new(&tool).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.is_ok_and(|version| version.starts_with(CBINDGEN)) {
        return skipped(&format!("no {CBINDGEN} (EXMY_CBINDGEN names one)"));
    }
    let mut command = Command::new(tool);
    command.args(["--config", "cbindgen.toml", "."]).current_dir(here(""));
    let made = succeed(&mut command);
    let path = here("include/exmy.h");
    if std::env::var_os("EXMY_WRITE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert_eq!(made, fs::read_to_string(path).unwrap(), "EXMY_WRITE_DOCS=1 writes it");
}

mod long {
    use super::{Command, Path, built, first_lines, here, is_there, skipped, succeed};

    /// The simulator that compiles benches.
    fn verilator() -> String {
        std::env::var("EXMY_VERILATOR").unwrap_or("verilator".into())
    }

    /// Makes the program of a bench, the last of these files, in a folder.
    fn compile(folder: &Path, files: &[&str]) {
        let top = files.last().unwrap().trim_end_matches(".sv");
        let mut command = Command::new(verilator());
        command.args(["--binary", "-Wno-fatal", "--top-module", top, "-o", "bench"]);
        command
            .arg("--Mdir")
            .arg(folder)
            .args(["-CFLAGS", &format!("-I{}", show(&here("include")))]);
        for file in ["exmy_pkg.sv"].iter().chain(files).chain(&["exmy_dpi.c"]) {
            command.arg(here("sv").join(file));
        }
        let library = show(&built().join("libexmy_capi.a"));
        command.args(["-LDFLAGS", &format!("{library} -lpthread -ldl -lm")]);
        succeed(&mut command);
    }

    fn show(path: &Path) -> String {
        path.to_str().unwrap().to_owned()
    }

    /// What a bench of some designs printed, one of which has its bug (0: none), found in that one alone. The
    /// exit status says so, too: that is all that a script reads.
    fn found(folder: &Path, designs: u32, bug: u32) -> String {
        let mut bench = Command::new(folder.join("bench"));
        let output = bench.args([&format!("+bug={bug}"), "+cases=20000"]).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.success(), bug == 0, "bug {bug}: {} {out}", output.status);
        let ends = if bug == 0 { "PASSED" } else { "FAILED" };
        assert!(out.lines().any(|line| line == ends), "bug {bug}: {out}");
        for design in 1..=designs {
            let clean = out.contains(&format!("design {design}: 0 mismatches\n"));
            assert_eq!(clean, design != bug, "bug {bug}: {out}");
        }
        out
    }

    /// Options that mean nothing end a bench before it has tested anything, with what there is.
    fn refuses(folder: &Path, bugs: &[&str]) {
        for option in [
            "+bug=99",
            "+bug=-1",
            "+bug=two",
            "+bug=1x",
            "+bug=",
            "+bugs=1",
            "+cases=0",
            "+cases=few",
        ] {
            let output = Command::new(folder.join("bench")).arg(option).output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(text).unwrap();
            assert!(!output.status.success() && !text.contains("PASSED"), "{option}: {text}");
            let bug = option.starts_with("+bug");
            let there = if bug { bugs } else { &["+cases=N, how many random cases"] };
            assert!(there.iter().all(|part| text.contains(part)), "{option}: {text}");
        }
    }

    /// Four designs in SystemVerilog, written from the documents, agree with exmy; a bug in any is found.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn the_bench_passes_and_finds_planted_bugs() {
        if !is_there(&verilator()) {
            return skipped("no verilator (EXMY_VERILATOR names one)");
        }
        let folder = tempfile::tempdir().unwrap();
        compile(folder.path(), &["designs.sv", "bench.sv"]);
        refuses(folder.path(), &["1 (multiply-add", "2 (dot", "3 (converter", "4 (stochastic"]);
        for bug in 0..=4 {
            let out = found(folder.path(), 4, bug);
            assert!(!out.contains(", 0 overflowed") && !out.contains(", 0 saturated"), "{out}");
            // What was exercised: zero, subnormal, normal, infinite and NaN, but that E4M3 has no infinity.
            for (row, has_infinity) in [
                ("mulAdd operands", false),
                ("mulAdd results", false),
                ("dot operands", false),
                ("dot results", true),
                ("converter operands", true),
                ("converter results", false),
                ("stochastic addends", true),
                ("stochastic results", true),
            ] {
                let line = out.lines().find(|line| line.starts_with(row)).unwrap();
                let counts: Vec<_> = line[row.len()..].split_whitespace().collect();
                assert_eq!(counts.len(), 5, "{line}");
                for (class, count) in counts.into_iter().enumerate() {
                    let there = class != 3 || has_infinity;
                    assert!(
                        if there { count.parse::<u32>().unwrap() > 0 } else { count == "-" },
                        "{out}"
                    );
                }
            }
        }
    }

    /// Blocks, packing and products: numbers worked out by hand, and three designs with a bug each.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn blocks_pass_and_planted_bugs_are_found() {
        if !is_there(&verilator()) {
            return skipped("no verilator (EXMY_VERILATOR names one)");
        }
        let folder = tempfile::tempdir().unwrap();
        compile(folder.path(), &["blocks.sv"]);
        refuses(folder.path(), &["1 (quantizer", "2 (packer", "3 (dot"]);
        for bug in 0..=3 {
            let out = found(folder.path(), 3, bug);
            assert!(out.contains("by hand: 0 wrong\n"), "{out}");
            // Products of both signs, and some that cancel.
            assert!(!out.contains("products: 0 negative") && !out.contains(", 0 zero"), "{out}");
        }
    }

    /// Behind what the page says, a simulator may say where it ended.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn the_first_lines_of_the_page_of_systemverilog_work() {
        if !is_there(&verilator()) {
            return skipped("no verilator (EXMY_VERILATOR names one)");
        }
        let paths = [
            ("verilator --", format!("{} --", verilator()).into()),
            ("$PWD/crates/exmy-capi", here("")),
            ("$PWD/target/release", built()),
        ];
        let (printed, wanted) = first_lines("systemverilog.md", &paths);
        assert!(printed.starts_with(&wanted), "{printed}");
    }

    /// The same designs in cocotb, with the library loaded by Python: each planted bug fails its test.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn cocotb_passes_and_finds_planted_bugs() {
        let python = std::env::var("EXMY_COCOTB_PYTHON").unwrap_or_else(|_| "python3".into());
        let imports = Command::new(&python).args(["-c", "import cocotb.runner"]).output();
        if !is_there(&verilator()) || !imports.is_ok_and(|output| output.status.success()) {
            return skipped(
                "no verilator or cocotb (EXMY_COCOTB_PYTHON names a Python that has it)",
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(python);
        command.arg(here("sv/cocotb/test_designs.py")).current_dir(here("sv/cocotb"));
        command.env("EXMY_LIBRARY", built().join("libexmy_capi.so"));
        command.env("EXMY_BUILD", folder.path()).env("EXMY_CASES", "3000");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let out = succeed(&mut command);
        assert!(out.lines().any(|line| line == "PASSED"), "{out}");
        // It runs all bugs itself, and says so to one who asks for another.
        let output = command.env("EXMY_BUG", "99").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("without and with its bug"), "{said}");
    }

    /// What `exmy vectors --style sv` prints is a package, whose cases a bench reads.
    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn cases_are_a_package() {
        use exmy::vectors::cases::{Cases, Request, Style, write};
        use exmy::vectors::evaluate::Settings;
        use exmy::vectors::function::TestFunction;
        if !is_there(&verilator()) {
            return skipped("no verilator (EXMY_VERILATOR names one)");
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(verilator());
        command.args(["--lint-only", "-Wall", "-Wno-UNUSEDPARAM", "-Wno-DECLFILENAME"]);
        for name in ["e4m3_mul", "f64_to_i128", "e5m2,f16_add_to_f32", "f16_lt"] {
            let function: TestFunction = name.parse().unwrap();
            let evaluator = function.evaluator(&Settings::default()).unwrap();
            let request = Request { count: Some(100), ..Request::default() };
            let mut package = Vec::new();
            let cases = Cases::new(&function, &request).unwrap();
            write(&evaluator, &cases, Style::Sv, &mut package).unwrap();
            let path = folder.path().join(format!("{name}.sv"));
            std::fs::write(&path, package).unwrap();
            command.arg(path);
        }
        let top = folder.path().join("top.sv");
        // The first case of all is 0 * 0, whose result has eight bits; a wrong width would be an error.
        let text = "module top;
            import cases_e4m3_mul::*;
            localparam case_t FIRST = CASES[0];
            if (FIRST.result != 8'h00 || $bits(case_t) != 32 || COUNT != 100) begin : wrong
                $error(\"wrong\");
            end
            endmodule\n";
        std::fs::write(&top, text).unwrap();
        succeed(command.arg(top).args(["--top-module", "top"]));
    }
}
