//! Tier 2: real pods made of our own programs.

use super::{
    life::{ONE_AT_A_TIME, is_cleared_by_down, survives_kill},
    traces::interfaces,
};
use anyhow::{Context, Result};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::MutatingWebhookConfiguration,
        batch::v1::Job,
        core::v1::{ConfigMap, Pod, Secret, Service},
    },
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};
use support::{
    image::{Image, build_static},
    lab::{
        Lab, own_name,
        pki::{Authority, Subject},
        report::{Report, measured},
        state::Tier,
    },
    pods::is_ready,
    wait,
};
use tokio::sync::OnceCell;

const DEADLINE: Duration = Duration::from_secs(60);

/// Brings the probe into a lab and returns the image's name.
pub(crate) async fn import_probe(lab: &Lab) -> Result<String> {
    static PROBE: OnceCell<Image> = OnceCell::const_new();
    let build = || async { build_static(Report::start()).await?.image("probe") };
    let image = PROBE.get_or_try_init(build).await?;
    lab.import(image).await?;
    Ok(image.name().to_owned())
}

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

fn pod(image: &str, name: &str, arguments: &[&str]) -> Result<Pod> {
    object(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": image, "imagePullPolicy": "Never", "args": arguments}],
        },
    }))
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

#[tokio::test]
async fn a_killed_node_leaves_nothing_that_a_new_start_does_not_remove() -> Result<()> {
    support::node_lab!();
    let _turn = ONE_AT_A_TIME.lock().await;
    survives_kill(&own_name("killed-node")?, Tier::Node).await
}

#[tokio::test]
async fn a_killed_node_with_a_running_pod_is_cleared_by_down() -> Result<()> {
    support::node_lab!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let before = interfaces()?;
    let lab = Lab::start(&own_name("down-node")?, Tier::Node).await?;
    run_first_pod(&lab).await?;
    is_cleared_by_down(&lab, before).await
}

/// Runs one pod in a new lab, until it is running.
pub(super) async fn run_first_pod(lab: &Lab) -> Result<()> {
    let image = import_probe(lab).await?;
    let pods: Api<Pod> = Api::namespaced(lab.client().await?, "default");
    let first = pod(&image, "first", &["serve", "0.0.0.0:8080", "hello"])?;
    pods.create(&PostParams::default(), &first).await?;
    wait::until(&pods, "first", DEADLINE, |pod| {
        phase(pod) == Some("Running")
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_job_runs_a_pod_of_our_own_image_to_succeeded() -> Result<()> {
    let lab = support::node_lab!();
    let namespace = support::namespace_in(lab, "lab-job").await?;
    let image = import_probe(lab).await?;
    let job: Job = object(json!({
        "metadata": {"name": "hello"},
        "spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "main", "image": image, "imagePullPolicy": "Never", "args": ["job", "well done"]}],
        }}},
    }))?;
    let started = Instant::now();
    let jobs = namespace.api::<Job>();
    jobs.create(&PostParams::default(), &job).await?;
    wait::until(&jobs, "hello", DEADLINE, |job| {
        job.status.as_ref().and_then(|status| status.succeeded) == Some(1)
    })
    .await?;
    let succeeded = started.elapsed();
    measured(format!(
        "tier 2: a Job of our own image succeeded after {succeeded:.1?}"
    ));
    let pods = wait::until_listed(
        &namespace.api(),
        "job-name=hello",
        DEADLINE,
        |pods: &[Pod]| pods.iter().all(|pod| phase(pod) == Some("Succeeded")) && !pods.is_empty(),
    )
    .await?;
    assert_eq!(pods.len(), 1);
    let log = namespace.kubectl.run(&["logs", "job/hello"]).await?.ok()?;
    assert_eq!(log, "well done\n");
    Ok(())
}

#[tokio::test]
async fn a_service_of_a_pod_is_reached_from_this_machine() -> Result<()> {
    let lab = support::node_lab!();
    let namespace = support::namespace_in(lab, "lab-service").await?;
    let image = import_probe(lab).await?;
    let pods = namespace.api::<Pod>();
    let web = pod(&image, "web", &["serve", "0.0.0.0:8080", "hello"])?;
    pods.create(&PostParams::default(), &web).await?;
    let service: Service = object(json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }))?;
    let service = namespace
        .api::<Service>()
        .create(&PostParams::default(), &service)
        .await?;
    wait::until(&pods, "web", DEADLINE, is_ready).await?;
    let address = service
        .spec
        .and_then(|spec| spec.cluster_ip)
        .context("the service has no address")?;
    let relay = lab.reach(format!("{address}:80").parse()?)?;
    // A service answers a moment after its pod is ready, when the packet rules are written.
    let page = wait::retry("the service answers", DEADLINE, || {
        let near = relay.address().to_string();
        async move { support::http::get(&near, "/").await }
    })
    .await?;
    assert_eq!(page, "hello");
    Ok(())
}

