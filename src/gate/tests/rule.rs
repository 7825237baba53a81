//! Under any operations in any order, the gate agrees with a rule that counts every ticket.

use proptest::prelude::*;

use super::super::{Ticket, TierGate};
use crate::tiers::Tiers;

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(u32),
    Enter(usize),
    Drop(usize),
    /// From one ticket straight to another: `leave_for`.
    Go(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4u32).prop_map(Step::Join),
        4 => any::<usize>().prop_map(Step::Enter),
        2 => any::<usize>().prop_map(Step::Drop),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Go(from, to)),
    ]
}

/// The rule, which is told of every ticket.
#[derive(Default)]
struct Rule(Tiers);

impl Rule {
    fn enter(&mut self, ticket: &Ticket) -> bool {
        let starts = !ticket.entered() && self.0.startable(ticket.tier());
        if starts {
            self.0.start(ticket.tier());
        }
        starts || ticket.entered()
    }

    fn gone(&mut self, ticket: &Ticket) {
        match ticket.entered() {
            true => self.0.finish(ticket.tier()),
            false => self.0.leave(ticket.tier()),
        }
    }
}

fn play(steps: &[Step]) {
    let gate = TierGate::new();
    let (mut rule, mut tickets) = (Rule::default(), Vec::new());
    for &step in steps {
        match step {
            Step::Join(tier) => {
                rule.0.arrive(tier);
                tickets.push(gate.join(tier));
            }
            _ if tickets.is_empty() => {}
            Step::Enter(nth) => {
                let nth = nth % tickets.len();
                let expected = rule.enter(&tickets[nth]);
                assert_eq!(tickets[nth].try_enter(), expected);
            }
            Step::Drop(nth) => {
                let ticket = tickets.swap_remove(nth % tickets.len());
                rule.gone(&ticket);
                drop(ticket);
            }
            Step::Go(_, _) if tickets.len() == 1 => {}
            Step::Go(from, to) => {
                let ticket = tickets.swap_remove(from % tickets.len());
                let to = to % tickets.len();
                rule.gone(&ticket);
                let expected = rule.enter(&tickets[to]);
                assert_eq!(ticket.leave_for(&mut tickets[to]), expected);
            }
        }
        let snapshot = gate.snapshot();
        assert_eq!(snapshot.counts, gate.counts());
        let counts = snapshot.counts;
        assert_eq!(
            (counts.open, counts.draining),
            (rule.0.open(), rule.0.draining())
        );
        assert_eq!(
            (counts.inside, counts.outside),
            (rule.0.running(), rule.0.waiting())
        );
        assert!(snapshot.outstanding.into_iter().eq(rule.0.iter()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn as_the_rule_has_it(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps);
    }
}
