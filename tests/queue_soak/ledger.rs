//! A record of each message: received in the order in which its sender sent it into its
//! conversation, and completed once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::THREADS;

/// The units of one group.
pub(crate) struct GroupUnits {
    /// The largest limit that it ever has.
    limit: u32,
    in_flight: AtomicU32,
    held: AtomicBool,
}

impl GroupUnits {
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self {
            limit,
            in_flight: AtomicU32::new(0),
            held: AtomicBool::new(false),
        })
    }

    pub(crate) fn hold(&self) {
        assert!(!self.held.swap(true, SeqCst), "two turns of one group");
    }

    pub(crate) fn release(&self) {
        self.held.store(false, SeqCst);
    }
}

/// The messages of one conversation.
#[derive(Default)]
pub(crate) struct Ledger {
    /// For each thread one track of immediate sends, and one of sends that wait for room: of those,
    /// the first that is polled is sent first.
    tracks: [Mutex<Track>; 2 * THREADS],
}

/// The messages of one sender in one conversation.
#[derive(Default)]
struct Track {
    next: u32,
    /// Sent, or about to be, and neither completed nor refused.
    open: BTreeSet<u32>,
    /// Of the open ones, those that were received before.
    seen: BTreeSet<u32>,
    highest: Option<u32>,
}

impl Ledger {
    /// Every message is completed, refused or taken out.
    pub(crate) fn check_finished(&self) {
        for track in &self.tracks {
            let track = track.lock().unwrap();
            assert!(track.open.is_empty(), "lost: {:?}", track.open);
            assert!(track.seen.is_empty());
        }
    }
}

/// The message that is sent.
#[derive(Clone)]
pub(crate) struct Message {
    ledger: Arc<Ledger>,
    pub(crate) units: Arc<GroupUnits>,
    sender: usize,
    number: u32,
}

impl Message {
    pub(crate) fn new(ledger: &Arc<Ledger>, units: &Arc<GroupUnits>, sender: usize) -> Self {
        let mut track = ledger.tracks[sender].lock().unwrap();
        let number = track.next;
        track.next += 1;
        track.open.insert(number);
        Self {
            ledger: ledger.clone(),
            units: units.clone(),
            sender,
            number,
        }
    }

    /// In flight from now on; called while the turn is held.
    pub(crate) fn received(&self) {
        let others = self.units.in_flight.fetch_add(1, SeqCst);
        assert!(others < self.units.limit, "above the group's limit");
        self.comes_in_order();
    }

    /// In flight behind another message, in one batch.
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

    /// Peeked at: it waits, and so is not completed.
    pub(crate) fn check_open(&self) {
        let track = self.ledger.tracks[self.sender].lock().unwrap();
        assert!(track.open.contains(&self.number), "waits when done");
    }

    /// Not in flight any more; called before `complete` or `give_back`.
    pub(crate) fn leaves(&self) {
        self.units.in_flight.fetch_sub(1, SeqCst);
    }

    /// Completed, refused or taken out; once only.
    pub(crate) fn finished(&self) {
        let mut track = self.ledger.tracks[self.sender].lock().unwrap();
        assert!(track.open.remove(&self.number), "twice: {}", self.number);
        track.seen.remove(&self.number);
    }
}
