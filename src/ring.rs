//! Weighted round robin of lanes.
//!
//! # State
//!
//! The members form a circular list, linked by lane number; `current` is served next, and its
//! predecessor is the tail. The links stand in pages of 64 lanes each, in a directory by page
//! number. A page without a member is freed, but one is kept for the next page that is needed: an
//! empty page has no memory of its lanes and can stand anywhere.
//!
//! # Invariants
//!
//! 1. A lane is a member exactly if its link has a weight; a link without one is all zero.
//! 2. A page counts its members, and stands in the directory only while it has one.
//! 3. Every member has a credit of at least 1, and of at most its weight when it last began.
//! 4. `paid` is the number of directory entries that joins have paid for, one each, and no more than
//!    there are. The directory is shortened only while all are paid for, which makes that O(1)
//!    amortised, also for one lane with a high number that comes and goes; one of up to `SHORT`
//!    entries stays.

use std::fmt;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The largest weight of a lane.
pub const MAX_WEIGHT: u32 = 1_000_000;

/// A directory of so many entries is not worth giving back.
const SHORT: usize = 8;

/// Lanes in one page of links.
const PAGE: usize = 64;

#[derive(Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
    /// 0: not a member.
    weight: u32,
    /// Turns left before it is the next one's turn.
    credit: u32,
}

const NO_LINK: Link = Link {
    prev: 0,
    next: 0,
    weight: 0,
    credit: 0,
};

struct Page {
    members: u32,
    links: [Link; PAGE],
}

/// Lanes that take turns, each as many in a row as its weight.
///
/// Lanes are dense numbers that someone else gives out. A lane that joins stands at the tail. The
/// current lane keeps its place until its credit is used up, one for each turn, and then goes to the
/// tail with fresh credit; a lane that leaves forfeits what it has left, and begins anew at the tail
/// when it comes back.
///
/// Every method is O(1), amortised where it joins or leaves; [`iter`](Self::iter) is linear. Memory
/// is 16 bytes for each lane of a page of 64 that has a member, one page more, and 8 bytes for each
/// page up to the highest in use. After a far higher lane has left, the last of these stay until as
/// many lanes have joined as there were pages.
#[derive(Default)]
pub struct Ring {
    pages: Vec<Option<Box<Page>>>,
    spare: Option<Box<Page>>,
    /// The sum of the members' weights.
    weights: u64,
    /// Means something only while there is a member.
    current: u32,
    len: u32,
    paid: usize,
}

impl Ring {
    /// A ring without lanes; allocates nothing.
    pub const fn new() -> Self {
        Ring {
            pages: Vec::new(),
            spare: None,
            weights: 0,
            current: 0,
            len: 0,
            paid: 0,
        }
    }

    /// The number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The lane that is served next.
    #[inline]
    pub fn current(&self) -> Option<u32> {
        (self.len > 0).then_some(self.current)
    }

    /// The sum of the members' weights: the number of turns in which each of them is served.
    #[inline]
    pub fn weights(&self) -> u64 {
        self.weights
    }

    /// Whether this lane is a member.
    #[inline]
    pub fn contains(&self, lane: u32) -> bool {
        self.weight(lane).is_some()
    }

    /// The weight of a member.
    #[inline]
    pub fn weight(&self, lane: u32) -> Option<u32> {
        let (page, at) = place(lane);
        let weight = self.pages.get(page)?.as_ref()?.links[at].weight;
        (weight > 0).then_some(weight)
    }

