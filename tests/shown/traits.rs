//! The traits that users expect, alike in like types.

use std::fmt::{Debug, Display};
use std::hash::{Hash, RandomState};
use std::iter::FusedIterator;
use std::panic::{RefUnwindSafe, UnwindSafe};

use conversant::dialog::{EndpointRef, Fault, SideGroup};
use conversant::error::{Closed, OutOfRange, Stale, Stalled, TierGoesDown, TimedOut};
use conversant::job_queue::{Expired, JobQueue, Place, PushReason, Scope};
use conversant::prelude::*;
use conversant::queue::{Completed, GroupId, LaneError, NoTurn, SendReason, Turns};
use conversant::scheduler::{How, OutcomeError, Reason, SyncError, Verdict};
use conversant::wait::WaiterState;
use conversant::{dialog, gate, intent, job_queue, lock_table, queue, scheduler, semaphore};

use crate::debug::Row;

/// Neither printable nor comparable.
struct Bare;

fn value<T: Clone + Debug + Display + Eq + Hash>() {}
fn id<T: Copy + Ord + Hash + Debug + Display>() {}
fn state<T: Clone + Eq + Debug>() {}
fn handle<T: Send + Sync + Debug + Unpin + UnwindSafe + RefUnwindSafe>() {}
fn items<T: FusedIterator + ExactSizeIterator + Debug>() {}

#[test]
fn errors_and_reasons_can_be_keys() {
    for _ in [
        value::<Closed> as fn(),
        value::<OutOfRange>,
        value::<Stale>,
        value::<Stalled>,
        value::<TierGoesDown>,
        value::<TimedOut>,
        value::<LaneError>,
        value::<NoTurn>,
        value::<SendReason>,
        value::<queue::NoMore>,
        value::<queue::Poisoned>,
        value::<queue::Why>,
        value::<Expired>,
        value::<PushReason>,
        value::<Scope>,
        value::<job_queue::Refused>,
        value::<job_queue::JobState>,
        value::<job_queue::Why>,
        value::<dialog::Refused>,
        value::<Fault>,
        value::<intent::Deadlock>,
        value::<intent::NotWeaker>,
        value::<intent::WouldBlock>,
        value::<semaphore::AcquireError>,
        value::<lock_table::ReleaseError>,
        value::<Reason>,
        value::<SyncError>,
        value::<OutcomeError>,
        value::<WaiterState>,
    ] {}
}

#[test]
fn like_types_have_like_traits() {
    id::<GroupId>();
    id::<job_queue::JobId>();
    id::<scheduler::TaskId>();
    id::<scheduler::GroupId>();
    id::<conversant::simulator::CallerId>();
    id::<lock_table::OwnerId>();
    id::<dialog::EndpointId>();
    state::<scheduler::Status>();
    state::<semaphore::Snapshot>();
    state::<semaphore::Waiter>();
    handle::<Ticker>();
    handle::<Queue<Bare>>();
    handle::<EndpointRef<Bare>>();
    items::<Turns<'_, Bare>>();
    items::<Completed<Bare>>();
    _ = gate::Counts::default();
    _ = intent::Counts::default();
    _ = semaphore::Counts::default();
    fn shown<T: Debug + Copy>() {}
    shown::<SideGroup<'_, Bare>>();
    fn key<T: Eq + Hash>() {}
    key::<EndpointRef<Bare>>();
}

/// A statement that drops at once what ends by that has a warning.
#[test]
#[deny(unfulfilled_lint_expectations)]
fn what_ends_when_it_is_dropped_must_be_used() -> Result<(), Box<dyn std::error::Error>> {
    #[expect(unused_must_use)]
    Queue::<Bare>::builder().build()?;
    let queue = Queue::<Bare>::new();
    #[expect(unused_must_use)]
    queue.lane(1, 1)?;
    let lane = queue.lane(1, 1)?;
    #[expect(unused_must_use)]
    lane.group(1, 1)?;
    #[expect(unused_must_use)]
    lane.conversation()?;
    #[expect(unused_must_use)]
    Keyed::<u8, Bare>::with(lane, 1, 1, RandomState::new())?;
    #[expect(unused_must_use)]
    JobQueue::<u8, Bare>::builder().build()?;
    #[expect(unused_must_use)]
    Scheduler::builder().build()?;
    let scheduler = Scheduler::builder().build()?;
    #[expect(unused_must_use)]
    scheduler.caller("", CallerOptions::default())?;
    let caller = scheduler.caller("", CallerOptions::default())?;
    #[expect(unused_must_use)]
    caller.group(1, 1)?;
    #[expect(unused_must_use)]
    lock_table::LockTable::<Row>::new().owner(0);
    Ok(())
}

/// Whether it keeps to a width.
fn keeps_width(shown: impl Display) {
    let text = shown.to_string();
    assert_eq!(format!("{shown:>40}"), format!("{text:>40}"));
    assert_eq!(format!("{shown:-<40}|"), format!("{text:-<40}|"));
}

#[test]
fn words_and_ids_keep_to_a_width() {
    let queue = Queue::new();
    let lane = queue.lane(1, Limit::Unlimited).unwrap();
    let group = lane.conversation().unwrap();
    group.send(()).unwrap();
    let jobs = JobQueue::new();
    let job = jobs.push(1, (), Place::new()).unwrap();
    let scheduler = Scheduler::builder().build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    keeps_width(Limit::Unlimited);
    keeps_width(Limit::AtMost(3));
    keeps_width(Bypass::AtMost(3));
    keeps_width(queue::Why::Held);
    keeps_width(group.group_id());
    keeps_width(job);
    keeps_width(jobs.status(job).unwrap().state);
    keeps_width(job_queue::JobState::Dead);
    keeps_width(caller.group(1, 1).unwrap().id());
    keeps_width(scheduler::Ending::Ok);
    keeps_width(How::Drain);
    keeps_width(Stale);
}

#[test]
fn errors_with_a_text_of_yours_keep_to_a_width() {
    let queue = Queue::builder().capacity(0).build().unwrap();
    let sender = queue.lane(1, Limit::Unlimited).unwrap();
    keeps_width(sender.conversation().unwrap().send(()).unwrap_err());
    let jobs = JobQueue::builder().capacity(0).build().unwrap();
    keeps_width(jobs.push(1, (), Place::new()).unwrap_err());
    let scheduler = Scheduler::builder().build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let after = scheduler::Place::new().tier(2);
    let group = caller.group(0, 1).unwrap();
    let task = caller.exec_with(after.group(&group), || ()).unwrap();
    let rejected = caller.exec_with(after.tier(1).group(&group), || ());
    keeps_width(rejected.unwrap_err());
    assert!(task.cancel());
    keeps_width(Verdict::<(), _>::Failed("no file"));
    keeps_width(Verdict::<(), &str>::Panicked(Box::new("no file")));
    keeps_width(Verdict::<(), &str>::Cancelled);
    keeps_width(Fault::new(7, "no file").unwrap());
    keeps_width(lock_table::LockError::<u32>::WouldBlock);
}
