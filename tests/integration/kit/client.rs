//! The barest of HTTP clients: bytes out, bytes in, so that it can also misbehave.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// No test waits longer than this for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// An answer as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

/// One request on a connection of its own.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(&mut connect(address).await, path).await
}

/// One request on a connection that may be used again.
pub(crate) async fn ask<T>(stream: &mut T, path: &str) -> Answer
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
    send(stream, request.as_bytes()).await;
    answer(stream).await.expect("an answer")
}

pub(crate) async fn send<T: AsyncWrite + Unpin>(stream: &mut T, bytes: &[u8]) {
    stream
        .write_all(bytes)
        .await
        .expect("a connection that takes bytes");
    stream.flush().await.expect("a connection that takes bytes");
}

/// The next answer, or nothing if the connection was closed instead.
pub(crate) async fn answer<T: AsyncRead + Unpin>(stream: &mut T) -> Option<Answer> {
    timeout(DEADLINE, read_answer(stream))
        .await
        .expect("an answer in time")
}

async fn read_answer<T: AsyncRead + Unpin>(stream: &mut T) -> Option<Answer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head)
        .expect("a head in ASCII")
        .to_ascii_lowercase();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.expect("a whole body");
    Some(Answer {
        status: status.expect("a status"),
        head,
        body: String::from_utf8(body).expect("a text"),
    })
}
