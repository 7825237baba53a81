//! The list of a caller's waiting tasks: whole, and not much longer than they are many.

use std::sync::Arc;
use std::time::Duration;

use crate::limit::{Bypass, Limit};
use crate::scheduler::caller::OnFailure;
use crate::scheduler::core::Core;
use crate::scheduler::outcome::{Ending, TaskId};
use crate::scheduler::placing::Placing;
use crate::slab::Key;
use crate::wait::WakeBatch;

const NOW: Duration = Duration::ZERO;

fn core() -> (Core<u32>, Key) {
    let mut core = Core::new(1, Bypass::default()).unwrap();
    let (name, failures) = (Arc::from("main"), OnFailure::Continue);
    let caller = core.add_caller(name, 1, Limit::Unlimited, failures);
    let caller = caller.unwrap();
    (core, caller)
}

/// A task that never starts.
fn submit_paused(core: &mut Core<u32>, caller: Key, n: u32) {
    let placing = Placing {
        group: Some(core.add_group(caller, Limit::AtMost(0), 100).unwrap()),
        ..Default::default()
    };
    core.submit(caller, placing, n, NOW);
}

fn listed(core: &Core<u32>, caller: Key) -> usize {
    core.caller(caller).waiting.iter().count()
}

fn run_next(core: &mut Core<u32>, wakes: &mut WakeBatch) {
    let started = core.claim(1, NOW).unwrap();
    core.finish(started.task, Ending::Ok, NOW, wakes);
}

#[test]
fn what_waits_for_ever_keeps_no_others_in_the_list() {
    let ((mut core, caller), mut wakes) = (core(), WakeBatch::new());
    submit_paused(&mut core, caller, 0);
    assert!(core.settle(&mut wakes));
    for n in 1..1_000 {
        core.submit(caller, Placing::default(), n, NOW);
        assert!(core.settle(&mut wakes));
        run_next(&mut core, &mut wakes);
        assert!(listed(&core, caller) < 100);
    }
    assert!(core.cancel_some(caller, TaskId::LAST, NOW, &mut wakes));
    let jobs: Vec<_> = core.ended.drain(..).map(|ended| ended.job).collect();
    assert_eq!((jobs, listed(&core, caller)), (vec![0], 0));
}

#[test]
fn what_goes_back_and_forth_is_listed_once() {
    for paused in [false, true] {
        let ((mut core, caller), mut wakes) = (core(), WakeBatch::new());
        if paused {
            submit_paused(&mut core, caller, 4);
        }
        for n in 0..4 {
            core.submit(caller, Placing::default(), n, NOW);
        }
        assert!(core.settle(&mut wakes));
        let running = core.claim(1, NOW).unwrap();
        for _ in 0..1_000 {
            let claimed: Vec<_> = std::iter::from_fn(|| core.prefetch(1)).collect();
            assert_eq!(claimed.len(), 3);
            for claimed in claimed.into_iter().rev() {
                core.unclaim(claimed);
            }
            assert!(listed(&core, caller) <= 5);
        }
        core.finish(running.task, Ending::Ok, NOW, &mut wakes);
        assert!(core.cancel_some(caller, TaskId::LAST, NOW, &mut wakes));
        let mut jobs: Vec<_> = core.ended.drain(..).map(|ended| ended.job).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, [1, 2, 3, 4][..3 + usize::from(paused)]);
    }
}
