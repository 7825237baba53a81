//! Peeks, and waits that are polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use conversant::queue::{NoTurn, Peek};

use super::pair::{Pair, Waiting, Watching, Woken, same};

impl<'q> Pair<'q> {
    pub fn peek(&mut self, group: usize) -> Result<(), String> {
        let id = self.groups[group].id;
        let shown = |peek: &Peek<u32>| (**peek, peek.number(), u64::from(peek.attempts()));
        let model = self.model.peek(group);
        let peek = self.queue.try_peek(id);
        let expected = model.map(|m| (m.id, m.number, u64::from(m.failed)));
        same(
            "peek",
            peek.as_ref().map(shown).map_err(Clone::clone),
            expected,
        )?;
        self.peeks.extend(peek.ok().map(|peek| (group, peek)));
        Ok(())
    }

    pub fn wait(&mut self, by_name: Option<usize>) -> Result<(), String> {
        if self.waits.len() >= 4 {
            return Ok(());
        }
        let queue = self.queue;
        let future: Pin<Box<dyn Future<Output = _>>> = match by_name {
            Some(group) => Box::pin(queue.receive_from(self.groups[group].id)),
            None => Box::pin(async { queue.receive().await.map_err(NoTurn::Closed) }),
        };
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        if let Some(group) = by_name {
            self.model.groups[group].named += 1;
        }
        self.poll(Waiting {
            by_name,
            future,
            woken,
        })
    }

    /// A wait is over.
    pub fn left(&mut self, wait: &Waiting<'_>) {
        if let Some(group) = wait.by_name {
            self.model.groups[group].named -= 1;
        }
        self.model.settle();
    }

    pub fn poll(&mut self, mut wait: Waiting<'q>) -> Result<(), String> {
        wait.woken.0.store(false, Relaxed);
        let waker = Waker::from(Arc::clone(&wait.woken));
        let polled = wait.future.as_mut().poll(&mut Context::from_waker(&waker));
        let expected = match wait.by_name {
            Some(group) => match self.model.claim_by_name(group) {
                Err(over @ (NoTurn::Closed(_) | NoTurn::Stale)) => Some(Err(over)),
                claimed => claimed.ok().map(|()| Ok(group)),
            },
            None => match self.model.claim() {
                None => self.model.no_more().map(|over| Err(NoTurn::Closed(over))),
                group => group.map(Ok),
            },
        };
        let shown = match &polled {
            Poll::Pending => None,
            Poll::Ready(turn) => Some(turn.as_ref().map(|turn| turn.group_id())),
        };
        let id = |result: Result<usize, NoTurn>| result.map(|group| self.groups[group].id);
        same(
            "poll",
            shown.map(|turn| turn.map_err(Clone::clone)),
            expected.map(id),
        )?;
        let Poll::Ready(turn) = polled else {
            // Now the group is out of line, or stays so.
            self.model.settle();
            self.waits.push(wait);
            return Ok(());
        };
        self.left(&wait);
        if let (Some(Ok(group)), Ok(turn)) = (expected, turn) {
            let begun = self.model.begin(group);
            self.turns.push((begun, turn));
        }
        Ok(())
    }

    pub fn watch(&mut self, mut watch: Watching<'q>) -> Result<(), String> {
        watch.woken.0.store(false, Relaxed);
        let waker = Waker::from(Arc::clone(&watch.woken));
        let polled = watch.future.as_mut().poll(&mut Context::from_waker(&waker));
        let shown = match polled {
            Poll::Pending => None,
            Poll::Ready(over) => Some(over.map(|poisoned| poisoned.group)),
        };
        if shown.is_none() {
            self.watches.push(watch);
        }
        let expected = self.model.report();
        same(
            "reported",
            shown,
            expected.map(|r| r.map(|group| self.groups[group].id)),
        )
    }
}
