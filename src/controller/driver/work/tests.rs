use std::collections::BTreeMap;
use std::convert::Infallible;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;
use crate::api::condition::Condition;
use crate::api::contract::metric;
use crate::api::kind::Kind;
use crate::api::kinds::{Signal, SignalStatus};
use crate::controller::agent_run::Deprecated;
use crate::controller::cache::Shelf;
use crate::controller::context::Clock;
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::stand::failed;
use crate::controller::driver::untold::Untold;
use crate::controller::egress::Egress;
use crate::controller::metrics::Metrics;
use crate::controller::policy::Rules;
use crate::controller::start::Fit;
use crate::events::{self, Reporter};
use crate::kit::fence::Fence;
use crate::kit::shutdown::channel;

/// Keeps the counts of each export, by name and kind.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl PushMetricExporter for Counts {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let mut counts = self.0.lock().unwrap();
        let scopes = metrics.scope_metrics();
        for metric in scopes.flat_map(|scope| scope.metrics()) {
            if let AggregatedMetrics::U64(MetricData::Sum(sum)) = metric.data() {
                let all = sum.data_points().map(|point| point.value()).sum();
                counts.insert(metric.name().to_owned(), all);
            }
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// Panics over `bad`, and says which others it looked at.
struct Nervous {
    shelf: Shelf<Signal>,
    looked: UnboundedSender<String>,
}

impl Reconciler for Nervous {
    const KIND: Kind = Kind::Signal;
    type Object = Signal;
    type Status = SignalStatus;
    type Observed = ();
    type Action = ();

    fn shelf(&self) -> &Shelf<Signal> {
        &self.shelf
    }

    fn status(object: &Signal) -> Option<&SignalStatus> {
        object.status.as_ref()
    }

    fn object((): &()) -> Option<&Signal> {
        None
    }

    async fn gather(&self, key: &Key, _: Timestamp) -> Result<(), Fault> {
        assert_ne!(key.name, "bad", "as it should be in this test");
        self.looked.send(key.name.clone()).unwrap();
        Ok(())
    }

    fn plan(&self, (): &()) -> Plan<(), SignalStatus> {
        Plan::idle(Next::Wait)
    }

    async fn act(&self, (): &(), (): &()) -> Result<bool, Fault> {
        Ok(false)
    }

    fn failed(&self, signal: &Signal, fault: &Fault) -> Option<Standing<SignalStatus>> {
        failed(signal, fault)
    }
}

/// Takes everything, and says what it was sent: first the line of the request, then its body.
fn agreeable(sent: UnboundedSender<(String, Value)>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let sent = sent.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let answer = match head.method.as_str() {
                "PATCH" => {
                    let mut signal = serde_json::to_value(signal()).unwrap();
                    let patch: json_patch::Patch = serde_json::from_value(body.clone()).unwrap();
                    json_patch::patch(&mut signal, &patch).unwrap();
                    signal
                }
                _ => body.clone(),
            };
            let line = format!("{} {}", head.method, head.uri.path());
            sent.send((line, body)).unwrap();
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, Infallible>(Response::new(answer))
        }
    });
    Client::new(service, "here")
}

fn signal() -> Signal {
    let meta = json!({"name": "bad", "namespace": "here", "uid": "u", "resourceVersion": "1", "generation": 1});
    serde_json::from_value(json!({"metadata": meta, "spec": {"channel": "c"}, "status": null}))
        .unwrap()
}

fn context(metrics: Metrics, client: Client) -> (Context, events::Writer) {
    let config = events::Config {
        enabled: true,
        reporter: Reporter::new("test", "test"),
        limits: events::Limits::new(1),
    };
    let told = events::Metrics::register(&mut Registry::default());
    let (emitter, writer) = events::new(client.clone(), config, told);
    let context = Context {
        client,
        clock: Clock::default(),
        egress: Egress::closed(),
        metrics,
        leadership: Fence::always(),
        fit: Fit::known(),
        emitter,
        untold: Untold::default(),
        rules: Rules::default(),
        deprecated: Deprecated::default(),
    };
    (context, writer)
}

#[tokio::test]
async fn a_reconcile_that_panics_is_counted_and_the_others_go_on() {
    let counts = Counts::default();
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(counts.clone())
        .build();
    let metrics = Metrics::new(&provider.meter("test"));
    let (looked, mut looks) = unbounded_channel();
    let nervous = Arc::new(Nervous {
        shelf: Shelf::default(),
        looked,
    });
    let work = Work::new("signals", vec![Scope::Namespace("here".to_owned())]);
    for name in ["bad", "good"] {
        work.add(Key::new("here", name), Priority::Create);
    }
    // The second is taken up when the end of the first has been noted.
    let pace = Pace {
        workers: 1,
        sweep: NEVER,
    };
    let (trigger, shutdown) = channel();
    let (sent, _) = unbounded_channel();
    let (context, _) = context(metrics, agreeable(sent));
    let working = run(nervous, Arc::new(context), work, pace, shutdown);
    let watching = async {
        let looked = timeout(Duration::from_secs(60), looks.recv()).await;
        trigger.start(Instant::now() + Duration::from_secs(1));
        looked.unwrap()
    };
    let ((), looked) = tokio::join!(working, watching);
    assert_eq!(looked.as_deref(), Some("good"));
    provider.force_flush().unwrap();
    let counts = counts.0.lock().unwrap();
    assert_eq!(counts.get(metric::RECONCILE_PANICS), Some(&1));
    assert_eq!(counts.get(metric::RECONCILES), Some(&2));
}

#[tokio::test]
async fn a_reconcile_that_panics_is_shown_on_its_object() {
    let (looked, _looks) = unbounded_channel();
    let shelf = Shelf::default();
    shelf.learn(signal());
    let nervous = Arc::new(Nervous { shelf, looked });
    let (sent, mut written) = unbounded_channel();
    let metrics = Metrics::new(&opentelemetry::global::meter("test"));
    let (context, writer) = context(metrics, agreeable(sent));
    let (stop, stopped) = oneshot::channel();
    let telling = writer.run(async { stopped.await.unwrap() });
    let story = async {
        let tried = attempt(nervous, Arc::new(context), Key::new("here", "bad")).await;
        assert_eq!(tried.map_err(|fault| fault.class), Err(Class::Panic));
        let mut next = async || timeout(Duration::from_secs(60), written.recv()).await;
        let both = (next().await, next().await);
        stop.send(Instant::now()).unwrap();
        both
    };
    let ((), (first, second)) = tokio::join!(telling, story);
    let (line, patch) = first.unwrap().unwrap();
    assert!(
        line.starts_with("PATCH ") && line.ends_with("/signals/bad/status"),
        "{line}"
    );
    let conditions = patch.as_array().unwrap().last().unwrap()["value"]["conditions"].clone();
    let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap();
    let warning = conditions
        .iter()
        .find(|entry| entry.type_ == "Warning")
        .unwrap();
    let says = "could not reconcile the object: the controller has a defect and panicked; its log says more";
    assert_eq!(warning.reason.as_deref(), Some("ReconcileFailed"));
    assert_eq!(warning.message.as_deref(), Some(says));
    let (line, event) = second.unwrap().unwrap();
    assert!(
        line.starts_with("POST ") && line.ends_with("/events"),
        "{line}"
    );
    let told = (&event["reason"], &event["type"], &event["note"]);
    assert_eq!(
        told,
        (&json!("ReconcileFailed"), &json!("Warning"), &json!(says))
    );
}
