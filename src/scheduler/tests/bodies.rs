//! Bodies of tasks that have run, and how other tasks reuse them.

use std::any::TypeId;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::scheduler::bodies::Bodies;
use crate::scheduler::cell::{DetachedCell, Function, Job, Program, Progress, Runner};
use crate::scheduler::outcome::{Ending, Run};

type Work = Arc<dyn Job>;

/// Counts the endings that a body reports to it.
#[derive(Default)]
struct Counts(u32);

impl Runner for Counts {
    fn ended(&mut self, _: Ending) -> Run {
        self.0 += 1;
        let (start, end) = (Duration::ZERO, Duration::ZERO);
        let worker = 1;
        Run { worker, start, end }
    }

    fn to_wake(&mut self, _: Option<Waker>) {}

    fn start(&mut self) -> &mut Duration {
        unreachable!("it is no future")
    }

    fn waker(&mut self) -> Waker {
        unreachable!("it is no future")
    }
}

/// A task; each `N` makes another type.
fn task<const N: usize>() -> DetachedCell<Function<impl FnOnce() -> Result<(), ()>>> {
    let some = [1_u8; N];
    let sum = move || {
        let sum: usize = some.iter().map(|&n| usize::from(n)).sum();
        (sum == N).then_some(()).ok_or(())
    };
    DetachedCell::new(Function(sum), None)
}

/// Runs a task. Returns its type and its body, if the body may be reused.
fn spent(mut job: Work) -> Option<(TypeId, Work)> {
    let mut counts = Counts::default();
    let progress = Arc::get_mut(&mut job).unwrap().run_alone(&mut counts);
    let of = match progress {
        Progress::Spent(of) => Some(of),
        _ => None,
    };
    let reported = u32::from(of.is_none());
    assert_eq!(
        counts.0, reported,
        "the runner reports the end of a spent body"
    );
    Some((of?, job))
}

fn put<const N: usize>(bodies: &mut Bodies, n: usize) {
    for _ in 0..n {
        let (of, body) = spent(Arc::new(task::<N>())).expect("small");
        bodies.put(of, body);
    }
}

/// Runs a task in a kept body, if there is one of its type.
fn fill<const N: usize>(bodies: &mut Bodies) -> bool {
    put_into(task::<N>(), bodies)
}

fn put_into<P: Program>(task: DetachedCell<P>, bodies: &mut Bodies) -> bool {
    let Some(body) = bodies.take::<P>(1).and_then(Vec::pop) else {
        return false;
    };
    let at = Arc::as_ptr(&body).cast::<()>();
    let job = task.put_into(Some(body));
    assert_eq!(Arc::as_ptr(&job).cast(), at, "of its type");
    assert!(spent(job).is_some());
    true
}

#[test]
fn a_body_serves_tasks_of_its_type_alone() {
    let mut bodies = Bodies::default();
    put::<1>(&mut bodies, 2);
    put::<2>(&mut bodies, 1);
    put::<1>(&mut bodies, 1);
    assert!(!fill::<3>(&mut bodies));
    assert!([fill::<2>(&mut bodies), !fill::<2>(&mut bodies)] == [true; 2]);
    assert!((0..3).all(|_| fill::<1>(&mut bodies)));
    assert!(bodies.is_empty() && !fill::<1>(&mut bodies));
}

#[test]
fn bodies_that_are_handed_in_are_kept_up_to_the_bound() {
    let (mut bodies, mut more) = (Bodies::default(), Bodies::default());
    for round in 1..4 {
        put::<1>(&mut more, 200);
        put::<2>(&mut more, 1);
        bodies.take_in(&mut more);
        assert!(more.is_empty(), "round {round}");
    }
    let (mut ones, mut twos) = (0, 0);
    while fill::<1>(&mut bodies) {
        ones += 1;
    }
    while fill::<2>(&mut bodies) {
        twos += 1;
    }
    assert_eq!((ones + twos, twos), (512, 2));
    assert!(bodies.is_empty());
}

/// The ninth type takes the place of the first.
#[test]
fn if_there_are_too_many_types_the_oldest_goes() {
    let mut bodies = Bodies::default();
    put::<1>(&mut bodies, 3);
    put::<2>(&mut bodies, 1);
    put::<3>(&mut bodies, 1);
    put::<4>(&mut bodies, 1);
    put::<5>(&mut bodies, 1);
    put::<6>(&mut bodies, 1);
    put::<7>(&mut bodies, 1);
    put::<8>(&mut bodies, 1);
    put::<9>(&mut bodies, 1);
    assert!(!fill::<1>(&mut bodies) && fill::<2>(&mut bodies) && fill::<9>(&mut bodies));
    put::<2>(&mut bodies, 505);
    assert!(
        (0..505).all(|_| fill::<2>(&mut bodies)),
        "the three that went do not count"
    );
}

#[test]
fn a_body_that_is_large_or_whose_task_failed_is_not_used_again() {
    let job = |result: Result<Box<u8>, ()>| -> Work {
        Arc::new(DetachedCell::new(Function(|| result), None))
    };
    assert!(spent(Arc::new(task::<400>())).is_none());
    assert!(spent(job(Err(()))).is_none());
    assert!(
        spent(job(Ok(Box::new(1)))).is_none(),
        "it must be dropped first"
    );
    let labelled = DetachedCell::new(Function(|| Ok::<_, ()>(())), Some(Arc::from("label")));
    assert!(spent(Arc::new(labelled)).is_none());
}
