//! Where ranks listen: at addresses of both families, to ranks and not to strangers.

use exmy_train::train::ranks::tcp::address::{CALLERS, Door, Visit, places};
use std::io::Write;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// The kind of a frame of words, which stands before the eight bytes of its length.
const WORDS: u8 = 1;

/// What a rank says of itself, in JSON.
fn words(text: &str) -> Vec<u8> {
    let text = format!("\"{text}\"");
    [&[WORDS][..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn heard(door: &mut Door) -> Visit<String> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(visit) = door.visits().unwrap().pop() {
            return visit;
        }
        assert!(Instant::now() < until, "nobody came");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A name of a machine stands for all its addresses; that of every machine for itself is one alone.
#[test]
fn a_door_is_open_to_both_families() {
    for (host, found) in [
        ("node7", vec!["127.0.0.1", "127.0.1.1", "::1"]),
        ("10.0.0.7", vec!["127.0.0.1", "::1"]),
        ("localhost", vec!["127.0.0.1", "::1"]),
        ("127.0.0.1", vec!["127.0.0.1"]),
        ("[::1]", vec!["::1"]),
    ] {
        if TcpListener::bind("[::1]:0").is_err() && host == "[::1]" {
            continue;
        }
        let mut door = Door::open(&format!("{host}:0"), true).unwrap();
        for ip in found {
            let ip: IpAddr = ip.parse().unwrap();
            if ip.is_ipv6() && TcpListener::bind((ip, 0)).is_err() {
                continue;
            }
            let mut stream = TcpStream::connect((ip, door.port())).unwrap();
            stream.write_all(&words("here")).unwrap();
            let visit = heard(&mut door);
            assert_eq!(visit.hello, "here");
            assert!(visit.from.is_loopback() && visit.from.is_ipv4() == ip.is_ipv4(), "{host}");
        }
    }
    assert_eq!(places("127.0.0.1"), [IpAddr::from([127, 0, 0, 1])]);
    assert!(places("node7").iter().all(IpAddr::is_unspecified));
}

/// Who says nothing keeps nobody waiting, and who promises much is let go at once.
#[test]
fn strangers_are_let_go() {
    let mut door = Door::open("127.0.0.1:0", true).unwrap();
    let port = door.port();
    let call = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (_silent, mut large, mut web) = (call(), call(), call());
    let mut head = [WORDS; 9];
    head[1..].copy_from_slice(&(1_u64 << 36).to_le_bytes());
    large.write_all(&head).unwrap();
    web.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let rank = call();
    let here = words("here");
    let (first, rest) = here.split_at(12);
    (&rank).write_all(first).unwrap();
    for _ in 0..50 {
        assert!(door.visits::<String>().unwrap().is_empty());
        thread::sleep(Duration::from_millis(1));
    }
    (&rank).write_all(rest).unwrap();
    assert_eq!(heard(&mut door).hello, "here");
    assert_eq!(door.callers(), 1, "the silent one");
    let _crowd: Vec<TcpStream> = (0..2 * CALLERS).map(|_| call()).collect();
    thread::sleep(Duration::from_millis(20));
    assert!(door.visits::<String>().unwrap().is_empty() && door.callers() <= CALLERS);
}

#[test]
fn a_taken_port_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = Door::open(&taken.local_addr().unwrap().to_string(), true).err().unwrap();
    assert!(error.to_string().contains("MASTER_PORT names another"), "{error}");
}
