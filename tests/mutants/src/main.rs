//! Shows that the tests can fail: each patch in this folder breaks the crate, and
//! names in its first line the test that must fail for it,
//!
//! ```text
//! # must fail: cargo test -p conversant-models --lib wait::model::first_wait
//! ```
//!
//! All of them are built at once: a copy of the tree has both forms of each
//! function that a patch changes, and a number in the environment says which one
//! runs (`weave`). A patch that changes more than bodies of functions, or one
//! that cannot be chosen at run time, is built alone.
//!
//! A variant is caught if its test fails, or takes ten times as long as unbroken
//! and at least 10 s. Where threads race one run may miss it: three may not. It
//! counts against us if the test passes, if there is none, if it fails unbroken,
//! or if the patch does not compile or does not say exactly where it belongs.

mod builds;
mod patch;
mod report;
mod tree;
mod trial;
mod weave;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use builds::Tests;
use patch::Patch;
use report::Report;
use tree::{Files, Tree};
use trial::{Look, Trial, Verdict, verdicts};
use weave::Weaving;

#[derive(Parser)]
#[command(about = "Shows that the tests catch each broken variant of the crate")]
struct Options {
    /// Only those whose names contain one of these; all if none is given.
    names: Vec<String>,
    /// How many run at once.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
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

    let mut weaving = Weaving::default();
    for (number, patch) in patches.iter().enumerate() {
        match tree.patched(patch) {
            Err(why) => report.bad(&patch.name, &format!("DOES NOT APPLY: {why:#}")),
            Ok(files) => {
                if let Err(why) = weaving.add(&tree, number + 1, &files)? {
                    report.say(&format!("{}, alone: {why}", patch.name));
                    one_alone(&tree, patch, files, &mut report)?;
                }
            }
        }
    }
    report.say("all others are woven");
    tree.write(&weaving.files(&tree)?)?;
    let woven: Vec<_> = weaving.numbers().map(|n| (n, &patches[n - 1])).collect();
    let tests = Tests::build(&tree, woven.iter().map(|(_, patch)| &patch.command))?;
    report.say("built");
    let trials = woven.iter().map(|(n, patch)| Trial::new(*n, patch, &tests));
    let trials: Vec<Trial> = trials.collect::<Result<_>>()?;
    for (trial, verdict) in trials.iter().zip(verdicts(&trials)?) {
        report.add(&trial.name, verdict);
    }
    Ok(report.end())
}

/// Builds and tries one that cannot be woven.
fn one_alone(tree: &Tree, patch: &Patch, files: Files, report: &mut Report) -> Result<()> {
    let build = |files: &Files| {
        tree.write(files)?;
        let tests = Tests::build(tree, [&patch.command].into_iter())?;
        Trial::new(0, patch, &tests)
    };
    let look = match build(&files) {
        Ok(trial) => trial.first_look()?,
        Err(why) => {
            report.bad(&patch.name, &format!("DOES NOT COMPILE\n{why}"));
            return Ok(());
        }
    };
    let verdict = match (look, build(&Files::new())?.first_look()?) {
        (Look::Passes(_, said), _) => Verdict::Survives(said),
        (Look::Fails(took), Look::Passes(..)) => Verdict::Caught(took),
        (Look::Late, Look::Passes(..)) => Verdict::Hangs,
        (_, Look::Fails(_) | Look::Late) => Verdict::FailsUnbroken,
    };
    report.add(&patch.name, verdict);
    Ok(())
}

/// Those asked for, by name.
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
