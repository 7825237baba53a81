//! The steps of an owner's task, as a world sends them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use super::oracle::Who;
use super::world::{Hashes, resources};
use super::{LockError, Mode, Op, Owner, Path, ReleaseError, Savepoint, Wait};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Lock(Who, Vec<(usize, Mode)>),
    /// Cancels a wait.
    Cancel(Who),
    /// A woken task runs.
    Run(Who),
    Release(Who, usize),
    Downgrade(Who, usize, Mode),
    Savepoint(Who),
    ReleaseTo(Who, usize),
    ReleaseAll(Who),
    /// One of a list; true: if none can be had, waits for the first.
    FirstFree(Who, Vec<usize>, Mode, bool),
    Retry(Who),
    Renew(Who),
    /// For any owner, also one that waits.
    SetPriority(Who, i32),
}

impl Step {
    pub(super) fn who(&self) -> Who {
        match *self {
            Self::Lock(who, _) | Self::Cancel(who) | Self::Run(who) | Self::Retry(who) => who,
            Self::Release(who, _) | Self::Downgrade(who, ..) | Self::Savepoint(who) => who,
            Self::ReleaseTo(who, _) | Self::ReleaseAll(who) | Self::Renew(who) => who,
            Self::FirstFree(who, ..) | Self::SetPriority(who, _) => who,
        }
    }
}

/// What the test and an owner's task exchange.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) steps: VecDeque<Step>,
    pub(super) cancel: bool,
    pub(super) answer: Option<Answer>,
    pub(super) held: Vec<(Path, u64)>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// With the position in a list.
    Locked(Result<Option<usize>, LockError<Path>>),
    Cancelled,
    Released(Result<(), ReleaseError>),
}

/// Polls until the wait is granted or cancelled.
async fn answer<O: Op>(
    mail: &RefCell<Mail>,
    mut wait: Wait<O>,
    result: impl Fn(O::Output) -> Result<Option<usize>, LockError<Path>>,
) -> Answer {
    let ended = poll_fn(|cx| match mail.borrow_mut().cancel {
        true => Poll::Ready(None),
        false => Pin::new(&mut wait).poll(cx).map(Some),
    });
    ended
        .await
        .map_or(Answer::Cancelled, |ended| Answer::Locked(result(ended)))
}

pub(super) async fn live(mut owner: Owner<Path, Hashes>, mail: Rc<RefCell<Mail>>) {
    let all = resources();
    let mut savepoints: Vec<Savepoint> = Vec::new();
    loop {
        let next = poll_fn(|_| match mail.borrow_mut().steps.pop_front() {
            Some(step) => Poll::Ready(step),
            None => Poll::Pending,
        });
        let answer = match next.await {
            Step::Lock(_, asked) => {
                let asked: Vec<_> = asked.iter().map(|&(r, m)| (all[r].clone(), m)).collect();
                let wait = match &asked[..] {
                    [(resource, mode)] => owner.lock(resource, *mode),
                    _ => owner.lock_many(asked),
                };
                answer(&mail, wait, |result| result.map(|()| None)).await
            }
            Step::FirstFree(_, list, mode, waits) => {
                let list = list.iter().map(|&r| all[r].clone());
                match waits {
                    true => {
                        answer(&mail, owner.first_free_or_wait(list, mode), |found| found).await
                    }
                    false => {
                        let list: Vec<_> = list.collect();
                        Answer::Locked(Ok(owner.first_free(&list, mode).expect("open")))
                    }
                }
            }
            Step::Release(_, r) => Answer::Released(owner.release(&all[r])),
            Step::Downgrade(_, r, m) => Answer::Released(owner.downgrade(&all[r], m)),
            Step::Savepoint(_) => {
                savepoints.push(owner.savepoint());
                Answer::Released(Ok(()))
            }
            Step::ReleaseTo(_, n) => Answer::Released(owner.release_to(savepoints[n])),
            Step::ReleaseAll(_) => {
                owner.release_all();
                Answer::Released(Ok(()))
            }
            Step::Retry(_) => {
                owner.retry();
                Answer::Released(Ok(()))
            }
            Step::Renew(_) => {
                owner.renew();
                Answer::Released(Ok(()))
            }
            Step::Cancel(_) | Step::Run(_) | Step::SetPriority(..) => unreachable!("not sent"),
        };
        let mut mail = mail.borrow_mut();
        mail.answer = Some(answer);
        mail.held = all.iter().map(|r| (r.clone(), owner.grants(r))).collect();
    }
}
