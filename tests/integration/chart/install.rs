//! The chart on a real cluster with real pods: installed, upgraded, and removed again.

use std::{collections::BTreeMap, fs, net::SocketAddr, time::Duration};

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};
use support::{
    fixtures::repository,
    helm::{Helm, NAMESPACE},
    http, image,
    lab::{
        Lab, own_name,
        pki::{Authority, Subject},
        report::Report,
        state::Tier,
    },
    wait,
};
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(120);
/// An object with faults.
const REFUSED: &str = "examples/refused/agent-run.yaml";

/// Makes the certificate of the webhook by hand and returns who issued it, in PEM.
async fn certificate(lab: &Lab) -> Result<String> {
    let folder = TempDir::new()?;
    let authority = Authority::make(folder.path())?;
    let host = format!("agents-webhook.{NAMESPACE}.svc");
    authority.issue(
        "tls",
        Subject {
            name: &host,
            group: "",
            hosts: &[&host],
        },
    )?;
    let mut data = BTreeMap::new();
    for file in ["tls.crt", "tls.key"] {
        let text = fs::read_to_string(folder.path().join(file))?;
        data.insert(file.to_owned(), text);
    }
    let mut secret = Secret {
        string_data: Some(data),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    };
    secret.metadata.name = Some("own-tls".to_owned());
    let secrets: Api<Secret> = Api::namespaced(lab.client().await?, NAMESPACE);
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(fs::read_to_string(authority.certificate())?)
}

/// Values for images that are only on the node.
fn values(ca: &str, rung: &str) -> Value {
    let image = |name: &str| json!({"repository": format!("localhost/{name}"), "tag": "lab", "pullPolicy": "Never"});
    json!({
        "image": image("agents"),
        "sidecar": {"image": image("agents-sidecar")},
        "webhook": {
            "rung": rung, "image": image("agents-webhook"),
            "tls": {"source": "secret", "secretName": "own-tls", "caBundle": ca},
        },
        "readinessProbe": {"periodSeconds": 1},
    })
}

/// What kubectl says to an object with faults, without storing it.
async fn tried(lab: &Lab) -> Result<String> {
    let file = repository().join(REFUSED);
    let file = file.to_str().context("a path that is UTF-8")?;
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    let said = kubectl
        .run(&["apply", "--dry-run=server", "--filename", file])
        .await?;
    Ok(format!("{}{}", said.stdout, said.stderr))
}

async fn is_refused(lab: &Lab, wanted: bool) -> Result<()> {
    let what = format!(
        "the webhook {} a wrong object",
        if wanted { "refuses" } else { "lets through" }
    );
    wait::retry(&what, DEADLINE, || async {
        let said = tried(lab).await?;
        match said.contains("spec.workload.image") && said.contains("is invalid") {
            refused if refused == wanted => Ok(()),
            _ => bail!("kubectl said: {said}"),
        }
    })
    .await
}

/// The page of the sidecar, by way of the Service for scrapers.
async fn page(lab: &Lab) -> Result<String> {
    let services: Api<Service> = Api::namespaced(lab.client().await?, NAMESPACE);
    let service = services.get("agents-metrics").await?;
    let spec = service.spec.context("a Service has a spec")?;
    let address = spec.cluster_ip.context("a Service has an address")?;
    let relay = lab.reach(SocketAddr::new(address.parse()?, 9090))?;
    http::get(&relay.address().to_string(), "/metrics").await
}

/// Objects of the release that are still there.
async fn left(lab: &Lab) -> Result<String> {
    let kinds = "deployments,services,serviceaccounts,roles,rolebindings,configmaps,poddisruptionbudgets,clusterroles,clusterrolebindings,\
                 mutatingwebhookconfigurations,validatingwebhookconfigurations";
    let list = [
        "get",
        kinds,
        "--all-namespaces",
        "--selector",
        "app.kubernetes.io/instance=agents",
        "--output=name",
    ];
    lab.kubectl().run(&list).await?.ok()
}

#[tokio::test]
async fn an_install_runs_a_run_an_upgrade_changes_the_rung_and_an_uninstall_leaves_what_it_says()
-> Result<()> {
    support::node_lab!();
    let own = image::build_static(Report::start()).await?;
    let lab = Lab::start(&own_name("chart")?, Tier::Node).await?;
    for image in own.product_images()? {
        lab.import(&image).await?;
    }
    lab.kubectl()
        .run(&["create", "namespace", NAMESPACE])
        .await?
        .ok()?;
    let ca = certificate(&lab).await?;
    let home = TempDir::new()?;
    let mut environment = lab.environment();
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        environment.push((variable, home.path().join(variable)));
    }
    let helm = Helm::new().await?.at(environment);
    let release = |verb: &'static str| {
        [
            verb,
            "agents",
            "charts/agents",
            "--namespace",
            NAMESPACE,
            "--wait",
            "--timeout",
            "180s",
            "--values",
            "-",
        ]
    };
    let said = helm
        .run(&release("install"), &values(&ca, "deny-ignore").to_string())
        .await?;
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    is_refused(&lab, true).await?;

    let examples = repository().join("examples");
    let examples = examples.to_str().context("a path that is UTF-8")?;
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    kubectl
        .run(&["apply", "--filename", examples])
        .await?
        .ok()?;
    let runs: Api<AgentRun> = Api::namespaced(lab.client().await?, NAMESPACE);
    let succeeded = |run: &AgentRun| {
        let status = run.status.as_ref();
        status.and_then(|status| status.phase.as_deref()) == Some("Succeeded")
    };
    wait::until(&runs, "add-health-endpoint", DEADLINE, succeeded).await?;
    wait::retry(
        "the run is counted on the page of the sidecar",
        DEADLINE,
        || async {
            let page = page(&lab).await?;
            match page
                .lines()
                .any(|line| line.starts_with("agents_runs_total{") && line.contains("Succeeded"))
            {
                true => Ok(()),
                false => bail!("the page is {page}"),
            }
        },
    )
    .await?;

    let said = helm
        .run(&release("upgrade"), &values(&ca, "audit").to_string())
        .await?;
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert!(
        said.stdout.contains("Helm does not upgrade CRDs"),
        "{}",
        said.stdout
    );
    is_refused(&lab, false).await?;

    let remove = [
        "uninstall",
        "agents",
        "--namespace",
        NAMESPACE,
        "--wait",
        "--timeout",
        "120s",
    ];
    let said = helm.run(&remove, "").await?;
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert_eq!(left(&lab).await?, "");
    let kept = runs.get("add-health-endpoint").await?;
    assert!(succeeded(&kept), "runs and their kinds stay");
    Ok(())
}
