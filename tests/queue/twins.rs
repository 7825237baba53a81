//! The same script on two queues, one of which is inspected after each step. An inspection moves
//! the submissions in, so that the policy of the one queue always knows all messages, and that of
//! the other learns of them as late as possible. This must make no difference.
//!
//! `CONVERSANT_TWINS` says how many scripts; 1,000 by default.

mod script;
mod twin;

use script::Script;
use twin::Twin;

/// The default number of scripts.
const SCRIPTS: u64 = 1_000;

#[test]
fn a_look_after_each_step_makes_no_difference() {
    let asked = std::env::var("CONVERSANT_TWINS").ok();
    let scripts = asked.map_or(SCRIPTS, |n| n.parse().expect("a number of scripts"));
    for number in 1..=scripts {
        compare(number);
    }
}

fn compare(number: u64) {
    let script = Script::random(number);
    let alone = Twin::run(&script, false);
    let looked_at = Twin::run(&script, true);
    assert_eq!(alone.len(), looked_at.len());
    for (step, (one, other)) in alone.iter().zip(&looked_at).enumerate() {
        if one != other {
            panic!(
                "script {number}, step {step}: {one} alone, {other} if looked at\n{}",
                story(&script, &alone[..=step])
            );
        }
    }
}

/// The settings, and each step with what was seen of it.
fn story(script: &Script, log: &[String]) -> String {
    let steps = script.ops.iter().zip(log).enumerate();
    let lines = steps.map(|(step, (op, seen))| format!("{step:4} {op:?}: {seen}\n"));
    let settings = format!("{:?}\n", script.settings);
    std::iter::once(settings).chain(lines).collect()
}
