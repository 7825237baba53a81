//! Snapshots, counts and statuses, as JSON.

use std::pin::Pin;
use std::task::{Context, Waker};

use conversant::dialog::{Dialogs, Received};
use conversant::gate::TierGate;
use conversant::intent::IntentLock;
use conversant::job_queue::{self, JobQueue, Scope};
use conversant::limit::Limit;
use conversant::lock_table::{LockTable, Resource};
use conversant::modes::Mode;
use conversant::queue::Queue;
use conversant::scheduler::{CallerOptions, Place, Record, Scheduler};
use conversant::semaphore::Semaphore;
use conversant::simulator::Simulation;
use serde_json::{Value, json, to_value};

#[test]
fn a_queue() {
    let queue = Queue::builder().capacity(9).build().unwrap();
    let lane = queue.lane(2, 3).unwrap();
    let anna = lane.conversation().unwrap();
    anna.send("a message").unwrap();
    let taken = to_value(queue.snapshot()).unwrap();
    assert_eq!(
        (&taken["waiting"], &taken["closed"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(taken["counts"], to_value(queue.counts()).unwrap());
    assert_eq!(taken["counts"]["outstanding"], 1);
    let lane = &taken["lanes"][0];
    assert_eq!((&lane["weight"], &lane["cap"]), (&json!(2), &json!(3)));
    let group = &lane["groups"][0];
    assert_eq!(
        (&group["limit"], &group["why"]),
        (&json!(1), &json!("InLine"))
    );
    assert!(group["id"]["key"].is_string() && group["bump"].is_null());
}

/// Ids are serialized as they print.
#[test]
fn ids_of_a_simulation() {
    let mut sim = Simulation::new(1).unwrap();
    let caller = sim.caller("main", CallerOptions::default()).unwrap();
    let group = sim.group(caller, Limit::SERIAL, 100).unwrap();
    assert_eq!(to_value(caller).unwrap(), caller.to_string());
    assert_eq!(to_value(group).unwrap(), group.to_string());
}

#[test]
fn a_poisoned_group() {
    let queue = Queue::builder().attempts(1).build().unwrap();
    let anna = queue.lane(1, 1).unwrap().conversation().unwrap();
    anna.send("fails").unwrap();
    drop(queue.try_receive().unwrap().next());
    let expected = json!({ "group": anna.group_id(), "message": 1, "attempts": 1, "waiting": 1 });
    assert_eq!(to_value(queue.poisoned()).unwrap(), json!([expected]));
}

#[test]
fn a_dialog() {
    let queue = Queue::<Received<()>>::new();
    let lane = queue.lane(1, 1).unwrap();
    let (near, far) = Dialogs::new().pair(&lane, &lane).unwrap();
    near.end().unwrap();
    let told = to_value([near.refusal(), far.refusal()]).unwrap();
    assert_eq!(told, json!(["Ended", "PeerEnded"]));
    let id = json!({ "dialog": far.id().dialog(), "side": 1 });
    assert_eq!(to_value(far.id()).unwrap(), id);
}

#[test]
fn a_job_queue() {
    let jobs = JobQueue::new();
    jobs.push(1, "a job", job_queue::Place::new().tenant(7).group("mail"))
        .unwrap();
    jobs.set_limit(Scope::group_of(7, "mail"), Limit::Unlimited)
        .unwrap();
    let taken = to_value(jobs.snapshot()).unwrap();
    assert_eq!(
        (&taken["limit"], &taken["counts"]["ready"]),
        (&Value::Null, &json!(1))
    );
    let tenant = &taken["tenants"][0];
    assert_eq!(
        (&tenant["name"], &tenant["groups"][0]["name"]),
        (&json!(7), &json!("mail"))
    );
    assert_eq!(tenant["groups"][0]["limit"], Value::Null);
    let id = jobs.list(&Scope::Queue)[0];
    assert_eq!(to_value(jobs.why(id)).unwrap(), "Ready");
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
struct Row(&'static str);

impl Resource for Row {
    fn parent(&self) -> Option<Self> {
        None
    }
}

#[test]
fn a_lock_table() {
    let table = LockTable::new();
    let mut owner = table.owner(0);
    owner.lock(&Row("a row"), Mode::X).wait().unwrap();
    let taken = to_value(table.snapshot()).unwrap();
    assert_eq!(to_value(table.counts()).unwrap()["owners"], 1);
    assert!(taken.to_string().contains("a row"), "{taken}");
}

#[test]
fn a_deadlock() {
    let table = LockTable::new();
    let (mut one, mut other) = (table.owner(1), table.owner(0));
    one.lock(&Row("one"), Mode::X).wait().unwrap();
    other.lock(&Row("other"), Mode::X).wait().unwrap();
    let mut wait = one.lock(&Row("other"), Mode::S);
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
    assert!(other.lock(&Row("one"), Mode::S).wait().is_err());
    let told = to_value(&table.deadlocks()[0]).unwrap();
    assert_eq!(told["cycle"][0]["cause"], "Holds");
    assert_eq!(told["cycle"][0]["resource"], "one");
}

#[test]
fn a_semaphore_and_a_lock_with_who_waits() {
    let (semaphore, lock) = (Semaphore::new(1).unwrap(), IntentLock::new());
    let (_permit, _guard) = (
        semaphore.try_acquire(1).unwrap(),
        lock.try_lock(Mode::X).unwrap(),
    );
    let (mut permit, mut guard) = (semaphore.acquire(1), lock.lock(Mode::S));
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut permit).poll(&mut context).is_pending());
    assert!(Pin::new(&mut guard).poll(&mut context).is_pending());
    let taken = to_value(semaphore.snapshot()).unwrap();
    let waiter = &taken["waiters"][0];
    assert_eq!(
        (&waiter["count"], &waiter["state"]),
        (&json!(1), &json!("Waiting"))
    );
    assert!(waiter["made_at"].as_str().unwrap().contains("json.rs:"));
    let taken = to_value(lock.snapshot()).unwrap();
    assert_eq!(taken["waiters"][0]["asked"], "S");
    let counts = [to_value(semaphore.counts()), to_value(lock.counts())].map(Result::unwrap);
    assert_eq!(
        (&counts[0]["limit"], &counts[1]["held"][5]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_log() {
    let (log, records) = crossbeam_channel::unbounded::<Record>();
    let scheduler = Scheduler::builder().log(log).build().unwrap();
    let caller = scheduler
        .caller("nightly", CallerOptions::default())
        .unwrap();
    let group = caller.group(1, 100).unwrap();
    let place = Place::new().tier(2).group(&group).label("a task");
    let mut task = caller.exec_with(place, || Ok::<_, ()>(())).unwrap();
    task.outcome().wait().unwrap();
    let record = to_value(records.recv().unwrap()).unwrap();
    let task = &record["task"];
    assert_eq!(
        (&task["label"], &task["tier"]),
        (&json!("a task"), &json!(2))
    );
    assert_eq!(
        (&record["ending"], &record["run"]["worker"]),
        (&json!("Ok"), &json!(1))
    );
    assert_eq!(task["group"], to_value(group.id()).unwrap());
}

#[test]
fn a_scheduler_and_a_gate() {
    let workers = Scheduler::builder().build().unwrap();
    let caller = workers.caller("nightly", CallerOptions::default()).unwrap();
    let paused = caller.group(0, 100).unwrap();
    let task = caller.exec_with(Place::new().group(&paused), || Ok::<_, ()>(()));
    let status = to_value(workers.status()).unwrap();
    assert_eq!(status["callers"][0]["name"], "nightly");
    assert_eq!(status["waiting"][0]["group"], paused.id().to_string());
    assert_eq!(to_value(workers.counts()).unwrap()["waiting"], 1);
    assert!(task.unwrap().cancel());
    let gate = TierGate::new();
    let _ticket = gate.join(3);
    assert!(to_value(gate.snapshot()).unwrap().is_object());
}
