//! One run on several ranks: the bytes of one device, for recipes that remember and that round at random, for
//! both mixers and a tied head, with parts that do not divide evenly, resumed with another number of ranks.

mod address;
mod reason;

use exmy::error::{Error, Result};
use exmy_train::nn::Cpu;
use exmy_train::nn::device::{Slice, SliceMut};
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::preset::preset;
use exmy_train::train::ranks::seat::{first_host, seat};
use exmy_train::train::ranks::tcp::{Party, Seat};
use exmy_train::train::ranks::{Link, Staged, divides, rings};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Job, RunLock, Watch, load_data, lock, train_among};
use exmy_train::train::together::train_together;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Stops after a step.
struct Until(u64);

impl Watch for Until {
    fn step(&mut self, metrics: &Metrics, _: u64) -> bool {
        metrics.step < self.0
    }

    fn phase(&mut self, _: &str) {}
}

/// A link that counts what it sends.
struct Counted {
    link: Staged,
    sends: Arc<AtomicUsize>,
}

impl Link<Cpu> for Counted {
    fn send(&mut self, device: &Cpu, numbers: Slice<'_, Cpu>) -> Result<()> {
        self.sends.fetch_add(1, Ordering::SeqCst);
        self.link.send(device, numbers)
    }

    fn receive(&mut self, device: &Cpu, to: SliceMut<'_, Cpu>) -> Result<()> {
        self.link.receive(device, to)
    }

    fn check(&self) -> Result<()> {
        Link::<Cpu>::check(&self.link)
    }
}

/// Trains in `folder` on so many ranks.
fn train(folder: &Path, config: &Config, size: usize, until: u64) -> Result<()> {
    train_counted(folder, config, (size, until), &Arc::default())
}

fn train_counted(
    folder: &Path,
    config: &Config,
    (size, until): (usize, u64),
    sends: &Arc<AtomicUsize>,
) -> Result<()> {
    let mut config = config.clone();
    let data = load_data(&mut config)?;
    let folder = Folder::new(folder);
    if !folder.config_file().exists() {
        folder.create(&config)?;
    }
    let lock = lock(&folder)?.ok_or_else(|| Error::new("another process has the run"))?;
    let link = |link| Box::new(Counted { link, sends: sends.clone() }) as Box<dyn Link<Cpu>>;
    let links: Vec<_> = rings(size).into_iter().map(link).collect();
    let (devices, watch) = (vec![Cpu::new(); size], &mut Until(until));
    train_together((&devices, links), 1, Job::new(&folder, &data, watch, &lock)).map(drop)
}

