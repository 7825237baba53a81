//! The house rules, enforced: a file imports only from lower floors or from files above it in its
//! own list, and the parts of a folder form no circle; only `sync.rs` names the primitives that a
//! model replaces; files and functions stay short; the table in `docs/house.md` names every file;
//! and `tests/README.md` names only tests that exist.
//!
//! Paths are read from tokens, so comments, strings and docs never count and the arguments of
//! macros do. The checks do not see names that a macro glues together, and functions that a
//! `macro_rules!` makes.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::Path;

/// From the lowest floor up; within a floor, each file may use those before it.
const FLOORS: &[&[&str]] = &[
    &["sync", "shown", "error", "limit", "slab"],
    &[
        "modes", "ready", "by_key", "ring", "tiers", "timers", "retry", "workers", "lanes",
        "backlog", "jobs",
    ],
    &["wait", "due", "trace", "turnstile"],
    &["semaphore", "gate", "intent", "group"],
    &["queue", "keyed", "job_queue", "lock_table"],
    &["dialog", "scheduler", "simulator", "ticker", "prelude"],
];

/// The sources by path below `src`, with `/`.
type Sources = BTreeMap<String, String>;

/// A path in the source: its segments, and the line of the first one.
#[derive(Debug, PartialEq)]
struct Named {
    line: usize,
    segments: Vec<String>,
}

/// The file of the table to which this file belongs: `queue/turn.rs` belongs to `queue`.
fn owner(file: &str) -> &str {
    file.split('/')
        .next()
        .unwrap_or(file)
        .trim_end_matches(".rs")
}

fn is_test(file: &str) -> bool {
    file.split('/')
        .skip(1)
        .any(|part| matches!(part.trim_end_matches(".rs"), "tests" | "model"))
}

/// How many modules enclose the items of this file.
fn depth(file: &str) -> usize {
    if file == "lib.rs" {
        0
    } else {
        file.split('/').count()
    }
}

fn position(owner: &str) -> Option<(usize, usize)> {
    let at = |floor: &&[&str]| floor.iter().position(|&name| name == owner);
    FLOORS
        .iter()
        .enumerate()
        .find_map(|(floor, names)| Some((floor, at(names)?)))
}

/// All paths outside of attributes and of items under `cfg(test)`, for a file that is `depth`
/// modules deep: where `super` leads to the root, `crate` replaces it.
fn paths(source: &str, depth: usize) -> Vec<Named> {
    let tokens: TokenStream = source.parse().expect("the file is Rust");
    let mut found = Vec::new();
    scan(tokens, depth, &mut found);
    found
}

fn scan(tokens: TokenStream, depth: usize, found: &mut Vec<Named>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(p) if p.as_char() == '#' => {
                let inner = usize::from(is_punct(tokens.get(at + 1), '!'));
                let attribute = tokens.get(at + 1 + inner);
                let skip = inner == 0 && attribute.is_some_and(is_cfg_test);
                at += if matches!(attribute, Some(TokenTree::Group(_))) {
                    2 + inner
                } else {
                    1
                };
                if skip {
                    at = end_of_item(&tokens, at);
                }
            }
            TokenTree::Ident(name) if name == "cfg" && is_punct(tokens.get(at + 1), '!') => at += 3,
            TokenTree::Ident(name) if name == "mod" => {
                if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
                    scan(body.stream(), depth + 1, found);
                    at += 3;
                } else {
                    at += 2;
                }
            }
            TokenTree::Ident(_) => {
                // `use a;` and `extern crate a;` name a crate with one segment, and
                // `thread_local!` is the standard library's wherever it stands.
                let declares = at > 0
                    && matches!(&tokens[at - 1], TokenTree::Ident(word)
                    if word == "use" || word == "crate")
                    || matches!(&tokens[at], TokenTree::Ident(word) if word == "thread_local");
                at = path(&tokens, at, &[], declares, depth, found);
            }
            TokenTree::Group(group) => {
                scan(group.stream(), depth, found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Reads the path that starts here, with all that its final braces hold; returns its end.
fn path(
    tokens: &[TokenTree],
    mut at: usize,
    prefix: &[String],
    keep: bool,
    depth: usize,
    found: &mut Vec<Named>,
) -> usize {
    let line = tokens[at].span().start().line;
    let mut segments = prefix.to_vec();
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) => segments.push(name.to_string()),
            Some(TokenTree::Punct(p)) if p.as_char() == '*' => segments.push("*".into()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in tokens.split(|token| is_punct(Some(token), ',')) {
                    if !tree.is_empty() {
                        path(tree, 0, &segments, true, depth, found);
                    }
                }
                return at + 1;
            }
            // Generic arguments: the path is over; they are read as paths of their own.
            _ => break,
        }
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        at += 2;
    }
    if keep || segments.len() > 1 {
        found.push(Named {
            line,
            segments: resolve(segments, depth),
        });
    }
    at
}

/// `super::x` from a module directly below the root is `crate::x`.
fn resolve(segments: Vec<String>, depth: usize) -> Vec<String> {
    let ups = segments
        .iter()
        .take_while(|s| *s == "super" || *s == "self")
        .count();
    let supers = segments[..ups].iter().filter(|s| *s == "super").count();
    let to_root = supers == depth && (supers > 0 || ups > 0);
    if !to_root {
        return segments;
    }
    std::iter::once("crate".to_string())
        .chain(segments.into_iter().skip(ups))
        .collect()
}

