//! What is shown while the list runs: a bar if standard error is a terminal,
//! and each failure as it happens.

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::command::Output;
use crate::escape;
use crate::input::TaskList;
use crate::outcome::Verdict;

#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    /// Whether the failure to start a reader was reported.
    stranded: bool,
}

impl Progress {
    pub(crate) fn new(tasks: usize, quiet: bool) -> Self {
        // Hidden by itself where standard error is no terminal.
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(tasks as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        bar.tick();
        Self {
            bar,
            quiet,
            stranded: false,
        }
    }

    /// A task has its outcome. The output of a failed task is shown now, even with `--quiet`:
    /// it is stored nowhere.
    pub(crate) fn settled(
        &mut self,
        list: &TaskList,
        row: u32,
        verdict: Verdict,
        output: Option<&Output>,
    ) {
        if verdict.is_failure() {
            let text = failure(list, row, verdict, output);
            self.show(&text);
        }
        self.bar.inc(1);
    }

    pub(crate) fn interrupted(&mut self, running: usize) {
        if !self.quiet {
            self.show(&format!(
                "taskrun: interrupted, no new task starts; waiting for {running} running (Ctrl-C again kills them)\n"
            ));
        }
    }

    /// No reader could be started: reported once, since another try follows.
    pub(crate) fn stranded(&mut self, why: &str) {
        if !std::mem::replace(&mut self.stranded, true) {
            let why = escape::short(why.as_bytes());
            self.show(&format!(
                "taskrun: no task can start, trying again: {why}\n"
            ));
        }
    }

    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, text: &str) {
        self.bar.suspend(|| {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        });
    }
}

fn failure(list: &TaskList, row: u32, verdict: Verdict, output: Option<&Output>) -> String {
    let task = &list.rows[row as usize];
    let mut text = format!(
        "task {} (caller \"{}\", line {}): {verdict}\n",
        u64::from(row) + 1,
        escape::short(list.caller_of(task).as_bytes()),
        task.line,
    );
    let Some(output) = output else { return text };
    if output.lost() > 0 {
        text += &format!(
            "({} bytes of output before this are not kept)\n",
            output.lost()
        );
    }
    text += &escape::block(output.tail());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
