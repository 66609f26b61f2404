//! `exmy report --follow`: the page of runs that are under way, in a browser.
//!
//! The page is that of `exmy report`, made anew when files of the runs have changed and somebody looks. It is
//! served in a frame, next to a script that asks for its stamp and takes the new page where the old one
//! stood. Nothing is written. A run that cannot be read is said on the page, as in the report.

mod serve;

use crate::phase::Phase;
use crate::provenance::provenance;
use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::gather::{first_line, not_begun, run_folders, states, undamaged};
use exmy_lab::overview;
use exmy_lab::page::Page;
use exmy_lab::remaining::Looks;
use exmy_train::train::run::{Folder, is_at_work};
use serve::{Answer, serve};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Follow {
    /// Show the page in a browser and keep it up to date while runs go on, until Ctrl-C; write nothing
    #[arg(long, conflicts_with = "out")]
    pub(super) follow: bool,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 8765, requires = "follow")]
    port: u16,
    /// Number of the address to listen on; others than this machine's own need --expose
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    #[arg(requires = "follow")]
    address: IpAddr,
    /// Let other machines see the page: whoever reaches the address
    #[arg(long, requires = "follow")]
    expose: bool,
}

/// The least time between two looks at the files.
const REST: Duration = Duration::from_secs(1);

/// How long a request waits for a page that is being made.
const PATIENCE: Duration = Duration::from_secs(30);

/// The shell may use its own script and style, and show the page.
const SHELL: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                     img-src data:; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
                     form-action 'none'";

/// The page has everything in itself.
const PAGE: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                    img-src data: blob:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

/// The page as it is known.
struct Current {
    stamp: Arc<str>,
    html: Arc<str>,
    /// How many times somebody asked, and how many of these the page has seen.
    asked: u64,
    seen: u64,
}

/// What the one who makes the page and those who ask for it share.
struct Shared {
    current: Mutex<Current>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a look at the files; waits for it if that is wanted.
    fn ask(&self, waits: bool) -> MutexGuard<'_, Current> {
        let mut current = self.lock();
        current.asked += 1;
        let wanted = current.asked;
        self.changed.notify_all();
        if !waits {
            return current;
        }
        let is_old = |current: &mut Current| current.seen < wanted;
        let waited = self.changed.wait_timeout_while(current, PATIENCE, is_old);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// What is answered on a path.
    fn find(&self, path: &str) -> Option<Answer> {
        Some(match path {
            "/" => {
                Answer::found("text/html; charset=utf-8", SHELL, include_str!("follow/shell.html"))
            }
            "/live.js" => Answer::found("text/javascript", SHELL, include_str!("follow/live.js")),
            "/live.css" => Answer::found("text/css", SHELL, include_str!("follow/live.css")),
            "/page" => {
                Answer::found("text/html; charset=utf-8", PAGE, Arc::clone(&self.ask(true).html))
            }
            "/state" => Answer::found("text/plain", SHELL, Arc::clone(&self.ask(false).stamp)),
            _ => return None,
        })
    }
}

/// What changes when the page of some runs may: the files, and who is at work.
fn stamp(runs: &[PathBuf]) -> Arc<str> {
    let mut hasher = DefaultHasher::new();
    match run_folders(runs) {
        Ok((folders, _)) => {
            for path in folders {
                let folder = Folder::new(path);
                is_at_work(&folder).hash(&mut hasher);
                for file in [
                    folder.config_file(),
                    folder.metrics_file(),
                    folder.probes_file(),
                    folder.summary_file(),
                ] {
                    let found = file.metadata().ok();
                    found.map(|found| (found.len(), found.modified().ok())).hash(&mut hasher);
                    file.hash(&mut hasher);
                }
            }
        }
        Err(error) => error.to_string().hash(&mut hasher),
    }
    format!("{:016x}", hasher.finish()).into()
}

