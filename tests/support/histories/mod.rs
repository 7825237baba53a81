//! Records what threads did and when, for a check of linearizability.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

/// One operation with its result, between two ticks.
struct Span<O> {
    thread: usize,
    call: usize,
    response: usize,
    operation: O,
}

/// What one thread does.
pub(crate) struct Log<O> {
    thread: usize,
    clock: Arc<AtomicUsize>,
    spans: Vec<Span<O>>,
}

impl<O> Log<O> {
    /// Does an operation, and records it. SeqCst on both sides: an operation that ended before
    /// another began has the earlier ticks.
    pub(crate) fn record<R>(
        &mut self,
        act: impl FnOnce() -> R,
        operation: impl FnOnce(&R) -> O,
    ) -> R {
        let call = self.clock.fetch_add(1, Ordering::SeqCst);
        let result = act();
        let response = self.clock.fetch_add(1, Ordering::SeqCst);
        self.spans.push(Span {
            thread: self.thread,
            call,
            response,
            operation: operation(&result),
        });
        result
    }
}

/// Runs the scripts, one thread each, and returns what they did, in order.
pub(crate) fn run<O, F>(scripts: Vec<F>) -> Vec<(usize, Action<O>)>
where
    O: Clone + Send + 'static,
    F: FnOnce(&mut Log<O>) + Send + 'static,
{
    let clock = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(Barrier::new(scripts.len()));
    let threads: Vec<_> = scripts
        .into_iter()
        .enumerate()
        .map(|(number, script)| {
            let (clock, start) = (clock.clone(), start.clone());
            thread::spawn(move || {
                let mut log = Log {
                    thread: number,
                    clock,
                    spans: Vec::new(),
                };
                start.wait();
                script(&mut log);
                log.spans
            })
        })
        .collect();
    let mut actions = Vec::new();
    for thread in threads {
        for span in thread.join().expect("a script panicked") {
            let operation = span.operation;
            actions.push((span.call, (span.thread, Action::Call(operation.clone()))));
            actions.push((span.response, (span.thread, Action::Response(operation))));
        }
    }
    actions.sort_by_key(|&(tick, _)| tick);
    actions.into_iter().map(|(_, action)| action).collect()
}

/// Whether there is an order of the operations, each somewhere between its
/// call and its response, that the specification allows.
pub(crate) fn is_linearizable<S: Specification>(
    actions: Vec<(usize, Action<S::Operation>)>,
) -> bool {
    WGLChecker::<S>::is_linearizable(History::from_actions(actions))
}

/// One thread after the other: call and response of each.
pub(crate) fn in_turn<O: Clone>(operations: &[(usize, O)]) -> Vec<(usize, Action<O>)> {
    let both = |(thread, operation): &(usize, O)| {
        [
            (*thread, Action::Call(operation.clone())),
            (*thread, Action::Response(operation.clone())),
        ]
    };
    operations.iter().flat_map(both).collect()
}
