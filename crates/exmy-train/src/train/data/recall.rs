//! The text of a memory task: pairs to recall, sequences to repeat, and resets between them.
//!
//! An episode begins with a line feed, after which nothing before it matters, and is one of two, drawn alike:
//!
//! ```text
//! dQxBaM?xBdQaM        recall: six keys with their values, `?`, and the keys again in another order,
//!                      each followed by its value (here three of them)
//! |kdmzsa|kdmzsa       induction: twelve keys, and the same again (here six of them)
//! ```
//!
//! Keys are different small letters, values any of sixteen capitals. Recall is multi-query associative recall
//! ("Zoology: Measuring and Improving Recall in Efficient Language Models", arXiv 2312.04927), induction the
//! repetition that "In-context Learning and Induction Heads" (arXiv 2209.11895) measures. What a model can
//! only know from the episode are the [`answers`]. A guess is right once in sixteen (recall) or in twelve or
//! more (induction), a reader of the whole episode always.

use exmy::random::{Philox, Stream};

/// Pairs of an episode of recall.
const PAIRS: usize = 6;
/// Values.
const VALUES: u64 = 16;
/// Letters that an episode of induction repeats.
const REPEATED: usize = 12;
/// Keys.
const KEYS: u8 = 26;

/// What an answer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// The value of a key.
    Recall,
    /// What followed the same letter before.
    Induction,
}

/// A byte that an episode determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Where it is in the text.
    pub at: usize,
    /// Where its episode begins.
    pub episode: usize,
    /// What it takes.
    pub task: Task,
}

/// Different keys, in an order drawn by `random` from draw `first` on.
fn keys(random: &Philox, first: u64, count: usize) -> Vec<u8> {
    let mut all: Vec<u8> = (b'a'..b'a' + KEYS).collect();
    for i in 0..count {
        let left = (all.len() - i) as u64;
        all.swap(i, i + random.below(first + i as u64, left) as usize);
    }
    all.truncate(count);
    all
}

/// Writes episode `number` of `stream`.
fn episode(seed: u64, stream: Stream, number: u64, text: &mut Vec<u8>) {
    let random = Philox::new(seed, stream.with(number));
    text.push(b'\n');
    if random.below(0, 2) == 0 {
        let keys = keys(&random, 100, PAIRS);
        let pair = |i: usize| [keys[i], b'A' + random.below(200 + i as u64, VALUES) as u8];
        (0..PAIRS).for_each(|i| text.extend(pair(i)));
        text.push(b'?');
        let mut order: Vec<usize> = (0..PAIRS).collect();
        for i in 0..PAIRS {
            let left = (PAIRS - i) as u64;
            order.swap(i, i + random.below(300 + i as u64, left) as usize);
        }
        order.into_iter().for_each(|i| text.extend(pair(i)));
    } else {
        let keys = keys(&random, 100, REPEATED);
        for _ in 0..2 {
            text.push(b'|');
            text.extend(&keys);
        }
    }
}

/// Episodes `0, 1, ...` of `stream`, as many as make up at least `min_bytes`.
pub fn text(seed: u64, stream: Stream, min_bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(min_bytes + 64);
    let mut number = 0;
    while text.len() < min_bytes {
        episode(seed, stream, number, &mut text);
        number += 1;
    }
    text
}

/// The bytes that episodes determine, in order. An episode cut off at the end counts as far as it goes; what
/// comes before the first line feed does not.
///
/// ```
/// use exmy_train::train::data::recall::{Task, answers};
///
/// let found = answers(b"xB?xB\ndQxB?xBdQ\n|ab|ab");
/// let places: Vec<(usize, Task)> = found.iter().map(|one| (one.at, one.task)).collect();
/// // The values of the second halves, and what follows the first letter of the second copy.
/// assert_eq!(places, [(12, Task::Recall), (14, Task::Recall), (21, Task::Induction)]);
/// ```
pub fn answers(text: &[u8]) -> Vec<Answer> {
    let mut found = Vec::new();
    let mut begun: Option<usize> = None;
    // Marks since the line feed, and where the second half begins.
    let (mut bars, mut second) = (0, None);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'\n' => (begun, bars, second) = (Some(at), 0, None),
            b'?' => second = Some((at, Task::Recall)),
            b'|' => {
                bars += 1;
                second = (bars == 2).then_some((at, Task::Induction));
            }
            _ => {
                let (Some(episode), Some((mark, task))) = (begun, second) else { continue };
                let determined = match task {
                    Task::Recall => byte.is_ascii_uppercase(),
                    // The first letter only once the second copy has begun: at its bar it is known, too, but
                    // by place and not by repetition.
                    Task::Induction => at > mark + 1,
                };
                if determined {
                    found.push(Answer { at, episode, task });
                }
            }
        }
    }
    found
}
