//! What a semaphore gives out.

use crate::shown::shows;
use std::fmt;
use std::ops::Deref;

use super::Semaphore;

/// A number of permits of one [`Semaphore`], given back on drop.
///
/// What was done before a permit was given back is visible to whoever gets it
/// next. Forgetting the value with [`std::mem::forget`] keeps the permits out
/// for ever; see [`forget`](Self::forget) and [`into_held`](Self::into_held) for what is
/// usually meant.
///
/// # Cost
///
/// Dropping is one read-modify-write of the semaphore's word, and if somebody
/// waits a short lock, and at most one wake for each waiter that can go on.
///
/// # Panics
///
/// Dropping never does: a waker that it wakes and that panics stops nobody.
#[must_use = "permits are given back when this is dropped"]
pub struct Permit<S: Deref<Target = Semaphore>> {
    semaphore: S,
    count: u32,
}

/// Permits that are held without a [`Permit`]: for those that are kept where no reference to
/// their semaphore can be. [`Permit::into_held`] makes it, [`into_permit`](Self::into_permit)
/// makes a permit of it again.
///
/// Dropping it gives nothing back: the permits are out for ever then.
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

    /// A permit of these, which gives them back.
    ///
    /// # Errors
    ///
    /// Hands this back if `semaphore` is another than theirs, or was moved meanwhile. It is known by
    /// its address: if theirs has been dropped, another that lies there is taken for it.
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
    /// Of permits that have just been taken.
    #[inline]
    pub(crate) fn of(semaphore: S, count: u32) -> Self {
        Self { semaphore, count }
    }

    /// Drops the handle; the permits go on under another, or until they are
    /// [released](Semaphore::release) without one.
    #[inline]
    pub(crate) fn pass_on(mut self) {
        self.count = 0;
    }

    /// Gives the handle up, and not its permits: the limit stays, as opposed to
    /// [`forget`](Self::forget).
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

    /// The semaphore that these are of.
    #[must_use]
    pub fn semaphore(&self) -> &Semaphore {
        &self.semaphore
    }

    /// Takes `count` of these permits out into a value of their own, or nothing
    /// if there are fewer. 0 gives an empty permit.
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
    /// Hands permits of another semaphore back.
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
        // No overflow: never more is out than `Limit::MAX`.
        self.count += other.count;
        other.pass_on();
        Ok(())
    }

    /// Gives the permits up without giving them back: the limit is lowered by
    /// their number, to 0 at the least. Waits for more than the new limit fail.
    ///
    /// Where the limit was below that already, there was a debt, and what the
    /// limit could not be lowered by pays for it.
    ///
    /// [`Semaphore::raise`] by as many gives them back later, from anywhere.
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
