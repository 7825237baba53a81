//! What is done after an event, its lock released.

use std::iter::repeat_n;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::scheduler::caller::CallerOptions;
use crate::scheduler::cell::{DetachedCell, Function};
use crate::scheduler::task_state::Placing;
use crate::scheduler::{Place, Scheduler};
use crate::wait::WakeBatch;

type Told = Arc<Mutex<Vec<&'static str>>>;

struct Drops(Told);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("dropped");
    }
}

/// A drop may wait for a task that one of them runs.
#[test]
fn all_workers_are_requested_before_anything_is_dropped() {
    let (told, workers) = (Told::default(), Arc::new(Mutex::new(Vec::new())));
    let pool = {
        let (told, workers) = (Arc::clone(&told), Arc::clone(&workers));
        move |worker: Box<dyn FnOnce() + Send>| {
            told.lock().unwrap().push("sent for");
            workers.lock().unwrap().push(worker);
            Ok(())
        }
    };
    let builder = Scheduler::builder().workers(1).pool(pool);
    let scheduler = builder.build().unwrap();
    let caller = scheduler.caller("main", CallerOptions::default()).unwrap();
    let (paused, drops) = (caller.group(0, 100).unwrap(), Drops(Arc::clone(&told)));
    let holds = move || {
        let _drops = &drops;
        Ok::<_, ()>(())
    };
    let place = Place::new().group(&paused);
    caller.exec_detached(place, holds).unwrap();
    scheduler.shared.with_state(|state, wakes, now| {
        let waiting = state.core.find_waiting(None, |_, _| true);
        assert!(state.core.cancel(waiting[0], now));
        // A full batch: it is fired before the workers are requested.
        wakes.extend(repeat_n(Waker::noop().clone(), WakeBatch::BOUND));
        let job = Arc::new(DetachedCell::new(Function(|| Ok::<_, ()>(())), None));
        let submitted = (caller.0.key, Placing::default());
        state.core.submit(submitted.0, submitted.1, job, now);
    });
    assert_eq!(*told.lock().unwrap(), ["sent for", "dropped"]);
    let workers = std::mem::take(&mut *workers.lock().unwrap());
    workers.into_iter().for_each(|worker| worker());
}
