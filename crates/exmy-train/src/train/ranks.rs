//! One run on several devices: who takes which part of a step, and what they tell each other.
//!
//! Each device is a rank, from 0. The batch of a step is divided into the parts of `train.accumulate`, and
//! part `p` is the work of rank `p mod N`. The sums of gradients travel around the ring of ranks in the order
//! of the parts ([`chain`](crate::nn::chain)): rank 1 is a little behind rank 0 in the same layers, and so
//! on, so all work at once and add in the order of one device. What is written is the same bytes.
//!
//! Rank 0 leads. It alone has the optimizer's moments, evaluates, measures and writes files. At the beginning
//! of a step it hands the weights around the ring; at the end the last sum comes back to it, and the others
//! tell the losses of their parts. What a recipe remembers changes in the first part of a step alone. Where
//! it does, the other ranks begin when rank 0 has told them what that part left.
//!
//! A [`Link`] carries numbers from a rank to the next, a [`Wire`] carries words between rank 0 and another.
//! A rank that ends closes both; then the others end, too, and rank 0 says what it was told.

mod host;
mod reason;
pub mod seat;
pub mod tcp;

pub use host::{Channel, Staged, channels, rings};
#[doc(hidden)]
pub use reason::reason;

use crate::nn::chain::Chain;
use crate::nn::device::{Buffer, Device, Slice, SliceMut};
use crate::recipe::state::RecipeState;
use crate::train::config::{Config, Train};
use exmy::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// Carries numbers from a rank to the next one, the last one's to rank 0, in the order of the calls.
pub trait Link<D: Device>: Send {
    /// What is received from now on is of a later part than all that was sent until now.
    fn turn(&mut self) {}

    /// Lets what is received from now on wait for what the device was asked until now, where that is not so
    /// anyway. What it is asked later must not touch what is received before that is there.
    ///
    /// # Errors
    /// If the device fails.
    fn wait_for(&mut self, _device: &D) -> Result<()> {
        Ok(())
    }

