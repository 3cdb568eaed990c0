//! A sidecar that runs, and senders of OTLP to it.

use std::{ffi::OsStr, net::SocketAddr};

use agents_sidecar::args::variable;
use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, task::JoinSet};

use crate::{
    cpu::{Side, beside},
    points::{Sort, json, request},
    program::{Program, free_address},
};

const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

/// A sidecar that runs on the core of those who serve.
pub struct Sidecar {
    /// The program.
    pub program: Program,
    grpc: SocketAddr,
    /// Where OTLP comes in over HTTP.
    pub http: SocketAddr,
}

impl Sidecar {
    /// Starts one with these settings, which follows nothing.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let (grpc, http) = (free_address()?, free_address()?);
        let [grpc_text, http_text] = [grpc, http].map(|address| address.to_string());
        let mut variables = vec![
            (variable::OTLP_GRPC_LISTEN, OsStr::new(&grpc_text)),
            (variable::OTLP_HTTP_LISTEN, OsStr::new(&http_text)),
            (variable::QUEUE_STREAMS, OsStr::new("[]")),
            (variable::JOBS, OsStr::new("off")),
        ];
        variables.extend(
            settings
                .iter()
                .map(|&(name, value)| (name, OsStr::new(value))),
        );
        let program = beside(Side::Serving, || {
            Program::start("agents-sidecar", &[], &variables)
        })?;
        Ok(Self {
            program,
            grpc,
            http,
        })
    }
}

/// How points are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As protobuf over HTTP/1.1.
    Http,
    /// Over gRPC.
    Grpc,
    /// As JSON over HTTP/1.1.
    Json,
}

impl Way {
    /// As tables say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP, protobuf",
            Self::Grpc => "gRPC",
            Self::Json => "HTTP, JSON",
        }
    }

    /// A request with this many points, each of a series of its own, numbered from `first` on. All have the same time: what a
    /// sender repeats is taken.
    pub fn body(self, sort: Sort, first: usize, points: usize) -> Bytes {
        const TIME: u64 = 1_700_000_000_000_000_000;
        match self {
            Self::Http => request(sort, first, points, TIME).into(),
            Self::Json => json(first, points, TIME).into(),
            Self::Grpc => {
                let message = request(sort, first, points, TIME);
                let length = u32::try_from(message.len())
                    .unwrap_or(u32::MAX)
                    .to_be_bytes();
                [&[0][..], &length, &message].concat().into()
            }
        }
    }
}

/// What became of a request that was answered with success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// All of it was taken.
    All,
    /// Some points were refused.
    Partial,
}

/// A connection over which requests are sent one after the other.
pub struct Sender {
    wire: Wire,
    way: Way,
    _connection: JoinSet<()>,
}

enum Wire {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// Drives a connection as long as the value lives.
pub fn kept<E>(connection: impl Future<Output = Result<(), E>> + Send + 'static) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    // How it ends is seen by whoever sends.
    tasks.spawn(async {
        let _ = connection.await;
    });
    tasks
}

impl Sender {
    /// Connects.
    pub async fn connect(sidecar: &Sidecar, way: Way) -> Result<Self> {
        let address = match way {
            Way::Grpc => sidecar.grpc,
            Way::Http | Way::Json => sidecar.http,
        };
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = TokioIo::new(stream);
        let (wire, connection) = match way {
            Way::Grpc => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                (Wire::Two(sender), kept(connection))
            }
            Way::Http | Way::Json => {
                let (sender, connection) = http1::handshake(stream).await?;
                (Wire::One(sender), kept(connection))
            }
        };
        Ok(Self {
            wire,
            way,
            _connection: connection,
        })
    }

    /// Sends a request, all of whose points must be taken.
    pub async fn send(&mut self, body: Bytes) -> Result<()> {
        let told = self.offer(body).await?;
        ensure!(told == Told::All, "not all was taken");
        Ok(())
    }

    /// Sends a request, some of whose points may be refused.
    pub async fn offer(&mut self, body: Bytes) -> Result<Told> {
        let (kind, path) = match self.way {
            Way::Grpc => ("application/grpc", format!("http://bench{METRICS}")),
            Way::Json => ("application/json", "/v1/metrics".to_owned()),
            Way::Http => ("application/x-protobuf", "/v1/metrics".to_owned()),
        };
        let request = Request::post(path)
            .header("content-type", kind)
            .header("host", "bench");
        let request = request.body(Full::new(body))?;
        let response = match &mut self.wire {
            Wire::One(sender) => sender.send_request(request).await?,
            Wire::Two(sender) => sender.send_request(request).await?,
        };
        let status = response.status();
        #[expect(
            clippy::disallowed_methods,
            reason = "an answer of a program of ours, a few bytes long"
        )]
        let answer = response.into_body().collect().await?;
        let code = answer
            .trailers()
            .and_then(|all| all.get("grpc-status").cloned());
        let answer = answer.to_bytes();
        let is_good = self.way != Way::Grpc || code.is_some_and(|code| code == "0");
        if !status.is_success() || !is_good {
            let said = String::from_utf8_lossy(&answer);
            bail!("the request was refused: {status} {said}");
        }
        let is_whole = match self.way {
            Way::Json => &*answer == b"{}",
            Way::Http => answer.is_empty(),
            Way::Grpc => answer.len() == 5,
        };
        Ok(if is_whole { Told::All } else { Told::Partial })
    }
}
