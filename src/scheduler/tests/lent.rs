//! Tasks of a serial group that a worker has together.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::runs::{NOW, Worker, World, awaits};
use super::waiting;
use crate::backlog::{Blocked, GroupKey};
use crate::scheduler::cell::{DetachedCell, Function, Job};
use crate::scheduler::local_queue::{Report, next};
use crate::scheduler::outcome::Ending;
use crate::scheduler::task_state::{Claimed, Placing};

/// A synchronize covers all tasks that are claimed together, or none.
#[test]
fn lent_tasks_are_covered_if_the_first_is() {
    let mut world = World::new(1);
    let group = world.serial_group();
    (0..4).for_each(|_| world.submit(Some(group), 0));
    world.post(4);
    assert!(world.synchronize().is_pending());
    (0..4).for_each(|_| world.submit(Some(group), 0));
    let mut claimed = VecDeque::new();
    assert!(world.state.core.prefetch(20, 20, &mut claimed).1 > 1);
    let Some(Claimed::Several(lent)) = claimed.pop_front() else {
        panic!("several of a group");
    };
    assert!(lent.iter().map(|task| task.id().0).eq(1..=4));
    world.state.core.unclaim(Claimed::Several(lent));
    assert_eq!(world.drain().len(), 12);
    world.check_empty();
}

/// The worker runs the first. In tiers, groups are not claimed together.
#[test]
fn tasks_behind_the_first_are_covered_if_that_is() {
    for tier in [0, 1] {
        let mut world = World::new(1);
        let group = world.serial_group();
        (0..2).for_each(|_| world.submit(Some(group), tier));
        (0..2).for_each(|_| world.submit(None, tier));
        assert!(world.synchronize().is_pending());
        (0..2).for_each(|_| world.submit(Some(group), tier));
        let worker = world.claim(1, 9).unwrap();
        assert_eq!(world.rest(worker), [1, 2, 3, 4]);
        assert_eq!(world.drain().len(), 2);
        world.check_empty();
    }
}

/// Tasks 1 to 3, 4 to 8 of a serial group, and 9 to 16: the worker has twelve of them.
fn three_and_a_group(world: &mut World) -> Worker {
    world.post(3);
    let group = world.serial_group();
    (0..5).for_each(|_| world.submit(Some(group), 0));
    world.post(8);
    world.claim(1, 12).unwrap()
}

#[test]
fn lent_tasks_go_back_in_their_order() {
    for begun in 3..8 {
        let mut world = World::new(1);
        let mut worker = three_and_a_group(&mut world);
        (1..begun).for_each(|_| assert!(worker.next()));
        world.state.exact(&mut world.wakes);
        let unfinished = 16 - (begun - 1);
        assert_eq!(
            (world.state.core.unfinished, worker.id()),
            (unfinished, begun)
        );
        assert_eq!(world.state.core.backlog.in_flight(), 1);
        assert!(!worker.next() && world.finish(&worker, Ending::Ok).is_none());
        let mut order = world.drain();
        order.retain(|&id| id <= 8);
        assert_eq!(order, (begun + 1..=8).collect::<Vec<_>>());
        world.check_empty();
    }
}

/// It is claimed with the first, which is of the group.
#[test]
fn tasks_behind_the_first_of_a_group_go_back_in_their_order() {
    for (begun, tier) in (1..=5).flat_map(|begun| [(begun, 0), (begun, 1)]) {
        let mut world = World::new(1);
        let group = world.serial_group();
        (0..5).for_each(|_| world.submit(Some(group), tier));
        (0..3).for_each(|_| world.submit(None, tier));
        let mut worker = world.claim(1, 9).unwrap();
        (1..begun).for_each(|_| assert!(worker.next()));
        assert_eq!(worker.id(), begun);
        world.state.exact(&mut world.wakes);
        let core = &mut world.state.core;
        let unfinished = 8 - (begun - 1);
        assert_eq!((core.unfinished, core.backlog.in_flight()), (unfinished, 1));
        assert!(!worker.next() && world.finish(&worker, Ending::Ok).is_none());
        let mut order = world.drain();
        order.retain(|&id| id <= 5);
        assert_eq!(order, (begun + 1..=5).collect::<Vec<_>>());
        world.check_empty();
    }
}

