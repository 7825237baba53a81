//! Spinning: a thread retries for a moment before it joins a wait queue.

use std::time::{Duration, Instant};

use crate::sync::{model_size, pause, yield_now};

/// How long a thread spins before it waits in a queue. It is a time, since a pause instruction
/// takes from 4 to 140 cycles. The model does not spin.
pub(crate) const BACK_OFF: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

/// How a thread spins: the number of pauses before its first look, the most before any later look,
/// and how long.
pub(crate) type Pace = (u32, u32, Duration);

/// For a look that takes the cache line away from threads that could help. With fewer pauses, two
/// threads that do nothing but acquire and release take the line from each other too often.
pub(crate) const SELDOM: Pace = (6, 64, BACK_OFF);

/// For a look that only reads if it finds nothing.
pub(crate) const OFTEN: Pace = (1, 4, BACK_OFF);

/// For a look that itself repeats for a while.
pub(crate) const AT_ONCE: Pace = (1, 1, BACK_OFF);

/// For a lock under which much is done. Each look takes the holder's cache line away. The time is
/// some sleeps and wake-ups: threads that sleep sooner wake each other more than they work.
pub(crate) const LONG: Pace = (32, 512, Duration::from_micros(model_size(100, 0) as u64));

/// Fewer pauses than this are too short to be timed: reading the clock takes as long.
const UNTIMED: u32 = 16;

/// Pauses after a failed compare-and-swap: the winner gets more done while it keeps the cache line
/// than if the line went to and fro. Returns whether the caller is to reload the value, since time
/// has passed. A model does neither: it has enough to explore.
#[cold]
pub(crate) fn lost() -> bool {
    const PAUSES: u32 = model_size(4, 0) as u32;
    pause(PAUSES);
    PAUSES != 0
}

/// Calls `look` for a moment, ever less often, while `worth` holds. Lets other threads run before
/// it gives up.
#[cold]
pub(crate) fn back_off<T>(
    (first, most, time): Pace,
    worth: impl Fn() -> bool,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    if time.is_zero() {
        return None;
    }
    let (mut start, mut pauses) = (None, first);
    while worth() {
        pause(pauses);
        if let Some(found) = look() {
            return Some(found);
        }
        let timed = pauses >= most.min(UNTIMED);
        if timed && start.get_or_insert_with(Instant::now).elapsed() >= time {
            break;
        }
        pauses = most.min(pauses * 2);
    }
    (0..3).find_map(|_| {
        yield_now();
        look()
    })
}
