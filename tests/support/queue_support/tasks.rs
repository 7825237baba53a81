//! Task lists in virtual time, scheduled only by a queue: every task is a message. A reader takes
//! one with `try_receive` and completes it when its time is up.

use std::collections::BTreeMap;

use conversant::limit::{Bypass, Limit};
use conversant::queue::{Conversation, Detached, Lane, Queue, Turn};

/// A task: how long it takes and what it is sent with.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) caller: String,
    pub(crate) tier: u32,
    pub(crate) group: Option<String>,
    pub(crate) bump: Option<u8>,
    pub(crate) arrive: u64,
    pub(crate) duration: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Arrival(usize),
    /// Reader (from 1), task.
    Dispatch(usize, usize),
    Completion(usize, usize),
}

/// How readers treat their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Take the turn, next, detach, drop the turn, run, complete.
    LetGo,
    /// Keep the turn until the message is done.
    Hold,
}

pub(crate) struct Setting<'a> {
    pub(crate) readers: usize,
    pub(crate) bypass: Bypass,
    pub(crate) cap: Limit,
    pub(crate) weight: &'a dyn Fn(&str) -> u32,
    /// Of every group.
    pub(crate) limit: Limit,
    pub(crate) manner: Manner,
}

/// Start and end by task, and all events with their times in order.
pub(crate) struct Run {
    pub(crate) spans: Vec<(u64, u64)>,
    pub(crate) events: Vec<(u64, Event)>,
}

struct Busy {
    end: u64,
    task: usize,
    delivery: Detached<usize>,
    turn: Option<Turn<'static, usize>>,
}

struct Driver<'a> {
    jobs: &'a [Job],
    setting: &'a Setting<'a>,
    queue: Queue<usize>,
    lanes: BTreeMap<&'a str, Lane<usize>>,
    named: BTreeMap<(&'a str, &'a str), Conversation<usize>>,
    arrived: Vec<bool>,
    readers: Vec<Option<Busy>>,
    run: Run,
    now: u64,
}

/// Runs a task list to its end.
pub(crate) fn run(jobs: &[Job], setting: &Setting<'_>) -> Run {
    let mut driver = Driver {
        jobs,
        setting,
        queue: Queue::builder().bypass(setting.bypass).build().unwrap(),
        lanes: BTreeMap::new(),
        named: BTreeMap::new(),
        arrived: vec![false; jobs.len()],
        readers: (0..setting.readers).map(|_| None).collect(),
        run: Run {
            spans: vec![(0, 0); jobs.len()],
            events: Vec::new(),
        },
        now: 0,
    };
    while let Some(now) = driver.next_instant() {
        driver.now = now;
        while driver.pass() {}
    }
    let left = driver.queue.snapshot();
    assert_eq!(
        (left.waiting, left.in_flight, left.counts.eligible),
        (0, 0, 0)
    );
    driver.run
}

impl<'a> Driver<'a> {
    fn next_instant(&self) -> Option<u64> {
        let ends = self.readers.iter().flatten().map(|busy| busy.end);
        let absent = (0..self.jobs.len()).filter(|&task| !self.arrived[task]);
        ends.chain(absent.map(|task| self.jobs[task].arrive)).min()
    }

    /// Completions, arrivals, dispatch, once each; false if nothing happened.
    fn pass(&mut self) -> bool {
        let before = self.run.events.len();
        for reader in 0..self.readers.len() {
            if let Some(busy) = self.readers[reader].take_if(|busy| busy.end == self.now) {
                let Busy {
                    task,
                    delivery,
                    turn,
                    ..
                } = busy;
                assert_eq!(delivery.complete(), task);
                drop(turn);
                self.note(Event::Completion(reader + 1, task));
            }
        }
        for task in 0..self.jobs.len() {
            if !self.arrived[task] && self.jobs[task].arrive == self.now {
                self.arrive(task);
            }
        }
        while let Some(reader) = self.readers.iter().position(Option::is_none) {
            let eligible = self.queue.counts().eligible;
            let Ok(turn) = self.queue.try_receive() else {
                assert_eq!(eligible, 0, "eligible work is never passed over");
                break;
            };
            assert!(eligible > 0);
            let turn = turn.into_owned();
            self.dispatch(reader, turn);
        }
        self.run.events.len() > before
    }

    fn arrive(&mut self, task: usize) {
        self.arrived[task] = true;
        let job = &self.jobs[task];
        let Setting {
            weight, cap, limit, ..
        } = *self.setting;
        let lane = self
            .lanes
            .entry(&job.caller)
            .or_insert_with(|| self.queue.lane(weight(&job.caller), cap).unwrap());
        let open = || super::conversation(lane, limit, 100);
        let own;
        let conversation = match &job.group {
            Some(group) => self.named.entry((&job.caller, group)).or_insert_with(open),
            None => {
                own = open();
                &own
            }
        };
        if let Some(level) = job.bump {
            self.queue.bump(conversation.group_id(), level).unwrap();
        }
        conversation.send_in(job.tier, task).unwrap();
        self.note(Event::Arrival(task));
    }

    fn dispatch(&mut self, reader: usize, mut turn: Turn<'static, usize>) {
        let delivery = turn.next().expect("a turn begins with a delivery");
        let delivery = delivery.detach();
        let task = *delivery;
        let end = self.now + self.jobs[task].duration;
        self.run.spans[task] = (self.now, end);
        let turn = (self.setting.manner == Manner::Hold).then_some(turn);
        self.readers[reader] = Some(Busy {
            end,
            task,
            delivery,
            turn,
        });
        self.note(Event::Dispatch(reader + 1, task));
    }

    fn note(&mut self, event: Event) {
        self.run.events.push((self.now, event));
    }
}
