//! Orders against sorted vectors.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Act {
    Add {
        order: usize,
        key: u8,
    },
    /// Behind all that are there: most of what orders are used for.
    AddLast {
        order: usize,
    },
    AddFirst {
        order: usize,
    },
    Remove {
        order: usize,
        at: usize,
    },
    Pass {
        order: usize,
        to: usize,
        at: usize,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let order = 0..3usize;
    prop_oneof![
        4 => (order.clone(), any::<u8>()).prop_map(|(order, key)| Act::Add { order, key }),
        3 => order.clone().prop_map(|order| Act::AddLast { order }),
        1 => order.clone().prop_map(|order| Act::AddFirst { order }),
        5 => (order.clone(), any::<usize>()).prop_map(|(order, at)| Act::Remove { order, at }),
        3 => (order, 1..3usize, prop_oneof![Just(0), any::<usize>()])
            .prop_map(|(order, on, at)| Act::Pass { order, to: (order + on) % 3, at }),
    ]
}

/// An item that knows its number.
struct Numbered(u32, Links, Balance);

impl Numbered {
    fn new(number: u32) -> Self {
        Self(number, Links::out(), Balance::default())
    }
}

impl Items for Vec<Numbered> {
    type Item = Numbered;

    fn item(&self, item: u32) -> &Numbered {
        &self[item as usize]
    }

    fn links_of(item: &Numbered) -> &Links {
        &item.1
    }

    fn balance_of(item: &Numbered) -> &Balance {
        &item.2
    }
}

fn numbered(len: u32) -> Vec<Numbered> {
    (0..len).map(Numbered::new).collect()
}

/// Checks the order, and its tree, against the expected items with their keys.
fn check(items: &Vec<Numbered>, order: Order, expected: &[(u8, u32)]) {
    let place = |item| expected.iter().position(|other| other.1 == item).unwrap();
    let compare = |one, other| place(one).cmp(&place(other));
    assert_eq!(
        order.head(items, |one, other| compare(one.0, other.0)),
        expected.first().map(|first| first.1)
    );
    assert_eq!(order.is_empty(), expected.is_empty());
    for (before, &(_, item)) in expected.iter().enumerate() {
        assert!(items.links(item).is_in());
        assert_eq!(order.before(items, |other| compare(item, other.0)), before);
    }
    order.late.check(items);
}

proptest! {
    #[test]
    fn as_sorted_vectors_are(acts in prop::collection::vec(act(), 0..150)) {
        let mut items = Vec::new();
        let mut orders = [Order::EMPTY; 3];
        // For each order: key and item.
        let mut naive: [Vec<(u8, u32)>; 3] = Default::default();
        for act in acts {
            let item = items.len() as u32;
            match act {
                Act::Add { order, .. } | Act::AddLast { order } => {
                    let among = &mut naive[order];
                    let key = match act {
                        Act::Add { key, .. } => key,
                        _ => among.last().map_or(0, |last| last.0),
                    };
                    items.push(Numbered::new(item));
                    let key_of = |item| among.iter().find(|other| other.1 == item).unwrap().0;
                    let position = orders[order]
                        .position(&items, |other| (key, item).cmp(&(key_of(other.0), other.0)));
                    orders[order].insert(&items, position, item);
                    let at = among.partition_point(|&(other, _)| other <= key);
                    among.insert(at, (key, item));
                }
                // As a former front, which was in an order before.
                Act::AddFirst { order } if naive[order].first().is_none_or(|first| first.0 > 0) => {
                    items.push(Numbered::new(item));
                    orders[order].insert(&items, Position::First, item);
                    naive[order].insert(0, (0, item));
                }
                Act::Remove { order, at } if !naive[order].is_empty() => {
                    let at = at % naive[order].len();
                    let (_, item) = naive[order].remove(at);
                    orders[order].remove(&items, item);
                    prop_assert!(!items.links(item).is_in());
                }
                Act::Pass { order, to, at } if !naive[order].is_empty() => {
                    let at = at % naive[order].len();
                    let (key, item) = naive[order].remove(at);
                    // Among equal keys, the item is the last in its new order.
                    let rank = |other| match other == item {
                        true => (key, u32::MAX),
                        false => (naive[to].iter().find(|pair| pair.1 == other).unwrap().0, 0),
                    };
                    let compare = |one: &Numbered, other: &Numbered| rank(one.0).cmp(&rank(other.0));
                    let [from, into] = orders.get_disjoint_mut([order, to]).unwrap();
                    into.passing(&items).pass(from, item, compare);
                    let at = naive[to].partition_point(|&(other, _)| other <= key);
                    naive[to].insert(at, (key, item));
                }
                Act::AddFirst { .. } | Act::Remove { .. } | Act::Pass { .. } => {}
            }
            for (order, naive) in orders.iter().zip(&naive) {
                check(&items, *order, naive);
            }
        }
    }
}

/// An item that comes last costs one comparison, and so does the last one of those that are late.
/// Near the end it takes no more than a few, on average, and far from it one for each level.
#[test]
fn near_the_end_is_found_at_once() {
    let items = numbered(10_001);
    let mut order = Order::EMPTY;
    // All items come before this one, so each is late.
    order.insert(&items, Position::First, 10_000);
    for item in 0..10_000 {
        let mut compared = 0;
        let position = order.position(&items, |other| {
            compared += 1;
            item.cmp(&other.0)
        });
        assert_eq!(compared, 1 + u32::from(item > 0));
        order.insert(&items, position, item);
    }
    // As low as a tree of so many items can be.
    assert_eq!(order.late.check(&items), 14);
    let compared = |item: u32| {
        let mut compared = 0;
        order.position(&items, |other| {
            compared += 1;
            item.cmp(&other.0)
        });
        compared
    };
    let near: u32 = (9_990..10_000).map(compared).sum();
    assert!(near < 110, "{near}");
    // The two ends, and an item on each of 13 levels from the root on.
    assert_eq!(compared(0), 2 + 13);
    for item in 0..=10_000 {
        assert_eq!(
            order.head(&items, |one, other| one.0.cmp(&other.0)),
            Some(item)
        );
        order.remove(&items, item);
    }
    assert_eq!(order, Order::EMPTY);
}

/// Items that come in order are not in the tree, and after it is empty they go to the run again.
#[test]
fn what_comes_in_order_is_in_the_run() {
    let items = numbered(5);
    let mut order = Order::EMPTY;
    let add = |order: &mut Order, item: u32| {
        let position = order.position(&items, |other| item.cmp(&other.0));
        order.insert(&items, position, item);
        position
    };
    assert_eq!(add(&mut order, 1), Position::Last);
    assert_eq!(add(&mut order, 3), Position::Last);
    assert!(matches!(add(&mut order, 2), Position::Late(_)));
    for item in [1, 3] {
        order.remove(&items, item);
    }
    let add = |order: &mut Order, item: u32| {
        let position = order.position(&items, |other| item.cmp(&other.0));
        order.insert(&items, position, item);
        position
    };
    assert!(matches!(add(&mut order, 0), Position::Late(_)));
    assert_eq!(add(&mut order, 4), Position::Last);
}
