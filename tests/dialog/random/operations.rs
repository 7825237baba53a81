//! The random operations, and how often each is done.

use proptest::prelude::*;

/// The numbers select among what exists; if nothing does, the operation does nothing.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// In groups: 0 of its own, 1 the shared one, otherwise that of a dialog's side.
    Begin([u8; 2]),
    Send(u8),
    End(u8),
    EndWith(u8, u32),
    DropEndpoint(u8),
    SetTimer(u8, u64),
    ClearTimer(u8),
    Advance(u64),
    Receive(u8),
    /// Receives and keeps the turn, if none is kept.
    Turn(u8),
    /// A message of the turn that is kept.
    Next,
    EndTurn,
    /// If true, the received message is dropped at once.
    Complete(u8, bool),
    LetGo(u8),
    GiveBack(u8),
    Close(bool),
    DropQueue(bool),
}

pub(crate) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use Operation::*;
    let one = prop_oneof![
        6 => any::<[u8; 2]>().prop_map(|near| Begin(near.map(|n| n % 5))),
        24 => any::<u8>().prop_map(Send),
        4 => any::<u8>().prop_map(End),
        4 => (any::<u8>(), 1..9u32).prop_map(|(n, code)| EndWith(n, code)),
        3 => any::<u8>().prop_map(DropEndpoint),
        6 => (any::<u8>(), 0..9u64).prop_map(|(n, after)| SetTimer(n, after)),
        1 => any::<u8>().prop_map(ClearTimer),
        5 => (0..5u64).prop_map(Advance),
        20 => any::<u8>().prop_map(Receive),
        6 => any::<u8>().prop_map(Turn),
        12 => Just(Next),
        3 => Just(EndTurn),
        12 => any::<(u8, bool)>().prop_map(|(n, at_once)| Complete(n, at_once)),
        4 => any::<u8>().prop_map(LetGo),
        8 => any::<u8>().prop_map(GiveBack),
        1 => any::<bool>().prop_map(Close),
        1 => any::<bool>().prop_map(DropQueue),
    ];
    prop::collection::vec(one, 0..120)
}
