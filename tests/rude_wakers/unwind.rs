//! Handles may be used after a caught panic: whatever panics in them leaves them whole, so none of
//! them needs an `AssertUnwindSafe`.

use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use conversant::dialog::{Dialogs, Endpoint, EndpointRef, SideGroup};
use conversant::gate::{Ticket, TierGate};
use conversant::intent::{self, IntentLock};
use conversant::job_queue::{self, JobQueue};
use conversant::keyed::Keyed;
use conversant::lock_table::{LockTable, Owner};
use conversant::queue::{self, Conversation, Lane, Queue};
use conversant::scheduler::{self, Caller, Scheduler, Task};
use conversant::semaphore::{self, Semaphore};

/// A user's type that is not unwind safe itself.
type Touchy = Cell<u8>;

const fn safe<H: UnwindSafe + RefUnwindSafe>() {}

fn safe_wait<H: UnwindSafe + RefUnwindSafe>(_: &H) {}

#[test]
fn handles_are_unwind_safe() {
    safe::<Queue<Touchy>>();
    safe::<Lane<Touchy>>();
    safe::<queue::Group<Touchy>>();
    safe::<Conversation<Touchy>>();
    safe::<Keyed<u8, Touchy>>();
    safe::<JobQueue<Touchy, Touchy>>();
    safe::<job_queue::Part<Touchy, Touchy>>();
    safe::<Scheduler>();
    safe::<Caller>();
    safe::<scheduler::Group>();
    safe::<Task<Touchy, Touchy>>();
    safe::<Semaphore>();
    safe::<semaphore::Permit<&Semaphore>>();
    safe::<semaphore::Permit<Arc<Semaphore>>>();
    let semaphore = Semaphore::const_new(1);
    safe_wait(&semaphore.acquire(1));
    safe::<IntentLock>();
    safe::<intent::Guard<&IntentLock>>();
    safe::<Arc<IntentLock>>();
    safe::<LockTable<Touchy>>();
    safe::<Owner<u8>>();
    safe::<TierGate>();
    safe::<Ticket>();
    safe::<job_queue::Claim<Touchy, Touchy>>();
    safe::<Dialogs<Touchy>>();
    safe::<Endpoint<Touchy>>();
    safe::<EndpointRef<Touchy>>();
    safe::<SideGroup<Touchy>>();
}
