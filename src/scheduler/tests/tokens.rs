//! Which tokens there are, and which are set.

use super::runs::{NOW, World};
use crate::scheduler::outcome::Ending;

#[test]
fn the_running_task_of_each_worker_has_a_token() {
    let mut world = World::new(2);
    world.post(4);
    let one = world.claim(1, 1).unwrap();
    let other = world.claim(2, 1).unwrap();
    let core = &mut world.state.core;
    let token = core.token(one.tag.key(), 1).clone();
    core.cancel_running(|_, tag| tag.id == one.tag.id);
    assert!(token.is_cancelled() && core.token(one.tag.key(), 1).is_cancelled());
    assert!(!core.token(other.tag.key(), 2).is_cancelled());
    // The token of a task that has ended does not change.
    let token = core.token(other.tag.key(), 2).clone();
    for worker in [one, other] {
        assert!(world.finish(&worker, Ending::Ok).is_none());
    }
    let next = [1, 2].map(|n| world.claim(n, 1).unwrap());
    let core = &mut world.state.core;
    assert!(!core.token(next[0].tag.key(), 1).is_cancelled());
    core.cancel_all(None, NOW);
    let told = [(0, 1), (1, 2)].map(|(at, n)| core.token(next[at].tag.key(), n).is_cancelled());
    assert!(told == [true; 2] && !token.is_cancelled());
}

#[test]
fn tokens_of_the_running_tasks_that_are_meant_are_set() {
    let mut world = World::new(2);
    world.post_mixed(&[true, false]);
    let mut tags = vec![];
    let tokens = [1, 2].map(|n| {
        let worker = world.claim(n, 1).unwrap();
        tags.push(worker.tag);
        world.state.core.token(worker.tag.key(), n).clone()
    });
    let other = world
        .state
        .core
        .add_caller("other".into(), &Default::default());
    world.state.core.cancel_all(other.ok(), NOW);
    assert!(!tokens.iter().any(|token| token.is_cancelled()));
    world
        .state
        .core
        .cancel_running(|_, tag| tag.id == tags[0].id);
    assert_eq!(
        tokens.each_ref().map(|token| token.is_cancelled()),
        [true, false]
    );
    world.state.core.cancel_all(Some(world.caller), NOW);
    assert!(tokens.iter().all(|token| token.is_cancelled()));
}
