//! Runs tests for variants, for so long and no longer.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use rayon::prelude::*;
use wait_timeout::ChildExt;

use crate::builds::{Program, Tests};
use crate::patch::Patch;
use crate::weave::VARIABLE;

/// What takes longer is compared with how long it takes unbroken.
const LONG: Duration = Duration::from_secs(3);
/// So many times as long as unbroken, and [`LONG`], is too long.
const TIMES: u32 = 4;
/// So long a test may take unbroken.
const PATIENCE: Duration = Duration::from_secs(600);
/// Where threads race one run may miss what is broken: so many are made, and more
/// for as long as [`LONG`].
const RUNS: usize = 3;

/// A variant, and how its test is run.
pub struct Trial {
    pub name: String,
    /// For the switch; 0 for none.
    number: usize,
    program: Program,
    /// Does what is right if the switch says none.
    sound: Program,
    filter: Vec<String>,
}

/// What a test did.
enum Look {
    Fails(Duration),
    /// With what it said.
    Passes(Duration, String),
    /// It was killed.
    Late,
}

/// What is known of a variant.
pub enum Verdict {
    Caught(Duration),
    Hangs,
    Survives(String),
    FailsUnbroken,
}

impl Trial {
    pub fn woven(number: usize, patch: &Patch, tests: &Tests) -> Result<Self> {
        let program = tests.get(&patch.command)?.clone();
        Ok(Self {
            number,
            ..Self::alone(patch, program, tests)?
        })
    }

    /// One that has a program of its own.
    pub fn alone(patch: &Patch, program: Program, tests: &Tests) -> Result<Self> {
        Ok(Self {
            name: patch.name.clone(),
            number: 0,
            program,
            sound: tests.get(&patch.command)?.clone(),
            filter: patch.command.filter.clone(),
        })
    }

    /// Runs it until it fails, or has passed often enough.
    fn look(&self, patience: Duration) -> Result<Look> {
        let begun = Instant::now();
        let mut runs = 0;
        loop {
            let look = self.run(&self.program, self.number, patience)?;
            runs += 1;
            let enough = runs >= RUNS && begun.elapsed() > LONG;
            if enough || !matches!(look, Look::Passes(..)) {
                return Ok(look);
            }
        }
    }

    fn run(&self, program: &Program, number: usize, patience: Duration) -> Result<Look> {
        let mut said = tempfile::tempfile()?;
        let begun = Instant::now();
        let mut child = Command::new(&program.path)
            .args(&self.filter)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("RUST_BACKTRACE", "0")
            .env(VARIABLE, number.to_string())
            .stdout(said.try_clone()?)
            .stderr(said.try_clone()?)
            .stdin(Stdio::null())
            .spawn()?;
        let Some(status) = child.wait_timeout(patience)? else {
            child.kill()?;
            child.wait()?;
            return Ok(Look::Late);
        };
        let took = begun.elapsed();
        if !status.success() {
            return Ok(Look::Fails(took));
        }
        said.rewind()?;
        let mut text = Vec::new();
        said.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Look::Passes(took, text))
    }

    /// Trials of one key run the same unbroken.
    fn key(&self) -> (&Path, &[String]) {
        (&self.sound.path, &self.filter)
    }
}

/// What comes of each of them, in their order.
///
/// That a test fails says nothing if it fails unbroken: so it is run so too, for
/// twice as long as any variant of it took to fail, or to its end if one has not
/// ended.
pub fn verdicts(trials: &[Trial]) -> Result<Vec<Verdict>> {
    let looks = trials.par_iter().map(|trial| trial.look(LONG));
    let looks: Vec<Look> = looks.collect::<Result<_>>()?;
    let mut unbroken = HashMap::new();
    for (trial, look) in trials.iter().zip(&looks) {
        let enough = match look {
            Look::Fails(took) => *took * 2 + Duration::from_secs(1),
            Look::Passes(..) => continue,
            Look::Late => PATIENCE,
        };
        let (_, longest) = unbroken.entry(trial.key()).or_insert((trial, enough));
        *longest = enough.max(*longest);
    }
    let unbroken: Vec<_> = unbroken.into_iter().collect();
    let unbroken = unbroken
        .into_par_iter()
        .map(|(key, (trial, longest))| Ok((key, trial.run(&trial.sound, 0, longest)?)));
    let unbroken: HashMap<_, Look> = unbroken.collect::<Result<_>>()?;
    let pairs: Vec<_> = trials.iter().zip(looks).collect();
    let verdicts = pairs.into_par_iter().map(|(trial, look)| {
        Ok(match (look, unbroken.get(&trial.key())) {
            (Look::Passes(_, said), _) => Verdict::Survives(said),
            (_, None | Some(Look::Fails(_))) => Verdict::FailsUnbroken,
            (Look::Fails(took), _) => Verdict::Caught(took),
            (Look::Late, Some(Look::Late)) => Verdict::FailsUnbroken,
            (Look::Late, Some(Look::Passes(took, _))) if *took * TIMES < LONG => Verdict::Hangs,
            (Look::Late, Some(Look::Passes(took, _))) => match trial.look(*took * TIMES + LONG)? {
                Look::Fails(took) => Verdict::Caught(took),
                Look::Passes(_, said) => Verdict::Survives(said),
                Look::Late => Verdict::Hangs,
            },
        })
    });
    verdicts.collect()
}
