//! Every test that `tests/README.md` and `docs/verification.md` name exists, and each guarantee
//! of `docs/guarantees.md` has its row there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};

use super::{Sources, read};

/// Functions, modules, folders, and files without their extensions.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn add(&mut self, sources: &Sources) {
        for (path, text) in sources {
            let parts = path.trim_end_matches(".rs").split('/');
            self.0.extend(parts.map(String::from));
            self.visit_file(&syn::parse_file(text).expect("Rust"));
        }
    }

    /// Whether a name like this exists: the last part of a path, perhaps with `*`s.
    fn has(&self, name: &str) -> bool {
        let last = name
            .trim_end_matches(':')
            .rsplit(['/', ':'])
            .next()
            .expect("never empty");
        let last = last.trim_end_matches(".rs");
        let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
        // It is not the name of a test.
        !last.chars().all(plain) || self.0.iter().any(|there| is_like(there, last))
    }
}

fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name
            .strip_prefix(start)
            .is_some_and(|end| (0..=end.len()).any(|at| is_like(&end[at..], rest))),
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.insert(signature.ident.to_string());
        visit::visit_signature(self, signature);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.0.insert(item.ident.to_string());
        visit::visit_item_mod(self, item);
    }

    /// Tests that a macro of this crate makes.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        for tree in call.tokens.clone() {
            if let proc_macro2::TokenTree::Ident(word) = tree {
                self.0.insert(word.to_string());
            }
        }
        visit::visit_macro(self, call);
    }
}

/// The code spans in the last column of a row.
fn named(row: &str) -> impl Iterator<Item = &str> {
    let row = row.trim_end().trim_end_matches('|');
    let (_, last) = row.rsplit_once('|').unwrap_or_default();
    last.split('`').skip(1).step_by(2)
}

pub(super) fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(path).expect("there")
}

/// The rows of the table below a heading, without the two header lines.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, below) = text.split_once(heading).expect("the heading is there");
    let lines = below.lines().skip_while(|line| !line.starts_with('|'));
    let table = lines.take_while(|line| line.starts_with('|'));
    table.skip(2).collect()
}

#[test]
fn every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = Names::default();
    for folder in ["src", "tests", "examples", "benches", "fuzz/fuzz_targets"] {
        let mut sources = Sources::new();
        read(&root.join(folder), &format!("{folder}/"), &mut sources);
        names.add(&sources);
    }
    let (ours, page) = (text("tests/README.md"), text("docs/verification.md"));
    let guarantees = rows(&page, "## Guarantee by guarantee");
    let all = ours.lines().filter(|line| line.starts_with('|'));
    let all = all.chain(guarantees).flat_map(named);
    let missing: Vec<_> = all.filter(|name| !names.has(name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_guarantee_has_its_tests() {
    let (said, page) = (text("docs/guarantees.md"), text("docs/verification.md"));
    let said = rows(&said, "# What is guaranteed");
    let shown = rows(&page, "## Guarantee by guarantee");
    let begins = |row: &str| row.split(" |").next().map(str::to_owned);
    let begins: Vec<String> = shown.into_iter().filter_map(begins).collect();
    assert!(said.len() > 10, "they were found");
    let is_shown = |row: &&str| begins.iter().any(|begin| row.starts_with(begin));
    let bare: Vec<_> = said.into_iter().filter(|row| !is_shown(row)).collect();
    assert!(bare.is_empty(), "{bare:#?}");
}

#[test]
fn a_name_that_is_not_there_is_found() {
    let mut names = Names::default();
    names.0.extend(["one_of_them", "other"].map(String::from));
    assert!(names.has("a::b::one_of_them") && names.has("one_*") && names.has("queue/other.rs"));
    assert!(names.has("*of*") && names.has("cargo test"));
    assert!(!names.has("one") && !names.has("b::an*") && !names.has("others"));
    let row = "| `not this` | `one_of_them`, and `a::other` |";
    assert_eq!(named(row).collect::<Vec<_>>(), ["one_of_them", "a::other"]);
}
