//! The result of each variant.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::trial::Verdict;

pub struct Report {
    begun: Instant,
    caught: usize,
    /// Names that are repeated at the end.
    bad: Vec<String>,
    /// How long each test took until it failed, or was known to hang.
    times: Vec<(Duration, String)>,
}

/// This many are repeated at the end: the run is shorter if their tests are.
const SLOWEST: usize = 20;

impl Report {
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            caught: 0,
            bad: Vec::new(),
            times: Vec::new(),
        }
    }

    pub fn say(&self, what: &str) {
        println!("{:4} s  {what}", self.begun.elapsed().as_secs());
    }

    pub fn add(&mut self, name: &str, verdict: Verdict) {
        match verdict {
            Verdict::Caught(took) => {
                self.caught(name, took, format!("caught, {:.1} s", took.as_secs_f32()));
            }
            Verdict::Hangs(waited) => self.caught(name, waited, "caught, it hangs".into()),
            Verdict::Survives(output) => self.bad(name, &format!("SURVIVED\n{output}")),
            Verdict::FailsUnbroken => self.bad(name, "ITS TEST FAILS UNBROKEN"),
        }
    }

    fn caught(&mut self, name: &str, took: Duration, how: String) {
        println!("{name:50} {how}");
        self.caught += 1;
        self.times.push((took, format!("{name:50} {how}")));
    }

    pub fn bad(&mut self, name: &str, what: &str) {
        println!("{name:50} {what}");
        self.bad.push(format!(
            "{name} {}",
            what.lines().next().unwrap_or_default()
        ));
    }

    pub fn end(mut self) -> ExitCode {
        self.times.sort_unstable_by(|one, other| other.cmp(one));
        println!("the slowest:");
        for (_, slow) in self.times.iter().take(SLOWEST) {
            println!("{slow}");
        }
        let seconds = self.begun.elapsed().as_secs();
        println!(
            "{} caught, {} not, {seconds} s",
            self.caught,
            self.bad.len()
        );
        for bad in &self.bad {
            println!("{bad}");
        }
        match self.bad.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
