//! `exmy quantize`: what it writes and says, and what it refuses.

mod left;

use crate::{exmy, printed, row, succeed};
use exmy::random::{Philox, Stream};
use exmy::safetensors::{Dtype, Outline, Reader, Writer};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A file of two matrices, one of them bf16, a vector and integers.
fn model(path: &Path) {
    let outlines = [
        Outline::new("layers.0.weight", Dtype::F32, [4, 64]),
        Outline::new("layers.1.weight", Dtype::BF16, [4, 64]),
        Outline::new("norm", Dtype::F32, [64]),
        Outline::new("ids", Dtype::I32, [2, 2]),
    ];
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    let mut writer = Writer::create(path, &outlines, metadata).unwrap();
    for outline in &outlines {
        let philox = Philox::new(1, Stream::new(&outline.name));
        for i in 0..outline.shape.iter().product::<usize>() as u64 {
            let x = (philox.uniform(i) * 4.0 - 2.0) as f32;
            match outline.dtype {
                Dtype::F32 => writer.write(&outline.name, &x.to_le_bytes()),
                Dtype::BF16 => writer.write(&outline.name, &x.to_le_bytes()[2..]),
                _ => writer.write(&outline.name, &(i as u32).to_le_bytes()),
            }
            .unwrap();
        }
    }
    writer.finish().unwrap();
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut whole = vec!["quantize"];
    whole.extend(arguments);
    exmy(&whole).current_dir(folder).output().unwrap()
}

/// The table of a run that must end well.
fn table(folder: &Path, arguments: &[&str]) -> String {
    printed(folder, "quantize", arguments)
}

#[test]
fn a_file_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    let text = table(folder, &["in", "out", "--to", "nvfp4"]);
    // 4 bits, a scale of 8 for 16, one of 32 for 256.
    assert_eq!(row(&text, "layers.0.weight")[1..3], ["[4,64]", "F32"]);
    assert_eq!(row(&text, "layers.0.weight").last(), Some(&"4.625"));
    assert_eq!(row(&text, "norm")[3..], ["kept:", "fewer", "than", "two", "axes"]);
    assert_eq!(row(&text, "ids")[3..], ["kept:", "I32"]);
    assert_eq!(row(&text, "total")[1], "512");
    assert!(text.contains("out: ") && text.contains("from "), "{text}");
    let header = Reader::open(folder.join("out")).unwrap().header().clone();
    let names: Vec<&str> = header.entries().iter().map(|entry| &*entry.name).collect();
    assert_eq!(
        names,
        [
            "layers.0.weight_scale_2",
            "layers.1.weight_scale_2",
            "norm",
            "ids",
            "layers.0.weight_scale",
            "layers.1.weight_scale",
            "layers.0.weight",
            "layers.1.weight"
        ]
    );
    assert_eq!(header.metadata()["exmy.format"], "nvfp4");
    assert_eq!(header.metadata()["format"], "pt");

    let direct = table(folder, &["in", "direct", "--to", "nvfp4", "--dequantize", "--quiet"]);
    assert_eq!(row(&direct, "layers.1.weight"), row(&text, "layers.1.weight"));
    assert!(!direct.contains("direct: "), "{direct}");
    let back = table(folder, &["out", "back", "--dequantize"]);
    assert_eq!(row(&back, "layers.0.weight")[2..], ["nvfp4", "values", "written"]);
    assert!(fs::read(folder.join("back")).unwrap() == fs::read(folder.join("direct")).unwrap());
    table(folder, &["out", "half", "--dequantize=f16"]);
    let header = Reader::open(folder.join("half")).unwrap().header().clone();
    assert_eq!(header.get("layers.1.weight").unwrap().dtype, Dtype::F16);
    assert_eq!(header.get("norm").unwrap().dtype, Dtype::F32);
}

