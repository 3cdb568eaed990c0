//! A small OTLP capture: a real receiver over gRPC that keeps what it is sent, and questions about what that was. It is
//! served by the kit itself, over HTTP/2.

use std::{collections::BTreeMap, convert::Infallible, net::SocketAddr, time::Duration};

use ::http::Request;
use agents::kit::{
    http::{Drained, Limits, Metrics, Server, Transport},
    shutdown::{Trigger, channel},
};
use anyhow::{Context, Result, bail};
use hyper::body::Incoming;
use opentelemetry_proto::tonic::{
    collector::{
        metrics::v1::{
            ExportMetricsServiceRequest, ExportMetricsServiceResponse,
            metrics_service_server::{MetricsService, MetricsServiceServer},
        },
        trace::v1::{
            ExportTraceServiceRequest, ExportTraceServiceResponse,
            trace_service_server::{TraceService, TraceServiceServer},
        },
    },
    common::v1::{KeyValue, any_value::Value as Any},
    metrics::v1::{Metric, metric::Data, number_data_point},
    resource::v1::Resource,
    trace::v1::Span,
};
use tokio::{
    net::TcpListener,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tonic::metadata::{KeyAndValueRef, MetadataMap};
use tonic::{Response, Status, async_trait};
use tower::{Service, ServiceExt};

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// Something that was received.
#[derive(Debug)]
pub enum Received {
    /// A span, with who made it.
    Span(Resource, Span),
    /// A metric with all its series.
    Metric(Metric),
}

/// One export of metrics.
#[derive(Clone, Debug)]
pub struct Export {
    /// What was sent besides, as texts.
    pub headers: BTreeMap<String, String>,
    /// Who sent it.
    pub resource: BTreeMap<String, String>,
}

/// What one export says of a series: its labels as `name=value`, in order.
pub type Labels = Vec<String>;

/// A receiver that runs.
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    received: UnboundedReceiver<Received>,
    exports: watch::Receiver<Vec<Export>>,
    trigger: Trigger,
    serving: JoinHandle<Drained>,
}

impl Receiver {
    /// Starts one, without TLS.
    pub async fn start() -> Result<Self> {
        Self::start_over(Transport::Plain).await
    }

    /// Starts one.
    #[expect(clippy::disallowed_methods, reason = "the handle is kept and awaited")]
    pub async fn start_over(transport: Transport) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sender, received) = unbounded_channel();
        let server = Server {
            listener,
            transport,
            limits: Limits::default(),
            metrics: Metrics::default().of("otlp"),
        };
        let (exported, exports) = watch::channel(Vec::new());
        let keeper = Keeper { sender, exported };
        let traces = TraceServiceServer::new(keeper.clone());
        let metrics = MetricsServiceServer::new(keeper);
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (traces, metrics) = (traces.clone(), metrics.clone());
            async move {
                match request.uri().path().contains("TraceService") {
                    true => serve(traces, request).await,
                    false => serve(metrics, request).await,
                }
            }
        });
        let (trigger, shutdown) = channel();
        Ok(Self {
            address,
            received,
            exports,
            trigger,
            serving: tokio::spawn(server.serve(service, shutdown)),
        })
    }

    /// Its address as programs are told it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next thing that was sent.
    pub async fn next(&mut self) -> Result<Received> {
        let next = timeout(DEADLINE, self.received.recv()).await;
        next.context("nothing was sent in time")?
            .context("the receiver has ended")
    }

    /// The series of a metric, as the next export tells them; of a histogram, how often something was recorded.
    pub async fn series(&mut self, name: &str) -> Result<BTreeMap<Labels, f64>> {
        loop {
            if let Received::Metric(metric) = self.next().await?
                && metric.name == name
            {
                return Ok(read(&metric));
            }
        }
    }

    /// Waits until an export tells of a metric what is wanted.
    pub async fn until(
        &mut self,
        name: &str,
        wanted: impl Fn(&BTreeMap<Labels, f64>) -> bool,
    ) -> Result<BTreeMap<Labels, f64>> {
        let end = Instant::now() + DEADLINE;
        let mut last = BTreeMap::new();
        while let Ok(series) = timeout_at(end, self.series(name)).await {
            last = series?;
            if wanted(&last) {
                return Ok(last);
            }
        }
        bail!("{name} is not as wanted; last seen: {last:?}")
    }

    /// The exports of metrics so far, once there are as many as wanted.
    pub async fn exports(&mut self, wanted: usize) -> Result<Vec<Export>> {
        let enough = self.exports.wait_for(|all| all.len() >= wanted);
        let enough = timeout(DEADLINE, enough).await;
        let exports = enough.with_context(|| format!("fewer than {wanted} exports in time"))?;
        Ok(exports.context("the receiver has ended")?.clone())
    }

    /// Waits for a span.
    pub async fn span(&mut self, wanted: impl Fn(&Span) -> bool) -> Result<Span> {
        let end = Instant::now() + DEADLINE;
        while let Ok(received) = timeout_at(end, self.next()).await {
            if let Received::Span(_, span) = received?
                && wanted(&span)
            {
                return Ok(span);
            }
        }
        bail!("the span was not sent in time")
    }

    /// Ends the receiver; gives what was sent and not yet looked at.
    pub async fn end(mut self) -> Result<Vec<Received>> {
        self.trigger.start(Instant::now() + DEADLINE);
        self.serving.await?;
        let mut rest = Vec::new();
        while let Ok(received) = self.received.try_recv() {
            rest.push(received);
        }
        Ok(rest)
    }
}

