//! The facade over the standard library, parking_lot, loom and shuttle: the only file that names
//! any of them.
//!
//! All of them offer the same names here, so that the algorithms are written once and without cfg.
//! loom explores all interleavings of a small model under a weak memory model. shuttle runs random
//! schedules of larger compositions, with sequential consistency only. The differences that remain:
//!
//! - `Mutex::new` and the constructors of the atomics are `const` only where nothing is modelled;
//!   so is what [`const_fn`] makes of them.
//! - loom has no `Weak` and cannot unsize an `Arc`: code that is modelled with loom does without.
//! - There is no timed waiting. In the model every deadline passes at once: [`Condition::wait`]
//!   unlocks the mutex, locks it again and reports the time-out. What other threads do in between
//!   is explored, so a grant that races a time-out is, too. A notification during a timed sleep is
//!   not; that case differs from the untimed sleep only by the deadline.
//! - Every loop that waits for another thread must call `spin_loop` or `yield_now`, or the model
//!   never ends.
//!
//! Some things are never modelled: [`WakeArc`], since only that `Arc` makes a `Waker`;
//! [`UnmodelledArc`]; [`Tally`], a statistic that no decision depends on; [`unique`], whose numbers
//! are only compared for equality; the memory that `group` keeps for reuse; and the list of threads
//! that have received from a queue.

// Each module takes the names it needs; the facade lists them all.
#![allow(dead_code, unused_imports)]

#[cfg(any(loom, shuttle))]
pub(crate) use self::model::*;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use self::real::*;

/// The `Arc` for which `std::task::Wake` is implemented, under loom too.
pub(crate) use std::sync::Arc as WakeArc;
pub(crate) use std::sync::OnceLock;
pub(crate) use std::thread::panicking;

/// For names and reports, which never change, and on whose reference count nothing depends.
pub(crate) use std::sync::Arc as UnmodelledArc;

/// Not visible to a model: for memory that is reused, and for a list of threads. Nothing that a
/// model sees is done under such a lock.
pub(crate) use parking_lot::Mutex as UnmodelledMutex;
pub(crate) use std::thread_local as unmodelled_per_thread;

use std::cell::Cell;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64 as Unmodelled, Ordering as UnmodelledOrdering};
use std::time::Instant;

