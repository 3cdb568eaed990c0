//! Calls to addresses that come from objects: the one way out.
//!
//! Who may write an object may not thereby reach what only the controller can reach. So a name is resolved once, each of
//! its addresses is judged, and the connection is made to an address that was judged, whatever the name says a moment
//! later. An answer may send the caller only to the same server. Every call has a deadline and every answer a size.
//! Proxies are not used and their variables are not read: behind one nobody could tell which address is called.

mod address;
mod allowed;
mod connect;
mod exchange;
mod postgres;
mod settings;
mod target;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::lookup_host;
use tokio::time::timeout;

pub use address::Refusal;
pub use allowed::Allowed;
pub use postgres::{Store, Trouble};
pub use settings::Settings;
pub use target::Target;

use address::Rules;
use settings::CA_FILE;

/// Finds the addresses of a host. Tests bring their own.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, with the port on each.
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// Asks the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(lookup_host((host, port)).await?.collect()) })
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// GET and HEAD follow an answer that sends them elsewhere on the same server; others do not.
    pub method: Method,
    /// Where it goes.
    pub target: Target,
    /// What is said about it, besides host, length and user agent.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What proves who calls.
    pub credential: Option<Credential>,
    /// What is sent.
    pub body: Bytes,
    /// Most bytes of an answer.
    pub limit: usize,
}

/// What proves who calls; it goes to one host only, and is never shown.
#[derive(Clone)]
pub struct Credential {
    host: String,
    value: HeaderValue,
}

impl Credential {
    /// The `Authorization` for calls to this host; none if the text cannot be one.
    pub fn new(host: &str, value: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        let host = host.to_owned();
        Some(Self { host, value })
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential(for {})", self.host)
    }
}

/// What came back, whatever it says.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Whether it went well.
    pub status: StatusCode,
    /// What is said about the answer.
    pub headers: HeaderMap,
    /// The answer. Of one that tells of a failure only as much as fits.
    pub body: Bytes,
}

impl Answer {
    /// Whether another try may help: the server is busy or at fault, not the call.
    pub fn may_pass(&self) -> bool {
        self.status.is_server_error() || matches!(self.status.as_u16(), 408 | 425 | 429)
    }

    /// How long the server asks to be left alone, if it says so in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
        seconds.trim().parse().ok().map(Duration::from_secs)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The address may not be called.
    #[error("{}", .0.sentence())]
    Refused(Refusal),
    /// Nobody is there, or nobody who can be trusted or understood.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("it did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The answer is too large.
    #[error("its answer has more than {0} bytes")]
    TooLarge(usize),
}

/// The guard could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// A file with further authorities is of no use.
    #[error("{0}")]
    Authorities(String),
    /// TLS cannot be used.
    #[error("TLS cannot be used")]
    Tls(#[from] rustls::Error),
}

/// The one way out. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    rules: Rules,
    deadline: Duration,
    /// Hosts and ports by which the API server is known.
    api_server: Vec<(String, u16)>,
    /// Where its machines were last seen.
    machines: RwLock<Vec<(String, u16)>>,
    resolver: Box<dyn Resolve>,
    tls: Arc<ClientConfig>,
    /// The same for databases, which have authorities of their own.
    database_tls: Arc<ClientConfig>,
    refused: Counter<u64>,
}

impl Guard {
    /// A guard for these settings. The API server is refused under every address that its hosts have; `refused` counts by
    /// `reason`.
    pub fn new(
        settings: Settings,
        api_server: Vec<(String, u16)>,
        resolver: impl Resolve,
        refused: Counter<u64>,
    ) -> Result<Self, Unfit> {
        let Settings {
            allowed,
            public,
            loopback,
            authorities,
            deadline,
            database,
            database_authorities,
        } = settings;
        if loopback {
            tracing::warn!(
                "AGENTS_EGRESS_ALLOW_LOOPBACK is set: whoever may write an object can call this pod; it is for tests only"
            );
        }
        for reason in Refusal::ALL {
            refused.add(0, &[KeyValue::new("reason", reason.as_str())]);
        }
        let own = (CA_FILE, authorities.as_deref());
        let database_authorities = database_authorities.as_deref();
        let inner = Inner {
            rules: Rules {
                allowed,
                public,
                loopback,
                database: database.map(|store| store.places).unwrap_or_default(),
            },
            deadline,
            api_server,
            machines: RwLock::default(),
            resolver: Box::new(resolver),
            database_tls: Arc::new(trusting(&[own, ("PGSSLROOTCERT", database_authorities)])?),
            tls: Arc::new(trusting(&[own])?),
            refused,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The machines of the API server are these now: they are refused as well.
    pub fn keep_from(&self, machines: Vec<(String, u16)>) {
        let known = self.inner.machines.write();
        *known.unwrap_or_else(PoisonError::into_inner) = machines;
    }

    /// Calls, within the deadline.
    ///
    /// # Errors
    ///
    /// When there is no answer, or its address may not be called. An answer that tells of a failure is an answer.
    pub async fn call(&self, call: Call) -> Result<Answer, Failure> {
        let deadline = self.inner.deadline;
        let answer = match timeout(deadline, exchange::follow(&self.inner, call)).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::TimedOut(deadline)),
        };
        if let Err(Failure::Refused(refusal)) = &answer {
            self.count(*refusal);
        }
        answer
    }

    fn count(&self, refusal: Refusal) {
        let reason = KeyValue::new("reason", refusal.as_str());
        self.inner.refused.add(1, &[reason]);
    }
}

impl Inner {
    /// Every host and port of the API server.
    fn places(&self) -> Vec<(String, u16)> {
        let machines = self.machines.read();
        let machines = machines.unwrap_or_else(PoisonError::into_inner);
        self.api_server.iter().chain(&*machines).cloned().collect()
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guard({:?})", self.inner.rules)
    }
}

/// TLS that trusts the authorities of the system, and those in files, each with the variable that names it.
///
/// # Errors
///
/// When a file holds none, or cannot be read.
pub fn trusting(files: &[(&str, Option<&Path>)]) -> Result<ClientConfig, Unfit> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    for (variable, file) in files {
        let Some(file) = file else { continue };
        let added = add(&mut roots, file);
        added.map_err(|why| Unfit::Authorities(format!("{variable} {}: {why}", file.display())))?;
    }
    if roots.is_empty() {
        tracing::warn!("No certificate authority was found: no https address can be called");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    let pem = fs::read(file).map_err(|error| error.to_string())?;
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        count += 1;
    }
    match count {
        0 => Err("holds no certificate".to_owned()),
        _ => Ok(()),
    }
}
