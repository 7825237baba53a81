//! The intent lock under real threads, judged by what was recorded: no mode was granted that
//! conflicts with another held one, and no request was refused without a reason.
//!
//! Every thread draws numbers from one clock. Between the number drawn after a grant and the one
//! drawn before the release the mode was surely held. Between the one before the request and the
//! one after the release it may have been held or waited for. So two conflicting modes whose sure
//! spans overlap are a fault of the lock, in whatever order things happened in between; and so is a
//! refusal that overlaps no conflicting wider span.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use conversant::intent::{Guard, IntentLock};
use conversant::limit::Bypass;
use conversant::modes::Mode;

type Span = (u64, u64);

#[derive(Clone, Debug, Default)]
struct History {
    /// Held for sure.
    held: Vec<(Mode, Span)>,
    /// Asked for, and perhaps held.
    wanted: Vec<(Mode, Span)>,
    refused: Vec<(Mode, Span)>,
}

fn overlap(a: Span, b: Span) -> bool {
    a.0 < b.1 && b.0 < a.1
}

impl History {
    fn add(&mut self, other: Self) {
        self.held.extend(other.held);
        self.wanted.extend(other.wanted);
        self.refused.extend(other.refused);
    }

    /// How many pairs of compatible, or of conflicting, modes were held together.
    fn together(&self, compatible: bool) -> usize {
        let mut held = self.held.clone();
        held.sort_by_key(|(_, span)| span.0);
        let mut count = 0;
        for (nth, &(mode, span)) in held.iter().enumerate() {
            let later = held[nth + 1..].iter();
            let beside = later.take_while(|(_, other)| other.0 < span.1);
            count += beside
                .filter(|&&(other, at)| overlap(span, at) && mode.compatible(other) == compatible)
                .count();
        }
        count
    }

    /// The refusals that no other request explains.
    fn unreasonable(&self) -> usize {
        let accounts = |mode: Mode, span: Span| {
            let mut wanted = self.wanted.iter();
            wanted.any(|&(other, at)| !mode.compatible(other) && overlap(span, at))
        };
        let refused = self.refused.iter();
        refused
            .filter(|&&(mode, span)| !accounts(mode, span))
            .count()
    }
}

/// What one thread records.
struct Record<'a> {
    clock: &'a AtomicU64,
    history: History,
}

impl<'a> Record<'a> {
    fn new(clock: &'a AtomicU64) -> Self {
        let history = History::default();
        Self { clock, history }
    }

    /// In one total order, neither before earlier nor after later actions of this thread.
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Runs `hold` with a mode asked for at `asked`, and then `release`.
    fn hold(&mut self, mode: Mode, asked: u64, hold: impl FnOnce(), release: impl FnOnce()) {
        let from = self.now();
        hold();
        let to = self.now();
        release();
        let end = self.now();
        self.history.held.push((mode, (from, to)));
        self.history.wanted.push((mode, (asked, end)));
    }
}

/// A small generator of numbers that is the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn mode(&mut self) -> Mode {
        Mode::ALL[self.below(6) as usize]
    }
}

/// One request, of some kind, and what follows from it.
fn request(lock: &IntentLock, numbers: &mut Numbers, record: &mut Record<'_>) {
    let mode = numbers.mode();
    let asked = record.now();
    let guard = match numbers.below(4) {
        0 => lock.try_lock(mode).ok(),
        1 => {
            let short = Duration::from_micros(numbers.below(30));
            let got = lock.lock(mode).wait_timeout(short);
            if got.is_err() {
                let end = record.now();
                record.history.wanted.push((mode, (asked, end)));
                return;
            }
            got.ok()
        }
        _ => Some(lock.lock(mode).wait()),
    };
    let Some(guard) = guard else {
        let end = record.now();
        record.history.refused.push((mode, (asked, end)));
        return;
    };
    held(guard, asked, numbers, record);
}