#[test]
fn the_first_that_a_worker_has_runs_when_the_others_have_gone_back() {
    let mut world = World::new(1);
    let worker = three_and_a_group(&mut world);
    let status = world.state.exact(&mut world.wakes).status(0);
    let running: Vec<_> = status.running.iter().map(|task| task.id).collect();
    assert_eq!(running, [worker.tag.id]);
    assert_eq!(status.waiting.len(), 15);
}

/// What a synchronize waits for is counted so.
#[test]
fn tasks_that_a_worker_has_claimed_wait_no_more() {
    let mut world = World::new(1);
    let _worker = three_and_a_group(&mut world);
    assert_eq!(world.state.core.caller(world.caller).waiting(), 4);
    let mut world = World::new(1);
    let _worker = six_groups(&mut world);
    assert_eq!(world.state.core.caller(world.caller).waiting(), 0);
}

/// The worker goes on with the tasks behind it, which take over its unit.
#[test]
fn a_failure_among_lent_tasks_leaves_the_others_their_turn() {
    for fails in 1..=8 {
        let mut world = World::new(1);
        let mut worker = three_and_a_group(&mut world);
        world.skip_nothing();
        (1..fails).for_each(|_| assert!(worker.next()));
        let next = world.finish(&worker, Ending::Failed);
        let next = next.expect("it has more");
        assert_eq!(next.id(), fails + 1);
        // Those before the group, one of that, and four behind it.
        let before = 3_u64.saturating_sub(fails);
        let group = u64::from(fails < 8);
        assert_eq!(world.state.core.backlog.in_flight(), before + group + 4);
        assert_eq!(world.rest(next), (fails + 1..=12).collect::<Vec<_>>());
        assert_eq!(world.drain(), [13, 14, 15, 16]);
        let summary = world.summary();
        assert_eq!((summary.ok, summary.failed), (15, 1));
        world.check_empty();
    }
}

/// The drop of a skipped task may wait for one of them.
#[test]
fn a_failure_that_skips_others_sends_lent_tasks_back() {
    for fails in 1..=8 {
        let mut world = World::new(1);
        let mut worker = three_and_a_group(&mut world);
        world.submit(None, 1);
        (1..fails).for_each(|_| assert!(worker.next()));
        assert!(world.finish(&worker, Ending::Failed).is_none());
        assert_eq!(world.state.core.backlog.in_flight(), 0);
        let mut others = world.drain();
        others.sort_unstable();
        assert!(others.into_iter().eq(fails + 1..=16));
        let summary = world.summary();
        let counts = (summary.ok, summary.failed, summary.skipped);
        assert_eq!(counts, (15, 1, 1));
        world.check_empty();
    }
}

/// Six groups with tasks 1 and 2, 3 and 4, up to 11 and 12: the worker has all of them.
fn six_groups(world: &mut World) -> (Vec<GroupKey>, Worker) {
    let groups: Vec<_> = (0..6).map(|_| world.serial_group()).collect();
    for &group in &groups {
        (0..2).for_each(|_| world.submit(Some(group), 0));
    }
    let worker = world.claim(1, 12).unwrap();
    (groups, worker)
}

#[test]
fn groups_that_have_ended_are_free_and_those_not_begun_go_back() {
    for begun in 1..=12 {
        let mut world = World::new(1);
        let (groups, mut worker) = six_groups(&mut world);
        (1..begun).for_each(|_| assert!(worker.next()));
        assert_eq!(worker.id(), begun);
        let core = world.state.exact(&mut world.wakes);
        let left = (core.unfinished, core.backlog.in_flight());
        assert_eq!(left, (13 - begun, 1));
        for (n, &group) in groups.iter().enumerate() {
            // The number of its last.
            let last = 2 * n as u64 + 2;
            let why = match last {
                _ if last < begun => Blocked::Empty,
                _ if last <= begun + 1 => Blocked::GroupLimit,
                _ => Blocked::InLine,
            };
            assert_eq!(core.backlog.why(group), why, "{begun} of group {n}");
        }
        let held = worker.tag.holds.group;
        assert_eq!(held, Some(groups[(begun as usize - 1) / 2]));
        assert!(!worker.next() && world.finish(&worker, Ending::Ok).is_none());
        let mut order = world.drain();
        order.sort_unstable();
        assert!(order.into_iter().eq(begun + 1..=12));
        assert_eq!(world.summary().ok, 12);
        world.check_empty();
    }
}

