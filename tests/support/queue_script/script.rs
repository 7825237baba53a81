//! Operations, their numbers read from bytes so that any bytes are a script.

use std::time::Duration;

use conversant::error::{OutOfRange, Stale};
use conversant::limit::{Bypass, Limit};
use conversant::queue::{LaneError, NoTurn, SendReason, Why};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Lane,
    Group,
    Conversation,
    Send,
    SendIn,
    SendAll,
    Bump,
    BumpByName,
    SetLevel,
    SetLimit,
    SetCap,
    DropConversation,
    DropGroup,
    DropLane,
    Receive,
    ReceiveMany,
    ReceiveFrom,
    Next,
    Batch,
    Own,
    DropTurn,
    Complete,
    GiveBack,
    Resume,
    Drain,
    Look,
    Advance,
    Close,
    Shutdown,
}

/// How many of the 256 values of a byte stand for each kind.
const WEIGHTS: [(u8, Kind); 29] = [
    (2, Kind::Lane),
    (5, Kind::Group),
    (8, Kind::Conversation),
    (36, Kind::Send),
    (12, Kind::SendIn),
    (16, Kind::SendAll),
    (8, Kind::Bump),
    (5, Kind::BumpByName),
    (4, Kind::SetLevel),
    (7, Kind::SetLimit),
    (5, Kind::SetCap),
    (4, Kind::DropConversation),
    (2, Kind::DropGroup),
    (1, Kind::DropLane),
    (22, Kind::Receive),
    (8, Kind::ReceiveMany),
    (8, Kind::ReceiveFrom),
    (30, Kind::Next),
    (5, Kind::Batch),
    (1, Kind::Own),
    (16, Kind::DropTurn),
    (22, Kind::Complete),
    (10, Kind::GiveBack),
    (6, Kind::Resume),
    (2, Kind::Drain),
    (4, Kind::Look),
    (5, Kind::Advance),
    (1, Kind::Close),
    (1, Kind::Shutdown),
];

/// One operation: `a` selects the object, `b` and `c` the numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) a: usize,
    pub(crate) b: u8,
    pub(crate) c: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) quantum: u32,
    pub(crate) bypass: Bypass,
    pub(crate) capacity: Limit,
    pub(crate) attempts: Limit,
    pub(crate) back_off: (Duration, Duration),
    pub(crate) ops: Vec<Op>,
    /// Whether the queue is inspected after each step. An inspection may do work that the queue has
    /// deferred, so most scripts inspect only where they say so.
    pub(crate) looks: bool,
    /// How it ends.
    pub(crate) last: u8,
}

impl Script {
    /// Six bytes of settings, then four bytes for each operation.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&[quantum, bypass, capacity, attempts, back_off, last], ops) =
            bytes.split_first_chunk()?;
        let bypass = match bypass % 8 {
            7 => Bypass::Unbounded,
            n => Bypass::AtMost(u32::from(n)),
        };
        let capacity = match capacity % 8 {
            0 => Limit::AtMost(u32::from(capacity / 8) + 1),
            _ => Limit::Unlimited,
        };
        let attempts = match attempts % 4 {
            0 => Limit::Unlimited,
            n => Limit::AtMost(u32::from(n)),
        };
        let (first, most) = match back_off % 4 {
            0 | 1 => (0, 0),
            n => (u64::from(n), 5),
        };
        Some(Self {
            quantum: u32::from(quantum % 5) + 1,
            bypass,
            capacity,
            attempts,
            back_off: (Duration::from_secs(first), Duration::from_secs(most)),
            ops: first_ops(quantum / 5)
                .chain(ops.as_chunks().0.iter().map(|&op| Op::read(op)))
                .filter(|op| !left_out(last, op.kind))
                .collect(),
            looks: last < 64,
            last,
        })
    }
}

/// Half of the scripts have one tier only, and half never change the caps: a queue may take other
/// paths where neither can block anything.
fn left_out(last: u8, kind: Kind) -> bool {
    match kind {
        Kind::SendIn => last & 8 > 0,
        Kind::SetCap => last & 16 > 0,
        _ => false,
    }
}