/// A number that overflowed is in no sum of squares, and must be seen all the same.
#[test]
fn numbers_that_became_infinite_show_in_their_row() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut x = [1.0_f32; 128];
    // Beyond the largest of binary16, E5M2 and E4M3; a fourth is infinite before.
    (x[0], x[40], x[127], x[5]) = (1e6, 70_000.0, -3e38, f32::INFINITY);
    let write = |name: &str, x: &[f32]| {
        let outlines = [Outline::new("w", Dtype::F32, [4, x.len() / 4])];
        let mut writer = Writer::create(folder.join(name), &outlines, Default::default()).unwrap();
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        writer.write("w", &bytes).unwrap();
        writer.finish().unwrap();
    };
    write("in", &x);
    let cases = [("f16", "sat-none"), ("e5m2", "sat-none"), ("e4m3fn", "sat-none")];
    for (format, overflow) in cases {
        let text = table(folder, &["in", "out", "--to", format, "--overflow", overflow]);
        // SQNR, largest error, saturated, flushed, lost (3 of 128), bits.
        let bits = if format == "f16" { "16" } else { "8" };
        for name in ["w", "total"] {
            let cells = row(&text, name);
            let expected = ["-", "-", "0", "0", "2.34", "%", bits];
            assert!(cells.ends_with(&expected), "{format}: {text}");
        }
        assert!(!text.contains("exact"), "{text}");
        let note = "w: 1 of 128 numbers were infinite or NaN, 3 more became so";
        assert!(text.contains(note), "{text}");
    }
    // An infinity that stays one is not lost.
    (x[0], x[40], x[127]) = (1.0, 1.0, 1.0);
    write("in", &x);
    let text = table(folder, &["in", "out", "--to", "f16"]);
    assert!(row(&text, "w").ends_with(&["exact", "0", "0", "0", "0", "16"]), "{text}");
}

/// What is said to work for an odd number of FP4 codes does.
#[test]
fn an_odd_tensor_is_told_its_layout() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let outlines =
        [Outline::new("even.w", Dtype::F32, [2, 32]), Outline::new("odd.w", Dtype::F32, [3, 33])];
    let mut writer = Writer::create(folder.join("in"), &outlines, Default::default()).unwrap();
    writer.write("even.w", &1_f32.to_le_bytes().repeat(64)).unwrap();
    writer.write("odd.w", &1_f32.to_le_bytes().repeat(99)).unwrap();
    writer.finish().unwrap();
    for layout in ["safetensors", "torch", "cublas"] {
        let output = run(folder, &["in", "out", "--to", "mxfp4", "--layout", layout]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in ["--layout stream", "--layout byte", "--exclude \"odd.w\"", "--dequantize"] {
            assert!(message.contains(part), "no {part} in {message}");
        }
    }
    for layout in ["stream", "byte"] {
        table(folder, &["in", "out", "--to", "mxfp4", "--layout", layout]);
        table(folder, &["out", "back", "--dequantize"]);
        let back = Reader::open(folder.join("back")).unwrap().read_f32("odd.w").unwrap();
        assert_eq!(back, [1.0; 99]);
    }
    let text = table(folder, &["in", "out", "--to", "mxfp4", "--exclude", "odd.w"]);
    assert_eq!(row(&text, "odd.w")[3..], ["kept:", "excluded"]);
}

/// Options and the textual form are the same thing; threads and levels change nothing.
#[test]
fn options_are_suffixes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    table(folder, &["in", "a", "--to", "mxfp8-e4m3@rceil@torchao@sr8", "--seed", "7"]);
    let options = ["--scale-rule", "rceil", "--profile", "torchao", "--round", "sr8"];
    let mut whole = vec!["in", "b", "--to", "mxfp8-e4m3", "--seed", "7", "--threads", "1"];
    whole.extend(options);
    table(folder, &whole);
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("a") == read("b"));
    let mut scalar = exmy(&["quantize", "in", "c", "--to", "mxfp8-e4m3@rceil@torchao@sr8"]);
    succeed(scalar.args(["--seed", "7"]).current_dir(folder).env("EXMY_SIMD", "scalar"));
    assert!(read("a") == read("c"));
    table(folder, &["in", "d", "--to", "mxfp8-e4m3@rceil@torchao@sr8", "--seed", "8"]);
    assert!(read("a") != read("d"));
}

#[test]
fn names_are_chosen_by_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    let text = table(
        folder,
        &[
            "in",
            "out",
            "--to",
            "e4m3fn",
            "--include",
            "layers.[01].*",
            "--include",
            "n*",
            "--exclude",
            "*.1.*",
        ],
    );
    assert_eq!(row(&text, "norm").last(), Some(&"8"));
    assert_eq!(row(&text, "layers.0.weight").last(), Some(&"8"));
    assert_eq!(row(&text, "layers.1.weight")[3..], ["kept:", "excluded"]);
    assert_eq!(row(&text, "ids")[3..], ["kept:", "not", "included"]);
}

