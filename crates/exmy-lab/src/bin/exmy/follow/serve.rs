//! A few pages over HTTP, to browsers on this machine.
//!
//! What is answered is GET and HEAD of paths that the caller knows; one request a connection, each in a
//! thread of its own, of which there are few. A request is read with httparse, has 8 KiB at most and five
//! seconds to come. Its `Host` must name this machine by `localhost` or a loopback number: a page of another
//! site that makes its own name lead here (DNS rebinding) is refused. Answers allow nothing from elsewhere.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// Connections at a time; further ones are told to come again.
const MOST: usize = 16;

/// Bytes of a request.
const LONGEST: usize = 8 << 10;

/// Time for a request to come, and for an answer to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is answered.
pub(super) struct Answer {
    status: &'static str,
    kind: &'static str,
    policy: &'static str,
    body: Arc<str>,
}

impl Answer {
    /// A page or a part of one, of a media type, which may use what its policy says.
    pub(super) fn found(
        kind: &'static str,
        policy: &'static str,
        body: impl Into<Arc<str>>,
    ) -> Self {
        Self { status: "200 OK", kind, policy, body: body.into() }
    }

    fn refused(status: &'static str, why: &str) -> Self {
        let (kind, policy) = ("text/plain; charset=utf-8", "default-src 'none'");
        Self { status, kind, policy, body: format!("{status}: {why}\n").into() }
    }
}

/// Whether a `Host` names this machine so that no other site can have made it do so: by `localhost`, or by a
/// number. A number that is no loopback one will do where other machines may ask.
fn is_own(host: &str, exposed: bool) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let by_number = |ip: IpAddr| exposed || ip.to_canonical().is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(by_number)
}

/// What is asked for: its method and path, or what is wrong with it.
fn asked(stream: &mut TcpStream, exposed: bool) -> io::Result<Result<(String, String), Answer>> {
    let (begun, mut bytes) = (Instant::now(), Vec::new());
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Err(error) => {
                return Ok(Err(Answer::refused("400 Bad Request", &error.to_string())));
            }
            Ok(httparse::Status::Complete(_)) => {
                let mut hosts =
                    request.headers.iter().filter(|of| of.name.eq_ignore_ascii_case("host"));
                let host = hosts.next().and_then(|of| std::str::from_utf8(of.value).ok());
                if hosts.next().is_some() || !host.is_some_and(|host| is_own(host.trim(), exposed))
                {
                    let why = "this machine is asked for by localhost or its number alone";
                    return Ok(Err(Answer::refused("403 Forbidden", why)));
                }
                let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
                return Ok(Ok((request.method.unwrap_or_default().into(), path.into())));
            }
            Ok(httparse::Status::Partial) => {}
        }
        if bytes.len() >= LONGEST {
            let why = "a request has 8 KiB at most";
            return Ok(Err(Answer::refused("431 Request Header Fields Too Large", why)));
        }
        let left = PATIENCE.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        let Some(left) = left else { return Err(io::ErrorKind::TimedOut.into()) };
        stream.set_read_timeout(Some(left))?;
        let mut more = [0; 1024];
        match stream.read(&mut more)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&more[..count]),
        }
    }
}

/// Writes an answer; of HEAD without its body.
fn write(stream: &mut TcpStream, answer: &Answer, with_body: bool) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: {}\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len(),
        answer.policy
    );
    stream.write_all(head.as_bytes())?;
    if with_body {
        stream.write_all(answer.body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)
}

/// Answers one connection.
fn answer(
    stream: &mut TcpStream,
    exposed: bool,
    find: &dyn Fn(&str) -> Option<Answer>,
) -> io::Result<()> {
    let (answer, with_body) = match asked(stream, exposed)? {
        Err(refused) => (refused, true),
        Ok((method, path)) if method == "GET" || method == "HEAD" => {
            let missing = || Answer::refused("404 Not Found", "there is no such page");
            (find(&path).unwrap_or_else(missing), method == "GET")
        }
        Ok(_) => (Answer::refused("405 Method Not Allowed", "GET and HEAD are answered"), true),
    };
    write(stream, &answer, with_body)?;
    // What was sent and not read would take the answer back.
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut rest = [0; 1024];
    for _ in 0..64 {
        if !stream.read(&mut rest).is_ok_and(|count| count > 0) {
            break;
        }
    }
    Ok(())
}

/// Answers what comes, for ever. `find` is called with a path, in any thread.
pub(super) fn serve(
    listener: &TcpListener,
    exposed: bool,
    find: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static,
) {
    let (find, busy) = (Arc::new(find), Arc::new(AtomicUsize::new(0)));
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            // Too few files may be open, say.
            sleep(Duration::from_millis(50));
            continue;
        };
        if busy.fetch_add(1, Ordering::SeqCst) >= MOST {
            busy.fetch_sub(1, Ordering::SeqCst);
            let refused = Answer::refused("503 Service Unavailable", "come again in a moment");
            // It is refused either way.
            let _ = write(&mut stream, &refused, true);
            continue;
        }
        let (find, count) = (Arc::clone(&find), Arc::clone(&busy));
        let work = move || {
            // Who goes away before the answer does not hear of it.
            let _ = answer(&mut stream, exposed, &*find);
            count.fetch_sub(1, Ordering::SeqCst);
        };
        if Builder::new().spawn(work).is_err() {
            busy.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn other_names_are_not_this_machine() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "127.9.9.9", "[::1]:1", "[::1]"]
        {
            assert!(is_own(host, false), "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", ":80"]
        {
            assert!(!is_own(host, false) && !is_own(host, true), "{host}");
        }
        for host in ["192.168.0.7:8765", "[2001:db8::1]:80"] {
            assert!(!is_own(host, false) && is_own(host, true), "{host}");
        }
    }
}
