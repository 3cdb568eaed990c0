//! The real webhook as a process, and its registration with the real API server for namespaces of its own.
//!
//! What is started here ends with its value, or with this process however that goes: each is kept by a shell that
//! waits for its standard input to close.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use agents::{
    api::{
        contract::{env as variable, label},
        kind::Kind,
        registration::rung::Rung,
        registration::{Reach, Registration},
    },
    kit::args::variable as common,
};
use agents_webhook::args::variable as own;
use anyhow::{Context, Result, ensure};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        batch::v1::Job,
        core::v1::Namespace as NamespaceObject,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use support::{Namespace, builders::smallest, crds, lab, memory, wait};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::kit::{
    pki::{Authority, Mount},
    process::product,
};

/// Nothing takes longer, also where everything else is busy.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// Label on a namespace: the registration that its objects go through.
const LABEL: &str = "agents-tests/registration";

/// Says the id of the program, and asks it to end when standard input closes.
const KEEP: &str =
    r#""$@" >"$LOG" 2>&1 & program=$!; echo $program; read -r _; kill $program; wait $program"#;

/// Carries out a command when standard input closes.
const AFTERWARDS: &str = r#"read -r _; exec "$@" >/dev/null 2>&1"#;

/// The certificate of one or several replicas, and who issued it.
pub(crate) struct Certificates {
    pub(crate) authority: Authority,
    pub(crate) mount: Mount,
}

impl Certificates {
    pub(super) fn new() -> Self {
        let authority = Authority::new();
        let mount = Mount::new(&authority.issue());
        Self { authority, mount }
    }
}

/// An empty folder for a certificate that the webhook makes itself.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(TempDir::new()?))
    }
}

/// A running webhook.
pub(crate) struct Hook {
    keeper: Child,
    /// Id of the process.
    pub(super) id: u32,
    /// Where reviews are answered.
    pub(crate) address: SocketAddr,
    /// Where it says how it is.
    pub(crate) admin: SocketAddr,
    log: PathBuf,
    _folder: TempDir,
}

impl Hook {
    /// Starts the program for the shared control plane, and returns when it is ready.
    pub(super) async fn start(
        certificates: &Certificates,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let files = certificates.mount.files();
        Self::start_with((&files.certificate, &files.key), settings).await
    }

    /// The same for one that puts its certificate into this folder itself.
    pub(super) async fn start_in(folder: &Folder, settings: &[(&str, &str)]) -> Result<Self> {
        let Folder(folder) = folder;
        let files = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        Self::start_with((&files[0], &files[1]), settings).await
    }

    async fn start_with(
        (certificate, key): (&Path, &Path),
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        crds::install_once().await?; // it follows our kinds from the start
        let lab = lab::shared().await?;
        let folder = TempDir::new()?;
        let log = folder.path().join("log");
        File::create(&log)?;
        let mut keeper = Command::new("sh")
            .args(["-c", KEEP, "sh"])
            .arg(product("agents-webhook"))
            .env_clear()
            .env("LOG", &log)
            .env("KUBECONFIG", lab.kubeconfig())
            .env(common::ADMIN_LISTEN, "127.0.0.1:0")
            .env(own::LISTEN, "127.0.0.1:0")
            .env(common::TLS_CERTIFICATE_FILE, certificate)
            .env(common::TLS_KEY_FILE, key)
            .env(own::RUNG, Rung::Fail.as_str())
            .env(variable::NAMESPACES, "*")
            .env(common::SHUTDOWN_LINGER, "0")
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().context("a pipe")?).read_line(&mut said)?;
        let mut hook = Self {
            keeper,
            id: said.trim().parse()?,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            admin: (Ipv4Addr::LOCALHOST, 0).into(),
            log,
            _folder: folder,
        };
        hook.address = hook.listening("admission").await?;
        hook.admin = hook.listening("admin").await?;
        let admin = hook.admin.to_string();
        let ready = wait::retry("a webhook that is ready", DEADLINE, || {
            support::http::get(&admin, "/readyz?verbose")
        });
        ready.await.with_context(|| hook.logged())?;
        Ok(hook)
    }

    async fn listening(&self, server: &str) -> Result<SocketAddr> {
        let found = || async {
            let log = self.logged();
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines
                .filter(|line| line["message"] == "Listening" && line["server"] == server)
                .find_map(|line| line["address"].as_str()?.parse().ok())
                .with_context(|| format!("not listening yet; it has logged: {log}"))
        };
        wait::retry(&format!("port {server} of the webhook"), DEADLINE, found).await
    }

    /// What it has logged so far.
    pub(super) fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Memory that it holds now and held at most, in KiB, as the kernel counts it: without the pages of the program file, which
    /// the kernel takes back when it needs them. A debug build has far more of those than what is shipped.
    pub(super) fn memory(&self) -> Result<(u64, u64)> {
        let file = memory::of_files(self.id)?;
        let held = |bytes: u64| bytes.saturating_sub(file) / 1024;
        Ok((
            held(memory::resident(self.id)?),
            held(memory::peak(self.id)?),
        ))
    }

    /// Asks it to end, waits for that, and says how it ended.
    pub(crate) async fn end(mut self) -> Result<(ExitStatus, String)> {
        drop(self.keeper.stdin.take());
        let mut keeper = self.keeper;
        let gone = || {
            let state = keeper.try_wait();
            async move { state?.context("it still runs") }
        };
        let status = wait::retry("the end of the webhook", DEADLINE, gone).await?;
        Ok((status, std::fs::read_to_string(&self.log)?))
    }
}