#[test]
fn mistakes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    fs::write(folder.join("text"), "no tensors, but more than eight bytes").unwrap();
    fs::write(folder.join("cut"), &fs::read(folder.join("in")).unwrap()[..700]).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["in", "out"], &["--to"]),
        (&["in", "out", "--to", "nvpf4"], &["nvpf4", "did you mean nvfp4"]),
        (&["in", "out", "--to", "mxfp4", "--scale-rule", "cail"], &["cail", "did you mean ceil"]),
        (&["in", "out", "--to", "mxfp4", "--round", "rnee"], &["rnee", "did you mean rne"]),
        (&["in", "out", "--to", "mxfp4", "--profile", "torchoa"], &["did you mean torchao"]),
        (&["in", "out", "--to", "mxfp4", "--layout", "gptoss"], &["did you mean gpt-oss"]),
        (&["in", "out", "--to", "mxfp4@rtz", "--round", "rne"], &["two rounding modes"]),
        (&["in", "out", "--to", "e4m3fn", "--scale-rule", "floor"], &["only block formats"]),
        (&["in", "out", "--to", "e2m2"], &["e2m2", "5 bits", "--dequantize"]),
        (&["in", "out", "--to", "mxfp4", "--dequantize", "bf16"], &["bf16", "--dequantize=bf16"]),
        (&["in", "out", "--to", "mxfp4", "--dequantize=bf61"], &["bf61", "bf16"]),
        (&["in", "out", "--dequantize"], &["no quantized tensor", "--to"]),
        (&["in", "out", "--dequantize", "--include", "*"], &["--include is about", "--to FORMAT"]),
        (&["in", "out", "--dequantize", "--exclude", "*"], &["--exclude is about", "--to FORMAT"]),
        (&["in", "out", "--dequantize", "--axis", "0"], &["--axis is about", "--to FORMAT"]),
        (&["in", "out", "--dequantize", "--seed", "3"], &["--seed is about", "--to FORMAT"]),
        (&["in", "out", "--dequantize", "--round", "rtz"], &["--round is about", "--to FORMAT"]),
        (&["in", "out", "--dequantize", "--scale-rule", "floor"], &["--scale-rule is about"]),
        (&["in", "out", "--dequantize", "--profile", "te"], &["--profile is about"]),
        (&["in", "out", "--dequantize", "--layout", "torch"], &["--layout is about"]),
        (&["in", "out", "--dequantize", "--overflow", "to-nan"], &["--overflow is about"]),
        (
            &["in", "out", "--to", "mxfp4", "--dequantize", "--layout", "torch"],
            &["--layout torch", "--dequantize writes values"],
        ),
        (&["in", "out", "--to", "none"], &["--to none", "mxfp4"]),
        (&["in", "out", "--to", "e4m3fn", "--axis", "0"], &["--axis 0", "e4m3 has none"]),
        (&["in", "out", "--to", "nvfp4", "--seed", "7"], &["--seed 7", "--round sr8"]),
        (&["in", "out", "--to", "nvfp4@sr8", "--seed", "-5"], &["-5", "whole number from 0 to"]),
        (&["in", "out", "--to", "nvfp4@sr8", "--seed", "x"], &["'x'", "whole number from 0 to"]),
        (&["in", "out", "--to", "mxfp4", "--axis", "x"], &["--axis", "'x'", "-1 the last"]),
        (&["in", "out", "--to", "mxfp4", "--exclude", "*"], &["4 excluded", "--exclude takes out"]),
        (&["in", "out", "--to", "mxfp4", "--exclude", "layer"], &["--exclude", "\"layer\""]),
        (&["in", "out", "--to", "nvfp4", "--profile", "microxcaling"], &["nvfp4", "microxcaling"]),
        (&["in", "out", "--to", "e4m3fn", "--profile", "te"], &["e4m3 is none", "block format"]),
        (&["-", "out", "--to", "mxfp4"], &["- is no file", "./-"]),
        (&["in", "-", "--to", "mxfp4"], &["- is no file", "./-"]),
        (&["in", "out/", "--to", "mxfp4"], &["out/ is no plain file"]),
        (&["in", "out", "--to", "mxfp4", "--axis", "-3"], &["no axis -3"]),
        (&["in", "out", "--to", "mxfp4", "--include", "layer"], &["--include", "\"layer\""]),
        (&["in", "out", "--to", "mxfp4", "--include", "[a"], &["[a", "no pattern"]),
        (&["in", "in", "--to", "mxfp4"], &["in is the input"]),
        (&["in", "./in", "--to", "mxfp4"], &["is the input"]),
        (&["in", "absent/out", "--to", "mxfp4"], &["absent/out", "there is no folder absent"]),
        (&["in", ".", "--to", "mxfp4"], &["no plain file"]),
        (&["absent", "out", "--to", "mxfp4"], &["cannot read absent"]),
        (&[".", "out", "--to", "mxfp4"], &["is a folder"]),
        (&["text", "out", "--to", "mxfp4"], &["text is no whole safetensors file"]),
        (&["cut", "out", "--to", "mxfp4"], &["cut", "tensor \"", "cut off"]),
        (&["in", "out", "--too", "mxfp4"], &["--too", "--to"]),
        (&["in", "out", "--to", "mxfp4", "--threads", "0"], &["--threads"]),
        (&["in", "out", "--to", "mxfp4", "--threads", "x"], &["--threads", "from 1 to 1024"]),
        (&["in", "out", "--to", "mxfp4", "--include", "[z-a]*"], &["begins behind its end"]),
    ];
    for (arguments, parts) in cases {
        let output = run(folder, arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?}: no {part:?} in\n{message}");
        }
        assert!(!message.contains("panicked"), "{message}");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 3, "{arguments:?} left something");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("in", folder.join("link")).unwrap();
        let output = run(folder, &["in", "link", "--to", "mxfp4"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("link is the input"));
    }
}

