//! The steps of senders, and settings.

use std::time::Duration;

use super::model::UNLIMITED;
use super::pair::{Pair, limit, of, of_reason, same};
use super::script::Kind;

impl Pair<'_> {
    pub fn ids(&mut self, n: u32) -> Vec<u32> {
        self.next_id += n;
        (self.next_id - n..self.next_id).collect()
    }

    pub fn send(&mut self, group: usize, n: u32) -> Result<(), String> {
        let ids = self.ids(n);
        let Some(conversation) = &self.groups[group].conversation else {
            return Ok(());
        };
        let sent = match ids[..] {
            [id] => conversation
                .send(id)
                .map_err(|e| (vec![e.message], e.reason)),
            _ => conversation
                .send_all(ids.clone())
                .map_err(|e| (e.message, e.reason)),
        };
        if let Err((back, _)) = &sent {
            same("handed back", back, &ids)?;
        }
        let sent = sent.map_err(|(_, reason)| of_reason(&reason));
        same("send", sent, self.model.send(group, &ids))?;
        let waiting = self.model.groups[group].waiting.len();
        same(
            "waiting",
            self.queue.waiting_in(self.groups[group].id).ok(),
            Some(waiting),
        )
    }

    pub fn send_in(&mut self, group: usize, tier: u32) -> Result<(), String> {
        let ids = self.ids(1);
        let Some(conversation) = &self.groups[group].conversation else {
            return Ok(());
        };
        let sent = conversation
            .send_in(tier, ids[0])
            .map_err(|e| of_reason(&e.reason));
        same(
            "send in a tier",
            sent,
            self.model.send_in(tier, group, &ids),
        )
    }

    pub fn send_many(&mut self, args: [u32; 3]) -> Result<(), String> {
        let picked = [args[0], args[1], args[2], args[0]].map(|arg| self.pick(arg));
        let picked = picked
            .into_iter()
            .filter(|&g| self.groups[g].conversation.is_some());
        let picked: Vec<_> = picked.collect();
        let ids = self.ids(picked.len() as u32);
        let to = |&g: &usize| {
            self.groups[g]
                .conversation
                .as_ref()
                .expect("they were filtered")
        };
        let messages: Vec<_> = picked.iter().map(to).zip(ids.iter().copied()).collect();
        let sent = self.queue.send_many(messages);
        let back = sent.err().map_or(0, |refused| refused.message.len());
        let mut expected = 0;
        for (place, (&group, &id)) in picked.iter().zip(&ids).enumerate() {
            if self.model.send(group, &[id]).is_err() {
                expected = picked.len() - place;
                break;
            }
        }
        same("handed back of many", back, expected)
    }

    pub fn set_group(&mut self, group: usize, kind: Kind, to: u32) {
        let Some(handle) = &self.groups[group].group else {
            return;
        };
        let level = of(self.shape.levels, to);
        let most = of(&[0, 1, 2, self.shape.limits[0]], to);
        match kind {
            Kind::Bump => handle.bump(level),
            Kind::Level => handle.set_level(level),
            _ => handle.set_limit(limit(most)).expect("it is in range"),
        }
        match kind {
            Kind::Bump => self.model.bump(group, level),
            Kind::Level => self.model.groups[group].level = level,
            _ => self.model.groups[group].limit = most,
        }
        self.model.settle();
    }

    pub fn set_capacity(&mut self, group: usize, to: u32, which: u32) -> Result<(), String> {
        let to = of(&[0, 1, 3, UNLIMITED], to);
        let lane = self.model.groups[group].lane;
        if which.is_multiple_of(2) {
            let Some(handle) = &self.lanes[lane] else {
                return Ok(());
            };
            self.model.lanes[lane].capacity = to;
            return handle.set_capacity(limit(to)).map_err(|e| e.to_string());
        }
        let Some(handle) = &self.groups[group].group else {
            return Ok(());
        };
        self.model.groups[group].capacity = to;
        handle.set_capacity(limit(to)).map_err(|e| e.to_string())
    }

    pub fn advance(&mut self, by: u32) -> Result<(), String> {
        self.now += u64::from(by % 4);
        let now = Duration::from_secs(self.now);
        same(
            "next date",
            self.queue.advance(now),
            self.model.advance(now),
        )
    }

    pub fn leave(&mut self, group: usize, which: u32) {
        let handles = &mut self.groups[group];
        if which.is_multiple_of(2) || self.model.closed {
            handles.group = None;
        }
        if handles.group.is_none() {
            handles.conversation = None;
            self.model.groups[group].handles = 0;
        }
    }
}
