//! The rows of `PERFORMANCE.md`, a file for each family.

mod dispatch;
mod gates;
mod jobs;
mod locks;
mod ranks;
mod semaphores;

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
    ];
    families.into_iter().flatten().collect()
}
