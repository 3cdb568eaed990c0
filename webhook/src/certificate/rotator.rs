//! Makes the webhook's certificate where nobody else does, and changes authority and certificate before they end.
//!
//! Everything is in one Secret, which all replicas read and any may change: each change names the version that it is a
//! change of, so that there are never two authorities by accident. What to do next is decided by `plan`; keys and
//! certificates are made by `mint`; `cluster` reads and writes. The pair goes to the files that the server follows anyway,
//! so nothing here touches a handshake.

mod cluster;
mod metrics;
mod mint;
mod plan;
mod settings;
mod stored;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};
use agents::kit::shutdown::Shutdown;
use agents::kit::tls::Files;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};

use cluster::{Cluster, Registered, Trouble};
pub use metrics::Metrics;
use metrics::Step;
pub use plan::Terms;
use plan::{Plan, Seen, Trust, plan};
pub use settings::Settings;
use stored::{Certificate, Data, Stored, key};

/// Time between two looks, about; certificates of a short life are looked at more often.
const INTERVAL: Duration = Duration::from_secs(10);
/// Looks in the life of a certificate, at least: a replica that looks late shows an ended one.
const LOOKS: u32 = 30;
/// The same while something is under way.
const SOON: Duration = Duration::from_secs(1);
/// The same after a step, or after someone else made it.
const AT_ONCE: Duration = Duration::from_millis(50);
/// Time for one look.
const DEADLINE: Duration = Duration::from_secs(15);

/// Where the rotator works.
pub struct Place {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Name of both webhook configurations.
    pub registration: String,
    /// Whom the certificate is for.
    pub names: Vec<String>,
    /// Where the server reads it.
    pub files: Files,
}

/// Keeps the certificate, its authority and what the API servers trust in step.
pub struct Rotator {
    cluster: Cluster,
    names: Vec<String>,
    files: Files,
    terms: Terms,
    interval: Duration,
    metrics: Metrics,
    emitter: Emitter,
    regarding: Regarding,
    /// Waits for the first certificate.
    first: Option<oneshot::Sender<()>>,
    /// What was told last, so that the same is not told with every look.
    told: Option<String>,
}

/// Why a look came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Cluster(#[from] Trouble),
    #[error(transparent)]
    Mint(#[from] mint::Failure),
    #[error("the certificate cannot be put where the server reads it: {0}")]
    Files(#[from] io::Error),
    #[error("the files could not be written: {0}")]
    Task(#[from] JoinError),
    #[error("the authority is not valid before {0}; is a clock wrong?")]
    Early(Timestamp),
    #[error(
        "a role lacks `get` on our webhook configurations, so ca.crt of the Secret must be brought there by hand"
    )]
    Unseen,
    #[error("no answer in time")]
    Late,
}

impl Failure {
    /// What a person has to mend is not mended within a second.
    fn next(&self) -> Next {
        match self {
            Self::Unseen | Self::Early(_) | Self::Cluster(Trouble::Forbidden { .. }) => Next::Later,
            Self::Cluster(Trouble::Conflict) => Next::AtOnce,
            Self::Cluster(Trouble::NoSecret(_) | Trouble::Api { .. })
            | Self::Mint(_)
            | Self::Files(_)
            | Self::Task(_)
            | Self::Late => Next::Soon,
        }
    }
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    AtOnce,
    Soon,
    Later,
}

impl Rotator {
    /// One that tells of trouble as of `regarding`, and what says when its first certificate is where the server reads it.
    pub fn new(
        client: Client,
        place: Place,
        terms: Terms,
        metrics: Metrics,
        (emitter, regarding): (Emitter, Regarding),
    ) -> (Self, oneshot::Receiver<()>) {
        let Place {
            namespace,
            secret,
            registration,
            names,
            files,
        } = place;
        let lasts = Duration::try_from(terms.certificate).unwrap_or(INTERVAL);
        let (first, shown) = oneshot::channel();
        let rotator = Self {
            first: Some(first),
            interval: INTERVAL.min(lasts / LOOKS),
            cluster: Cluster::new(client, &namespace, secret, registration),
            names,
            files,
            terms,
            metrics,
            emitter,
            regarding,
            told: None,
        };
        (rotator, shown)
    }