/// The page of the runs as they are.
fn page(paths: &[PathBuf], title: &str, looks: &mut Looks) -> Result<String> {
    let (runs, broken) = undamaged(paths)?;
    let left_out: Vec<String> = broken.iter().map(first_line).collect();
    let left = looks.look(&runs, &states(&runs), &not_begun(paths)?);
    let provenance = provenance(None);
    Ok(overview::page(title, &runs, &left_out, &left, &provenance)?.to_html())
}

/// The page, or one that says why there is none.
fn page_or_reason(runs: &[PathBuf], title: &str, looks: &mut Looks) -> String {
    page(runs, title, looks).unwrap_or_else(|error| {
        let mut page = Page::new(title);
        page.text("There is nothing to show now; this page looks again.");
        error.to_string().lines().for_each(|line| page.text(line));
        page.to_html()
    })
}

/// A listener on the address that is asked for.
fn listen(arguments: &Follow) -> Result<TcpListener> {
    let address = arguments.address;
    if !address.to_canonical().is_loopback() && !arguments.expose {
        let what =
            format!("{address} can be reached from other machines, and the page has no password");
        return Err(Error::new(what).hint(
            "without --address it is 127.0.0.1, which a tunnel reaches (ssh -L 8765:localhost:8765 HOST); \
             --expose listens all the same",
        ));
    }
    let socket = SocketAddr::new(address, arguments.port);
    TcpListener::bind(socket).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "another program has this port: --port 0 takes a free one",
            ErrorKind::PermissionDenied => "ports below 1024 are the system's: name another --port",
            ErrorKind::AddrNotAvailable => "this machine has no such address",
            _ => "name another --port or --address",
        };
        Error::new(format!("cannot listen on {socket}")).because(error).hint(hint)
    })
}

/// Serves the page until a signal ends the program, for which the caller listens.
pub(super) fn follow(arguments: &Follow, runs: &[PathBuf], title: &str) -> Result<u8> {
    for path in runs {
        // Runs may come; their folder is to be there.
        if !exmy_lab::runner::find_run(path).is_dir() {
            let what = if path.exists() { "is a file" } else { "does not exist" };
            return Err(Error::new(format!("{} {what}", printable_path(path)))
                .hint("name folders of runs, as `exmy train` writes them below runs/"));
        }
    }
    let listener = listen(arguments)?;
    let socket = listener.local_addr().map_err(|error| Error::new("no port").because(error))?;
    let reading = Phase::begin("reading the runs", false);
    let mut looks = Looks::default();
    // What changes while the page is made is seen at the next look.
    let stamp_before = stamp(runs);
    let html = page_or_reason(runs, title, &mut looks).into();
    let first = Current { stamp: stamp_before, html, asked: 0, seen: 0 };
    drop(reading);
    let shared = Arc::new(Shared { current: Mutex::new(first), changed: Condvar::new() });
    let (known, expose) = (Arc::clone(&shared), arguments.expose);
    std::thread::Builder::new()
        .spawn(move || serve(&listener, expose, move |path| known.find(path)))
        .map_err(|error| Error::new("cannot start threads").because(error))?;
    show::result(&format!("http://{socket}/\n"))?;
    say!("open it in a browser; Ctrl-C ends, and the runs go on");
    loop {
        let mut current = shared.lock();
        while current.asked == current.seen {
            current = shared.changed.wait(current).unwrap_or_else(PoisonError::into_inner);
        }
        let (asked, before) = (current.asked, Arc::clone(&current.stamp));
        drop(current);
        let begun = Instant::now();
        let now = stamp(runs);
        let html = (now != before).then(|| page_or_reason(runs, title, &mut looks));
        let mut current = shared.lock();
        if let Some(html) = html {
            (current.stamp, current.html) = (now, html.into());
        }
        current.seen = asked;
        shared.changed.notify_all();
        drop(current);
        // The runs need the machine more.
        std::thread::sleep(REST.max(2 * begun.elapsed()));
    }
}
