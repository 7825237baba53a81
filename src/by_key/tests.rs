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
        2 => (tree.clone(), at).prop_map(|(tree, at)| Act::Leave { tree, at }),
        2 => (tree, at, any::<bool>()).prop_map(|(tree, at, marked)| Act::Mark { tree, at, marked }),
    ]
}

impl Orders {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The items of a tree in order, marked or not.
    pub(crate) fn iter(&self, tree: Tree) -> impl Iterator<Item = u32> {
        let mut stack = Vec::new();
        let mut at = tree.root;
        std::iter::from_fn(move || {
            while at != NONE {
                stack.push(at);
                at = self.at(at).child[LEFT];
            }
            let links = self.at(stack.pop()?);
            at = links.child[RIGHT];
            Some(links.item)
        })
    }
}

/// Checks the invariants below a node; its height.
fn check(orders: &Orders, node: u32, parent: u32) -> usize {
    if node == NONE {
        return 0;
    }
    let links = orders.at(node);
    assert_eq!(links.parent, parent);
    let [left, right] = links.child;
    for child in [left, right] {
        assert!(child == NONE || priority(child) <= priority(node));
    }
    let below = orders.count(left) + orders.count(right);
    assert_eq!(links.count, below + u32::from(links.marked));
    let left = check(orders, left, node);
    1 + left.max(check(orders, right, node))
}

proptest! {
    #[test]
    fn as_sorted_vectors_are(acts in prop::collection::vec(act(), 0..300)) {
        let mut orders = Orders::new();
        let mut trees = [Tree::EMPTY; 3];
        // By tree: key, number, node, mark.
        let mut naive: [Vec<(u8, u32, Node, bool)>; 3] = Default::default();
        let mut keys = Vec::new();
        for act in acts {
            match act {
                Act::Sit { tree, key, marked } => {
                    let item = keys.len() as u32;
                    keys.push(key);
                    let position = orders.position(trees[tree], |other| {
                        (key, item).cmp(&(keys[other as usize], other))
                    });
                    let node = orders.insert(&mut trees[tree], position, item, marked);
                    naive[tree].push((key, item, node, marked));
                    naive[tree].sort_by_key(|&(key, item, ..)| (key, item));
                }
                Act::Leave { tree, at } if !naive[tree].is_empty() => {
                    let at = at % naive[tree].len();
                    let (_, _, node, _) = naive[tree].remove(at);
                    orders.remove(&mut trees[tree], node);
                }
                Act::Mark { tree, at, marked } if !naive[tree].is_empty() => {
                    let at = at % naive[tree].len();
                    naive[tree][at].3 = marked;
                    orders.mark(naive[tree][at].2, marked);
                }
                _ => {}
            }
            for (tree, naive) in trees.iter().zip(&naive) {
                check(&orders, tree.root, NONE);
                let items: Vec<u32> = naive.iter().map(|&(_, item, ..)| item).collect();
                prop_assert_eq!(orders.iter(*tree).collect::<Vec<_>>(), items);
                prop_assert_eq!(orders.head(*tree), naive.first().map(|&(_, item, ..)| item));
                let first = naive.iter().find(|(.., marked)| *marked);
                prop_assert_eq!(orders.first(*tree), first.map(|&(_, item, ..)| item));
                let mut before = 0;
                for &(_, _, node, marked) in naive {
                    prop_assert_eq!(orders.marked_before(node), before);
                    before += u32::from(marked);
                }
                prop_assert_eq!(orders.marked(*tree), before);
            }
        }
        prop_assert_eq!(orders.nodes.len(), naive.iter().map(Vec::len).sum::<usize>());
    }
}

#[test]
fn ascending_keys_do_not_make_a_list() {
    let mut orders = Orders::new();
    let mut tree = Tree::EMPTY;
    for item in 0..10_000 {
        let position = orders.position(tree, |other| item.cmp(&other));
        orders.insert(&mut tree, position, item, true);
    }
    let height = check(&orders, tree.root, NONE);
    assert!(height < 60, "{height}");
}

#[test]
fn what_left_leaves_nothing() {
    let mut orders = Orders::new();
    let mut tree = Tree::EMPTY;
    let nodes: Vec<Node> = (0..10_000)
        .map(|item| {
            let position = orders.position(tree, |other| item.cmp(&other));
            orders.insert(&mut tree, position, item, false)
        })
        .collect();
    let full = orders.heap_bytes();
    for node in nodes {
        orders.remove(&mut tree, node);
    }
    assert_eq!(tree, Tree::EMPTY);
    assert!(orders.is_empty() && orders.heap_bytes() < full / 10);
}
