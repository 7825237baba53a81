//! How a task ended, and what it returned.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use crate::shown::{pad, says};

/// A task's number: from 1, in order of submission to its scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskId(pub(crate) u64);

impl TaskId {
    /// The number itself.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a task may return: a `Result`, or `()` if it cannot fail. A type of yours may be one too;
/// [`into_result`](Self::into_result) runs as part of the task.
///
/// A task that returns another value and cannot fail gives `Ok::<_, Infallible>(value)`. A task
/// that only panics or only waits names its type: `|| -> Result<u32, String> { todo!() }`.
#[diagnostic::on_unimplemented(
    message = "a task cannot return `{Self}`",
    label = "this task returns neither a `Result` nor `()`",
    note = "return `Ok::<_, std::convert::Infallible>(value)` if it cannot fail"
)]
pub trait TaskResult: Send + 'static {
    /// The result of a task that has not failed.
    type Ok: Send + 'static;

    /// The error of a task that has failed.
    type Error: Send + 'static;

    /// The result, or the error.
    ///
    /// # Errors
    ///
    /// If the task has failed.
    fn into_result(self) -> Result<Self::Ok, Self::Error>;
}

impl<R: Send + 'static, E: Send + 'static> TaskResult for Result<R, E> {
    type Ok = R;
    type Error = E;

    #[inline]
    fn into_result(self) -> Self {
        self
    }
}

impl TaskResult for () {
    type Ok = ();
    type Error = Infallible;

    #[inline]
    fn into_result(self) -> Result<(), Infallible> {
        Ok(self)
    }
}

/// How a task ended, without its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Ending {
    /// It returned a result.
    Ok,
    /// It returned an error.
    Failed,
    /// It panicked.
    Panicked,
    /// It was cancelled: before it started, or, for a future, at an await.
    Cancelled,
    /// It was skipped: a task of a lower tier of its caller had failed.
    Skipped,
}

impl Ending {
    /// Whether the task itself failed: it returned an error or panicked.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Panicked)
    }
}

says!(Ending {
    Self::Ok => "ok",
    Self::Failed => "failed",
    Self::Panicked => "panicked",
    Self::Cancelled => "cancelled",
    Self::Skipped => "skipped",
});

/// Where and when a task ran. Times count from when the scheduler was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Run {
    /// The worker that ran it, from 1.
    pub worker: u32,
    /// When it started.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
}

/// The result of a task, or why there is none.
///
/// `Display` shows the [`Ending`], and then the error or the panic's message.
///
/// ```
/// # use conversant::scheduler::{Ending, Verdict};
/// let verdict: Verdict<u32, _> = Verdict::Failed("the disk is full");
/// assert_eq!(verdict.to_string(), "failed: the disk is full");
/// assert_eq!(verdict.ending(), Ending::Failed);
/// assert_eq!(verdict.into_result().unwrap_err().to_string(), "failed: the disk is full");
/// ```
#[derive(Debug)]
pub enum Verdict<R, E> {
    /// Its result.
    Ok(R),
    /// Its error.
    Failed(E),
    /// The payload of its panic.
    Panicked(Box<dyn Any + Send>),
    /// It was cancelled: before it started, or, for a future, at an await.
    Cancelled,
    /// It was skipped: a task of a lower tier of its caller had failed.
    Skipped,
}

impl<R, E> Verdict<R, E> {
    /// How the task ended.
    #[must_use]
    pub fn ending(&self) -> Ending {
        match self {
            Self::Ok(_) => Ending::Ok,
            Self::Failed(_) => Ending::Failed,
            Self::Panicked(_) => Ending::Panicked,
            Self::Cancelled => Ending::Cancelled,
            Self::Skipped => Ending::Skipped,
        }
    }

    /// The result, if there is one.
    #[must_use]
    pub fn ok(self) -> Option<R> {
        match self {
            Self::Ok(result) => Some(result),
            _ => None,
        }
    }

    /// The result, or the verdict without one, which is an error. The payload of a panic is not
    /// `Sync`: where errors must be, pass on the text, `.map_err(|verdict| verdict.to_string())?`.
    pub fn into_result(self) -> Result<R, Verdict<Infallible, E>> {
        Err(match self {
            Self::Ok(result) => return Ok(result),
            Self::Failed(error) => Verdict::Failed(error),
            Self::Panicked(payload) => Verdict::Panicked(payload),
            Self::Cancelled => Verdict::Cancelled,
            Self::Skipped => Verdict::Skipped,
        })
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for Verdict<Infallible, E> {}

impl<R, E: fmt::Display> fmt::Display for Verdict<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ending = self.ending();
        let message = match self {
            Self::Failed(error) => return pad(f, format_args!("{ending}: {error}")),
            Self::Panicked(payload) => {
                let literal = payload.downcast_ref::<&str>().copied();
                literal.or(payload.downcast_ref::<String>().map(String::as_str))
            }
            Self::Ok(_) | Self::Cancelled | Self::Skipped => None,
        };
        match message {
            Some(text) => pad(f, format_args!("{ending}: {text}")),
            None => ending.fmt(f),
        }
    }
}

/// How a task ended, where and when.
#[derive(Debug)]
pub struct Outcome<R, E> {
    /// The result, or why there is none.
    pub verdict: Verdict<R, E>,
    /// When it was submitted. Counts from when the scheduler was built.
    pub queued: Duration,
    /// Where and when it ran; `None` if it never started.
    pub run: Option<Run>,
}
