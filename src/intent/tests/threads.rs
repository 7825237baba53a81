//! Real threads: modes that are held together are compatible, and every thread finishes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::{forms, is_idle};
use crate::limit::Bypass;
use crate::modes::Mode;

/// How many hold each mode, counted outside the lock.
#[derive(Default)]
struct Held([AtomicUsize; 6]);

impl Held {
    fn enter(&self, mode: Mode) {
        self.0[mode as usize].fetch_add(1, Ordering::SeqCst);
        for other in Mode::ALL {
            let own = usize::from(other == mode);
            let held = self.0[other as usize].load(Ordering::SeqCst);
            assert!(
                mode.compatible(other) || held <= own,
                "{mode} beside {other}"
            );
        }
    }

    fn leave(&self, mode: Mode) {
        self.0[mode as usize].fetch_sub(1, Ordering::SeqCst);
    }
}

fn random(seed: &AtomicU64) -> usize {
    let seed = seed.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 33) as usize
}

#[test]
fn nobody_holds_what_conflicts() {
    for bound in [0, 1, 64] {
        for lock in forms() {
            let lock = lock.with_bypass(Bypass::AtMost(bound));
            let (held, seed) = (Held::default(), AtomicU64::new(u64::from(bound)));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..1_500 {
                            one_round(&lock, &held, &seed);
                        }
                    });
                }
            });
            is_idle(&lock);
        }
    }
}

fn one_round(lock: &crate::intent::IntentLock, held: &Held, seed: &AtomicU64) {
    let pick = |n| random(seed) % n;
    let mode = Mode::ALL[pick(6)];
    let mut guard = match pick(4) {
        0 => match lock.try_lock(mode) {
            Ok(guard) => guard,
            Err(_) => return,
        },
        1 => match lock.lock(mode).wait_timeout(Duration::from_micros(20)) {
            Ok(guard) => guard,
            Err(_) => return,
        },
        _ => lock.lock(mode).wait(),
    };
    held.enter(guard.mode());
    match pick(4) {
        0 => {
            let before = guard.mode();
            held.leave(before);
            // Refused or not, the guard holds what its `mode` says.
            let _ = guard.convert(Mode::ALL[pick(6)]).wait();
            held.enter(guard.mode());
        }
        1 => {
            let before = guard.mode();
            let to = before.meet(Mode::ALL[pick(6)]);
            held.leave(before);
            guard.downgrade(to).unwrap();
            held.enter(to);
        }
        _ => {}
    }
    if pick(8) == 0 {
        std::thread::yield_now();
    }
    held.leave(guard.mode());
}
