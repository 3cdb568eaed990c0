//! Follows the files: reads them again and again, and swaps what they hold once it is known to be good.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{
    Files, Metrics, Refused, ServerTls,
    material::{Checked, Material, check},
    metrics::Reload,
};
use crate::kit::{readiness::Gate, shutdown::Shutdown};

/// Time between two looks; a renewed certificate is on the wire no later than this.
const INTERVAL: Duration = Duration::from_millis(500);

/// No certificate chain or key is this large.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Keeps a [`ServerTls`] up to date.
#[derive(Debug)]
pub struct Source {
    files: Files,
    tls: ServerTls,
    gate: Gate,
    metrics: Metrics,
    followed: Followed,
}

impl Source {
    /// A source for the files; the gate opens with the first good pair.
    pub fn new(files: Files, gate: Gate, metrics: Metrics) -> Self {
        Self {
            files,
            tls: ServerTls::default(),
            gate,
            metrics,
            followed: Followed::default(),
        }
    }

    /// What servers use; it changes as the files do.
    pub fn tls(&self) -> ServerTls {
        self.tls.clone()
    }

    /// Follows the files until the program ends.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), io::Error> {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                _ = ticks.tick() => {}
            }
            let files = self.files.clone();
            let seen = tokio::task::spawn_blocking(move || read(&files)).await?;
            self.look(seen, Timestamp::now());
        }
    }

    /// One look at what the files hold now.
    fn look(&mut self, seen: Look, now: Timestamp) {
        match self.followed.judge(seen, now) {
            Verdict::Same => {}
            Verdict::Swap(Checked { config, not_after }) => {
                self.tls.replace(config);
                self.metrics.not_after.set(not_after.as_second());
                self.metrics.reloaded(Reload::Ok);
                self.gate.open();
                tracing::info!(%not_after, "Certificate in use");
            }
            Verdict::Refuse(refused) => {
                self.metrics.reloaded(Reload::Refused);
                let kept = self.followed.used.is_some();
                tracing::warn!(error = %refused, kept, "Certificate files cannot be used");
                if !kept {
                    self.gate.close(refused.to_string());
                }
            }
            Verdict::Expire(not_after) => {
                tracing::error!(%not_after, "Certificate in use has expired");
                self.gate
                    .close(format!("the certificate expired at {not_after}"));
            }
        }
    }
}

/// What the files hold, or why that cannot be said.
type Look = Result<Material, Refused>;

/// What to do after a look at the files.
enum Verdict {
    Same,
    Swap(Checked),
    Refuse(Refused),
    Expire(Timestamp),
}

/// What was seen before.
#[derive(Default)]
struct Followed {
    used: Option<Used>,
    /// What was wrong at the last look, and whether that was said.
    doubted: Option<(Look, bool)>,
}

struct Used {
    material: Material,
    not_after: Timestamp,
    expired: bool,
}

impl std::fmt::Debug for Followed {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let until = self.used.as_ref().map(|used| used.not_after);
        f.debug_struct("Followed")
            .field("not_after", &until)
            .finish_non_exhaustive()
    }
}

impl Followed {
    /// Decides about one look. Something wrong counts only if it is seen twice in a row: files that are being replaced
    /// may be caught half-way.
    fn judge(&mut self, seen: Look, now: Timestamp) -> Verdict {
        if let (Some(used), Ok(material)) = (&mut self.used, &seen)
            && used.material == *material
        {
            self.doubted = None;
            return used.age(now);
        }
        let checked = seen.clone().and_then(|material| {
            let checked = check(&material, now)?;
            Ok((material, checked))
        });
        match checked {
            Ok((material, checked)) => {
                self.doubted = None;
                self.used = Some(Used {
                    material,
                    not_after: checked.not_after,
                    expired: false,
                });
                Verdict::Swap(checked)
            }
            Err(refused) => self.doubt(seen, refused, now),
        }
    }

    fn doubt(&mut self, seen: Look, refused: Refused, now: Timestamp) -> Verdict {
        let (again, said) = match &self.doubted {
            Some((before, said)) => (*before == seen, *said),
            None => (false, false),
        };
        self.doubted = Some((seen, again));
        match again && !said {
            true => Verdict::Refuse(refused),
            false => self
                .used
                .as_mut()
                .map_or(Verdict::Same, |used| used.age(now)),
        }
    }
}

impl Used {
    fn age(&mut self, now: Timestamp) -> Verdict {
        if self.expired || now < self.not_after {
            return Verdict::Same;
        }
        self.expired = true;
        Verdict::Expire(self.not_after)
    }
}

fn read(files: &Files) -> Look {
    let Files {
        certificate,
        key,
        client_ca,
    } = files;
    Ok(Material {
        certificate: read_file(certificate)?,
        key: read_file(key)?,
        client_ca: client_ca.as_deref().map(read_file).transpose()?,
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Refused::Unreadable {
            file: path.to_owned(),
            reason: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests;
