//! Ports: what the chart names is where the programs listen, and who may come in reaches them.

use agents::api::contract::{env, path, port};
use agents::kit::args::any_address;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::helm::{Helm, Rendered};

/// The ports of each container, by the name that Services and probes use.
const PORTS: &[(&str, &[(&str, u16)])] = &[
    (
        "control-plane",
        &[
            ("http", port::SERVE),
            ("grpc", port::GRPC),
            ("metrics", port::AGENTS_ADMIN),
        ],
    ),
    (
        "controllers",
        &[("admin", port::AGENTS_ADMIN), ("queue", port::QUEUE_RELAY)],
    ),
    ("sidecar", &[("metrics", port::SIDECAR_ADMIN)]),
    (
        "webhook",
        &[
            ("admission", port::WEBHOOK),
            ("metrics", port::WEBHOOK_ADMIN),
        ],
    ),
];

#[tokio::test]
async fn every_port_is_one_on_which_its_program_listens() -> Result<()> {
    let rendered = Helm::new().await?.render(&json!({}), &[]).await?;
    for (container, ports) in PORTS {
        let ports: Vec<_> = ports
            .iter()
            .map(|(name, port)| json!({"name": name, "containerPort": port}))
            .collect();
        assert_eq!(rendered.container(container)?["ports"], json!(ports));
    }
    Ok(())
}

/// It starts before the controllers and ends after them. A readiness probe of it would take the controllers out of service with it.
#[tokio::test]
async fn the_sidecar_is_a_native_one_that_does_not_count_for_the_pod() -> Result<()> {
    let rendered = Helm::new().await?.render(&json!({}), &[]).await?;
    let pods = rendered.objects.iter();
    let mut pods = pods.filter_map(|object| object.pointer("/spec/template/spec"));
    let pod = pods.find(|pod| pod["containers"][0]["name"] == "controllers");
    let pod = pod.context("no pod of the controllers")?;
    let others = pod["containers"].as_array().map(Vec::len);
    assert_eq!(others, Some(1), "the controllers alone");
    let first = &pod["initContainers"][0];
    assert_eq!(
        (&first["name"], &first["restartPolicy"]),
        (&json!("sidecar"), &json!("Always"))
    );
    for probe in ["startupProbe", "livenessProbe"] {
        let asked = json!({"path": path::LIVEZ, "port": "metrics"});
        assert_eq!(first[probe]["httpGet"], asked, "{probe}");
    }
    assert_eq!(first.get("readinessProbe"), None);
    Ok(())
}

/// The API server reaches no loopback, and without a control plane nobody asks it to.
#[tokio::test]
async fn the_queue_leaves_loopback_only_for_the_control_plane() -> Result<()> {
    let helm = Helm::new().await?;
    let listens = |rendered: &Rendered| -> Result<Option<String>> {
        let told = rendered.plain_variables("controllers")?;
        assert_eq!(
            told.get(env::QUEUE_LISTEN),
            None,
            "on loopback, as it is by itself"
        );
        Ok(told.get(env::QUEUE_RELAY_LISTEN).cloned())
    };
    let with = helm.render(&json!({}), &[]).await?;
    assert_eq!(listens(&with)?, Some(any_address(port::QUEUE_RELAY)));
    let without = json!({"controlPlane": {"enabled": false}});
    let without = helm.render(&without, &[]).await?;
    assert_eq!(listens(&without)?, None);
    let own =
        json!({"controllers": {"env": {"vars": {env::QUEUE_RELAY_LISTEN: "127.0.0.1:8083"}}}});
    let own = helm.render(&own, &[]).await?;
    assert_eq!(listens(&own)?.as_deref(), Some("127.0.0.1:8083"));
    Ok(())
}

/// Which ports a policy opens, and for whom.
fn opened(rendered: &Rendered, component: &str) -> Result<Vec<(u64, Value)>> {
    let policy = rendered.get(&format!("NetworkPolicy/{component}"))?;
    let rules = policy["spec"]["ingress"].as_array().into_iter().flatten();
    let pairs = rules.flat_map(|rule| {
        let ports = rule["ports"].as_array().into_iter().flatten();
        let ports = ports.filter_map(|port| port["port"].as_u64());
        ports.map(|port| (port, rule["from"].clone()))
    });
    Ok(pairs.collect())
}

#[tokio::test]
async fn what_only_the_api_server_calls_can_be_kept_for_it() -> Result<()> {
    let helm = Helm::new().await?;
    let peers = json!([{"ipBlock": {"cidr": "10.0.0.0/28"}}]);
    for (given, from) in [(json!([]), Value::Null), (peers.clone(), peers)] {
        let values = json!({"networkPolicy": {"enabled": true, "apiServer": given}});
        let rendered = helm.render(&values, &[]).await?;
        let anyone = |port: u16| (u64::from(port), Value::Null);
        let caller = |port: u16| (u64::from(port), from.clone());
        assert_eq!(
            opened(&rendered, "agents")?,
            [
                anyone(port::SERVE),
                anyone(port::AGENTS_ADMIN),
                anyone(port::GRPC)
            ]
        );
        assert_eq!(
            opened(&rendered, "agents-controllers")?,
            [anyone(port::SIDECAR_ADMIN), caller(port::QUEUE_RELAY)]
        );
        assert_eq!(
            opened(&rendered, "agents-webhook")?,
            [anyone(port::WEBHOOK_ADMIN), caller(port::WEBHOOK)]
        );
    }
    let values = json!({"networkPolicy": {"enabled": true}, "controlPlane": {"enabled": false}});
    let rendered = helm.render(&values, &[]).await?;
    let alone = [(u64::from(port::SIDECAR_ADMIN), Value::Null)];
    assert_eq!(opened(&rendered, "agents-controllers")?, alone);
    Ok(())
}
