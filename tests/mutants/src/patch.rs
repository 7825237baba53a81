//! A patch: which test must fail, and what it changes where.
//!
//! Line numbers in it do not count. The lines that it removes, with the lines around them, must
//! occur in its file exactly once.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// One broken variant.
pub struct Patch {
    pub name: String,
    pub command: Command,
    /// The hunks, each of one file.
    pub hunks: Vec<Hunk>,
}

/// `cargo test -p PACKAGE TARGET.. FILTER..`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    pub package: String,
    pub target: Target,
    /// For the test program.
    pub filter: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Lib,
    Test(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Hunk {
    pub file: String,
    old: Vec<String>,
    new: Vec<String>,
}

impl Patch {
    pub fn load(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path)?;
        Self::parse(&name, &text).with_context(|| format!("{name}.patch"))
    }

    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let command = first.strip_prefix("# must fail: cargo test ");
        let command = Command::parse(command.context("no command in the first line")?)?;
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut file = None;
        for line in lines {
            if let Some(path) = line.strip_prefix("+++ b/") {
                file = Some(path.to_owned());
            } else if line.starts_with("@@") {
                let file = file.clone().context("a hunk of no file")?;
                let (old, new) = (Vec::new(), Vec::new());
                hunks.push(Hunk { file, old, new });
            } else if let Some(hunk) = hunks.last_mut()
                && !line.starts_with("--- ")
                && !line.starts_with('\\')
            {
                hunk.add(line);
            }
        }
        ensure!(!hunks.is_empty(), "it changes nothing");
        let name = name.to_owned();
        Ok(Self {
            name,
            command,
            hunks,
        })
    }
}

impl Command {
    fn parse(words: &str) -> Result<Self> {
        let mut words = words.split_whitespace();
        let (mut package, mut target, mut filter) = (None, None, Vec::new());
        while let Some(word) = words.next() {
            match word {
                "-p" => package = words.next(),
                "--lib" => target = Some(Target::Lib),
                "--test" => target = words.next().map(|name| Target::Test(name.to_owned())),
                "--" => {}
                _ => filter.push(word.to_owned()),
            }
        }
        let (Some(package), Some(target)) = (package, target) else {
            bail!("it says no package, or no target");
        };
        let package = package.to_owned();
        Ok(Self {
            package,
            target,
            filter,
        })
    }
}

impl Hunk {
    fn add(&mut self, line: &str) {
        match line.split_at_checked(1) {
            Some(("-", old)) => self.old.push(old.to_owned()),
            Some(("+", new)) => self.new.push(new.to_owned()),
            // An empty line of context may have lost its blank.
            other => {
                let around = other.map_or("", |(_, around)| around);
                self.old.push(around.to_owned());
                self.new.push(around.to_owned());
            }
        }
    }

    /// The text with this hunk applied.
    pub fn apply(&self, text: &str) -> Result<String> {
        let lines: Vec<&str> = text.lines().collect();
        let places: Vec<usize> = lines
            .windows(self.old.len())
            .enumerate()
            .filter(|(_, lines)| *lines == self.old)
            .map(|(at, _)| at)
            .collect();
        let &[at] = &*places else {
            bail!(
                "what it changes stands in {} {} times",
                self.file,
                places.len()
            );
        };
        let new = self.new.iter().map(String::as_str);
        let before = lines[..at].iter().copied();
        let after = lines[at + self.old.len()..].iter().copied();
        let changed: Vec<&str> = before.chain(new).chain(after).collect();
        Ok(changed.join("\n") + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# must fail: cargo test -p p --test t a::b -- --exact
--- a/f
+++ b/f
@@ -7,3 +7,2 @@
 one
-two
-three
+four
";

    #[test]
    fn a_patch_is_parsed_and_applied_where_it_fits() {
        let patch = Patch::parse("name", TEXT).unwrap();
        assert_eq!(patch.command.target, Target::Test("t".into()));
        assert_eq!(patch.command.filter, ["a::b", "--exact"]);
        let hunk = &patch.hunks[0];
        let applied = hunk.apply("zero\none\ntwo\nthree\nfive\n").unwrap();
        assert_eq!(applied, "zero\none\nfour\nfive\n");
    }

    #[test]
    fn a_hunk_that_fits_twice_or_nowhere_is_refused() {
        let hunk = &Patch::parse("name", TEXT).unwrap().hunks[0];
        let twice = "one\ntwo\nthree\none\ntwo\nthree\n";
        assert!(
            hunk.apply(twice)
                .unwrap_err()
                .to_string()
                .contains("2 times")
        );
        assert!(
            hunk.apply("one\ntwo\n")
                .unwrap_err()
                .to_string()
                .contains("0 times")
        );
        assert!(Patch::parse("name", "nothing\n").is_err());
    }
}
