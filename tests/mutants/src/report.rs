//! What came of each variant.

use std::process::ExitCode;
use std::time::Instant;

use crate::trial::Verdict;

pub struct Report {
    begun: Instant,
    caught: usize,
    /// Names, told again at the end.
    bad: Vec<String>,
}

impl Report {
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            caught: 0,
            bad: Vec::new(),
        }
    }

    pub fn say(&self, what: &str) {
        println!("{:4} s  {what}", self.begun.elapsed().as_secs());
    }

    pub fn add(&mut self, name: &str, verdict: Verdict) {
        match verdict {
            Verdict::Caught(took) => {
                self.caught += 1;
                println!("{name:50} caught, {:.1} s", took.as_secs_f32());
            }
            Verdict::Hangs => {
                self.caught += 1;
                println!("{name:50} caught, it hangs");
            }
            Verdict::Survives(said) => self.bad(name, &format!("SURVIVED\n{said}")),
            Verdict::FailsUnbroken => self.bad(name, "ITS TEST FAILS UNBROKEN"),
        }
    }

    pub fn bad(&mut self, name: &str, what: &str) {
        println!("{name:50} {what}");
        self.bad.push(format!(
            "{name} {}",
            what.lines().next().unwrap_or_default()
        ));
    }

    pub fn end(&self) -> ExitCode {
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
