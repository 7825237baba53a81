//! SEMANTICS section 5: permits, and what the semaphore reports about them.

use crate::semaphore;

use std::sync::Arc;

use conversant::semaphore::{AcquireError, Permit, Semaphore};

use semaphore::{PolledWait, assert_idle, strict, take, when_waiting};

/// "Permits: split, merge, owned variants"
#[test]
fn permits_split_and_merge() {
    let semaphore = Arc::new(strict(5));
    let mut all = Semaphore::try_acquire_owned(semaphore.clone(), 5).unwrap();
    let mut two: Permit<Arc<Semaphore>> = all.split(2).unwrap();
    let none = all.split(0).unwrap();
    assert_eq!((all.count(), two.count(), none.count()), (3, 2, 0));
    assert!(two.split(3).is_none());
    drop(none);
    assert_eq!(semaphore.available(), 0);
    drop(all);
    // A borrowed permit is merged into an owned one.
    two.merge(take(&semaphore, 3)).unwrap();
    assert_eq!((two.count(), semaphore.available()), (5, 0));
    let other = strict(1);
    let foreign: Permit<&Semaphore> = two.merge(take(&other, 1)).unwrap_err();
    assert!(std::ptr::eq(foreign.semaphore(), &other));
    drop((two, foreign));
    assert_idle(&semaphore, 5);
    assert_eq!(Arc::strong_count(&semaphore), 1);
}

#[test]
fn owned_waits_and_permits_keep_the_semaphore() {
    let semaphore = Arc::new(strict(1));
    let held = Semaphore::acquire_owned(semaphore.clone(), 1)
        .wait()
        .unwrap();
    let wait = Semaphore::acquire_owned(semaphore.clone(), 1);
    let waiter = std::thread::spawn(|| wait.wait().unwrap());
    when_waiting(&semaphore, 1);
    let weak = Arc::downgrade(&semaphore);
    drop(semaphore);
    std::thread::spawn(|| drop(held)).join().unwrap();
    let permit = waiter.join().unwrap();
    assert_eq!(permit.semaphore().available(), 0);
    drop(permit);
    assert!(weak.upgrade().is_none());
}

/// The semaphore may be reached by any pointer type of the user's.
#[test]
fn a_permit_keeps_what_leads_to_its_semaphore() {
    struct Pool {
        places: Semaphore,
    }
    #[derive(Clone)]
    struct PlacesOf(Arc<Pool>);
    impl std::ops::Deref for PlacesOf {
        type Target = Semaphore;
        fn deref(&self) -> &Semaphore {
            &self.0.places
        }
    }
    let pool = PlacesOf(Arc::new(Pool { places: strict(1) }));
    let permit = Semaphore::acquire_owned(pool.clone(), 1).wait().unwrap();
    let refused = Semaphore::try_acquire_owned(pool.clone(), 1);
    assert_eq!(refused.unwrap_err(), AcquireError::NoPermits);
    assert_eq!(Arc::strong_count(&pool.0), 2);
    drop(permit);
    assert_idle(&pool, 1);
    assert_eq!(Arc::strong_count(&pool.0), 1);
}

/// "`forget` lowers the limit by what is forgotten"
#[test]
fn forget_lowers_the_limit() {
    let semaphore = strict(5);
    let mut held = take(&semaphore, 4);
    let mut four = PolledWait::waiting(&semaphore, 4);
    held.split(2).unwrap().forget();
    assert_eq!(four.woken().unwrap_err(), AcquireError::AboveLimit);
    assert_eq!((semaphore.snapshot().limit, semaphore.available()), (3, 1));
    // With a debt of 1 and a limit of 1, forgetting 2 leaves 0 of both.
    semaphore.set_limit(1).unwrap();
    assert_eq!(semaphore.available(), -1);
    held.forget();
    assert_idle(&semaphore, 0);
}

#[test]
fn forgotten_in_debt_the_next_may_go_on() {
    let semaphore = strict(4);
    let (three, one) = (take(&semaphore, 3), take(&semaphore, 1));
    let mut waiter = PolledWait::waiting(&semaphore, 1);
    semaphore.set_limit(1).unwrap();
    three.forget();
    drop(one);
    // A limit of 0 is a pause.
    assert!(waiter.poll().is_pending());
    semaphore.set_limit(1).unwrap();
    drop(waiter.woken().unwrap());
    assert_idle(&semaphore, 1);
}

#[test]
fn debug_shows_the_word_and_never_blocks() {
    let semaphore = strict(3);
    let held = take(&semaphore, 1);
    let shown = format!("{semaphore:?} {held:?} {:?}", semaphore.acquire(1));
    assert!(shown.contains("available: 2"), "{shown}");
    assert!(shown.contains("count: 1"), "{shown}");
}

#[test]
fn errors_say_what_they_are() {
    let shown = [
        AcquireError::Closed.to_string(),
        AcquireError::AboveLimit.to_string(),
        AcquireError::NoPermits.to_string(),
        AcquireError::Closed.to_string(),
        AcquireError::AboveLimit.to_string(),
    ];
    let expected = [
        "semaphore closed",
        "more permits than the limit",
        "no permits to be had now",
        "semaphore closed",
        "more permits than the limit",
    ];
    assert_eq!(shown, expected);
}

/// Semaphores, permits and waits go to and between threads.
#[test]
fn auto_traits() {
    fn shared<T: Send + Sync + Unpin>() {}
    shared::<Semaphore>();
    shared::<Permit<&Semaphore>>();
    shared::<Permit<Arc<Semaphore>>>();
    fn are_shared<T: Send + Sync + Unpin>(_: &T) {}
    let semaphore = Arc::new(strict(1));
    are_shared(&semaphore.acquire(1));
    are_shared(&Semaphore::acquire_owned(semaphore.clone(), 1));
}

/// Permits held without a guard: they are out until their own semaphore makes a permit of them.
#[test]
fn permits_that_are_held_without_one() {
    let (semaphore, other) = (Semaphore::new(3).unwrap(), Semaphore::new(3).unwrap());
    let held = semaphore.try_acquire(2).unwrap().into_held();
    assert_eq!((held.count(), format!("{held:?}")), (2, "Held(2)".into()));
    let held = held.into_permit(&other).expect_err("of another");
    assert_eq!((semaphore.available(), other.available()), (1, 3));
    let permit = held.into_permit(&semaphore).unwrap();
    assert_eq!((permit.count(), semaphore.limit()), (2, 3));
    drop(permit);
    assert_eq!(semaphore.available(), 3);
}
