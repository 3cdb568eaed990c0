//! Calls to the API server.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};

use crate::cluster::Call;

#[derive(Debug)]
pub(super) struct Calls {
    pub(super) calls: Counter<u64>,
    pub(super) durations: Histogram<f64>,
}

impl Calls {
    pub(super) fn count(&self, call: &Call) {
        let Call {
            verb,
            resource,
            code,
            took,
        } = call;
        let verb = KeyValue::new("verb", verb.as_str());
        let labels = [
            verb.clone(),
            KeyValue::new("resource", *resource),
            KeyValue::new("code", code.as_str()),
        ];
        self.calls.add(1, &labels);
        self.durations.record(took.as_secs_f64(), &[verb]);
    }
}
