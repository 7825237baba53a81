//! A small database: accounts in two tables, transfers on threads that lock the rows they
//! change, audits that lock whole tables. When transactions wait for each other in a cycle, one
//! gets an error; it releases its locks and retries.
//!
//! `cargo run --example small_database`

use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::thread;

use conversant::lock_table::LockError;
use conversant::prelude::*;

const ROWS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Name {
    Table(usize),
    Row(usize),
}

impl Resource for Name {
    fn parent(&self) -> Option<Self> {
        match self {
            Name::Table(_) => None,
            Name::Row(row) => Some(Name::Table(row % 2)),
        }
    }
}

type Done<T> = Result<T, LockError<Name>>;

#[derive(Default)]
struct Database {
    locks: LockTable<Name>,
    /// Changed under X of its row, read under S of its row or table.
    balances: [AtomicI64; ROWS],
    commits: AtomicU64,
    victims: AtomicU64,
}

impl Database {
    /// Runs a transaction; again if it was chosen as the victim of a deadlock. It holds its
    /// locks until its end.
    fn transact<T>(&self, work: impl Fn(&mut Owner<Name>) -> Done<T>) -> Done<T> {
        let mut owner = self.locks.owner(0);
        loop {
            match work(&mut owner) {
                Err(LockError::Deadlock(_)) => self.victims.fetch_add(1, Relaxed),
                Ok(done) => {
                    self.commits.fetch_add(1, Relaxed);
                    return Ok(done);
                }
                Err(error) => return Err(error),
            };
            // Releases its locks, and makes sure that it is not the victim for ever.
            owner.retry();
        }
    }

    /// `between` runs when the first row is locked.
    fn transfer(&self, from: usize, to: usize, between: impl Fn()) -> Done<()> {
        self.transact(|owner| {
            owner.lock(&Name::Row(from), Mode::X).wait()?;
            between();
            owner.lock(&Name::Row(to), Mode::X).wait()?;
            // Nothing fails from here on, so nothing must be undone.
            self.balances[from].fetch_sub(1, Relaxed);
            self.balances[to].fetch_add(1, Relaxed);
            Ok(())
        })
    }

    /// The sum of all accounts, at one moment.
    fn audit(&self) -> Done<i64> {
        self.transact(|owner| {
            let tables = [Name::Table(0), Name::Table(1)];
            let wait = owner.lock_many(tables.map(|table| (table, Mode::S)));
            wait.wait()?;
            let balances = self.balances.iter();
            Ok(balances.map(|balance| balance.load(Relaxed)).sum())
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (database, calls) = (Database::default(), AtomicU64::new(0));
    // Two that must meet: each holds what the other wants.
    let both = Barrier::new(2);
    let meet = || {
        if calls.fetch_add(1, Relaxed) < 2 {
            both.wait();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| database.transfer(0, 1, meet));
        scope.spawn(|| database.transfer(1, 0, meet));
    });
    let tried_again = database.victims.load(Relaxed);
    println!("of two that met {tried_again} was tried again");
    // Many that meet by chance, with audits meanwhile.
    thread::scope(|scope| {
        for step in [1, 3, 5] {
            let database = &database;
            let place = move |n: usize| n * step % ROWS;
            scope.spawn(move || {
                (0..500).try_for_each(|n| database.transfer(place(n), place(n + 1), || ()))
            });
        }
        (0..100).try_for_each(|_| database.audit().map(|sum| assert_eq!(sum, 0)))
    })?;
    println!("{} transactions", database.commits.load(Relaxed));
    println!("no money was made: {}", database.audit()? == 0);
    assert!(database.locks.is_empty());
    Ok(())
}
