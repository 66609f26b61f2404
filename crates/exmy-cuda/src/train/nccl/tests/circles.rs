//! Rings that train, on a stand-in for NCCL and a driver that make everybody wait as the real ones do. A
//! member connects at its first transfer, and its host waits there for the other member's. A transfer stays
//! on its device until both ends have begun. New memory waits for all that is on a device, and so may any
//! call.

use std::sync::Arc;

use super::*;
use crate::backend::recorded::Ways;
use crate::train::verify;
use exmy_train::train::ranks::Link;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Job, Watch, load_data, lock};
use exmy_train::train::together::train_together;

/// How long a ring may take that takes seconds; then it hangs.
const LONG: Duration = Duration::from_secs(60);

/// A transfer that a member was asked for: the handle of its stream, an address and bytes.
type Asked = (usize, (u64, usize));

/// An edge of a ring.
#[derive(Default)]
struct Ends {
    /// What its sender and its receiver were asked for and have not begun, and how much they have.
    asked: [Vec<Asked>; 2],
    begun: [usize; 2],
}

/// One member's end of an edge.
pub(super) struct End {
    ends: Arc<Mutex<Ends>>,
    edge: usize,
    receives: bool,
}

impl End {
    pub(super) fn ask(&self, stream: usize, memory: (u64, usize)) {
        locked(&self.ends).asked[usize::from(self.receives)].push((stream, memory));
    }

    /// Begins what was asked for if both members have come so far, and says whether they have.
    pub(super) fn connected(&self, record: &Record) -> bool {
        let (ends, own) = (&mut *locked(&self.ends), usize::from(self.receives));
        if (0..2).any(|end| ends.asked[end].is_empty() && ends.begun[end] == 0) {
            return false;
        }
        for (stream, memory) in ends.asked[own].drain(..) {
            record.transfer((self.edge, ends.begun[own]), self.receives, stream, memory);
            ends.begun[own] += 1;
        }
        true
    }

    pub(super) fn give_up(&self, record: &Record) {
        record.give_up(self.edge, self.receives);
    }
}

/// The edges of a ring, and what its devices do.
type Ring = (Record, Vec<Arc<Mutex<Ends>>>);

thread_local! {
    /// The ring that this thread joins.
    static RING: RefCell<Option<Ring>> = const { RefCell::new(None) };
}

/// What joins the edge of this name in this thread's ring, if it has one.
pub(super) fn joins(name: c_char, receives: bool) -> Option<&'static Fake> {
    RING.with_borrow(|ring| {
        let (record, ends) = ring.as_ref()?;
        let edge = name as usize;
        let end = End { ends: ends[edge].clone(), edge, receives };
        Some(ending(DONE, record, Some(end)))
    })
}

struct Silent;

impl Watch for Silent {
    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        true
    }

    fn phase(&mut self, _: &str) {}
}