    /// Looks again and again, until the program ends. No trouble ends the program: what is served goes on being served.
    pub async fn run(mut self, shutdown: Shutdown) {
        loop {
            let looked = timeout(DEADLINE, self.look(Timestamp::now())).await;
            let next = match looked.unwrap_or(Err(Failure::Late)) {
                Ok(next) => {
                    self.told = None;
                    next
                }
                Err(failure @ Failure::Cluster(Trouble::Conflict)) => failure.next(),
                Err(failure) => {
                    self.tell(&failure);
                    failure.next()
                }
            };
            let pause = match next {
                Next::AtOnce => AT_ONCE,
                Next::Soon => SOON.min(self.interval),
                Next::Later => self.interval,
            };
            // Replicas that started together need not look together.
            let pause = pause.mul_f64(0.75 + fastrand::f64() / 2.0);
            tokio::select! {
                _ = shutdown.started() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// One look, and one step of what it asks for.
    async fn look(&mut self, now: Timestamp) -> Result<Next, Failure> {
        // In this order: the Secret is then never older than what the configurations were made from.
        let registered = self.cluster.registered().await?;
        let secret = self.cluster.secret().await?;
        let data = content(&secret);
        let seen = Seen {
            stored: Stored::read(&data),
            trust: registered.as_ref().map_or(Trust::Unseen, Registered::trust),
            names: self.names.clone(),
        };
        let planned = plan(&seen, &self.terms, now);
        let authority = seen.stored.authority.as_ref();
        let not_after = authority.map(|one| one.certificate.not_after);
        self.metrics.show(planned.trusted.len(), not_after);
        self.apply(planned, registered, (secret, data), now).await
    }

    async fn apply(
        &mut self,
        planned: Plan,
        registered: Option<Registered>,
        (secret, data): (Secret, Data),
        now: Timestamp,
    ) -> Result<Next, Failure> {
        let Plan {
            trusted,
            change,
            shows,
            early,
        } = planned;
        if shows {
            self.show(&data).await?;
        }
        if let Some(not_before) = early {
            return Err(Failure::Early(not_before));
        }
        let (mut stepped, forbidden) = match self.trust(registered.as_ref(), &trusted).await {
            Ok(stepped) => (stepped, None),
            // Then it is brought there by hand, and everything else goes on.
            Err(forbidden @ Trouble::Forbidden { .. }) => (false, Some(forbidden)),
            Err(other) => return Err(other.into()),
        };
        if let Some(change) = &change {
            let changed = mint::changed(&data, change, &self.names, &self.terms, now)?;
            self.cluster.store(secret, changed).await?;
            let step = Step::from(change);
            tracing::info!(step = step.as_str(), "Own certificates changed");
            self.metrics.did(step);
            stepped = true;
        }
        let is_under_way = !shows || data.contains_key(key::NEXT);
        match (registered, forbidden) {
            _ if stepped => Ok(Next::AtOnce),
            (None, _) => Err(Failure::Unseen),
            (_, Some(forbidden)) => Err(forbidden.into()),
            (Some(registered), None) if is_under_way || !registered.is_whole() => Ok(Next::Soon),
            (Some(_), None) => Ok(Next::Later),
        }
    }

    /// Has the API servers trust these. Says whether that took a write.
    async fn trust(
        &self,
        registered: Option<&Registered>,
        trusted: &[Certificate],
    ) -> Result<bool, Trouble> {
        let Some(registered) = registered.filter(|_| !trusted.is_empty()) else {
            return Ok(false);
        };
        let wrote = self.cluster.trust(registered, trusted).await?;
        if wrote {
            let authorities = trusted.len();
            tracing::info!(
                authorities,
                "Webhook configurations trust other authorities"
            );
            self.metrics.did(Step::Trust);
        }
        Ok(wrote)
    }

    /// Puts the stored pair where the server reads it.
    async fn show(&mut self, data: &Data) -> Result<(), Failure> {
        let (Some(certificate), Some(own)) = (data.get(key::CERTIFICATE), data.get(key::KEY))
        else {
            return Ok(());
        };
        let Files {
            certificate: file,
            key: key_file,
            ca: _,
            client_ca: _,
        } = self.files.clone();
        let (certificate, own) = (certificate.clone(), own.clone());
        let writing = tokio::task::spawn_blocking(move || {
            // Half of a new pair is no pair; the server waits for the other half, and keeps the old pair meanwhile.
            put(&key_file, &own)?;
            put(&file, &certificate)
        });
        writing.await??;
        if let Some(first) = self.first.take() {
            // Nobody waits any more where the program is ending.
            let _ = first.send(());
        }
        Ok(())
    }

    fn tell(&mut self, failure: &Failure) {
        self.metrics.failed();
        let reason = failure.to_string();
        if self.told.as_deref() == Some(&reason) {
            return;
        }
        tracing::warn!(reason, "Own certificates cannot be kept up to date");
        let note = Note::new("The webhook cannot keep its own certificates up to date");
        let occurrence = Occurrence::new(
            self.regarding.clone(),
            Reason::CertificateRotationFailed,
            note.because(&reason),
        );
        self.emitter.emit(Effect::Real, occurrence);
        self.told = Some(reason);
    }
}

fn content(secret: &Secret) -> Data {
    let data = secret.data.iter().flatten();
    data.map(|(key, ByteString(bytes))| (key.clone(), bytes.clone()))
        .collect()
}

/// Replaces a file at once, unless it has this content already. Only we may read it.
fn put(file: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(file).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let beside = file.with_extension("new");
    let mut open = OpenOptions::new();
    let open = open.write(true).create(true).truncate(true).mode(0o600);
    open.open(&beside)?.write_all(content)?;
    fs::rename(beside, file)
}
