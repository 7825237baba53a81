//! Watching the word. If a notified thread polls while another thread has taken what it waits for,
//! it is no longer notified, and the next release must wake it again, at a cost of ten cache
//! misses. So it watches for a chance before it polls; meanwhile releases need not serve it.

use std::time::{Duration, Instant};

use crate::sync::spin_loop;
use crate::wait::BACK_OFF;

/// The longest time for which a notified thread watches others overtake it.
/// It covers as many short critical sections as a bound allows.
pub(super) const WATCH: Duration = Duration::from_micros(100);

/// What the word says at one moment about a claim in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(super) bits: u64,
    pub(super) overtakings: u32,
    /// Whether what is asked for is free: a hint.
    pub(super) is_free: bool,
}

/// Watches the word by `look`, which returns `None` if the front is about to be handed its claim.
/// Returns then, or if it has been handed that; if what is asked for stays free; if nothing changes
/// for a moment; or when `WATCH` has passed.
#[inline]
pub(super) fn watch(look: impl Fn() -> Option<Look>) {
    if !BACK_OFF.is_zero() {
        watch_by(look, Instant::now);
    }
}

/// The same, by this clock.
#[inline]
pub(super) fn watch_by(look: impl Fn() -> Option<Look>, clock: impl Fn() -> Instant) {
    let Some(mut seen) = look() else {
        return;
    };
    let begun = clock();
    let (mut since, mut free) = (begun, false);
    loop {
        for _ in 0..8 {
            spin_loop();
        }
        let now = look().filter(|now| now.overtakings >= seen.overtakings);
        let Some(now) = now.filter(|now| !(free && now.is_free)) else {
            return;
        };
        free = now.is_free;
        let time = clock();
        if time - begun >= WATCH || (now == seen && time - since >= BACK_OFF) {
            return;
        }
        if now != seen {
            (seen, since) = (now, time);
        }
    }
}
