//! PERFORMANCE rows S1, S2, S3.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use conversant::limit::Bypass;
use conversant::semaphore::Semaphore;
use conversant_versus::{Contender, microsecond, table, threads, work};
use parking_lot::{Condvar, Mutex};

/// One permit taken, `hold` run, given back.
trait Peer: Sync + Send + 'static {
    fn with(&self, hold: impl FnOnce());
}

/// The physical limit: two additions, and no semaphore at all.
struct FetchPair(AtomicI64);

impl Peer for FetchPair {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        black_box(self.0.fetch_sub(1, Ordering::Acquire));
        hold();
        black_box(self.0.fetch_add(1, Ordering::Release));
    }
}

/// Exclusion without waiting: a loop of exchange and yield.
struct CasYield(AtomicI64);

impl Peer for CasYield {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        let mut spins = 0;
        loop {
            let now = self.0.load(Ordering::Relaxed);
            if now > 0
                && self
                    .0
                    .compare_exchange_weak(now, now - 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break;
            }
            spins += 1;
            if spins % 32 == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        hold();
        self.0.fetch_add(1, Ordering::Release);
    }
}

struct ParkingLot(Mutex<i64>, Condvar);

impl Peer for ParkingLot {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        let mut free = self.0.lock();
        while *free == 0 {
            self.1.wait(&mut free);
        }
        *free -= 1;
        drop(free);
        hold();
        *self.0.lock() += 1;
        self.1.notify_one();
    }
}

struct Tokio(tokio::sync::Semaphore);

impl Peer for Tokio {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        let permit = pollster::block_on(self.0.acquire()).unwrap();
        hold();
        drop(permit);
    }
}

struct AsyncLock(async_lock::Semaphore);

impl Peer for AsyncLock {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        let permit = self.0.acquire_blocking();
        hold();
        drop(permit);
    }
}

struct Ours(Semaphore);

impl Peer for Ours {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        let permit = self.0.acquire(1).wait().unwrap();
        hold();
        drop(permit);
    }
}

struct OursTry(Semaphore);

impl Peer for OursTry {
    #[inline]
    fn with(&self, hold: impl FnOnce()) {
        let permit = self.0.try_acquire(1).unwrap();
        hold();
        drop(permit);
    }
}

/// `limit` permits for `count` threads that hold one for `steps`; never more
/// than the limit may be inside.
fn contender<P: Peer>(
    name: impl Into<String>,
    peer: P,
    (count, limit, steps): (u64, u64, u64),
) -> Contender {
    let peer = Arc::new(peer);
    let name = name.into();
    let label = name.clone();
    let checked = limit > 0 && count > 1;
    Contender {
        name,
        run: Box::new(move |ops| {
            let inside = AtomicU64::new(0);
            // The check touches a shared line: only one operation in 16 makes it.
            threads(count, ops, |_, each| {
                for op in 0..each {
                    peer.with(|| {
                        let check = checked && op % 16 == 0;
                        if check {
                            let others = inside.fetch_add(1, Ordering::Relaxed);
                            assert!(others < limit, "{label}: {others} inside already");
                        }
                        work_or_nothing(steps);
                        if check {
                            inside.fetch_sub(1, Ordering::Relaxed);
                        }
                    });
                }
            })
        }),
    }
}

#[inline]
fn work_or_nothing(steps: u64) {
    if steps > 0 {
        work(steps);
    }
}

fn ours(limit: u32, bypass: u32) -> Semaphore {
    let semaphore = Semaphore::new(limit).unwrap();
    semaphore.with_bypass(Bypass::AtMost(bypass))
}

fn contended(title: &str, shape: (u64, u64, u64)) {
    let limit = shape.1;
    let few = limit as u32;
    let mut all = vec![
        contender(
            "CAS and yield",
            CasYield(AtomicI64::new(limit as i64)),
            shape,
        ),
        contender(
            "parking_lot mutex+condvar",
            ParkingLot(Mutex::new(limit as i64), Condvar::new()),
            shape,
        ),
    ];
    for bypass in [0, 16, 64, 128, 256, u32::MAX] {
        if bypass > 0 || std::env::var("STRICT").is_ok() {
            all.push(contender(
                format!("conversant bypass {bypass}"),
                Ours(ours(few, bypass)),
                shape,
            ));
        }
    }
    if std::env::var("PEERS").is_ok() {
        let limit = limit as usize;
        all.push(contender(
            "tokio",
            Tokio(tokio::sync::Semaphore::new(limit)),
            shape,
        ));
        all.push(contender(
            "async-lock",
            AsyncLock(async_lock::Semaphore::new(limit)),
            shape,
        ));
    }
    table(title, &all);
}

fn main() {
    let us = microsecond();
    let alone = (1, 0, 0);
    table(
        "S1 uncontended pair",
        &[
            contender("fetch pair", FetchPair(AtomicI64::new(1)), alone),
            contender("conversant try_acquire", OursTry(ours(1, 64)), alone),
            contender("conversant acquire.wait", Ours(ours(1, 64)), alone),
            contender("CAS and fetch_add", CasYield(AtomicI64::new(1)), alone),
            contender(
                "parking_lot mutex+condvar",
                ParkingLot(Mutex::new(1), Condvar::new()),
                alone,
            ),
            contender("tokio", Tokio(tokio::sync::Semaphore::new(1)), alone),
            contender(
                "async-lock",
                AsyncLock(async_lock::Semaphore::new(1)),
                alone,
            ),
        ],
    );
    contended("S2 two threads, one permit, held 0", (2, 1, 0));
    contended("S2 two threads, one permit, held 1 us", (2, 1, us));
    contended("S3 eight threads, 3 permits held 1 us", (8, 3, us));
    contended("S3 eight threads, 64 permits held 0", (8, 64, 0));
}