/// All files of a run but `timing.jsonl`.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(place) = folders.pop() {
        for entry in std::fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("timing.jsonl") {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

fn same(expected: &Path, found: &Path) {
    let (expected, found) = (files(expected), files(found));
    assert!(expected.keys().eq(found.keys()), "{:?} {:?}", expected.keys(), found.keys());
    for (name, bytes) in &expected {
        assert!(bytes == &found[name], "{name} differs");
    }
}

const SMALL: &str = "[model]\nlayers = 2\nd_model = 32\nheads = 2\nkv_heads = 2\nhidden = 48\n\
    context = 16\n[train]\nbatch = 10\naccumulate = 5\n\
    [record]\neval_windows = 2\neval_every = 3\ncheckpoint_every = 2\nkeep = 2\nprobe_every = 2\n\
    probes = ['norms', 'rounding', 'kurtosis']";

fn config(name: &str, recipe: &str, changes: &str) -> Config {
    let mut config = preset(name).unwrap().overlaid(SMALL).unwrap();
    config = config.overlaid(changes).unwrap().with_setting(&format!("recipe={recipe}")).unwrap();
    config.train = config.train.with_steps(6);
    config
}

/// What both mixers, a tied head, a sink, biases and every kind of memory leave on one device, two and three.
#[test]
fn any_number_of_ranks_writes_the_bytes_of_one() {
    let place = tempfile::tempdir().unwrap();
    let biases =
        "[model]\nsink = true\nnorm_bias = true\nbias = { qkv = true, o = true, mlp = true }";
    let gla = "[model.gla]\nheads = 2";
    let rolled = "[[at]]\nstep = 2\nthen = 'chon'\n[[when]]\nmetric = 'spikes'\nabove = -1.0\nfor = 2\n\
        then = '+out=bf16'\nrollback = true\ntimes = 1";
    for (name, recipe, changes, sizes) in [
        ("gpt-nano", "mxfp4@sr8", biases, &[2, 3][..]),
        ("gla-mini", "chon", gla, &[2]),
        ("nano", "msamp-o1", rolled, &[3]),
    ] {
        let config = config(name, recipe, changes);
        let folder = |size: usize| place.path().join(format!("{name}-{recipe}-{size}"));
        train(&folder(1), &config, 1, u64::MAX).unwrap();
        for &size in sizes {
            train(&folder(size), &config, size, u64::MAX).unwrap();
            same(&folder(1), &folder(size));
        }
    }
}

/// Sums travel by layers: each transfer costs its time, however short it is.
#[test]
fn a_layer_travels_at_once() {
    let place = tempfile::tempdir().unwrap();
    let sends = Arc::default();
    for (name, groups) in [("gpt-nano", 5), ("nano", 5), ("gla-mini", 5)] {
        let gla = if name == "gla-mini" { "[model.gla]\nheads = 2" } else { "" };
        let config = config(name, "f32", gla);
        train_counted(&place.path().join(name), &config, (2, u64::MAX), &sends).unwrap();
        // Six steps: the weights, and four of five parts, whose sums go from one rank to the other.
        assert_eq!(sends.swap(0, Ordering::SeqCst), 6 * (1 + 4 * groups), "{name}");
    }
}

/// A run goes on with other numbers of ranks than it began with.
#[test]
fn ranks_come_and_go() {
    let place = tempfile::tempdir().unwrap();
    let config = config("nano", "nv-nvfp4", "");
    let [one, turns] = ["one", "turns"].map(|name| place.path().join(name));
    train(&one, &config, 1, u64::MAX).unwrap();
    for (size, until) in [(2, 1), (1, 3), (5, 4), (2, u64::MAX)] {
        train(&turns, &config, size, until).unwrap();
    }
    same(&one, &turns);
}

#[test]
fn more_ranks_than_parts_are_refused() {
    let config = config("nano", "f32", "");
    assert!(divides(&config, 5).is_ok());
    let error = divides(&config, 6).unwrap_err().to_string();
    assert!(error.contains("5 parts, and there are 6 devices"), "{error}");
    assert!(error.contains("--set train.accumulate=10"), "{error}");
    let error = divides(&config, 11).unwrap_err().to_string();
    assert!(error.contains("train.batch is 10"), "{error}");
}

/// Seats of a party at a port of this machine, which has such an address.
fn seats(host: &str, size: usize) -> Vec<Seat> {
    let free = TcpListener::bind((host.trim_matches(['[', ']']), 0)).unwrap().local_addr().unwrap();
    let address = format!("{host}:{}", free.port());
    (0..size).map(|rank| Seat { rank, size, local: rank, address: address.clone() }).collect()
}

/// Processes, here as threads, that know nothing of each other but an address: of either family, or a name
/// that stands for several.
#[test]
fn ranks_meet_over_tcp_and_write_the_bytes_of_one() {
    let place = tempfile::tempdir().unwrap();
    let one = place.path().join("one");
    let mut config = config("gpt-nano", "chon", "");
    train(&one, &config, 1, u64::MAX).unwrap();
    let data = load_data(&mut config).unwrap();
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        if host == "[::1]" && TcpListener::bind("[::1]:0").is_err() {
            continue;
        }
        let three = place.path().join(host);
        let folder = Folder::new(&three);
        folder.create(&config).unwrap();
        let held = lock(&folder).unwrap().unwrap();
        meet(seats(host, 3), &config, &folder, &data, &held);
        same(&one, &three);
    }
}

/// Words go against the direction of the numbers.
fn greet(party: &Party) {
    let ([mut before, mut next], Seat { rank, size, .. }) = (party.beside(), &party.seat);
    before.tell(&rank.to_string()).unwrap();
    assert_eq!(next.hear().unwrap(), ((rank + 1) % size).to_string());
}

/// Trains on ranks that meet over TCP.
fn meet(mut seats: Vec<Seat>, config: &Config, folder: &Folder, data: &Dataset, held: &RunLock) {
    thread::scope(|scope| {
        for seat in seats.drain(1..) {
            scope.spawn(move || {
                let party = Party::gather(seat, "same", || ()).unwrap();
                greet(&party);
                party.follow(&|| false, |_| Ok((Cpu::new(), Box::new(party.ring()) as _))).unwrap();
            });
        }
        let party = Party::gather(seats.remove(0), "same", || ()).unwrap();
        greet(&party);
        let ranks = party.begin(config, Box::new(party.ring())).unwrap();
        let watch = &mut Until(u64::MAX);
        train_among(Some(ranks), &Cpu::new(), Job::new(folder, data, watch, held)).unwrap();
        party.dismiss(0, None);
    });
}