/// The value of each series.
pub fn read(metric: &Metric) -> BTreeMap<Labels, f64> {
    let numbers = match &metric.data {
        Some(Data::Gauge(gauge)) => &gauge.data_points,
        Some(Data::Sum(sum)) => &sum.data_points,
        Some(Data::Histogram(histogram)) => {
            let points = histogram.data_points.iter();
            let counts = points.map(|point| (labels(&point.attributes), point.count as f64));
            return counts.collect();
        }
        Some(Data::ExponentialHistogram(_) | Data::Summary(_)) | None => return BTreeMap::new(),
    };
    let values = numbers.iter().map(|point| {
        let value = match point.value {
            Some(number_data_point::Value::AsInt(value)) => value as f64,
            Some(number_data_point::Value::AsDouble(value)) => value,
            None => f64::NAN,
        };
        (labels(&point.attributes), value)
    });
    values.collect()
}

fn labels(attributes: &[KeyValue]) -> Labels {
    let mut labels: Labels = attributes
        .iter()
        .map(|label| format!("{}={}", label.key, text(label)))
        .collect();
    labels.sort();
    labels
}

/// The value of an attribute, if it is a text.
pub fn text(attribute: &KeyValue) -> &str {
    match attribute
        .value
        .as_ref()
        .and_then(|value| value.value.as_ref())
    {
        Some(Any::StringValue(text)) => text,
        _ => "",
    }
}

/// Bytes as they are written in ids.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(headers: &MetadataMap) -> BTreeMap<String, String> {
    let all = headers.iter().filter_map(|header| match header {
        KeyAndValueRef::Ascii(name, value) => {
            Some((name.to_string(), value.to_str().ok()?.to_owned()))
        }
        KeyAndValueRef::Binary(..) => None,
    });
    all.collect()
}

async fn serve<S>(service: S, request: Request<Incoming>) -> Result<S::Response, Infallible>
where
    S: Service<Request<Incoming>, Error = Infallible>,
{
    service.oneshot(request).await
}

#[derive(Clone)]
struct Keeper {
    sender: UnboundedSender<Received>,
    exported: watch::Sender<Vec<Export>>,
}

#[async_trait]
impl TraceService for Keeper {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for part in request.into_inner().resource_spans {
            let resource = part.resource.unwrap_or_default();
            for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                drop(self.sender.send(Received::Span(resource.clone(), span)));
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[async_trait]
impl MetricsService for Keeper {
    async fn export(
        &self,
        request: tonic::Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let headers = texts(request.metadata());
        let parts = request.into_inner().resource_metrics.into_iter();
        let parts = parts.inspect(|part| {
            let attributes = part.resource.iter().flat_map(|who| &who.attributes);
            let resource = attributes.map(|one| (one.key.clone(), text(one).to_owned()));
            let (headers, resource) = (headers.clone(), resource.collect());
            let export = Export { headers, resource };
            self.exported.send_modify(|all| all.push(export));
        });
        let scopes = parts.flat_map(|part| part.scope_metrics);
        for metric in scopes.flat_map(|scope| scope.metrics) {
            drop(self.sender.send(Received::Metric(metric)));
        }
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}