#[test]
fn a_claim_of_several_groups_is_not_larger_than_asked_for() {
    for most in 1..12 {
        let mut world = World::new(1);
        let (_, worker) = six_groups(&mut world);
        world.state.exact(&mut world.wakes);
        assert_eq!(world.rest(worker), [1]);
        let worker = world.claim(1, most).unwrap();
        assert!(world.rest(worker).len() as u32 == most);
        world.drain();
        world.check_empty();
    }
}

/// The future is claimed by itself, and has an entry.
#[test]
fn a_future_is_not_among_several_groups() {
    let mut world = World::new(1);
    world.post(1);
    for future in [false, true, false] {
        let group = Some(world.serial_group());
        let placing = Placing {
            group,
            ..Placing::default()
        };
        let job = if future { awaits(None) } else { world.job() };
        world.state.core.submit(world.caller, placing, job, NOW);
    }
    let worker = world.claim(1, 9).unwrap();
    for claimed in &worker.queue.lock().waiting {
        if let Claimed::Several(several) = claimed {
            assert!(several.iter().all(|task| !task.is_future()));
        }
    }
    let status = world.state.exact(&mut world.wakes).status(0);
    let groups: BTreeSet<_> = status.waiting.iter().map(|task| task.group).collect();
    assert_eq!(groups.len(), 3, "each holds what is its own");
    assert!(world.finish(&worker, Ending::Ok).is_none());
    let mut worker = world.claim(1, 9).unwrap();
    let is_future: Vec<_> = std::iter::from_fn(|| {
        let future = worker.next().then_some(worker.tag.future)?;
        Some(future.is_some())
    })
    .collect();
    assert_eq!(is_future, [true, false]);
    assert!(world.finish(&worker, Ending::Ok).is_none());
    world.check_empty();
}

#[test]
fn a_failure_in_one_of_several_groups_leaves_the_others_their_turn() {
    for fails in 1..12 {
        let mut world = World::new(1);
        let (_, mut worker) = six_groups(&mut world);
        world.skip_nothing();
        (1..fails).for_each(|_| assert!(worker.next()));
        let next = world.finish(&worker, Ending::Failed).unwrap();
        assert_eq!(next.id(), fails + 1);
        let groups = (12 - fails).div_ceil(2);
        assert_eq!(world.state.core.backlog.in_flight(), groups);
        assert!(world.rest(next).into_iter().eq(fails + 1..=12));
        let summary = world.summary();
        assert_eq!((summary.ok, summary.failed), (11, 1));
        world.check_empty();
    }
}

/// Meanwhile new tasks have arrived, in the last group first.
#[test]
fn groups_of_one_worker_take_their_next_turns_in_the_order_of_their_ends() {
    let mut world = World::new(1);
    let (groups, worker) = six_groups(&mut world);
    for &group in groups.iter().rev() {
        world.submit(Some(group), 0);
    }
    assert!(world.rest(worker).into_iter().eq(1..=12));
    assert_eq!(world.drain(), [18, 17, 16, 15, 14, 13]);
    world.check_empty();
}

/// The last task of each group gives its unit back.
#[test]
fn two_groups_of_one_worker_are_free_in_the_end() {
    let mut world = World::new(1);
    world.post(1);
    for _ in 0..2 {
        let group = world.serial_group();
        (0..3).for_each(|_| world.submit(Some(group), 0));
    }
    world.post(9);
    let worker = world.claim(1, 9).unwrap();
    assert_eq!(world.rest(worker), (1..=9).collect::<Vec<_>>());
    assert_eq!(world.state.core.backlog.in_flight(), 0);
    world.drain();
    world.check_empty();
}

