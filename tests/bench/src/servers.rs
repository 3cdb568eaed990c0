//! Two servers to compare with: hyper over rustls with nothing around it, and the same through the serving kit. Both read
//! the body and answer two bytes. They run in this process, each on threads of its own so that their processor time can be
//! told apart; where a program is compared with it, the plain one runs in a process of its own as the program does.

use crate::{
    cpu::{self, Side, beside},
    pki::{self, Identity},
};
use agents::kit::{
    http::{Limits, Metrics, Server, Transport, read_body, text},
    readiness::Readiness,
    shutdown::channel,
    tls::{self, ClientMode, Files, Options, Source},
};
use anyhow::{Context, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use std::{
    convert::Infallible,
    env,
    future::Future,
    io::{self, BufRead, BufReader, Read},
    net::SocketAddr,
    path::PathBuf,
    process::{self, Child, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use tokio::{net::TcpListener, runtime, task::JoinSet};
use tokio_rustls::TlsAcceptor;

/// Larger than any request of a bench.
const BODY_LIMIT: usize = 1024 * 1024;

/// A server that runs until this process ends.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    name: &'static str,
}

impl Running {
    /// Processor time of its threads so far.
    pub fn cpu(&self) -> Result<Duration> {
        cpu::of_threads(process::id(), Some(self.name))
    }
}

/// Starts what `serve` makes of an open port, on a runtime whose threads have this name.
fn start<F>(name: &'static str, serve: impl FnOnce(TcpListener) -> F) -> Result<Running>
where
    F: Future<Output = ()> + Send + 'static,
{
    // As many threads as there are cores for it, as the programs have.
    let runtime = runtime::Builder::new_multi_thread()
        .thread_name(name)
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let serving = runtime.spawn(serve(listener));
    let (started, waiting) = mpsc::channel();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            // Nobody waits any more if the bench was quicker.
            let _ = started.send(());
            // A server that panics ends the run at the first request that fails.
            let _ = runtime.block_on(serving);
        })?;
    waiting.recv().context("the server does not start")?;
    Ok(Running { address, name })
}

/// Which server to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// hyper over rustls.
    Bare,
    /// The same through the serving kit.
    Kit,
}

impl Sort {
    /// The word that makes a bench program that server.
    const fn word(self) -> &'static str {
        match self {
            Self::Bare => "be-bare",
            Self::Kit => "be-kit",
        }
    }
}

/// A server to compare with in a process of its own, on the core of those who serve; ends with this value.
pub struct Apart {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Apart {
    /// Starts this very program as that server; its `main` must call [`be_server_if_asked`] first.
    pub fn start(sort: Sort, identity: &Identity) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command
            .arg(sort.word())
            .args([identity.certificate_file(), identity.key_file()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = beside(Side::Serving, || Ok(command.spawn()?))?;
        let told = child.stdout.take().context("a pipe")?;
        let mut line = String::new();
        BufReader::new(told).take(100).read_line(&mut line)?;
        let address = line.trim().parse();
        let address = address.context("the server does not tell its address")?;
        Ok(Self { child, address })
    }

    /// Processor time so far.
    pub fn cpu(&self) -> Result<Duration> {
        cpu::of_threads(self.child.id(), None)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// If this program was asked to be a server, it is until the one who asked is gone. Says whether it was.
pub fn be_server_if_asked() -> Result<bool> {
    let words: Vec<_> = env::args().collect();
    let [_, word, certificate, key] = words.as_slice() else {
        return Ok(false);
    };
    let sorts = [Sort::Bare, Sort::Kit];
    let Some(sort) = sorts.into_iter().find(|sort| sort.word() == word) else {
        return Ok(false);
    };
    let running = match sort {
        Sort::Bare => bare(pki::server(certificate.as_ref(), key.as_ref())?)?,
        Sort::Kit => kit_of(certificate.into(), key.into())?,
    };
    println!("{}", running.address);
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(true)
}

/// hyper over rustls and nothing else.
pub fn bare(tls: Arc<ServerConfig>) -> Result<Running> {
    let acceptor = TlsAcceptor::from(tls);
    start("bare", move |listener| async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                drop(stream.set_nodelay(true));
                if let Ok(stream) = acceptor.accept(stream).await {
                    let connection = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(answer));
                    // A client that breaks off is no matter of the bench.
                    drop(connection.await);
                }
            });
            while connections.try_join_next().is_some() {}
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "the body is limited by its type")]
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = Limited::new(request.into_body(), BODY_LIMIT)
        .collect()
        .await;
    let mut response = Response::new(Full::from("{}"));
    if body.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

/// The same through the kit: certificate source, limits, deadlines, guard against panics, metrics.
pub fn kit(identity: &Identity) -> Result<Running> {
    kit_of(identity.certificate_file(), identity.key_file())
}

fn kit_of(certificate: PathBuf, key: PathBuf) -> Result<Running> {
    let mut registry = Registry::default();
    let gate = Readiness::default().gate("certificate");
    let options = Options {
        files: Files {
            certificate,
            key,
            ca: None,
            client_ca: None,
        },
        names: Vec::new(),
        clients: ClientMode::Off,
    };
    let source = Source::new(options, gate, tls::Metrics::register(&mut registry));
    let metrics = Metrics::register(&mut registry).of("bench");
    let service = tower::service_fn(|request: Request<Incoming>| async {
        let answer = match read_body(request.into_body(), BODY_LIMIT).await {
            Ok(_) => text(StatusCode::OK, "{}"),
            Err(error) => error.response(),
        };
        Ok::<_, Infallible>(answer)
    });
    start("kit", move |listener| async move {
        // Kept until the end: a trigger that is gone counts as a shutdown.
        let (_trigger, shutdown) = channel();
        let server = Server {
            listener,
            transport: Transport::Tls(source.tls()),
            limits: Limits::default(),
            metrics,
        };
        let mut following = JoinSet::new();
        following.spawn(source.run(shutdown.clone()));
        server.serve(service, shutdown).await;
    })
}

/// Waits until a server has its certificate and answers.
pub fn await_ready(target: &crate::load::Target) -> Result<()> {
    let mut last = None;
    for _ in 0..200 {
        let asked = crate::client::Client::connect(target.address, &target.tls)
            .and_then(|mut client| client.ask(&target.request).map(drop));
        match asked {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(last
        .context("nobody was asked")?
        .context("the server does not get ready"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client::post,
        load::{Target, flat_out},
    };

    #[test]
    fn both_servers_answer_and_their_time_is_counted() {
        let identity = Identity::make().unwrap();
        for running in [
            bare(identity.server().unwrap()).unwrap(),
            kit(&identity).unwrap(),
        ] {
            let target = Target {
                address: running.address,
                tls: identity.client().unwrap(),
                request: Arc::from(post("/", b"{}")),
            };
            await_ready(&target).unwrap();
            let answers = flat_out(&target, 2, Duration::from_millis(200)).unwrap();
            assert!(answers > 0);
            assert!(running.cpu().unwrap() > Duration::ZERO, "{}", running.name);
        }
    }
}
