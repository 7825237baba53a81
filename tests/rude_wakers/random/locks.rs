//! Semaphore, intent lock, lock table and gate.

use std::sync::Arc;

use conversant::gate::{Ticket, TierGate};
use conversant::intent::IntentLock;
use conversant::limit::Bypass;
use conversant::lock_table::{LockError, LockTable, Resource};
use conversant::modes::Mode;
use conversant::semaphore::Semaphore;
use conversant::wait::WaitCounts;

use super::seeds;
use crate::actors::{Stage, pause, run, wait, wait_and_forget};

fn bypass(seed: u64) -> Bypass {
    match seed % 3 {
        0 => Bypass::AtMost(0),
        1 => Bypass::AtMost(2),
        _ => Bypass::Unbounded,
    }
}

/// More than all actors together can ask for.
const PLENTY: u32 = 1000;

async fn takes_permits(stage: &Stage, semaphore: &Arc<Semaphore>) {
    let (mut held, mut owned) = (Vec::new(), None);
    while stage.goes_on() {
        let count = stage.below(3) as u32 + 1;
        match stage.below(12) {
            0..=3 => held.extend(wait(semaphore.acquire(count)).await),
            4 => {
                owned = wait(Semaphore::acquire_owned(Arc::clone(semaphore), count))
                    .await
                    .ok()
            }
            5 => held.extend(semaphore.try_acquire(count)),
            6 => drop(held.pop()),
            7 => drop(owned.take()),
            8 => semaphore.set_limit(stage.below(5) as u32).unwrap(),
            9 => {
                let half = held.last_mut().and_then(|permit| permit.split(1));
                held.extend(half);
            }
            10 if stage.one_in(40) => semaphore.close(),
            _ => pause().await,
        }
    }
}

#[test]
fn semaphores() {
    seeds(|seed| {
        let semaphore = Semaphore::new(3).unwrap().with_bypass(bypass(seed));
        let semaphore = Arc::new(semaphore);
        let actor = |stage| Box::pin(takes_permits(stage, &semaphore)) as _;
        let mut raised = false;
        let ending = |_: &_| {
            semaphore.set_limit(PLENTY).unwrap();
            !std::mem::replace(&mut raised, true)
        };
        run(seed, actor, ending, &mut None);
        assert_eq!(semaphore.available(), i64::from(PLENTY));
        assert!(semaphore.snapshot().waiters.is_empty());
    });
}

fn mode(stage: &Stage) -> Mode {
    Mode::ALL[stage.below(Mode::ALL.len())]
}

/// One guard at a time: no actor waits for itself.
async fn locks(stage: &Stage, lock: &Arc<IntentLock>) {
    while stage.goes_on() {
        if stage.one_in(8) {
            let guard = wait(IntentLock::lock_owned(Arc::clone(lock), mode(stage))).await;
            pause().await;
            drop(guard);
        }
        let mut guard = match stage.below(4) {
            0 => match lock.try_lock(mode(stage)) {
                Ok(guard) => guard,
                Err(_) => continue,
            },
            _ => wait(lock.lock(mode(stage))).await,
        };
        for _ in 0..stage.below(4) {
            match stage.below(6) {
                0 | 1 => _ = wait(guard.convert(mode(stage))).await,
                2 => _ = wait_and_forget(guard.convert(mode(stage))).await,
                3 => _ = guard.try_convert(mode(stage)),
                4 => _ = guard.downgrade(mode(stage)),
                _ => pause().await,
            }
        }
    }
}

#[test]
fn intent_locks() {
    seeds(|seed| {
        let lock = match seed % 3 {
            0 => IntentLock::new(),
            1 => IntentLock::striped(2),
            _ => IntentLock::striped_for_readers(2),
        };
        let lock = Arc::new(lock.with_bypass(bypass(seed / 3)));
        let actor = |stage| Box::pin(locks(stage, &lock)) as _;
        run(seed, actor, |_| false, &mut None);
        let left = lock.snapshot();
        assert_eq!(left.held, [0; 6]);
        assert!(left.waiters.is_empty());
        assert!(lock.try_lock(Mode::X).is_ok());
    });
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(usize);

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        (self.0 > 9).then_some(Name(self.0 / 10))
    }
}

const NAMES: [usize; 7] = [1, 2, 11, 12, 21, 111, 112];

fn name(stage: &Stage) -> Name {
    Name(NAMES[stage.below(NAMES.len())])
}

async fn owns(stage: &Stage, table: &LockTable<Name>) {
    let mut owner = table.owner(stage.below(3) as i32);
    let mut savepoint = owner.savepoint();
    while stage.goes_on() {
        let (one, mode) = (name(stage), mode(stage));
        let mut locked = Ok(());
        match stage.below(14) {
            0..=3 => locked = wait(owner.lock(&one, mode)).await,
            4 | 5 => {
                let several = [(one, mode), (name(stage), self::mode(stage))];
                locked = wait(owner.lock_many(several)).await;
            }
            6 => {
                let forgotten = wait_and_forget(owner.lock(&one, mode)).await;
                locked = forgotten.unwrap_or(Ok(()));
            }
            7 => _ = owner.try_lock(&one, mode),
            8 => _ = owner.release(&one),
            9 => _ = owner.downgrade(&one, mode),
            10 => savepoint = owner.savepoint(),
            11 => _ = owner.release_to(savepoint),
            12 if stage.one_in(40) => table.close(),
            _ => pause().await,
        }
        if let Err(LockError::Deadlock(_)) = locked {
            owner.release_all();
            savepoint = owner.savepoint();
        }
    }
}

#[test]
fn lock_tables() {
    seeds(|seed| {
        let table = LockTable::new();
        let actor = |stage| Box::pin(owns(stage, &table)) as _;
        run(seed, actor, |_| false, &mut None);
        assert!(table.is_empty());
        assert_eq!(table.snapshot().owners, 0);
    });
}

/// One ticket at a time, or a ticket that is left for the next.
async fn enters(stage: &Stage, gate: &TierGate) {
    let join = || gate.join(stage.below(4) as u32 % 3);
    let mut ticket: Option<Ticket> = None;
    while stage.goes_on() {
        let mut has = ticket.take().unwrap_or_else(join);
        match stage.below(8) {
            0..=2 => wait(has.enter()).await,
            3 => _ = wait_and_forget(has.enter()).await,
            4 => _ = has.try_enter(),
            5 => pause().await,
            6 => {
                let mut next = join();
                if stage.one_in(2) {
                    _ = wait_and_forget(next.enter()).await;
                }
                let inside = has.leave_for(&mut next);
                assert_eq!(inside, next.entered());
                has = next;
            }
            _ => {
                drop(has);
                continue;
            }
        }
        ticket = Some(has);
    }
}

#[test]
fn gates() {
    seeds(|seed| {
        let gate = TierGate::new();
        let actor = |stage| Box::pin(enters(stage, &gate)) as _;
        run(seed, actor, |_| false, &mut None);
        let left = gate.snapshot();
        let none = WaitCounts::default();
        assert_eq!((left.outstanding, left.counts.enters), (vec![], none));
    });
}
