//! What is compared: cells, their contenders, and the target ratios.
//!
//! A new row is a file in `rows/` that returns cells; a new contender is a [`Contender`].

use std::time::Duration;

use anyhow::Result;

/// One way to do a cell's work.
pub trait Contender {
    /// Does about `ops` operations, and reports the time. The output is checked outside of the
    /// timed part, or at a cost that all contenders of the cell share.
    ///
    /// # Errors
    ///
    /// If the output is wrong.
    fn run(&mut self, ops: u64) -> Result<Sample>;

    /// A last check when all rounds are over, for checks too expensive to make in each round.
    ///
    /// # Errors
    ///
    /// If the output is wrong.
    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<F: FnMut(u64) -> Result<Sample>> Contender for F {
    fn run(&mut self, ops: u64) -> Result<Sample> {
        self(ops)
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub took: Duration,
    pub ops: u64,
    /// A thread of the run was preempted, so that the time includes another job.
    pub disturbed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This crate.
    Ours,
    /// What other crates offer.
    Peer,
    /// The least that the work can cost; not something that one could use.
    Limit,
}

pub struct Entry {
    pub name: String,
    pub role: Role,
    pub contender: Box<dyn Contender>,
}

impl Entry {
    pub fn ours(name: impl Into<String>, contender: impl Contender + 'static) -> Self {
        Self::new(name, Role::Ours, contender)
    }

    pub fn peer(name: impl Into<String>, contender: impl Contender + 'static) -> Self {
        Self::new(name, Role::Peer, contender)
    }

    pub fn limit(name: impl Into<String>, contender: impl Contender + 'static) -> Self {
        Self::new(name, Role::Limit, contender)
    }

    pub fn new(name: impl Into<String>, role: Role, contender: impl Contender + 'static) -> Self {
        Self {
            name: name.into(),
            role,
            contender: Box::new(contender),
        }
    }
}

/// A contender of ours may cost at most this many times what another contender does, or this
/// many nanoseconds.
#[derive(Clone, Debug)]
pub struct Target {
    pub ours: &'static str,
    pub bound: Bound,
}

#[derive(Clone, Debug)]
pub enum Bound {
    Times(f64, &'static str),
    Nanoseconds(f64),
}

/// One table: the same work done by all its contenders.
pub struct Cell {
    pub row: &'static str,
    pub title: String,
    /// What one operation is.
    pub unit: &'static str,
    /// Built when the cell's turn comes: some contenders take much memory.
    pub build: Box<dyn FnOnce() -> Vec<Entry>>,
    /// A contender that a target names and that does not exist is reported as missing.
    pub targets: Vec<Target>,
}

impl Cell {
    pub fn new(
        row: &'static str,
        title: impl Into<String>,
        build: impl FnOnce() -> Vec<Entry> + 'static,
    ) -> Self {
        Self {
            row,
            title: title.into(),
            unit: "pair",
            build: Box::new(build),
            targets: Vec::new(),
        }
    }

    pub fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// `ours` may cost at most `times` what `other` does.
    pub fn target(mut self, ours: &'static str, times: f64, other: &'static str) -> Self {
        let bound = Bound::Times(times, other);
        self.targets.push(Target { ours, bound });
        self
    }

    /// `ours` may cost at most this many nanoseconds.
    pub fn absolute(mut self, ours: &'static str, nanoseconds: f64) -> Self {
        let bound = Bound::Nanoseconds(nanoseconds);
        self.targets.push(Target { ours, bound });
        self
    }
}
