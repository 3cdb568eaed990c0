//! The CRDs of this workspace in the shared control plane.

use crate::fixtures::repository;
use crate::lab::{self, Lab};
use crate::left_out;
use anyhow::{Context, Result, bail, ensure};
use tokio::sync::OnceCell;

/// Why a test is left out that needs our kinds.
const LACKING: &str = "the existing cluster has not the kinds of crds/, and tests install nothing in it; \
                       `kubectl apply --server-side --filename crds` does";

/// How the shared control plane has our kinds.
enum Kinds {
    /// They were installed; what `kubectl` warned about then.
    Installed(String),
    /// An existing cluster has them, just as they are in `crds/`.
    Found,
    /// An existing cluster has other ones or none.
    Lacking,
}

/// Looks once per test run; installs where the cluster is ours.
async fn shared() -> Result<&'static Kinds> {
    static KINDS: OnceCell<Kinds> = OnceCell::const_new();
    let look = || async {
        let lab = lab::shared().await?;
        match lab.is_foreign() {
            true => compare(lab).await,
            false => install(lab).await.map(Kinds::Installed),
        }
    };
    KINDS.get_or_try_init(look).await
}

/// Makes sure that the shared control plane has our kinds; returns what `kubectl` warned about if it installed them.
pub async fn install_once() -> Result<&'static str> {
    match shared().await? {
        Kinds::Installed(warnings) => Ok(warnings),
        Kinds::Found => Ok(""),
        Kinds::Lacking => bail!(LACKING),
    }
}

/// Whether a test can have our kinds; if not, it is noted as left out and shall return. Call it through
/// [`crate::kinds!`], which knows the test's name.
pub async fn usable(test: &str) -> Result<bool> {
    match shared().await? {
        Kinds::Installed(_) | Kinds::Found => Ok(true),
        Kinds::Lacking => {
            left_out::note(&left_out::test_name(test), LACKING)?;
            Ok(false)
        }
    }
}

/// Installs `crds/` and waits until the API server serves every kind; returns what `kubectl` warned about.
pub async fn install(lab: &Lab) -> Result<String> {
    lab.ensure_ours()?;
    let folder = folder()?;
    let kubectl = lab.kubectl();
    let applied = kubectl
        .run(&["apply", "--server-side", "--filename", &folder])
        .await?;
    ensure!(
        applied.code == Some(0),
        "the CRDs were refused: {}",
        applied.stderr
    );
    kubectl
        .run(&[
            "wait",
            "--for=condition=Established",
            "--timeout=30s",
            "--filename",
            &folder,
        ])
        .await?
        .ok()?;
    Ok(applied.stderr)
}

/// Holds `crds/` against an existing cluster without changing it: `kubectl diff` is a dry run.
async fn compare(lab: &Lab) -> Result<Kinds> {
    let folder = folder()?;
    let diff = ["diff", "--server-side", "--filename", &folder];
    let said = lab.kubectl().run(&diff).await?;
    Ok(match said.code {
        Some(0) => Kinds::Found,
        Some(_) | None => Kinds::Lacking,
    })
}

fn folder() -> Result<String> {
    let folder = repository().join("crds").into_os_string().into_string();
    folder.ok().context("the path of crds/ is not UTF-8")
}

/// The calling test needs our kinds; it returns, noted as left out, where an existing cluster has not got them.
#[macro_export]
macro_rules! kinds {
    () => {{
        fn here() {}
        if !$crate::crds::usable(::std::any::type_name_of_val(&here)).await? {
            return Ok(());
        }
    }};
}
