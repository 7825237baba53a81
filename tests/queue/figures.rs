//! The figures of SEMANTICS 1 that a queue shows, in virtual time, and the queue compared with the
//! reference simulator: the same events, one by one, and the fairness bound on every dispatch.

use crate::oracle;
use crate::queue_support;

use conversant::limit::{Bypass, Limit};

use oracle::random::Random;
use oracle::{Happening, bound, sheet};
use queue_support::tasks::{Event, Job, Manner, Run, Setting, run};
use queue_support::{plain, serve, take};

fn readers(readers: usize) -> Setting<'static> {
    Setting {
        readers,
        bypass: Bypass::default(),
        cap: Limit::Unlimited,
        weight: &|_| 1,
        limit: Limit::SERIAL,
        manner: Manner::LetGo,
    }
}

fn job(tier: u32, group: Option<&str>, duration: u64) -> Job {
    Job {
        caller: "main".into(),
        tier,
        group: group.map(Into::into),
        bump: None,
        arrive: 0,
        duration,
    }
}

fn w10(group: Option<&str>) -> Vec<Job> {
    let tiers = [
        (100, 4, 10_100),
        (200, 2, 9_200),
        (300, 1, 8_300),
        (400, 2, 7_400),
        (500, 1, 6_500),
    ];
    let tier = |&(tier, count, duration)| (0..count).map(move |_| job(tier, group, duration));
    tiers.iter().flat_map(tier).collect()
}

fn makespan(run: &Run) -> u64 {
    run.spans.iter().map(|&(_, end)| end).max().unwrap()
}

/// Rows, from 1, that run at this time.
fn running(run: &Run, at: u64) -> Vec<usize> {
    let rows = run.spans.iter().zip(1..);
    let running = rows.filter(|&(&(start, end), _)| start <= at && at < end);
    running.map(|(_, id)| id).collect()
}

#[test]
fn b1_each_message_is_claimed_once_and_the_next_at_once() {
    let (queue, lane) = plain();
    let conversations: Vec<_> = (0..3).map(|_| lane.conversation().unwrap()).collect();
    for (n, conversation) in conversations.iter().enumerate() {
        conversation.send(n).unwrap();
    }
    // A claim does not wait for another reader's claim.
    let a = take(&queue).unwrap();
    let b = take(&queue).unwrap();
    assert_eq!((*a, *b), (0, 1));
    // A finished task leaves the queue, and its reader takes the next at once.
    assert_eq!(a.complete(), 0);
    let c = take(&queue).unwrap();
    assert_eq!(*c, 2);
    assert!(take(&queue).is_none());
    _ = (b.complete(), c.complete());
    let end = queue.snapshot();
    assert_eq!((end.waiting, end.in_flight), (0, 0));
}

#[test]
fn b2_two_readers_and_ten_tasks() {
    let jobs: Vec<Job> = (0..10).map(|_| job(0, None, 10_000)).collect();
    for manner in [Manner::LetGo, Manner::Hold] {
        let run = run(
            &jobs,
            &Setting {
                manner,
                ..readers(2)
            },
        );
        for (number, &(start, end)) in run.spans.iter().enumerate() {
            let wave = number as u64 / 2 * 10_000;
            assert_eq!((start, end), (wave, wave + 10_000), "task {}", number + 1);
        }
        assert_eq!(makespan(&run), 50_000);
        for reader in 1..=2 {
            let dispatched =
                |e: &&(u64, Event)| matches!(e.1, Event::Dispatch(r, _) if r == reader);
            assert_eq!(run.events.iter().filter(dispatched).count(), 5);
        }
        assert_eq!(running(&run, 35_000), [7, 8]);
    }
}

/// A failed task is not done, and its failure does not break the claim.
#[test]
fn b_fault_a_failing_task_comes_back() {
    let (queue, lane) = plain();
    let conversation = lane.conversation().unwrap();
    conversation.send_all(["fails", "works"]).unwrap();
    let mut handled = Vec::new();
    while let Some(delivery) = take(&queue) {
        handled.push((*delivery, delivery.attempt()));
        let handler = std::panic::AssertUnwindSafe(|| {
            assert!(*delivery != "fails" || delivery.attempt() > 2, "on purpose");
            delivery.complete()
        });
        _ = std::panic::catch_unwind(handler);
    }
    assert_eq!(
        handled,
        [("fails", 1), ("fails", 2), ("fails", 3), ("works", 1)]
    );
}

