//! What is asked of NCCL, by functions that take its place: communicators that are given up at any moment,
//! the order of what is sent and received, and rings that must not wait in a circle ([`circles`]).

#![allow(unsafe_code)]

mod circles;

use std::cell::RefCell;
use std::ffi::{OsStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::library::{DONE, UniqueId, asked};
use super::*;
use crate::backend::recorded::Record;
use crate::train::Cuda;
use circles::End;
use exmy_train::nn::device::{MatrixMut, Storage as _};
use exmy_train::train::ranks::{Link as _, channels};

/// A communicator.
struct Fake {
    state: AtomicI32,
    /// How often the state was asked for, and the communicator given up.
    asked: AtomicUsize,
    aborted: AtomicUsize,
    /// Whether giving it up has begun.
    ends: AtomicBool,
    /// How many sends and receives it was given.
    given: AtomicUsize,
    record: Record,
    /// Its end of an edge, if there is another.
    end: Option<End>,
}

thread_local! {
    /// What this thread joins.
    static NEXT: RefCell<Option<&'static Fake>> = const { RefCell::new(None) };
}

fn fake(state: Status, record: &Record) -> &'static Fake {
    ending(state, record, None)
}

fn ending(state: Status, record: &Record, end: Option<End>) -> &'static Fake {
    let [asked, aborted, given] = [(); 3].map(|()| AtomicUsize::new(0));
    let (record, ends) = (record.clone(), AtomicBool::new(false));
    Box::leak(Box::new(Fake { state: state.into(), asked, aborted, ends, given, record, end }))
}

fn of(communicator: Communicator) -> &'static Fake {
    // SAFETY: all communicators are made by `join`, of such values, which live as long as the process.
    unsafe { &*communicator.cast::<Fake>() }
}

unsafe extern "C" fn version(version: *mut c_int) -> Status {
    // SAFETY: as NCCL's.
    unsafe { *version = OLDEST };
    DONE
}

unsafe extern "C" fn unique(_: *mut UniqueId) -> Status {
    DONE
}

unsafe extern "C" fn join(
    communicator: *mut Communicator,
    _: c_int,
    id: UniqueId,
    is_receiver: c_int,
    config: *mut NcclConfig,
) -> Status {
    let next = circles::joins(id.0[0], is_receiver == 1)
        .unwrap_or_else(|| NEXT.with_borrow(|next| next.unwrap()));
    // SAFETY: as NCCL's.
    unsafe {
        assert_eq!((*config).blocking, 0, "nobody could end what blocks");
        *communicator = ptr::from_ref(next).cast_mut().cast();
    }
    next.state.load(Ordering::SeqCst)
}

unsafe extern "C" fn state(communicator: Communicator, state: *mut Status) -> Status {
    let fake = of(communicator);
    assert_eq!(fake.aborted.load(Ordering::SeqCst), 0, "it is no more");
    fake.asked.fetch_add(1, Ordering::SeqCst);
    let connected = fake.end.as_ref().is_none_or(|end| end.connected(&fake.record));
    let now = if connected { fake.state.load(Ordering::SeqCst) } else { IN_PROGRESS };
    // SAFETY: as NCCL's.
    unsafe { *state = now };
    DONE
}

unsafe extern "C" fn send(
    from: *const c_void,
    len: usize,
    _: c_int,
    _: c_int,
    communicator: Communicator,
    stream: *mut c_void,
) -> Status {
    give(of(communicator), (from as u64, 4 * len), stream, false)
}

/// Begins a transfer, or leaves it for later if the other member is not there yet.
fn give(fake: &Fake, memory: (u64, usize), stream: *mut c_void, receives: bool) -> Status {
    fake.given.fetch_add(1, Ordering::SeqCst);
    let Some(end) = &fake.end else {
        let (doing, (address, bytes)) = (if receives { "a receive" } else { "a send" }, memory);
        fake.record.touch(doing, stream as usize, &[(address, bytes, receives)]);
        return fake.state.load(Ordering::SeqCst);
    };
    end.ask(stream as usize, memory);
    if end.connected(&fake.record) { DONE } else { IN_PROGRESS }
}

