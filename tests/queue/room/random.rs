//! Random sends, waits and completions, compared with a list.

use conversant::queue::Detached;

use crate::queue_support::Random;

use super::*;

/// What the queue must do, kept as a list: which waits are notified, may send, or are refused,
/// after each of many random events.
#[derive(Default)]
struct Naive {
    held: usize,
    /// By number: the places, and whether it was notified.
    line: Vec<(usize, usize, bool)>,
}

impl Naive {
    const CAPACITY: usize = 5;

    fn told(&self) -> usize {
        self.line.iter().filter(|w| w.2).map(|w| w.1).sum()
    }

    fn settle(&mut self) {
        while let Some(at) = self.line.iter().position(|w| !w.2) {
            if self.held + self.told() + self.line[at].1 > Self::CAPACITY {
                break;
            }
            self.line[at].2 = true;
        }
    }

    fn admits(&self, places: usize) -> bool {
        let asked: usize = self.line.iter().map(|w| w.1).sum();
        self.held + asked + places <= Self::CAPACITY
    }

    fn leave(&mut self, number: usize) -> (usize, bool) {
        let at = self.line.iter().position(|w| w.0 == number).unwrap();
        let (_, places, told) = self.line.remove(at);
        (places, told)
    }
}

#[test]
fn as_a_list_has_it() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let (queue, lane) = bounded::<usize>(Naive::CAPACITY as u32);
        let wide = conversation(&lane, Limit::Unlimited, 100);
        let (mut naive, mut hands) = (Naive::default(), Vec::new());
        let mut waits: Vec<(usize, AllWait<'_, usize>)> = Vec::new();
        for number in 0..200 {
            match random.below(8) {
                0 | 1 => {
                    let places = 1 + random.below(3);
                    let wait = wide.send_all_wait(vec![number; places]);
                    let (wakes, waker) = WakeCounter::new();
                    let mut waiting = Waiting { wait, wakes, waker };
                    assert_eq!(waiting.poll().is_ready(), naive.admits(places));
                    if naive.admits(places) {
                        naive.held += places;
                    } else {
                        naive.line.push((number, places, false));
                        waits.push((number, waiting));
                    }
                }
                2 => {
                    let sent = wide.send(number);
                    assert_eq!(sent.is_ok(), naive.admits(1));
                    naive.held += usize::from(sent.is_ok());
                }
                3 | 4 => hands.extend(take(&queue)),
                5 if !hands.is_empty() => {
                    let hand: Detached<usize> = hands.swap_remove(random.below(hands.len()));
                    if random.below(3) > 0 {
                        hand.complete();
                        naive.held -= 1;
                    }
                }
                6 if !waits.is_empty() => {
                    let at = random.below(waits.len());
                    let (number, waiting) = &mut waits[at];
                    if waiting.poll().is_ready() {
                        let (places, told) = naive.leave(*number);
                        assert!(told, "sent without having been told");
                        naive.held += places;
                        waits.remove(at);
                    } else {
                        assert!(naive.line.iter().any(|w| w.0 == *number && !w.2));
                    }
                }
                7 if !waits.is_empty() => {
                    let (number, waiting) = waits.remove(random.below(waits.len()));
                    drop(waiting);
                    naive.leave(number);
                }
                _ => {}
            }
            naive.settle();
            assert_eq!(held(&queue), naive.held as u64);
            for (number, waiting) in &waits {
                let told = naive.line.iter().any(|w| w.0 == *number && w.2);
                assert_eq!(waiting.wakes.count(), usize::from(told), "{number}");
            }
        }
    }
}
