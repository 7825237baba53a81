//! The check can fail, and passes a correct order.

use super::*;

/// Last in, first out.
#[derive(Default)]
struct Stack(Vec<u32>);

impl Order for Stack {
    fn push(&mut self, group: u32, _: &[Rank]) {
        self.0.push(group);
    }

    fn pop(&mut self, ranks: &mut [Rank]) -> Option<(u32, u16)> {
        let group = self.0.pop()?;
        Some((group, ranks[group as usize].level))
    }

    fn bump(&mut self, group: u32, to: Rank, ranks: &mut [Rank]) {
        ranks[group as usize] = to;
    }
}

fn check(order: impl Order, bumps: bool) -> Result<()> {
    let shape = Shape {
        groups: 100,
        levels: 256,
        bumps,
    };
    let mut checked = Checked(Pending::new(order, shape));
    checked.run(1_000)?;
    checked.check()
}

#[test]
fn a_wrong_order_is_caught() {
    assert!(check(Stack::default(), false).is_err());
    assert!(check(Stack::default(), true).is_err());
}

#[test]
fn all_contenders_give_the_same_order() {
    for bumps in [false, true] {
        check(OurReadyQueue::default(), bumps).unwrap();
        check(OurBacklog::new(), bumps).unwrap();
        check(Tree::default(), bumps).unwrap();
        check(Queue::default(), bumps).unwrap();
        check(Heap::default(), bumps).unwrap();
    }
    check(Bitmap::new(100), false).unwrap();
}
