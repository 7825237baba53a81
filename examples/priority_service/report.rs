//! The result of the run, and whether it is allowed.

use std::io::Write;
use std::time::Duration;

use crate::Options;
use crate::clients::{Clients, Fate};
use crate::service::Left;

pub(crate) struct Outcome {
    /// The requests, as they were begun.
    pub(crate) order: Vec<u32>,
    /// The same, reader by reader.
    pub(crate) readers: Vec<Vec<u32>>,
    pub(crate) clients: Clients,
    pub(crate) left: Left,
    /// In virtual time.
    pub(crate) took: Option<Duration>,
}

/// Prints the result; returns whether everything is as it must be.
pub(crate) fn print(options: &Options, outcome: &Outcome) -> bool {
    let wrong = wrong(options, outcome);
    let mut text = told(outcome);
    for what in &wrong {
        text += &format!("WRONG: {what}\n");
    }
    // A reader that closes the pipe has read enough.
    _ = std::io::stdout().write_all(text.as_bytes());
    wrong.is_empty()
}

fn told(outcome: &Outcome) -> String {
    let mut text = String::new();
    let mut say = |line: String| text += &(line + "\n");
    say(format!("order of service: {}", list(&outcome.order)));
    for (name, served) in ('A'..).zip(&outcome.readers) {
        say(format!("reader {name}: {}", list(served)));
    }
    let fates = [
        (Fate::Answered, "answered"),
        (Fate::Failed, "failed"),
        (Fate::Cancelled, "cancelled"),
        (Fate::GaveUp, "gave up"),
    ];
    for (fate, name) in fates {
        let fates = outcome.clients.fates.iter();
        let mut those: Vec<u32> = fates.filter(|f| f.1 == fate).map(|f| f.0).collect();
        those.sort_unstable();
        match those.len() {
            0 => {}
            count if count > 10 => say(format!("{name}: {count}")),
            count => say(format!("{name}: {count} ({})", list(&those))),
        }
    }
    if let Some(took) = outcome.took {
        say(format!("the last work ended at {} s", took.as_secs()));
    }
    let Left {
        dialogs,
        pairs,
        messages,
        groups,
    } = outcome.left;
    say(format!(
        "left behind: {dialogs} dialogs, {pairs} pairings, {messages} messages, {groups} groups"
    ));
    text
}

/// What went wrong.
fn wrong(options: &Options, outcome: &Outcome) -> Vec<String> {
    let mut wrong = outcome.clients.wrong.clone();
    if outcome.left != Left::default() {
        wrong.push("something was left behind".into());
    }
    let (mut served, mut fates) = (vec![0; options.requests as usize], Vec::new());
    fates.resize(served.len(), Vec::new());
    for &number in &outcome.order {
        served[number as usize] += 1;
    }
    for &(number, fate) in &outcome.clients.fates {
        fates[number as usize].push(fate);
    }
    for (number, (&served, fates)) in served.iter().zip(&fates).enumerate() {
        let spared = matches!(fates[..], [Fate::Cancelled | Fate::GaveUp]);
        if fates.len() != 1 || served > 1 || served == 0 && !spared {
            wrong.push(format!(
                "request {number} was served {served} times: {fates:?}"
            ));
        }
    }
    wrong
}

fn list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(" ")
}
