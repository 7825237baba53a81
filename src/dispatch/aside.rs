//! Groups that are set aside, and turns of a group that is asked for by name.

use super::{Blocked, Dispatch, GroupKey, Pick, at, place_in};

/// Why a group is set aside. It starts no turn, and the live one takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aside {
    /// Until a time comes. What waits in it is outstanding: its tier waits.
    BackingOff,
    /// Until somebody resumes it. What waits in it counts as finished: the
    /// tiers of its lane go on without it.
    Poisoned,
}

impl<G> Dispatch<G> {
    /// Why the group is set aside, if it is.
    pub fn aside(&self, group: GroupKey) -> Option<Aside> {
        self.group(group).aside
    }

    /// Sets the group aside, or with `None` lets it go on. From back-off it
    /// comes back under its age; from poison its first message arrives like a
    /// new one, late in its tier, and the group is the youngest.
    pub fn set_aside(&mut self, group: GroupKey, aside: Option<Aside>) {
        let g = at(&mut self.groups, group.0);
        let was = std::mem::replace(&mut g.aside, aside) == Some(Aside::Poisoned);
        let is = aside == Some(Aside::Poisoned);
        if was && !is {
            self.clock += 1;
            g.ready = self.clock;
        }
        if let Some(tier) = g.head.filter(|_| was != is) {
            let tiers = &mut at(&mut self.lanes, g.lane.0).tiers;
            _ = if is {
                tiers.leave(tier)
            } else {
                tiers.arrive(tier)
            };
        }
        self.stand(group);
    }

    /// Keeps the group for whoever asks for it by name: it stands in no line.
    /// It keeps its age.
    pub fn reserve(&mut self, group: GroupKey, named: bool) {
        self.group_mut(group).named = named;
        self.stand(group);
    }

    /// Keeps the group, of which no turn is live, from starting one until
    /// [`unhold`](Self::unhold). Nothing is taken; bump and age stay.
    pub fn hold(&mut self, group: GroupKey) {
        let g = self.group_mut(group);
        debug_assert!(!g.held);
        g.held = true;
        self.stand(group);
    }

    /// Ends a [`hold`](Self::hold): the group stands where it stood.
    pub fn unhold(&mut self, group: GroupKey) {
        self.group_mut(group).held = false;
        self.stand(group);
    }

    /// As [`begin_turn`](Self::begin_turn) for this group, wherever it stands
    /// in line. Uses up its bump; is no dispatch, but resets the lane's count
    /// if the group is its oldest.
    pub fn begin_turn_of<R>(
        &mut self,
        group: GroupKey,
        take: impl FnOnce(&mut G) -> (R, Option<u32>),
    ) -> Result<(Pick, R), Blocked> {
        match self.why(group) {
            Blocked::InLine => {}
            blocked => return Err(blocked),
        }
        let Self { lanes, groups, .. } = self;
        let ready = at(groups, group.0).ready;
        let key = at(groups, group.0).lane;
        let lane = at(lanes, key.0);
        let tier = lane.front_tier;
        lane.served_by_name(ready, |g| place_in(groups, g, tier));
        let stood = at(groups, group.0).begin(None);
        let (tier, taken) = self.take_unit(group, take).ok_or(Blocked::Empty)?;
        let pick = Pick {
            group,
            lane: key,
            tier,
            stood,
        };
        Ok((pick, taken))
    }
}
