//! The contenders of P1 and P2.
//!
//! All are inlined into the timed loop. If the choice were the compiler's, some would be inlined
//! and some not, and others the next time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use conversant::internals::{Backlog, GroupKey, LaneKey, Position, ReadyQueue};
use conversant::limit::{Bypass, Limit};
use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use super::{BUMPED, Place};

/// Groups in order. `places` has each group's position; it is written before `push` is called.
pub trait Order {
    /// A group of this level will be pushed: for orders that must know it before.
    fn begin(&mut self, _group: u32, _level: u16) {}

    fn push(&mut self, group: u32, places: &[Place]);

    /// Removes the first group, and returns it with its level.
    fn pop(&mut self, places: &mut [Place]) -> Option<(u32, u16)>;

    /// Moves a queued group, and writes down its new position.
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]);
}

/// As the lanes use it: groups join under a ticket, which tells their position.
#[derive(Default)]
pub struct Lined(ReadyQueue<u32>);

impl Lined {
    #[inline(always)]
    fn join(&mut self, group: u32, place: Place) {
        match place.level.checked_sub(BUMPED) {
            None => self.0.push(place.seq, place.level as u8, group),
            Some(_) => self.0.insert(place.seq, standing(place), group),
        }
    }
}

fn standing(place: Place) -> Position {
    let bumped = place.level.checked_sub(BUMPED);
    let bump = bumped.map(|bumped| (bumped as u8, place.seq));
    Position::new(place.level as u8, place.seq, bump)
}

impl Order for Lined {
    #[inline(always)]
    fn push(&mut self, group: u32, places: &[Place]) {
        self.join(group, places[group as usize]);
    }

    #[inline(always)]
    fn pop(&mut self, places: &mut [Place]) -> Option<(u32, u16)> {
        let (group, _) = self.0.pop(false)?;
        Some((group, places[group as usize].level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]) {
        let from = std::mem::replace(&mut places[group as usize], to);
        self.0.remove(standing(from));
        self.join(group, to);
    }
}

/// The least that an order can cost: rings and a bitmap. It reads no records to detect stale
/// entries and allocates and frees nothing. After bumps its rings hold stale entries, so it is no
/// order.
pub struct Bitmap {
    words: [u64; 8],
    rings: Vec<VecDeque<(u64, u32)>>,
    /// The size to which bumps may grow a ring: twice the entries of one.
    kept: usize,
}

impl Bitmap {
    pub fn new(groups: u32) -> Self {
        Self {
            words: [0; 8],
            rings: (0..512).map(|_| VecDeque::new()).collect(),
            kept: groups as usize / 128 + 8,
        }
    }
}

impl Order for Bitmap {
    #[inline(always)]
    fn push(&mut self, group: u32, places: &[Place]) {
        let place = places[group as usize];
        let level = usize::from(place.level);
        self.rings[level].push_back((place.seq, group));
        self.words[level / 64] |= 1 << (level % 64);
    }

    #[inline(always)]
    fn pop(&mut self, _: &mut [Place]) -> Option<(u32, u16)> {
        let word = self.words.iter().rposition(|&word| word != 0)?;
        let level = word * 64 + 63 - self.words[word].leading_zeros() as usize;
        let (_, group) = self.rings[level].pop_front()?;
        if self.rings[level].is_empty() {
            self.words[word] &= !(1 << (level % 64));
        }
        Some((group, level as u16))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]) {
        places[group as usize] = to;
        let ring = &mut self.rings[usize::from(to.level)];
        if ring.len() >= self.kept {
            ring.pop_front();
        }
        self.push(group, places);
    }
}

/// Strongest first, then oldest.
type Key = (u16, Reverse<u64>);

#[inline(always)]
fn key(place: Place) -> Key {
    (place.level, Reverse(place.seq))
}

/// Moved groups are pushed again; stale entries are swept when they are half of all.
#[derive(Default)]
pub struct Heap {
    heap: BinaryHeap<(Key, u32)>,
    live: usize,
}

impl Order for Heap {
    #[inline(always)]
    fn push(&mut self, group: u32, places: &[Place]) {
        self.live += 1;
        self.heap.push((key(places[group as usize]), group));
    }

    #[inline(always)]
    fn pop(&mut self, places: &mut [Place]) -> Option<(u32, u16)> {
        loop {
            let ((level, Reverse(seq)), group) = self.heap.pop()?;
            if places[group as usize] == (Place { level, seq }) {
                self.live -= 1;
                return Some((group, level));
            }
        }
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]) {
        places[group as usize] = to;
        self.heap.push((key(to), group));
        if self.heap.len() > 2 * self.live {
            self.heap
                .retain(|&(at, group)| at == key(places[group as usize]));
        }
    }
}

#[derive(Default)]
pub struct Tree(BTreeSet<(Key, u32)>);

impl Order for Tree {
    #[inline(always)]
    fn push(&mut self, group: u32, places: &[Place]) {
        self.0.insert((key(places[group as usize]), group));
    }

    #[inline(always)]
    fn pop(&mut self, _: &mut [Place]) -> Option<(u32, u16)> {
        self.0.pop_last().map(|((level, _), group)| (group, level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]) {
        let from = std::mem::replace(&mut places[group as usize], to);
        self.0.remove(&(key(from), group));
        self.0.insert((key(to), group));
    }
}

#[derive(Default)]
pub struct Queue(PriorityQueue<u32, Key, FxBuildHasher>);

impl Order for Queue {
    #[inline(always)]
    fn push(&mut self, group: u32, places: &[Place]) {
        self.0.push(group, key(places[group as usize]));
    }

    #[inline(always)]
    fn pop(&mut self, _: &mut [Place]) -> Option<(u32, u16)> {
        self.0.pop().map(|(group, (level, _))| (group, level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]) {
        places[group as usize] = to;
        self.0.change_priority(&group, key(to));
    }
}

/// More than an order: a message is claimed, completed and sent again.
pub struct Backlogged {
    backlog: Backlog<u32>,
    lane: LaneKey,
    groups: Vec<GroupKey>,
}

impl Backlogged {
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

impl Order for Backlogged {
    fn begin(&mut self, _: u32, level: u16) {
        let level = level.min(255) as u8;
        let group = self.backlog.add_group(self.lane, Limit::SERIAL, level);
        self.groups.push(group.expect("in range"));
    }

    #[inline(always)]
    fn push(&mut self, group: u32, places: &[Place]) {
        let level = places[group as usize].level;
        let bump = level.checked_sub(BUMPED).map(|level| level as u8);
        let key = self.groups[group as usize];
        self.backlog.send(key, None, bump, group);
    }

    #[inline(always)]
    fn pop(&mut self, places: &mut [Place]) -> Option<(u32, u16)> {
        let claim = self.backlog.claim()?;
        self.backlog.complete(claim.group?, claim.tier);
        Some((claim.item, places[claim.item as usize].level))
    }

    #[inline(always)]
    fn bump(&mut self, group: u32, to: Place, places: &mut [Place]) {
        places[group as usize] = to;
        self.backlog
            .bump(self.groups[group as usize], (to.level - BUMPED) as u8);
    }
}
