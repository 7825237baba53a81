//! Runs tests for variants, for a limited time.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use rayon::prelude::*;
use wait_timeout::ChildExt;

use crate::builds::{Program, Tests};
use crate::patch::Patch;
use crate::schemata::VARIABLE;

/// A test that takes longer is compared with its unbroken run.
const LONG: Duration = Duration::from_secs(3);
/// A test that uses no processor for this long may hang: its unbroken run decides that, too.
const IDLE: Duration = Duration::from_secs(1);
/// More than this many times as long as unbroken, and [`LONG`] or [`IDLE`], is too long.
const TIMES: u32 = 4;
/// Where a test fails at once, its unbroken run is watched for this much longer.
const MARGIN: Duration = Duration::from_millis(200);
/// How often a test is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What a program prints of a test that failed; then the trial ends.
const FAILED: &str = " ... FAILED\n";
/// The longest time that a test may take unbroken.
const MAX_UNBROKEN: Duration = Duration::from_secs(600);
/// Where threads race one run may miss the defect: the test runs this often, and again until
/// [`LONG`] has passed.
const RUNS: usize = 10;

/// A variant, and how its test is run.
pub struct Trial {
    pub name: String,
    /// The number for the switch; 0 for none.
    number: usize,
    program: Program,
    /// Behaves correctly if the switch selects no variant.
    unbroken_program: Program,
    filter: Vec<String>,
}

/// What a test did.
enum Outcome {
    Fails(Duration),
    /// With its output.
    Passes(Duration, String),
    /// It was killed after this time.
    Late(Duration),
}

/// The verdict on a variant.
pub enum Verdict {
    Caught(Duration),
    /// It took this long to know.
    Hangs(Duration),
    Survives(String),
    FailsUnbroken,
}

impl Trial {
    pub fn combined(number: usize, patch: &Patch, tests: &Tests) -> Result<Self> {
        let program = tests.get(&patch.command)?.clone();
        Ok(Self {
            number,
            ..Self::alone(patch, program, tests)?
        })
    }

    /// A variant with a program of its own.
    pub fn alone(patch: &Patch, program: Program, tests: &Tests) -> Result<Self> {
        Ok(Self {
            name: patch.name.clone(),
            number: 0,
            program,
            unbroken_program: tests.get(&patch.command)?.clone(),
            filter: patch.command.filter.clone(),
        })
    }

    /// Runs the test until it fails, or has passed often enough.
    fn run_repeatedly(&self, limit: Duration, idle: Duration) -> Result<Outcome> {
        let begun = Instant::now();
        let mut runs = 0;
        loop {
            let outcome = self.run(&self.program, self.number, limit, idle)?;
            runs += 1;
            let enough = runs >= RUNS && begun.elapsed() > LONG;
            if enough || !matches!(outcome, Outcome::Passes(..)) {
                return Ok(outcome);
            }
        }
    }

    fn run(
        &self,
        program: &Program,
        number: usize,
        limit: Duration,
        idle: Duration,
    ) -> Result<Outcome> {
        let output = tempfile::NamedTempFile::new()?;
        let begun = Instant::now();
        let mut child = Command::new(&program.path)
            .args(&self.filter)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("RUST_BACKTRACE", "0")
            .env(VARIABLE, number.to_string())
            .stdout(output.as_file().try_clone()?)
            .stderr(output.as_file().try_clone()?)
            .stdin(Stdio::null())
            .spawn()?;
        let end = wait(&mut child, output.path(), limit, idle)?;
        let took = begun.elapsed();
        // It may still run other tests.
        child.kill()?;
        child.wait()?;
        Ok(match end {
            End::Fails => Outcome::Fails(took),
            End::Passes => {
                let text = std::fs::read(output.path())?;
                Outcome::Passes(took, String::from_utf8_lossy(&text).into_owned())
            }
            End::Late => Outcome::Late(took),
        })
    }

