//! The rows of `docs/benchmarks.md`, a file for each family.

mod dispatch;
mod gates;
mod jobs;
mod locks;
mod ranks;
mod semaphores;
mod tasks;

use crate::contender::Cell;

/// All cells, in the order of the rows.
pub fn all() -> Vec<Cell> {
    let families = [
        dispatch::cells(),
        ranks::cells(),
        semaphores::cells(),
        locks::cells(),
        gates::cells(),
        jobs::cells(),
        tasks::cells(),
    ];
    families.into_iter().flatten().collect()
}
