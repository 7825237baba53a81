//! The figures of the specification on the scheduler's own core, in virtual
//! time: SEMANTICS A, B and E, the gate's rule as a caller sees it, and the
//! effects of a failure.

mod control;
mod failures;
mod futures;
mod gate;
mod order;
mod sim;
mod system_a;
mod system_b;
