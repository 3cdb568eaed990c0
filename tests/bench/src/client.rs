//! Plain clients: HTTP/1.1 over TLS, one connection that is kept alive. One blocks, for a question now and then; of the other
//! many share a thread, as the connections of an API server do.

use crate::pki::SERVER;
use anyhow::{Context, Result, bail};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsConnector, client::TlsStream};

const DEADLINE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

/// One connection.
pub struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
    read: Vec<u8>,
}

impl Client {
    /// Connects; the handshake happens with the first request.
    pub fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(DEADLINE))?;
        let session = ClientConnection::new(Arc::clone(config), SERVER.try_into()?)?;
        Ok(Self {
            stream: StreamOwned::new(session, socket),
            read: Vec::new(),
        })
    }

    /// Sends a request and reads the answer, which must be 200 and is given back.
    pub fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request)?;
        self.stream.flush()?;
        self.read.clear();
        let mut piece = [0; PIECE];
        loop {
            let length = self.stream.read(&mut piece)?;
            if length == 0 {
                bail!("the server closed the connection");
            }
            self.read.extend(&piece[..length]);
            if let Some((head, whole)) = measure(&self.read)? {
                if self.read.len() < whole {
                    continue;
                }
                if !self.read.starts_with(b"HTTP/1.1 200 ") {
                    bail!("the answer is {}", String::from_utf8_lossy(&self.read));
                }
                return Ok(&self.read[head..whole]);
            }
        }
    }
}

/// One connection of many.
pub struct Shared {
    stream: TlsStream<tokio::net::TcpStream>,
    read: Vec<u8>,
}

impl Shared {
    /// Connects and shakes hands.
    pub async fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<Self> {
        let socket = tokio::net::TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(SERVER.try_into()?, socket).await?;
        let read = Vec::with_capacity(PIECE);
        Ok(Self { stream, read })
    }

    /// Sends a request and reads the answer, which must be 200.
    pub async fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.read.clear();
        loop {
            let length = self.stream.read_buf(&mut self.read).await?;
            if length == 0 {
                bail!("the server closed the connection");
            }
            if let Some((_, whole)) = measure(&self.read)?
                && self.read.len() >= whole
            {
                if !self.read.starts_with(b"HTTP/1.1 200 ") {
                    bail!("the answer is {}", String::from_utf8_lossy(&self.read));
                }
                return Ok(());
            }
        }
    }
}

/// Length of the head and of the whole answer, once the head is there.
fn measure(read: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&read[..end])?.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("an answer without length")?.trim().parse()?;
    Ok(Some((end + 4, end + 4 + length)))
}

/// A POST of JSON, as bytes.
pub fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {SERVER}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_measured_once_its_head_is_there() {
        assert_eq!(measure(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap(), None);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(measure(answer).unwrap(), Some((38, 40)));
    }
}
