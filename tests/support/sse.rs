//! A reader of server-sent events over a plain connection of its own: one that can also be slow.

use anyhow::{Context, Result, bail, ensure};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

const DEADLINE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it says.
    pub data: String,
}

/// A stream that is being read.
pub struct Reader {
    lines: BufReader<TcpStream>,
    /// The head of the answer, in lower case.
    pub head: String,
    /// What the server said about when to come back.
    pub retry: Option<u64>,
}

impl Reader {
    /// Opens a stream, perhaps after an event.
    pub async fn open(address: SocketAddr, path: &str, after: Option<&str>) -> Result<Self> {
        Self::open_with(TcpSocket::new_v4()?, address, path, &resuming(after)).await
    }

    /// The same with a token.
    pub async fn open_as(
        address: SocketAddr,
        path: &str,
        after: Option<&str>,
        token: &str,
    ) -> Result<Self> {
        let headers = format!("{}Authorization: Bearer {token}\r\n", resuming(after));
        Self::open_with(TcpSocket::new_v4()?, address, path, &headers).await
    }

    /// The same for a reader to whom the system keeps next to nothing.
    pub async fn open_narrow(address: SocketAddr, path: &str) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(2048)?;
        Self::open_with(socket, address, path, "").await
    }

    /// The same with a token.
    pub async fn open_narrow_as(address: SocketAddr, path: &str, token: &str) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(2048)?;
        let headers = format!("Authorization: Bearer {token}\r\n");
        Self::open_with(socket, address, path, &headers).await
    }

    async fn open_with(
        socket: TcpSocket,
        address: SocketAddr,
        path: &str,
        headers: &str,
    ) -> Result<Self> {
        let mut stream = socket.connect(address).await?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut reader = Self {
            lines: BufReader::with_capacity(1024, stream),
            head: String::new(),
            retry: None,
        };
        loop {
            let line = reader.line().await?.context("the connection was closed")?;
            if line.is_empty() {
                return Ok(reader);
            }
            reader.head += &format!("{}\n", line.to_ascii_lowercase());
        }
    }

    /// The next event; none if the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        let mut event = Event::default();
        while let Some(line) = self.line().await? {
            if line.is_empty() && !event.data.is_empty() {
                return Ok(Some(event));
            }
            let (field, value) = line.split_once(": ").unwrap_or((&line, ""));
            match field {
                "event" => event.name = value.to_owned(),
                "id" => event.id = Some(value.to_owned()),
                "data" => event.data = value.to_owned(),
                "retry" => self.retry = value.parse().ok(),
                // A chunk's size, a comment, or the end of either.
                _ => {}
            }
        }
        ensure!(event == Event::default(), "it ended within {event:?}");
        Ok(None)
    }

    /// The first event from here on that is as wanted.
    pub async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        let mut seen = Vec::new();
        loop {
            match self.next().await? {
                Some(event) if wanted(&event) => return Ok(event),
                Some(event) => seen.push(event),
                None => bail!("the stream has ended; seen: {seen:?}"),
            }
        }
    }

    async fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let read = timeout(DEADLINE, self.lines.read_line(&mut line)).await;
        let bytes = read.context("nothing was sent in time")??;
        Ok((bytes > 0).then(|| line.trim_end().to_owned()))
    }
}

fn resuming(after: Option<&str>) -> String {
    after.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"))
}