/// A rank that waits for the next step while the one before it is gone hears the end of the run, then the
/// goodbye.
#[test]
fn who_waits_hears_the_goodbye_though_another_is_gone() {
    let mut config = config("gpt-nano", "f32", "");
    load_data(&mut config).unwrap();
    let mut seats = seats("127.0.0.1", 3);
    thread::scope(|scope| {
        let (gone, waits) = (seats.remove(1), seats.remove(1));
        scope.spawn(move || {
            let party = Party::gather(gone, "same", || ()).unwrap();
            party.wires()[0].hear().unwrap();
        });
        let end = scope.spawn(move || {
            let party = Party::gather(waits, "same", || ()).unwrap();
            party.follow(&|| false, |_| Ok((Cpu::new(), Box::new(party.ring()) as _))).unwrap()
        });
        let party = Party::gather(seats.remove(0), "same", || ()).unwrap();
        let ranks = party.begin::<Cpu>(&config, Box::new(party.ring())).unwrap();
        // What is written first to a connection that has ended is still taken.
        while party.wires()[0].tell("{}").is_ok() {}
        drop(ranks);
        party.dismiss(0, Some("rank 1 has ended"));
        drop(party);
        assert_eq!(end.join().unwrap(), (0, Some("rank 1 has ended".into())));
    });
}

/// A rank that finds other data says whose they should be, and what would help.
#[test]
fn all_ranks_have_the_same_data() {
    let mut config = config("gpt-nano", "f32", "");
    load_data(&mut config).unwrap();
    config.data.fingerprint = "0".repeat(16);
    let mut seats = seats("127.0.0.1", 2);
    thread::scope(|scope| {
        let (first, second) = (seats.remove(0), seats.remove(0));
        let end = scope.spawn(move || {
            let party = Party::gather(second, "same", || ()).unwrap();
            party.follow::<Cpu>(&|| false, |_| unreachable!("nothing begins")).unwrap()
        });
        let party = Party::gather(first, "same", || ()).unwrap();
        let ranks = party.begin::<Cpu>(&config, Box::new(party.ring())).unwrap();
        let text = party.wires()[0].hear().unwrap();
        assert!(text.contains("are not those of rank 0"), "{text}");
        assert!(text.contains("all ranks read the same files"), "{text}");
        drop(ranks);
        party.dismiss(2, Some("rank 1"));
        drop(party);
        assert_eq!(end.join().unwrap(), (2, Some("rank 1".into())));
    });
}

/// Rank 0 and all who have come are told why they do not train together, in the same words.
#[test]
fn ranks_that_do_not_go_together_are_told() {
    for (change, why) in [
        (("exmy 0.2", 2, 1), "rank 1 runs exmy 0.2, rank 0 exmy 0.1"),
        // The same build on GPUs, where one has NCCL and the other has not.
        (("exmy 0.1 by NCCL", 2, 1), "rank 1 runs exmy 0.1 by NCCL, rank 0 exmy 0.1"),
        (("exmy 0.1", 3, 1), "rank 1 counts 3 ranks, rank 0 2"),
        (("exmy 0.1", 2, 2), "there is a rank 2; 2 ranks are numbered from 0 to 1"),
    ] {
        let mut seats = seats("127.0.0.1", 2);
        let (mut second, first) = (seats.remove(1), seats.remove(0));
        let (program, size, rank) = change;
        (second.size, second.rank) = (size, rank);
        let other = thread::spawn(move || Party::gather(second, program, || ()).map(drop));
        let here = Party::gather(first, "exmy 0.1", || ()).unwrap_err().to_string();
        assert!(here.contains(why), "{here}");
        assert!(here.contains("start one program on all, each rank once"), "{here}");
        assert_eq!(other.join().unwrap().unwrap_err().to_string(), why);
    }
}

#[test]
fn a_rank_that_is_there_twice_is_told_to_all() {
    let mut seats = seats("127.0.0.1", 3);
    seats[2].rank = 1;
    let first = seats.remove(0);
    let others: Vec<_> = seats
        .into_iter()
        .map(|seat| thread::spawn(move || Party::gather(seat, "same", || ()).map(drop)))
        .collect();
    let here = Party::gather(first, "same", || ()).unwrap_err().to_string();
    assert!(here.contains("two processes are rank 1 of 3"), "{here}");
    for other in others {
        let error = other.join().unwrap().unwrap_err().to_string();
        assert_eq!(error, "two processes are rank 1 of 3");
    }
}

