//! The ready queue after groups were paused and resumed, served and sent to.

use crate::queue_support;

use std::collections::BTreeSet;

use conversant::limit::Limit;
use conversant::queue::{Conversation, Group, Queue};

use queue_support::{Random, plain, serve, turn};

const PAUSED: Limit = Limit::AtMost(0);

/// A group that was paused leaves a gap in the queue, which does not count as a group.
#[test]
fn a_group_that_left_the_middle_of_the_line_hides_nobody() {
    let (queue, lane) = plain();
    let groups = [(); 3].map(|()| lane.group(Limit::SERIAL, 100).unwrap());
    for (n, group) in groups.iter().enumerate() {
        group.conversation().unwrap().send(n).unwrap();
    }
    groups[1].set_limit(PAUSED).unwrap();
    let first = turn(&queue).unwrap();
    assert_eq!(first.group_id(), groups[0].id());
    groups[1].set_limit(Limit::SERIAL).unwrap();
    assert_eq!(queue.counts().eligible, 2);
    assert_eq!(serve(&queue), [1, 2]);
    drop(first);
    assert_eq!(serve(&queue), [0]);
}

struct World {
    queue: Queue<usize>,
    groups: Vec<(Group<usize>, Conversation<usize>)>,
    paused: BTreeSet<usize>,
}

/// Whatever leaves the ready queue and comes back: a group with work and room is eligible, and a
/// receive finds it.
#[test]
fn what_is_eligible_is_found() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let (queue, lane) = plain();
        let group = |_| {
            let group = lane.group(Limit::SERIAL, 100).unwrap();
            let conversation = group.conversation().unwrap();
            (group, conversation)
        };
        let mut world = World {
            groups: (0..6).map(group).collect(),
            queue,
            paused: BTreeSet::new(),
        };
        for _ in 0..200 {
            step(&mut world, &mut random);
        }
    }
}

fn step(world: &mut World, random: &mut Random) {
    let World {
        queue,
        groups,
        paused,
    } = world;
    let n = random.below(groups.len());
    let (group, conversation) = &groups[n];
    match random.below(8) {
        0..=2 => conversation.send(n).unwrap(),
        3 => {
            group.set_limit(PAUSED).unwrap();
            paused.insert(n);
        }
        4 => {
            group.set_limit(Limit::SERIAL).unwrap();
            paused.remove(&n);
        }
        5 if random.below(4) == 0 => group.bump(random.below(3) as u8),
        _ => {
            let waits = |n: usize| groups[n].0.waiting() > 0 && !paused.contains(&n);
            let eligible: Vec<usize> = (0..groups.len()).filter(|&n| waits(n)).collect();
            assert_eq!(queue.counts().eligible, eligible.len() as u64);
            match turn(queue) {
                Some(mut turn) => {
                    let n = turn.next().unwrap().complete();
                    assert!(eligible.contains(&n));
                }
                None => assert_eq!(eligible, []),
            }
        }
    }
}
