//! Operation lists against a sequential lock that recomputes everything at each step.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use proptest::prelude::*;

use super::IntentLock;
use crate::intent::guard::Convert;
use crate::intent::{Deadlock, Guard};
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::wait::Op;

#[derive(Clone, Copy, Debug)]
enum Step {
    Lock(Mode),
    Try(Mode),
    Release(usize),
    Convert(usize, Mode),
    TryConvert(usize, Mode),
    Downgrade(usize, Mode),
    Cancel(usize),
}

/// What the tested lock must hold, and who waits in which order.
#[derive(Default)]
struct Naive {
    /// By the number of the holder.
    held: Vec<(usize, Mode)>,
    /// The number of the waiter, and what it asks for.
    line: Vec<(usize, Mode)>,
}

impl Naive {
    fn own(&self, who: usize) -> Option<Mode> {
        let mut held = self.held.iter();
        held.find(|&&(other, _)| other == who)
            .map(|&(_, mode)| mode)
    }

    fn fits(&self, who: usize, mode: Mode, ahead: &[(usize, Mode)]) -> bool {
        let held = self.held.iter().filter(|&&(other, _)| other != who);
        let mut all = held.chain(ahead);
        all.all(|&(_, other)| mode.compatible(other))
    }

    /// Where a new waiter is queued.
    fn place(&self, who: usize) -> usize {
        let own = self.own(who);
        let first = self
            .line
            .iter()
            .position(|&(_, ask)| own.is_some_and(|own| !own.compatible(ask)));
        first.unwrap_or(self.line.len())
    }

    fn may(&self, who: usize, mode: Mode) -> bool {
        self.fits(who, mode, &self.line[..self.place(who)])
    }

    fn take(&mut self, who: usize, mode: Mode) {
        self.held.retain(|&(other, _)| other != who);
        self.held.push((who, mode));
    }

    /// The order of the rule: a conversion is ahead of all that wait for what it holds.
    fn stand(&mut self, who: usize, mode: Mode) {
        let at = self.place(who);
        self.line.insert(at, (who, mode));
        loop {
            let line = &self.line;
            // Those who move keep their order.
            let wrong = (0..line.len()).find_map(|behind| {
                let own = self.own(line[behind].0)?;
                let ahead = (0..behind).find(|&at| !own.compatible(line[at].1))?;
                Some((behind, ahead))
            });
            let Some((behind, ahead)) = wrong else {
                break;
            };
            let moved = self.line.remove(behind);
            self.line.insert(ahead, moved);
        }
    }

    fn deadlock(&self, who: usize, mode: Mode) -> bool {
        let own = self.own(who).expect("a holder");
        self.line.iter().any(|&(other, ask)| {
            let other = self.own(other);
            other.is_some_and(|held| !mode.compatible(held) && !ask.compatible(own))
        })
    }

    /// Everybody that can go on does.
    fn settle(&mut self) {
        let mut at = 0;
        while at < self.line.len() {
            let (who, ask) = self.line[at];
            if self.fits(who, ask, &self.line[..at]) {
                self.line.remove(at);
                self.take(who, ask);
                at = 0;
            } else {
                at += 1;
            }
        }
        let stuck = self
            .held
            .iter()
            .all(|held| self.line.iter().any(|waits| waits.0 == held.0));
        assert!(
            self.line.is_empty() || !stuck,
            "{:?} {:?}",
            self.held,
            self.line
        );
    }
}

/// Set by a wake.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An actor that waits for a guard, or has one and may be converting it.
struct Actor<'a> {
    woken: Arc<Woken>,
    waits: Option<Pin<Box<dyn Future<Output = Guard<&'a IntentLock>> + 'a>>>,
    guard: Option<Guard<&'a IntentLock>>,
    converts_to: Option<Mode>,
}

impl<'a> Actor<'a> {
    fn new(guard: Option<Guard<&'a IntentLock>>) -> Self {
        Self {
            woken: Arc::default(),
            waits: None,
            guard,
            converts_to: None,
        }
    }

    fn is_waiting(&self) -> bool {
        self.waits.is_some() || self.converts_to.is_some()
    }

    /// Polls what it waits for. A conversion is kept without its `Wait`, which would borrow the
    /// guard.
    fn poll(&mut self) -> Poll<Result<(), Deadlock>> {
        let waker = Waker::from(self.woken.clone());
        let mut cx = Context::from_waker(&waker);
        if let Some(wait) = &mut self.waits {
            if let Poll::Ready(guard) = wait.as_mut().poll(&mut cx) {
                self.guard = Some(guard);
                self.waits = None;
                return Poll::Ready(Ok(()));
            }
        } else if let (Some(to), Some(guard)) = (self.converts_to, &mut self.guard)
            && let Poll::Ready(outcome) = (Convert { guard, asked: to }).poll(&mut cx)
        {
            self.converts_to = None;
            return Poll::Ready(outcome);
        }
        Poll::Pending
    }
}

struct Run<'a> {
    lock: &'a IntentLock,
    actors: Vec<Actor<'a>>,
    naive: Naive,
}

