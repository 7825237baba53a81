//! Looking again for a moment, before a thread joins a queue.

use std::time::{Duration, Instant};

use crate::sync::{model_size, pause, yield_now};

/// How long a thread looks before it waits in a queue. By time, since a pause
/// instruction takes from 4 to 140 cycles. The model does not spin.
pub(crate) const BACK_OFF: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

/// The first pauses before a look, and the most.
pub(crate) type Pauses = (u32, u32);

/// Where a look takes the line away from those who could help. After fewer pauses, two threads
/// that do nothing but take and release take the line from each other too often.
pub(crate) const SELDOM: Pauses = (6, 64);

/// Where one that finds nothing only reads.
pub(crate) const OFTEN: Pauses = (1, 4);

/// Where all is done within the look.
pub(crate) const AT_ONCE: Pauses = (1, 1);

/// The first pauses are too short to be timed: reading the clock takes as long.
const UNTIMED: u32 = 16;

/// An exchange was lost: whoever won gets more done while it has the cache line to itself than if
/// that went to and fro. Says whether the loser is to load anew what it found, since time has
/// passed; a model has enough to explore without.
#[cold]
pub(crate) fn lost() -> bool {
    const PAUSES: u32 = model_size(4, 0) as u32;
    pause(PAUSES);
    PAUSES != 0
}

/// Looks for a moment, ever less often, while that is worth it, and lets other
/// threads run before it gives up.
#[cold]
pub(crate) fn back_off<T>(
    (first, most): Pauses,
    worth: impl Fn() -> bool,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    if BACK_OFF.is_zero() {
        return None;
    }
    let (mut start, mut pauses) = (None, first);
    while worth() {
        pause(pauses);
        if let Some(found) = look() {
            return Some(found);
        }
        let timed = pauses >= most.min(UNTIMED);
        if timed && start.get_or_insert_with(Instant::now).elapsed() >= BACK_OFF {
            break;
        }
        pauses = most.min(pauses * 2);
    }
    (0..3).find_map(|_| {
        yield_now();
        look()
    })
}
