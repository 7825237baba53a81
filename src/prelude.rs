//! What most programs begin with: `use conversant::prelude::*;`.
//!
//! Names that two modules share, such as their groups, events and errors, are not in the prelude:
//!
//! ```
//! use conversant::prelude::*;
//! use conversant::queue::*;
//!
//! fn waits(queue: &Queue<u32>, why: Why) -> usize {
//!     queue.groups().filter(|group| group.why == why).count()
//! }
//! # assert_eq!(waits(&Queue::new(), Why::Held), 0);
//! ```

#[cfg(feature = "dialog")]
pub use crate::dialog::{Dialogs, Endpoint};
#[cfg(feature = "locks")]
pub use crate::gate::TierGate;
#[cfg(feature = "locks")]
pub use crate::intent::IntentLock;
#[cfg(feature = "jobs")]
pub use crate::job_queue::{Claim, JobQueue};
pub use crate::keyed::Keyed;
pub use crate::limit::{Bypass, DEFAULT_LEVEL, Limit};
#[cfg(feature = "locks")]
pub use crate::lock_table::{LockTable, Owner, Resource};
#[cfg(feature = "locks")]
pub use crate::modes::Mode;
pub use crate::queue::{Conversation, Delivery, Lane, Queue, Turn};
pub use crate::semaphore::{Permit, Semaphore};
pub use crate::wait::Wait;

#[cfg(all(feature = "scheduler", not(loom)))]
pub use crate::scheduler::{Caller, CallerOptions, How, OnFailure, Scheduler, Task};
#[cfg(not(loom))]
pub use crate::ticker::Ticker;
