//! Messages that are sent as one.

use crate::group::{Group, Mailbox};

/// Messages that are sent as one.
pub(crate) trait Messages<T>:
    AsRef<[T]> + IntoIterator<Item = T, IntoIter: ExactSizeIterator>
{
    /// Puts them last in a group.
    fn append_to(self, group: &Group<T>, mailbox: &mut Mailbox<T>);
}

impl<T> Messages<T> for [T; 1] {
    #[inline(always)]
    fn append_to(self, group: &Group<T>, mailbox: &mut Mailbox<T>) {
        let [message] = self;
        group.append(mailbox, message);
    }
}

impl<T> Messages<T> for Vec<T> {
    #[inline(always)]
    fn append_to(self, group: &Group<T>, mailbox: &mut Mailbox<T>) {
        group.append_all(mailbox, self);
    }
}
