//! What a backlog holds, lane by lane and group by group.

use crate::dispatch::{GroupPicture, LanePicture};

use super::Backlog;

impl<T> Backlog<T> {
    /// All lanes, by slot. O(lanes).
    pub fn lanes(&self) -> impl Iterator<Item = LanePicture> {
        self.core.lane_pictures()
    }

    /// All groups, by slot, with how many messages wait in each. O(groups).
    pub fn groups(&self) -> impl Iterator<Item = (GroupPicture, usize)> {
        let pictures = self.core.group_pictures();
        pictures.map(|(picture, messages)| (picture, messages.len()))
    }
}
