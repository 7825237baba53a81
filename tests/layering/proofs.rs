//! Each check finds what it must find, and passes what only resembles it.

use super::*;

fn sources(files: &[(&str, &str)]) -> Sources {
    files
        .iter()
        .map(|&(file, source)| (file.to_string(), source.to_string()))
        .collect()
}

/// The imports of this file that the rule forbids, as `line: path`.
fn imports(file: &str, source: &str) -> Vec<String> {
    let others = sources(&[("wait/list.rs", ""), ("queue/turn.rs", ""), ("slab.rs", "")]);
    let message = |broken: String| {
        let (place, rest) = broken.split_once(": imports ").unwrap();
        let line = place.rsplit(':').next().unwrap();
        format!("{line}: {}", rest.split(',').next().unwrap())
    };
    check_imports(file, source, &others)
        .into_iter()
        .map(message)
        .collect()
}

#[test]
fn imports_from_above_are_found_in_every_form() {
    assert_eq!(
        imports("slab.rs", "\nuse crate::ring::Ring;"),
        ["2: crate::ring::Ring"]
    );
    assert_eq!(
        imports("error.rs", "use crate::slab::Key;"),
        ["1: crate::slab::Key"]
    );
    let nested = "use crate::{error::Closed,\n queue::{self, Turn}, slab, gate as g};";
    assert_eq!(
        imports("tiers.rs", nested),
        [
            "2: crate::queue::self",
            "2: crate::queue::Turn",
            "2: crate::gate"
        ]
    );
    assert_eq!(
        imports("tiers.rs", "fn f(x: &crate::wait::Wait) {}"),
        ["1: crate::wait::Wait"]
    );
    assert_eq!(
        imports("tiers.rs", "type X = Vec<crate::wait::Wait<u8>>;"),
        ["1: crate::wait::Wait"]
    );
    assert_eq!(
        imports("ring.rs", "fn f() { assert!(crate::gate::open()); }"),
        ["1: crate::gate::open"]
    );
    assert_eq!(
        imports("ring.rs", "macro_rules! m { () => { $crate::gate::G } }"),
        ["1: crate::gate::G"]
    );
    assert_eq!(
        imports("ring.rs", "pub(crate) use crate::gate::G;"),
        ["1: crate::gate::G"]
    );
    assert_eq!(
        imports("wait/list.rs", "use crate::gate::G;"),
        ["1: crate::gate::G"]
    );
    assert_eq!(
        imports("ring.rs", "impl X { fn f() { crate :: gate :: g() } }"),
        ["1: crate::gate::g"]
    );
}

#[test]
fn super_does_not_lead_around_the_rule() {
    assert_eq!(
        imports("slab.rs", "use super::gate::G;"),
        ["1: crate::gate::G"]
    );
    assert_eq!(
        imports("slab.rs", "use super::{gate::G, error::E};"),
        ["1: crate::gate::G"]
    );
    assert_eq!(
        imports("slab/a.rs", "use super::super::gate;"),
        ["1: crate::gate"]
    );
    assert_eq!(
        imports("slab.rs", "mod inner { use super::super::gate; }"),
        ["1: crate::gate"]
    );
    assert!(imports("slab/a.rs", "use super::gate::G;").is_empty());
    assert!(imports("slab.rs", "mod inner { use super::gate; }").is_empty());
}

#[test]
fn the_root_itself_is_no_source_of_imports() {
    assert_eq!(
        imports("ring.rs", "use crate::Semaphore;"),
        ["1: crate::Semaphore"]
    );
    assert_eq!(imports("ring.rs", "use crate::*;"), ["1: crate::*"]);
    assert_eq!(imports("ring.rs", "use crate as c;"), ["1: crate"]);
    assert_eq!(imports("ring.rs", "use super::*;"), ["1: crate::*"]);
}