/// Pipes, devices, folders and sockets are answered at once; an empty file is none of a kind.
#[test]
#[cfg(target_os = "linux")]
fn what_is_no_plain_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    fs::write(folder.join("empty"), "").unwrap();
    fs::write(folder.join("m.safetensors.index.json"), "{\"weight_map\":{}}").unwrap();
    let cases = [
        ("pipe", "pipe is no plain file"),
        ("socket", "socket is no plain file"),
        ("/dev/null", "/dev/null is no plain file"),
        ("/dev/stdin", "/dev/stdin is no plain file"),
        ("empty", "0 bytes"),
        (".", "is a folder"),
        ("m.safetensors.index.json", "for f in model-*.safetensors"),
    ];
    for (name, part) in cases {
        for arguments in [&["quantize", name, "out", "--to", "mxfp4"][..], &["inspect", name]] {
            let mut command = exmy(arguments);
            // Nobody writes to it, ever.
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.current_dir(folder).spawn().unwrap();
            let stdin = child.stdin.take();
            let begun = Instant::now();
            while child.try_wait().unwrap().is_none() {
                if begun.elapsed() > Duration::from_secs(60) {
                    child.kill().unwrap();
                    panic!("{arguments:?} waits");
                }
                sleep(Duration::from_millis(2));
            }
            drop(stdin);
            let output = child.wait_with_output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
            assert!(message.contains(part), "{arguments:?}: {message}");
            assert!(!folder.join("out").exists());
        }
    }
    let output = run(folder, &["in", "pipe", "--to", "mxfp4"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("pipe is no plain file"));
    // A link stays one, and what it points to keeps its permissions.
    use std::os::unix::fs::{PermissionsExt, symlink};
    fs::create_dir(folder.join("far")).unwrap();
    fs::write(folder.join("far/out"), "old").unwrap();
    fs::set_permissions(folder.join("far/out"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("far/out", folder.join("link")).unwrap();
    table(folder, &["in", "link", "--to", "mxfp4"]);
    assert!(fs::symlink_metadata(folder.join("link")).unwrap().is_symlink());
    let found = fs::metadata(folder.join("far/out")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o640);
    assert!(Reader::open(folder.join("far/out")).is_ok());
    assert_eq!((parts(folder), parts(&folder.join("far"))), (0, 0));
}

/// However little memory there is, the answer is a file or an error that names the tensor.
#[test]
#[cfg(target_os = "linux")]
fn too_little_memory_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sparse(&folder.join("in"), 1 << 22);
    for (name, layout) in [("codes", "byte"), ("stream", "safetensors")] {
        table(folder, &["in", name, "--to", "mxfp4", "--layout", layout]);
    }
    table(folder, &["in", "plain", "--to", "e4m3fn", "--layout", "byte"]);
    let before = fs::read_dir(folder).unwrap().count();
    // The least that the program begins in, which is larger where it is not optimized.
    let program = env!("CARGO_BIN_EXE_exmy");
    let under = |limit: usize, call: &str| {
        let script = format!("ulimit -v {limit}; exec {program} {call} -q");
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", &script]).current_dir(folder).output().unwrap()
    };
    let begins = |&limit: &usize| under(limit, "inspect missing").status.code() == Some(2);
    let least = (32_000..80_000).step_by(4000).find(begins).unwrap();
    let cases = [
        "quantize in out --to mxfp4",
        "quantize in out --to nvfp4 --layout byte",
        "quantize in out --to e4m3fn --layout byte",
        "quantize in out --to mxfp8-e4m3 --axis 0 --dequantize",
        "quantize in out --to mxfp4 --dequantize=bf16",
        "quantize codes out --dequantize",
        "quantize stream out --dequantize=f16",
        "quantize plain out --dequantize",
        "inspect codes",
        "inspect plain",
    ];
    for case in cases {
        let (mut good, mut reported) = (0, 0);
        // In KiB of addresses, of which a thread's pool of memory takes many without using them.
        // In little more than the program itself threads may not start.
        for limit in (least..200_000).step_by(12_000) {
            let threads = if case.starts_with("quantize") { "--threads 1" } else { "" };
            let output = under(limit, &format!("{case} {threads}"));
            let message = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => {
                    good += 1;
                    if case.starts_with("quantize") {
                        fs::remove_file(folder.join("out")).unwrap();
                    }
                }
                Some(2) => {
                    let named = message.contains("tensor \"w") && message.contains(" needs ");
                    let starts = message.contains("thread") || message.contains("Ctrl-C");
                    assert!(
                        limit < least + 12_000 && starts
                            || named && message.contains("bytes of memory"),
                        "{case}, {limit}: {message}"
                    );
                    reported += 1;
                }
                code => panic!("{case}, {limit}: {code:?}, {message}"),
            }
            assert_eq!(fs::read_dir(folder).unwrap().count(), before, "{case}, {limit}");
        }
        assert!(good > 0, "{case}: {reported} too little");
        // What was `in` has 16 MiB of numbers, and with them more than the smallest limit.
        assert!(
            reported > 0 || !case.starts_with("quantize in out --to mxfp4"),
            "{case}: always enough"
        );
    }
}

