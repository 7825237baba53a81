//! Builds test programs in the tree.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command as Process;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Message, MetadataCommand};

use crate::patch::{Command, Target};
use crate::tree::Tree;

/// The packages that are built again.
const PACKAGES: [&str; 3] = ["conversant", "conversant-models", "conversant-schedules"];

/// A test program.
#[derive(Clone)]
pub struct Program {
    pub path: PathBuf,
    /// The folder in which cargo would run it.
    pub folder: PathBuf,
}

impl Program {
    /// A copy that no later build overwrites.
    pub fn kept(&self, path: PathBuf) -> Result<Self> {
        std::fs::copy(&self.path, &path)?;
        let folder = self.folder.clone();
        Ok(Self { path, folder })
    }
}

/// The test programs of several commands.
pub struct Tests(HashMap<(String, Target), Program>);

impl Tests {
    /// Builds them by one call of cargo, as the crate's own tests are built: so the dependencies
    /// are already there.
    pub fn build<'a>(tree: &Tree, commands: impl Iterator<Item = &'a Command>) -> Result<Self> {
        let mut asked: BTreeSet<Vec<&str>> = BTreeSet::new();
        for command in commands {
            asked.insert(vec!["-p", &command.package]);
            asked.insert(match &command.target {
                Target::Lib => vec!["--lib"],
                Target::Test(name) => vec!["--test", name],
            });
        }
        let built = Process::new(env!("CARGO"))
            .args(["test", "--no-run"])
            .arg("--message-format=json-render-diagnostics")
            // It takes a fifth of the time, and these backtraces are not read.
            .args(PACKAGES.map(|name| format!("--config=profile.dev.package.{name}.debug=false")))
            .args(asked.iter().flatten())
            .env("CARGO_TARGET_DIR", tree.target())
            .current_dir(&tree.path)
            .output()?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).into_owned();
            bail!("{said}");
        }
        let mut workspace = MetadataCommand::new();
        let workspace = workspace.current_dir(&tree.path).no_deps().exec()?;
        let mut programs = HashMap::new();
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
            let package = workspace[&artifact.package_id].name.to_string();
            let folder = artifact.manifest_path.parent().context("a folder")?;
            let program = Program {
                path: path.into(),
                folder: folder.into(),
            };
            programs.insert((package, target), program);
        }
        Ok(Self(programs))
    }

    pub fn get(&self, command: &Command) -> Result<&Program> {
        let key = (command.package.clone(), command.target.clone());
        let program = self.0.get(&key);
        program.with_context(|| format!("cargo built no {key:?}"))
    }
}