#[test]
fn the_environment_says_who_one_is() {
    let of = |variables: &[(&str, &str)]| {
        let found = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        seat(&found)
    };
    let torchrun = [
        ("RANK", "3"),
        ("WORLD_SIZE", "16"),
        ("LOCAL_RANK", "1"),
        ("MASTER_ADDR", "node7"),
        ("MASTER_PORT", "29400"),
        ("SLURM_PROCID", "0"),
    ];
    let expected = Seat { rank: 3, size: 16, local: 1, address: "node7:29400".into() };
    assert_eq!(of(&torchrun).unwrap(), expected);
    let agent = [&torchrun[..], &[("TORCHELASTIC_USE_AGENT_STORE", "True")]].concat();
    assert_eq!(of(&agent).unwrap().address, "node7:29401");
    let slurm = [
        ("SLURM_PROCID", "2"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_LOCALID", "0"),
        ("SLURM_JOB_NODELIST", "gpu[03-04,9],login"),
        ("SLURM_JOB_ID", "1234567"),
    ];
    let expected = Seat { rank: 2, size: 4, local: 0, address: "gpu03:24567".into() };
    assert_eq!(of(&slurm).unwrap(), expected);
    assert!(of(&slurm[1..]).unwrap_err().to_string().contains("SLURM_PROCID"));
    assert!(of(&torchrun[1..]).unwrap_err().to_string().contains("RANK"));
    let with = |variables: &[(&'static str, &'static str)]| [variables, &torchrun].concat();
    let alone = of(&[("RANK", "0"), ("WORLD_SIZE", "1")]).unwrap();
    assert_eq!((alone.size, alone.address.as_str()), (1, ""));
    let six = of(&with(&[("MASTER_ADDR", "fe80::7")])).unwrap();
    assert_eq!(six.address, "[fe80::7]:29400");
    for (variables, words) in [
        (&[("MASTER_PORT", "65536")][..], "MASTER_PORT is 65536, and ports are 1 to 65535"),
        (&[("MASTER_PORT", "0")], "MASTER_PORT is 0, "),
        (&[("MASTER_PORT", "18446744073709551615")], "MASTER_PORT is 18446744073709551615, "),
        (
            &[("MASTER_PORT", "65535"), ("TORCHELASTIC_USE_AGENT_STORE", "True")],
            "MASTER_PORT is 65535, torchrun keeps that for itself",
        ),
        (&[("WORLD_SIZE", "2147483648")], "no more than 65536 train together"),
    ] {
        let error = of(&with(variables)).unwrap_err().to_string();
        assert!(error.contains(words) && error.lines().count() == 1, "{error}");
    }
    let late = [&[("RANK", "16")], &torchrun[1..]].concat();
    assert!(of(&late).unwrap_err().to_string().contains("RANK is 16 and WORLD_SIZE is 16"));
    for (list, first) in [("a", "a"), ("a,b", "a"), ("n[1-3]", "n1"), ("n[7]-ib,m", "n7-ib")] {
        assert_eq!(first_host(list).as_deref(), Some(first), "{list}");
    }
    assert_eq!(first_host(""), None);
}

/// A rank that goes away while all gather may come again, and strangers keep nobody waiting.
#[test]
fn ranks_gather_whoever_else_comes() {
    let mut seats = seats("127.0.0.1", 3);
    let address = seats[0].address.clone();
    let gather = |seat| thread::spawn(|| Party::gather(seat, "same", || ()).map(drop));
    let lead = gather(seats.remove(0));
    let call = || {
        loop {
            match TcpStream::connect(&address) {
                Ok(stream) => break stream,
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    };
    let _silent = call();
    let hello = br#"{"rank":1,"size":3,"program":"same","port":9}"#;
    let mut lost = call();
    lost.write_all(&[&[1][..], &(hello.len() as u64).to_le_bytes(), hello].concat()).unwrap();
    // Long enough for its words to be read, in most cases: they count for nothing either way.
    thread::sleep(Duration::from_millis(100));
    drop(lost);
    let others: Vec<_> = seats.into_iter().rev().map(gather).collect();
    lead.join().unwrap().unwrap();
    others.into_iter().for_each(|rank| rank.join().unwrap().unwrap());
}
