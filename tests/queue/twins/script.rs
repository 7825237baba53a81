//! What is done to both queues: settings, and operations with numbers that select among the
//! existing objects.

use conversant::limit::Limit;

use crate::queue_support::Random;

/// The groups of a script, each with one conversation.
pub(crate) const GROUPS: usize = 4;

/// Operations in a script.
const LENGTH: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    SendAll,
    SendIn,
    Receive,
    ReceiveMany,
    ReceiveFrom,
    WaitForMany,
    WaitFrom,
    DropWait,
    Next,
    Batch,
    DropTurn,
    DropTurns,
    Complete,
    GiveBack,
    Bump,
    SetLimit,
    SetCap,
    Peek,
    DropPeek,
    Resume,
    Drain,
    Advance,
    Close,
    Shutdown,
    Look,
}

/// The relative frequency of each operation.
const WEIGHTS: [(usize, Kind); 26] = [
    (22, Kind::Send),
    (5, Kind::SendAll),
    (3, Kind::SendIn),
    (4, Kind::Receive),
    (5, Kind::ReceiveMany),
    (3, Kind::ReceiveFrom),
    (2, Kind::WaitForMany),
    (2, Kind::WaitFrom),
    (1, Kind::DropWait),
    (18, Kind::Next),
    (2, Kind::Batch),
    (4, Kind::DropTurn),
    (1, Kind::DropTurns),
    (10, Kind::Complete),
    (3, Kind::GiveBack),
    (1, Kind::Bump),
    (6, Kind::SetLimit),
    (1, Kind::SetCap),
    (2, Kind::Peek),
    (2, Kind::DropPeek),
    (1, Kind::Resume),
    (1, Kind::Drain),
    (1, Kind::Advance),
    (1, Kind::Close),
    (1, Kind::Shutdown),
    (5, Kind::Look),
];

#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    /// Which of the existing objects.
    pub(crate) a: usize,
    /// An amount or a level.
    pub(crate) b: usize,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) quantum: u32,
    pub(crate) attempts: Limit,
    /// The first back-off, in seconds.
    pub(crate) back_off: u64,
    pub(crate) capacity: Limit,
    /// The limit of each group at the beginning.
    pub(crate) limits: [Limit; GROUPS],
}

pub(crate) struct Script {
    pub(crate) settings: Settings,
    pub(crate) ops: Vec<Op>,
}

impl Script {
    pub(crate) fn random(number: u64) -> Self {
        let mut random = Random(number);
        let settings = Settings::random(&mut random);
        // On the plain path none of these is used, so most scripts leave each of them out.
        let tiers = random.below(4) == 0;
        let caps = random.below(4) == 0;
        let ends = random.below(3) == 0;
        let ops = (0..LENGTH).map(|_| Op::random(&mut random));
        let ops = ops.filter(|op| match op.kind {
            Kind::SendIn => tiers,
            Kind::SetCap => caps,
            // Rarely: most scripts are about what precedes the close.
            Kind::Close => ends && op.b < 8,
            Kind::Shutdown => ends && op.b < 4,
            Kind::DropTurns => op.b < 10,
            _ => true,
        });
        let ops = ops.collect();
        Self { settings, ops }
    }
}

impl Settings {
    fn random(random: &mut Random) -> Self {
        let limits = [
            Limit::SERIAL,
            Limit::AtMost(2),
            Limit::AtMost(3),
            Limit::Unlimited,
        ];
        Self {
            quantum: [1, 2, 3, 16, u32::MAX][random.below(5)],
            attempts: Limit::AtMost([1, 2, 3, 4][random.below(4)]),
            back_off: [0, 1][random.below(2)],
            capacity: match random.below(6) {
                0 => Limit::AtMost(8),
                _ => Limit::Unlimited,
            },
            limits: std::array::from_fn(|_| limits[random.below(4)]),
        }
    }
}

impl Op {
    fn random(random: &mut Random) -> Self {
        let all = WEIGHTS.iter().map(|(weight, _)| weight).sum();
        let mut left = random.below(all);
        let found = WEIGHTS.iter().find(|(weight, _)| {
            let found = left < *weight;
            left = left.wrapping_sub(*weight);
            found
        });
        let kind = found.expect("less than all weights").1;
        let (a, b) = (random.below(64), random.below(64));
        Self { kind, a, b }
    }

    pub(crate) fn group_id(&self) -> usize {
        self.a % GROUPS
    }

    /// Up to three.
    pub(crate) fn few(&self) -> u32 {
        [0, 1, 2, 3][self.b % 4]
    }

    /// How many turns.
    pub(crate) fn many(&self) -> usize {
        [1, 2, 3, usize::MAX][self.b % 4]
    }

    /// Sometimes a pause.
    pub(crate) fn limit(&self) -> Limit {
        [
            Limit::AtMost(0),
            Limit::SERIAL,
            Limit::AtMost(2),
            Limit::Unlimited,
        ][self.b % 4]
    }

    pub(crate) fn cap(&self) -> Limit {
        [Limit::AtMost(1), Limit::AtMost(3), Limit::Unlimited][self.b % 3]
    }
}
