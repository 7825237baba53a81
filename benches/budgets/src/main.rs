//! One program per path, for counting instructions. `.ci/budgets` runs each under
//! `valgrind --tool=callgrind` for two numbers of rounds, and divides the difference by the
//! operations, so that the start and the end of a run do not count. One thread; every run of one
//! build is the same.
//!
//! `budgets` alone lists the paths; `budgets PATH ROUNDS` runs one and prints how many operations a
//! round has. For `PATH@FUNCTION` only the instructions in that function count.

mod jobs;
mod locks;
mod queue;
mod tasks;
mod waits;

/// A path and its name.
type Path = (&'static str, fn(rounds: usize) -> usize);

/// Groups, each with one message a round.
const GROUPS: usize = 64;

fn main() {
    let paths = [
        queue::PATHS,
        jobs::PATHS,
        locks::PATHS,
        waits::PATHS,
        tasks::PATHS,
    ]
    .concat();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args
        .first()
        .and_then(|name| paths.iter().find(|p| p.0 == name));
    let rounds = args.get(1).and_then(|rounds| rounds.parse().ok());
    match (path, rounds) {
        (Some((_, run)), Some(rounds)) => println!("{}", run(rounds)),
        _ => paths.iter().for_each(|(name, _)| println!("{name}")),
    }
}
