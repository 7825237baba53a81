//! A build tool on rayon's pool. Each target is a task that awaits the targets it needs; while
//! it awaits, it keeps no thread. A file is locked in X until it is written, and in S by its
//! readers. If a target fails, those that need it fail too, and nothing else.
//!
//! `cargo run --example build_tool [-- TARGET-THAT-FAILS]`

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use conversant::prelude::*;
use conversant::scheduler::{How, Verdict};

/// Each target comes after all that it needs, so there is no cycle.
const BUILD_FILE: &str = "
    config.h:
    main.o: config.h
    net.o: config.h
    disk.o: config.h
    lib.a: net.o disk.o
    app: main.o lib.a
    manual:
    package: app manual
";

/// What a target makes.
#[derive(Default)]
struct File {
    lock: Arc<IntentLock>,
    content: OnceLock<String>,
}

type Files = HashMap<&'static str, File>;

/// Makes a target when all that it needs is made.
async fn make(
    target: &'static str,
    needs: Vec<&'static str>,
    files: Arc<Files>,
    fails: bool,
) -> Result<(), String> {
    let mut inputs = Vec::new();
    for need in needs {
        let _read = files[need].lock.lock(Mode::S).await;
        let content = files[need].content.get();
        inputs.push(
            content
                .ok_or_else(|| format!("there is no {need}"))?
                .as_str(),
        );
    }
    if fails {
        return Err("the compiler crashed".to_string());
    }
    let content = match inputs.as_slice() {
        [] => target.to_string(),
        inputs => format!("{target}({})", inputs.join(" ")),
    };
    files[target].content.set(content)
}

fn build(broken: Option<&str>) -> Result<bool, Box<dyn Error>> {
    let targets = BUILD_FILE.lines().filter_map(|line| line.split_once(':'));
    let targets: Vec<_> = targets
        .map(|(target, needs)| (target.trim(), needs))
        .collect();
    let files: Files = targets
        .iter()
        .map(|&(target, _)| (target, File::default()))
        .collect();
    let files = Arc::new(files);

    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    let scheduler = Scheduler::builder()
        .workers(2) // no more than the pool has threads
        .pool(move |worker| {
            pool.spawn(worker);
            Ok(())
        })
        .build()?;
    let builder = scheduler.caller("build", CallerOptions::default())?;

    // The hold lets none start before all files are locked. Then the targets that need most
    // start first, and await.
    let hold = scheduler.hold();
    let mut tasks = Vec::new();
    for (target, needs) in targets.into_iter().rev() {
        // Held from now on until its task ends in any way.
        let written = IntentLock::lock_owned(Arc::clone(&files[target].lock), Mode::X).wait();
        let needs = needs.split_whitespace().collect();
        let made = make(target, needs, Arc::clone(&files), broken == Some(target));
        let task = builder.spawn(async move {
            let _written = written;
            made.await
        })?;
        tasks.push((target, task));
    }
    drop(hold);
    for (target, mut task) in tasks.into_iter().rev() {
        match task.outcome().wait()?.verdict {
            Verdict::Ok(()) => println!("{target}: {}", files[target].content.get().unwrap()),
            other => println!("{target}: {other}"),
        }
    }
    let summary = builder.synchronize().wait()?;
    println!("{} of {} made", summary.ok, summary.tasks);
    scheduler.shutdown(How::Drain).wait()?;
    Ok(summary.all_ok())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let broken = std::env::args().nth(1);
    let all_made = build(broken.as_deref())?;
    Ok(ExitCode::from(u8::from(!all_made)))
}
