//! Rights in named namespaces are enough.

use agents::api::contract::env;
use agents::api::kind::Kind;
use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::{gateway::Gateway, lab};
use tempfile::TempDir;

use super::scene::Scene;
use super::scene::endpoint::{Endpoint, LOOPBACK, said};

/// What `docs/controller.md` says that the program needs, in one namespace.
fn rules() -> Value {
    let read = ["get", "list", "watch"];
    let mut rules = vec![
        json!({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]}),
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "delete"]}),
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "delete"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}),
        json!({"apiGroups": [""], "resources": ["persistentvolumeclaims"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"]}),
        json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}),
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "update"]}),
    ];
    for kind in Kind::ALL {
        let (group, plural) = (kind.group(), kind.plural());
        rules.push(json!({"apiGroups": [group], "resources": [plural], "verbs": read}));
        let status = format!("{plural}/status");
        rules.push(json!({"apiGroups": [group], "resources": [status], "verbs": ["patch"]}));
    }
    for (kind, verbs) in [
        (Kind::AgentRun, &["create", "patch", "delete"][..]),
        (Kind::OrchestrationRun, &["create", "patch"]),
        (Kind::ToolRun, &["create", "patch"]),
        (Kind::ImplementationSpec, &["create", "patch"]),
    ] {
        rules.push(
            json!({"apiGroups": [kind.group()], "resources": [kind.plural()], "verbs": verbs}),
        );
    }
    json!(rules)
}

/// A kubeconfig of a service account that has these rights and no others.
async fn account(scene: &Scene, folder: &TempDir) -> Result<std::path::PathBuf> {
    let here = &scene.here;
    let params = PostParams::default();
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "robot"}}))?;
    here.api().create(&params, &account).await?;
    let role: Role =
        serde_json::from_value(json!({"metadata": {"name": "robot"}, "rules": rules()}))?;
    here.api().create(&params, &role).await?;
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "robot"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": here.name}],
    }))?;
    here.api().create(&params, &binding).await?;
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let token = here
        .api::<ServiceAccount>()
        .create_token_request("robot", &params, &request)
        .await?;
    let token = token.status.context("a token")?.token;
    let text = std::fs::read_to_string(lab::shared().await?.kubeconfig())?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text)?;
    kubeconfig["users"][0]["user"] = json!({ "token": token });
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    Ok(file)
}

#[tokio::test]
async fn a_role_in_its_namespace_is_all_that_it_needs() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::CLUSTER_SCOPED, "false"), LOOPBACK]).await?;
    let folder = TempDir::new()?;
    let way = Gateway::open(&account(&scene, &folder).await?, None).await?;
    let mut controller = scene.controller_by(way.kubeconfig())?;
    let run = scene.run("small", json!({})).await?;
    scene.until_phase("small", "Running").await?;
    scene.end_pod("small", 0).await?;
    scene.until_phase("small", "Succeeded").await?;
    scene.until_free("small").await?;
    scene.told(&run, "Succeeded").await?;
    scene
        .until_ready(Kind::Agent, "coder", "True ValidSpec")
        .await?;
    scene.make(Kind::Signal, "x", json!({})).await?;
    scene.until_ready(Kind::Signal, "x", "True Active").await?;
    assert_eq!(way.refused(), Vec::<String>::new());

    let server = Endpoint::start(|_| said(200, &[], &json!({"status": "succeeded"}))).await?;
    let config = json!({"endpoint": server.url("/runs")});
    let custom = json!({"runtime": {"type": "custom", "config": config}});
    for name in ["far", "farther"] {
        scene.run(name, custom.clone()).await?;
        scene.until_phase(name, "Succeeded").await?;
    }
    let not_checked = "EndpointSlice kubernetes in namespace default may not be read";
    let is_it = |line: &Value| {
        let message = line["message"].as_str();
        message.is_some_and(|message| message.starts_with(not_checked))
    };
    controller.line("what is not checked", is_it).await;
    let slice = "GET /apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    assert_eq!(way.refused(), [slice], "it is not asked before every call");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_cleaned_up_is_told_and_tried_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::CLUSTER_SCOPED, "false")]).await?;
    let folder = TempDir::new()?;
    let _controller = scene.controller_by(&account(&scene, &folder).await?)?;
    let run = scene.run("left", json!({})).await?;
    scene.until_phase("left", "Running").await?;
    let mut less = rules();
    less[0]["verbs"] = json!(["get", "list", "watch"]);
    set_rules(&scene, less).await?;
    scene.end_pod("left", 0).await?;
    scene.until_phase("left", "Succeeded").await?;
    let told = scene.told(&run, "CleanupFailed").await?;
    let told = told.iter().find(|said| said.reason == "CleanupFailed");
    let note = &told.context("the Event")?.note;
    assert!(note.starts_with("could not let the Job go: "), "{note}");
    set_rules(&scene, rules()).await?;
    scene.until_free("left").await
}

async fn set_rules(scene: &Scene, rules: Value) -> Result<()> {
    let rules = Patch::Merge(json!({ "rules": rules }));
    let roles = scene.here.api::<Role>();
    roles
        .patch("robot", &PatchParams::default(), &rules)
        .await?;
    Ok(())
}
