//! The imports between the files of a folder form no circle either.
//!
//! A name that the folder's root imports from a part (`use part::Name;`) belongs to that part, in
//! whatever way another part imports it, and so does an alias that the root makes of such a name.
//! Other definitions of the root belong to the root, which all its parts may use. The check does
//! not see methods, which may be defined in another part than their type.

use super::{Sources, is_test, owner, paths, read_src};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// Names of a root that belong to its parts, each with its part.
type Names = BTreeMap<String, String>;

/// Names that count as their root's own: docs/house.md says why.
pub(crate) const EXCEPTIONS: &[&str] = &["queue::GroupRef", "queue::Groups"];

/// Finds a name of a part in a type.
struct Find<'n>(&'n Names, Option<String>);

impl<'a> Visit<'a> for Find<'_> {
    fn visit_path_segment(&mut self, segment: &'a syn::PathSegment) {
        let part = self.0.get(&segment.ident.to_string());
        self.1 = self.1.take().or(part.cloned());
        visit::visit_path_segment(self, segment);
    }
}

/// The names of a folder's root that belong to its parts.
fn names_of_parts(folder: &str, sources: &Sources) -> Names {
    let mut names = Names::new();
    let Some(source) = sources.get(&format!("{folder}.rs")) else {
        return names;
    };
    let root = syn::parse_file(source).expect("the file is Rust");
    for item in &root.items {
        if let Item::Use(item) = item {
            take(&item.tree, None, folder, sources, &mut names);
        }
    }
    for item in &root.items {
        if let Item::Type(alias) = item {
            let mut find = Find(&names, None);
            find.visit_type(&alias.ty);
            if let Some(part) = find.1 {
                names.insert(alias.ident.to_string(), part);
            }
        }
    }
    names
}

