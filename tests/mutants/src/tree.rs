//! A copy of the tree, in which the variants are built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result, ensure};

use crate::patch::Patch;

/// The text of files by their paths in the tree.
pub type Files = BTreeMap<String, String>;

/// The copy. It stays from run to run, so that only changed files are built again.
pub struct Tree {
    root: PathBuf,
    pub path: PathBuf,
    /// The files of the tree.
    files: BTreeSet<PathBuf>,
}

impl Tree {
    /// The files that git would commit, and the lock file.
    pub fn of(root: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()?;
        ensure!(listed.status.success(), "git cannot list the tree");
        let listed = String::from_utf8(listed.stdout)?;
        let mut files: BTreeSet<PathBuf> =
            listed.split_terminator('\0').map(PathBuf::from).collect();
        files.insert(PathBuf::from("Cargo.lock"));
        files.retain(|file| root.join(file).is_file());
        let path = root.join("target/mutants/tree");
        fs::create_dir_all(&path)?;
        remove_others(&path, &path, &files)?;
        let root = root.to_owned();
        Ok(Self { root, path, files })
    }

    /// The target directory of the tree itself: dependencies are built once.
    pub fn target(&self) -> PathBuf {
        let said = std::env::var_os("CARGO_TARGET_DIR");
        said.map_or_else(|| self.root.join("target"), PathBuf::from)
    }

    /// A file as it is in the root.
    pub fn read(&self, file: &str) -> Result<String> {
        let text = fs::read_to_string(self.root.join(file));
        text.with_context(|| file.to_owned())
    }

    /// The files that a patch changes, after the change.
    pub fn patched(&self, patch: &Patch) -> Result<Files> {
        let mut files = Files::new();
        for hunk in &patch.hunks {
            let text = match files.get(&hunk.file) {
                Some(text) => text.clone(),
                None => self.read(&hunk.file)?,
            };
            files.insert(hunk.file.clone(), hunk.apply(&text)?);
        }
        Ok(files)
    }

    /// Writes these files as given, and all others as in the root.
    pub fn write(&self, files: &Files) -> Result<()> {
        for file in &self.files {
            let mut text = match file.to_str().and_then(|file| files.get(file)) {
                Some(text) => text.clone().into_bytes(),
                None => fs::read(self.root.join(file))?,
            };
            if file.ends_with("Cargo.toml") {
                text = with_another_version(&String::from_utf8(text)?).into_bytes();
            }
            write_if_new(&self.path.join(file), &text)?;
        }
        Ok(())
    }
}

/// In one target directory, cargo tells a package from its copy only by the version.
fn with_another_version(manifest: &str) -> String {
    let version = |line: &str| match line.strip_prefix("version = ") {
        Some(version) => format!("version = {}-mutants\"\n", version.trim_end_matches('"')),
        None => format!("{line}\n"),
    };
    manifest.lines().map(version).collect()
}

/// Cargo rebuilds from files that are younger than their build.
fn write_if_new(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("in the tree"))?;
    fs::write(path, text)
}

fn remove_others(tree: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(tree, &path, files)?;
        } else if !files.contains(path.strip_prefix(tree)?) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_another_version() {
        let manifest = "[package]\nversion = \"1.2.3\"\n[dependencies]\na = { version = \"1\" }\n";
        let changed = with_another_version(manifest);
        assert_eq!(changed, manifest.replace("1.2.3", "1.2.3-mutants"));
    }
}
