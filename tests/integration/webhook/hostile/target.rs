//! A webhook to aim at, and what to throw at it.

use std::net::SocketAddr;

use agents::api::{
    contract::{self, door},
    kind::Kind,
};
use anyhow::{Context, Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use support::{builders::smallest, metrics::Page};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use crate::{
    kit::pki::Client,
    webhook::hook::{Certificates, DEADLINE, Hook},
};

/// The largest body that is read, as the webhook derives it.
pub(super) const LARGEST: usize = 7 << 20;
/// What the chart lets the webhook have.
const MOST_MEMORY_KIB: u64 = 128 << 10;

/// A webhook at which nobody but this test aims.
pub(crate) struct Target {
    hook: Hook,
    certificates: Certificates,
}

/// What came back: the status line's code and all that followed, or nothing if the connection was closed.
pub(crate) type Answer = Option<(u16, String)>;

impl Target {
    pub(super) async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// The same with these settings.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Result<Self> {
        let certificates = Certificates::new();
        let hook = Hook::start(&certificates, settings).await?;
        Ok(Self { hook, certificates })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.hook.address
    }

    /// Where it says how it is.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.hook.admin
    }

    pub(crate) async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        self.connect_as(&self.client()).await
    }

    /// A client that trusts the webhook.
    pub(super) fn client(&self) -> Client {
        self.certificates.authority.client(None)
    }

    pub(super) async fn connect_as(&self, client: &Client) -> Result<TlsStream<TcpStream>> {
        let connecting = async {
            let tcp = TcpStream::connect(self.address()).await?;
            client.connect(tcp).await
        };
        Ok(timeout(DEADLINE, connecting)
            .await
            .context("no handshake")??)
    }

    /// A connection that has been used already: it may rest between requests, as long as those of API servers do.
    pub(crate) async fn connect_and_rest(&self) -> Result<TlsStream<TcpStream>> {
        let mut stream = self.connect().await?;
        self.answers(&mut stream, 0).await?;
        Ok(stream)
    }

    /// Sends bytes and takes whatever comes.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Result<Answer> {
        let mut stream = self.connect().await?;
        // A server that has heard enough may answer and close before all is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        self.answer(&mut stream).await
    }

    pub(crate) async fn answer(&self, stream: &mut TlsStream<TcpStream>) -> Result<Answer> {
        let mut said = Vec::new();
        let reading = async {
            let mut piece = [0; 4096];
            while whole(&said).is_none() {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => return,
                    Ok(length) => said.extend_from_slice(&piece[..length]),
                }
            }
        };
        timeout(DEADLINE, reading)
            .await
            .context("neither an answer nor a closed connection")?;
        if said.is_empty() {
            return Ok(None);
        }
        let said = String::from_utf8(said)?;
        let code = said.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(Some((code.context(said.clone())?, said)))
    }

    /// Gives it no time at all until the value is dropped: whatever is sent meanwhile is there at once afterwards.
    pub(crate) fn pause(&self) -> Result<Paused> {
        let process = Pid::from_raw(self.hook.id.try_into()?);
        kill(process, Signal::SIGSTOP)?;
        Ok(Paused(process))
    }

    /// A review that is in order is answered, with its own uid.
    pub(super) async fn still_answers(&self) -> Result<()> {
        self.answers(&mut self.connect().await?, 0).await
    }

    /// The same on a connection that is there already, by a review that has so many bytes at least.
    pub(super) async fn answers(
        &self,
        stream: &mut TlsStream<TcpStream>,
        size: usize,
    ) -> Result<()> {
        let mut body = review("good").to_string().into_bytes();
        body.resize(size.max(body.len()), b' ');
        stream.write_all(&post(door::VALIDATE, &body)).await?;
        stream.flush().await?;
        let answer = self.answer(stream).await?;
        let (code, said) = answer.context("a good review was not answered")?;
        ensure!(code == 200, "a good review got {said}");
        let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let review: Value = serde_json::from_str(body).with_context(|| said.clone())?;
        ensure!(review["response"]["uid"] == "good", "{review}");
        ensure!(review["response"]["allowed"] == true, "{review}");
        Ok(())
    }

    /// The value of one of its metrics, by the end of the name.
    pub(super) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let page = Page::scrape(&self.hook.admin.to_string()).await?;
        let name = format!("agents_webhook_{name}");
        page.value(&name, labels).context(name)
    }

    /// What it has logged so far.
    pub(super) fn logged(&self) -> String {
        self.hook.logged()
    }

    /// The memory that was ever held is within its bound.
    pub(super) fn stays_small(&self, after: &str) -> Result<()> {
        let (now, most) = self.hook.memory()?;
        eprintln!("memory after {after}: {now} KiB, at most {most} KiB");
        ensure!(most < MOST_MEMORY_KIB, "{most} KiB after {after}");
        Ok(())
    }
}

/// A webhook that is given no time.
pub(crate) struct Paused(Pid);

impl Drop for Paused {
    fn drop(&mut self) {
        // One that has ended needs no time.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

/// The end of the first answer, if all of it is there.
fn whole(said: &[u8]) -> Option<usize> {
    let head = said.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&said[..head]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let end = head
        + length
            .and_then(|length| length.parse::<usize>().ok())
            .unwrap_or(0);
    (said.len() >= end).then_some(end)
}

/// A good review.
pub(crate) fn review(uid: &str) -> Value {
    let signal = smallest(Kind::Signal, "go").namespace("default");
    let signal = signal.spec(json!({"channel": "c"})).json();
    review_of(uid, Kind::Signal, &signal)
}

/// A review of a new object; nothing will be stored.
pub(crate) fn review_of(uid: &str, kind: Kind, object: &Value) -> Value {
    let (group, version) = (kind.group(), contract::VERSION);
    let resource = json!({"group": group, "version": version, "resource": kind.plural()});
    let kind = json!({"group": group, "version": version, "kind": kind.as_str()});
    let metadata = &object["metadata"];
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": uid, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": metadata["name"], "namespace": metadata["namespace"], "operation": "CREATE", "dryRun": true,
            "userInfo": {"username": "tester"}, "options": null, "oldObject": null,
            "object": object,
        },
    })
}

pub(crate) fn head(path: &str, kind: &str, length: usize) -> Vec<u8> {
    format!("POST {path}?timeout=30s HTTP/1.1\r\nHost: webhook\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

pub(crate) fn post(path: &str, body: &[u8]) -> Vec<u8> {
    [&head(path, "application/json", body.len()), body].concat()
}

/// Refused in words: an error of HTTP, or a review that is not allowed.
pub(super) fn clear(case: &str, answer: &Answer) -> Result<()> {
    let Some((code, said)) = answer else {
        return Ok(());
    };
    let refused = (400..600).contains(code) || said.contains(r#""allowed":false"#);
    ensure!(refused, "{case} was answered by {said}");
    Ok(())
}
