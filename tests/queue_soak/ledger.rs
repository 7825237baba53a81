//! What must become of each message: received in the order in which its sender
//! sent it into its conversation, and done once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::THREADS;

/// Of one group.
pub(crate) struct Room {
    /// The largest limit that it ever has.
    limit: u32,
    in_hand: AtomicU32,
    held: AtomicBool,
}

impl Room {
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self {
            limit,
            in_hand: AtomicU32::new(0),
            held: AtomicBool::new(false),
        })
    }

    pub(crate) fn hold(&self) {
        assert!(!self.held.swap(true, SeqCst), "two turns of one group");
    }

    pub(crate) fn let_go(&self) {
        self.held.store(false, SeqCst);
    }
}

/// Of one conversation.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Of each thread one for what it sends at once, and one for what waits
    /// for room: of that, who is polled first is sent first.
    tracks: [Mutex<Track>; 2 * THREADS],
}

/// Of one sender in one conversation.
#[derive(Default)]
struct Track {
    next: u32,
    /// Sent, or about to be, and neither done nor refused.
    open: BTreeSet<u32>,
    /// Of those, the ones that were received before.
    seen: BTreeSet<u32>,
    highest: Option<u32>,
}

impl Ledger {
    /// Every message is done, or was refused or taken out.
    pub(crate) fn check_settled(&self) {
        for track in &self.tracks {
            let track = track.lock().unwrap();
            assert!(track.open.is_empty(), "lost: {:?}", track.open);
            assert!(track.seen.is_empty());
        }
    }
}

/// What is sent.
#[derive(Clone)]
pub(crate) struct Message {
    ledger: Arc<Ledger>,
    pub(crate) room: Arc<Room>,
    sender: usize,
    number: u32,
}

impl Message {
    pub(crate) fn new(ledger: &Arc<Ledger>, room: &Arc<Room>, sender: usize) -> Self {
        let mut track = ledger.tracks[sender].lock().unwrap();
        let number = track.next;
        track.next += 1;
        track.open.insert(number);
        Self {
            ledger: ledger.clone(),
            room: room.clone(),
            sender,
            number,
        }
    }

    /// In hand from now on; called while the turn is held.
    pub(crate) fn received(&self) {
        let others = self.room.in_hand.fetch_add(1, SeqCst);
        assert!(others < self.room.limit, "above the group's limit");
        self.comes_in_order();
    }

    /// In hand behind another one, with which it was lent as one.
    pub(crate) fn comes_in_order(&self) {
        let mut track = self.ledger.tracks[self.sender].lock().unwrap();
        assert!(track.open.contains(&self.number), "received when done");
        if track.seen.insert(self.number) {
            let in_order = track.highest.is_none_or(|last| self.number > last);
            let ordered = self.sender < THREADS;
            assert!(
                in_order || !ordered,
                "{} after {:?}",
                self.number,
                track.highest
            );
            track.highest = Some(self.number);
        }
    }

    /// Looked at: it waits, and so is not done.
    pub(crate) fn check_open(&self) {
        let track = self.ledger.tracks[self.sender].lock().unwrap();
        assert!(track.open.contains(&self.number), "waits when done");
    }

    /// Not in hand any more, called before the queue hears of it.
    pub(crate) fn leaves(&self) {
        self.room.in_hand.fetch_sub(1, SeqCst);
    }

    /// Done, refused or taken out; never again.
    pub(crate) fn settled(&self) {
        let mut track = self.ledger.tracks[self.sender].lock().unwrap();
        assert!(track.open.remove(&self.number), "twice: {}", self.number);
        track.seen.remove(&self.number);
    }
}
