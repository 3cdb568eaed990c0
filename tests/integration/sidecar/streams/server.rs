//! A server of streams that does as it is told, also what no server should.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use anyhow::Result;
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::kit::pki::Pair;

/// What is done for a request.
#[derive(Clone)]
pub(super) enum Does {
    /// Answers so and closes.
    Answers(String),
    /// Answers so and keeps the connection without a word.
    Holds(String),
    /// Answers with the first, sends the second so many times, then the third, and keeps the connection.
    Repeats(String, Vec<u8>, usize, String),
}

/// A request that came.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    /// The head, in lower case.
    pub(super) head: String,
    pub(super) at: Instant,
}

/// A server that runs until it is dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _serving: JoinSet<()>,
}

/// The head of a stream, and how it begins.
pub(super) fn stream(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}")
}

impl Server {
    /// Starts one; it is told what to do by the path, and how often that was asked for before.
    pub(super) async fn start(
        does: impl Fn(&str, usize) -> Does + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::start_over(None, does).await
    }

    /// The same over TLS.
    pub(super) async fn start_tls(
        pair: &Pair,
        does: impl Fn(&str, usize) -> Does + Send + Sync + 'static,
    ) -> Result<Self> {
        let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![pair.certificate.clone()], key)?;
        Self::start_over(Some(TlsAcceptor::from(Arc::new(config))), does).await
    }

    async fn start_over(
        tls: Option<TlsAcceptor>,
        does: impl Fn(&str, usize) -> Does + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (does, kept) = (Arc::new(does), Arc::clone(&asked));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((wire, _)) = listener.accept().await {
                let (does, kept, tls) = (Arc::clone(&does), Arc::clone(&kept), tls.clone());
                connections.spawn(async move {
                    // Whoever goes away has seen enough.
                    let _ = match tls {
                        None => serve(wire, &kept, &*does).await,
                        Some(tls) => match tls.accept(wire).await {
                            Ok(wire) => serve(wire, &kept, &*does).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Ok(Self {
            address,
            asked,
            _serving: serving,
        })
    }

    /// Every request for a path.
    pub(super) fn asked(&self, path: &str) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = asked.iter().filter(|asked| asked.path == path);
        of_path.cloned().collect()
    }
}

async fn serve(
    mut wire: impl AsyncRead + AsyncWrite + Unpin,
    kept: &Mutex<Vec<Asked>>,
    does: &(impl Fn(&str, usize) -> Does + Sync),
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(wire.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let before = {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.iter().filter(|asked| asked.path == path).count();
        kept.push(Asked {
            path: path.clone(),
            head,
            at: Instant::now(),
        });
        before
    };
    match does(&path, before) {
        Does::Answers(answer) => {
            wire.write_all(answer.as_bytes()).await?;
            return wire.shutdown().await;
        }
        Does::Holds(answer) => wire.write_all(answer.as_bytes()).await?,
        Does::Repeats(first, piece, times, last) => {
            wire.write_all(first.as_bytes()).await?;
            for _ in 0..times {
                wire.write_all(&piece).await?;
            }
            wire.write_all(last.as_bytes()).await?;
        }
    }
    wire.flush().await?;
    // Until the other side goes away.
    wire.read_u8().await.map(drop)
}
