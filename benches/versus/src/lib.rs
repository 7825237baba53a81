//! How contenders are run side by side: interleaved round by round in one
//! process, each round the best of several short runs.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One run of one contender: wall time for so many operations in all.
pub type Run = Box<dyn Fn(u64) -> Duration>;

pub struct Contender {
    pub name: String,
    pub run: Run,
}

/// One line of the table, in nanoseconds per operation.
pub struct Line {
    pub name: String,
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// About how long one run takes, and how many make a round.
const RUN: Duration = Duration::from_millis(1);
const RUNS: usize = 7;

pub fn rounds() -> usize {
    let asked = std::env::var("ROUNDS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(15)
}

/// Runs A B C A B C .. and prints medians, extremes and ratios to the first.
pub fn table(title: &str, contenders: &[Contender]) -> Vec<Line> {
    let only = std::env::var("ONLY").unwrap_or_default();
    if !title.contains(&only) {
        return Vec::new();
    }
    let sizes: Vec<u64> = contenders.iter().map(|c| calibrate(&c.run)).collect();
    let mut seen = vec![Vec::new(); contenders.len()];
    let before = siblings();
    for _ in 0..rounds() {
        for (i, contender) in contenders.iter().enumerate() {
            let runs = (0..RUNS).map(|_| (contender.run)(sizes[i]).as_nanos() as f64);
            let best = runs.fold(f64::INFINITY, f64::min);
            seen[i].push(best / sizes[i] as f64);
        }
    }
    println!(
        "\n{title}  (two threads spinning 1 us read {before:.0} ns before, {:.0} after)",
        siblings()
    );
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>7}",
        "", "median", "min", "max", "ratio"
    );
    let mut lines = Vec::new();
    for (contender, mut values) in contenders.iter().zip(seen) {
        values.sort_by(f64::total_cmp);
        let line = Line {
            name: contender.name.clone(),
            median: values[values.len() / 2],
            least: values[0],
            most: values[values.len() - 1],
        };
        let first: &Line = lines.first().unwrap_or(&line);
        let ratio = line.median / first.median;
        println!(
            "{:<44} {:>9.1} {:>9.1} {:>9.1} {:>7.2}",
            line.name, line.median, line.least, line.most, ratio
        );
        println!(
            "csv,{title},{},{:.2},{:.2},{:.2}",
            line.name, line.median, line.least, line.most
        );
        lines.push(line);
    }
    lines
}

fn calibrate(run: &Run) -> u64 {
    let mut ops = 64;
    loop {
        let took = run(ops);
        if took > RUN / 4 || ops > 1 << 28 {
            let scale = RUN.as_secs_f64() / took.as_secs_f64().max(1e-9);
            return ((ops as f64 * scale) as u64).max(64);
        }
        ops *= 4;
    }
}

/// Dependent multiplications that take about a microsecond on a core alone.
pub fn microsecond() -> u64 {
    use std::sync::OnceLock;
    static STEPS: OnceLock<u64> = OnceLock::new();
    *STEPS.get_or_init(|| {
        let steps = 1_000_000;
        let best = (0..9).map(|_| {
            let start = Instant::now();
            work(steps);
            start.elapsed()
        });
        let best = best.min().expect("some");
        (steps as f64 * 1_000.0 / best.as_nanos() as f64) as u64
    })
}

#[inline(never)]
pub fn work(steps: u64) {
    let mut x = black_box(1u64);
    for _ in 0..steps {
        x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    }
    black_box(x);
}

/// What a microsecond's work costs when two threads do it at once: about 500
/// with a core each, up to 1,000 when they are siblings.
pub fn siblings() -> f64 {
    let steps = microsecond();
    let one = || {
        threads(2, 4_000, |_, ops| {
            for _ in 0..ops {
                work(steps);
            }
        })
    };
    (0..5)
        .map(|_| one().as_nanos() as f64 / 4_000.0)
        .fold(f64::INFINITY, f64::min)
}

/// Splits `ops` over threads that start together: the time from the first start
/// to the last end. The start is a spinning one, as waking would be seen.
pub fn threads(count: u64, ops: u64, body: impl Fn(u64, u64) + Sync) -> Duration {
    let (here, go) = (AtomicU64::new(0), AtomicBool::new(false));
    let each = ops.div_ceil(count);
    let origin = Instant::now();
    let (first, last) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
    let since = || origin.elapsed().as_nanos() as u64;
    std::thread::scope(|scope| {
        for id in 0..count {
            let (here, go, first, last, body) = (&here, &go, &first, &last, &body);
            scope.spawn(move || {
                pin(id);
                if here.fetch_add(1, Ordering::SeqCst) + 1 == count {
                    go.store(true, Ordering::SeqCst);
                }
                let mut spins = 0;
                while !go.load(Ordering::SeqCst) {
                    spins += 1;
                    if spins % 64 == 0 {
                        std::thread::yield_now();
                    }
                    std::hint::spin_loop();
                }
                first.fetch_min(since(), Ordering::SeqCst);
                body(id, each);
                last.fetch_max(since(), Ordering::SeqCst);
            });
        }
    });
    Duration::from_nanos(last.into_inner() - first.into_inner())
}

/// To processor `id` modulo their number.
fn pin(id: u64) {
    #[cfg(target_os = "linux")]
    // SAFETY: a zeroed set is an empty one; the call reads it and nothing else.
    unsafe {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(id as usize % count, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = id;
}
