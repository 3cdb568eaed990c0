//! Which version this process is of, while a new one is tried beside the old: what the labels of its pod say.
//!
//! The file is written by the kubelet and follows the pod, so a canary that has become the stable version knows it without
//! a restart.

use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::{Elector, yielding};
use crate::api::contract::label;

/// More is not read: labels of a pod are few and short.
const MOST: u64 = 256 * 1024;

/// What a pod is told about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// Tells its version from every other of the same release; none where nobody rolls versions out.
    pub(super) revision: Option<String>,
    /// Whether it is on trial.
    pub(super) is_canary: bool,
}

impl Version {
    /// Reads the file, if there is one. Whoever knows nothing of itself is no canary.
    pub(super) async fn read(file: Option<&Path>) -> Self {
        let Some(file) = file else {
            return Self::default();
        };
        let mut text = String::new();
        let read = async {
            File::open(file)
                .await?
                .take(MOST)
                .read_to_string(&mut text)
                .await
        };
        match read.await {
            Ok(_) => Self::of(&text),
            Err(error) => {
                tracing::debug!(%error, "The labels of the pod cannot be read");
                Self::default()
            }
        }
    }

    /// From lines such as `name="value"`. Values of labels have nothing in them that is escaped.
    fn of(text: &str) -> Self {
        let find = |wanted: &str| {
            let pairs = text.lines().filter_map(|line| line.split_once('='));
            let value = pairs.filter(|(name, _)| *name == wanted).map(|pair| pair.1);
            let value = value.map(|value| value.trim_matches('"')).next()?;
            (!value.is_empty()).then(|| value.to_owned())
        };
        Self {
            revision: find(label::ROLLOUT_HASH),
            is_canary: find(label::ROLLOUT).as_deref() == Some(label::ROLLOUT_CANARY),
        }
    }
}

impl Elector {
    /// What the pod of this process is told now.
    pub(super) async fn look(&self) -> Version {
        Version::read(self.settings.labels.as_deref()).await
    }

    /// Asks for the lease as a canary that is ready, unless its version holds it already.
    pub(super) async fn ask(&self, version: &Version, seen: Option<&mut Lease>) {
        let Some(lease) = seen.filter(|_| version.is_canary && self.is_ready()) else {
            return;
        };
        let own = &self.post.identity;
        let Some(asked) = yielding::ask(lease, own, version.revision.as_deref()) else {
            return;
        };
        match self.put(&asked).await {
            Ok(stored) => {
                tracing::info!("Asking for the lease as the canary of a new version");
                *lease = stored;
            }
            Err(error) => tracing::debug!(error, "The lease was changed meanwhile"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_which_version_a_pod_is_of_and_whether_it_is_on_trial() {
        let version = |revision: Option<&str>, is_canary| Version {
            revision: revision.map(str::to_owned),
            is_canary,
        };
        let name = "app.kubernetes.io/name=\"agents-controllers\"\n";
        let hash = "rollouts-pod-template-hash=\"6f7c\"\n";
        let role = |role: &str| format!("{name}agents.proompteng.ai/rollout=\"{role}\"\n{hash}");
        for (row, text, expected) in [
            ("nothing", String::new(), version(None, false)),
            ("of a Deployment", name.to_owned(), version(None, false)),
            ("canary", role("canary"), version(Some("6f7c"), true)),
            ("stable", role("stable"), version(Some("6f7c"), false)),
            ("no role yet", hash.to_owned(), version(Some("6f7c"), false)),
            ("empty", role(""), version(Some("6f7c"), false)),
            (
                "no such lines",
                "canary\n=\n".to_owned(),
                version(None, false),
            ),
        ] {
            assert_eq!(Version::of(&text), expected, "{row}");
        }
    }

    #[tokio::test]
    async fn without_a_file_nobody_is_on_trial() {
        let away = Path::new("/nowhere/labels");
        assert_eq!(Version::read(None).await, Version::default());
        assert_eq!(Version::read(Some(away)).await, Version::default());
    }
}