/// It owns the unit of the task before it, even if it is reported by itself.
#[test]
fn a_task_that_took_over_a_unit_gives_it_back() {
    let mut world = World::new(1);
    let group = world.serial_group();
    (0..2).for_each(|_| world.submit(Some(group), 0));
    world.post(2);
    let first = world.state.claim(1, 9, NOW, &mut world.wakes).unwrap();
    let mut ran = Report::new(first.tag, NOW);
    assert!(next(&world.state.queue(1), &mut ran).is_some());
    world.state.exact(&mut world.wakes);
    assert_eq!((ran.tag.id.0, world.state.core.unfinished), (2, 3));
    let next = world.state.finish(1, ran, NOW, &mut world.wakes);
    assert!(next.is_none());
    assert_eq!(world.state.core.backlog.in_flight(), 0);
    assert_eq!(world.drain(), [3, 4]);
    world.check_empty();
}

/// Eight tasks: every other one has a label, or none has; without groups, or two in each of four.
#[test]
fn the_status_shows_each_task_of_a_claim_with_its_own_label_and_start() {
    for (labels, grouped, begun) in (0..2).flat_map(|labels| {
        (0..2).flat_map(move |grouped| (1..7).map(move |begun| (labels == 0, grouped == 0, begun)))
    }) {
        let mut world = World::new(1);
        let groups: Vec<_> = (0..4).map(|_| world.serial_group()).collect();
        let group = |id: u64| grouped.then(|| groups[(id as usize - 1) / 2]);
        let label = |id: u64| (labels && id.is_multiple_of(2)).then_some("even");
        let task = |id| {
            let job: Arc<dyn Job> = Arc::new(DetachedCell::new(
                Function(|| Ok::<_, ()>(())),
                label(id).map(Arc::from),
            ));
            Some(waiting(id, false, job))
        };
        let each = if grouped { 2 } else { 8 };
        for first in (1..9).step_by(each) {
            let placing = Placing {
                group: group(first),
                ..Placing::default()
            };
            let run = (first..).take(each).map(task).collect();
            let posted = super::posted(world.caller, placing, run);
            world.state.core.submit_posted(posted);
        }
        let first = world.state.claim(1, 9, NOW, &mut world.wakes).unwrap();
        let queue = world.state.queue(1);
        let mut ran = Report::new(first.tag, NOW);
        for id in 2..3 + begun {
            ran.end = Duration::from_secs(id);
            assert!(next(&queue, &mut ran).is_some());
            assert_eq!((ran.tag.id.0, ran.start), (id, ran.end));
            assert_eq!(ran.tag.holds.group, group(id));
        }
        let status = world.state.exact(&mut world.wakes).status(0);
        let [running] = &status.running[..] else {
            panic!("one runs");
        };
        let (id, start) = (running.id.0, running.start);
        assert_eq!((id, start), (2 + begun, Duration::from_secs(id)));
        assert_eq!(running.label.as_deref(), label(id));
        assert_eq!(running.group.map(|group| group.key), group(id));
        assert_eq!(world.state.core.unfinished, 8 - (id - 1));
    }
}

/// The claim goes back first, with the others of its group.
#[test]
fn a_claimed_task_that_has_not_begun_is_bumped() {
    for serial in [false, true] {
        let mut world = World::new(1);
        let group = Some(world.serial_group()).filter(|_| serial);
        (0..5).for_each(|_| world.submit(group, 0));
        (0..3).for_each(|_| world.submit(None, 0));
        let mut worker = world.claim(1, 4).unwrap();
        let third = world.at(3);
        world.state.bump(third, 7, &mut world.wakes).unwrap();
        assert!(!worker.next() && world.finish(&worker, Ending::Ok).is_none());
        assert_eq!(world.drain()[0], if serial { 2 } else { 3 });
        world.check_empty();
    }
}
