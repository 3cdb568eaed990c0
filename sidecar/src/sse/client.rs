//! One connection to a stream, over HTTP/1.1: from an address to bytes. Everything has a deadline or a bound, and when a
//! stream is dropped nothing of it is left.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use agents::kit::egress::Target;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, header};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::state::{Answer, Cause, End, judge};

/// Time to find the server, to connect, and to agree on TLS.
const CONNECT: Duration = Duration::from_secs(5);
/// Time until the head of its answer is there.
const HEAD: Duration = Duration::from_secs(10);
/// Most steps from one address to another on the same server.
const REDIRECTS: usize = 3;
/// Bytes that are read ahead; also those of the head of an answer.
const BUFFER: usize = 16 * 1024;
/// Headers of an answer.
const HEADERS: usize = 64;
/// Longest id that is sent back to the server it came from.
const LONGEST_ID: usize = 512;
/// Longest token.
const LONGEST_TOKEN: u64 = 16 * 1024;
/// Who asks.
const USER_AGENT: &str = concat!("agents-sidecar/", env!("CARGO_PKG_VERSION"));

/// What both kinds of connection can do.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// Opens streams of one source.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// Whom it trusts.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// Where the token is that it shows; looked up with every connection, since tokens are replaced.
    pub(super) token: Option<PathBuf>,
}

/// A stream that is open.
pub(super) struct Stream {
    body: Incoming,
    /// What moves the bytes; nothing once it is over.
    connection: Option<BoxFuture<'static, hyper::Result<()>>>,
}

impl Client {
    /// Opens a stream after the event with this id, if there is one.
    pub(super) async fn open(&self, target: &Target, last_id: &str) -> Result<Stream, End> {
        let mut target = target.clone();
        for _ in 0..=REDIRECTS {
            let (answer, stream) = self.ask(&target, last_id).await?;
            target = match answer {
                Answer::Stream => return Ok(stream),
                Answer::Nothing(end) => return Err(end),
                // Elsewhere on the same server: the token goes to nobody else, and nobody is led into the cluster.
                Answer::Elsewhere(location) => target
                    .follow(&location)
                    .map_err(|_| End::from(Cause::Redirected))?,
            };
        }
        Err(Cause::Redirected.into())
    }

    async fn ask(&self, target: &Target, last_id: &str) -> Result<(Answer, Stream), Cause> {
        let request = self.request(target, last_id).await?;
        let wire = timeout(CONNECT, self.connect(target)).await;
        let wire = TokioIo::new(wire.map_err(|_| Cause::Late)??);
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER).max_headers(HEADERS);
        let exchange = async {
            let (mut sender, connection) = builder.handshake(wire).await?;
            let mut connection: BoxFuture<'static, _> = Box::pin(connection);
            let mut answer = Box::pin(sender.send_request(request));
            let (response, connection) = tokio::select! {
                biased;
                response = &mut answer => (response, Some(connection)),
                _ = &mut connection => (answer.await, None),
            };
            Ok::<_, hyper::Error>((response?, connection))
        };
        let exchanged = timeout(HEAD, exchange).await.map_err(|_| Cause::Late)?;
        let (response, connection) = exchanged.map_err(|_| Cause::Broken)?;
        let (head, body) = response.into_parts();
        let answer = judge(head.status, &head.headers);
        Ok((answer, Stream { body, connection }))
    }

    async fn connect(&self, target: &Target) -> Result<Pin<Box<dyn Wire>>, Cause> {
        let wire = TcpStream::connect((target.host(), target.port())).await;
        let wire = wire.map_err(|_| Cause::Unreachable)?;
        if !target.is_tls() {
            return Ok(Box::pin(wire));
        }
        let tls = self.tls.clone().ok_or(Cause::Tls)?;
        let name = ServerName::try_from(target.host().to_owned()).map_err(|_| Cause::Tls)?;
        match TlsConnector::from(tls).connect(name, wire).await {
            Ok(wire) => Ok(Box::pin(wire)),
            Err(_) => Err(Cause::Tls),
        }
    }

    async fn request(
        &self,
        target: &Target,
        last_id: &str,
    ) -> Result<Request<Empty<Bytes>>, Cause> {
        let mut request = Request::new(Empty::new());
        let path = target.path_and_query().parse();
        *request.uri_mut() = path.map_err(|_| Cause::Unreachable)?;
        let host = HeaderValue::try_from(target.authority());
        let headers = request.headers_mut();
        headers.insert(header::HOST, host.map_err(|_| Cause::Unreachable)?);
        for (name, value) in [
            (header::ACCEPT, "text/event-stream"),
            (header::ACCEPT_ENCODING, "identity"),
            (header::CACHE_CONTROL, "no-store"),
            (header::USER_AGENT, USER_AGENT),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(id) = resumable(last_id) {
            headers.insert("last-event-id", id);
        }
        if let Some(file) = &self.token {
            let token = bearer(file).await.ok_or(Cause::Token)?;
            headers.insert(header::AUTHORIZATION, token);
        }
        Ok(request)
    }
}

impl Stream {
    /// The next bytes. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Bytes, Cause> {
        loop {
            let frame = tokio::select! {
                biased;
                frame = self.body.frame() => frame,
                () = drive(&mut self.connection) => continue,
            };
            match frame {
                None => return Err(Cause::Ended),
                Some(Err(_)) => return Err(Cause::Broken),
                // What is not data are trailers, which say nothing.
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(bytes);
                    }
                }
            }
        }
    }
}

/// Moves the bytes of a connection until it is over; for ever once it is.
async fn drive(connection: &mut Option<BoxFuture<'static, hyper::Result<()>>>) {
    match connection {
        // Why it is over, the body says.
        Some(running) => drop(running.await),
        None => std::future::pending().await,
    }
    *connection = None;
}

/// The id as a header, if it can be one: what could end a line there comes from a server that means harm.
fn resumable(last_id: &str) -> Option<HeaderValue> {
    let is_sent = (1..=LONGEST_ID).contains(&last_id.len());
    is_sent.then(|| HeaderValue::from_bytes(last_id.as_bytes()).ok())?
}

async fn bearer(file: &Path) -> Option<HeaderValue> {
    let mut token = String::new();
    let file = File::open(file).await.ok()?;
    let mut file = file.take(LONGEST_TOKEN);
    file.read_to_string(&mut token).await.ok()?;
    let token = token.trim();
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    (!token.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_an_id_that_can_harm_nobody_is_sent_back() {
        for (id, expected) in [
            ("4f2-17", true),
            ("…", true),
            ("", false),
            ("a\r\nx: y", false),
            ("a\nb", false),
            ("a\0", false),
            (&"x".repeat(LONGEST_ID), true),
            (&"x".repeat(LONGEST_ID + 1), false),
        ] {
            assert_eq!(resumable(id).is_some(), expected, "{id:?}");
        }
    }

    #[tokio::test]
    async fn a_token_is_one_line_of_a_file_and_is_never_shown() {
        for (text, expected) in [
            (&b"secret\n"[..], Some("Bearer secret")),
            (b"  secret ", Some("Bearer secret")),
            (b"", None),
            (b"\n", None),
            (b"two\nlines", None),
            (b"\xff", None),
        ] {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(text).expect("a file that takes bytes");
            let token = bearer(file.path()).await;
            let shown = token.as_ref().map(|token| token.to_str().expect("a text"));
            assert_eq!(shown, expected, "{text:?}");
            assert!(!format!("{token:?}").contains("secret"));
        }
        assert_eq!(bearer(Path::new("/nowhere")).await, None);
    }
}
