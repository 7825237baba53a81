//! What an endpoint receives.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;

use crate::error::OutOfRange;
use crate::shown::pad;

/// What came to an endpoint. New kinds may be added: a `match` has a last arm for them.
///
/// ```compile_fail,E0004
/// # use conversant::dialog::Event;
/// fn is_last(event: &Event<u8>) -> bool {
///     match event {
///         Event::End | Event::Error(_) => true,
///         Event::Message(_) | Event::Timer => false,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<M> {
    /// The peer sent this.
    Message(M),
    /// The peer has ended. Nothing follows from it; the endpoint's own timer may.
    End,
    /// The peer has ended with an error. Messages that it sent before, and that were not received
    /// yet, can be received after this.
    Error(Fault),
    /// The endpoint's timer was due.
    Timer,
}

/// Why a dialog ended in error: a code, and a description for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    code: NonZeroU32,
    description: String,
}

impl Fault {
    /// The code of an error that no caller sent: the peer's queue was dropped, or its endpoint was
    /// dropped in a panic.
    pub const GONE: u32 = u32::MAX;

    /// An error of this code, 1 or more and below [`GONE`](Self::GONE).
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for other codes.
    pub fn new(code: u32, description: impl Into<String>) -> Result<Self, OutOfRange> {
        let most = Self::GONE - 1;
        OutOfRange::check("error code", code, 1, most)?;
        Ok(Self {
            code: NonZeroU32::MIN.saturating_add(code - 1),
            description: description.into(),
        })
    }

    pub(super) fn gone(description: &str) -> Self {
        Self {
            code: NonZeroU32::MAX,
            description: description.into(),
        }
    }

    /// The code, never 0.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.code.get()
    }

    /// The description, for people.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether no caller sent this error: see [`GONE`](Self::GONE).
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code() == Self::GONE
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, format_args!("error {}: {}", self.code, self.description))
    }
}

impl Error for Fault {}
