//! The command line. Every error is one line, `--NAME: why`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};

use crate::escape::{self, BadInput};
use crate::input::TaskList;

/// Runs the shell commands of a task list in parallel, in the order that the
/// list demands.
#[derive(Parser)]
#[command(name = "taskrun", version, max_term_width = 100)]
struct Arguments {
    /// The task list: CSV with a header; columns caller, tier, group, bump,
    /// arrive_ms, duration_ms, command
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Tasks that run at the same time, 1 to 1024 [default: the machine's
    /// parallelism]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number(1, 1024))]
    readers: Option<u32>,

    /// Play the list in virtual time: no command runs, each task takes its
    /// duration_ms
    #[arg(long)]
    simulate: bool,

    /// How often in a row a caller's oldest work may be overtaken; 0 = without
    /// bound
    #[arg(long, value_name = "K", allow_hyphen_values = true, default_value = "64", value_parser = number(0, u32::MAX))]
    bypass: u32,

    /// The most tasks of one caller that run at the same time [default: none]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number(1, u32::MAX))]
    cap: Option<u32>,

    /// A caller's consecutive turns, 1 to 1000000 [default: 1]; repeatable,
    /// split at the last `=`
    #[arg(long, value_name = "CALLER=W", allow_hyphen_values = true, action = ArgAction::Append,
          value_parser = OsStringValueParser::new().try_map(|value| weight(&value)))]
    weight: Vec<(String, u32)>,

    /// After a failure, start the caller's tasks of higher tiers all the same
    #[arg(long)]
    keep_going: bool,

    /// Write the outcome of every task to FILE as CSV
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Write a Chrome trace to FILE, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// No progress, chart or summary; errors and the output of failed tasks
    /// are still shown
    #[arg(long)]
    quiet: bool,
}

/// The options, checked.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) readers: u32,
    pub(crate) simulate: bool,
    /// Bounded bypass; `None` is unbounded.
    pub(crate) bypass: Option<u32>,
    /// The most tasks of one caller in flight; `None` is without limit.
    pub(crate) cap: Option<u32>,
    /// By caller number; a caller that is not in it has weight 1. Filled by [`Options::resolve`].
    pub(crate) weights: HashMap<u32, u32>,
    pub(crate) keep_going: bool,
    pub(crate) log: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) quiet: bool,
    named_weights: Vec<(String, u32)>,
}

pub(crate) enum Request {
    Run(Options),
    /// `--help` or `--version`: print it and leave.
    Show(String),
}

pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, BadInput> {
    let parsed = Arguments::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let given = match parsed {
        Ok(given) => given,
        Err(error) => {
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    Ok(Request::Show(error.to_string()))
                }
                _ => Err(explain(&error)),
            };
        }
    };
    let parallelism = || {
        let machine = std::thread::available_parallelism().map_or(1, |n| n.get());
        machine.clamp(1, 1024) as u32
    };
    Ok(Request::Run(Options {
        file: given.file,
        readers: given.readers.unwrap_or_else(parallelism),
        simulate: given.simulate,
        bypass: (given.bypass > 0).then_some(given.bypass),
        cap: given.cap,
        weights: HashMap::new(),
        keep_going: given.keep_going,
        log: given.log,
        trace: given.trace,
        quiet: given.quiet,
        named_weights: given.weight,
    }))
}

impl Options {
    /// Turns the callers that `--weight` names into the list's numbers.
    pub(crate) fn resolve(&mut self, list: &TaskList) -> Result<(), BadInput> {
        if self.named_weights.is_empty() {
            return Ok(());
        }
        let names = list.callers.iter().zip(0..);
        let numbers: HashMap<&str, u32> = names.map(|(name, id)| (&**name, id)).collect();
        for (name, weight) in &self.named_weights {
            let shown = escape::short(name.as_bytes());
            let Some(&caller) = numbers.get(name.as_str()) else {
                return Err(BadInput(format!("--weight: unknown caller \"{shown}\"")));
            };
            if self.weights.insert(caller, *weight).is_some() {
                let why = format!("--weight: caller \"{shown}\" is given twice");
                return Err(BadInput(why));
            }
        }
        Ok(())
    }
}

/// Digits only: `u32::from_str` would take a plus sign too.
pub(crate) fn whole(text: &[u8], low: u32, high: u32) -> Result<u32, String> {
    let shown = escape::short(text);
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(format!(
            "\"{shown}\" is not a whole number from {low} to {high}"
        ));
    }
    let value = str::from_utf8(text)
        .ok()
        .and_then(|digits| digits.parse().ok());
    value
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| format!("{shown} is not from {low} to {high}"))
}

fn number(low: u32, high: u32) -> impl TypedValueParser<Value = u32> {
    OsStringValueParser::new().try_map(move |value| whole(value.as_encoded_bytes(), low, high))
}

fn weight(value: &OsStr) -> Result<(String, u32), String> {
    let Some(text) = value.to_str() else {
        return Err(format!("\"{}\" is not UTF-8", escape::path(value)));
    };
    let Some((caller, weight)) = text.rsplit_once('=') else {
        let shown = escape::short(text.as_bytes());
        return Err(format!("\"{shown}\" is not CALLER=W"));
    };
    Ok((caller.to_owned(), whole(weight.as_bytes(), 1, 1_000_000)?))
}

/// Says in one line what clap found wrong.
fn explain(error: &clap::Error) -> BadInput {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    // clap names an option with its value, as in `--readers <N>`.
    let name = escape::short(argument.split([' ', '=']).next().unwrap_or("").as_bytes());
    let source = std::error::Error::source(error).map(ToString::to_string);
    BadInput(match (error.kind(), source) {
        (ErrorKind::ValueValidation, Some(why)) => format!("{name}: {why}"),
        (ErrorKind::UnknownArgument, _) if argument.starts_with('-') => {
            format!("{name}: unknown option")
        }
        (ErrorKind::UnknownArgument, _) => {
            let shown = escape::short(argument.as_bytes());
            format!("FILE: only one can be given, \"{shown}\" is one too many")
        }
        (ErrorKind::MissingRequiredArgument, _) => "FILE: missing, give a task list".to_owned(),
        (ErrorKind::ArgumentConflict, _) => format!("{name}: given more than once"),
        (ErrorKind::InvalidValue, _) if name.starts_with('<') => {
            "FILE: missing, give a task list".to_owned()
        }
        (ErrorKind::InvalidValue, _) => format!("{name}: needs a value"),
        (ErrorKind::TooManyValues, _) => format!("{name}: takes no value"),
        _ => {
            let rendered = error.to_string();
            let first = rendered.lines().next().unwrap_or_default();
            escape::short(first.trim_start_matches("error: ").as_bytes())
        }
    })
}