unsafe extern "C" fn receive(
    to: *mut c_void,
    len: usize,
    _: c_int,
    _: c_int,
    communicator: Communicator,
    stream: *mut c_void,
) -> Status {
    give(of(communicator), (to as u64, 4 * len), stream, true)
}

unsafe extern "C" fn abort(communicator: Communicator) -> Status {
    let fake = of(communicator);
    fake.ends.store(true, Ordering::SeqCst);
    // As NCCL's it takes its time.
    thread::sleep(Duration::from_millis(50));
    fake.aborted.fetch_add(1, Ordering::SeqCst);
    if let Some(end) = &fake.end {
        end.give_up(&fake.record);
    }
    DONE
}

unsafe extern "C" fn text(_: Status) -> *const c_char {
    c"so it is in a test".as_ptr()
}

static FAKES: Nccl =
    Nccl { version, unique, join, state, send, receive, abort, text, _library: None };

fn name() -> String {
    "00".repeat(128)
}

fn joined(fake: &'static Fake, held: &Edges, patience: Duration) -> Result<Arc<Edge>> {
    NEXT.set(Some(fake));
    Edge::join(&FAKES, (&name(), true), held, patience)
}

/// What `work` says, in a thread of its own, when `held` is given up once the communicator is asked for its
/// state.
fn given_up(
    fake: &'static Fake,
    held: &Edges,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) -> String {
    let (to, from) = channel();
    thread::spawn(move || to.send(work().unwrap_err().to_string()));
    while fake.asked.load(Ordering::SeqCst) < 3 {
        thread::sleep(LOOK);
    }
    let held = held.clone();
    thread::spawn(move || held.abort());
    from.recv_timeout(Duration::from_secs(60)).expect("it was not given up")
}

#[test]
fn what_waits_can_be_given_up() {
    let long = Duration::from_secs(1000);
    let record = Record::default();
    // While it joins.
    let (held, one) = (Edges::default(), fake(IN_PROGRESS, &record));
    let joins = held.clone();
    let error = given_up(one, &held, move || joined(one, &joins, long).map(drop));
    assert!(error.contains("another rank has ended"), "{error}");
    assert_eq!(one.aborted.load(Ordering::SeqCst), 1);
    // Before it joins.
    let late = fake(DONE, &record);
    assert!(joined(late, &held, long).is_err());
    assert_eq!(late.aborted.load(Ordering::SeqCst), 1);
    // While it works.
    let (held, one) = (Edges::default(), fake(DONE, &record));
    let edge = joined(one, &held, long).unwrap();
    one.state.store(IN_PROGRESS, Ordering::SeqCst);
    let asks = move || edge.settle("send", edge.with(|_, _| IN_PROGRESS)?, None);
    let error = given_up(one, &held, asks);
    assert!(error.contains("another rank has ended"), "{error}");
    // When nobody comes.
    let one = fake(IN_PROGRESS, &record);
    let error = joined(one, &Edges::default(), Duration::ZERO).err().unwrap().to_string();
    assert!(error.contains("NCCL does not come to join a ring"), "{error}");
    assert_eq!(one.aborted.load(Ordering::SeqCst), 1);
    // What goes wrong is said.
    let error = joined(fake(2, &record), &Edges::default(), long).err().unwrap().to_string();
    assert!(error.contains("NCCL cannot join a ring: so it is in a test"), "{error}");
}

