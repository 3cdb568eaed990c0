//! The simplest of HTTP clients: one request over plain HTTP, with a deadline and a limit.

use anyhow::{Context, Result, bail};
use http::{Request, StatusCode, request::Builder};
use http_body_util::{BodyExt, Full, Limited};
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
    let body = ask(authority, Request::get(path), Vec::new(), DEADLINE).await?;
    Ok(String::from_utf8(body)?)
}

/// The same, for someone with a token.
pub async fn get_by(authority: &str, path: &str, token: &str) -> Result<String> {
    let request = Request::get(path).header("authorization", format!("Bearer {token}"));
    let body = ask(authority, request, Vec::new(), DEADLINE).await?;
    Ok(String::from_utf8(body)?)
}

/// The same, as the page is for whoever accepts these types.
pub async fn get_as(authority: &str, path: &str, accept: &str) -> Result<Vec<u8>> {
    let request = Request::get(path).header("accept", accept);
    ask(authority, request, Vec::new(), DEADLINE).await
}

/// What is answered to this body, which must be with success.
pub async fn post(authority: &str, path: &str, kind: &str, body: Vec<u8>) -> Result<String> {
    post_within(DEADLINE, authority, path, kind, body).await
}

/// The same from someone who may take longer.
pub async fn post_within(
    deadline: Duration,
    authority: &str,
    path: &str,
    kind: &str,
    body: Vec<u8>,
) -> Result<String> {
    let request = Request::post(path).header("content-type", kind);
    let answer = ask(authority, request, body, deadline).await?;
    Ok(String::from_utf8(answer)?)
}

/// Names and values as forms are sent.
pub fn form(pairs: &[(&str, &str)]) -> Vec<u8> {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)));
    pairs.collect::<Vec<_>>().join("&").into_bytes()
}

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

async fn ask(
    authority: &str,
    request: Builder,
    body: Vec<u8>,
    deadline: Duration,
) -> Result<Vec<u8>> {
    let request = request
        .header("host", authority)
        .body(Full::new(Bytes::from(body)))?;
    let what = format!("{} http://{authority}{}", request.method(), request.uri());
    let (status, body) = timeout(deadline, exchange(authority, request))
        .await
        .with_context(|| format!("{what} was not answered within {deadline:?}"))?
        .with_context(|| format!("{what} failed"))?;
    if !status.is_success() {
        let said = String::from_utf8_lossy(&body);
        bail!("{what}: the answer is {status}: {said}");
    }
    Ok(body)
}

async fn exchange(authority: &str, request: Request<Full<Bytes>>) -> Result<(StatusCode, Vec<u8>)> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = read(Limited::new(response.into_body(), MOST_BYTES)).await?;
        Ok((status, body))
    };
    tokio::select! {
        answer = exchange => answer,
        Err(error) = connection => Err(error.into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the body is limited by its type")]
async fn read(body: Limited<Incoming>) -> Result<Vec<u8>> {
    let collected = body.collect().await.map_err(anyhow::Error::from_boxed)?;
    Ok(collected.to_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_holds_any_text() {
        let form = form(&[("query", "up{a=\"ü&\"}"), ("time", "1")]);
        let expected = "query=up%7Ba%3D%22%C3%BC%26%22%7D&time=1";
        assert_eq!(String::from_utf8(form).unwrap(), expected);
    }
}
