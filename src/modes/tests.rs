//! Every pair and every triple of modes.

use super::Mode::{self, Is, Ix, S, Six, U, X};

/// The table of the specification, written out: rows and columns IS S U IX SIX X.
const ORDER: [Mode; 6] = [Is, S, U, Ix, Six, X];
const TABLE: [&str; 6] = ["YYYYY-", "YYY---", "YY----", "Y--Y--", "Y-----", "------"];

fn pairs() -> impl Iterator<Item = (Mode, Mode)> {
    let all = Mode::ALL.into_iter();
    all.flat_map(|a| Mode::ALL.into_iter().map(move |b| (a, b)))
}

fn triples() -> impl Iterator<Item = (Mode, Mode, Mode)> {
    pairs().flat_map(|(a, b)| Mode::ALL.into_iter().map(move |c| (a, b, c)))
}

/// `a` is at least as strong as `b`, by walking the drawn lattice rather than by `join`.
fn at_least(a: Mode, b: Mode) -> bool {
    let one_down: &[Mode] = match a {
        X => &[Six],
        Six => &[Ix, U],
        U => &[S],
        Ix | S => &[Is],
        Is => &[],
    };
    a == b || one_down.iter().any(|&lower| at_least(lower, b))
}

#[test]
fn compatibility_is_the_table() {
    for (row, line) in ORDER.into_iter().zip(TABLE) {
        for (column, cell) in ORDER.into_iter().zip(line.chars()) {
            assert_eq!(row.compatible(column), cell == 'Y', "{row} beside {column}");
        }
    }
    for (a, b) in pairs() {
        assert_eq!(a.compatible(b), b.compatible(a), "{a} {b}");
    }
}

#[test]
fn the_joins_that_the_specification_names() {
    assert_eq!(S.join(Ix), Six);
    assert_eq!(U.join(Ix), Six);
    assert_eq!(S.join(U), U);
    for mode in Mode::ALL {
        assert_eq!(mode.join(X), X);
        assert_eq!(Is.join(mode), mode);
        assert_eq!(mode.join(mode), mode);
    }
    for mode in [S, U, Ix] {
        assert_eq!(Six.join(mode), Six);
    }
}

#[test]
fn join_is_the_least_upper_bound_and_meet_the_greatest_lower() {
    for (a, b) in pairs() {
        let (join, meet) = (a.join(b), a.meet(b));
        assert_eq!(join, b.join(a), "{a} v {b}");
        assert_eq!(meet, b.meet(a), "{a} ^ {b}");
        assert!(at_least(join, a) && at_least(join, b), "{a} v {b}");
        assert!(at_least(a, meet) && at_least(b, meet), "{a} ^ {b}");
        assert_eq!(a.covers(b), at_least(a, b), "{a} covers {b}");
        assert_eq!(a.join(meet), a, "absorption");
        assert_eq!(a.meet(join), a, "absorption");
    }
    for (a, b, c) in triples() {
        assert_eq!(a.join(b).join(c), a.join(b.join(c)), "{a} {b} {c}");
        assert_eq!(a.meet(b).meet(c), a.meet(b.meet(c)), "{a} {b} {c}");
        let above = at_least(c, a) && at_least(c, b);
        assert_eq!(above, at_least(c, a.join(b)), "{c} above {a} and {b}");
        let below = at_least(a, c) && at_least(b, c);
        assert_eq!(below, at_least(a.meet(b), c), "{c} below {a} and {b}");
    }
}

#[test]
fn conflicts_never_weaken_under_join() {
    for (a, b, c) in triples() {
        if !a.compatible(c) {
            assert!(!a.join(b).compatible(c), "{a} v {b} beside {c}");
        }
        // And the join adds no conflict that neither of the two has.
        let either = !a.compatible(c) || !b.compatible(c);
        if !a.join(b).compatible(c) {
            assert!(either, "{a} v {b} beside {c}");
        }
    }
}

#[test]
fn what_parents_need_and_what_they_cover() {
    for mode in Mode::ALL {
        let need = if matches!(mode, Is | S) { Is } else { Ix };
        assert_eq!(mode.parent_needs(), need, "{mode}");
        // A chain of ancestors needs the same all the way up.
        assert_eq!(need.parent_needs(), need);
        for child in Mode::ALL {
            let covered = match mode {
                Is | Ix => false,
                S | U | Six => matches!(child, Is | S),
                X => true,
            };
            assert_eq!(mode.covers_below(child), covered, "{child} below {mode}");
        }
    }
    for (a, b, c) in triples() {
        // Needs grow with the mode; so does what is covered.
        assert_eq!(
            a.join(b).parent_needs(),
            a.parent_needs().join(b.parent_needs())
        );
        if a.covers_below(c) {
            assert!(a.join(b).covers_below(c), "{c} below {a} v {b}");
        }
        // A mode that covers a child also covers the intent that the child needs.
        if a.covers_below(c) {
            assert!(a.covers(c.parent_needs()), "{a} above {c}");
        }
        // What one owner's cover protects, no other owner can hold on the child.
        if a.covers_below(c) && a.compatible(b) {
            for other in Mode::ALL {
                if b.covers(other.parent_needs()) || b.covers_below(other) {
                    assert!(c.compatible(other), "{c} below {a}, {other} below {b}");
                }
            }
        }
    }
}

#[test]
fn sets_and_names() {
    for (a, b) in pairs() {
        assert_eq!(a.conflicts() & b.bit() != 0, !a.compatible(b));
        assert_eq!(a.bit() == b.bit(), a == b);
    }
    let names: Vec<String> = Mode::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["IS", "IX", "S", "U", "SIX", "X"]);
    assert_eq!(format!("{S:?} {:>4}", Is), "S   IS");
    assert_eq!(size_of::<Option<Mode>>(), 1);
}
