//! The parts of a scheduler that loom can run, in place of the module, and their models.

mod borrows;
mod tokens;

use std::task::{Context, Poll};

use crate::sync::{Arc, AtomicUsize, JoinHandle, Ordering::Relaxed, explore, spawn};
use crate::wait::{Op, Wait, sealed};

use borrows::{Borrows, Fate, Token};
use tokens::CancelToken;

/// Waits until a scope has no token.
struct End<'a>(&'a Borrows);

impl sealed::Sealed for End<'_> {}

impl Op for End<'_> {
    type Output = ();

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }

    fn cancel(&mut self) {
        self.0.leave();
    }
}

/// What the tasks of a scope borrow: a count of those that have used it.
type Used = Arc<AtomicUsize>;

/// A task of a scope: it uses what it borrows, and its token goes.
fn task(token: Token, used: &Used) -> JoinHandle<()> {
    let used = Used::clone(used);
    spawn(move || {
        used.store(used.load(Relaxed) + 1, Relaxed);
        drop(token);
    })
}

/// Nothing is borrowed any more, and what the tasks did is seen.
fn assert_over(borrows: &Borrows, used: &Used, tasks: usize) {
    assert!(borrows.are_over() && !borrows.panicked());
    assert_eq!(used.load(Relaxed), tasks);
}

#[test]
fn a_scope_ends_after_its_only_task() {
    explore("a_scope_ends_after_its_only_task", None, || {
        let (borrows, used) = (Borrows::new(), Used::default());
        let task = task(Token::new(&borrows, None), &used);
        Wait::new(End(&borrows)).wait();
        assert_over(&borrows, &used, 1);
        task.join().unwrap();
    });
}

/// Before it ends, the first task submits the second one.
#[test]
fn a_scope_ends_after_what_its_task_has_submitted() {
    explore(
        "a_scope_ends_after_what_its_task_has_submitted",
        None,
        || {
            let (borrows, used) = (Borrows::new(), Used::default());
            let (token, of, uses) = (
                Token::new(&borrows, None),
                Arc::clone(&borrows),
                Arc::clone(&used),
            );
            let first = spawn(move || {
                let second = task(Token::new(&of, None), &uses);
                drop(token);
                second.join().unwrap();
            });
            Wait::new(End(&borrows)).wait();
            assert_over(&borrows, &used, 1);
            first.join().unwrap();
        },
    );
}

/// The scope is told once both have happened, and not before.
#[test]
fn a_panic_against_a_handle_that_is_dropped() {
    explore("a_panic_against_a_handle_that_is_dropped", None, || {
        let borrows = Borrows::new();
        let fate = Fate::new(&borrows);
        let mut token = Token::new(&borrows, Some(Arc::clone(&fate)));
        token.panics = true;
        let panics = spawn(move || drop(token));
        fate.abandon();
        Wait::new(End(&borrows)).wait();
        assert!(borrows.panicked());
        panics.join().unwrap();
    });
}

/// A task that sees its cancel also sees what was done before it.
#[test]
fn a_cancel_against_a_task_that_asks() {
    explore("a_cancel_against_a_task_that_asks", None, || {
        let (token, before) = (CancelToken::default(), Used::default());
        let (cancels, used) = (token.clone(), Arc::clone(&before));
        let other = spawn(move || {
            used.store(1, Relaxed);
            cancels.cancel();
        });
        if token.is_cancelled() {
            assert_eq!(before.load(Relaxed), 1);
        }
        other.join().unwrap();
        assert!(token.is_cancelled());
    });
}
