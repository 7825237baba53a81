//! What most programs begin with: `use conversant::prelude::*;`.
//!
//! Names that two modules share, such as their groups and errors, stay where they
//! are.

pub use crate::dialog::{Dialogs, Endpoint, Event};
pub use crate::gate::TierGate;
pub use crate::intent::IntentLock;
pub use crate::job_queue::{Claim, JobQueue};
pub use crate::keyed::Keyed;
pub use crate::limit::{Bypass, Limit};
pub use crate::modes::Mode;
pub use crate::queue::{Conversation, Delivery, Lane, Queue, Turn};
pub use crate::semaphore::{Permit, Semaphore};
pub use crate::wait::Wait;

#[cfg(not(loom))]
pub use crate::lock_table::{LockTable, Owner, Resource};
#[cfg(not(loom))]
pub use crate::scheduler::{Caller, CallerOptions, Scheduler, Task};