/// An entry in the API server's books, taken out when the value is dropped.
pub(crate) struct Registered {
    keeper: Child,
    /// What namespaces are labelled with.
    pub(super) name: String,
}

impl Registered {
    /// Lets the API server call `https://address` for namespaces with a label of this registration. Where the chart lets
    /// requests pass while the webhook is slow, tests want to see it: no pass goes unnoticed, and a busy machine has time
    /// to answer.
    pub(super) async fn new(address: SocketAddr, authority: &Authority) -> Result<Self> {
        let ca = Some(authority.pem().into_bytes());
        Self::with(address, ca, Rung::Fail, Manner::Patient).await
    }

    /// The same without saying who issued the certificate: someone else fills that in.
    pub(super) async fn without_ca(address: SocketAddr, rung: Rung) -> Result<Self> {
        Self::with(address, None, rung, Manner::Patient).await
    }

    /// The same exactly as the chart registers it on this rung, but for these namespaces only.
    pub(crate) async fn shipped(
        address: SocketAddr,
        authority: &Authority,
        rung: Rung,
    ) -> Result<Self> {
        let ca = Some(authority.pem().into_bytes());
        Self::with(address, ca, rung, Manner::Shipped).await
    }

    async fn with(
        address: SocketAddr,
        ca: Option<Vec<u8>>,
        rung: Rung,
        manner: Manner,
    ) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let lab = lab::shared().await?;
        lab.ensure_ours()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("agents-tests-{}-{count}", std::process::id());
        let keeper = removal(lab, &name)?;
        let registered = Self { keeper, name };
        let registration = Registration {
            name: registered.name.clone(),
            rung,
            reach: Reach::Url(format!("https://{address}")),
            ca,
        };
        let client = lab.client().await?;
        registered.put(client, &registration, manner).await?;
        Ok(registered)
    }

    /// Writes both configurations, restricted to our namespaces.
    async fn put(&self, client: Client, registration: &Registration, manner: Manner) -> Result<()> {
        let ours = [(LABEL.to_owned(), self.name.clone())];
        let restrict = |namespaces: &mut Option<LabelSelector>| {
            let selector = namespaces.get_or_insert_default();
            selector
                .match_labels
                .get_or_insert_default()
                .extend(ours.clone());
        };
        let mut mutating = registration.mutating();
        for hook in mutating.webhooks.iter_mut().flatten() {
            restrict(&mut hook.namespace_selector);
            manner.apply(&mut hook.failure_policy, &mut hook.timeout_seconds);
        }
        let mut validating = registration.validating();
        for hook in validating.webhooks.iter_mut().flatten() {
            restrict(&mut hook.namespace_selector);
            manner.apply(&mut hook.failure_policy, &mut hook.timeout_seconds);
        }
        let params = PostParams::default();
        let all: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        all.create(&params, &mutating).await?;
        let all: Api<ValidatingWebhookConfiguration> = Api::all(client);
        all.create(&params, &validating).await?;
        Ok(())
    }

    /// A namespace whose objects go through the webhook. Returns when the API server is seen to ask it, which takes a
    /// moment after the registration: until then, everything passes.
    pub(crate) async fn namespace(&self, area: &str) -> Result<Namespace> {
        let here = self.unasked_namespace(area, json!({})).await?;
        wait::retry("a webhook that is called", DEADLINE, || called(&here)).await?;
        Ok(here)
    }

    /// The same without waiting, and with these labels besides. There is a Job `asked` in it, whose outcome is not
    /// recorded.
    pub(super) async fn unasked_namespace(
        &self,
        area: &str,
        mut labels: Value,
    ) -> Result<Namespace> {
        let here = support::namespace(area).await?;
        let all: Api<NamespaceObject> = Api::all(here.client.clone());
        labels[LABEL] = json!(self.name);
        let labels = json!({"metadata": {"labels": labels}});
        all.patch(&here.name, &PatchParams::default(), &Patch::Merge(labels))
            .await?;
        let job = job("asked", run_labels(label::AGENT_RUN, "nobody", "none"));
        let jobs = here.api::<Job>();
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?)
            .await?;
        Ok(here)
    }
}

