//! The trees against sorted vectors.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Act {
    Add { tree: usize, key: u8 },
    AddFirst { tree: usize },
    Remove { tree: usize, at: usize },
}

fn act() -> impl Strategy<Value = Act> {
    let tree = 0..3usize;
    prop_oneof![
        6 => (tree.clone(), any::<u8>()).prop_map(|(tree, key)| Act::Add { tree, key }),
        1 => tree.clone().prop_map(|tree| Act::AddFirst { tree }),
        4 => (tree, any::<usize>()).prop_map(|(tree, at)| Act::Remove { tree, at }),
    ]
}

impl Items for Vec<Links> {
    fn links(&self, item: u32) -> &Links {
        &self[item as usize]
    }

    fn links_mut(&mut self, item: u32) -> &mut Links {
        &mut self[item as usize]
    }
}

impl Tree {
    /// The items in order.
    pub(crate) fn iter(self, items: &impl Items) -> impl Iterator<Item = u32> {
        let mut stack = Vec::new();
        let mut at = self.root;
        std::iter::from_fn(move || {
            while at != NONE {
                stack.push(at);
                at = items.links(at).child[LEFT];
            }
            let item = stack.pop()?;
            at = items.links(item).child[RIGHT];
            Some(item)
        })
    }
}

/// Checks the invariants below an item; its height.
fn check(items: &Vec<Links>, item: u32, parent: u32) -> usize {
    if item == NONE {
        return 0;
    }
    let links = items.links(item);
    assert!(links.is_in() && links.parent == parent);
    let [left, right] = links.child;
    for child in [left, right] {
        assert!(child == NONE || priority(child) <= priority(item));
    }
    let left = check(items, left, item);
    1 + left.max(check(items, right, item))
}

proptest! {
    #[test]
    fn as_sorted_vectors_are(acts in prop::collection::vec(act(), 0..300)) {
        let mut items = Vec::new();
        let mut trees = [Tree::EMPTY; 3];
        // By tree: key and item.
        let mut naive: [Vec<(u8, u32)>; 3] = Default::default();
        for act in acts {
            let item = items.len() as u32;
            match act {
                Act::Add { tree, key } => {
                    items.push(Links::OUT);
                    let among = &mut naive[tree];
                    let key_of = |item| among.iter().find(|other| other.1 == item).unwrap().0;
                    let position = trees[tree]
                        .position(&items, |other| (key, item).cmp(&(key_of(other), other)));
                    trees[tree].insert(&mut items, position, item);
                    let at = among.partition_point(|&(other, _)| other <= key);
                    among.insert(at, (key, item));
                }
                Act::AddFirst { tree } => {
                    items.push(Links::OUT);
                    let position = trees[tree].first_position();
                    trees[tree].insert(&mut items, position, item);
                    naive[tree].insert(0, (0, item));
                }
                Act::Remove { tree, at } if !naive[tree].is_empty() => {
                    let at = at % naive[tree].len();
                    let (_, item) = naive[tree].remove(at);
                    trees[tree].remove(&mut items, item);
                    prop_assert!(!items.links(item).is_in());
                }
                Act::Remove { .. } => {}
            }
            for (tree, naive) in trees.iter().zip(&naive) {
                check(&items, tree.root, NONE);
                let expected: Vec<u32> = naive.iter().map(|&(_, item)| item).collect();
                prop_assert_eq!(tree.head(), expected.first().copied());
                prop_assert_eq!(tree.tail, expected.last().copied().unwrap_or(NONE));
                prop_assert_eq!(tree.is_empty(), expected.is_empty());
                for (before, &item) in expected.iter().enumerate() {
                    prop_assert_eq!(tree.before(&items, item), before as u32);
                }
                prop_assert_eq!(tree.iter(&items).collect::<Vec<_>>(), expected);
            }
        }
    }
}

/// What is last costs one comparison; near the end no more than a few, on average.
#[test]
fn near_the_end_is_found_at_once() {
    let mut items = vec![Links::OUT; 10_000];
    let mut tree = Tree::EMPTY;
    for item in 0..10_000 {
        let mut compared = 0;
        let position = tree.position(&items, |other| {
            compared += 1;
            item.cmp(&other)
        });
        assert_eq!(compared, u32::from(item > 0));
        tree.insert(&mut items, position, item);
    }
    let height = check(&items, tree.root, NONE);
    assert!(height < 60, "{height}");
    let mut compared = 0;
    for item in 9_990..10_000u32 {
        tree.position(&items, |other| {
            compared += 1;
            item.cmp(&other)
        });
    }
    assert!(compared < 100, "{compared}");
    for item in 0..10_000 {
        tree.remove(&mut items, item);
    }
    assert_eq!(tree, Tree::EMPTY);
}
