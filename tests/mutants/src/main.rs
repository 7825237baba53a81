//! Shows that the tests can fail: each patch in this folder breaks the crate, and
//! names in its first line the test that must fail for it,
//!
//! ```text
//! # must fail: cargo test -p conversant-models --lib wait::model::first_wait
//! ```
//!
//! All variants are built at once, as mutant schemata: a copy of the tree has all forms of each
//! function that a patch changes, and a number in the environment selects which one runs. A patch
//! that changes more than bodies of functions, or that cannot be selected at run time, is built
//! alone.
//!
//! A variant is caught as soon as one of its tests fails. It is also caught if the test hangs: if
//! it takes more than four times as long as unbroken, and either at least 3 s or a second in which
//! it uses no processor. Where threads race one run may miss the defect, so a test is run at least
//! ten times and for 3 s. A variant is reported as bad if its test passes, is missing or fails
//! unbroken, or if the patch does not compile or does not say exactly where it belongs.

mod bodies;
mod builds;
mod patch;
mod report;
mod schemata;
mod tree;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rayon::prelude::*;

use builds::{Program, Tests};
use patch::Patch;
use report::Report;
use schemata::Schemata;
use tree::{Files, Tree};
use trial::{Trial, verdicts};

#[derive(Parser)]
#[command(about = "Shows that the tests catch each broken variant of the crate")]
struct Options {
    /// Only the variants whose names contain one of these; all if none is given.
    names: Vec<String>,
    /// How many run at once; by default two for each processor, since many of them only hang.
    #[arg(long, default_value_t = 2 * std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs);
    pool.build_global()?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().and_then(Path::parent).context("a root")?;
    let patches = load(here, &options.names)?;
    let tree = Tree::of(root)?;
    let mut report = Report::new();

    let copies = tempfile::tempdir()?;
    let hunks = patches.iter().flat_map(|patch| &patch.hunks);
    let mut schemata = Schemata::of(&tree, hunks.map(|hunk| &*hunk.file).collect())?;
    let changes = patches.par_iter().map(|patch| {
        let files = tree.patched(patch);
        files.map(|files| (schemata.changes(&files), files))
    });
    let changes: Vec<_> = changes.collect();
    let mut alone = Vec::new();
    for (number, (patch, changes)) in patches.iter().zip(changes).enumerate() {
        let (changes, files) = match changes {
            Ok((changes, files)) => (changes?, files),
            Err(why) => {
                report.bad(&patch.name, &format!("DOES NOT APPLY: {why:#}"));
                continue;
            }
        };
        match changes {
            Ok(changes) => schemata.add(number + 1, &patch.command.package, changes),
            Err(why) => {
                report.say(&format!("{}, alone: {why}", patch.name));
                match built_alone(&tree, patch, &files, copies.path()) {
                    Ok(program) => alone.push((patch, program)),
                    Err(why) => report.bad(&patch.name, &format!("DOES NOT COMPILE\n{why}")),
                }
            }
        }
    }
    report.say("all others are combined in one build");
    tree.write(&schemata.files(&tree)?)?;
    let combined: Vec<_> = schemata.numbers().map(|n| (n, &patches[n - 1])).collect();
    let patches = combined.iter().map(|(_, patch)| *patch);
    let patches = patches.chain(alone.iter().map(|(patch, _)| *patch));
    let tests = Tests::build(&tree, patches.map(|patch| &patch.command))?;
    report.say("built");
    let combined = combined
        .iter()
        .map(|(n, patch)| Trial::combined(*n, patch, &tests));
    let alone = alone
        .into_iter()
        .map(|(patch, program)| Trial::alone(patch, program, &tests));
    let trials: Vec<Trial> = combined.chain(alone).collect::<Result<_>>()?;
    for (trial, verdict) in trials.iter().zip(verdicts(&trials)?) {
        report.add(&trial.name, verdict);
    }
    Ok(report.end())
}

/// The test program of a patch that cannot be combined with others.
fn built_alone(tree: &Tree, patch: &Patch, files: &Files, copies: &Path) -> Result<Program> {
    tree.write(files)?;
    let tests = Tests::build(tree, [&patch.command].into_iter())?;
    tests.get(&patch.command)?.kept(copies.join(&patch.name))
}

/// The patches asked for, by name.
fn load(folder: &Path, names: &[String]) -> Result<Vec<Patch>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let asked = names.is_empty() || names.iter().any(|part| name.contains(part));
        if asked && path.extension().is_some_and(|e| e == "patch") {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "there is no such patch");
    files.iter().map(|path| Patch::load(path)).collect()
}
