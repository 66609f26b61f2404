//! What is asked of NCCL, by functions that take its place: communicators that are given up at any moment,
//! and the order of what is sent and received.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_char;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::library::{DONE, UniqueId};
use super::*;
use crate::backend::recorded::Record;
use exmy_train::nn::device::{Device as _, MatrixMut};

/// A communicator.
struct Fake {
    state: AtomicI32,
    /// How often the state was asked for, and the communicator given up.
    asked: AtomicUsize,
    aborted: AtomicUsize,
    record: Record,
}

thread_local! {
    /// What this thread joins.
    static NEXT: RefCell<Option<&'static Fake>> = const { RefCell::new(None) };
}

fn fake(state: Status, record: &Record) -> &'static Fake {
    let [asked, aborted] = [(); 2].map(|()| AtomicUsize::new(0));
    Box::leak(Box::new(Fake { state: state.into(), asked, aborted, record: record.clone() }))
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
    _: UniqueId,
    _: c_int,
    config: *mut Config,
) -> Status {
    let next = NEXT.with_borrow(|next| next.unwrap());
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
    // SAFETY: as NCCL's.
    unsafe { *state = fake.state.load(Ordering::SeqCst) };
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
    let fake = of(communicator);
    fake.record.touch("a send", stream as usize, &[(from as u64, 4 * len, false)]);
    fake.state.load(Ordering::SeqCst)
}

unsafe extern "C" fn receive(
    to: *mut c_void,
    len: usize,
    _: c_int,
    _: c_int,
    communicator: Communicator,
    stream: *mut c_void,
) -> Status {
    let fake = of(communicator);
    fake.record.touch("a receive", stream as usize, &[(to as u64, 4 * len, true)]);
    fake.state.load(Ordering::SeqCst)
}

unsafe extern "C" fn abort(communicator: Communicator) -> Status {
    of(communicator).aborted.fetch_add(1, Ordering::SeqCst);
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
    let error = given_up(one, &held, move || edge.ask("send", |_, _| IN_PROGRESS));
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

/// Numbers are received after what their memory was used for, and sent when they are complete.
#[test]
fn what_comes_and_goes_is_in_order() {
    let record = Record::default();
    let device = Cuda::new(record.device());
    NEXT.set(Some(fake(DONE, &record)));
    let names = [name(), name()];
    let held = Edges::default();
    let mut link = Remote::join_by(&FAKES, device.device(), (1, &names), &held).unwrap();
    let [mut sums, mut other] = [(); 2].map(|()| device.buffer(vec![0.0; 8]));
    device.fill(MatrixMut::new(sums.all_mut(), 1, 8), 0.0);
    link.wait_for(&device).unwrap();
    device.fill(MatrixMut::new(other.all_mut(), 1, 8), 0.0);
    link.receive(&device, sums.all_mut()).unwrap();
    device.fill(MatrixMut::new(sums.all_mut(), 1, 8), 1.0);
    link.send(&device, sums.all()).unwrap();
    assert_eq!(record.races(), [""; 0]);
    // What is asked meanwhile is not waited for.
    link.receive(&device, other.all_mut()).unwrap();
    assert_eq!(record.races().len(), 1, "{:?}", record.races());
    // What is given up did not come.
    link.check().unwrap();
    held.abort();
    assert!(link.check().is_err());
}
