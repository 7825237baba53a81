//! The machine of the measurement, and the state that it was in.

use std::fs;
use std::process::Command;

use crate::race::{processors, race};
use crate::work::work;

/// Machine, commit, compiler and load.
pub fn header() -> String {
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |name| {
        name.trim_start_matches([' ', '\t', ':'])
    });
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "machine: {model}, {} processors, Linux {}\ncommit: {}\nrustc: {}\nload: {}\n",
        processors(),
        kernel.trim(),
        commit(),
        env!("VERSUS_RUSTC"),
        load(),
    )
}

pub fn load() -> String {
    let load = read("/proc/loadavg");
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git")
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(args)
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_default();
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
    match changes.is_empty() {
        true => head,
        false => format!("{head} with changes"),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The cost of a microsecond's work that two threads do at the same time: about 500 ns with a core
/// each, about 700 if they are siblings on one core, 1,000 if they share one processor.
pub fn probe() -> f64 {
    let one = |_| {
        let sample = race(2, 2_000, |_, each| {
            move || (0..each).for_each(|_| work(1_000))
        });
        sample.took.as_nanos() as f64 / sample.ops as f64
    };
    (0..9).map(one).fold(f64::INFINITY, f64::min)
}