/// Records the names of an import; `part` is the part of the folder that they are imported from.
fn take(tree: &UseTree, part: Option<&str>, folder: &str, sources: &Sources, names: &mut Names) {
    match (tree, part) {
        (UseTree::Path(path), None) => {
            let segment = path.ident.to_string();
            let file = format!("{folder}/{segment}.rs");
            let part = sources.contains_key(&file).then_some(file);
            let leads_here = ["self", "super", "crate", folder].contains(&segment.as_str());
            if part.is_some() || leads_here {
                take(&path.tree, part.as_deref(), folder, sources, names);
            }
        }
        (UseTree::Path(path), part) => take(&path.tree, part, folder, sources, names),
        (UseTree::Group(group), part) => {
            let trees = group.items.iter();
            trees.for_each(|tree| take(tree, part, folder, sources, names));
        }
        (UseTree::Name(name), Some(part)) => {
            names.insert(name.ident.to_string(), part.into());
        }
        (UseTree::Rename(name), Some(part)) => {
            names.insert(name.rename.to_string(), part.into());
        }
        (UseTree::Glob(_), Some(part)) => {
            let defined = syn::parse_file(&sources[part]).expect("the file is Rust");
            let defined = defined.items.iter().filter_map(name_of);
            names.extend(defined.map(|name| (name, part.into())));
        }
        _ => {}
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The files of the same folder that a part imports from.
fn parts(file: &str, source: &str, names: &Names, sources: &Sources) -> BTreeSet<String> {
    let folder = owner(file);
    let mut found = BTreeSet::new();
    for named in paths(source, 2) {
        let rest = match named.segments.as_slice() {
            [first, rest @ ..] if first == "super" => rest,
            [first, second, rest @ ..] if first == "crate" && second == folder => rest,
            _ => continue,
        };
        let Some(name) = rest.first() else { continue };
        let part = format!("{folder}/{name}.rs");
        match sources.contains_key(&part) {
            true => _ = found.insert(part),
            false if name == "*" => found.extend(names.values().cloned()),
            false => found.extend(names.get(name).cloned()),
        }
    }
    found.remove(file);
    found
}

fn is_part(file: &str) -> bool {
    file.split('/').count() == 2 && !is_test(file)
}

/// The parts that import from one another in a circle, or lead into one.
/// Names in `exceptions`, as `folder::Name`, count as their root's own.
pub(crate) fn check(sources: &Sources, exceptions: &[&str]) -> Vec<String> {
    let mut names: BTreeMap<&str, Names> = BTreeMap::new();
    let mut left: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, source) in sources.iter().filter(|(file, _)| is_part(file)) {
        let names = names.entry(owner(file)).or_insert_with(|| {
            let mut names = names_of_parts(owner(file), sources);
            let own =
                |name: &String| exceptions.contains(&format!("{}::{name}", owner(file)).as_str());
            names.retain(|name, _| !own(name));
            names
        });
        left.insert(file, parts(file, source, names, sources));
    }
    // A part that imports from no remaining part is in no circle.
    while let Some(free) = left.iter().find_map(|(&file, parts)| {
        let free = parts.iter().all(|part| !left.contains_key(part.as_str()));
        free.then_some(file)
    }) {
        left.remove(free);
    }
    let still: BTreeSet<String> = left.keys().map(|file| file.to_string()).collect();
    let circles = left.into_iter();
    circles
        .map(|(file, parts)| {
            let parts: Vec<_> = parts.intersection(&still).cloned().collect();
            format!("{file}: in a circle with {}", parts.join(", "))
        })
        .collect()
}

fn sources(list: &[(&str, &str)]) -> Sources {
    let all = list.iter();
    all.map(|(file, source)| (file.to_string(), source.to_string()))
        .collect()
}

#[test]
fn a_circle_is_found() {
    let one_way = sources(&[
        (
            "queue/turn.rs",
            "use super::special; use super::live::Live;",
        ),
        ("queue/special.rs", "fn f() { crate::queue::live::g() }"),
        ("queue/live.rs", "use super::GroupRef;"),
        ("queue/tests.rs", "use super::turn;"),
    ]);
    assert_eq!(check(&one_way, &[]), Vec::<String>::new());
    let circle = sources(&[
        ("queue/turn.rs", "use super::special;"),
        ("queue/special.rs", "use super::{live, turn::Turn};"),
        ("queue/live.rs", ""),
    ]);
    assert_eq!(check(&circle, &[]).len(), 2);
}

#[test]
fn a_circle_is_found_behind_the_names_of_the_root() {
    let live = |root: &str, import: &str| {
        let turn = "use super::live::Live; pub struct Turn;";
        let all = sources(&[
            ("queue.rs", root),
            ("queue/turn.rs", turn),
            ("queue/live.rs", import),
        ]);
        check(&all, &[]).len()
    };
    // The root's own names, and those of other files, are in no circle.
    let own = "use turn::Turn; use crate::other::Other; struct Queue;";
    assert_eq!(live(own, "use super::{Queue, Other};"), 0);
    for root in [
        "pub use turn::Turn;",
        "pub(crate) use self::turn::{Other, Turn};",
        "use crate::{limit::Limit, queue::turn::Turn};",
        "use turn::Other as Turn;",
        "use turn::*;",
        "pub use turn::inner::Turn;",
    ] {
        assert_eq!(live(root, "use super::{Limit, Turn};"), 2, "{root}");
        assert_eq!(live(root, "fn f() { super::Turn::new() }"), 2, "{root}");
        assert_eq!(live(root, "use crate::queue::Turn as It;"), 2, "{root}");
        assert_eq!(live(root, "use super::*;"), 2, "{root}");
    }
}

#[test]
fn an_alias_is_of_the_part_that_it_names() {
    let all = sources(&[
        (
            "queue.rs",
            "use shared::Shared; type Ref<T> = Arc<Shared<T>>;",
        ),
        ("queue/shared.rs", "use super::state::State;"),
        ("queue/state.rs", "use super::Ref;"),
    ]);
    assert_eq!(check(&all, &[]).len(), 2);
    assert_eq!(check(&all, &["queue::Ref"]).len(), 0);
}

#[test]
fn exceptions_are_needed_and_explained() {
    let (all, page) = (read_src(), super::readme::text("docs/house.md"));
    for (n, name) in EXCEPTIONS.iter().enumerate() {
        let others = [&EXCEPTIONS[..n], &EXCEPTIONS[n + 1..]].concat();
        let mut folder = all.clone();
        folder.retain(|file, _| name.starts_with(&format!("{}::", owner(file))));
        assert!(!check(&folder, &others).is_empty(), "{name}: for nothing");
        assert!(page.contains(&format!("`{name}`")), "{name}: unexplained");
    }
}
