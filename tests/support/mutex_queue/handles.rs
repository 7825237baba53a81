//! Lanes, groups and conversations.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use conversant::error::{Closed, OutOfRange, TierGoesDown};
use conversant::limit::Limit;
use conversant::queue::{LaneError, SendError, SendReason};

use super::model::{Model, Phase};
use super::{GroupId, Shared, checked, id, locked};

pub(super) fn bump<T>(model: &mut Model<T>, group: u64, level: u8) {
    let now = model.tick();
    // A claimed group uses its bump up when its turn begins.
    if model.group(group).phase == Phase::Claimed {
        return;
    }
    let bump = &mut model.group(group).bump;
    if bump.is_none_or(|(old, _)| old != level) {
        *bump = Some((level, now));
    }
}

pub(crate) struct Lane<T> {
    shared: Shared<T>,
    lane: u64,
}

impl<T> Lane<T> {
    pub(super) fn new(shared: &Shared<T>, lane: u64) -> Self {
        let shared = shared.clone();
        Self { shared, lane }
    }

    pub(crate) fn group(&self, limit: Limit, level: u8) -> Result<Group<T>, LaneError> {
        let group = locked(&self.shared, |model| {
            if model.closed {
                return Err(LaneError::Closed);
            }
            checked(limit)?;
            Ok(model.add_group(self.lane, limit, level))
        })?;
        let shared = self.shared.clone();
        Ok(Group { shared, group })
    }

    pub(crate) fn conversation(&self) -> Result<Conversation<T>, Closed> {
        let group = self.group(Limit::SERIAL, 100).map_err(|_| Closed)?;
        group.conversation()
    }

    pub(crate) fn set_cap(&self, cap: Limit) -> Result<(), OutOfRange> {
        checked(cap)?;
        locked(&self.shared, |model| {
            model.lanes.get_mut(&self.lane).expect("this pins it").cap = cap;
            model.settle(self.lane);
        });
        Ok(())
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        locked(&self.shared, |model| {
            model
                .lanes
                .get_mut(&self.lane)
                .expect("this pins it")
                .ending = true;
            model.reap_lane(self.lane);
        });
    }
}

pub(crate) struct Group<T> {
    shared: Shared<T>,
    group: u64,
}

impl<T> Group<T> {
    pub(crate) fn id(&self) -> GroupId {
        id(&self.shared, self.group)
    }

    pub(crate) fn conversation(&self) -> Result<Conversation<T>, Closed> {
        locked(&self.shared, |model| match model.closed {
            true => Err(Closed),
            false => {
                model.group(self.group).pins += 1;
                Ok(())
            }
        })?;
        Ok(Conversation {
            shared: self.shared.clone(),
            group: self.group,
        })
    }

    pub(crate) fn bump(&self, level: u8) {
        locked(&self.shared, |model| bump(model, self.group, level));
    }

    pub(crate) fn set_level(&self, level: u8) {
        locked(&self.shared, |model| model.group(self.group).level = level);
    }

    pub(crate) fn set_limit(&self, limit: Limit) -> Result<(), OutOfRange> {
        checked(limit)?;
        locked(&self.shared, |model| {
            let g = model.group(self.group);
            g.limit = limit;
            let lane = g.lane;
            model.settle(lane);
        });
        Ok(())
    }

    pub(crate) fn waiting(&self) -> usize {
        locked(&self.shared, |model| model.group(self.group).waiting.len())
    }

    pub(crate) fn resume(&self) -> bool {
        locked(&self.shared, |model| model.resume(self.group))
    }

    pub(crate) fn drain(&self) -> Vec<T> {
        locked(&self.shared, |model| model.drain(self.group))
    }
}

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        locked(&self.shared, |model| model.unpin(self.group));
    }
}

pub(crate) struct Conversation<T> {
    shared: Shared<T>,
    group: u64,
}

impl<T> Conversation<T> {
    pub(crate) fn group_id(&self) -> GroupId {
        id(&self.shared, self.group)
    }

    pub(crate) fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.post(None, message)
    }

    pub(crate) fn send_in(&self, tier: u32, message: T) -> Result<(), SendError<T>> {
        self.post(Some(tier), message)
    }

    pub(crate) fn send_all(
        &self,
        messages: impl IntoIterator<Item = T>,
    ) -> Result<(), SendError<Vec<T>>> {
        let message: Vec<T> = messages.into_iter().collect();
        locked(&self.shared, |model| {
            if let Some(reason) = self.refusal(model, message.len()) {
                return Err(SendError { message, reason });
            }
            for message in message {
                let sent = model.send(self.group, None, message);
                assert!(sent.is_ok(), "the last tier does not go down");
            }
            Ok(())
        })
    }

    fn post(&self, tier: Option<u32>, message: T) -> Result<(), SendError<T>> {
        locked(&self.shared, |model| {
            let group = model.group(self.group);
            let (last, idle) = (group.last_tier, group.is_idle());
            let refused = match tier.filter(|&asked| asked < last && !idle && !model.closed) {
                Some(asked) => Some(SendReason::TierGoesDown(TierGoesDown { last, asked })),
                None => self.refusal(model, 1),
            };
            if let Some(reason) = refused {
                return Err(SendError { message, reason });
            }
            let sent = model.send(self.group, tier, message);
            assert!(sent.is_ok(), "the tier was looked at");
            Ok(())
        })
    }

    fn refusal(&self, model: &Model<T>, more: usize) -> Option<SendReason> {
        if model.closed {
            return Some(SendReason::Closed);
        }
        let held = model.held() + more;
        match model.settings.capacity {
            Limit::AtMost(most @ 1..) if more > most as usize => Some(SendReason::AboveCapacity),
            Limit::AtMost(most) if held > most as usize => Some(SendReason::Full),
            _ => None,
        }
    }
}

impl<T> Drop for Conversation<T> {
    fn drop(&mut self) {
        locked(&self.shared, |model| model.unpin(self.group));
    }
}

/// As bare as possible: so that errors can be unwrapped.
macro_rules! debug {
    ($($handle:ident)*) => {$(
        impl<T> fmt::Debug for $handle<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($handle)).finish_non_exhaustive()
            }
        }
    )*};
}

debug!(Lane Group Conversation);
