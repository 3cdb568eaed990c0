//! A client that learns the methods and messages from the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost_reflect::prost::Message;
use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

const SERVICE: &str = "agents.v1.ControlPlane";
const PATIENCE: Duration = Duration::from_secs(60);

type Way = BoxCloneSyncService<Request<Body>, Response<Incoming>, hyper::Error>;

/// A connection, and what is known of the other side.
#[derive(Clone)]
pub(super) struct Client {
    way: Way,
    origin: Uri,
    pool: DescriptorPool,
    /// Ends with the last of those who use it.
    _connection: Arc<JoinSet<hyper::Result<()>>>,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let (sender, connection): (SendRequest<Body>, _) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        let way = service_fn(move |request| {
            let mut sender = sender.clone();
            async move {
                sender.ready().await?;
                sender.send_request(request).await
            }
        });
        Ok(Self {
            way: Way::new(way),
            origin: format!("http://{address}").parse()?,
            pool: DescriptorPool::new(),
            _connection: Arc::new(tasks),
        })
    }

    /// Asks the server what it is.
    pub(super) async fn learn(&mut self, token: &str) -> Result<()> {
        let mut client = ServerReflectionClient::with_origin(self.way.clone(), self.origin.clone());
        let mut files = Vec::new();
        for wanted in [
            MessageRequest::FileByFilename("google/protobuf/struct.proto".to_owned()),
            MessageRequest::FileContainingSymbol(SERVICE.to_owned()),
        ] {
            let ask = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(wanted),
            };
            let mut request = tonic::Request::new(futures::stream::iter([ask]));
            sign(request.metadata_mut(), Some(token))?;
            let mut answers = client.server_reflection_info(request).await?.into_inner();
            let answer = answers.message().await?.context("an answer")?;
            let Some(MessageResponse::FileDescriptorResponse(found)) = answer.message_response
            else {
                bail!("no files, but {answer:?}");
            };
            for file in found.file_descriptor_proto {
                files.push(FileDescriptorProto::decode(&*file)?);
            }
        }
        files.dedup_by(|one, other| one.name == other.name);
        self.pool = DescriptorPool::new();
        self.pool.add_file_descriptor_protos(files)?;
        Ok(())
    }

    pub(super) fn methods(&self) -> Result<Vec<String>> {
        let service = self
            .pool
            .get_service_by_name(SERVICE)
            .context("the service")?;
        Ok(service
            .methods()
            .map(|method| method.name().to_owned())
            .collect())
    }

    pub(super) async fn health(&mut self, service: &str) -> Result<i32> {
        let mut client = HealthClient::with_origin(self.way.clone(), self.origin.clone());
        let service = service.to_owned();
        let answer = client.check(HealthCheckRequest { service }).await?;
        Ok(answer.into_inner().status)
    }

    fn method(&self, name: &str) -> Option<MethodDescriptor> {
        let service = self.pool.get_service_by_name(SERVICE)?;
        service.methods().find(|method| method.name() == name)
    }

    /// The answer to a method that has one.
    pub(super) async fn call(
        &self,
        method: &str,
        fields: &Value,
        token: Option<&str>,
    ) -> Result<Value, Status> {
        self.first(method, fields, token).await
    }

    /// The first message of an answer.
    pub(super) async fn first(
        &self,
        method: &str,
        fields: &Value,
        token: Option<&str>,
    ) -> Result<Value, Status> {
        let mut answers = self.ask(method, fields, token).await?;
        let first = timeout(PATIENCE, answers.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("nothing came"))??;
        let first = first.ok_or_else(|| Status::data_loss("nothing came"))?;
        serde_json::to_value(first).map_err(|error| Status::data_loss(error.to_string()))
    }

    /// A stream that stays open.
    pub(super) async fn open(&self, method: &str, fields: &Value, token: &str) -> Result<Events> {
        Ok(Events(self.ask(method, fields, Some(token)).await?))
    }

    async fn ask(
        &self,
        method: &str,
        fields: &Value,
        token: Option<&str>,
    ) -> Result<Streaming<DynamicMessage>, Status> {
        let unknown = || Status::internal(format!("{method} is not known"));
        let known = self.method(method).ok_or_else(unknown)?;
        let message = DynamicMessage::deserialize(known.input(), fields);
        let message = message.map_err(|error| Status::internal(error.to_string()))?;
        let path = format!("/{SERVICE}/{method}");
        self.send(&path, message, known.output(), token).await
    }

    /// A method by its path, without knowing it.
    pub(super) async fn raw(&self, path: &str, token: Option<&str>) -> Result<(), Status> {
        let json = self.pool.get_message_by_name("google.protobuf.Struct");
        let json = match json {
            Some(json) => json,
            None => DescriptorPool::global()
                .get_message_by_name("google.protobuf.Struct")
                .ok_or_else(|| Status::internal("no messages"))?,
        };
        let message = DynamicMessage::new(json.clone());
        let mut answers = self.send(&format!("/{path}"), message, json, token).await?;
        answers.message().await.map(drop)
    }

    async fn send(
        &self,
        path: &str,
        message: DynamicMessage,
        answer: MessageDescriptor,
        token: Option<&str>,
    ) -> Result<Streaming<DynamicMessage>, Status> {
        let mut client = Grpc::with_origin(self.way.clone(), self.origin.clone());
        let mut request = tonic::Request::new(message);
        sign(request.metadata_mut(), token).map_err(|error| Status::internal(error.to_string()))?;
        let path = path.parse().map_err(|_| Status::internal("no path"))?;
        let answers = client
            .server_streaming(request, path, Dynamic(answer))
            .await?;
        Ok(answers.into_inner())
    }
}

fn sign(metadata: &mut tonic::metadata::MetadataMap, token: Option<&str>) -> Result<()> {
    if let Some(token) = token {
        metadata.insert("authorization", format!("Bearer {token}").parse()?);
    }
    Ok(())
}

/// Messages as they come.
pub(super) struct Events(Streaming<DynamicMessage>);

impl Events {
    pub(super) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let looking = async {
            loop {
                let next = self.0.message().await?.context("more events")?;
                let next = serde_json::to_value(next)?;
                if wanted(&next) {
                    return Ok(next);
                }
            }
        };
        timeout(PATIENCE, looking)
            .await
            .context("the event never came")?
    }
}

/// Messages whose fields are known by a descriptor.
#[derive(Clone)]
struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let written = message.encode(out);
        written.map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let read = DynamicMessage::decode(self.0.clone(), source);
        read.map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
