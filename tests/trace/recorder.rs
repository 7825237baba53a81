//! A subscriber that records its events, and then does something of its own.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// What a recorder does after it has noted an event.
type Action = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Clone, Default)]
pub struct Recorder {
    events: Arc<Mutex<Vec<String>>>,
    then: Arc<OnceLock<Action>>,
}

impl Recorder {
    /// Does this at each event from now on.
    pub fn then(&self, then: impl Fn(&str) + Send + Sync + 'static) {
        assert!(self.then.set(Box::new(then)).is_ok(), "once");
    }

    /// Until the guard is dropped the recorder gets the events of this thread.
    pub fn listen(&self) -> DefaultGuard {
        tracing::dispatcher::set_default(&Dispatch::new(self.clone()))
    }

    /// The events since the last call: level, product, message, and the fields.
    pub fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("conversant::")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = EventText::default();
        event.record(&mut line);
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let product = target.trim_start_matches("conversant::");
        let line = format!("{level} {product} {}{}", line.message, line.fields);
        self.events.lock().unwrap().push(line.clone());
        if let Some(then) = self.then.get() {
            then(&line);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            // Who knows how long.
            "waited" | "ran" => write!(self.fields, " {field}").unwrap(),
            _ => write!(self.fields, " {field}={value:?}").unwrap(),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}
