//! W3C trace context across process boundaries: in by headers and annotations, out as text for annotations and
//! environment variables.

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::{SpanContext, TraceContextExt, TraceFlags},
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{IdGenerator, RandomIdGenerator},
};
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

/// What to hand to others so that they continue the trace that the caller is in; none if it is in no trace.
pub fn traceparent() -> Option<String> {
    let mut value = None;
    Context::map_current(|context| {
        TraceContextPropagator::new().inject_context(context, &mut Capture(&mut value));
    });
    value
}

/// A context within another one that has ids and no span: others can refer to it, and nobody records it. A trace that
/// begins here is one that others should record.
pub fn named_within(parent: &Context) -> Context {
    let ids = RandomIdGenerator::default();
    let span = parent.span();
    let outer = span.span_context();
    let (trace, flags) = match outer.is_valid() {
        true => (outer.trace_id(), outer.trace_flags()),
        false => (ids.new_trace_id(), TraceFlags::SAMPLED),
    };
    let state = outer.trace_state().clone();
    parent.with_remote_span_context(SpanContext::new(
        trace,
        ids.new_span_id(),
        flags,
        false,
        state,
    ))
}

/// Where in a trace work is done, to be taken along to another thread.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    span: Span,
    context: Context,
}

impl Whereabouts {
    /// Those of the caller.
    pub fn here() -> Self {
        Self {
            span: Span::current(),
            context: Context::current(),
        }
    }

    /// Does work there.
    pub fn carry_on<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.in_scope(|| {
            let _there = self.context.clone().attach();
            work()
        })
    }
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
            let handed_on = span.in_scope(traceparent).expect("a traceparent");
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
            let own = span.in_scope(traceparent).expect("a traceparent");
            assert!(!own.contains(TRACE_ID), "{own}");
        });
    }

    #[test]
    fn a_span_that_is_not_traced_has_nothing_to_hand_on() {
        assert_eq!(Span::none().in_scope(traceparent), None);
    }

    #[test]
    fn what_has_ids_and_no_span_continues_a_trace_all_the_same() {
        let unsampled = GIVEN.replace("-01", "-00");
        for (given, trace, flags) in [
            (Some(GIVEN), Some(TRACE_ID), "-01"),
            (Some(&*unsampled), Some(TRACE_ID), "-00"),
            (None, None, "-01"),
        ] {
            let parent = given.and_then(from_traceparent).unwrap_or_default();
            let handed_on = || {
                let _here = named_within(&parent).attach();
                Whereabouts::here().carry_on(traceparent).expect("ids")
            };
            let (first, second) = (handed_on(), handed_on());
            assert_ne!(first, second, "each has an id of its own");
            assert!(trace.is_none_or(|trace| first.contains(trace)), "{first}");
            assert!(first.ends_with(flags), "{first}");
        }
        assert_eq!(traceparent(), None, "nothing is left behind");
    }
}
