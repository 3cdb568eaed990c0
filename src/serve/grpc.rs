//! The same operations over gRPC. A call becomes the request that it would be over HTTP, so who may do what is decided in
//! one place, and so is what is right.
//!
//! [`schema`] has the messages, from the one table of operations, [`codec`] reads and writes them, [`ask`] turns a call into
//! a request, [`tell`] an answer into messages. Health is open to anyone; who wants the schema must be known.

mod ask;
mod codec;
pub mod schema;
mod tell;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use http::{Request, Response};
use hyper::body::Incoming;
use prost_reflect::DynamicMessage;
use tokio::time::{Instant, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::server::Grpc as Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::util::BoxCloneSyncService;
use tower::{Service, service_fn};

use super::operation::{Gives, Operation};
use super::service::{Api, BODY};
use super::state::State;
use crate::kit::readiness::Readiness;
use codec::Messages;
use schema::{SERVICE, Schema};

/// Time between two looks at whether the program is ready.
const LOOK: Duration = Duration::from_secs(1);

/// Most bytes of a message: a body, and room for the names around it.
const MESSAGE: usize = BODY + 64 * 1024;

type Part = BoxCloneSyncService<Request<Incoming>, Response<Body>, Infallible>;

/// The API over gRPC as a service.
#[derive(Clone)]
pub(super) struct Grpc {
    api: Api,
    state: Arc<State>,
    schema: Arc<Schema>,
    health: Part,
    reflection: [Part; 2],
}

/// Why it cannot be served.
type Unfit = Box<dyn std::error::Error + Send + Sync>;

impl Grpc {
    /// The service, and what tells how it stands, which the caller must keep up to date.
    pub(super) fn new(state: Arc<State>) -> Result<(Self, HealthReporter), Unfit> {
        let (reporter, health) = tonic_health::server::health_reporter();
        let schema = Schema::new()?;
        let builder = || {
            tonic_reflection::server::Builder::configure()
                .register_file_descriptor_set(schema.files())
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let reflection = [
            Part::new(builder().build_v1()?),
            Part::new(builder().build_v1alpha()?),
        ];
        let grpc = Self {
            api: Api::new(Arc::clone(&state)),
            state,
            health: Part::new(health),
            reflection,
            schema: Arc::new(schema),
        };
        Ok((grpc, reporter))
    }

    async fn handle(mut self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let (service, method) = path
            .trim_start_matches('/')
            .split_once('/')
            .unwrap_or_default();
        if service == "grpc.health.v1.Health" {
            return answered(self.health.call(request).await);
        }
        // Also who asks for what there is not must be known first, and before a message is read.
        let begun = Instant::now();
        if let Err(fault) = self.state.gatekeeper.who(request.headers()).await {
            let asked = self.schema.operation(method).filter(|_| service == SERVICE);
            self.api.turned_away(asked, begun, &fault);
            return tell::refused(fault).into_http();
        }
        let [current, earlier] = &mut self.reflection;
        match service {
            "grpc.reflection.v1.ServerReflection" => answered(current.call(request).await),
            "grpc.reflection.v1alpha.ServerReflection" => answered(earlier.call(request).await),
            SERVICE => match self.schema.operation(method) {
                Some(operation) => self.carry_out(operation, request).await,
                None => unknown(),
            },
            _ => unknown(),
        }
    }

    async fn carry_out(
        self,
        operation: &'static Operation,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let Some(messages) = Messages::of(&self.schema, operation) else {
            return unknown();
        };
        let mut server = Server::new(messages).max_decoding_message_size(MESSAGE);
        match operation.gives {
            Gives::Json(_) | Gives::Any => {
                let call = move |message| self.clone().once(operation, message).boxed();
                server.unary(service_fn(call), request).await
            }
            Gives::Text | Gives::Events => {
                let call = move |message| self.clone().stream(operation, message).boxed();
                server.server_streaming(service_fn(call), request).await
            }
        }
    }

    async fn once(
        self,
        operation: &'static Operation,
        message: tonic::Request<DynamicMessage>,
    ) -> Result<tonic::Response<DynamicMessage>, Status> {
        let asked = ask::asked(operation, message)?;
        let answer = self.api.call(asked).await.map_err(tell::refused)?;
        tell::whole(&self.schema, answer).await
    }

    async fn stream(
        self,
        operation: &'static Operation,
        message: tonic::Request<DynamicMessage>,
    ) -> Result<tonic::Response<BoxStream<'static, Result<DynamicMessage, Status>>>, Status> {
        let asked = ask::asked(operation, message)?;
        let answer = self.api.call(asked).await.map_err(tell::refused)?;
        Ok(tonic::Response::new(match operation.gives {
            Gives::Events => tell::events(&self.schema, answer),
            Gives::Text | Gives::Json(_) | Gives::Any => tell::pieces(&self.schema, answer),
        }))
    }
}

/// Keeps what health says up to date.
pub(super) async fn tell_health(reporter: HealthReporter, readiness: Readiness) {
    loop {
        let is_ready = readiness.gates().iter().all(|gate| gate.closed.is_none());
        let status = match is_ready {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        for service in ["", SERVICE] {
            reporter.set_service_status(service, status).await;
        }
        sleep(LOOK).await;
    }
}

fn answered(given: Result<Response<Body>, Infallible>) -> Response<Body> {
    given.unwrap_or_else(|never| match never {})
}

fn unknown() -> Response<Body> {
    Status::unimplemented("there is no such method; server reflection lists all of them")
        .into_http()
}

impl Service<Request<Incoming>> for Grpc {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.clone().handle(request).map(Ok).boxed()
    }
}