    /// Trials of the same key have the same unbroken run.
    fn key(&self) -> (&Path, &[String]) {
        (&self.unbroken_program.path, &self.filter)
    }
}

/// How a test program ended.
enum End {
    Fails,
    Passes,
    Late,
}

/// Waits until one of its tests fails, or all pass; or until it takes longer than `limit`, or
/// uses no processor for longer than `idle`.
fn wait(child: &mut Child, output: &Path, limit: Duration, idle: Duration) -> Result<End> {
    let begun = Instant::now();
    let (mut used, mut last_change) = (None, begun);
    while begun.elapsed() < limit && last_change.elapsed() < idle {
        if let Some(status) = child.wait_timeout(POLL_INTERVAL)? {
            return Ok(match status.success() {
                true => End::Passes,
                false => End::Fails,
            });
        }
        let text = std::fs::read(output)?;
        if String::from_utf8_lossy(&text).contains(FAILED) {
            return Ok(End::Fails);
        }
        let now = processor_time(child.id());
        if now.is_none() || now != used {
            (used, last_change) = (now, Instant::now());
        }
    }
    Ok(End::Late)
}

/// The processor time of a process in the system's ticks, where the system tells it.
fn processor_time(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may have blanks; utime and stime are the 14th and the 15th.
    let (_, stat) = stat.rsplit_once(')')?;
    let times = stat.split_whitespace().skip(11).take(2);
    times.map(|time| time.parse::<u64>().ok()).sum()
}

/// The verdict on each trial, in their order.
///
/// A failure means nothing if the test fails unbroken. So the test also runs unbroken, for twice as
/// long as the slowest of its variants took to fail, or to its end if one of them did not end.
pub fn verdicts(trials: &[Trial]) -> Result<Vec<Verdict>> {
    let outcomes = trials
        .par_iter()
        .map(|trial| trial.run_repeatedly(LONG, IDLE));
    let outcomes: Vec<Outcome> = outcomes.collect::<Result<_>>()?;
    let mut unbroken = HashMap::new();
    for (trial, outcome) in trials.iter().zip(&outcomes) {
        let enough = match outcome {
            Outcome::Fails(took) => *took * 2 + MARGIN,
            Outcome::Passes(..) => continue,
            Outcome::Late(_) => MAX_UNBROKEN,
        };
        let (_, longest) = unbroken.entry(trial.key()).or_insert((trial, enough));
        *longest = enough.max(*longest);
    }
    let unbroken: Vec<_> = unbroken.into_iter().collect();
    let unbroken = unbroken.into_par_iter().map(|(key, (trial, longest))| {
        let outcome = trial.run(&trial.unbroken_program, 0, longest, longest)?;
        Ok((key, outcome))
    });
    let unbroken: HashMap<_, Outcome> = unbroken.collect::<Result<_>>()?;
    let pairs: Vec<_> = trials.iter().zip(outcomes).collect();
    let verdicts = pairs.into_par_iter().map(|(trial, outcome)| {
        Ok(match (outcome, unbroken.get(&trial.key())) {
            (Outcome::Passes(_, output), _) => Verdict::Survives(output),
            (_, None | Some(Outcome::Fails(_))) => Verdict::FailsUnbroken,
            (Outcome::Fails(took), _) => Verdict::Caught(took),
            (Outcome::Late(_), Some(Outcome::Late(_))) => Verdict::FailsUnbroken,
            (Outcome::Late(waited), Some(Outcome::Passes(took, _))) if *took * TIMES < waited => {
                Verdict::Hangs(waited)
            }
            (Outcome::Late(_), Some(Outcome::Passes(took, _))) => {
                let enough = *took * TIMES + LONG;
                match trial.run_repeatedly(enough, enough)? {
                    Outcome::Fails(took) => Verdict::Caught(took),
                    Outcome::Passes(_, output) => Verdict::Survives(output),
                    Outcome::Late(waited) => Verdict::Hangs(waited),
                }
            }
        })
    });
    verdicts.collect()
}
