//! `exmy report --follow`: who is answered, what is shown, and how it ends.

use crate::{TINY, contents, exmy, heeding_signals, run_of, succeed, text_file};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server and its address, ended with the test.
struct Server(Child, String);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(root: &Path, more: &[&str]) -> Self {
        let mut command = heeding_signals(&["report", "runs", "--follow", "--port", "0"]);
        command.args(more).current_dir(root).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        Self(child, address)
    }

    /// What is answered to some bytes.
    fn answers(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.1).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.answers(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.1).as_bytes())
    }
}

fn trained(root: &Path) {
    let data = text_file(root);
    let train = ["train", "--data", &data, "--recipe", "f32,mxfp4", "--quiet", "--out", "runs"];
    succeed(exmy(&train).args(TINY).args(["--set", "train.steps=8"]).current_dir(root));
}

#[test]
fn pages_are_served_to_this_machine_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let before = contents(root);
    let server = Server::start(root, &[]);
    assert!(server.1.starts_with("127.0.0.1:"), "{}", server.1);
    // One that sends nothing keeps nobody waiting.
    let _idle = TcpStream::connect(&server.1).unwrap();
    let page = server.get("/page");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("mxfp4"), "{page}");
    assert!(page.contains("frame-ancestors 'self'") && page.contains("nosniff"), "{page}");
    for (path, part) in [("/", "src=\"/live.js\""), ("/live.js", "fetch("), ("/live.css", "iframe")]
    {
        let answer = server.get(path);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(part), "{answer}");
        assert!(!answer.contains("://"), "something from elsewhere: {answer}");
    }
    let head = server.answers(b"HEAD /page HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(9000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nHost: 192.168.0.7\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\n\r\n", "403"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("GET /../Cargo.toml HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("\u{1b}[31m\r\n\r\n", "400"),
        (&long, "431"),
    ] {
        let answer = server.answers(request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
    // A port that is taken, and addresses that others reach.
    let port = server.1.rsplit_once(':').unwrap().1;
    for (more, parts) in [
        (&["--port", port][..], ["cannot listen on 127.0.0.1:", "--port 0 takes a free one"]),
        (&["--address", "0.0.0.0"], ["can be reached from other machines", "--expose"]),
        (&["--address", "::", "--port", "0"], ["can be reached from other machines", "--expose"]),
        (&["--out", "a.html"], ["--follow", "--out"]),
    ] {
        let output = exmy(&["report", "runs", "--follow"]).args(more).current_dir(root).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{more:?}: {said}");
    }
    let output = exmy(&["report", "runs", "--port", "1"]).current_dir(root).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a port of nothing");
    drop(server);
    assert!(contents(root) == before, "something was written");
}

#[test]
fn the_page_follows_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let server = Server::start(root, &["--title", "a <b>"]);
    let state = || server.get("/state").rsplit("\r\n").next().unwrap().to_owned();
    let first = state();
    assert!(server.get("/page").contains("a &lt;b&gt;") && state() == first);
    // Once a run is damaged the page says so, and shows the others.
    let run = run_of(&root.join("runs"), "mxfp4-s5");
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    fs::write(run.join("metrics.jsonl"), &metrics[..metrics.len() / 2]).unwrap();
    let page = server.get("/page");
    assert!(page.contains("metrics.jsonl ends at step") && page.contains("f32"), "{page}");
    assert!(state() != first, "the browser does not hear of it");
    fs::write(run.join("config.toml"), "no <config>").unwrap();
    assert!(server.get("/page").contains("config.toml: line 1 is not TOML"));
    fs::remove_dir_all(root.join("runs")).unwrap();
    let page = server.get("/page");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("nothing to show now") && page.contains("does not exist"), "{page}");
    // They come again.
    trained(root);
    assert!(server.get("/page").contains("mxfp4"));
}

#[test]
#[cfg(unix)]
fn a_signal_ends_it_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    // Under nohup the program leaves SIGHUP alone, as it should.
    let kept = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kept = kept.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    let ignores_hup = u64::from_str_radix(kept.trim(), 16).is_ok_and(|mask| mask & 1 == 1);
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        if signal == "-HUP" && ignores_hup {
            continue;
        }
        let mut server = Server::start(root, &[]);
        assert!(server.get("/").starts_with("HTTP/1.1 200 OK"));
        let begun = Instant::now();
        succeed(Command::new("kill").args([signal, &server.0.id().to_string()]));
        let ended = loop {
            match server.0.try_wait().unwrap() {
                Some(ended) => break ended,
                None => assert!(begun.elapsed() < Duration::from_secs(20), "{signal}: no end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(ended.code(), Some(code));
        assert!(begun.elapsed() < Duration::from_secs(2), "{signal}: {:?}", begun.elapsed());
    }
}