/// Names that act on terminals are shown and not obeyed; those of wide characters leave the table one.
#[test]
fn names_do_not_act_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let names = ["\u{1b}]0;t\u{7}\u{1b}[31m", "字字", "a\nb"];
    let outlines = names.map(|name| Outline::new(name, Dtype::F16, [2, 32]));
    let metadata = [("k\u{1b}[1m\n".to_owned(), "v\r\u{9b}2J".to_owned())].into();
    let mut writer = Writer::create(folder.join("in"), &outlines, metadata).unwrap();
    for name in names {
        writer.write(name, &[0x7B; 128]).unwrap();
    }
    writer.finish().unwrap();
    let mut texts = Vec::new();
    for arguments in [
        &["quantize", "in", "out", "--to", "mxfp4"][..],
        &["quantize", "in", "half", "--to", "bf16", "--dequantize=f16"],
        &["quantize", "out", "back", "--dequantize"],
        &["quantize", "in", "no", "--to", "mxfp4", "--include", "\u{1b}]"],
        &["quantize", "in", "no", "--to", "mxfp4", "--axis", "2"],
        &["quantize", "in", "no", "--to", "e5m6"],
        &["inspect", "in"],
        &["inspect", "out"],
    ] {
        let output = exmy(arguments).current_dir(folder).output().unwrap();
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            let acts = |c: char| c.is_control() && c != '\n';
            assert!(!text.contains(acts), "{arguments:?}: {text:?}");
            texts.push(text);
        }
    }
    assert!(texts[0].lines().any(|line| line.starts_with("\\u{1b}]0;t\\u{7}\\u{1b}[31m  [2,32]")));
    assert!(texts[0].lines().any(|line| line.starts_with("a\\nb ")));
    let inspected = &texts[texts.len() - 4];
    assert!(inspected.contains("k\\u{1b}[1m\\n: v\\r\\u{9b}2J"), "{inspected}");
}

