//! A namespace with a control plane of its own, people with roles in it, and a client that speaks for them.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use agents::api::contract::env;
use agents::kit::args::variable as common;
use agents::serve::variable;
use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::{Namespace, crds, lab, wait};

use crate::controller::scene::Scene;
use crate::kit::client::{self, Answer};
use crate::kit::process::{Process, product};

pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// What an admin of a namespace may do there.
pub(crate) const ALL: &[(&str, &str, &str)] = &[
    ("agents.proompteng.ai", "*", "*"),
    ("approvals.proompteng.ai", "*", "*"),
    ("signals.proompteng.ai", "*", "*"),
    ("", "events", "list"),
    ("", "pods/log", "get"),
];

/// A control plane for one namespace.
pub(crate) struct Plane {
    pub(crate) scene: Scene,
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

impl Plane {
    /// Starts one in a fresh namespace, with an Agent in it.
    pub(crate) async fn start(more: &[(&str, &str)]) -> Result<Self> {
        let scene = Scene::with_agent(&[]).await?;
        Self::beside(scene, more).await
    }

    /// Starts one more for the same namespace.
    pub(crate) async fn beside(scene: Scene, more: &[(&str, &str)]) -> Result<Self> {
        let kubeconfig = lab::shared().await?.kubeconfig();
        Self::by(scene, kubeconfig, more).await
    }

    /// The same, by another way to the API server.
    pub(crate) async fn by(scene: Scene, kubeconfig: &Path, more: &[(&str, &str)]) -> Result<Self> {
        crds::install_once().await?;
        let mut process = process(&scene.here, kubeconfig, more)?;
        let address = process.address("api").await;
        let plane = Self {
            scene,
            process,
            address,
        };
        wait::retry("a control plane that is ready", DEADLINE, || async {
            let ready = plane.ask("GET", "/readyz", None, None).await;
            anyhow::ensure!(ready.status == 200, "{}", ready.body);
            Ok(())
        })
        .await?;
        Ok(plane)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.scene.here.name
    }

    /// A service account with these rights in the namespace, and a token of it.
    pub(crate) async fn person(&self, name: &str, rights: &[(&str, &str, &str)]) -> Result<String> {
        person(&self.scene.here, name, rights).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Answer {
        self.ask_with((method, path), token, body, "").await
    }

    /// The same with more header lines.
    pub(crate) async fn ask_with(
        &self,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: Option<&Value>,
        headers: &str,
    ) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{}{headers}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            bearer(token),
            body.len(),
        );
        let mut stream = client::connect(self.address).await;
        client::send(&mut stream, request.as_bytes()).await;
        client::answer(&mut stream).await.expect("an answer")
    }

    /// Asks and reads the answer, which must have this status.
    pub(crate) async fn expect(
        &self,
        (method, path): (&str, &str),
        token: &str,
        body: Option<&Value>,
        status: u16,
    ) -> Result<Value> {
        let answer = self.ask(method, path, Some(token), body).await;
        anyhow::ensure!(
            answer.status == status,
            "{method} {path}: {} {}",
            answer.status,
            answer.body
        );
        Ok(serde_json::from_str(&answer.body)?)
    }

    /// Makes a pod which is this machine as far as the API server knows.
    pub(crate) async fn be_a_pod(&self, name: &str) -> Result<()> {
        let address = own_address().context("an address besides the loopback")?;
        let pods = self.scene.here.api::<Pod>();
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": name},
            "spec": {"containers": [{"name": "agents", "image": "agents"}]}}))?;
        pods.create(&PostParams::default(), &pod).await?;
        let status =
            json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await?;
        Ok(())
    }

    /// The path of a run.
    pub(crate) fn run(&self, name: &str) -> String {
        format!("/v1/agent-runs/{}/{name}", self.namespace())
    }
}

/// An address of this machine that is not the loopback; API servers do not go there for pods.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

pub(crate) fn bearer(token: Option<&str>) -> String {
    token.map_or(String::new(), |token| {
        format!("Authorization: Bearer {token}\r\n")
    })
}

/// The program, which may not become ready.
pub(crate) fn process(
    here: &Namespace,
    kubeconfig: &Path,
    more: &[(&str, &str)],
) -> Result<Process> {
    let mut environment = vec![
        ("KUBECONFIG", kubeconfig.to_str().context("UTF-8")?),
        (common::ADMIN_LISTEN, "127.0.0.1:0"),
        (variable::LISTEN, "127.0.0.1:0"),
        (env::NAMESPACES, &here.name),
        (env::LEADER_ELECTION_LEASE_NAMESPACE, &here.name),
    ];
    environment.extend(more);
    Ok(Process::start(&product("agents"), &["serve"], &environment))
}

/// A service account with these rights (group, resource, verb) in a namespace, and a token of it.
pub(crate) async fn person(
    here: &Namespace,
    name: &str,
    rights: &[(&str, &str, &str)],
) -> Result<String> {
    let how = PostParams::default();
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.to_owned());
    let accounts = here.api::<ServiceAccount>();
    accounts.create(&how, &account).await?;
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(here.name.clone()),
        ..Subject::default()
    };
    bind(here, name, subject, rights).await?;
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let token = accounts.create_token_request(name, &how, &request).await?;
    Ok(token.status.context("a token")?.token)
}

/// Gives rights (group, resource, verb) in a namespace.
pub(crate) async fn bind(
    here: &Namespace,
    name: &str,
    subject: Subject,
    rights: &[(&str, &str, &str)],
) -> Result<()> {
    let how = PostParams::default();
    let rules = rights.iter().map(|(group, resource, verb)| PolicyRule {
        api_groups: Some(vec![(*group).to_owned()]),
        resources: Some(vec![(*resource).to_owned()]),
        verbs: vec![(*verb).to_owned()],
        ..PolicyRule::default()
    });
    let mut role = Role {
        rules: Some(rules.collect()),
        ..Role::default()
    };
    role.metadata.name = Some(name.to_owned());
    here.api().create(&how, &role).await?;
    let mut binding = RoleBinding {
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: name.to_owned(),
        },
        subjects: Some(vec![subject]),
        ..RoleBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    here.api().create(&how, &binding).await?;
    Ok(())
}

/// A run as it is submitted; `more` goes beside its spec.
pub(crate) fn submission(more: Value) -> Value {
    let mut given = json!({"spec": {
        "agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
        "runtime": {"type": "job"}, "workload": {"image": "registry.example.com/runner:1"},
    }});
    if let (Some(given), Some(more)) = (given.as_object_mut(), more.as_object()) {
        given.extend(more.clone());
    }
    given
}