impl Run<'_> {
    /// The number of the `nth` actor for which `which` is true.
    fn choose(&self, nth: usize, which: impl Fn(&Actor<'_>) -> bool) -> Option<usize> {
        let matching = self.actors.iter().enumerate();
        let matching: Vec<_> = matching.filter(|(_, actor)| which(actor)).collect();
        let (who, _) = matching.get(nth % matching.len().max(1))?;
        Some(*who)
    }

    fn step(&mut self, step: Step) {
        let holds = |actor: &Actor<'_>| actor.guard.is_some() && !actor.is_waiting();
        match step {
            Step::Lock(mode) => self.request(mode),
            Step::Try(mode) => {
                let guard = self.lock.try_lock(mode).ok();
                let who = self.actors.len();
                assert_eq!(guard.is_some(), self.naive.may(who, mode), "{step:?}");
                if guard.is_some() {
                    self.naive.take(who, mode);
                    self.actors.push(Actor::new(guard));
                }
            }
            Step::Release(nth) => {
                if let Some(who) = self.choose(nth, holds) {
                    self.actors[who].guard = None;
                    self.naive.held.retain(|held| held.0 != who);
                }
            }
            Step::Convert(nth, mode) => {
                if let Some(who) = self.choose(nth, holds) {
                    self.convert(who, mode);
                }
            }
            Step::TryConvert(nth, mode) => {
                if let Some(who) = self.choose(nth, holds) {
                    let guard = self.actors[who].guard.as_mut().unwrap();
                    let asked = guard.mode().join(mode);
                    let same = asked == guard.mode();
                    let done = guard.try_convert(mode).is_ok();
                    assert_eq!(done, same || self.naive.may(who, asked), "{step:?}");
                    if done {
                        self.naive.take(who, asked);
                    }
                }
            }
            Step::Downgrade(nth, mode) => {
                if let Some(who) = self.choose(nth, holds) {
                    let guard = self.actors[who].guard.as_mut().unwrap();
                    let to = guard.mode().meet(mode);
                    guard.downgrade(to).unwrap();
                    self.naive.take(who, to);
                }
            }
            Step::Cancel(nth) => {
                if let Some(who) = self.choose(nth, |actor| actor.is_waiting()) {
                    self.actors[who].waits = None;
                    if self.actors[who].converts_to.take().is_some() {
                        self.actors[who].guard.as_mut().unwrap().cancel_conversion();
                    }
                    self.naive.line.retain(|waits| waits.0 != who);
                }
            }
        }
    }

    fn request(&mut self, mode: Mode) {
        let who = self.actors.len();
        let mut actor = Actor::new(None);
        actor.waits = Some(Box::pin(self.lock.lock(mode)));
        let taken = actor.poll().is_ready();
        assert_eq!(taken, self.naive.may(who, mode));
        match taken {
            true => self.naive.take(who, mode),
            false => self.naive.stand(who, mode),
        }
        self.actors.push(actor);
    }

    fn convert(&mut self, who: usize, mode: Mode) {
        let held = self.actors[who].guard.as_ref().unwrap().mode();
        let asked = held.join(mode);
        if asked == held {
            return;
        }
        self.actors[who].converts_to = Some(asked);
        let outcome = self.actors[who].poll();
        match outcome {
            Poll::Ready(Err(_)) => assert!(self.naive.deadlock(who, asked)),
            Poll::Ready(Ok(())) => {
                assert!(self.naive.may(who, asked));
                self.naive.take(who, asked);
            }
            Poll::Pending => {
                assert!(!self.naive.may(who, asked) && !self.naive.deadlock(who, asked));
                self.naive.stand(who, asked);
            }
        }
    }

    /// Polls actors that were woken, until none is; then nobody else can go on.
    fn settle(&mut self) {
        while let Some(who) = self
            .actors
            .iter()
            .position(|actor| actor.is_waiting() && actor.woken.0.swap(false, Ordering::Relaxed))
        {
            let _ = self.actors[who].poll();
        }
        self.naive.settle();
        for (who, actor) in self.actors.iter().enumerate() {
            let held = actor.guard.as_ref().map(Guard::mode);
            assert_eq!(held, self.naive.own(who), "number {who}");
        }
        let line = self.lock.snapshot().waiters;
        let line: Vec<_> = line.iter().map(|waits| waits.asked).collect();
        let naive: Vec<_> = self.naive.line.iter().map(|waits| waits.1).collect();
        assert_eq!(line, naive);
    }
}

fn play(lock: IntentLock, steps: &[Step]) {
    let lock = lock.with_bypass(Bypass::AtMost(0));
    let mut run = Run {
        lock: &lock,
        actors: Vec::new(),
        naive: Naive::default(),
    };
    for &step in steps {
        run.step(step);
        run.settle();
    }
    drop(run);
    super::is_idle(&lock);
}

fn mode() -> impl Strategy<Value = Mode> {
    (0..6usize).prop_map(|i| Mode::ALL[i])
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..6usize;
    prop_oneof![
        4 => mode().prop_map(Step::Lock),
        1 => mode().prop_map(Step::Try),
        3 => who.clone().prop_map(Step::Release),
        3 => (who.clone(), mode()).prop_map(|(who, mode)| Step::Convert(who, mode)),
        1 => (who.clone(), mode()).prop_map(|(who, mode)| Step::TryConvert(who, mode)),
        1 => (who.clone(), mode()).prop_map(|(who, mode)| Step::Downgrade(who, mode)),
        1 => who.prop_map(Step::Cancel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn as_the_naive_lock(steps in prop::collection::vec(step(), 1..40)) {
        for lock in super::forms() {
            play(lock, &steps);
        }
    }
}

/// Two conversions move ahead of a third: the earlier one stays the first.
#[test]
fn conversions_that_move_keep_their_order() {
    use Mode::{Is, Ix, S, U, X};
    use Step::{Convert, Lock, Release, TryConvert};
    let steps = [
        Lock(Is),
        Lock(S),
        Lock(Is),
        TryConvert(4, S),
        Lock(Is),
        Lock(Ix),
        Lock(Ix),
        Convert(0, U),
        Release(1),
        Convert(1, U),
        Convert(0, X),
    ];
    for n in 1..=steps.len() {
        for lock in super::forms() {
            play(lock, &steps[..n]);
        }
    }
}
