//! The seam between taskrun and the scheduler: everything that decides which
//! task goes next stands behind these two functions.

use std::sync::Arc;

use crate::input::TaskList;
use crate::options::Options;
use crate::outcome::Finished;
use crate::progress::Progress;
use crate::session::Session;

#[path = "engine/standin.rs"]
mod standin;

/// How a run went.
#[derive(Debug)]
pub(crate) struct Report {
    /// One for each row, in the order of the file.
    pub(crate) finished: Vec<Finished>,
    /// Ctrl-C came before the end.
    pub(crate) interrupted: bool,
}

/// Plays the list in virtual time.
pub(crate) fn simulate(list: &TaskList, options: &Options) -> Vec<Finished> {
    standin::simulate(list, options)
}

/// Runs the list. Everything that the readers use is shared with them.
pub(crate) fn run(
    list: &Arc<TaskList>,
    options: &Options,
    progress: &mut Progress,
    session: &Arc<Session>,
) -> Report {
    standin::run(list, options, progress, session)
}
