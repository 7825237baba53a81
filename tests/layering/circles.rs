//! Inside a folder, too, imports lead one way.

use super::{Sources, is_test, owner, paths};
use std::collections::{BTreeMap, BTreeSet};

/// The files of the same folder that a part imports from.
fn parts(file: &str, source: &str, sources: &Sources) -> BTreeSet<String> {
    let folder = owner(file);
    let named = paths(source, 2).into_iter();
    named
        .filter_map(|named| {
            let rest = match named.segments.as_slice() {
                [first, rest @ ..] if first == "super" => rest,
                [first, second, rest @ ..] if first == "crate" && second == folder => rest,
                _ => return None,
            };
            let part = format!("{folder}/{}.rs", rest.first()?);
            (part != file && sources.contains_key(&part)).then_some(part)
        })
        .collect()
}

fn is_part(file: &str) -> bool {
    file.split('/').count() == 2 && !is_test(file)
}

/// The parts that import from one another in a circle, or lead into one.
pub(crate) fn check(sources: &Sources) -> Vec<String> {
    let files = sources.iter().filter(|(file, _)| is_part(file));
    let mut left: BTreeMap<&str, BTreeSet<String>> = files
        .map(|(file, source)| (file.as_str(), parts(file, source, sources)))
        .collect();
    // What imports from nothing that is left is in no circle.
    while let Some(free) = left.iter().find_map(|(&file, parts)| {
        let free = parts.iter().all(|part| !left.contains_key(part.as_str()));
        free.then_some(file)
    }) {
        left.remove(free);
    }
    let circles = left.into_iter();
    circles
        .map(|(file, parts)| {
            let parts: Vec<_> = parts.into_iter().collect();
            format!("{file}: in a circle with {}", parts.join(", "))
        })
        .collect()
}

#[test]
fn a_circle_is_found() {
    let sources = |list: &[(&str, &str)]| -> Sources {
        let all = list.iter();
        all.map(|(file, source)| (file.to_string(), source.to_string()))
            .collect()
    };
    let one_way = sources(&[
        (
            "queue/turn.rs",
            "use super::special; use super::live::Live;",
        ),
        ("queue/special.rs", "fn f() { crate::queue::live::g() }"),
        ("queue/live.rs", "use super::GroupRef;"),
        ("queue/tests.rs", "use super::turn;"),
    ]);
    assert_eq!(check(&one_way), Vec::<String>::new());
    let circle = sources(&[
        ("queue/turn.rs", "use super::special;"),
        ("queue/special.rs", "use super::{live, turn::Turn};"),
        ("queue/live.rs", ""),
    ]);
    assert_eq!(check(&circle).len(), 2);
}