#[tokio::test]
async fn a_webhook_in_a_pod_behind_a_service_is_called_by_the_api_server() -> Result<()> {
    let lab = support::node_lab!();
    let namespace = support::namespace_in(lab, "lab-webhook").await?;
    let image = import_probe(lab).await?;
    let ca = start_webhook(&namespace, &image).await?;
    let all: Api<MutatingWebhookConfiguration> = Api::all(namespace.client.clone());
    let configuration = configuration(&namespace.name, ca)?;
    all.create(&PostParams::default(), &configuration).await?;

    let objects = namespace.api::<ConfigMap>();
    // Dry run, so that only the answer counts.
    let try_out = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let good: ConfigMap = object(
        json!({"metadata": {"name": "x", "labels": {"reviewed": "yes"}}, "data": {"a": "b"}}),
    )?;
    let marked = wait::retry("the webhook marks an object", DEADLINE, || async {
        let made = objects.create(&try_out, &good).await?;
        let mark = made
            .data
            .as_ref()
            .and_then(|data| data.get("marked").cloned());
        mark.context("it is not marked yet")
    })
    .await?;
    assert_eq!(marked, "by-the-probe");
    let mut bad = good.clone();
    bad.metadata
        .labels
        .get_or_insert_default()
        .insert("deny".to_owned(), "me".to_owned());
    let refused = objects
        .create(&try_out, &bad)
        .await
        .err()
        .context("it was not refused")?;
    assert!(
        refused
            .to_string()
            .contains("the probe denies objects with the label `deny`"),
        "{refused}"
    );
    all.delete(&namespace.name, &DeleteParams::default())
        .await?;
    Ok(())
}

/// Has the API server ask the service `hook` about marked objects of one namespace.
fn configuration(namespace: &str, ca: Value) -> Result<MutatingWebhookConfiguration> {
    object(json!({
        "metadata": {"name": namespace},
        "webhooks": [{
            "name": "probe.agents.proompteng.ai",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 5,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {"reviewed": "yes"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "clientConfig": {
                "caBundle": ca,
                "service": {"name": "hook", "namespace": namespace},
            },
        }],
    }))
}

/// Runs the probe as a webhook behind the service `hook`, and returns the certificate of its authority.
async fn start_webhook(namespace: &support::Namespace, image: &str) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let authority = Authority::make(folder.path())?;
    let host = format!("hook.{}.svc", namespace.name);
    let subject = Subject {
        name: &host,
        group: "",
        hosts: &[&host],
    };
    authority.issue("tls", subject)?;
    let file = |name: &str| fs::read(folder.path().join(name)).map(ByteString);
    let secret = Secret {
        data: Some(
            [
                ("tls.crt".to_owned(), file("tls.crt")?),
                ("tls.key".to_owned(), file("tls.key")?),
            ]
            .into(),
        ),
        ..object(json!({"metadata": {"name": "hook"}}))?
    };
    namespace
        .api()
        .create(&PostParams::default(), &secret)
        .await?;
    let service: Service = object(json!({
        "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]},
    }))?;
    namespace
        .api()
        .create(&PostParams::default(), &service)
        .await?;
    let mut hook = serde_json::to_value(pod(image, "hook", &["webhook", "0.0.0.0:8443", "/tls"])?)?;
    let container = &mut hook["spec"]["containers"][0];
    container["volumeMounts"] = json!([{"name": "tls", "mountPath": "/tls", "readOnly": true}]);
    container["readinessProbe"] = json!({"tcpSocket": {"port": 8443}, "periodSeconds": 1});
    hook["spec"]["volumes"] = json!([{"name": "tls", "secret": {"secretName": "hook"}}]);
    let pods = namespace.api::<Pod>();
    pods.create(&PostParams::default(), &object(hook)?).await?;
    wait::until(&pods, "hook", DEADLINE, is_ready).await?;
    Ok(serde_json::to_value(ByteString(fs::read(
        authority.certificate(),
    )?))?)
}
