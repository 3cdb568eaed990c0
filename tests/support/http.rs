//! The simplest of HTTP clients: one GET over plain HTTP, with a deadline and a limit.

use anyhow::{Context, Result, bail};
use http::Request;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::{net::TcpStream, time::timeout};

const DEADLINE: Duration = Duration::from_secs(10);
/// A metrics page of ten thousand series is about 2 MiB.
const MOST_BYTES: usize = 64 << 20;

/// The body of a page that must answer with success; `authority` is `host:port`.
pub async fn get(authority: &str, path: &str) -> Result<String> {
    timeout(DEADLINE, fetch(authority, path))
        .await
        .with_context(|| format!("http://{authority}{path} did not answer within {DEADLINE:?}"))?
        .with_context(|| format!("could not get http://{authority}{path}"))
}

async fn fetch(authority: &str, path: &str) -> Result<String> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path)
        .header("host", authority)
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = read(Limited::new(response.into_body(), MOST_BYTES)).await?;
        if !status.is_success() {
            bail!("the answer is {status}: {body}");
        }
        Ok(body)
    };
    tokio::select! {
        body = exchange => body,
        Err(error) = connection => Err(error.into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the body is limited by its type")]
async fn read(body: Limited<Incoming>) -> Result<String> {
    let collected = body.collect().await.map_err(anyhow::Error::from_boxed)?;
    Ok(String::from_utf8(collected.to_bytes().into())?)
}
