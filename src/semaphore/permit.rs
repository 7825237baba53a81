//! The permits of a semaphore.

use crate::shown::shows;
use std::fmt;
use std::ops::Deref;

use super::Semaphore;

/// A number of permits of one [`Semaphore`], released on drop.
///
/// What was done before a permit was released is visible to its next holder. After
/// [`std::mem::forget`] the permits are never released; [`forget`](Self::forget) or
/// [`into_held`](Self::into_held) is usually what you want.
///
/// # Cost
///
/// Dropping is one read-modify-write of the semaphore's word. If somebody waits, it also takes a
/// short lock, and wakes each waiter that can go on at most once.
///
/// # Panics
///
/// Dropping never panics: a waker that it wakes and that panics stops nobody.
#[must_use = "permits are given back when this is dropped"]
pub struct Permit<S: Deref<Target = Semaphore>> {
    semaphore: S,
    count: u32,
}

/// Permits that are held without a [`Permit`], where no reference to their semaphore can be kept.
/// [`Permit::into_held`] makes it; [`into_permit`](Self::into_permit) makes a permit of it again.
///
/// Dropping it releases nothing: the permits are then out for ever.
#[must_use = "the permits are out for ever if this is dropped"]
pub struct Held {
    count: u32,
    /// The address of the semaphore.
    of: usize,
}

impl Held {
    /// How many permits these are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Turns these into a permit again, which releases them on drop.
    ///
    /// # Errors
    ///
    /// Hands this value back if `semaphore` is not the semaphore of these permits, or was moved
    /// meanwhile. The semaphore is recognized by its address: if it has been dropped, another one
    /// at the same address is taken for it.
    pub fn into_permit<S: Deref<Target = Semaphore>>(
        self,
        semaphore: S,
    ) -> Result<Permit<S>, Self> {
        if self.of != std::ptr::from_ref(&*semaphore).addr() {
            return Err(self);
        }
        Ok(Permit::of(semaphore, self.count))
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.count).finish()
    }
}

impl<S: Deref<Target = Semaphore>> Permit<S> {
    /// Makes a permit of permits that have just been taken.
    #[inline]
    pub(crate) fn of(semaphore: S, count: u32) -> Self {
        Self { semaphore, count }
    }

    /// Drops the handle without a release.
    /// Another [`Permit`] has the permits now, or they are [released](Semaphore::release) later.
    #[inline]
    pub(crate) fn pass_on(mut self) {
        self.count = 0;
    }

    /// Drops the handle and keeps the permits. Unlike [`forget`](Self::forget), this leaves the
    /// limit.
    ///
    /// ```
    /// use conversant::semaphore::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3)?;
    /// let held = semaphore.try_acquire(2)?.into_held();
    /// assert_eq!(semaphore.available(), 1);
    /// drop(held.into_permit(&semaphore).expect("the same semaphore"));
    /// assert_eq!(semaphore.available(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_held(self) -> Held {
        let (count, of) = (self.count, std::ptr::from_ref(self.semaphore()).addr());
        self.pass_on();
        Held { count, of }
    }

    /// How many permits these are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The semaphore of these permits.
    #[must_use]
    pub fn semaphore(&self) -> &Semaphore {
        &self.semaphore
    }

    /// Splits off `count` of these permits, or returns `None` if there are fewer.
    /// A `count` of 0 gives an empty permit.
    ///
    /// ```
    /// # let semaphore = conversant::semaphore::Semaphore::new(3).unwrap();
    /// let mut all = semaphore.try_acquire(3).unwrap();
    /// let one = all.split(1).unwrap();
    /// assert_eq!((all.count(), one.count()), (2, 1));
    /// assert!(all.split(3).is_none());
    /// drop(one);
    /// assert_eq!(semaphore.available(), 1);
    /// ```
    #[must_use = "what is split off and dropped is given back"]
    pub fn split(&mut self, count: u32) -> Option<Self>
    where
        S: Clone,
    {
        let rest = self.count.checked_sub(count)?;
        let semaphore = self.semaphore.clone();
        self.count = rest;
        Some(Self { semaphore, count })
    }

    /// Adds permits of the same semaphore, borrowed or owned.
    ///
    /// # Errors
    ///
    /// Hands `other` back if its permits are of another semaphore.
    ///
    /// ```
    /// # let semaphore = conversant::semaphore::Semaphore::new(3).unwrap();
    /// let mut permit = semaphore.try_acquire(1).unwrap();
    /// permit.merge(semaphore.try_acquire(2).unwrap()).unwrap();
    /// assert_eq!(permit.count(), 3);
    /// ```
    pub fn merge<R: Deref<Target = Semaphore>>(
        &mut self,
        other: Permit<R>,
    ) -> Result<(), Permit<R>> {
        if !std::ptr::eq(self.semaphore(), other.semaphore()) {
            return Err(other);
        }
        // No overflow: at most `Limit::MAX` permits are out.
        self.count += other.count;
        other.pass_on();
        Ok(())
    }

    /// Gives up the permits without releasing them: the limit falls by their number, or to 0.
    /// Waits for more than the new limit fail, unless that is 0.
    ///
    /// If the limit was below their number already, there was a debt; what the limit could not be
    /// lowered by is taken off the debt.
    ///
    /// [`Semaphore::raise`] by the same number gives them back later, from anywhere.
    pub fn forget(mut self) {
        let count = std::mem::take(&mut self.count);
        self.semaphore.lower_limit(count, count);
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Permit<S> {
    #[inline]
    fn drop(&mut self) {
        if self.count > 0 {
            self.semaphore.release(self.count);
        }
    }
}

shows!([S: Deref<Target = Semaphore>] Permit<S>, |this| count: this.count);
