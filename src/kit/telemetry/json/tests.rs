use std::{
    io,
    sync::{Arc, Mutex},
};

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::json;
use tracing::{error, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

use super::*;

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let memory = self.0.lock();
        memory
            .map_err(|_| io::Error::other("a panic"))?
            .write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that are logged meanwhile, with the same layers as a program has.
fn logged(work: impl FnOnce()) -> Vec<Value> {
    logged_clean(str::to_owned, work)
}

/// The same in a program that cleans texts so.
fn logged_clean(clean: Clean, work: impl FnOnce()) -> Vec<Value> {
    let memory = Memory::default();
    let writer = memory.clone();
    let tracer = SdkTracerProvider::builder().build().tracer("test");
    let subscriber = tracing_subscriber::registry()
        .with(JsonLayer::new(move || writer.clone(), clean))
        .with(tracing_opentelemetry::layer().with_tracer(tracer));
    tracing::subscriber::with_default(subscriber, work);
    let bytes = memory.0.lock().expect("a lock").clone();
    let text = String::from_utf8(bytes).expect("UTF-8");
    let parse = |line| serde_json::from_str(line).expect("one JSON object per line");
    text.lines().map(parse).collect()
}

/// Takes out what differs from run to run, after a look at its form.
fn stable(mut line: Value) -> Value {
    let map = line.as_object_mut().expect("an object");
    let timestamp = map.remove("timestamp").expect("a timestamp");
    let timestamp = timestamp.as_str().expect("a text");
    assert!(
        timestamp.ends_with('Z') && timestamp.len() == 27,
        "{timestamp}"
    );
    timestamp.parse::<Timestamp>().expect("RFC 3339");
    line
}

#[test]
fn an_event_is_one_line_with_its_fields() {
    let lines = logged(|| {
        info!(
            run = "demo",
            tries = 3,
            share = 0.5,
            done = true,
            "Run finished\nor not"
        );
    });
    let lines: Vec<_> = lines.into_iter().map(stable).collect();
    let expected = json!({
        "level": "INFO",
        "target": "agents::kit::telemetry::json::tests",
        "message": "Run finished\nor not",
        "run": "demo",
        "tries": 3,
        "share": 0.5,
        "done": true,
    });
    assert_eq!(lines, [expected]);
}

#[test]
fn an_event_in_a_span_has_the_ids_of_the_trace_and_the_fields_of_all_spans() {
    let lines = logged(|| {
        let outer = info_span!("outer", namespace = "a", run = "old", otel.kind = "server");
        let _outer = outer.enter();
        info!("First");
        let inner = info_span!("inner", run = "demo", late = tracing::field::Empty);
        let _inner = inner.enter();
        inner.record("late", 7);
        info!("Second");
    });
    let [first, second] = &lines[..] else {
        panic!("{lines:?} should be two lines");
    };
    let id = |line: &Value, name: &str| line[name].as_str().map(str::to_owned);
    assert_eq!(id(first, "trace_id").map(|id| id.len()), Some(32));
    assert_eq!(id(first, "span_id").map(|id| id.len()), Some(16));
    assert_eq!(id(first, "trace_id"), id(second, "trace_id"));
    assert_ne!(id(first, "span_id"), id(second, "span_id"));
    assert_eq!(first["run"], json!("old"));
    assert_eq!(first.get("otel.kind"), None);
    assert_eq!(second["namespace"], json!("a"));
    assert_eq!(second["run"], json!("demo"));
    assert_eq!(second["late"], json!(7));
}

#[test]
fn an_error_is_written_with_all_its_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("could not apply the Job")]
    struct Apply(#[source] io::Error);
    let failure = Apply(io::Error::other("connection refused"));
    let lines = logged(|| error!(error = &failure as &dyn Error, "Reconcile failed"));
    assert_eq!(
        lines[0]["error"],
        json!("could not apply the Job: connection refused")
    );
}

#[test]
fn a_field_named_like_one_of_ours_does_not_hide_it() {
    let lines = logged(|| info!(level = "high", trace_id = "mine", "Measured"));
    let expected = json!({
        "level": "INFO",
        "target": "agents::kit::telemetry::json::tests",
        "message": "Measured",
        "field.level": "high",
        "field.trace_id": "mine",
    });
    assert_eq!(stable(lines[0].clone()), expected);
}

#[test]
fn a_text_that_is_too_long_is_cut_at_a_whole_character() {
    let long = "ä".repeat(MAX_TEXT_BYTES);
    let lines = logged(|| info!(long, "Dump"));
    let text = lines[0]["long"].as_str().expect("a text");
    assert_eq!(text, format!("{} [cut]", "ä".repeat(MAX_TEXT_BYTES / 2)));
}

#[test]
fn every_text_is_cleaned_wherever_it_comes_from_and_nothing_else_is() {
    #[derive(Debug, thiserror::Error)]
    #[error("the key was hunter2")]
    struct Refused;
    let clean = |text: &str| text.replace("hunter2", "***");
    let lines = logged_clean(clean, || {
        let span = info_span!("outer", of_span = "hunter2", late = tracing::field::Empty);
        let _span = span.enter();
        span.record("late", "hunter2");
        let error = &Refused as &dyn Error;
        info!(text = "a hunter2", debug = ?Some("hunter2"), shown = %"hunter2", error, count = 2, "It was hunter2");
    });
    let mut line = stable(lines[0].clone());
    for id in ["trace_id", "span_id"] {
        line.as_object_mut().expect("an object").remove(id);
    }
    let expected = json!({
        "level": "INFO",
        "target": "agents::kit::telemetry::json::tests",
        "message": "It was ***",
        "of_span": "***",
        "late": "***",
        "text": "a ***",
        "debug": "Some(\"***\")",
        "shown": "***",
        "error": "the key was ***",
        "count": 2,
    });
    assert_eq!(line, expected);
}

#[test]
fn a_text_is_cleaned_before_it_is_cut() {
    let clean = |text: &str| text.replace("hunter2", "***");
    let long = format!("{}hunter2", "x".repeat(MAX_TEXT_BYTES - 3));
    let lines = logged_clean(clean, || info!(long, "Dump"));
    let text = lines[0]["long"].as_str().expect("a text");
    assert_eq!(text, format!("{}***", "x".repeat(MAX_TEXT_BYTES - 3)));
}