#[test]
fn a_part_is_used_through_its_file_only() {
    assert_eq!(
        imports("gate.rs", "use crate::wait::list::L;"),
        ["1: crate::wait::list::L"]
    );
    assert!(imports("gate.rs", "use crate::wait::Wait;").is_empty());
    assert!(imports("wait.rs", "use crate::wait::list::L;").is_empty());
    assert!(imports("wait/batch.rs", "use crate::wait::list::L; use super::X;").is_empty());
}

#[test]
fn imports_from_below_and_what_only_looks_like_an_import_pass() {
    assert!(
        imports(
            "dispatch.rs",
            "use crate::{ring::Ring, tiers::{Change, Tiers}, slab::*};"
        )
        .is_empty()
    );
    assert!(
        imports(
            "scheduler/pool.rs",
            "use crate::sync::Arc; use crate::queue::Queue;"
        )
        .is_empty()
    );
    assert!(
        imports(
            "slab.rs",
            "//! crate::gate\n/// [`crate::gate`]\nfn f() {} // crate::gate"
        )
        .is_empty()
    );
    assert!(
        imports(
            "slab.rs",
            "const S: &str = \"crate::gate::G\"; /* use crate::gate; */"
        )
        .is_empty()
    );
    assert!(
        imports(
            "slab.rs",
            "pub(crate) struct S(pub(crate) u8); pub(super) fn f() {}"
        )
        .is_empty()
    );
    assert!(imports("slab.rs", "use std::fmt; fn f() { gate::g() }").is_empty());
}

#[test]
fn tests_may_import_what_they_like_and_nothing_else_may() {
    for file in ["slab/tests.rs", "slab/model.rs", "slab/tests/deep.rs"] {
        assert!(imports(file, "use crate::gate::G;").is_empty());
    }
    assert!(imports("slab.rs", "#[cfg(test)] mod tests { use crate::gate::G; }").is_empty());
    assert!(
        imports(
            "slab.rs",
            "#[cfg(all(test, loom))] use crate::gate::{A, B};"
        )
        .is_empty()
    );
    let after =
        "#[cfg(test)] impl X<A, B> for C { fn f() { crate::gate::g() } }\nuse crate::gate::H;";
    assert_eq!(imports("slab.rs", after), ["2: crate::gate::H"]);
    let field = "struct S { #[cfg(test)] a: M<A, crate::gate::B>, b: crate::gate::C }";
    assert_eq!(imports("slab.rs", field), ["1: crate::gate::C"]);
    assert_eq!(
        imports("slab.rs", "#[cfg(not(test))] use crate::gate::G;"),
        ["1: crate::gate::G"]
    );
    assert_eq!(
        imports("slab.rs", "#[cfg(loom)] use crate::gate::G;"),
        ["1: crate::gate::G"]
    );
}

#[test]
fn every_file_belongs_to_the_table() {
    let files = ["lib.rs", "slab.rs", "queue/turn.rs", "queue/tests/order.rs"];
    assert!(check_table(&sources(&files.map(|file| (file, "")))).is_empty());
    let strangers = ["manager.rs", "queue/a/b.rs", "util/x.rs"];
    let broken = check_table(&sources(&strangers.map(|file| (file, ""))));
    assert_eq!(
        broken,
        strangers.map(|file| format!("{file}: not in the table"))
    );
}

