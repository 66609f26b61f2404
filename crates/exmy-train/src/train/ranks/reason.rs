//! Why a run of several ranks has to end. Where one fails, those beside it see it go and end as well, and so
//! on round the ring. What rank 0 sees first may be the last of them. So it listens to all others for a
//! while: who failed says what it was, and whose wire ends without a word is the one that died.

use super::{Message, Wire, failed, heard};
use exmy::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// How long rank 0 waits for the others to say why the run has to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it waits for them all before it looks again.
const LOOK: Duration = Duration::from_millis(5);

/// Words of every error that says that another rank is no longer there.
const ENDED: &str = "has ended";

/// What one of the others, from rank 1 on, says that went wrong, else which has ended without a word, as soon
/// as that is known. `None` if nobody says anything.
pub fn reason(wires: &mut [Box<dyn Wire>]) -> Option<Error> {
    let until = Instant::now() + PATIENCE;
    // Who said that another has ended. That is no reason: that one may have told its own.
    let mut has_told = vec![false; wires.len()];
    loop {
        let mut died = None;
        for ((wire, rank), has_told) in wires.iter_mut().zip(1..).zip(&mut has_told) {
            loop {
                match wire.listen(Duration::ZERO).map(|text| text.map(heard)) {
                    Ok(Some(Ok(Message::Failed(why)))) if !why.contains(ENDED) => {
                        return Some(failed(rank, &why));
                    }
                    Ok(Some(Ok(Message::Failed(_)))) => *has_told = true,
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(end) => {
                        if !*has_told {
                            died.get_or_insert(end);
                        }
                        break;
                    }
                }
            }
        }
        if died.is_some() || Instant::now() > until {
            return died;
        }
        thread::sleep(LOOK);
    }
}