/// Joins a ring, each rank in a thread of its own.
fn joined(devices: &[Cuda], record: &Record) -> Vec<Remote> {
    let size = devices.len();
    let ends: Vec<_> = (0..size).map(|_| Arc::default()).collect();
    let names: Vec<_> = (0..size).map(|edge| format!("{edge:02x}{}", "00".repeat(127))).collect();
    thread::scope(|scope| {
        let join = |(rank, device): (usize, &Cuda)| {
            let (ring, names, device) = ((record.clone(), ends.clone()), &names, device.device());
            let device = device.clone();
            scope.spawn(move || {
                RING.set(Some(ring));
                Remote::join_by(&FAKES, &device, (rank, names), &Edges::default()).unwrap()
            })
        };
        let joining: Vec<_> = devices.iter().enumerate().map(join).collect();
        joining.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Trains a run of so many ranks and parts; what was not in order with the transfers.
fn train((size, parts): (usize, usize), recipe: &str, ways: Ways) -> Vec<String> {
    let record = Record::with(ways);
    let devices: Vec<Cuda> = (0..size).map(|_| Cuda::new(record.device())).collect();
    let remotes = joined(&devices, &record);
    // What a rank tells the one before.
    let (mut before, mut next): (Vec<_>, Vec<_>) = (0..size)
        .map(|rank| {
            let [here, there] = channels(rank);
            (Box::new(here) as Box<dyn Wire>, Box::new(there) as Box<dyn Wire>)
        })
        .unzip();
    next.rotate_left(1);
    let links = remotes.iter().zip(before.drain(..).zip(next.drain(..)));
    let links = links.map(|(remote, (before, next))| {
        Box::new(remote.link([before, next]).unwrap()) as Box<dyn Link<Cuda>>
    });
    let links: Vec<_> = links.collect();
    let place = tempfile::tempdir().unwrap();
    let mut config = verify::runs::config(verify::runs::FAMILIES[1], recipe).unwrap();
    let batch = format!("[train]\nbatch = {parts}\naccumulate = {parts}");
    config = config.overlaid(&batch).unwrap();
    config.train = config.train.with_steps(2);
    let data = load_data(&mut config).unwrap();
    let folder = Folder::new(place.path().join("run"));
    folder.create(&config).unwrap();
    let lock = lock(&folder).unwrap().unwrap();
    let places = (&devices[..], links);
    train_together(places, 1, Job::new(&folder, &data, &mut Silent, &lock)).unwrap();
    record.races()
}

/// Fails where the ring hangs.
fn trains(size: (usize, usize), recipe: &'static str, ways: Ways) {
    let (to, from) = channel();
    thread::spawn(move || to.send(train(size, recipe, ways)));
    let (ranks, parts) = size;
    let Ok(races) = from.recv_timeout(LONG) else {
        panic!("{ranks} ranks wait in a circle, {parts} parts in {recipe}, {ways:?}");
    };
    assert_eq!(races, [""; 0], "{ranks} ranks, {parts} parts in {recipe}, {ways:?}");
}

#[test]
fn rings_train_whatever_the_driver_waits_for() {
    for size in [(2, 2), (2, 6), (3, 3), (3, 7), (4, 5), (4, 9)] {
        // No call but those for memory, all, and some.
        for waits in [0, 1, 7] {
            trains(size, "f32", Ways { waits, one_queue: false });
        }
    }
}

#[test]
fn rings_train_where_streams_share_a_queue() {
    for size in [(2, 6), (3, 7), (4, 9)] {
        for waits in [0, 101] {
            trains(size, "f32", Ways { waits, one_queue: true });
        }
    }
}

/// The others begin when rank 0 has done the first part.
#[test]
fn rings_train_where_all_wait_for_the_first_part() {
    for size in [(2, 4), (3, 6)] {
        trains(size, "msamp-o1", Ways { waits: 1, one_queue: true });
    }
}

/// Whoever connects and whoever waits for the next rank ends when another rank has.
#[test]
fn what_waits_for_a_rank_ends_with_it() {
    let soon = Duration::from_millis(50);
    let record = Record::default();
    let devices = [(); 2].map(|()| Cuda::new(record.device()));
    let (to, said) = channel();
    // Rank 1 does not come.
    let ring = (record.clone(), (0..2).map(|_| Arc::default()).collect());
    let names = [0, 1].map(|edge| format!("{edge:02x}{}", "00".repeat(127)));
    let (held, device, tells) = (Edges::default(), devices[0].device().clone(), to.clone());
    let given_up = held.clone();
    thread::spawn(move || {
        RING.set(Some(ring));
        tells.send(Remote::join_by(&FAKES, &device, (0, &names), &held).unwrap_err().to_string())
    });
    thread::sleep(soon);
    given_up.abort();
    let error = said.recv_timeout(LONG).expect("it connects for ever");
    assert!(error.contains("another rank has ended"), "{error}");
    // It came, and does not receive.
    let remote = joined(&devices, &record).remove(0);
    let ([before, _before], [next, _next]) = (channels(1), channels(1));
    let mut link = remote.link([Box::new(before), Box::new(next)]).unwrap();
    let device = devices[0].clone();
    thread::spawn(move || {
        let mut sums = device.buffer(vec![0.0; 8]);
        link.send(&device, sums.all()).unwrap();
        link.turn();
        to.send(link.receive(&device, sums.all_mut()).unwrap_err().to_string())
    });
    thread::sleep(soon);
    remote.to.abort();
    let error = said.recv_timeout(LONG).expect("it waits for ever");
    assert!(error.contains("another rank has ended"), "{error}");
}
