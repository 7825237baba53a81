//! Actors that do random things to one product. Each is a future, polled in random order with
//! wakers that panic at random, and are dropped at random.
//!
//! At the end no waker panics, and an actor is polled only if it was woken: an actor that is
//! forgotten because of another one's panic never ends, and is found.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::numbers::Random;
use crate::waker::{
    Act, Rude, Rudeness, is_woken, rude, say_woken, take_woken, wakers, while_rude,
};

/// What all actors of one run share.
pub(crate) struct Stage {
    random: RefCell<Random>,
    ending: Cell<bool>,
}

impl Stage {
    pub(crate) fn below(&self, n: usize) -> usize {
        self.random.borrow_mut().below(n)
    }

    pub(crate) fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Whether actors are to begin something new.
    pub(crate) fn goes_on(&self) -> bool {
        !self.ending.get()
    }

    fn rudeness(&self) -> Rudeness {
        // Rarely all of them, often none.
        let kind = || match self.below(6) {
            0 => u32::MAX,
            1 => self.below(1 << 16) as u32 * 0x1_0001,
            _ => 0,
        };
        Rudeness([kind(), kind(), kind()])
    }
}

/// Waits. A poll that panics because the waker cannot be cloned is repeated; polls panic for no
/// other reason.
pub(crate) async fn wait<F: Future + Unpin>(mut wait: F) -> F::Output {
    poll_fn(|cx| poll_again(&mut wait, cx)).await
}

fn poll_again<F: Future + Unpin>(wait: &mut F, cx: &mut Context<'_>) -> Poll<F::Output> {
    match catch_unwind(AssertUnwindSafe(|| Pin::new(wait).poll(cx))) {
        Ok(polled) => polled,
        Err(panic) if panic.is::<Rude>() => {
            let Rude(act) = *panic.downcast().expect("just looked");
            assert_eq!(act, Act::Clone, "a poll unwinds for a waker of another's");
            say_woken(cx.waker().data().addr());
            Poll::Pending
        }
        Err(panic) => resume_unwind(panic),
    }
}

/// Polls a wait once, and forgets it if it is not over.
pub(crate) async fn wait_and_forget<F: Future + Unpin>(wait: F) -> Option<F::Output> {
    let mut wait = ManuallyDrop::new(wait);
    let polled = poll_fn(|cx| Poll::Ready(poll_again(&mut *wait, cx))).await;
    match polled {
        Poll::Ready(output) => {
            drop(ManuallyDrop::into_inner(wait));
            Some(output)
        }
        Poll::Pending => None,
    }
}

/// Lets other actors go first.
pub(crate) async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        say_woken(cx.waker().data().addr());
        Poll::Pending
    })
    .await;
}

pub(crate) type Actor<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// How many actors there are at once.
const ACTORS: usize = 6;
/// How many polls and drops there are in all, until the end.
const STEPS: usize = 120;
/// No run takes this many rounds to end.
const ROUNDS: usize = 1000;

/// One run. `actor` makes one more actor. `ending` lets all waiting actors go on; when none is
/// woken it is called again, until it says that there is nothing left to do.
pub(crate) fn run<'a>(
    seed: u64,
    actor: impl Fn(&'a Stage) -> Actor<'a>,
    mut ending: impl FnMut(&Stage) -> bool,
    stage: &'a mut Option<Stage>,
) {
    let stage = stage.insert(Stage {
        random: RefCell::new(Random(seed)),
        ending: Cell::new(false),
    });
    let stage = &*stage;
    let before = wakers();
    let mut actors: Vec<_> = (0..ACTORS)
        .map(|number| Place::new(stage, number))
        .collect();
    for _ in 0..STEPS {
        let place = &mut actors[stage.below(ACTORS)];
        let rudeness = stage.rudeness();
        if place.actor.is_none() {
            place.actor = Some(actor(stage));
            say_woken(place.number);
        } else if stage.one_in(12) {
            let cancelled = place.actor.take();
            while_rude(rudeness, || drop(cancelled));
        } else if take_woken(place.number) || stage.one_in(4) {
            place.poll(rudeness);
        }
    }
    stage.ending.set(true);
    for round in 0.. {
        assert!(round < ROUNDS, "seed {seed}: it never ends");
        let mut woken = false;
        for place in &mut actors {
            if place.actor.is_some() && take_woken(place.number) {
                woken = true;
                place.poll(Rudeness::default());
            }
        }
        let is_woken = |place: &Place<'_>| place.actor.is_some() && is_woken(place.number);
        if !woken && !ending(stage) && !actors.iter().any(is_woken) {
            break;
        }
    }
    let hang = actors.iter().filter(|place| place.actor.is_some());
    let hang: Vec<_> = hang.map(|place| place.number).collect();
    assert!(hang.is_empty(), "seed {seed}: nobody wakes {hang:?}");
    assert_eq!(wakers(), before, "seed {seed}: wakers are left");
}

/// The place of an actor, by the number of the waker that it was last polled with.
struct Place<'a> {
    stage: &'a Stage,
    number: usize,
    /// `None` before it begins and when it has ended.
    actor: Option<Actor<'a>>,
}

impl<'a> Place<'a> {
    fn new(stage: &'a Stage, number: usize) -> Self {
        let actor = None;
        Place {
            stage,
            number,
            actor,
        }
    }

    /// With this waker or another; from then on only by that one.
    fn poll(&mut self, rudeness: Rudeness) {
        if self.stage.one_in(2) {
            self.number = (self.number + ACTORS) % (2 * ACTORS);
            take_woken(self.number);
        }
        let waker = rude(self.number);
        let mut cx = Context::from_waker(&waker);
        let Some(actor) = &mut self.actor else { return };
        if while_rude(rudeness, || actor.as_mut().poll(&mut cx)).is_ready() {
            self.actor = None;
        }
    }
}
