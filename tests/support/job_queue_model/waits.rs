//! Waits that are polled by hand, and who of them must be woken.

use std::pin::Pin;
use std::task::{Context, Poll};

use conversant::job_queue::PushReason;
use conversant::limit::Limit;

use super::driver::{Driver, Kind, Out, Sleeper};
use super::naive::{Job, PartName, State};
use crate::count::Count;

impl Driver {
    pub(crate) fn sleep(&mut self, kind: Kind, wait: Pin<Box<dyn Future<Output = Out>>>) {
        let (count, waker) = Count::new();
        let sleeper = Sleeper {
            wait,
            count,
            waker,
            seen: 0,
            kind,
            notified: false,
            granted: false,
            fresh: true,
        };
        self.sleepers.push(sleeper);
        self.poll(self.sleepers.len() - 1);
    }

    pub(crate) fn poll(&mut self, at: usize) {
        let mut one = self.sleepers.remove(at);
        let (fresh, notified) = (one.fresh, one.notified);
        let room = self.free();
        let polled = one.wait.as_mut().poll(&mut Context::from_waker(&one.waker));
        let closed = self.naive.is_over();
        let Poll::Ready(out) = polled else {
            let must = match &one.kind {
                Kind::Claim(part, n) => {
                    closed || *n == 0 || self.naive.claimable(part.as_ref()) > 0
                }
                Kind::Push(_) => self.naive.closed || (room > 0 && !self.wants_room()),
                Kind::Dead => self.untold().is_some() || closed,
            };
            assert!(
                !must || !(fresh || notified),
                "a wait goes on: {:#?}",
                self.naive
            );
            (one.seen, one.fresh, one.notified) = (one.count.get(), false, false);
            assert!(!one.granted, "granted, and waits");
            self.sleepers.insert(at, one);
            return;
        };
        drop(one.wait);
        assert!(one.count.is_let_go(), "a waker is kept");
        if let Kind::Claim(Some(part), _) = &one.kind {
            *self.naive.handles.get_mut(part).unwrap() -= 1;
        }
        match (out, one.kind) {
            (Out::Claims(Ok(claims)), Kind::Claim(part, n)) => {
                assert!(n == 0 || !claims.is_empty());
                self.claimed(claims, part.as_ref(), n);
            }
            (Out::Claims(Err(())), Kind::Claim(..)) => assert!(closed),
            (Out::Dead(Ok(id)), Kind::Dead) => {
                let first = self.untold().expect("told of nobody");
                let (order, at) = (self.naive.jobs[first].state, self.naive.find(id).unwrap());
                let job = &mut self.naive.jobs[at];
                assert_eq!(job.state, order, "{id} died later");
                let State::Dead { told, .. } = &mut job.state else {
                    unreachable!()
                };
                *told = true;
            }
            (Out::Dead(Err(())), Kind::Dead) => assert!(closed && self.untold().is_none()),
            (Out::Pushed(Ok(id)), Kind::Push(one)) => {
                assert!(notified || !self.wants_room() || room == usize::MAX);
                let room = if self.wants_room() { usize::MAX } else { room };
                let against = self.reasons(std::slice::from_ref(&one), room.max(1));
                let against: Vec<_> = against
                    .into_iter()
                    .filter(|it| *it != PushReason::Full)
                    .collect();
                assert_eq!(against, []);
                assert!(room > 0);
                self.put_in(id, one);
            }
            (Out::Pushed(Err(error)), Kind::Push(one)) => {
                assert_eq!(error.content, (one.key, one.value));
                let none = self.capacity == Limit::AtMost(0);
                assert!(none || error.reason != PushReason::Full);
                self.refused(&error.reason, &self.reasons(&[one], room));
            }
            _ => unreachable!(),
        }
    }

    pub(crate) fn untold(&self) -> Option<usize> {
        let order = |at: &usize| match self.naive.jobs[*at].state {
            State::Dead { order, told: false } => Some(order),
            _ => None,
        };
        (0..self.naive.jobs.len())
            .filter(|at| order(at).is_some())
            .min_by_key(order)
    }

    pub(crate) fn give_up(&mut self, at: usize) {
        let one = self.sleepers.remove(at);
        drop(one.wait);
        assert!(one.count.is_let_go(), "a waker is kept");
        if let Kind::Claim(Some(part), _) = &one.kind {
            *self.naive.handles.get_mut(part).unwrap() -= 1;
        }
    }

    /// Wakes, in the model, who must be woken now.
    pub(crate) fn notify(&mut self) {
        for at in 0..self.sleepers.len() {
            let one = &self.sleepers[at];
            if one.notified {
                continue;
            }
            let woken = |of| self.woken(of);
            let wake = match &one.kind {
                Kind::Claim(Some(part), _) if !self.naive.is_over() => {
                    // Which parts come first is open; how many is not.
                    let is_woken = one.count.get() > one.seen;
                    assert!(!is_woken || self.may_wake(at, part));
                    is_woken
                }
                Kind::Claim(part, _) => {
                    let is_any = |kind: &Kind| matches!(kind, Kind::Claim(None, _));
                    let is_over = self.naive.is_over();
                    is_over || part.is_none() && woken(&is_any) < self.naive.claimable(None)
                }
                Kind::Push(_) => self.naive.closed || self.free() > 0,
                Kind::Dead => {
                    let dead = |job: &Job| matches!(job.state, State::Dead { told: false, .. });
                    let is_dead = |kind: &Kind| matches!(kind, Kind::Dead);
                    self.naive.is_over() || woken(&is_dead) < self.naive.count(None, dead)
                }
            };
            let push = matches!(one.kind, Kind::Push(_));
            self.sleepers[at].granted = wake && push && !self.naive.closed;
            self.sleepers[at].notified = wake;
        }
        for (at, one) in self.sleepers.iter().enumerate() {
            if let Kind::Claim(Some(part), _) = &one.kind
                && !one.notified
            {
                assert!(!self.may_wake(at, part), "{part:?} sleeps");
            }
        }
    }

    /// How many of these are woken and have not looked.
    fn woken(&self, of: &dyn Fn(&Kind) -> bool) -> usize {
        let woken = self.sleepers.iter().filter(|it| it.notified);
        woken.filter(|it| of(&it.kind)).count()
    }

    /// Whether a claim of this part is the next to be woken there, and there is room for it beside
    /// all that are woken and have not looked.
    fn may_wake(&self, at: usize, part: &PartName) -> bool {
        let alike = |kind: &Kind| matches!(kind, Kind::Claim(Some(of), _) if of == part);
        let is_first = {
            let mut before = self.sleepers[..at].iter();
            before.all(|it| it.notified || !alike(&it.kind))
        };
        let tenant = (part.0.clone(), None);
        let beside = |kind: &Kind| matches!(kind, Kind::Claim(Some(of), _) if of.0 == part.0);
        let any_part = |kind: &Kind| matches!(kind, Kind::Claim(Some(_), _));
        is_first
            && self.woken(&alike) < self.naive.eligible(Some(part))
            && self.woken(&beside) < self.naive.room(Some(&tenant))
            && self.woken(&any_part) < self.naive.room(None)
    }
}
