//! The figures of the specification on the scheduler's own core, in virtual
//! time: SEMANTICS A, B and E, the gate's rule as a caller sees it, and what a
//! failure does.

#[path = "scheduler_figures/failures.rs"]
mod failures;
#[path = "scheduler_figures/gate.rs"]
mod gate;
#[path = "scheduler_figures/order.rs"]
mod order;
#[path = "scheduler_figures/sim.rs"]
mod sim;
#[path = "scheduler_figures/system_a.rs"]
mod system_a;
#[path = "scheduler_figures/system_b.rs"]
mod system_b;
