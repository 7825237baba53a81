//! A log for users of the crate `tracing`.

use super::log::{Event, Log};

/// A [`Log`] that sends its events to subscribers of the crate `tracing`, version 0.1.
///
/// The events have level `TRACE`, the target `conversant::scheduler`, and the message `queued`,
/// `started` or `ended`. Their other fields are `task`, `caller`, `label`, `tier` and `group`.
/// `started` also has the `worker`, and how long the task `waited`. `ended` has the `ending`, and,
/// if the task ran, the `worker` and how long it `ran`. Absent values are left out.
///
/// The subscriber is that of the thread that submits, runs or ends the task (see [`Log::log`]). If
/// it panics, the event counts as [lost](super::Status::log_lost).
///
/// ```
/// use conversant::scheduler::{CallerOptions, How, Scheduler, Tracing};
///
/// let scheduler = Scheduler::builder().workers(1).log(Tracing).build()?;
/// let caller = scheduler.caller("main", CallerOptions::default())?;
/// // Sent as "ended", with `ending` "failed", to the subscriber that the program has set.
/// caller.exec(|| Err::<(), _>("no file"))?.detach();
/// scheduler.shutdown(How::Drain).wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing;

/// An event of this name, with the fields that all of them have.
macro_rules! event {
    ($name:literal, $task:expr, $($more:tt)*) => {
        tracing::trace!(
            target: "conversant::scheduler",
            task = $task.id.get(),
            caller = &*$task.caller,
            label = $task.label.as_deref(),
            tier = $task.tier,
            group = $task.group.map(tracing::field::display),
            $($more)*
            $name
        )
    };
}

impl Log for Tracing {
    fn log(&self, event: Event) -> bool {
        match event {
            Event::Queued(task) => event!("queued", task,),
            Event::Started { task, worker, at } => {
                let waited = at.saturating_sub(task.queued);
                event!("started", task, worker, ?waited,);
            }
            Event::Ended(record) => {
                let run = record.run.as_ref();
                let worker = run.map(|run| run.worker);
                let ran = run.map(|run| run.end.saturating_sub(run.start));
                let ran = ran.map(tracing::field::debug);
                event!("ended", record.task, worker, ran, ending = %record.ending,);
            }
        }
        true
    }
}