    /// Hands numbers on. They must not change until the next rank has them.
    ///
    /// # Errors
    /// If the next rank has ended.
    fn send(&mut self, device: &D, numbers: Slice<'_, D>) -> Result<()>;

    /// Waits for the numbers of the rank before; they are there for what is asked of the device from then on.
    ///
    /// # Errors
    /// If the rank before has ended.
    fn receive(&mut self, device: &D, to: SliceMut<'_, D>) -> Result<()>;

    /// Whether all that was received did come; to be asked once the device has done what it was asked.
    ///
    /// # Errors
    /// If another rank has ended meanwhile, and what waited for it was given up.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Carries messages between rank 0 and another.
pub trait Wire: Send {
    /// Sends a message, without waiting for anybody to read it.
    ///
    /// # Errors
    /// If the other has ended.
    fn tell(&mut self, message: &str) -> Result<()>;

    /// Waits for a message, as long as it takes.
    ///
    /// # Errors
    /// If the other has ended.
    fn hear(&mut self) -> Result<String>;

    /// A message that is there or comes in so long a time.
    ///
    /// # Errors
    /// If the other has ended.
    fn listen(&mut self, patience: Duration) -> Result<Option<String>>;
}

/// What rank 0 and another tell each other.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::train) enum Message {
    /// Take your parts of this step. The weights follow on the ring, and a [`Memory`](Self::Memory) where
    /// that comes `later`.
    Step { step: u64, recipe: String, memory: String, later: bool },
    /// What the recipe remembers, after the first part of the step.
    Memory(String),
    /// The losses of a rank's parts, as bits, and whether that rank was asked to end.
    Losses { bits: Vec<u64>, stops: bool },
    /// What went wrong.
    Failed(String),
    /// There is nothing more to do for this run.
    End,
    /// A run of this configuration begins, among processes.
    Run(String),
    /// There are no more runs: the exit code of rank 0 and, if something went wrong, what it says.
    Bye { code: u8, why: Option<String> },
}

/// A rank of a run: its place among the others, and its ways to them.
pub struct Ranks<D: Device> {
    rank: usize,
    size: usize,
    /// Of rank 0 to each of the others in their order; of another to rank 0. They go before the link, whose
    /// end may wait for the others'.
    wires: Vec<Box<dyn Wire>>,
    link: Box<dyn Link<D>>,
    /// The ranges of the gradient in the order in which they travel, each of a whole layer: few and long
    /// transfers, for each costs its time, and the next rank is at most a layer behind.
    route: Vec<Range<usize>>,
    /// What went wrong between the ranks first.
    failure: Option<Error>,
    /// On rank 0: whether another was asked to end.
    stops: bool,
}

/// Numbers that travel at once where all weights do: the next rank hands on the first while the others come.
const PIECE: usize = 1 << 22;

/// Refuses a run whose steps have fewer parts than there are ranks.
///
/// # Errors
/// Says what would work.
pub fn divides(config: &Config, ranks: usize) -> Result<()> {
    let Train { accumulate, batch, .. } = config.train;
    if accumulate >= ranks {
        return Ok(());
    }
    let fits = (ranks..=batch).find(|&parts| batch.is_multiple_of(parts));
    let parts = if accumulate == 1 { "one part" } else { &format!("{accumulate} parts") };
    let error = Error::new(format!("a step is {parts}, and there are {ranks} devices"));
    Err(error.hint(match fits {
        Some(parts) => format!(
            "parts are divided over devices: --set train.accumulate={parts} (a run of its own, with other \
             sums), or fewer devices"
        ),
        None => format!("train.batch is {batch}: take no more devices than that"),
    }))
}

/// The parts of a step that a rank takes.
fn parts_of(rank: usize, size: usize, parts: usize) -> impl Iterator<Item = usize> {
    (rank..parts).step_by(size)
}

impl<D: Device> Ranks<D> {
    /// Rank 0 of `size`, with its link and its wires to the others.
    pub fn lead(link: Box<dyn Link<D>>, wires: Vec<Box<dyn Wire>>) -> Self {
        Self::new((0, wires.len() + 1), link, wires)
    }

    /// Another rank of `size`, with its link and its wire to rank 0.
    pub fn member(
        (rank, size): (usize, usize),
        link: Box<dyn Link<D>>,
        wire: Box<dyn Wire>,
    ) -> Self {
        Self::new((rank, size), link, vec![wire])
    }

    fn new(
        (rank, size): (usize, usize),
        link: Box<dyn Link<D>>,
        wires: Vec<Box<dyn Wire>>,
    ) -> Self {
        Self { rank, size, wires, link, route: Vec::new(), failure: None, stops: false }
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it takes a part.
    pub(crate) fn takes(&self, part: usize) -> bool {
        part % self.size == self.rank
    }

    /// Does something between ranks unless something went wrong there before.
    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) {
        if self.failure.is_none()
            && let Err(error) = work(self)
        {
            self.failure = Some(error);
        }
    }

    /// Begins a step on all other ranks, under these weights. `later` says that what the recipe remembers
    /// changes in the first part.
    pub(crate) fn begin(
        &mut self,
        device: &D,
        (step, recipe): (u64, String),
        (memory, later): (&RecipeState, bool),
        params: &Buffer<D>,
    ) {
        let memory = if later { String::new() } else { memory.to_text() };
        let message = Message::Step { step, recipe, memory, later };
        self.attempt(|ranks| ranks.tell_all(&message));
        self.attempt(|ranks| {
            pieces(params.len()).try_for_each(|piece| ranks.link.send(device, params.part(piece)))
        });
    }

    /// Tells all others something, also those after one that is gone: each hears the same words in the same
    /// order.
    pub(in crate::train) fn tell_all(&mut self, message: &Message) -> Result<()> {
        let text = text_of(message)?;
        let mut all = Ok(());
        for wire in &mut self.wires {
            all = all.and(wire.tell(&text));
        }
        all
    }

    /// Tells the others what the recipe remembers after the first part.
    pub(crate) fn tell_memory(&mut self, memory: &RecipeState) {
        let message = Message::Memory(memory.to_text());
        self.attempt(|ranks| ranks.tell_all(&message));
    }

    /// Whatever the device was asked with weights and sums until now comes before what other ranks write
    /// there.
    pub(crate) fn wait_for(&mut self, device: &D) {
        self.attempt(|ranks| ranks.link.wait_for(device));
    }

    /// The chain of one part of `parts`, whose sums travel by these groups.
    pub(crate) fn chain<'a>(
        &'a mut self,
        (part, parts): (usize, usize),
        groups: &'a [Range<usize>],
    ) -> Pass<'a, D> {
        let (is_first, is_last) = (part < self.size, part + 1 == parts);
        if is_first {
            self.route.clear();
        }
        self.link.turn();
        let sends = !(is_last && self.rank == 0);
        let group = Group { range: 0..0, left: 0 };
        Pass { receives: part > 0, sends, notes: is_first, groups, group, ranks: self }
    }

    /// Waits for the sums over all parts, if this is rank 0 or between whoever took the last part and rank 0;
    /// there they go on.
    pub(crate) fn collect(&mut self, device: &D, parts: usize, grads: &mut Buffer<D>) {
        let last = (parts - 1) % self.size;
        let (is_home, is_between) = (self.rank == 0 && last != 0, self.rank > last && last != 0);
        if !is_home && !is_between {
            return;
        }
        self.attempt(|ranks| {
            let Self { route, link, .. } = ranks;
            link.turn();
            for range in route.iter() {
                link.receive(device, grads.part_mut(range.clone()))?;
                if is_between {
                    link.send(device, grads.part(range.clone()))?;
                }
            }
            Ok(())
        });
    }

