//! W3C trace context across process boundaries: in by headers and annotations, out as text for annotations and
//! environment variables.

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::TraceContextExt,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = "traceparent";

/// The context that the sender of these headers was in; an empty one if they say nothing usable.
pub fn from_headers(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers))
}

/// The context that a `traceparent` names, if it is one.
pub fn from_traceparent(traceparent: &str) -> Option<Context> {
    let context = TraceContextPropagator::new()
        .extract_with_context(&Context::new(), &Traceparent(traceparent));
    context.span().span_context().is_valid().then_some(context)
}

/// What to hand to others so that they continue the trace of this span; none if the span is in no trace.
pub fn traceparent(span: &Span) -> Option<String> {
    let mut value = None;
    TraceContextPropagator::new().inject_context(&span.context(), &mut Capture(&mut value));
    value
}

/// Makes the span a child of the context. Only works before the span is first entered.
pub fn adopt(span: &Span, parent: Context) {
    if span.set_parent(parent).is_err() {
        tracing::debug!("Span is not traced, so it has no parent");
    }
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Traceparent<'a>(&'a str);

impl Extractor for Traceparent<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        (name == TRACEPARENT).then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

struct Capture<'a>(&'a mut Option<String>);

impl Injector for Capture<'_> {
    fn set(&mut self, name: &str, value: String) {
        if name == TRACEPARENT {
            *self.0 = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::info_span;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

    fn traced(work: impl FnOnce()) {
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
    }

    #[test]
    fn a_trace_goes_in_by_headers_through_a_span_and_out_again() {
        traced(|| {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, HeaderValue::from_static(GIVEN));
            let span = info_span!("review");
            adopt(&span, from_headers(&headers));
            let handed_on = traceparent(&span).expect("a traceparent");
            assert!(
                handed_on.starts_with(&format!("00-{TRACE_ID}-")),
                "{handed_on}"
            );
            assert_ne!(handed_on, GIVEN);
        });
    }

    #[test]
    fn what_is_no_traceparent_starts_a_new_trace() {
        for wrong in [
            "",
            "00-0-0-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "x",
        ] {
            assert!(from_traceparent(wrong).is_none(), "{wrong}");
        }
        assert!(from_traceparent(GIVEN).is_some());
        traced(|| {
            let span = info_span!("review");
            adopt(&span, from_headers(&HeaderMap::new()));
            let own = traceparent(&span).expect("a traceparent");
            assert!(!own.contains(TRACE_ID), "{own}");
        });
    }

    #[test]
    fn a_span_that_is_not_traced_has_nothing_to_hand_on() {
        assert_eq!(traceparent(&Span::none()), None);
    }
}