/// Holds the lock, sometimes changes the mode, and releases it.
fn held(
    mut guard: Guard<&IntentLock>,
    mut asked: u64,
    numbers: &mut Numbers,
    record: &mut Record<'_>,
) {
    for _ in 0..numbers.below(3) {
        let (mode, next) = (guard.mode(), numbers.mode());
        record.hold(mode, asked, thread::yield_now, || ());
        let asks = record.now();
        // It keeps what it holds while it waits for more.
        let from = record.now();
        if mode.covers(next) {
            guard.downgrade(next).expect("it is weaker");
        } else {
            let converted = match numbers.below(2) {
                0 => guard.try_convert(next).is_ok(),
                _ => guard.convert(next).wait().is_ok(),
            };
            let to = record.now();
            record.history.held.push((mode, (from, to)));
            let wanted = mode.join(next);
            record.history.wanted.push((wanted, (asks, to)));
            assert_eq!(guard.mode(), if converted { wanted } else { mode });
        }
        // Until then it had the old mode, for which others may have been refused.
        let changed = record.now();
        record.history.wanted.push((mode, (asked, changed)));
        asked = asks;
    }
    let mode = guard.mode();
    record.hold(mode, asked, thread::yield_now, || drop(guard));
}

fn run(lock: &IntentLock, threads: u64, requests: usize) -> History {
    let clock = AtomicU64::new(0);
    let start = Barrier::new(threads as usize);
    let mut whole = History::default();
    thread::scope(|scope| {
        let one = |seed: u64| {
            let (clock, start) = (&clock, &start);
            scope.spawn(move || {
                let mut record = Record::new(clock);
                let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ (seed + 1));
                start.wait();
                for _ in 0..requests {
                    request(lock, &mut numbers, &mut record);
                }
                record.history
            })
        };
        let handles: Vec<_> = (0..threads).map(one).collect();
        for handle in handles {
            whole.add(handle.join().expect("a thread panicked"));
        }
    });
    whole
}

#[test]
fn no_pair_that_conflicts_is_ever_granted() {
    for bound in [
        Bypass::AtMost(0),
        Bypass::AtMost(1),
        Bypass::AtMost(64),
        Bypass::Unbounded,
    ] {
        let forms = [
            IntentLock::new(),
            IntentLock::striped(1),
            IntentLock::striped(4),
            IntentLock::striped_for_readers(2),
        ];
        for lock in forms.map(|lock| lock.with_bypass(bound)) {
            let history = run(&lock, 4, 500);
            assert_eq!(history.together(false), 0, "{lock:?}");
            assert_eq!(history.unreasonable(), 0, "{lock:?}");
            // The checks had something to look at.
            assert!(history.together(true) > 0 && !history.refused.is_empty());
            assert_eq!(lock.snapshot().held, [0; 6]);
            assert!(lock.snapshot().waiters.is_empty());
        }
    }
}

/// Negative control: a lock that grants everything. Both are surely inside, because each waits
/// there for the other.
#[test]
fn a_lock_that_lets_everybody_in_is_found_out() {
    for (modes, faults) in [
        ([Mode::X, Mode::X], 1),
        ([Mode::S, Mode::Ix], 1),
        ([Mode::U, Mode::Six], 1),
        ([Mode::S, Mode::U], 0),
        ([Mode::Ix, Mode::Ix], 0),
    ] {
        let (clock, both) = (AtomicU64::new(0), Barrier::new(2));
        let mut whole = History::default();
        thread::scope(|scope| {
            let handles = modes.map(|mode| {
                let (clock, both) = (&clock, &both);
                scope.spawn(move || {
                    let mut record = Record::new(clock);
                    let asked = record.now();
                    let meet = || {
                        both.wait();
                    };
                    record.hold(mode, asked, meet, || ());
                    record.history
                })
            });
            for handle in handles {
                whole.add(handle.join().expect("a thread panicked"));
            }
        });
        assert_eq!(whole.together(false), faults, "{modes:?}");
        assert_eq!(whole.together(true), 1 - faults, "{modes:?}");
    }
}

/// Negative control: a refusal next to a compatible mode, or after the conflicting mode had gone.
#[test]
fn a_refusal_without_a_reason_is_found_out() {
    let refused = vec![(Mode::S, (10, 12))];
    for (wanted, faults) in [
        ((Mode::S, (0, 20)), 1),
        ((Mode::X, (0, 9)), 1),
        ((Mode::X, (13, 20)), 1),
        ((Mode::Ix, (0, 11)), 0),
        ((Mode::X, (11, 20)), 0),
    ] {
        let history = History {
            refused: refused.clone(),
            wanted: vec![wanted],
            held: Vec::new(),
        };
        assert_eq!(history.unreasonable(), faults, "{wanted:?}");
    }
}
