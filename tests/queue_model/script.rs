//! Random scripts: their shapes, their steps, and the shortest script that still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use conversant::limit::Bypass;

use super::model::Settings;
use super::pair::Pair;
use super::random::Random;

/// What a step does. Each takes numbers as its arguments, of which any value is valid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Send,
    SendIn,
    SendAll,
    SendMany,
    Receive,
    ReceiveMany,
    ByName,
    /// A turn is received, does all that it may, and ends.
    Serve,
    Next,
    Batch,
    EndTurn,
    EndDetached,
    Bump,
    Level,
    Limit,
    Cap,
    Capacity,
    Advance,
    Resume,
    TakeFailed,
    Drain,
    Peek,
    EndPeek,
    Wait,
    WaitByName,
    Poll,
    DropWait,
    Watch,
    PollWatch,
    DropWatch,
    NewLane,
    LeaveLane,
    NewGroup,
    LeaveGroup,
    Look,
    Close,
    Shutdown,
}

#[derive(Clone, Copy)]
pub struct Step {
    pub kind: Kind,
    pub args: [u32; 3],
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let args = self.args.map(|arg| arg % 5040);
        write!(f, "{:?}{args:?}", self.kind)
    }
}

/// What scripts look like.
pub struct Shape {
    pub name: &'static str,
    pub groups: usize,
    pub lanes: &'static [(u32, u32)],
    pub levels: &'static [u8],
    pub limits: &'static [u32],
    pub quantum: u32,
    pub bypass: Bypass,
    pub attempts: u32,
    pub back_off: u64,
    pub capacity: u32,
    pub weights: &'static [(Kind, u32)],
}

impl Shape {
    pub fn settings(&self) -> Settings {
        Settings {
            quantum: self.quantum,
            bypass: self.bypass,
            capacity: self.capacity,
            attempts: self.attempts,
            back_off: (
                Duration::from_secs(self.back_off),
                Duration::from_secs(self.back_off * 5),
            ),
        }
    }

    pub fn script(&self, seed: u64, steps: usize) -> Vec<Step> {
        let random = &mut Random(seed);
        let sum: u32 = self.weights.iter().map(|&(_, weight)| weight).sum();
        let step = |_| {
            let mut at = random.below(sum as usize) as u32;
            let of = |&&(_, weight): &&(Kind, u32)| {
                let here = at < weight;
                at = at.saturating_sub(weight);
                here
            };
            let (kind, _) = *self.weights.iter().find(of).expect("it is below the sum");
            // 5040 is divisible by all small numbers.
            Step {
                kind,
                args: [(); 3].map(|()| random.below(5040) as u32),
            }
        };
        (0..steps).map(step).collect()
    }
}

/// Plays a script; an error says where queue and model differ.
fn play(shape: &Shape, script: &[Step]) -> Result<(), String> {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let queue = Pair::queue(&shape.settings());
        let mut pair = Pair::new(&queue, shape);
        for (place, step) in script.iter().enumerate() {
            let at = |told| format!("step {place}, {step:?}: {told}");
            pair.step(step).map_err(at)?;
        }
        pair.finish().map_err(|told| format!("at the end: {told}"))
    }));
    played.unwrap_or_else(|_| Err("panicked".into()))
}

/// Plays a script. If it fails, panics with the shortest script found that fails.
pub fn check(shape: &Shape, seed: u64, steps: usize) {
    let mut script = shape.script(seed, steps);
    let Err(first) = play(shape, &script) else {
        return;
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut size = script.len() / 2;
    let mut before = usize::MAX;
    while size > 0 || script.len() < before {
        if size == 0 {
            (before, size) = (script.len(), 2);
        }
        let mut from = 0;
        while from < script.len() {
            let mut shorter = script.clone();
            shorter.drain(from..(from + size).min(script.len()));
            match play(shape, &shorter) {
                Err(_) => script = shorter,
                Ok(()) => from += size,
            }
        }
        size /= 2;
    }
    std::panic::set_hook(hook);
    let told = play(shape, &script);
    panic!(
        "shape {}, seed {seed}: {told:?}, first {first}\n{script:#?}",
        shape.name
    );
}