/// A function that is `const`, except in a build for a model.
macro_rules! const_fn {
    ($(#[$attr:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(any(loom, shuttle)))]
        $(#[$attr])* $vis const fn $($rest)*
        #[cfg(any(loom, shuttle))]
        $(#[$attr])* $vis fn $($rest)*
    };
}
pub(crate) use const_fn;

/// Whether this is a build for a model.
pub(crate) const MODELLED: bool = cfg!(any(loom, shuttle));

/// `normal`, or `modelled` in a build for a model, so that small models reach
/// the edges of bounded things.
pub(crate) const fn model_size(normal: usize, modelled: usize) -> usize {
    if MODELLED { modelled } else { normal }
}

/// Executes `times` pause instructions.
#[inline]
pub(crate) fn pause(times: u32) {
    (0..times).for_each(|_| spin_loop());
}

/// A count for people to read. It is never modelled, and no decision depends on it.
#[derive(Debug)]
pub(crate) struct Tally(Unmodelled);

impl Tally {
    pub(crate) const fn new() -> Self {
        Self(Unmodelled::new(0))
    }

    /// Counts one. Relaxed: the count orders nothing.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, UnmodelledOrdering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(UnmodelledOrdering::Relaxed)
    }
}

/// A number that this process has given to no other caller.
pub(crate) fn unique() -> u64 {
    static LAST: Unmodelled = Unmodelled::new(0);
    // Relaxed: no two read-modify-writes of one word see the same value.
    LAST.fetch_add(1, UnmodelledOrdering::Relaxed)
}

/// A number of the calling thread, below [`u64::MAX`]; [`u64::MAX`] while the thread's locals are
/// destroyed.
#[inline]
pub(crate) fn thread_number() -> u64 {
    per_thread! {
        static NUMBER: Cell<u64> = const { Cell::new(u64::MAX) };
    }
    let number = NUMBER.try_with(|number| {
        if number.get() == u64::MAX {
            number.set(unique());
        }
        number.get()
    });
    number.unwrap_or(u64::MAX)
}

/// On two cache lines of its own, because processors fetch them in pairs: a thread that changes
/// neighbouring data does not take these lines away.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// A cell with the interface of loom's, for builds where no model sees what is done with the
/// pointer.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct PlainCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> PlainCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A condition variable and its mutex, from std: one word each. Those of parking_lot go through a
/// table that all threads share, and their threads wake later.
#[derive(Debug)]
pub(crate) struct Condition {
    mutex: ConditionMutex<()>,
    variable: Condvar,
}

impl Condition {
    pub(crate) fn new() -> Self {
        Self {
            mutex: ConditionMutex::new(()),
            variable: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> ConditionGuard<'_, ()> {
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until notified, perhaps spuriously, or until the deadline. Returns the guard, and
    /// whether the deadline has passed.
    pub(crate) fn wait<'c>(
        &'c self,
        guard: ConditionGuard<'c, ()>,
        deadline: Option<Instant>,
    ) -> (ConditionGuard<'c, ()>, bool) {
        let Some(deadline) = deadline else {
            let guard = self.variable.wait(guard);
            return (guard.unwrap_or_else(PoisonError::into_inner), false);
        };
        if MODELLED {
            drop(guard);
            return (self.lock(), true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let slept = self.variable.wait_timeout(guard, left);
        let (guard, slept) = slept.unwrap_or_else(PoisonError::into_inner);
        (guard, slept.timed_out())
    }

    pub(crate) fn notify_one(&self) {
        self.variable.notify_one();
    }
}

#[cfg(not(any(loom, shuttle)))]
mod real {
    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{
        Arc, Condvar, Mutex as ConditionMutex, MutexGuard as ConditionGuard, Weak,
    };
    pub(crate) use std::thread::{
        Builder, JoinHandle, available_parallelism, current, spawn, yield_now,
    };
    pub(crate) use std::thread_local as per_thread;

    pub(crate) use super::PlainCell as UnsafeCell;

    /// Does nothing: see the model's version.
    #[inline(always)]
    pub(crate) fn model_fence() {}
}

#[cfg(any(loom, shuttle))]
mod model {
    #[cfg(loom)]
    pub(crate) use loom as checker;
    #[cfg(shuttle)]
    pub(crate) use shuttle as checker;

    pub(crate) use checker::hint::spin_loop;
    pub(crate) use checker::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use checker::sync::{
        Arc, Condvar, Mutex as ConditionMutex, MutexGuard as ConditionGuard,
    };
    pub(crate) use checker::thread::{Builder, JoinHandle, current, spawn, yield_now};
    #[cfg(loom)]
    pub(crate) use loom::cell::UnsafeCell;

    #[cfg(shuttle)]
    pub(crate) use super::PlainCell as UnsafeCell;
    #[cfg(shuttle)]
    pub(crate) use shuttle::sync::Weak;
    #[cfg(shuttle)]
    pub(crate) use std::thread::available_parallelism;

    use std::ops::{Deref, DerefMut};
    use std::sync::PoisonError;

    /// loom treats a SeqCst load or read-modify-write as AcqRel. Where an argument depends on the
    /// single order of two of these, this fence is between them in the model; elsewhere it is
    /// nothing.
    pub(crate) fn model_fence() {
        fence(Ordering::SeqCst);
    }

    /// As `thread_local!`, whose name a `use` cannot export. loom's version does not know the
    /// `const` form.
    macro_rules! per_thread {
        ($(static $name:ident: $type:ty = const $init:block;)+) => {
            $($crate::sync::checker::thread_local! { static $name: $type = $init; })+
        };
    }
    pub(crate) use per_thread;

    /// Runs a model with at most this many preemptions per execution (`None`: no bound), and prints
    /// the bound and the number of interleavings. With `MODELS=full` in the environment there is no
    /// bound, with `MODELS=deep` the given one, otherwise one less, but not 0. One model runs at a
    /// time. Each maps new stacks, for which threads of one process wait for each other: two models
    /// at the same time would take twice as long as one after the other.
    #[cfg(all(test, loom))]
    pub(crate) fn explore(
        name: &str,
        preemptions: Option<usize>,
        model: impl Fn() + Send + Sync + 'static,
    ) {
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let preemptions = match std::env::var("MODELS").as_deref() {
            Ok("full") => None,
            Ok("deep") => preemptions,
            _ => preemptions.map(|given| given.max(2) - 1),
        };
        let runs = std::sync::Arc::new(super::Tally::new());
        let counted = runs.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.check(move || {
            counted.count();
            model();
        });
        let bound = preemptions.map_or("none".into(), |n| n.to_string());
        let runs = runs.get();
        println!("model {name}: {runs} interleavings, preemption bound {bound}");
    }

    /// The model's mutex in the shape of parking_lot's: no poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(checker::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(checker::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            MutexGuard {
                mutex: self,
                held: Some(held),
            }
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let held = self.0.try_lock().ok()?;
            Some(MutexGuard {
                mutex: self,
                held: Some(held),
            })
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// `held` is empty only while a method has the mutex unlocked.
    #[derive(Debug)]
    pub(crate) struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        held: Option<checker::sync::MutexGuard<'a, T>>,
    }

    impl<T> MutexGuard<'_, T> {
        /// Runs `f` with the mutex unlocked, and locks it again, even if `f` panics.
        pub(crate) fn unlocked<R>(guard: &mut Self, f: impl FnOnce() -> R) -> R {
            struct Relock<'g, 'a, T>(&'g mut MutexGuard<'a, T>);
            impl<T> Drop for Relock<'_, '_, T> {
                fn drop(&mut self) {
                    self.0.held = self.0.mutex.lock().held.take();
                }
            }
            guard.held = None;
            let _relock = Relock(guard);
            f()
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.held.as_ref().expect("the mutex is held")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.held.as_mut().expect("the mutex is held")
        }
    }
}