/// Two lanes, three groups and six conversations, to begin with.
fn first_ops(b: u8) -> impl Iterator<Item = Op> {
    let kinds = [
        (Kind::Lane, 12),
        (Kind::Lane, b),
        (Kind::Group, 2),
        (Kind::Group, 12),
        (Kind::Group, b),
        (Kind::Conversation, 100),
        (Kind::Conversation, 100),
        (Kind::Conversation, 100),
        (Kind::Conversation, 0),
        (Kind::Conversation, 0),
        (Kind::Conversation, 0),
    ];
    let numbered = kinds.into_iter().enumerate();
    numbered.map(|(a, (kind, b))| Op { kind, a, b, c: 1 })
}

impl Op {
    fn read([kind, a, b, c]: [u8; 4]) -> Self {
        let mut left = kind;
        let meant = WEIGHTS.iter().find(|(weight, _)| {
            let found = left < *weight;
            left = left.wrapping_sub(*weight);
            found
        });
        let kind = meant.expect("the weights are 256").1;
        let a = usize::from(a);
        Self { kind, a, b, c }
    }

    /// 0 (a pause), 1, 2, 3, unlimited, or a limit out of range.
    pub(crate) fn limit(&self) -> Limit {
        match self.b % 16 {
            0 | 1 => Limit::AtMost(0),
            2..=8 => Limit::SERIAL,
            9 | 10 => Limit::AtMost(2),
            11 => Limit::AtMost(3),
            15 if self.c == 255 => Limit::AtMost(Limit::MAX + 1),
            _ => Limit::Unlimited,
        }
    }

    /// Like a limit, but rarely a pause, because a pause stops a whole lane.
    pub(crate) fn cap(&self) -> Limit {
        match self.limit() {
            Limit::AtMost(n) if n < 2 && self.c >= 64 => Limit::AtMost(2 + u32::from(self.c % 3)),
            limit => limit,
        }
    }

    pub(crate) fn level(&self) -> u8 {
        [0, 99, 100, 101, 255][usize::from(self.b % 5)]
    }
}

/// What one step showed: groups and messages by their numbers in the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Made(Result<usize, LaneError>),
    Sent(Result<(), (Vec<u32>, SendReason)>),
    Set(Result<(), OutOfRange>),
    Named(Result<(), Stale>),
    Turn(Result<usize, NoTurn>),
    Turns(Result<usize, NoTurn>),
    Began(usize, bool),
    TurnFrom(Result<usize, NoTurn>),
    Next(Option<InHand>),
    Batch(Option<Vec<u32>>),
    Done(u32),
    DoneAll(Vec<u32>),
    Resumed(Result<bool, Stale>),
    Drained(Result<Vec<u32>, Stale>),
    Waiting(Result<(usize, Option<(u64, u32)>), Stale>),
    /// Group, message, attempts, waiting.
    Poisoned(Vec<(usize, u64, u32, usize)>),
    Advanced(Option<Duration>),
    Shut(Vec<u32>),
    After(Shown),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InHand {
    pub(crate) group: usize,
    pub(crate) message: u32,
    pub(crate) attempt: u32,
    pub(crate) tier: u32,
}

/// A snapshot, with the script's numbers; lanes have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) closed: bool,
    pub(crate) counts: (u64, u64, u64),
    pub(crate) lanes: Vec<LaneShown>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneShown {
    pub(crate) groups: Vec<GroupShown>,
    pub(crate) weight: u32,
    pub(crate) cap: Limit,
    pub(crate) in_flight: u32,
    pub(crate) open: Option<u32>,
    pub(crate) ending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupShown {
    pub(crate) group: usize,
    pub(crate) limit: Limit,
    pub(crate) level: u8,
    pub(crate) bump: Option<u8>,
    pub(crate) waiting: usize,
    pub(crate) in_flight: u32,
    pub(crate) why: Why,
}
