//! Plain tests.
