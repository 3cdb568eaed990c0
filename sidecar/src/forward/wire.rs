//! The connection to the target, which is opened when it is needed and kept as long as it works.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    Item, Protocol, To,
    verdict::{Verdict, of_grpc, of_http},
};
use crate::{lock::lock, otlp::answer::Encoding};

/// Time to find the target, to connect, and to agree on TLS; a try may have less.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of an answer; a partial success has a sentence in it.
const ANSWER: usize = 64 * 1024;
/// Who sends.
const USER_AGENT: &str = concat!("agents-sidecar/", env!("CARGO_PKG_VERSION"));

/// What went wrong on the way; another try may help.
type Broken = Box<dyn std::error::Error + Send + Sync>;

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// Speaks to the target.
pub(super) struct Client {
    to: To,
    tls: Option<Arc<ClientConfig>>,
    open: Option<Open>,
}

/// A connection, and what moves its bytes.
struct Open {
    sender: Sender,
    tasks: Tasks,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// The tasks of one connection; they end with it.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Tasks
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, task: F) {
        let mut tasks = lock(&self.0);
        while tasks.try_join_next().is_some() {} // what has ended is not kept
        tasks.spawn(async {
            // How it ended is seen by whoever sends.
            drop(task.await);
        });
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // By hand: the tasks hold what holds them.
        lock(&self.tasks.0).abort_all();
    }
}

impl Client {
    pub(super) fn new(to: To, tls: Option<Arc<ClientConfig>>) -> Self {
        Self {
            to,
            tls,
            open: None,
        }
    }

    /// One try. A connection on which it was late or broke is not used again.
    pub(super) async fn send(&mut self, item: &Item) -> Verdict {
        match timeout(self.to.timeout, self.exchange(item)).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => {
                tracing::debug!(error = %error, "Forwarding broke");
                self.open = None;
                Verdict::Later(None)
            }
            Err(_) => {
                self.open = None;
                Verdict::Later(None)
            }
        }
    }

    async fn exchange(&mut self, item: &Item) -> Result<Verdict, Broken> {
        let request = self.request(item)?;
        let open = match self.open.take_if(|open| !open.is_closed()) {
            Some(open) => self.open.insert(open),
            None => {
                let wire = timeout(CONNECT, self.connect()).await??;
                self.open.insert(handshake(wire, self.to.protocol).await?)
            }
        };
        let response = match &mut open.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        judge(response, self.to.protocol).await
    }

    fn request(&self, item: &Item) -> Result<Request<Full<Bytes>>, Broken> {
        let To {
            target, headers, ..
        } = &self.to;
        let authority = target.authority();
        let (uri, kind) = match self.to.protocol {
            Protocol::Grpc => {
                let scheme = if target.is_tls() { "https" } else { "http" };
                let method = item.signal.method();
                (
                    format!("{scheme}://{authority}{method}"),
                    "application/grpc",
                )
            }
            Protocol::Http => {
                let base = target.path().trim_end_matches('/');
                let kind = match item.encoding {
                    Encoding::Protobuf => "application/x-protobuf",
                    Encoding::Json => "application/json",
                };
                (format!("{base}{}", item.signal.path()), kind)
            }
        };
        let mut request = Request::post(uri.parse::<Uri>()?).body(Full::new(item.body.clone()))?;
        let told = request.headers_mut();
        if let Some(headers) = headers {
            told.extend(headers.0.clone());
        }
        told.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        told.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        match self.to.protocol {
            Protocol::Grpc => told.insert(header::TE, HeaderValue::from_static("trailers")),
            Protocol::Http => told.insert(header::HOST, HeaderValue::try_from(authority)?),
        };
        Ok(request)
    }

    async fn connect(&self) -> Result<Box<dyn Wire>, Broken> {
        let target = &self.to.target;
        let wire = TcpStream::connect((target.host(), target.port())).await?;
        wire.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(wire));
        };
        let mut tls = ClientConfig::clone(tls);
        tls.alpn_protocols = match self.to.protocol {
            Protocol::Grpc => vec![b"h2".to_vec()],
            Protocol::Http => vec![b"http/1.1".to_vec()],
        };
        let name = ServerName::try_from(target.host().to_owned())?;
        let wire = TlsConnector::from(Arc::new(tls))
            .connect(name, wire)
            .await?;
        Ok(Box::new(wire))
    }
}

impl Open {
    fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::One(sender) => sender.is_closed(),
            Sender::Two(sender) => sender.is_closed(),
        }
    }
}

async fn handshake(wire: Box<dyn Wire>, protocol: Protocol) -> Result<Open, Broken> {
    let tasks = Tasks::default();
    let wire = TokioIo::new(wire);
    let sender = match protocol {
        Protocol::Grpc => {
            let (sender, connection) = http2::handshake(tasks.clone(), wire).await?;
            tasks.execute(connection);
            Sender::Two(sender)
        }
        Protocol::Http => {
            let (sender, connection) = http1::handshake(wire).await?;
            tasks.execute(connection);
            Sender::One(sender)
        }
    };
    Ok(Open { sender, tasks })
}

/// Reads an answer to its end, so that the connection can be used again.
async fn judge(response: Response<Incoming>, protocol: Protocol) -> Result<Verdict, Broken> {
    let (head, mut body) = response.into_parts();
    let (mut bytes, mut trailers) = (0, None::<HeaderMap>);
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => bytes += data.len(),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if bytes > ANSWER {
            return Err("the answer is too long".into());
        }
    }
    Ok(match protocol {
        Protocol::Http => of_http(head.status, &head.headers),
        Protocol::Grpc => of_grpc(head.status, trailers.as_ref().unwrap_or(&head.headers)),
    })
}