/// Numbers are received after what their memory was used for, and sent when they are complete and the next
/// rank receives them.
#[test]
fn what_comes_and_goes_is_in_order() {
    let record = Record::default();
    let device = Cuda::new(record.device());
    let nccl = fake(DONE, &record);
    NEXT.set(Some(nccl));
    let names = [name(), name()];
    let held = Edges::default();
    let remote = Remote::join_by(&FAKES, device.device(), (1, &names), &held).unwrap();
    let ([before, mut back], [next, mut ahead]) = (channels(0), channels(0));
    let mut link = remote.link([Box::new(before), Box::new(next)]).unwrap();
    let [mut sums, mut other] = [(); 2].map(|()| device.buffer(vec![0.0; 8]));
    device.fill(MatrixMut::new(sums.all_mut(), 1, 8), 0.0);
    link.wait_for(&device).unwrap();
    device.fill(MatrixMut::new(other.all_mut(), 1, 8), 0.0);
    link.receive(&device, sums.all_mut()).unwrap();
    // The rank before hears of it, in the words that this one waits for.
    let ready = back.hear().unwrap();
    device.fill(MatrixMut::new(sums.all_mut(), 1, 8), 1.0);
    let given = nccl.given.load(Ordering::SeqCst);
    link.send(&device, sums.all()).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(nccl.given.load(Ordering::SeqCst), given, "nobody receives it yet");
    ahead.tell(&ready).unwrap();
    link.turn();
    // Waits until what was sent before is given to NCCL.
    link.receive(&device, sums.all_mut()).unwrap();
    assert_eq!(nccl.given.load(Ordering::SeqCst), given + 2);
    // What is asked meanwhile is not waited for.
    let races = record.races().len();
    link.receive(&device, other.all_mut()).unwrap();
    assert_eq!(record.races().len(), races + 1, "{:?}", record.races());
    // What is given up did not come.
    link.check().unwrap();
    held.abort();
    assert!(link.check().is_err());
}

/// A link that ends takes what it has not sent with it, and what the next rank says wrong is said.
#[test]
fn nothing_is_sent_after_the_end() {
    let record = Record::default();
    let device = Cuda::new(record.device());
    let nccl = fake(DONE, &record);
    NEXT.set(Some(nccl));
    let names = [name(), name()];
    let held = Edges::default();
    let remote = Remote::join_by(&FAKES, device.device(), (0, &names), &held).unwrap();
    let sums = device.buffer(vec![0.0; 8]);
    let given = nccl.given.load(Ordering::SeqCst);
    let ([before, _back], [next, mut ahead]) = (channels(1), channels(1));
    let mut link = remote.link([Box::new(before), Box::new(next)]).unwrap();
    link.send(&device, sums.all()).unwrap();
    ahead.tell("ready for 7 numbers").unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let error = loop {
        match link.check() {
            Err(error) => break error.to_string(),
            Ok(()) => assert!(Instant::now() < until, "nobody minds"),
        }
        thread::sleep(LOOK);
    };
    assert!(error.contains("the next rank is ready for 7 numbers, and 8 are sent"), "{error}");
    assert!(link.send(&device, sums.all()).is_err());
    assert_eq!(nccl.aborted.load(Ordering::SeqCst), 0);
    drop(link);
    assert_eq!(nccl.aborted.load(Ordering::SeqCst), 2);
    assert_eq!(nccl.given.load(Ordering::SeqCst), given);
}

/// The process may end as soon as its edges are given up, by whichever thread.
#[test]
fn who_gives_up_waits_for_who_already_does() {
    let record = Record::default();
    let (held, one) = (Edges::default(), fake(DONE, &record));
    let _edge = joined(one, &held, Duration::from_secs(60)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| held.abort());
        while !one.ends.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        held.abort();
        assert_eq!(one.aborted.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn numbers_go_by_nccl_unless_tcp_is_asked_for() {
    let asked = |value: Option<&str>| asked(value.map(OsStr::new));
    assert_eq!(asked(Some("tcp")), None);
    for usual in [None, Some(""), Some("nccl")] {
        assert_eq!(asked(usual).unwrap()[0], "libnccl.so.2");
    }
    assert_eq!(asked(Some("/lib/nccl.so")).unwrap(), ["/lib/nccl.so"]);
}