    /// The members in the order in which their next turns begin.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut next = self.current;
        (0..self.len).map(move |_| {
            let lane = next;
            next = self.member(lane).next;
            lane
        })
    }

    /// A lane joins at the tail, with its whole credit. A member stays where it is: `false`.
    ///
    /// The weight is from 1 to [`MAX_WEIGHT`]; another one is taken as the nearest of these.
    #[inline]
    pub fn join(&mut self, lane: u32, weight: u32) -> bool {
        if self.contains(lane) {
            return false;
        }
        let weight = valid(weight);
        let (prev, next) = match self.current() {
            Some(current) => (self.member(current).prev, current),
            None => (lane, lane),
        };
        let page = self.page(lane);
        page.members += 1;
        page.links[place(lane).1] = Link {
            prev,
            next,
            weight,
            credit: weight,
        };
        if self.len == 0 {
            self.current = lane;
        } else {
            self.member_mut(prev).next = lane;
            self.member_mut(next).prev = lane;
        }
        self.len += 1;
        self.weights += u64::from(weight);
        self.paid = (self.paid + 1).min(self.pages.len());
        true
    }

    /// A lane leaves and forfeits the rest of its credit. No member: `false`.
    ///
    /// If it was the current one, the next lane is, with all its credit.
    #[inline]
    pub fn leave(&mut self, lane: u32) -> bool {
        if !self.contains(lane) {
            return false;
        }
        let Link {
            prev, next, weight, ..
        } = *self.member(lane);
        self.member_mut(prev).next = next;
        self.member_mut(next).prev = prev;
        if self.current == lane {
            self.current = next;
        }
        self.len -= 1;
        self.weights -= u64::from(weight);
        *self.member_mut(lane) = NO_LINK;
        self.emptied(place(lane).0);
        true
    }

    /// The current lane took one turn. With its credit used up it goes to the tail, with fresh credit.
    ///
    /// Without a member nothing happens.
    #[inline]
    pub fn served(&mut self) {
        if self.len == 0 {
            return;
        }
        let link = self.member_mut(self.current);
        link.credit -= 1;
        if link.credit == 0 {
            link.credit = link.weight;
            self.current = link.next;
        }
    }

    /// Gives a member another weight, which counts from its next credit on. No member: `false`.
    ///
    /// The weight is bounded as in [`join`](Self::join).
    pub fn set_weight(&mut self, lane: u32, weight: u32) -> bool {
        let Some(old) = self.weight(lane) else {
            return false;
        };
        let weight = valid(weight);
        self.member_mut(lane).weight = weight;
        self.weights = self.weights - u64::from(old) + u64::from(weight);
        true
    }

    /// The bytes of heap memory that the ring holds.
    pub fn heap_bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count() + usize::from(self.spare.is_some());
        pages * size_of::<Page>() + self.pages.capacity() * size_of::<Option<Box<Page>>>()
    }

    #[inline]
    fn member(&self, lane: u32) -> &Link {
        let (page, at) = place(lane);
        match &self.pages[page] {
            Some(page) => &page.links[at],
            None => unreachable!("lane {lane} is a member"),
        }
    }

    #[inline]
    fn member_mut(&mut self, lane: u32) -> &mut Link {
        let (page, at) = place(lane);
        match &mut self.pages[page] {
            Some(page) => &mut page.links[at],
            None => unreachable!("lane {lane} is a member"),
        }
    }

    /// The page of a lane, which is about to have a member.
    #[inline]
    fn page(&mut self, lane: u32) -> &mut Page {
        let page = place(lane).0;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let spare = &mut self.spare;
        self.pages[page].get_or_insert_with(|| {
            let empty = || {
                Box::new(Page {
                    members: 0,
                    links: [NO_LINK; PAGE],
                })
            };
            spare.take().unwrap_or_else(empty)
        })
    }

    /// A member of this page has left.
    #[inline]
    fn emptied(&mut self, page: usize) {
        let entry = &mut self.pages[page];
        let Some(links) = entry else { return };
        links.members -= 1;
        if links.members == 0 {
            self.spare = entry.take();
            if self.paid == self.pages.len() && self.pages.capacity() > SHORT {
                self.shorten();
            }
        }
    }

    #[cold]
    fn shorten(&mut self) {
        let end = self
            .pages
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last + 1);
        self.pages.truncate(end);
        self.paid = end;
        if end * 4 <= self.pages.capacity() {
            self.pages.shrink_to(end * 2);
        }
    }
}

#[inline]
fn place(lane: u32) -> (usize, usize) {
    (lane as usize / PAGE, lane as usize % PAGE)
}

#[inline]
fn valid(weight: u32) -> u32 {
    debug_assert!((1..=MAX_WEIGHT).contains(&weight), "{weight} is no weight");
    weight.clamp(1, MAX_WEIGHT)
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = |lane| (lane, self.member(lane).credit, self.member(lane).weight);
        f.debug_list().entries(self.iter().map(member)).finish()
    }
}
