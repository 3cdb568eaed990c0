//! A real OTLP receiver over gRPC that keeps what it is sent. It is served by the kit itself, over HTTP/2.

use std::{convert::Infallible, net::SocketAddr};

use ::http::Request;
use agents::kit::{
    http::{Drained, Limits, Metrics, Server, Transport},
    shutdown::{Trigger, channel},
};
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
    metrics::v1::Metric,
    resource::v1::Resource,
    trace::v1::Span,
};
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tonic::{Response, Status, async_trait};
use tower::{Service, ServiceExt};

use super::client::DEADLINE;

/// Something that was received.
#[derive(Debug)]
pub(crate) enum Received {
    Span(Resource, Span),
    Metric(Metric),
}

/// A receiver that runs.
pub(crate) struct Receiver {
    pub(super) address: SocketAddr,
    received: UnboundedReceiver<Received>,
    trigger: Trigger,
    serving: JoinHandle<Drained>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::start_over(Transport::Plain).await
    }

    #[expect(clippy::disallowed_methods, reason = "the handle is kept and awaited")]
    pub(super) async fn start_over(transport: Transport) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, received) = unbounded_channel();
        let server = Server {
            listener,
            transport,
            limits: Limits::default(),
            metrics: Metrics::default().of("otlp"),
        };
        let traces = TraceServiceServer::new(Keeper(sender.clone()));
        let metrics = MetricsServiceServer::new(Keeper(sender));
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
        Self {
            address,
            received,
            trigger,
            serving: tokio::spawn(server.serve(service, shutdown)),
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next thing that was sent.
    pub(crate) async fn next(&mut self) -> Received {
        let next = timeout(DEADLINE, self.received.recv()).await;
        next.expect("telemetry in time")
            .expect("a receiver that runs")
    }

    /// Ends the receiver; gives what was sent and not yet looked at.
    pub(crate) async fn end(mut self) -> Vec<Received> {
        self.trigger.start(Instant::now() + DEADLINE);
        self.serving.await.expect("no panic");
        let mut rest = Vec::new();
        while let Ok(received) = self.received.try_recv() {
            rest.push(received);
        }
        rest
    }
}

async fn serve<S>(service: S, request: Request<Incoming>) -> Result<S::Response, Infallible>
where
    S: Service<Request<Incoming>, Error = Infallible>,
{
    service.oneshot(request).await
}

#[derive(Clone)]
struct Keeper(UnboundedSender<Received>);

#[async_trait]
impl TraceService for Keeper {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for part in request.into_inner().resource_spans {
            let resource = part.resource.unwrap_or_default();
            for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                drop(self.0.send(Received::Span(resource.clone(), span)));
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
        let parts = request.into_inner().resource_metrics.into_iter();
        let scopes = parts.flat_map(|part| part.scope_metrics);
        for metric in scopes.flat_map(|scope| scope.metrics) {
            drop(self.0.send(Received::Metric(metric)));
        }
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}