#[test]
fn no_file_stands_twice_in_the_table() {
    let mut all: Vec<&str> = FLOORS
        .iter()
        .flat_map(|floor| floor.iter().copied())
        .collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn primitives_are_named_by_sync_alone() {
    let named = |file: &str, source: &str| !check_primitives(file, source).is_empty();
    for source in [
        "use std::sync::Arc;",
        "use std::{fmt, sync::atomic::{AtomicU8, Ordering}};",
        "use core::sync::atomic::AtomicU8;",
        "extern crate alloc; use alloc::sync::Arc;",
        "fn f() { std::thread::yield_now() }",
        "fn f() { ::std::thread::yield_now() }",
        "static A: Vec<std::sync::Mutex<u8>> = Vec::new();",
        "use parking_lot::RawMutex;",
        "use parking_lot as p;",
        "#[cfg(loom)] use loom::cell::UnsafeCell;",
        "fn f() { println!(\"{:?}\", std::thread::current()) }",
        "use std as s;",
        "use std::*;",
        "use crossbeam_channel::Sender;",
        "thread_local! { static A: u8 = 0; }",
    ] {
        assert!(named("wait/list.rs", source), "{source}");
        assert!(!named("sync.rs", source), "{source}");
        assert!(!named("wait/tests.rs", source), "{source}");
    }
    for source in [
        "use crate::sync::Arc;",
        "use std::{fmt, mem};",
        "#[cfg(not(loom))] fn f() { if cfg!(loom) {} }",
        "//! std::sync::Arc\nfn f(loom: u8) { let thread = loom; }",
        "#[cfg(test)] mod tests { use std::thread; }",
        "const S: &str = \"std::sync\";",
    ] {
        assert!(!named("wait/list.rs", source), "{source}");
    }
    assert!(!named("scheduler/log.rs", "use crossbeam_channel::Sender;"));
    assert!(named("scheduler/log.rs", "use std::sync::Arc;"));
}

#[test]
fn long_files_and_functions_are_found() {
    let lines = |count: usize| "    g();\n".repeat(count);
    let body = |count| format!("{{\n{}}}", lines(count));
    assert!(lengths::check("slab.rs", &format!("fn f() {}", body(68))).is_empty());
    for source in [
        format!("fn f() {}", body(69)),
        format!("impl X {{ fn f(&self) {} }}", body(69)),
        format!("trait X {{ fn g(); fn f() {} }}", body(69)),
        format!("fn g() {{ fn f() {} }}", body(69)),
        format!("mod a {{ fn f() {} }}", body(69)),
    ] {
        let broken = lengths::check("slab.rs", &source);
        assert!(
            broken.contains(&"slab.rs: fn f has 71 lines".to_string()),
            "{source}: {broken:?}"
        );
    }
    assert!(lengths::check("slab.rs", &"// x\n".repeat(400)).is_empty());
    assert_eq!(
        lengths::check("slab.rs", &"// x\n".repeat(401)),
        ["slab.rs: 401 lines"]
    );
}

#[test]
fn the_table_in_the_docs_names_every_file() {
    let page = "| floor | file |\n| 0 | `lib.rs`, `slab.rs` |\n| 2 | `wait.rs`, `wait/` |";
    let files = [
        ("lib.rs", ""),
        ("slab.rs", ""),
        ("wait.rs", ""),
        ("wait/list.rs", ""),
    ];
    assert!(check_docs(page, &sources(&files)).is_empty());
    let more = [files.as_slice(), &[("ring.rs", "")]].concat();
    assert_eq!(
        check_docs(page, &sources(&more)),
        ["docs/house.md lacks ring.rs"]
    );
    let prose = check_docs("Docs without a table: `slab.rs`.", &sources(&files[1..2]));
    assert_eq!(prose, ["docs/house.md lacks slab.rs"]);
}

#[test]
fn all_checks_run_on_all_files() {
    let long = format!("fn f() {{\n{}}}", "    g();\n".repeat(400));
    let broken = check_all(&sources(&[
        ("lib.rs", ""),
        ("slab.rs", "use crate::ring::Ring;\nuse std::sync::Arc;"),
        ("ring.rs", &long),
        ("other.rs", ""),
    ]));
    assert_eq!(
        broken,
        [
            "other.rs: not in the table",
            "ring.rs: fn f has 402 lines",
            "ring.rs: 402 lines",
            "slab.rs:1: imports crate::ring::Ring, which is not below it",
            "slab.rs:2: names std::sync::Arc",
        ]
    );
}
