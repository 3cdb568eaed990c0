use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use prometheus_client::registry::Registry;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::*;
use crate::api::contract::metric;
use crate::api::kind::Kind;
use crate::api::kinds::{Signal, SignalStatus};
use crate::controller::agent_run::Deprecated;
use crate::controller::cache::Shelf;
use crate::controller::context::Clock;
use crate::controller::driver::plan::{Plan, Standing};
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

    fn failed(&self, _: &Signal, _: &Fault) -> Option<Standing<SignalStatus>> {
        None
    }
}

fn context(metrics: Metrics) -> Context {
    let nobody = tower::service_fn(|_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(std::io::Error::other("nobody is there"))
    });
    let client = Client::new(nobody, "here");
    let config = events::Config {
        enabled: false,
        reporter: Reporter::new("test", "test"),
        limits: events::Limits::new(1),
    };
    let told = events::Metrics::register(&mut Registry::default());
    let (emitter, _) = events::new(client.clone(), config, told);
    Context {
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
    }
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
    let working = run(nervous, Arc::new(context(metrics)), work, pace, shutdown);
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
    assert_eq!(counts.get(metric::RECONCILES), Some(&1));
}
