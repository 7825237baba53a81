//! The simulator. TASKRUN.md gives the order at one instant, SEMANTICS.md the rest: 1C the gate,
//! 1E bumps, 2 ready and eligible, 3 the ring and the bypass.

use super::{Bypass, Event, Happening, Options, Row, Run, Task, callers_of, groups_of};
use std::cmp::Reverse;

/// The standing level of every group.
const STANDING: u8 = 100;

struct Bump {
    level: u8,
    sequence: u64,
}

/// Indexed like the tasks; only the entry of a group's first task is used.
struct Group {
    caller: usize,
    /// In order of arrival.
    waiting: Vec<usize>,
    running: Option<usize>,
    /// The sequence number of its becoming ready, while it is ready.
    ready: Option<u64>,
    bump: Option<Bump>,
}

/// Indexed like the tasks; only the entry of a caller's first task is used.
struct Caller {
    weight: u32,
    open: Option<u32>,
    /// How often in a row its oldest eligible group was overtaken.
    overtaken: u32,
}

struct Simulator<'a> {
    tasks: &'a [Task],
    options: &'a Options,
    group_of: Vec<usize>,
    caller_of: Vec<usize>,
    groups: Vec<Group>,
    callers: Vec<Caller>,
    /// The task that each reader runs.
    readers: Vec<Option<usize>>,
    /// Callers with an eligible group; the first takes next.
    ring: Vec<usize>,
    /// Consecutive turns the first of the ring has had.
    taken: u32,
    arrived: Vec<bool>,
    rows: Vec<Option<Row>>,
    events: Vec<Event>,
    now: u64,
    sequence: u64,
}

/// Runs a task list in virtual time.
pub(crate) fn simulate(tasks: &[Task], options: &Options) -> Run {
    assert_tiers_do_not_go_down(tasks);
    let mut simulator = Simulator::new(tasks, options);
    while let Some(now) = simulator.next_instant() {
        simulator.now = now;
        while simulator.pass() {}
    }
    let rows = simulator.rows.into_iter();
    Run {
        rows: rows.map(|row| row.expect("every task runs")).collect(),
        events: simulator.events,
    }
}

/// Indices in order of arrival: by time, at the same instant in file order.
fn order_of_arrival(tasks: &[Task]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| (tasks[task].arrive_ms, task));
    order
}

fn assert_tiers_do_not_go_down(tasks: &[Task]) {
    let groups = groups_of(tasks);
    let order = order_of_arrival(tasks);
    for (place, &later) in order.iter().enumerate() {
        for &earlier in &order[..place] {
            assert!(
                groups[earlier] != groups[later] || tasks[earlier].tier <= tasks[later].tier,
                "not a valid task list: rows {} and {} go down in tier",
                earlier + 1,
                later + 1
            );
        }
    }
}

impl<'a> Simulator<'a> {
    fn new(tasks: &'a [Task], options: &'a Options) -> Self {
        let caller_of = callers_of(tasks);
        let group = |&caller: &usize| Group {
            caller,
            waiting: Vec::new(),
            running: None,
            ready: None,
            bump: None,
        };
        let caller = |task: &Task| Caller {
            weight: options.weight_of(&task.caller),
            open: None,
            overtaken: 0,
        };
        Simulator {
            tasks,
            options,
            group_of: groups_of(tasks),
            groups: caller_of.iter().map(group).collect(),
            callers: tasks.iter().map(caller).collect(),
            caller_of,
            readers: vec![None; options.readers],
            ring: Vec::new(),
            taken: 0,
            arrived: vec![false; tasks.len()],
            rows: vec![None; tasks.len()],
            events: Vec::new(),
            now: 0,
            sequence: 0,
        }
    }

    /// When something happens next: an arrival or a completion.
    fn next_instant(&self) -> Option<u64> {
        let ends = (0..self.readers.len()).filter_map(|reader| self.end_of(reader));
        let absent = (0..self.tasks.len()).filter(|&task| !self.arrived[task]);
        ends.chain(absent.map(|task| self.tasks[task].arrive_ms))
            .min()
    }

    fn end_of(&self, reader: usize) -> Option<u64> {
        let row = self.rows[self.readers[reader]?].expect("a running task has a row");
        Some(row.end_ms)
    }

    /// Completions, arrivals, dispatch, once; false if nothing happened.
    fn pass(&mut self) -> bool {
        let before = self.events.len();
        for reader in 0..self.readers.len() {
            if self.end_of(reader) == Some(self.now) {
                self.complete(reader);
            }
        }
        for task in 0..self.tasks.len() {
            if !self.arrived[task] && self.tasks[task].arrive_ms == self.now {
                self.arrive(task);
            }
        }
        while let Some(reader) = self.readers.iter().position(Option::is_none) {
            if self.ring.is_empty() {
                break;
            }
            self.dispatch(reader);
        }
        self.events.len() > before
    }

    fn complete(&mut self, reader: usize) {
        let task = self.readers[reader].take().expect("a busy reader");
        let sequence = self.next_sequence();
        let group = &mut self.groups[self.group_of[task]];
        group.running = None;
        if !group.waiting.is_empty() {
            group.ready = Some(sequence);
        }
        self.settle(Happening::Completion(reader + 1), task);
    }

