//! Follows the files: reads them again and again, and swaps what they hold once it is known to be good.

mod followed;

use std::{
    fs::File,
    io::{self, Read},
    net::SocketAddr,
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::broadcast,
    time::{MissedTickBehavior, interval},
};

use super::{
    Files, Metrics, Notice, Options, Protocols, Refused, ServerTls,
    material::{Checked, Demands, Material},
    metrics::Reload,
    watch::Watch,
    wire::{Known, Wire},
};
use crate::kit::{readiness::Gate, shutdown::Shutdown};
use followed::{Followed, Verdict};

/// Time between two looks; a renewed certificate is on the wire no later than this, even if no watch tells of it.
const INTERVAL: Duration = Duration::from_millis(500);

/// No certificate chain or key is this large.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Notices that wait for a slow listener.
const NOTICES: usize = 16;

/// Keeps a [`ServerTls`] up to date.
#[derive(Debug)]
pub struct Source {
    files: Files,
    tls: ServerTls,
    gate: Gate,
    metrics: Metrics,
    followed: Followed,
    wire: Option<Wire>,
    /// What is wrong with the files, whether or not there is an older pair to serve with.
    refused: Option<String>,
    notices: broadcast::Sender<Notice>,
}

impl Source {
    /// A source for the files; the gate opens with the first good pair.
    pub fn new(options: Options, gate: Gate, metrics: Metrics) -> Self {
        let Options {
            files,
            names,
            clients,
        } = options;
        Self {
            files,
            tls: ServerTls::new(metrics.clone()),
            gate,
            metrics,
            followed: Followed::new(Demands { names, clients }),
            wire: None,
            refused: None,
            notices: broadcast::Sender::new(NOTICES),
        }
    }

    /// The same, but the gate opens only once our own port is seen to show the pair, and does so again after each swap.
    pub fn seen_on(self, port: SocketAddr) -> Self {
        Self {
            wire: Some(Wire::new(port, self.tls.eye.clone())),
            ..self
        }
    }

    /// The same, for servers that speak this HTTP.
    pub fn speaking(self, protocols: Protocols) -> Self {
        Self {
            tls: ServerTls {
                protocols,
                ..self.tls
            },
            ..self
        }
    }

    /// What servers use; it changes as the files do.
    pub fn tls(&self) -> ServerTls {
        self.tls.clone()
    }

    /// What people should hear of, from now on.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Follows the files until the program ends.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), io::Error> {
        let watch = Watch::new(&self.files);
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                () = looked(&mut self.wire) => {
                    self.show_gate();
                    continue;
                }
                () = watch.changed() => {}
                _ = ticks.tick() => {
                    watch.refresh();
                    // A port that is closing down shows nothing, and need not.
                    if let Some(wire) = &mut self.wire && !shutdown.is_announced() {
                        wire.retry();
                    }
                }
            }
            let files = self.files.clone();
            let seen = tokio::task::spawn_blocking(move || read(&files)).await?;
            self.look(seen, Timestamp::now());
        }
    }

    /// One look at what the files hold now.
    fn look(&mut self, seen: Look, now: Timestamp) {
        let verdict = self.followed.judge(seen, now);
        // The pair in use may come back without being swapped in.
        let is_back = !self.followed.doubts() && self.refused.take().is_some();
        match verdict {
            Verdict::Same if is_back => {}
            Verdict::Same => return,
            Verdict::Swap(checked) => self.swap(checked),
            Verdict::Refuse(reason) => {
                self.metrics.reloaded(Reload::Refused);
                let kept = self.followed.in_use();
                tracing::warn!(error = %reason, kept, "Certificate files cannot be used");
                self.refused = Some(reason.to_string());
                self.tell(Notice::Refused { reason, kept });
            }
            Verdict::Warn(not_after) => {
                tracing::warn!(%not_after, "Certificate in use ends soon and no new one has come");
                self.tell(Notice::Expiring { not_after });
            }
            Verdict::Expire(not_after) => {
                tracing::error!(%not_after, "Certificate in use has expired");
                self.tell(Notice::Expired { not_after });
            }
        }
        self.show_gate();
    }

    fn swap(&mut self, checked: Checked) {
        let Checked {
            current,
            leaf,
            term,
        } = checked;
        let not_after = term.not_after;
        self.tls.replace(current);
        self.metrics.not_after.set(not_after.as_second());
        self.metrics.reloaded(Reload::Ok);
        tracing::info!(%not_after, "Certificate in use");
        if let Some(wire) = &mut self.wire {
            wire.expect(leaf);
        }
        self.tell(Notice::InUse { not_after });
    }

    /// Nobody listening is as good as everybody.
    fn tell(&self, notice: Notice) {
        drop(self.notices.send(notice));
    }

    /// Opens or closes the gate by all that is known.
    fn show_gate(&self) {
        let known = self.wire.as_ref().map(Wire::known);
        let confirmed = known == Some(Known::Confirmed);
        self.metrics.on_wire.set(confirmed.into());
        if let (Some(reason), false) = (&self.refused, self.followed.in_use()) {
            return self.gate.close(reason.clone());
        }
        if let Some(not_after) = self.followed.expired() {
            return self
                .gate
                .close(format!("the certificate expired at {not_after}"));
        }
        match known {
            Some(Known::Doubtful(reason)) => self.gate.close(reason),
            // A swap does not take the program out of service; a first pair does not bring it in before it is seen.
            Some(Known::Waiting) => {}
            Some(Known::Confirmed) | None if self.followed.in_use() => self.open_gate(),
            Some(Known::Confirmed) | None => {}
        }
    }

    /// A pair on disk that cannot be used takes nobody out of service: the one in use is as good as before, and all replicas
    /// have the same files. So it is said, and that is all.
    fn open_gate(&self) {
        match &self.refused {
            Some(reason) => self
                .gate
                .open_but(format!("files on disk refused: {reason}")),
            None => self.gate.open(),
        }
    }
}

/// Waits for a look at the wire; forever where none is taken.
async fn looked(wire: &mut Option<Wire>) {
    match wire {
        Some(wire) => wire.looked().await,
        None => std::future::pending().await,
    }
}

/// What the files hold, or why that cannot be said.
type Look = Result<Material, Refused>;

fn read(files: &Files) -> Look {
    let Files {
        certificate,
        key,
        ca,
        client_ca,
    } = files;
    Ok(Material {
        certificate: read_file(certificate)?,
        key: read_file(key)?,
        ca: ca.as_deref().map(read_file).transpose()?,
        client_ca: client_ca.as_deref().map(read_file).transpose()?,
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, Refused> {
    let unreadable = |reason: String| Refused::Unreadable {
        file: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    match read {
        Ok(length) if length as u64 > MAX_FILE_BYTES => Err(unreadable(format!(
            "it is longer than {MAX_FILE_BYTES} bytes"
        ))),
        Ok(_) => Ok(bytes),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_refused_and_not_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_FILE_BYTES).unwrap();
        assert_eq!(read_file(file.path()).unwrap().len() as u64, MAX_FILE_BYTES);
        file.as_file().set_len(MAX_FILE_BYTES + 1).unwrap();
        let refused = read_file(file.path()).unwrap_err().to_string();
        assert!(
            refused.contains("it is longer than 1048576 bytes"),
            "{refused}"
        );
    }
}