/// How a registration treats a webhook that does not answer.
#[derive(Clone, Copy)]
enum Manner {
    /// As the chart does.
    Shipped,
    /// Nothing passes unasked, and there is much time.
    Patient,
}

impl Manner {
    fn apply(self, policy: &mut Option<String>, seconds: &mut Option<i32>) {
        match self {
            Self::Shipped => {}
            Self::Patient => {
                *policy = Some("Fail".to_owned());
                *seconds = Some(30);
            }
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // What cannot be removed is in a lab that is going.
        let _ = self.keeper.wait();
    }
}

/// Both configurations are removed when the pipe to this child closes.
fn removal(lab: &lab::Lab, name: &str) -> Result<Child> {
    let kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
    let child = Command::new("sh")
        .args(["-c", AFTERWARDS, "sh"])
        .arg(lab.kubectl_program())
        .args(["delete", kinds, name, "--ignore-not-found", "--wait=false"])
        .arg("--request-timeout=20s")
        .envs(lab.environment())
        .stdin(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// Whether both configurations are in force here: the mutating one refuses an object or warns of it, and so does the
/// validating one with a deletion. Both are dry runs, so nothing is left of them.
async fn called(here: &Namespace) -> Result<()> {
    let create = ["create", "--dry-run=server", "--filename", "-"];
    let workspace = smallest(Kind::Workspace, "asked").to_string();
    let said = here.kubectl.run_with_input(&create, &workspace).await?;
    // An answer that refuses or warns; a call that only failed is no answer.
    ensure!(
        said.stderr.contains("spec.size: there is no size"),
        "a Workspace without a size passed in silence: {}",
        said.stderr
    );
    let delete = ["delete", "job", "asked", "--dry-run=server"];
    let said = here.kubectl.run(&delete).await?;
    ensure!(
        said.code == Some(1) || said.stderr.starts_with("Warning: "),
        "the deletion of a Job without a recorded outcome passed in silence"
    );
    Ok(())
}

/// The labels of a Job that carries out a run of this sort.
pub(super) fn run_labels(sort: &str, run: &str, uid: &str) -> Value {
    json!({sort: run, label::RUN_UID: uid})
}

/// A Job that starts no pod.
pub(super) fn job(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "agent", "image": "registry.example.com/runner:1"}],
        }}},
    })
}

/// A webhook and its registration.
pub(crate) struct Station {
    /// The process.
    pub(crate) hook: Hook,
    /// Its registration.
    pub(crate) registered: Registered,
    /// Its certificate.
    pub(crate) certificates: Certificates,
}

impl Station {
    /// A webhook with these settings, registered.
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let certificates = Certificates::new();
        let hook = Hook::start(&certificates, settings).await?;
        let registered = Registered::new(hook.address, &certificates.authority).await?;
        Ok(Self {
            hook,
            registered,
            certificates,
        })
    }

    /// A webhook that lets Jobs go too early and notes who deleted them; its policy is in the folder.
    pub(crate) async fn lenient() -> Result<(Self, TempDir)> {
        let folder = TempDir::new()?;
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, "jobDelete: warn\n")?;
        Ok((Self::with_policy(&policy).await?, folder))
    }

    /// A webhook whose policy is in this file.
    pub(super) async fn with_policy(file: &Path) -> Result<Self> {
        ensure!(file.is_file(), "{} is not there", file.display());
        let file = file.to_str().context("the path is not UTF-8")?;
        Self::start(&[(variable::POLICY_FILE, file)]).await
    }
}

/// The webhook that most tests use: no policy, every rule.
pub(super) async fn shared() -> Result<&'static Station> {
    static SHARED: OnceCell<Station> = OnceCell::const_new();
    SHARED.get_or_try_init(|| Station::start(&[])).await
}

/// A namespace behind the shared webhook.
pub(super) async fn namespace(area: &str) -> Result<Namespace> {
    shared().await?.registered.namespace(area).await
}

/// A namespace behind a webhook at which few objects are refused, so that the limits on Events are far away.
pub(super) async fn calm_namespace(area: &str) -> Result<Namespace> {
    static CALM: OnceCell<Station> = OnceCell::const_new();
    let station = CALM.get_or_try_init(|| Station::start(&[])).await?;
    station.registered.namespace(area).await
}