/// Order is not luck: equal work is served in order of arrival, every time.
#[test]
fn b_fault_order_by_luck() {
    let (queue, lane) = plain();
    let conversations: Vec<_> = (0..1000).map(|_| lane.conversation().unwrap()).collect();
    for (n, conversation) in conversations.iter().enumerate().rev() {
        conversation.send(n).unwrap();
    }
    assert!(serve(&queue).into_iter().eq((0..1000).rev()));
}

/// The lane's tiers are the gate: W10 without gate locks, and without a reader that waits.
#[test]
fn c1_and_a2_makespans_of_w10() {
    for (count, expected) in [
        (1, 88_400),
        (2, 51_600),
        (3, 51_600),
        (4, 41_500),
        (5, 41_500),
    ] {
        let grouped = Setting {
            limit: Limit::Unlimited,
            ..readers(count)
        };
        assert_eq!(makespan(&run(&w10(None), &readers(count))), expected);
        // Ordered receipt, concurrent work: all ten in one conversation.
        assert_eq!(makespan(&run(&w10(Some("one")), &grouped)), expected);
    }
}

#[test]
fn c1_snapshots_of_w10_with_five_readers() {
    let setting = Setting {
        limit: Limit::Unlimited,
        ..readers(5)
    };
    for jobs in [w10(None), w10(Some("one"))] {
        let run = run(&jobs, &setting);
        let at = |at| running(&run, at);
        assert_eq!(at(5_000), [1, 2, 3, 4]);
        assert_eq!(at(15_000), [5, 6]);
        assert_eq!(at(22_000), [7]);
        assert_eq!(at(30_000), [8, 9]);
        assert_eq!(at(38_000), [10]);
    }
}

/// Receiving and working under the group's lock is serial.
#[test]
fn a3_holding_the_turn_is_serial() {
    let setting = Setting {
        limit: Limit::Unlimited,
        manner: Manner::Hold,
        ..readers(5)
    };
    assert_eq!(makespan(&run(&w10(Some("one")), &setting)), 88_400);
    let setting = Setting {
        limit: Limit::SERIAL,
        ..readers(5)
    };
    assert_eq!(makespan(&run(&w10(Some("one")), &setting)), 88_400);
}

fn job_of(task: &oracle::Task) -> Job {
    Job {
        caller: task.caller.clone(),
        tier: task.tier,
        group: task.group.clone(),
        bump: task.bump,
        arrive: task.arrive_ms,
        duration: task.duration_ms,
    }
}

/// The queue's events in the oracle's words, so that the two can be compared and the bound judged.
fn as_oracle(run: &Run) -> Vec<oracle::Event> {
    let events = run.events.iter().map(|&(at_ms, event)| {
        let (what, task) = match event {
            Event::Arrival(task) => (Happening::Arrival, task),
            Event::Dispatch(reader, task) => (Happening::Dispatch(reader), task),
            Event::Completion(reader, task) => (Happening::Completion(reader), task),
        };
        oracle::Event { at_ms, what, task }
    });
    events.collect()
}

fn compare(tasks: &[oracle::Task], options: &oracle::Options, manner: Manner) {
    let jobs: Vec<Job> = tasks.iter().map(job_of).collect();
    let setting = Setting {
        readers: options.readers,
        bypass: match options.bypass {
            oracle::Bypass::AtMost(k) => Bypass::AtMost(k),
            oracle::Bypass::Unbounded => Bypass::Unbounded,
        },
        cap: options
            .cap
            .map_or(Limit::Unlimited, |cap| Limit::AtMost(cap as u32)),
        weight: &|caller| options.weight_of(caller),
        limit: Limit::SERIAL,
        manner,
    };
    let events = as_oracle(&run(&jobs, &setting));
    assert_eq!(events, oracle::simulate(tasks, options).events);
    let verdict = bound::verdict(tasks, options, &events);
    assert_eq!(verdict.broken, [""; 0]);
}

#[test]
fn the_oracle_agrees_on_the_files_of_the_specification() {
    for name in ["w10.csv", "e1.csv", "e2.csv"] {
        for readers in 1..=5 {
            let tasks = sheet::read_tasks(&sheet::data(name));
            compare(&tasks, &oracle::Options::readers(readers), Manner::LetGo);
        }
    }
}

#[test]
fn the_oracle_agrees_on_random_task_lists() {
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let tasks = oracle::random::tasks(&mut random);
        let options = oracle::random::options(&mut random, &tasks);
        let manner = if seed % 2 == 0 {
            Manner::LetGo
        } else {
            Manner::Hold
        };
        compare(&tasks, &options, manner);
    }
}
