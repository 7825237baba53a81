//! Builds test programs in the tree.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command as Process;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

use crate::patch::{Command, Target};
use crate::tree::Tree;

/// A test program.
#[derive(Clone)]
pub struct Program {
    pub path: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
}

/// The test programs that some commands run.
pub struct Tests(HashMap<(String, Target), Program>);

impl Tests {
    pub fn build<'a>(tree: &Tree, commands: impl Iterator<Item = &'a Command>) -> Result<Self> {
        let mut targets: HashMap<&str, BTreeSet<Vec<&str>>> = HashMap::new();
        for command in commands {
            let target = match &command.target {
                Target::Lib => vec!["--lib"],
                Target::Test(name) => vec!["--test", name],
            };
            targets.entry(&command.package).or_default().insert(target);
        }
        let mut programs = HashMap::new();
        for (package, targets) in targets {
            let mut cargo = Process::new(env!("CARGO"));
            cargo.args([
                "test",
                "--no-run",
                "--message-format=json-render-diagnostics",
            ]);
            cargo.args(["-p", package]).args(targets.iter().flatten());
            cargo.env("CARGO_TARGET_DIR", tree.target());
            let built = cargo.current_dir(&tree.path).output()?;
            if !built.status.success() {
                let said = String::from_utf8_lossy(&built.stderr).into_owned();
                bail!("{said}");
            }
            for message in Message::parse_stream(&*built.stdout) {
                let Message::CompilerArtifact(artifact) = message? else {
                    continue;
                };
                let Some(path) = artifact.executable else {
                    continue;
                };
                let target = match artifact.target.is_lib() {
                    true => Target::Lib,
                    false => Target::Test(artifact.target.name),
                };
                let folder = artifact.manifest_path.parent().context("a folder")?;
                let program = Program {
                    path: path.into(),
                    folder: folder.into(),
                };
                programs.insert((package.to_owned(), target), program);
            }
        }
        Ok(Self(programs))
    }

    pub fn get(&self, command: &Command) -> Result<&Program> {
        let key = (command.package.clone(), command.target.clone());
        let program = self.0.get(&key);
        program.with_context(|| format!("cargo built no {key:?}"))
    }
}
