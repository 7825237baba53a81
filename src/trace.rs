//! Rare events, for users of the crate `tracing`; without that feature they are not sent.
//!
//! An event is sent under no lock, and after the change that it reports: a subscriber is the
//! user's code. If it panics, that ends here.

#![cfg_attr(not(feature = "tracing"), allow(unused))]

use std::fmt::Display;

/// Sends one.
#[cfg(feature = "tracing")]
macro_rules! emit {
    ($level:ident, $target:expr, $($event:tt)+) => {
        emit(|| tracing::$level!(target: $target, $($event)+))
    };
}

#[cfg(feature = "tracing")]
fn emit(event: impl FnOnce()) {
    crate::wait::contained(event);
}

#[cfg(not(feature = "tracing"))]
macro_rules! emit {
    ($($event:tt)+) => {};
}

/// Something that prints as its name.
type Name<'a> = &'a dyn Display;

const QUEUE: &str = "conversant::queue";
const JOB_QUEUE: &str = "conversant::job_queue";
const SCHEDULER: &str = "conversant::scheduler";
const LOCK_TABLE: &str = "conversant::lock_table";

/// The next turn of a queue's group goes first.
pub(crate) fn group_bumped(group: Name<'_>, tag: u64, level: u8) {
    emit!(debug, QUEUE, %group, tag, level, "bumped");
}

/// The limit of a queue's group has become 0.
pub(crate) fn group_paused(group: Name<'_>, tag: u64) {
    emit!(debug, QUEUE, %group, tag, why = "paused", "blocked");
}

/// A message of a queue's group has failed, and so the group pauses.
pub(crate) fn group_backs_off(group: Name<'_>, tag: u64, number: u64, attempts: u32) {
    emit!(debug, QUEUE, %group, tag, number, attempts, why = "backing off", "blocked");
}

/// A message of a queue's group has failed for the last time.
pub(crate) fn group_poisoned(group: Name<'_>, tag: u64, number: u64, attempts: u32) {
    emit!(warn, QUEUE, %group, tag, number, attempts, "poisoned");
}

/// The next task of a scheduler's group goes first.
pub(crate) fn tasks_bumped(group: Name<'_>, level: u8) {
    emit!(debug, SCHEDULER, %group, level, "bumped");
}

/// A task of a scheduler goes first, or the next one of its group.
pub(crate) fn task_bumped(task: u64, level: u8) {
    emit!(debug, SCHEDULER, task, level, "bumped");
}

/// The limit of a scheduler's group has become 0.
pub(crate) fn tasks_paused(group: Name<'_>) {
    emit!(debug, SCHEDULER, %group, why = "paused", "blocked");
}

/// A task waits for others of its scheduler, and its worker's thread sleeps.
pub(crate) fn task_blocked(task: u64, label: Option<&str>, worker: u32) {
    emit!(
        debug,
        SCHEDULER,
        task,
        label,
        worker,
        why = "waits for others",
        "blocked"
    );
}

/// Such a wait gives up, since nothing could go on.
pub(crate) fn task_stalled(task: u64, label: Option<&str>, worker: u32) {
    emit!(warn, SCHEDULER, task, label, worker, "deadlock");
}

/// A job of a job queue has failed for the last time.
pub(crate) fn job_died(job: Name<'_>, attempts: u32) {
    emit!(warn, JOB_QUEUE, %job, attempts, "dead");
}

/// An owner of locks waits for one.
pub(crate) fn owner_blocked(owner: Name<'_>, mode: Name<'_>) {
    emit!(debug, LOCK_TABLE, %owner, %mode, "blocked");
}

/// An owner of locks, which waits in this cycle, gives up.
pub(crate) fn deadlock(victim: Name<'_>, cycle: Name<'_>) {
    emit!(warn, LOCK_TABLE, %victim, %cycle, "deadlock");
}
