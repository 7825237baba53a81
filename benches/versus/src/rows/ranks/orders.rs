//! The contenders of P1 and P2.
//!
//! All are inlined into the timed loop. Otherwise the compiler would inline some and not others,
//! and different ones the next time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use conversant::internals::{Backlog, GroupKey, LaneKey, Position, ReadyQueue};
use conversant::limit::{Bypass, Limit};
use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use super::{BUMPED, Rank};

/// Groups in order. `ranks` has the rank of each, as it is before `push` is called.
pub trait Order {
    /// A group of this level will be pushed: for orders that must be told before.
    fn add_group(&mut self, _group: u32, _level: u16) {}

    fn push(&mut self, group: u32, ranks: &[Rank]);

    /// Takes the first group out; returns it and its level.
    fn pop(&mut self, ranks: &mut [Rank]) -> Option<(u32, u16)>;

    /// Moves a group, and records its new rank.
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]);
}

/// As the lanes use it: groups join under a ticket, their number.
#[derive(Default)]
pub struct OurReadyQueue(ReadyQueue<u32>);

impl OurReadyQueue {
    #[inline(always)]
    fn join(&mut self, group: u32, rank: Rank) {
        match rank.level.checked_sub(BUMPED) {
            None => self.0.push(rank.seq, rank.level as u8, group),
            Some(_) => self.0.insert(rank.seq, position(rank), group),
        }
    }
}

fn position(rank: Rank) -> Position {
    let bumped = rank.level.checked_sub(BUMPED);
    let bump = bumped.map(|bumped| (bumped as u8, rank.seq));
    Position::new(rank.level as u8, rank.seq, bump)
}

impl Order for OurReadyQueue {
    #[inline(always)]
    fn push(&mut self, group: u32, ranks: &[Rank]) {
        self.join(group, ranks[group as usize]);
    }

    #[inline(always)]
    fn pop(&mut self, ranks: &mut [Rank]) -> Option<(u32, u16)> {
        let (group, _) = self.0.pop(false)?;
        Some((group, ranks[group as usize].level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        let from = std::mem::replace(&mut ranks[group as usize], to);
        self.0.remove(position(from));
        self.join(group, to);
    }
}

/// The least that an order can cost: rings and a bitmap. It reads no records to tell stale entries,
/// and neither allocates nor frees. After bumps its rings hold stale entries, so it is no order.
pub struct Bitmap {
    words: [u64; 8],
    rings: Vec<VecDeque<(u64, u32)>>,
    /// How long a ring may become by bumps: twice its share of the groups.
    longest: usize,
}

impl Bitmap {
    pub fn new(groups: u32) -> Self {
        Self {
            words: [0; 8],
            rings: (0..512).map(|_| VecDeque::new()).collect(),
            longest: groups as usize / 128 + 8,
        }
    }
}

impl Order for Bitmap {
    #[inline(always)]
    fn push(&mut self, group: u32, ranks: &[Rank]) {
        let rank = ranks[group as usize];
        let level = usize::from(rank.level);
        self.rings[level].push_back((rank.seq, group));
        self.words[level / 64] |= 1 << (level % 64);
    }

    #[inline(always)]
    fn pop(&mut self, _: &mut [Rank]) -> Option<(u32, u16)> {
        let word = self.words.iter().rposition(|&word| word != 0)?;
        let level = word * 64 + 63 - self.words[word].leading_zeros() as usize;
        let (_, group) = self.rings[level].pop_front()?;
        if self.rings[level].is_empty() {
            self.words[word] &= !(1 << (level % 64));
        }
        Some((group, level as u16))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        ranks[group as usize] = to;
        let ring = &mut self.rings[usize::from(to.level)];
        if ring.len() >= self.longest {
            ring.pop_front();
        }
        self.push(group, ranks);
    }
}

/// Strongest first, then oldest.
type Key = (u16, Reverse<u64>);

#[inline(always)]
fn key(rank: Rank) -> Key {
    (rank.level, Reverse(rank.seq))
}

/// Moved groups are pushed again; their stale entries are swept when they are half of all.
#[derive(Default)]
pub struct Heap {
    heap: BinaryHeap<(Key, u32)>,
    live: usize,
}

impl Order for Heap {
    #[inline(always)]
    fn push(&mut self, group: u32, ranks: &[Rank]) {
        self.live += 1;
        self.heap.push((key(ranks[group as usize]), group));
    }

    #[inline(always)]
    fn pop(&mut self, ranks: &mut [Rank]) -> Option<(u32, u16)> {
        loop {
            let ((level, Reverse(seq)), group) = self.heap.pop()?;
            if ranks[group as usize] == (Rank { level, seq }) {
                self.live -= 1;
                return Some((group, level));
            }
        }
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        ranks[group as usize] = to;
        self.heap.push((key(to), group));
        if self.heap.len() > 2 * self.live {
            self.heap
                .retain(|&(at, group)| at == key(ranks[group as usize]));
        }
    }
}

#[derive(Default)]
pub struct Tree(BTreeSet<(Key, u32)>);

impl Order for Tree {
    #[inline(always)]
    fn push(&mut self, group: u32, ranks: &[Rank]) {
        self.0.insert((key(ranks[group as usize]), group));
    }

    #[inline(always)]
    fn pop(&mut self, _: &mut [Rank]) -> Option<(u32, u16)> {
        self.0.pop_last().map(|((level, _), group)| (group, level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        let from = std::mem::replace(&mut ranks[group as usize], to);
        self.0.remove(&(key(from), group));
        self.0.insert((key(to), group));
    }
}

#[derive(Default)]
pub struct Queue(PriorityQueue<u32, Key, FxBuildHasher>);

impl Order for Queue {
    #[inline(always)]
    fn push(&mut self, group: u32, ranks: &[Rank]) {
        self.0.push(group, key(ranks[group as usize]));
    }

    #[inline(always)]
    fn pop(&mut self, _: &mut [Rank]) -> Option<(u32, u16)> {
        self.0.pop().map(|(group, (level, _))| (group, level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        ranks[group as usize] = to;
        self.0.change_priority(&group, key(to));
    }
}

/// More than an order: each message is claimed, completed and sent again.
pub struct OurBacklog {
    backlog: Backlog<u32>,
    lane: LaneKey,
    groups: Vec<GroupKey>,
}

impl OurBacklog {
    pub fn new() -> Self {
        let mut backlog = Backlog::new(Bypass::Unbounded);
        let lane = backlog.add_lane(1, Limit::Unlimited).expect("in range");
        Self {
            backlog,
            lane,
            groups: Vec::new(),
        }
    }
}

impl Order for OurBacklog {
    fn add_group(&mut self, _: u32, level: u16) {
        let level = level.min(255) as u8;
        let group = self.backlog.add_group(self.lane, Limit::SERIAL, level);
        self.groups.push(group.expect("in range"));
    }

    #[inline(always)]
    fn push(&mut self, group: u32, ranks: &[Rank]) {
        let level = ranks[group as usize].level;
        let bump = level.checked_sub(BUMPED).map(|level| level as u8);
        let key = self.groups[group as usize];
        self.backlog.send(key, None, bump, group);
    }

    #[inline(always)]
    fn pop(&mut self, ranks: &mut [Rank]) -> Option<(u32, u16)> {
        let claim = self.backlog.claim()?;
        self.backlog.finish(claim.holds);
        Some((claim.item, ranks[claim.item as usize].level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        ranks[group as usize] = to;
        self.backlog
            .bump(self.groups[group as usize], (to.level - BUMPED) as u8);
    }
}
