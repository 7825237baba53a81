//! The trees against sorted vectors.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Act {
    Sit {
        tree: usize,
        key: u8,
        marked: bool,
    },
    Move {
        tree: usize,
        at: usize,
        key: u8,
    },
    Leave {
        tree: usize,
        at: usize,
    },
    Mark {
        tree: usize,
        at: usize,
        marked: bool,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let (tree, at) = (0..3usize, any::<usize>());
    prop_oneof![
        3 => (tree.clone(), any::<u8>(), any::<bool>())
            .prop_map(|(tree, key, marked)| Act::Sit { tree, key, marked }),
        1 => (tree.clone(), at, any::<u8>())
            .prop_map(|(tree, at, key)| Act::Move { tree, at, key }),
        2 => (tree.clone(), at).prop_map(|(tree, at)| Act::Leave { tree, at }),
        2 => (tree, at, any::<bool>()).prop_map(|(tree, at, marked)| Act::Mark { tree, at, marked }),
    ]
}

impl Items<0> for Vec<Links> {
    fn links(&self, item: u32) -> &Links {
        &self[item as usize]
    }

    fn links_mut(&mut self, item: u32) -> &mut Links {
        &mut self[item as usize]
    }
}

impl<const W: usize> Tree<W> {
    /// The items in order, marked or not.
    pub(crate) fn iter(self, items: &impl Items<W>) -> impl Iterator<Item = u32> {
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
    let below = count(items, left) + count(items, right);
    assert_eq!(links.count, below + u32::from(links.marked));
    let left = check(items, left, item);
    1 + left.max(check(items, right, item))
}

proptest! {
    #[test]
    fn as_sorted_vectors_are(acts in prop::collection::vec(act(), 0..300)) {
        let mut items = Vec::new();
        let mut trees = [Tree::<0>::EMPTY; 3];
        // By tree: key, item, mark.
        let mut naive: [Vec<(u8, u32, bool)>; 3] = Default::default();
        let mut keys: Vec<u8> = Vec::new();
        for act in acts {
            match act {
                Act::Sit { tree, key, marked } => {
                    let item = keys.len() as u32;
                    keys.push(key);
                    items.push(Links::OUT);
                    let position = trees[tree].position(&items, |other| {
                        (key, item).cmp(&(keys[other as usize], other))
                    });
                    trees[tree].insert(&mut items, position, item, marked);
                    naive[tree].push((key, item, marked));
                    naive[tree].sort_unstable();
                }
                Act::Move { tree, at, key } if !naive[tree].is_empty() => {
                    let at = at % naive[tree].len();
                    let item = naive[tree][at].1;
                    let position = trees[tree].position(&items, |other| {
                        (key, item).cmp(&(keys[other as usize], other))
                    });
                    keys[item as usize] = key;
                    trees[tree].reposition(&mut items, position, item);
                    naive[tree][at].0 = key;
                    naive[tree].sort_unstable();
                }
                Act::Leave { tree, at } if !naive[tree].is_empty() => {
                    let at = at % naive[tree].len();
                    let (_, item, _) = naive[tree].remove(at);
                    trees[tree].remove(&mut items, item);
                    prop_assert!(!items.links(item).is_in());
                }
                Act::Mark { tree, at, marked } if !naive[tree].is_empty() => {
                    let at = at % naive[tree].len();
                    naive[tree][at].2 = marked;
                    trees[tree].mark(&mut items, naive[tree][at].1, marked);
                }
                _ => {}
            }
            for (tree, naive) in trees.iter().zip(&naive) {
                check(&items, tree.root, NONE);
                let expected: Vec<u32> = naive.iter().map(|&(_, item, _)| item).collect();
                prop_assert_eq!(tree.head(), expected.first().copied());
                prop_assert_eq!(tree.iter(&items).collect::<Vec<_>>(), expected);
                let first = naive.iter().find(|(.., marked)| *marked);
                prop_assert_eq!(tree.first(&items), first.map(|&(_, item, _)| item));
                let mut before = 0;
                for &(_, item, marked) in naive {
                    prop_assert_eq!(tree.marked_before(&items, item), before);
                    before += u32::from(marked);
                }
                prop_assert_eq!(count(&items, tree.root), before);
            }
        }
    }
}

#[test]
fn ascending_keys_do_not_make_a_list() {
    let mut items = vec![Links::OUT; 10_000];
    let mut tree = Tree::<0>::EMPTY;
    for item in 0..10_000 {
        let position = tree.position(&items, |other| item.cmp(&other));
        tree.insert(&mut items, position, item, true);
    }
    let height = check(&items, tree.root, NONE);
    assert!(height < 60, "{height}");
    for item in 0..10_000 {
        tree.remove(&mut items, item);
    }
    assert_eq!(tree, Tree::EMPTY);
}
