//! Logs as JSON, one line per event: fields of the event and of the spans around it, and the ids of the current trace.
//!
//! Written by hand because the formatter of tracing-subscriber cannot add the ids, and nests span fields in a list
//! where no log query finds them.

use std::{error::Error, fmt, io::Write};

use jiff::Timestamp;
use opentelemetry::{Context as OtelContext, trace::TraceContextExt};
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    fmt::MakeWriter,
    layer::Context,
    registry::{LookupSpan, Scope},
};

use super::{Clean, MAX_TEXT_BYTES, cut};

/// Names that every line uses itself.
const OWN_NAMES: [&str; 6] = [
    "timestamp",
    "level",
    "target",
    "message",
    "trace_id",
    "span_id",
];

/// A layer that writes a line per event.
#[derive(Debug)]
pub struct JsonLayer<W> {
    writer: W,
    clean: Clean,
}

impl<W> JsonLayer<W> {
    /// Writes there, each text cleaned.
    pub fn new(writer: W, clean: Clean) -> Self {
        Self { writer, clean }
    }
}

impl<S, W> Layer<S> for JsonLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::new(self.clean);
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::new(self.clean);
        let scope = context.event_scope(event).into_iter();
        for span in scope.flat_map(Scope::from_root) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.adopt(outer);
            }
        }
        event.record(&mut fields);
        if let Ok(line) = line(Timestamp::now(), event.metadata(), &fields) {
            // A log that cannot be written has nowhere to say so.
            drop(self.writer.make_writer().write_all(&line));
        }
    }
}

/// Names and values in the order in which they came; a name that comes again replaces.
#[derive(Clone, Debug)]
struct Fields {
    clean: Clean,
    message: Option<String>,
    values: Vec<(&'static str, Value)>,
}

impl Fields {
    fn new(clean: Clean) -> Self {
        Self {
            clean,
            message: None,
            values: Vec::new(),
        }
    }

    fn set(&mut self, name: &'static str, value: Value) {
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.values.push((name, value)),
        }
    }

    /// A text as it may be logged.
    fn fit(&self, text: &str) -> String {
        cut((self.clean)(text))
    }

    fn adopt(&mut self, outer: &Self) {
        for (name, value) in &outer.values {
            self.set(name, value.clone());
        }
    }

    fn text(&mut self, field: &Field, text: String) {
        // Most spans never meet an event, so cleaning waits for one; but half a secret would no longer look like one.
        let text = match text.len() > MAX_TEXT_BYTES {
            true => self.fit(&text),
            false => text,
        };
        match field.name() {
            "message" => self.message = Some(text),
            // Instructions to the tracing layer, no information.
            name if name.starts_with("otel.") => {}
            name => self.set(name, text.into()),
        }
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_owned());
    }

    /// The whole chain of causes, not only its head.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        self.text(field, text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format!("{value:?}"));
    }
}

fn line(
    now: Timestamp,
    metadata: &Metadata<'_>,
    fields: &Fields,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::with_capacity(256);
    let mut serializer = serde_json::Serializer::new(&mut line);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("timestamp", &format_args!("{now:.6}"))?;
    map.serialize_entry("level", metadata.level().as_str())?;
    map.serialize_entry("target", metadata.target())?;
    let message = fields.message.as_deref().unwrap_or_default();
    map.serialize_entry("message", &fields.fit(message))?;
    for (name, value) in &fields.values {
        let cleaned = value.as_str().map(|text| Value::from(fields.fit(text)));
        let value = cleaned.as_ref().unwrap_or(value);
        match OWN_NAMES.contains(name) {
            true => map.serialize_entry(&format_args!("field.{name}"), value)?,
            false => map.serialize_entry(name, value)?,
        }
    }
    OtelContext::map_current(|context| {
        let span = context.span();
        let ids = span.span_context();
        if ids.is_valid() {
            map.serialize_entry("trace_id", &format_args!("{}", ids.trace_id()))?;
            map.serialize_entry("span_id", &format_args!("{}", ids.span_id()))?;
        }
        Ok::<(), serde_json::Error>(())
    })?;
    map.end()?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests;