fn is_punct(token: Option<&TokenTree>, char: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == char)
}

/// `[cfg(..)]` with `test`, but not with `not(test)`.
fn is_cfg_test(attribute: &TokenTree) -> bool {
    fn asks(tokens: TokenStream) -> bool {
        let mut negated = false;
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(name) => {
                negated = name == "not";
                name == "test"
            }
            TokenTree::Group(group) => !std::mem::take(&mut negated) && asks(group.stream()),
            _ => false,
        })
    }
    let TokenTree::Group(group) = attribute else {
        return false;
    };
    let mut tokens = group.stream().into_iter();
    matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "cfg") && asks(tokens.collect())
}

/// The index after the item, field or statement that starts here.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let (mut angles, mut arrow) = (0, false);
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return at + 1,
            TokenTree::Punct(p) => {
                match p.as_char() {
                    ';' => return at + 1,
                    ',' if angles == 0 => return at + 1,
                    '<' => angles += 1,
                    '>' if !arrow => angles -= 1,
                    _ => {}
                }
                arrow = matches!(p.as_char(), '-' | '=');
            }
            _ => arrow = false,
        }
    }
    tokens.len()
}

fn check_table(sources: &Sources) -> Vec<String> {
    let known = |file: &&String| {
        let parts = file.split('/').count();
        *file == "lib.rs" || position(owner(file)).is_some() && (parts <= 2 || is_test(file))
    };
    sources
        .keys()
        .filter(|file| !known(file))
        .map(|file| format!("{file}: not in the table"))
        .collect()
}

fn check_imports(file: &str, source: &str, sources: &Sources) -> Vec<String> {
    let Some(here) = position(owner(file)).filter(|_| !is_test(file)) else {
        return Vec::new();
    };
    let mut broken = Vec::new();
    for Named { line, segments } in paths(source, depth(file)) {
        if segments[0] != "crate" {
            continue;
        }
        let target = segments.get(1).map_or("*", String::as_str);
        let why = match position(target) {
            _ if target == owner(file) => continue,
            None => "which is no file of the table",
            Some(there) if there >= here => "which is not below it",
            Some(_) => {
                let part = segments.get(2).map(|part| format!("{target}/{part}.rs"));
                if !part.is_some_and(|part| sources.contains_key(&part)) {
                    continue;
                }
                "past the file that it is a part of"
            }
        };
        broken.push(format!(
            "{file}:{line}: imports {}, {why}",
            segments.join("::")
        ));
    }
    broken
}

fn check_primitives(file: &str, source: &str) -> Vec<String> {
    if file == "sync.rs" || is_test(file) {
        return Vec::new();
    }
    let forbidden = |named: &Named| {
        let second = named.segments.get(1).map_or("", String::as_str);
        match named.segments[0].as_str() {
            "std" | "core" | "alloc" => matches!(second, "sync" | "thread" | "*" | "self" | ""),
            "parking_lot" | "loom" | "shuttle" | "thread_local" => true,
            "crossbeam_channel" => owner(file) != "scheduler",
            "tracing" => !matches!(file, "trace.rs" | "scheduler/trace.rs"),
            _ => false,
        }
    };
    let broken = paths(source, depth(file)).into_iter().filter(forbidden);
    broken
        .map(|n| format!("{file}:{}: names {}", n.line, n.segments.join("::")))
        .collect()
}

/// The table names every file that is not a part of another.
fn check_docs(page: &str, sources: &Sources) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let rows: Vec<&str> = rows.filter(|line| line.contains(".rs`")).collect();
    let named = |file: &&String| rows.iter().any(|row| row.contains(&format!("`{file}`")));
    let whole = sources.keys().filter(|file| !file.contains('/'));
    whole
        .filter(|file| !named(file))
        .map(|file| format!("docs/house.md lacks {file}"))
        .collect()
}

fn check_all(sources: &Sources) -> Vec<String> {
    let mut broken = check_table(sources);
    broken.extend(circles::check(sources, circles::EXCEPTIONS));
    for (file, source) in sources {
        broken.extend(check_imports(file, source, sources));
        broken.extend(check_primitives(file, source));
        broken.extend(lengths::check(file, source));
    }
    broken
}

fn read(folder: &Path, prefix: &str, sources: &mut Sources) {
    for entry in std::fs::read_dir(folder).expect("src can be read") {
        let entry = entry.expect("src can be read");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{name}/"), sources);
        } else if name.ends_with(".rs") {
            sources.insert(
                name,
                std::fs::read_to_string(entry.path()).expect("a source is UTF-8"),
            );
        }
    }
}

/// The sources below a folder of the repository.
fn read_all(folder: &str) -> Sources {
    let mut sources = Sources::new();
    read(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
        "",
        &mut sources,
    );
    assert!(sources.len() > 3, "{folder} was found");
    sources
}

fn read_src() -> Sources {
    let sources = read_all("src");
    assert!(sources.contains_key("lib.rs"), "src was found");
    sources
}

#[test]
fn the_house_is_in_order() {
    let sources = read_src();
    let mut broken = check_all(&sources);
    broken.extend(check_docs(&readme::text("docs/house.md"), &sources));
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

mod circles;
mod features;
mod lengths;
mod proofs;
mod readme;
