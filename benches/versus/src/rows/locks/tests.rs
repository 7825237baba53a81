//! The checks can fail.

use super::*;

/// Lets every thread in.
struct Open;

impl Locks for Open {
    type Access<'a> = ();

    fn access(&self) {}

    fn with(_: &mut (), _: Node, _: Mode, f: impl FnOnce()) {
        f();
    }
}

fn check(locks: impl Locks, script: Script, hold: u64) -> Result<()> {
    let shape = Shape {
        threads: 2,
        script,
        hold,
    };
    let draws = AtomicU64::new(0);
    let locks = Arc::new(locks);
    Locked {
        locks,
        shape,
        draws,
    }
    .check()
}

#[test]
fn a_lock_that_lets_everybody_in_is_caught() {
    assert!(check(Open, Script::Same(Mode::X), 20_000).is_err());
    assert!(check(Open, Script::Phases, 20_000).is_err());
    assert!(check(Open, Script::Leaves(LEAVES), 0).is_err());
}

#[test]
fn what_is_compatible_is_no_error() {
    assert!(check(Open, Script::Same(Mode::S), 0).is_ok());
    assert!(check(Open, Script::Same(Mode::Ix), 0).is_ok());
}
