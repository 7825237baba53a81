//! A wait for whichever of two comes first.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Op, Wait, drop_quietly, sealed};

impl<O: Op> Wait<O> {
    /// Waits for this or for `other`, whichever comes first: `Ok` with the result of this, or `Err`
    /// with that of `other`: a wait, or any other future, pinned if it has to be. If both are
    /// ready, it is this. The one that comes second is dropped, and loses nothing that others could
    /// use; a panic of its drop ends there.
    ///
    /// A wait that ends on a signal, also in a thread, and keeps its place in line until then:
    ///
    /// ```
    /// use conversant::prelude::*;
    ///
    /// let queue = Queue::<u32>::new();
    /// let leave = Semaphore::new(0)?; // Closed by whoever gives the signal.
    /// std::thread::scope(|scope| {
    ///     let reader = scope.spawn(|| queue.receive().or(leave.acquire(1)).wait().is_err());
    ///     leave.close();
    ///     assert!(reader.join().unwrap());
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// To have a message back that was not sent, put the send second, by reference:
    ///
    /// ```
    /// # use conversant::prelude::*;
    /// let queue = Queue::builder().capacity(0).build()?;
    /// let (orders, leave) = (queue.lane(1, 8)?.conversation()?, Semaphore::new(0)?);
    /// let mut sending = orders.send_wait("an order");
    /// leave.close();
    /// if leave.acquire(1).or(&mut sending).wait().is_ok() {
    ///     assert_eq!(sending.into_message(), Some("an order"));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Something else can end it, so a thread in it waits as in
    /// [`wait_timeout`](Self::wait_timeout): errors that only a wait without an end can give, such
    /// as [`OwnQueue`](crate::queue::SendReason::OwnQueue) and
    /// [`Stalled`](crate::error::Stalled), do not come.
    pub fn or<F: Future + Unpin>(
        self,
        other: F,
    ) -> Wait<impl Op<Output = Result<O::Output, F::Output>>> {
        Wait::new(Or(Some((self, other))))
    }
}

/// The two, until one is ready.
struct Or<O: Op, F>(Option<(Wait<O>, F)>);

impl<O: Op, F> sealed::Sealed for Or<O, F> {}

impl<O: Op, F: Future + Unpin> Op for Or<O, F> {
    type Output = Result<O::Output, F::Output>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (wait, other) = self.0.as_mut().expect("neither has come");
        let mut either = Pin::new(wait).poll(cx).map(Ok);
        if either.is_pending() {
            either = Pin::new(other).poll(cx).map(Err);
        }
        if either.is_ready() {
            // Now, not with the outer wait: what the second was granted goes on. The result is kept
            // if a drop panics.
            drop_quietly(self.0.take());
        }
        either
    }

    /// Both cancel themselves when they are dropped.
    fn cancel(&mut self) {
        self.0 = None;
    }
}