    fn arrive(&mut self, task: usize) {
        self.arrived[task] = true;
        let ready = self.next_sequence();
        let bumped = self.next_sequence();
        let group = &mut self.groups[self.group_of[task]];
        if group.waiting.is_empty() && group.running.is_none() {
            group.ready = Some(ready);
        }
        group.waiting.push(task);
        if let Some(level) = self.tasks[task].bump {
            let keeps_its_place = group.bump.as_ref().is_some_and(|bump| bump.level == level);
            if !keeps_its_place {
                group.bump = Some(Bump {
                    level,
                    sequence: bumped,
                });
            }
        }
        self.settle(Happening::Arrival, task);
    }

    fn dispatch(&mut self, reader: usize) {
        let caller = self.ring[0];
        let chosen = self.choose(caller);
        let group = &mut self.groups[chosen];
        let task = group.waiting.remove(0);
        group.running = Some(task);
        group.ready = None;
        group.bump = None;
        self.readers[reader] = Some(task);
        self.rows[task] = Some(Row {
            reader: reader + 1,
            queued_ms: self.tasks[task].arrive_ms,
            start_ms: self.now,
            end_ms: self.now + self.tasks[task].duration_ms,
        });
        self.taken += 1;
        if self.taken == self.callers[caller].weight {
            self.ring.remove(0);
            self.ring.push(caller);
            self.taken = 0;
        }
        self.settle(Happening::Dispatch(reader + 1), task);
    }

    /// The caller's next group: the highest in rank, unless the oldest was overtaken often enough.
    fn choose(&mut self, caller: usize) -> usize {
        let eligible = self.eligible(caller);
        let ready = |&group: &usize| self.groups[group].ready;
        let oldest = *eligible.iter().min_by_key(|g| ready(g)).expect("in ring");
        let highest = *eligible
            .iter()
            .min_by_key(|&&group| self.rank(group))
            .expect("in ring");
        let overtaken = &mut self.callers[caller].overtaken;
        let may_overtake = match self.options.bypass {
            Bypass::AtMost(most) => *overtaken < most,
            Bypass::Unbounded => true,
        };
        if highest == oldest || !may_overtake {
            *overtaken = 0;
            return oldest;
        }
        *overtaken += 1;
        highest
    }

    /// Smaller is served first: the bump band before the standing level, higher levels first, then
    /// by the later of the bump and the group's becoming ready.
    fn rank(&self, group: usize) -> (u8, Reverse<u8>, u64) {
        let ready = self.groups[group].ready.expect("an eligible group");
        match &self.groups[group].bump {
            Some(bump) => (0, Reverse(bump.level), bump.sequence.max(ready)),
            None => (1, Reverse(STANDING), ready),
        }
    }

    fn eligible(&self, caller: usize) -> Vec<usize> {
        let below_cap = self
            .options
            .cap
            .is_none_or(|cap| self.running(caller).len() < cap);
        let lowest = self.outstanding(caller).into_iter().min();
        let open = self.callers[caller].open;
        let eligible = |&group: &usize| {
            let group = &self.groups[group];
            group.caller == caller
                && group.ready.is_some()
                && below_cap
                && open == Some(self.tasks[group.waiting[0]].tier)
                && open == lowest
        };
        (0..self.groups.len()).filter(eligible).collect()
    }

    /// The tiers of the caller's running tasks.
    fn running(&self, caller: usize) -> Vec<u32> {
        let own = self.readers.iter().flatten();
        let own = own.filter(|&&task| self.caller_of[task] == caller);
        own.map(|&task| self.tasks[task].tier).collect()
    }

    /// The tiers of the caller's tasks that have arrived and not finished.
    fn outstanding(&self, caller: usize) -> Vec<u32> {
        let of_caller = |group: &&Group| group.caller == caller;
        let waiting = self.groups.iter().filter(of_caller);
        let waiting = waiting.flat_map(|group| &group.waiting);
        let tiers = waiting.map(|&task| self.tasks[task].tier);
        tiers.chain(self.running(caller)).collect()
    }

    /// After each event: opens tiers, then updates once which callers are in the ring. An event
    /// changes nothing for any other caller.
    fn settle(&mut self, what: Happening, task: usize) {
        self.events.push(Event {
            at_ms: self.now,
            what,
            task,
        });
        let caller = self.caller_of[task];
        self.settle_gate(caller);
        let has_eligible = !self.eligible(caller).is_empty();
        let place = self.ring.iter().position(|&other| other == caller);
        match place {
            None if has_eligible => self.ring.push(caller),
            Some(place) if !has_eligible => {
                self.ring.remove(place);
                if place == 0 {
                    self.taken = 0;
                }
            }
            _ => {}
        }
    }

    /// The open tier stays open until none of its tasks runs and either none of it is outstanding
    /// or a lower tier has one; then the lowest outstanding tier opens.
    fn settle_gate(&mut self, caller: usize) {
        let outstanding = self.outstanding(caller);
        let stays = self.callers[caller].open.is_some_and(|open| {
            let runs = self.running(caller).contains(&open);
            let lower = outstanding.iter().any(|&tier| tier < open);
            runs || (outstanding.contains(&open) && !lower)
        });
        if !stays {
            self.callers[caller].open = outstanding.into_iter().min();
        }
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