/// What PyTorch cannot load is warned of, once.
#[test]
fn what_pytorch_cannot_load_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let outlines = [Outline::new("w", Dtype::F32, [4, 33]), Outline::new("v", Dtype::F32, [4, 32])];
    let mut writer = Writer::create(folder.join("in"), &outlines, Default::default()).unwrap();
    writer.write("w", &[0; 528]).unwrap();
    writer.write("v", &[0; 512]).unwrap();
    writer.finish().unwrap();
    for (format, layout, part) in [
        ("mxfp4", "safetensors", "cannot load \"w\", F4 of shape [4, 33]:"),
        ("mxfp6-e2m3", "safetensors", "cannot load \"v\", F6_E2M3 of shape [4, 32] and 1 more"),
        ("mxfp4", "byte", ""),
        ("mxfp6-e2m3", "torch", ""),
        ("mxfp8-e4m3", "safetensors", ""),
    ] {
        let output = run(folder, &["in", "out", "--to", format, "--layout", layout]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert_eq!(message.contains("warning"), !part.is_empty(), "{format} {layout}: {message}");
        assert!(message.contains(part), "{message}");
    }
}

/// Names of files and tensors are shown and act on no terminal.
#[test]
fn control_characters_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let tensor = "w\u{1b}[2J\u{7}\r";
    let mut writer = Writer::create(
        folder.path().join("in"),
        &[Outline::new(tensor, Dtype::F32, [1, 32])],
        Default::default(),
    )
    .unwrap();
    writer.write(tensor, &[0; 128]).unwrap();
    writer.finish().unwrap();
    let shown = |output: &Output, code: i32, escaped: &str| {
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(escaped), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    };
    let escaped = "w\\u{1b}[2J\\u{7}\\r";
    shown(&run(folder.path(), &["in", "out\u{1b}[2J", "--to", "mxfp4"]), 0, escaped);
    shown(&run(folder.path(), &["in", "o\u{9b}2J", "--to", "mxfp4"]), 0, "o\\u{9b}2J");
    shown(&run(folder.path(), &["in", "out", "--to", "mxfp4", "--axis", "5"]), 2, "\\u{1b}[2J");
    shown(&run(folder.path(), &["no\u{1b}[2J", "out", "--to", "mxfp4"]), 2, "no\\u{1b}[2J");
    let inspected = |name: &str| exmy(&["inspect", name]).current_dir(&folder).output().unwrap();
    shown(&inspected("in"), 0, escaped);
    shown(&inspected("no\u{1b}[2J"), 2, "no\\u{1b}[2J");
}

/// On a narrow terminal help is wrapped between words, and no option is cut.
#[test]
fn help_fits_narrow_terminals() {
    for command in ["quantize", "inspect"] {
        let help = |columns: &str| {
            let mut help = exmy(&[command, "--help"]);
            let output = succeed(help.env("COLUMNS", columns));
            String::from_utf8(output.stdout).unwrap()
        };
        let (wide, narrow) = (help("100"), help("40"));
        // The line of usage is one line by clap's design.
        for line in narrow.lines().filter(|line| !line.starts_with("Usage:")) {
            let one_word = line.split_whitespace().count() == 1;
            assert!(line.chars().count() <= 40 || one_word, "{line:?}");
        }
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        assert!(words(&wide) == words(&narrow), "{narrow}");
        assert!(narrow.lines().count() > wide.lines().count());
    }
}

/// A file of one f32 matrix of zeros that takes no space on the disk.
fn sparse(path: &Path, count: usize) {
    let bytes = count * 4;
    let header = format!(
        r#"{{"w":{{"dtype":"F32","shape":[{},1024],"data_offsets":[0,{bytes}]}}}}"#,
        count / 1024
    );
    let mut start = (header.len() as u64).to_le_bytes().to_vec();
    start.extend(header.bytes());
    fs::write(path, &start).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len((start.len() + bytes) as u64).unwrap();
}

/// Files in `folder` whose names say that they are parts.
fn parts(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(".partial-")).count()
}

#[test]
fn rotated_values_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    let text = table(folder, &["in", "out", "--to", "rht16>nvfp4"]);
    assert!(text.contains("rht16>nvfp4: the figures are those of rotated numbers"), "{text}");
    let text = printed(folder, "inspect", &["out"]);
    assert_eq!(row(&text, "layers.0.weight")[1], "rht16>nvfp4");
    let text = table(folder, &["out", "back", "--dequantize"]);
    let expected = ["rht16>nvfp4", "values", "written,", "still", "rotated"];
    assert_eq!(row(&text, "layers.0.weight")[2..], expected);
}