    /// Puts the losses of the others' parts among one's own.
    pub(crate) fn add_losses(&mut self, losses: &mut [f64]) {
        let size = self.size;
        self.attempt(|ranks| {
            for (wire, rank) in ranks.wires.iter_mut().zip(1..) {
                let told = match heard(wire.hear()?)? {
                    Message::Losses { bits, stops } => {
                        ranks.stops |= stops;
                        bits
                    }
                    Message::Failed(why) => return Err(failed(rank, &why)),
                    _ => return Err(out_of_turn(rank)),
                };
                let own = parts_of(rank, size, losses.len());
                own.zip(told).for_each(|(part, loss)| losses[part] = f64::from_bits(loss));
            }
            Ok(())
        });
    }

    /// Whether another rank was asked to end, so that this one is to stop the run.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.stops
    }

    /// What went wrong between the ranks: what one of them says it was, else that one has ended. The device
    /// has done all that it was asked.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.attempt(|ranks| ranks.link.check());
        let Some(error) = self.failure.take() else { return Ok(()) };
        let told = if self.rank == 0 { reason::reason(&mut self.wires) } else { None };
        Err(told.unwrap_or(error))
    }
}

/// What a rank other than 0 says and hears.
impl<D: Device> Ranks<D> {
    /// The next message of rank 0.
    pub(in crate::train) fn hear(&mut self) -> Result<Message> {
        heard(self.wires[0].hear()?)
    }

    /// Tells rank 0 something.
    pub(in crate::train) fn tell_lead(&mut self, message: &Message) -> Result<()> {
        self.wires[0].tell(&text_of(message)?)
    }

    /// Tells rank 0 what went wrong, if that is there to hear it.
    pub(in crate::train) fn tell_failure(&mut self, error: &Error) {
        let _ = self.tell_lead(&Message::Failed(error.to_string()));
    }

    /// Takes the weights from the ring and hands them on.
    pub(crate) fn take_weights(&mut self, device: &D, params: &mut Buffer<D>) {
        let hands_on = self.rank + 1 < self.size;
        self.wait_for(device);
        self.link.turn();
        self.attempt(|ranks| {
            for piece in pieces(params.len()) {
                ranks.link.receive(device, params.part_mut(piece.clone()))?;
                if hands_on {
                    ranks.link.send(device, params.part(piece))?;
                }
            }
            Ok(())
        });
    }
}

impl<D: Device> Drop for Ranks<D> {
    fn drop(&mut self) {
        if self.rank == 0 {
            // Whoever is gone needs no telling.
            let _ = self.tell_all(&Message::End);
        }
    }
}

/// Ranges of so many numbers that travel one after the other.
pub(in crate::train) fn pieces(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(PIECE).map(move |start| start..len.min(start + PIECE))
}

pub(in crate::train) fn text_of(message: &Message) -> Result<String> {
    serde_json::to_string(message)
        .map_err(|error| Error::new("cannot write a message").because(error))
}

pub(in crate::train) fn heard(text: String) -> Result<Message> {
    serde_json::from_str(&text)
        .map_err(|_| Error::new("another rank speaks otherwise").hint("run one program on all"))
}

fn failed(rank: usize, why: &str) -> Error {
    Error::new(format!("rank {rank}: {why}"))
}

pub(in crate::train) fn out_of_turn(rank: usize) -> Error {
    Error::new(format!("rank {rank} answers what nobody asked"))
}

/// The chain of one pass.
pub(crate) struct Pass<'a, D: Device> {
    ranks: &'a mut Ranks<D>,
    receives: bool,
    sends: bool,
    /// Whether this pass is the one that says which way sums travel.
    notes: bool,
    groups: &'a [Range<usize>],
    /// The group whose ranges begin and end now.
    group: Group,
}

struct Group {
    range: Range<usize>,
    /// How many of its numbers have not ended.
    left: usize,
}

impl<D: Device> Chain<D> for Pass<'_, D> {
    fn begins(&mut self, device: &D, mut grads: SliceMut<'_, D>, range: Range<usize>) {
        if self.group.range.contains(&range.start) {
            return;
        }
        assert_eq!(self.group.left, 0, "a group ends before the next begins");
        // One sum may be of several groups: that of a token table and its sink is.
        let first = self.groups.partition_point(|group| group.end <= range.start);
        let behind = self.groups.partition_point(|group| group.start < range.end);
        let range = self.groups[first].start..self.groups[behind - 1].end;
        self.group = Group { left: range.len(), range: range.clone() };
        if self.receives {
            self.ranks.attempt(|ranks| ranks.link.receive(device, grads.part(range)));
        }
    }

    fn ends(&mut self, device: &D, grads: Slice<'_, D>, range: Range<usize>) {
        let left = self.group.left.checked_sub(range.len());
        self.group.left = left.expect("what ends is of the group that began");
        if self.group.left > 0 {
            return;
        }
        let range = self.group.range.clone();
        if self.notes {
            self.ranks.route.push(range.clone());
        }
        if self.sends {
            self.ranks.attempt(|ranks| ranks.link.send(device, grads.part(range)));
        }
    }
}
