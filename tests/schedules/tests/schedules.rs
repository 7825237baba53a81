//! The number and the kinds of the schedules.

use shuttle::thread::JoinHandle;

/// Schedules of each kind, unless `SCHEDULES` in the environment says otherwise.
const SCHEDULES: usize = 2_000;

/// Preemptions that the second kind tries to place where they do harm.
const DEPTH: usize = 3;

/// Runs `run` under random schedules, and under schedules that follow random priorities with few
/// changes. A failure prints the schedule to replay.
pub fn explore(run: impl Fn() + Send + Sync + Clone + 'static) {
    let said = std::env::var("SCHEDULES");
    let schedules = said.map_or(SCHEDULES, |said| said.parse().expect("a number"));
    shuttle::check_random(run.clone(), schedules);
    shuttle::check_pct(run, schedules, DEPTH);
    println!("{schedules} random schedules and {schedules} by priority of depth {DEPTH}");
}

/// Joins all of them.
pub fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("a thread panicked");
    }
}
