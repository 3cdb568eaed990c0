//! The servers of the probe.

use crate::review;
use anyhow::{Context, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{net::SocketAddr, path::Path, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

/// An admission review holds two objects of at most 1.5 MiB and a bit.
const MOST_BYTES: usize = 4 << 20;

type Answer = Response<Full<Bytes>>;

/// Answers every request with a word.
pub(crate) async fn plain(address: SocketAddr, word: String) -> Result<()> {
    let word = Bytes::from(word);
    accept(address, None, move |_| {
        let answer = Response::new(Full::new(word.clone()));
        async move { Ok(answer) }
    })
    .await
}

/// Answers admission reviews over TLS.
pub(crate) async fn webhook(address: SocketAddr, tls: &Path) -> Result<()> {
    let chain =
        CertificateDer::pem_file_iter(tls.join("tls.crt"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(tls.join("tls.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    accept(address, Some(TlsAcceptor::from(Arc::new(config))), reviewed).await
}

async fn reviewed(request: Request<Incoming>) -> Result<Answer> {
    let body = Limited::new(request.into_body(), MOST_BYTES);
    let body = read(body).await?;
    let (status, answer) = match review::answer(&body) {
        Ok(answer) => (StatusCode::OK, answer),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}").into_bytes()),
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    Ok(response.body(Full::new(answer.into()))?)
}

#[expect(clippy::disallowed_methods, reason = "the body is limited by its type")]
async fn read(body: Limited<Incoming>) -> Result<Bytes> {
    let collected = body.collect().await.map_err(anyhow::Error::from_boxed)?;
    Ok(collected.to_bytes())
}

/// Accepts connections until told to end; as process 1 of a container it must listen for the signal itself.
async fn accept<F, R>(address: SocketAddr, tls: Option<TlsAcceptor>, answer: F) -> Result<()>
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Answer>> + Send + 'static,
{
    let listener = TcpListener::bind(address)
        .await
        .context("could not listen")?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let (tls, answer) = (tls.clone(), answer.clone());
                connections.spawn(async move {
                    match tls {
                        Some(tls) => {
                            // A client that leaves in the middle, as health checks do, concerns nobody.
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, answer).await;
                            }
                        }
                        None => converse(stream, answer).await,
                    }
                });
            }
        }
    }
}

async fn converse<S, F, R>(stream: S, answer: F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Incoming>) -> R + Send + 'static,
    R: Future<Output = Result<Answer>> + Send + 'static,
{
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
    if let Err(error) = served {
        eprintln!("a connection broke: {error}");
    }
}
