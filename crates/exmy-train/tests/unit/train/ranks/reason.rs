//! Why a run of several ranks ends: what was said, not who saw it.

use exmy::error::Result;
use exmy_train::train::ranks::{Wire, channels, reason};
use std::time::Duration;

/// A rank that lives and says nothing, and does not like to be waited for.
struct Busy;

impl Wire for Busy {
    fn tell(&mut self, _: &str) -> Result<()> {
        Ok(())
    }

    fn hear(&mut self) -> Result<String> {
        unreachable!("nobody waits for this one alone")
    }

    fn listen(&mut self, patience: Duration) -> Result<Option<String>> {
        assert_eq!(patience, Duration::ZERO);
        Ok(None)
    }
}

/// A rank that says something and ends.
fn ends(rank: usize, words: Option<&str>) -> Box<dyn Wire> {
    let [here, mut there] = channels(rank);
    if let Some(words) = words {
        there.tell(&format!("{{\"Failed\":\"{words}\"}}")).unwrap();
    }
    Box::new(here)
}

#[test]
fn what_was_said_comes_before_who_is_gone() {
    let said = |wires: Vec<Box<dyn Wire>>| {
        let mut wires = wires;
        reason(&mut wires).map(|error| error.to_string())
    };
    let [busy, other] = [(); 2].map(|()| Box::new(Busy) as Box<dyn Wire>);
    let saw = |rank| ends(rank, Some("rank 3 has ended"));
    let found = said(vec![busy, saw(2), ends(3, None), saw(4)]);
    assert_eq!(found.as_deref(), Some("rank 3 has ended"));
    let found = said(vec![other, ends(2, None), ends(3, Some("there is no memory")), saw(4)]);
    assert_eq!(found.as_deref(), Some("rank 3: there is no memory"));
}
