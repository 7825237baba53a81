//! Who is woken when a tenant, or the queue, has room again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use conversant::job_queue::Scope;

use crate::parts::{Woken, poll};

type Queue = conversant::job_queue::JobQueue<u32, u32>;

/// Of claims that their tenant or the queue has no room for, as many are woken as there is room,
/// each in its turn.
#[test]
fn room_wakes_as_many_claims_of_parts_as_it_has_place_for() {
    const MANY: usize = 5;
    for scope in [Scope::Tenant("shop".into()), Scope::Queue] {
        let queue = Queue::new();
        queue.set_limit(scope.clone(), 0).unwrap();
        let shop = queue.tenant("shop");
        let groups = [0, 1, 2, 3, 4].map(|name: u64| shop.group(name));
        let woken = [(); MANY].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
        let times = || [0, 1, 2, 3, 4].map(|n: usize| woken[n].0.load(Ordering::Relaxed));
        let mut waits: Vec<_> = groups.iter().map(|group| group.claim_one()).collect();
        for (n, wait) in waits.iter_mut().enumerate() {
            assert!(poll(wait, &woken[n]).is_pending());
            groups[n].push(n as u32, n as u32).unwrap();
        }
        assert_eq!(times(), [0; MANY]);
        queue.set_limit(scope, 2).unwrap();
        assert_eq!(times(), [1, 1, 0, 0, 0]);
        // One that leaves passes its turn on; each that ends makes room for one.
        drop(waits.remove(0));
        assert_eq!(times(), [1, 1, 1, 0, 0]);
        for n in 1..MANY {
            let Poll::Ready(Ok(claim)) = poll(&mut waits[n - 1], &woken[n]) else {
                panic!("no job for {n}");
            };
            claim.complete().unwrap();
            let next = [0, 1, 2, 3, 4].map(|other| usize::from(other < n + 3));
            assert_eq!(times(), next);
        }
    }
}

/// The tenants have room in turn, and so have the parts of each.
#[test]
fn room_wakes_in_a_circle() {
    let queue = Queue::new();
    queue.set_limit(Scope::Queue, 1).unwrap();
    let tenants = ["a", "b"].map(|name| queue.tenant(name));
    let groups = [0, 1, 2, 3].map(|n: u64| tenants[n as usize % 2].group(n));
    for group in groups.iter().cycle().take(12) {
        group.push(0, 0).unwrap();
    }
    let mut held = queue.try_claim_one().unwrap();
    let woken = [(); 4].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
    let mut waits: Vec<_> = groups.iter().map(|group| group.claim_one()).collect();
    for (wait, woken) in waits.iter_mut().zip(&woken) {
        assert!(poll(wait, woken).is_pending());
    }
    let mut order = Vec::new();
    while order.len() < 8 {
        held.complete().unwrap();
        let is_woken = |n: &usize| woken[*n].0.swap(0, Ordering::Relaxed) > 0;
        let all: Vec<_> = (0..4).filter(is_woken).collect();
        let &[n] = &all[..] else {
            panic!("woken: {all:?}");
        };
        held = groups[n].try_claim_one().unwrap();
        assert!(poll(&mut waits[n], &woken[n]).is_pending());
        order.push(n);
    }
    assert_eq!(order, [0, 1, 2, 3, 0, 1, 2, 3]);
}

/// A claim that was woken and forgotten keeps its room no longer than its group is there.
#[test]
fn a_group_that_is_gone_keeps_no_room() {
    let queue = Queue::new();
    queue.set_limit(Scope::tenant("shop"), 1).unwrap();
    let shop = queue.tenant("shop");
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    for times in 1..4 {
        let group = shop.group("a");
        let mut wait = group.claim_one();
        assert!(poll(&mut wait, &woken).is_pending());
        group.push(0, 0).unwrap();
        assert_eq!(woken.0.load(Ordering::Relaxed), times);
        std::mem::forget(wait);
        shop.try_claim_one().unwrap().complete().unwrap();
    }
}

/// The same of a tenant, and of the room of the queue.
#[test]
fn a_tenant_that_is_gone_keeps_no_room() {
    let queue = Queue::new();
    queue.set_limit(Scope::Queue, 1).unwrap();
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    for times in 1..4 {
        let shop = queue.tenant("shop");
        let mut wait = shop.claim_one();
        assert!(poll(&mut wait, &woken).is_pending());
        shop.push(0, 0).unwrap();
        assert_eq!(woken.0.load(Ordering::Relaxed), times);
        std::mem::forget(wait);
        drop(shop);
        queue.try_claim_one().unwrap().complete().unwrap();
        assert!(queue.snapshot().tenants.is_empty());
    }
}

/// One that leaves passes on its own place, and no more.
#[test]
fn the_place_of_one_that_leaves_is_for_one() {
    let queue = Queue::new();
    let shop = queue.tenant("shop");
    queue.set_limit(Scope::tenant("shop"), 0).unwrap();
    let woken = [(); 4].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
    let times = || [0, 1, 2, 3].map(|n: usize| woken[n].0.load(Ordering::Relaxed));
    let mut waits: Vec<_> = woken.iter().map(|_| shop.claim_one()).collect();
    for (wait, woken) in waits.iter_mut().zip(&woken) {
        assert!(poll(wait, woken).is_pending());
        shop.push(1, 1).unwrap();
    }
    queue.set_limit(Scope::tenant("shop"), 2).unwrap();
    assert_eq!(times(), [1, 1, 0, 0]);
    drop(waits.remove(0));
    assert_eq!(times(), [1, 1, 1, 0]);
}
