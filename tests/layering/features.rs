//! The examples in the docs of a file need no feature but its own.

use std::collections::BTreeMap;

use super::{Sources, owner, read_src};

/// The features of the modules that `lib.rs` has only with a feature.
fn features(root: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    let lines: Vec<&str> = root.lines().collect();
    for pair in lines.windows(2) {
        let feature = pair[0].split("feature = \"").nth(1);
        let module = pair[1].trim_start_matches("pub ").strip_prefix("mod ");
        if let Some((feature, module)) = feature.zip(module) {
            let feature = feature.split('"').next().expect("its name");
            found.insert(module.trim_end_matches(';'), feature);
        }
    }
    found
}

/// The module of this crate that a line of an example imports from.
fn imported(line: &str) -> Option<&str> {
    let doc = line.trim_start().strip_prefix("//")?;
    let code = doc.trim_start_matches(['/', '!', ' ', '#']);
    let path = code.strip_prefix("use conversant::")?;
    path.split([':', ';']).next()
}

fn check(sources: &Sources) -> Vec<String> {
    let features = features(&sources["lib.rs"]);
    let mut broken = Vec::new();
    for (file, source) in sources {
        let own = features.get(owner(file));
        for module in source.lines().filter_map(imported) {
            let needed = features.get(module);
            if needed.is_some_and(|_| needed != own) {
                broken.push(format!("{file}: an example needs {module}"));
            }
        }
    }
    broken
}

#[test]
fn examples_need_no_other_feature() {
    let sources = read_src();
    assert_eq!(features(&sources["lib.rs"]).get("gate"), Some(&"locks"));
    let broken = check(&sources);
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
