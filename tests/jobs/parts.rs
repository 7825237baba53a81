//! Tenants and groups by handle, and operations on jobs from outside: due times, replacing, unique
//! names, lists. One thread, no clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use conversant::error::Closed;
use conversant::job_queue::{
    Claim, Counts, JobQueue, Place, PushReason, Refused, Scope, Taken, Why,
};
use conversant::limit::Limit;

use super::of_now;

type Queue = JobQueue<u32, u32>;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn numbers(claims: &[Claim<'_, u32, u32>]) -> Vec<u32> {
    claims.iter().map(|claim| **claim).collect()
}

fn jobs(taken: Vec<Taken<u32, u32>>) -> Vec<u32> {
    taken.into_iter().map(|taken| taken.job).collect()
}

/// 1 and 2 in group "a", 3 ungrouped, 4 and 5 in group "b", all of "shop"; 6 of no tenant.
fn six() -> Queue {
    let queue = JobQueue::builder().group_limit(2).build().unwrap();
    let shop = queue.tenant("shop");
    let (a, b) = (shop.group("a"), shop.group("b"));
    for n in [2, 1] {
        a.push(n, n).unwrap();
    }
    shop.push(3, 3).unwrap();
    for n in [4, 5] {
        b.push(n, n).unwrap();
    }
    queue.push(6, 6, Place::new()).unwrap();
    queue
}

#[test]
fn by_name_and_by_handle_is_the_same() {
    let queue = six();
    let known = |scope: &Scope| jobs(queue.drain(scope));
    assert_eq!(known(&Scope::group_of("shop", "a")), [2, 1]);
    let shop = queue.tenant("shop");
    // Also by the handle of another group of the tenant.
    assert_eq!(known(&shop.group("a").group("b").scope()), [4, 5]);
    assert_eq!(known(&shop.scope()), [3]);
    assert_eq!(known(&Scope::tenant("nobody")), []);
    assert_eq!(known(&Scope::group_of("shop", "c")), []);
    assert_eq!(known(&Scope::Queue), [6]);
}

#[test]
fn the_last_handle_of_an_idle_name_forgets_it() {
    let queue = Queue::new();
    let names = || queue.snapshot().tenants.len();
    let shop = queue.tenant("shop");
    let mail = shop.group("mail");
    drop(shop);
    let again = mail.clone();
    drop(mail);
    assert_eq!((names(), queue.snapshot().tenants[0].groups.len()), (1, 1));
    again.push(1, 1).unwrap();
    let claims = queue.try_claim(1);
    drop(again);
    assert_eq!(names(), 1, "a job is in it");
    drop(claims);
    let mail = queue.tenant("shop").group("mail");
    queue.try_claim(1).remove(0).complete().unwrap();
    assert_eq!(names(), 1, "a handle keeps it");
    drop(mail);
    assert_eq!((names(), of_now(queue.counts())), (0, Counts::default()));
}

#[test]
fn a_part_is_claimed_in_order_within_all_limits() {
    let queue = six();
    let shop = queue.tenant("shop");
    let (a, b) = (shop.group("a"), shop.group("b"));
    queue.set_limit(Scope::Queue, 4).unwrap();
    queue.set_limit(shop.scope(), 2).unwrap();
    queue.set_limit(b.scope(), Limit::SERIAL).unwrap();
    let of_b = b.try_claim(9);
    assert_eq!(numbers(&of_b), [4]);
    let of_shop = shop.try_claim(9);
    assert_eq!(numbers(&of_shop), [1], "the tenant has two");
    assert!(a.try_claim(9).is_empty());
    drop(of_shop);
    assert_eq!(numbers(&a.try_claim(1)), [1]);
    // It left the ring when it had two, and is behind the other tenant now.
    assert_eq!(numbers(&queue.try_claim(9)), [6, 1]);
}

#[test]
fn a_claim_of_a_part_is_no_turn_of_its_tenant() {
    let queue = six();
    let shop = queue.tenant("shop");
    let first = shop.try_claim(1);
    let next = queue.try_claim(2);
    assert_eq!((numbers(&first), numbers(&next)), (vec![1], vec![2, 6]));
}

pub(crate) struct Woken(pub(crate) AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn poll<F: Future + Unpin>(wait: &mut F, woken: &Arc<Woken>) -> Poll<F::Output> {
    let waker = Waker::from(woken.clone());
    Pin::new(wait).poll(&mut Context::from_waker(&waker))
}

#[test]
fn one_job_is_claimed_as_one_of_several_is() {
    let builder = JobQueue::builder().group_limit(1).lease(at(5));
    let queue: Queue = builder.build().unwrap();
    let (shop, mail) = (queue.tenant("shop"), queue.tenant("shop").group("mail"));
    assert!(queue.try_claim_one().is_none() && mail.try_claim_one().is_none());
    let woken = [(); 2].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
    let (mut of_any, mut of_mail) = (queue.claim_one(), mail.claim_one());
    assert!(poll(&mut of_any, &woken[0]).is_pending());
    assert!(poll(&mut of_mail, &woken[1]).is_pending());
    shop.push(2, 2).unwrap();
    for n in [1, 3] {
        mail.push(n, n).unwrap();
    }
    let claim = of_mail.wait().unwrap();
    assert_eq!((*claim, claim.attempt()), (1, 1));
    assert_eq!(queue.why(claim.id()), Some(Why::Claimed(Some(at(5)))));
    assert!(mail.try_claim_one().is_none(), "the group's limit");
    assert_eq!(*of_any.wait().unwrap(), 2);
    queue.close();
    claim.complete().unwrap();
    assert_eq!(*queue.claim_one().wait().unwrap(), 2, "it was given back");
    let all = std::iter::from_fn(|| shop.try_claim_one()?.complete().ok());
    assert_eq!(jobs(all.collect()), [2, 3]);
    assert_eq!(queue.claim_one().wait().unwrap_err(), Closed);
    assert_eq!(mail.claim_one().wait().unwrap_err(), Closed);
}

#[test]
fn who_waits_for_a_part_is_woken_by_its_jobs_only() {
    let queue = Queue::new();
    let shop = queue.tenant("shop");
    let mail = shop.group("mail");
    let woken = [(); 3].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
    let times = || [0, 1, 2].map(|n: usize| woken[n].0.load(Ordering::Relaxed));
    let (mut of_any, mut of_shop, mut of_mail) = (queue.claim(1), shop.claim(1), mail.claim(1));
    assert!(poll(&mut of_any, &woken[0]).is_pending());
    assert!(poll(&mut of_shop, &woken[1]).is_pending());
    assert!(poll(&mut of_mail, &woken[2]).is_pending());
    assert_eq!(queue.counts().claims.waiting, 3);
    queue.push(1, 1, Place::new()).unwrap();
    assert_eq!(times(), [1, 0, 0]);
    shop.push(2, 2).unwrap();
    assert_eq!(times(), [1, 1, 0]);
    assert!(poll(&mut of_any, &woken[0]).is_ready());
    drop(queue.try_claim(9));
    mail.push(3, 3).unwrap();
    assert_eq!(times(), [1, 1, 1]);
    // Another claim took its job: it waits on, and is woken for the next.
    mail.try_claim(1).remove(0).complete().unwrap();
    assert!(poll(&mut of_mail, &woken[2]).is_pending());
    mail.push(4, 4).unwrap();
    assert_eq!(times(), [1, 1, 2]);
    assert_eq!(queue.counts().claims.notified, 2);
    drop((of_any, of_shop, of_mail));
    assert_eq!(queue.counts().claims.notified, 0);
    for claim in queue.try_claim(9) {
        claim.complete().unwrap();
    }
    let mut wait = mail.claim(1);
    assert!(poll(&mut wait, &woken[2]).is_pending());
    queue.shutdown();
    assert_eq!(times(), [1, 1, 3]);
    let ended = poll(&mut wait, &woken[2]);
    assert!(matches!(ended, Poll::Ready(Err(Closed))));
    drop(queue);
    let refused = mail.push(5, 6).unwrap_err();
    assert_eq!(
        (refused.content, refused.reason),
        ((5, 6), PushReason::Closed)
    );
}

#[test]
fn a_waiting_job_is_due_when_it_is_said() {
    let queue = Queue::new();
    let place = Place::new().group("g");
    let id = queue.push(1, 1, place.clone().due(at(9))).unwrap();
    queue.push(2, 2, place).unwrap();
    queue.set_due(id, at(0)).unwrap();
    let claims = queue.try_claim(9);
    assert_eq!(numbers(&claims), [1]);
    assert_eq!(queue.set_due(id, at(5)), Err(Refused::Claimed));
    drop(claims);
    queue.set_due(id, at(5)).unwrap();
    assert_eq!(queue.why(id), Some(Why::Due(at(5))));
    queue.set_due(id, at(7)).unwrap();
    assert_eq!(numbers(&queue.try_claim(9)), [2]);
    assert_eq!(queue.advance(at(6)), Some(at(7)));
    assert_eq!(queue.advance(at(7)), None);
    let mut claims = queue.try_claim(9);
    assert_eq!(numbers(&claims), [1]);
    claims.remove(0).fail_for_good().unwrap();
    assert_eq!(queue.set_due(id, at(0)), Err(Refused::Dead));
    queue.remove(id).unwrap();
    assert_eq!(queue.set_due(id, at(0)), Err(Refused::Stale));
}

#[test]
fn a_job_is_replaced_in_its_place_unless_it_is_claimed() {
    let queue = Queue::new();
    let ids = queue.push_all([1, 2, 3].map(|n| (n, n, Place::new())));
    let ids = ids.unwrap();
    assert_eq!(queue.replace(ids[1], 22).unwrap(), 2);
    let mut claims = queue.try_claim(9);
    assert_eq!(numbers(&claims), [1, 22, 3]);
    let refused = queue.replace(ids[0], 11).unwrap_err();
    assert_eq!((refused.content, refused.reason), (11, Refused::Claimed));
    claims.remove(0).complete().unwrap();
    let refused = queue.replace(ids[0], 11).unwrap_err();
    assert_eq!((refused.content, refused.reason), (11, Refused::Stale));
}

#[test]
fn a_list_has_all_jobs_of_its_scope_and_what_is_claimed_stays() {
    let queue = six();
    // The queue cannot show a claimed job.
    let listed = |scope: &Scope| -> Vec<u32> {
        let ids = queue.list(scope).into_iter();
        ids.map(|id| queue.get(id).unwrap_or_default()).collect()
    };
    let shop = queue.tenant("shop");
    let claims = shop.try_claim(1);
    assert_eq!(listed(&Scope::Queue), [2, 0, 3, 4, 5, 6]);
    assert_eq!(listed(&Scope::tenant("shop")), [2, 0, 3, 4, 5]);
    assert_eq!(listed(&Scope::group_of("shop", "a")), [2, 0]);
    assert_eq!(listed(&Scope::group("a")), []);
    let removed = queue.remove_all(queue.list(&Scope::tenant("shop")));
    assert_eq!(jobs(removed), [2, 3, 4, 5]);
    assert_eq!(jobs(queue.drain(&Scope::tenant("shop"))), []);
    drop(claims);
    assert_eq!(listed(&Scope::Queue), [1, 6]);
}

#[test]
fn a_place_by_handle_is_valid_in_its_queue_while_its_name_is_kept() {
    let queue = JobQueue::new();
    let (shop, other) = (queue.tenant("shop"), JobQueue::new());
    let group = shop.group("a");
    let [place, outlives, named] = [(); 3].map(|()| group.place());
    let _same = other.tenant("shop").group("a");
    let refused = other.push(1, 11, place.clone()).unwrap_err();
    assert_eq!(
        (refused.content, refused.reason),
        ((1, 11), PushReason::Stale)
    );
    let all = queue.push_all([(2, 22, place), (1, 11, shop.place())]);
    assert_eq!(all.unwrap().len(), 2);
    drop(group);
    // A job keeps the name.
    queue.push(3, 33, outlives.clone()).unwrap();
    assert_eq!(jobs(queue.drain(&Scope::group_of("shop", "a"))), [22, 33]);
    let again = shop.group("b");
    let outlived = outlives.clone();
    let batch = [(4, 44, again.place()), (5, 55, outlives)];
    let refused = queue.push_all(batch).unwrap_err();
    assert_eq!(
        (refused.content, refused.reason),
        (vec![(4, 44), (5, 55)], PushReason::Stale)
    );
    // Whatever else the place says.
    let dated = queue.push(7, 77, outlived.due(Duration::ZERO)).unwrap_err();
    assert_eq!(dated.reason, PushReason::Stale);
    // With a name the place is not one by handle any more.
    let id = queue.push(6, 66, named.group("c")).unwrap();
    assert_eq!(queue.list(&Scope::group("c")), [id]);
}

#[test]
fn a_wait_for_a_part_that_is_forgotten_is_not_woken() {
    let queue = JobQueue::new();
    for with_group in [false, true] {
        let shop = queue.tenant("shop");
        let group = shop.group("a");
        let waits = match with_group {
            false => [shop.claim(1), shop.claim(1)],
            true => [group.claim(1), group.claim(1)],
        };
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        for mut wait in waits {
            assert!(poll(&mut wait, &woken).is_pending());
            std::mem::forget(wait);
        }
        drop((group, shop));
        queue.push(1, 11, Place::new().tenant("other")).unwrap();
        assert_eq!(queue.try_claim(9).remove(0).complete().unwrap().job, 11);
    }
}

/// Wake-ups are sent a few at a time, without the lock in between: the rest is not forgotten, of
/// one part or of all.
#[test]
fn more_than_a_batch_of_wakes_reaches_all() {
    const MANY: u32 = 100;
    let queue = Queue::new();
    let names = [0, 1].map(|name| queue.tenant(name));
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let times = || woken.0.swap(0, Ordering::Relaxed);
    let wait = |n: u32| {
        let mut wait = names[n as usize % 2].claim(1);
        assert!(poll(&mut wait, &woken).is_pending());
        wait
    };
    let place = |n: u32| names[n as usize % 2].place();
    let push = |jobs: &mut dyn Iterator<Item = u32>| {
        let pushed = queue.push_all(jobs.map(|n| (n, n, place(n))));
        assert_eq!(pushed.unwrap().len(), MANY as usize);
    };
    let waits: Vec<_> = (0..MANY).map(|n| wait(2 * n)).collect();
    push(&mut (0..MANY).map(|n| 2 * n));
    assert_eq!(times(), MANY as usize);
    drop((waits, queue.drain(&Scope::Queue)));
    queue.set_limit(Scope::Queue, 0).unwrap();
    let waits: Vec<_> = (0..MANY).map(wait).collect();
    push(&mut (0..MANY));
    assert_eq!(times(), 0);
    queue.set_limit(Scope::Queue, Limit::Unlimited).unwrap();
    assert_eq!(times(), MANY as usize);
    drop(waits);
}
